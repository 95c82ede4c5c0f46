//! Parsing of CREATE and ALTER DOMAIN.

use super::cursor::TokenCursor;
use super::error::{ParseError, Result};
use crate::ast::{
    AlterDomain, AlterDomainAction, CreateDomain, DomainCheck, Ident, SourceExpr, Statement,
    TableName, TypeStatement,
};

impl TokenCursor<'_> {
    /// Reads a statement from the word DOMAIN.
    pub(super) fn create_domain(&mut self) -> Result<Statement> {
        self.expect_words(&["domain"])?;
        let name = self.table_name()?;
        self.take_word("as");
        let type_name = self.type_name()?;
        let mut create =
            CreateDomain { name, type_name, default: None, not_null: false, checks: Vec::new() };
        let mut nullable = None;
        loop {
            let position = self.position();
            let syntax = |message: &str| Err(ParseError::syntax(message, None));
            let name = self.constraint_name()?;
            if self.take_word("default") {
                if create.default.is_some() {
                    return syntax("multiple default expressions");
                }
                create.default = Some(self.default_expr()?);
            } else if self.take_words(&["not", "null"]) {
                if nullable == Some(true) {
                    return syntax("conflicting NULL/NOT NULL constraints");
                }
                nullable = Some(false);
            } else if self.take_word("null") {
                if nullable == Some(false) {
                    return syntax("conflicting NULL/NOT NULL constraints");
                }
                nullable = Some(true);
            } else if self.is_word("check") {
                let predicate = self.domain_check()?;
                create.checks.push(DomainCheck { name, predicate });
                if self.take_words(&["no", "inherit"]) {
                    return syntax("check constraints for domains cannot be marked NO INHERIT");
                }
            } else if let Some(collation) = self.collate()? {
                if create.type_name.collation.replace(collation).is_some() {
                    let message = "multiple COLLATE clauses not allowed";
                    return Err(ParseError::syntax(message, position));
                }
            } else if let Some(kind) = self.impossible_constraint() {
                return syntax(&format!("{kind} constraints not possible for domains"));
            } else if name.is_some() {
                return Err(self.unexpected());
            } else {
                break;
            }
        }
        create.not_null = nullable == Some(false);
        Ok(Statement::Type(Box::new(TypeStatement::CreateDomain(create))))
    }

    /// Reads `CONSTRAINT name`, if it follows.
    fn constraint_name(&mut self) -> Result<Option<Ident>> {
        match self.take_word("constraint") {
            true => self.name().map(Some),
            false => Ok(None),
        }
    }

    /// Reads `CHECK (…)`.
    fn domain_check(&mut self) -> Result<SourceExpr> {
        self.expect_words(&["check"])?;
        self.check_expr()
    }

    /// Returns the kind of a following constraint that domains cannot have.
    fn impossible_constraint(&mut self) -> Option<&'static str> {
        Some(match self.peek_word().as_str() {
            "unique" => "unique",
            "primary" => "primary key",
            "references" => "foreign key",
            "exclude" => "exclusion",
            _ => return None,
        })
    }

    /// Reads the rest of ALTER DOMAIN.
    pub(super) fn alter_domain(&mut self, name: TableName) -> Result<Statement> {
        let position = self.position();
        let action = if self.take_words(&["set", "default"]) {
            AlterDomainAction::Default(Some(self.source_expr()?))
        } else if self.take_words(&["drop", "default"]) {
            AlterDomainAction::Default(None)
        } else if self.take_words(&["set", "not", "null"]) {
            AlterDomainAction::SetNotNull
        } else if self.take_words(&["drop", "not", "null"]) {
            AlterDomainAction::DropNotNull
        } else if self.take_words(&["rename", "constraint"]) {
            let constraint = self.name()?;
            self.expect_words(&["to"])?;
            AlterDomainAction::RenameConstraint { constraint, to: self.name()? }
        } else if self.take_words(&["validate", "constraint"]) {
            AlterDomainAction::Validate(self.name()?)
        } else if self.take_words(&["drop", "constraint"]) {
            let if_exists = self.take_words(&["if", "exists"]);
            let constraint = self.name()?;
            // Constraints have no dependents, so CASCADE has no effect.
            self.cascade();
            AlterDomainAction::Drop { if_exists, constraint }
        } else if self.take_word("add") {
            let name = self.constraint_name()?;
            let predicate = self.domain_check()?;
            let not_valid = self.take_words(&["not", "valid"]);
            AlterDomainAction::Add { check: DomainCheck { name, predicate }, not_valid }
        } else {
            let construct = format!("ALTER DOMAIN … {}", self.peek_word().to_uppercase());
            return Err(ParseError::unsupported(construct, position));
        };
        Ok(Statement::Type(Box::new(TypeStatement::AlterDomain(AlterDomain { name, action }))))
    }
}
