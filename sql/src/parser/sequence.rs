//! Parsing of CREATE and ALTER SEQUENCE, and of serial and identity columns.

use sqlparser::tokenizer::Token;
use types::DataType;

use super::cursor::TokenCursor;
use super::error::{ParseError, Result, sqlstate};
use crate::ast::{
    AlterSequence, CreateSequence, Identity, IdentityKind, SequenceOptions, Statement, TableName,
    TypeName,
};

impl TokenCursor<'_> {
    /// Reads a statement from the word SEQUENCE.
    pub(super) fn create_sequence(&mut self) -> Result<Statement> {
        self.expect_words(&["sequence"])?;
        let if_not_exists = self.take_words(&["if", "not", "exists"]);
        let name = self.table_name()?;
        let options = self.sequence_options(false)?;
        Ok(Statement::CreateSequence(Box::new(CreateSequence { if_not_exists, name, options })))
    }

    /// Reads the rest of ALTER SEQUENCE.
    pub(super) fn alter_sequence(&mut self, name: TableName, if_exists: bool) -> Result<Statement> {
        let position = self.position();
        if self.is_word("set") {
            let construct = format!("ALTER SEQUENCE … {}", self.peek_word().to_uppercase());
            return Err(ParseError::unsupported(construct, position));
        }
        let options = self.sequence_options(true)?;
        if options == SequenceOptions::default() {
            return Err(self.unexpected());
        }
        Ok(Statement::AlterSequence(Box::new(AlterSequence { if_exists, name, options })))
    }

    /// Reads options in any order, each once.
    fn sequence_options(&mut self, alters: bool) -> Result<SequenceOptions> {
        let mut options = SequenceOptions::default();
        while self.sequence_option(alters, &mut options)? {}
        Ok(options)
    }

    /// Reads one option; returns false if there is none.
    fn sequence_option(&mut self, alters: bool, options: &mut SequenceOptions) -> Result<bool> {
        let position = self.position();
        let fresh = if self.take_word("as") {
            let data_type = self.type_name()?;
            options.data_type.replace(data_type).is_none()
        } else if self.take_word("increment") {
            self.take_word("by");
            let number = self.whole_number()?;
            options.increment.replace(number).is_none()
        } else if self.take_words(&["no", "minvalue"]) {
            options.min.replace(None).is_none()
        } else if self.take_word("minvalue") {
            let number = self.whole_number()?;
            options.min.replace(Some(number)).is_none()
        } else if self.take_words(&["no", "maxvalue"]) {
            options.max.replace(None).is_none()
        } else if self.take_word("maxvalue") {
            let number = self.whole_number()?;
            options.max.replace(Some(number)).is_none()
        } else if self.take_word("start") {
            self.take_word("with");
            let number = self.whole_number()?;
            options.start.replace(number).is_none()
        } else if self.take_word("cache") {
            let number = self.whole_number()?;
            options.cache.replace(number).is_none()
        } else if self.take_words(&["no", "cycle"]) {
            options.cycle.replace(false).is_none()
        } else if self.take_word("cycle") {
            options.cycle.replace(true).is_none()
        } else if self.take_words(&["owned", "by", "none"]) {
            options.owned_by.replace(None).is_none()
        } else if self.take_words(&["owned", "by"]) {
            let owner = self.owner()?;
            options.owned_by.replace(Some(owner)).is_none()
        } else if alters && self.take_word("restart") {
            let with = self.take_word("with")
                || matches!(self.peek(), Token::Number(..) | Token::Minus | Token::Plus);
            let number = with.then(|| self.whole_number()).transpose()?;
            options.restart.replace(number).is_none()
        } else {
            return Ok(false);
        };
        match fresh {
            true => Ok(true),
            false => Err(ParseError::syntax("conflicting or redundant options", position)),
        }
    }

    /// Returns whether SET GENERATED, SET with an option of a sequence, or RESTART is next.
    pub(super) fn alters_identity(&self) -> bool {
        const OPTIONS: &[&str] = &[
            "generated",
            "increment",
            "minvalue",
            "maxvalue",
            "no",
            "start",
            "cache",
            "cycle",
            "restart",
            "sequence",
        ];
        self.is_word("restart")
            || (self.is_word("set") && OPTIONS.iter().any(|word| self.nth_word_is(1, word)))
    }

    /// Reads the changes of an identity column.
    pub(super) fn identity_changes(&mut self) -> Result<(Option<IdentityKind>, SequenceOptions)> {
        let (mut kind, mut options) = (None, SequenceOptions::default());
        while self.alters_identity() {
            let position = self.position();
            self.take_word("set");
            if !self.take_word("generated") {
                if !self.sequence_option(true, &mut options)? {
                    return Err(self.unexpected());
                }
                continue;
            }
            if kind.replace(self.identity_kind()?).is_some() {
                return Err(ParseError::syntax("conflicting or redundant options", position));
            }
        }
        Ok((kind, options))
    }

    fn identity_kind(&mut self) -> Result<IdentityKind> {
        if self.take_word("always") {
            return Ok(IdentityKind::Always);
        }
        self.expect_words(&["by", "default"])?;
        Ok(IdentityKind::ByDefault)
    }

    fn owner(&mut self) -> Result<(TableName, crate::ast::Ident)> {
        let first = self.name()?;
        if !self.take(&Token::Period) {
            return Err(ParseError::syntax("invalid OWNED BY option", None)
                .with_hint("Specify OWNED BY table.column or OWNED BY NONE."));
        }
        let second = self.label()?;
        if !self.take(&Token::Period) {
            return Ok((TableName { schema: None, name: first }, second));
        }
        let column = self.label()?;
        Ok((TableName { schema: Some(first), name: second }, column))
    }

    fn whole_number(&mut self) -> Result<i64> {
        let position = self.position();
        let negative = self.take(&Token::Minus);
        if !negative {
            self.take(&Token::Plus);
        }
        let Token::Number(text, false) = self.peek().clone() else { return Err(self.unexpected()) };
        self.advance();
        let sign = if negative { "-" } else { "" };
        format!("{sign}{text}").parse().map_err(|_| {
            let message = format!("value \"{sign}{text}\" is out of range for type bigint");
            ParseError::new(sqlstate::NUMERIC_VALUE_OUT_OF_RANGE, message, position)
        })
    }

    /// Reads `serial` or a variant of it, in place of a type.
    pub(super) fn take_serial(&mut self) -> Option<TypeName> {
        let base = match self.peek_word().as_str() {
            "smallserial" | "serial2" => DataType::Int2,
            "serial" | "serial4" => DataType::Int4,
            "bigserial" | "serial8" => DataType::Int8,
            _ => return None,
        };
        let position = self.position();
        self.advance();
        Some(TypeName { sql_type: base.into(), named: None, collation: None, position })
    }

    /// Reads `GENERATED … AS IDENTITY` after GENERATED.
    pub(super) fn identity(&mut self) -> Result<Identity> {
        let position = self.position();
        let kind = self.identity_kind()?;
        self.expect_words(&["as"])?;
        if self.peek() == &Token::LParen {
            let message = "for a generated column, GENERATED ALWAYS must be specified";
            return Err(ParseError::syntax(message, position));
        }
        self.expect_words(&["identity"])?;
        let mut options = SequenceOptions::default();
        if self.take(&Token::LParen) {
            loop {
                let position = self.position();
                if self.take_words(&["sequence", "name"]) {
                    if options.name.is_some() {
                        let message = "conflicting or redundant options";
                        return Err(ParseError::syntax(message, position));
                    }
                    options.name = Some(self.table_name()?);
                } else if self.take_word("logged") || self.take_word("unlogged") {
                    // Dumps have LOGGED for the sequence of an unlogged table; all sequences are
                    // logged.
                } else if !self.sequence_option(false, &mut options)? {
                    break;
                }
            }
            self.expect(&Token::RParen)?;
        }
        Ok(Identity { kind, options })
    }
}
