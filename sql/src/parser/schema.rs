//! CREATE and ALTER SCHEMA, and new names of what is in one.

use super::cursor::Cursor;
use super::error::{ParseError, Result};
use crate::ast::{CreateSchema, NewName, ObjectKind, Rename, RenameSchema, Statement, TableName};

impl Cursor<'_> {
    /// Reads a statement from the word SCHEMA on.
    pub(super) fn create_schema(&mut self) -> Result<Statement> {
        self.expect_words(&["schema"])?;
        let if_not_exists = self.take_words(&["if", "not", "exists"]);
        if self.is_word("authorization") {
            return Err(self.no_authorization());
        }
        let name = self.name()?;
        match self.peek_word().as_str() {
            "authorization" => return Err(self.no_authorization()),
            "create" | "grant" => {
                return Err(ParseError::unsupported(
                    "CREATE SCHEMA with elements",
                    self.position(),
                )
                .with_hint("Create them after it, by schema.name."));
            }
            _ => {}
        }
        Ok(Statement::CreateSchema(CreateSchema { if_not_exists, name }))
    }

    fn no_authorization(&self) -> ParseError {
        ParseError::unsupported("CREATE SCHEMA … AUTHORIZATION", self.position())
            .with_hint("Schemas have no owner: leave it out.")
    }

    /// Reads a statement behind the words ALTER SCHEMA.
    pub(super) fn alter_schema(&mut self) -> Result<Statement> {
        let name = self.name()?;
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
        } else {
            return Ok(None);
        };
        Ok(Some(Statement::Rename(Rename { kind, if_exists, name: name.clone(), to })))
    }
}
