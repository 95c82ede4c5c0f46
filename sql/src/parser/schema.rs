//! CREATE and ALTER SCHEMA, and new names of what is in one.

use super::cursor::Cursor;
use super::error::{ParseError, Result};
use crate::ast::{
    CreateSchema, Ident, NewName, ObjectKind, Rename, RenameSchema, Statement, TableName,
};

impl Cursor<'_> {
    /// Reads a statement from the word SCHEMA on.
    pub(super) fn create_schema(&mut self) -> Result<Statement> {
        self.expect_words(&["schema"])?;
        let if_not_exists = self.take_words(&["if", "not", "exists"]);
        let mut name = None;
        if !self.is_word("authorization") {
            name = Some(self.name()?);
        }
        let owner = if self.take_word("authorization") { Some(self.role()?) } else { None };
        let Some(name) = name.or_else(|| owner.clone()) else { return Err(self.unexpected()) };
        if self.is_word("create") || self.is_word("grant") {
            let what = "CREATE SCHEMA with elements";
            return Err(ParseError::unsupported(what, self.position())
                .with_hint("Create them after it, by schema.name."));
        }
        Ok(Statement::CreateSchema(CreateSchema { if_not_exists, name, owner }))
    }

    /// Reads the name of a role that things are to belong to.
    fn role(&mut self) -> Result<Ident> {
        let words = ["current_user", "current_role", "session_user"];
        if words.iter().any(|word| self.is_word(word)) {
            let what = format!("{} as an owner", self.peek_word().to_uppercase());
            return Err(ParseError::unsupported(what, self.position())
                .with_hint("Write the name of the role."));
        }
        self.name()
    }

    /// Reads a statement behind the words ALTER SCHEMA.
    pub(super) fn alter_schema(&mut self) -> Result<Statement> {
        let name = self.name()?;
        if self.take_words(&["owner", "to"]) {
            let to = NewName::Owner(self.role()?);
            let name = TableName { schema: None, name };
            let kind = ObjectKind::Schema;
            return Ok(Statement::Rename(Rename { kind, if_exists: false, name, to }));
        }
        let position = self.position();
        if !self.take_words(&["rename", "to"]) {
            if self.at_end() {
                return Err(self.unexpected());
            }
            let construct = format!("ALTER SCHEMA … {}", self.peek_word().to_uppercase());
            return Err(ParseError::unsupported(construct, position));
        }
        let new_name = self.name()?;
        Ok(Statement::RenameSchema(RenameSchema { name, new_name }))
    }

    /// Reads `RENAME TO name` or `SET SCHEMA name` of ALTER, if the statement goes on so.
    pub(super) fn rename(
        &mut self,
        kind: ObjectKind,
        if_exists: bool,
        name: &TableName,
    ) -> Result<Option<Statement>> {
        let to = if self.take_words(&["rename", "to"]) {
            NewName::Name(self.name()?)
        } else if self.take_words(&["set", "schema"]) {
            NewName::Schema(self.name()?)
        } else if self.take_words(&["owner", "to"]) {
            NewName::Owner(self.role()?)
        } else {
            return Ok(None);
        };
        Ok(Some(Statement::Rename(Rename { kind, if_exists, name: name.clone(), to })))
    }
}
