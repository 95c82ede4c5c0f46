//! Parsing of GRANT and REVOKE of privileges on objects, of ALTER DEFAULT PRIVILEGES, and of
//! statements on the objects that roles own.

use sqlparser::tokenizer::Token;
use types::key_words;

use crate::ast::{
    FutureKind, FutureObjects, GrantObjects, GrantStatement, Grantee, Ident, ObjectKind,
    OwnedAction, OwnedStatement, Statement, WrittenPrivilege,
};
use crate::parser::cursor::TokenCursor;
use crate::parser::error::{ParseError, Result};

impl TokenCursor<'_> {
    /// Reads the rest of GRANT or REVOKE of privileges.
    pub(in crate::parser) fn grant_privileges(&mut self, is_revoke: bool) -> Result<Statement> {
        self.grant_on(is_revoke, Self::grant_objects)
    }

    /// Reads the rest of ALTER DEFAULT PRIVILEGES.
    pub(in crate::parser) fn alter_default_privileges(&mut self) -> Result<Statement> {
        let (mut roles, mut schemas) = (None, None);
        loop {
            let position = self.position();
            let again = if self.take_words(&["for", "role"]) || self.take_words(&["for", "user"]) {
                roles.replace(self.list(Self::role)?).is_some()
            } else if self.take_words(&["in", "schema"]) {
                schemas.replace(self.list(Self::name)?).is_some()
            } else {
                break;
            };
            if again {
                return Err(ParseError::syntax("conflicting or redundant options", position));
            }
        }
        let is_revoke = self.is_word("revoke");
        if !is_revoke && !self.is_word("grant") {
            return Err(self.unexpected());
        }
        self.advance();
        let (roles, schemas) = (roles.unwrap_or_default(), schemas.unwrap_or_default());
        self.grant_on(is_revoke, |cursor| {
            let found = FutureKind::ALL.into_iter().find(|(word, _)| cursor.take_word(word));
            let (_, kind) = found.ok_or_else(|| cursor.unexpected())?;
            Ok(GrantObjects::Future(FutureObjects { roles, schemas, kind }))
        })
    }

    /// Reads the rest of REASSIGN OWNED or DROP OWNED.
    pub(in crate::parser) fn owned(&mut self, is_drop: bool) -> Result<Statement> {
        self.expect_words(&["owned", "by"])?;
        let roles = self.list(Self::role)?;
        let action = match is_drop {
            true => OwnedAction::Drop(self.cascade()),
            false => {
                self.expect_words(&["to"])?;
                OwnedAction::Reassign(self.role()?)
            }
        };
        Ok(Statement::Owned(Box::new(OwnedStatement { roles, action })))
    }

    fn grant_on(
        &mut self,
        is_revoke: bool,
        objects: impl FnOnce(&mut Self) -> Result<GrantObjects>,
    ) -> Result<Statement> {
        let of_option = is_revoke && self.take_words(&["grant", "option", "for"]);
        let (mut privileges, mut all_columns) = (Vec::new(), Vec::new());
        if self.take_word("all") {
            self.take_word("privileges");
            if self.peek() == &Token::LParen {
                all_columns = self.parenthesized(Self::column_name)?;
            }
        } else {
            privileges = self.list(Self::written_privilege)?;
        }
        self.expect_words(&["on"])?;
        let objects = objects(self)?;
        let is_future = matches!(objects, GrantObjects::Future(_));
        self.expect_words(&[if is_revoke { "from" } else { "to" }])?;
        let grantees = self.list(Self::grantee)?;
        let with_option = !is_revoke && self.take_words(&["with", "grant", "option"]);
        let granted_by = match !is_future && self.take_words(&["granted", "by"]) {
            true => Some(self.role()?),
            false => None,
        };
        let cascade = is_revoke && self.cascade();
        Ok(Statement::Grant(Box::new(GrantStatement {
            is_revoke,
            privileges,
            all_columns,
            objects,
            grantees,
            grant_option: of_option || with_option,
            granted_by,
            cascade,
        })))
    }

    fn written_privilege(&mut self) -> Result<WrittenPrivilege> {
        let name = match self.peek_word().as_str() {
            "select" | "references" | "create" => self.label()?.value,
            _ => self.identifier(key_words::is_not_reserved)?.value,
        };
        let columns = match self.peek() == &Token::LParen {
            true => self.parenthesized(Self::column_name)?,
            false => Vec::new(),
        };
        Ok(WrittenPrivilege { name, columns })
    }

    /// Reads a grantee; GROUP in front of it has no effect.
    pub(in crate::parser) fn grantee(&mut self) -> Result<Grantee> {
        self.take_noise("group");
        if self.take_word("public") {
            return Ok(Grantee::Public);
        }
        self.role().map(Grantee::Role)
    }

    fn grant_objects(&mut self) -> Result<GrantObjects> {
        let position = self.position();
        let schemas = |cursor: &mut Self| -> Result<Vec<Ident>> { cursor.list(Self::name) };
        if self.take_words(&["all", "tables", "in", "schema"]) {
            return schemas(self).map(GrantObjects::AllTables);
        }
        if self.take_words(&["all", "sequences", "in", "schema"]) {
            return schemas(self).map(GrantObjects::AllSequences);
        }
        for routines in ["functions", "procedures", "routines"] {
            if self.take_words(&["all", routines, "in", "schema"]) {
                return schemas(self).map(GrantObjects::AllRoutines);
            }
        }
        if self.take_word("database") {
            return schemas(self).map(GrantObjects::Databases);
        }
        if self.take_word("sequence") {
            return self.list(Self::table_name).map(GrantObjects::Sequences);
        }
        let kinds = [
            ("function", ObjectKind::Function),
            ("procedure", ObjectKind::Procedure),
            ("routine", ObjectKind::Routine),
            ("schema", ObjectKind::Schema),
            ("type", ObjectKind::Type),
            ("domain", ObjectKind::Domain),
        ];
        for (word, kind) in kinds {
            if self.is_word(word)
                && matches!(self.parser.peek_nth_token_ref(1).token, Token::Word(_))
            {
                self.advance();
                return self.list(|cursor| cursor.object(kind)).map(GrantObjects::Named);
            }
        }
        let others = [
            &["language"][..],
            &["large", "object"],
            &["tablespace"],
            &["foreign"],
            &["parameter"],
        ];
        for words in others {
            if self.is_words(words) && !self.nth_word_is(words.len(), "to") {
                let construct = format!("GRANT ON {}", words.join(" ").to_uppercase());
                return Err(ParseError::unsupported(construct, position));
            }
        }
        self.take_noise("table");
        self.list(Self::table_name).map(GrantObjects::Tables)
    }
}
