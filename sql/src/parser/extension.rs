//! Parsing of CREATE EXTENSION and ALTER EXTENSION.

use sqlparser::tokenizer::Token;

use super::cursor::TokenCursor;
use super::error::{ParseError, Result, sqlstate};
use crate::ast::{ExtensionStatement, Ident, Statement};

impl TokenCursor<'_> {
    pub(super) fn create_extension(&mut self) -> Result<Statement> {
        self.expect_words(&["extension"])?;
        let if_not_exists = self.take_words(&["if", "not", "exists"]);
        let name = self.name()?;
        self.take_word("with");
        let (mut schema, mut version, mut cascade) = (None, None, false);
        loop {
            let position = self.position();
            let repeated = if self.take_word("schema") {
                schema.replace(self.name()?).is_some()
            } else if self.take_word("version") {
                version.replace(self.extension_version()?).is_some()
            } else if self.take_word("cascade") {
                std::mem::replace(&mut cascade, true)
            } else if self.take_word("from") {
                let message = "CREATE EXTENSION ... FROM is no longer supported";
                let code = sqlstate::FEATURE_NOT_SUPPORTED;
                return Err(ParseError::new(code, message, position));
            } else {
                break;
            };
            if repeated {
                let message = "conflicting or redundant options";
                return Err(ParseError::syntax(message, position));
            }
        }
        let create = ExtensionStatement::Create { if_not_exists, name, schema, version };
        Ok(Statement::Extension(Box::new(create)))
    }

    /// Reads the rest of ALTER EXTENSION.
    pub(super) fn alter_extension(&mut self, name: Ident, position: usize) -> Result<Statement> {
        if self.take_word("update") {
            let version = match self.take_word("to") {
                true => Some(self.extension_version()?),
                false => None,
            };
            return Ok(Statement::Extension(Box::new(ExtensionStatement::Update {
                name,
                version,
            })));
        }
        let action = match self.peek_word().as_str() {
            word @ ("add" | "drop") => format!("ALTER EXTENSION {}", word.to_uppercase()),
            "set" => "ALTER EXTENSION SET SCHEMA".to_owned(),
            _ => return Err(self.unexpected()),
        };
        Err(ParseError::unsupported(action, position)
            .with_hint("Use DROP EXTENSION and CREATE EXTENSION."))
    }

    fn extension_version(&mut self) -> Result<String> {
        match self.peek() {
            Token::Word(_) => Ok(self.parameter_name()?.value),
            _ => self.string(),
        }
    }
}
