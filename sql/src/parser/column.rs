//! Parsing of column definitions, for CREATE TABLE and ADD COLUMN.

use sqlparser::tokenizer::Token;
use types::DataType;

use super::cursor::TokenCursor;
use super::error::{ParseError, Result, sqlstate};
use super::{parse_expression, quoted};
use crate::ast::{
    ColumnDefinition, ColumnName, ConstraintKind, CreateTable, Ident, IndexClauses, KeyColumn,
    SourceExpr, TableConstraint, TypeName, UniqueKey,
};

impl TokenCursor<'_> {
    /// Reads a column or a constraint of a table; with a family, one of its columns.
    pub(super) fn table_element(
        &mut self,
        table: &mut CreateTable,
        family: Option<&Ident>,
    ) -> Result<()> {
        if family.is_none() && self.begins_constraint() {
            let constraint = self.table_constraint()?;
            table.constraints.push(constraint);
            return Ok(());
        }
        let mut name = self.column_name()?;
        if let Some(family) = family
            && let Some(other) = name.family.replace(family.clone())
        {
            return Err(self.syntax_error_near(other.position));
        }
        let serial = self.take_serial();
        let limited = self.limited_binary(&name)?;
        let type_name = match (serial.clone(), limited) {
            (Some(type_name), _) => type_name,
            (None, Some((type_name, limit))) => {
                table.constraints.push(limit);
                type_name
            }
            (None, None) => self.type_name()?,
        };
        let base = &type_name.sql_type.base;
        use types::DataType::{CString, Record, Unknown};
        let pseudo = [Record, CString, Unknown];
        let is_pseudo = pseudo.contains(base.element().unwrap_or(base));
        if is_pseudo && type_name.named.is_none() {
            let message =
                format!("column \"{}\" has pseudo-type {}", name.name.value, base.sql_name());
            return Err(ParseError::new("42P16", message, type_name.position));
        }
        let mut column = ColumnDefinition {
            not_null: serial.is_some(),
            serial: serial.is_some(),
            ..ColumnDefinition::new(name, type_name)
        };
        loop {
            let position = self.position();
            if !self.column_constraint(&mut column, table)? {
                break;
            }
            if column.not_null && column.explicit_null {
                let message = format!(
                    "conflicting NULL/NOT NULL declarations for column \"{}\" of table \"{}\"",
                    column.name.name.value, table.name.name.value
                );
                return Err(ParseError::syntax(message, position));
            }
        }
        self.check_generated(&column, &table.name.name.value)?;
        table.columns.push(column);
        Ok(())
    }

    /// Reads Phoenix's `BINARY(n)` or `VARBINARY(n)`: the type bytea with a CHECK of its length;
    /// `None` for anything else.
    fn limited_binary(
        &mut self,
        column: &ColumnName,
    ) -> Result<Option<(TypeName, TableConstraint)>> {
        let token = |at: usize| &self.parser.peek_nth_token_ref(at).token;
        let is_binary = self.is_word("binary") || self.is_word("varbinary");
        let (Token::LParen, Token::Number(length, _), Token::RParen) =
            (token(1), token(2), token(3))
        else {
            return Ok(None);
        };
        if !is_binary || self.nth_word_is(4, "array") || token(4) == &Token::LBracket {
            return Ok(None);
        }
        let (position, word) = (self.position(), self.peek_word());
        if !length.parse::<i32>().is_ok_and(|length| length > 0) {
            let message = format!("length for type {word} must be at least 1");
            return Err(ParseError::new(sqlstate::INVALID_PARAMETER_VALUE, message, position));
        }
        let family = column.family.as_ref().map(|family| format!("{}.", quoted(&family.value)));
        let name = quoted(&column.name.value);
        let text = format!("octet_length({}{name}) <= {length}", family.unwrap_or_default());
        for _ in 0..4 {
            self.advance();
        }
        let sql_type = DataType::Bytea.into();
        let type_name = TypeName { sql_type, named: None, collation: None, position };
        let limit = TableConstraint {
            name: None,
            kind: ConstraintKind::Check(SourceExpr { expr: parse_expression(&text)?, text }),
            deferral: Default::default(),
            not_valid: false,
            index: IndexClauses::default(),
            position,
        };
        Ok(Some((type_name, limit)))
    }

    /// Reads one constraint of a column; returns false if there is none.
    fn column_constraint(
        &mut self,
        column: &mut ColumnDefinition,
        table: &mut CreateTable,
    ) -> Result<bool> {
        let position = self.position();
        let named = self.is_word("constraint");
        // `a int CONSTRAINT pk PRIMARY KEY (a)` is Phoenix's table constraint without a comma.
        if named
            && match &self.parser.peek_nth_token_ref(4).token {
                Token::LParen => !self.nth_word_is(2, "check"),
                _ => false,
            }
            && self.nth_word_is(2, "primary")
        {
            return Ok(false);
        }
        let name = if self.take_word("constraint") { Some(self.name()?) } else { None };
        if name.is_none() && self.column_attribute_clause(column, position)? {
            return Ok(true);
        }
        let own_key = || KeyColumn::ascending(column.name.clone());
        let kind = if self.take_words(&["not", "null"]) {
            column.not_null = true;
            None
        } else if self.take_word("null") {
            column.explicit_null = true;
            None
        } else if self.take_word("default") {
            if column.default.is_some() {
                let message = format!(
                    "multiple default values specified for column \"{}\" of table \"{}\"",
                    column.name.name.value, table.name.name.value
                );
                return Err(ParseError::syntax(message, position));
            }
            column.default = Some(self.default_expr()?);
            None
        } else if self.take_word("generated") {
            self.generated(column, &table.name.name.value, position)?;
            None
        } else if self.take_words(&["primary", "key"]) {
            let mut key = own_key();
            (key.order, key.nulls) = self.direction()?;
            key.row_timestamp = self.take_word("row_timestamp");
            Some(ConstraintKind::PrimaryKey(vec![key]))
        } else if self.take_word("unique") {
            let nulls_not_distinct = self.nulls_not_distinct()?;
            let columns = vec![own_key()];
            Some(ConstraintKind::Unique(UniqueKey { columns, nulls_not_distinct }))
        } else if self.take_word("check") {
            Some(ConstraintKind::Check(self.check_expr()?))
        } else if self.is_word("references") {
            let columns = vec![column.name.clone()];
            Some(ConstraintKind::ForeignKey(self.references(columns)?))
        } else if name.is_some() {
            return Err(self.unexpected());
        } else {
            return self.refuse_column_constraint();
        };
        let takes = kind.as_ref().is_some_and(|kind| !matches!(kind, ConstraintKind::Check(_)));
        let mut index = IndexClauses::default();
        if matches!(kind, Some(ConstraintKind::PrimaryKey(_) | ConstraintKind::Unique(_))) {
            self.constraint_options(&mut index)?;
        }
        let deferral = self.column_attributes(takes)?;
        if let Some(kind) = kind {
            let not_valid = false;
            let constraint = TableConstraint { name, kind, deferral, not_valid, index, position };
            table.constraints.push(constraint);
        }
        Ok(true)
    }

    /// Reads `COLLATE …` or `COMPRESSION …`; returns false if there is none.
    fn column_attribute_clause(
        &mut self,
        column: &mut ColumnDefinition,
        position: usize,
    ) -> Result<bool> {
        if self.is_word("compression") && !self.begins_option() {
            self.advance();
            column.compression = self.compression()?;
            return Ok(true);
        }
        let Some(collation) = self.collate()? else { return Ok(false) };
        if column.type_name.collation.replace(collation).is_some() {
            return Err(ParseError::syntax("multiple COLLATE clauses not allowed", position));
        }
        Ok(true)
    }

    /// Reads `ALWAYS AS (…) STORED` or `… AS IDENTITY`, after GENERATED.
    fn generated(
        &mut self,
        column: &mut ColumnDefinition,
        table: &str,
        position: usize,
    ) -> Result<()> {
        let by_expression = self.is_words(&["always", "as"])
            && self.parser.peek_nth_token_ref(2).token == Token::LParen;
        let (what, twice) = match by_expression {
            true => {
                self.expect_words(&["always", "as"])?;
                let expression = self.check_expr()?;
                self.expect_words(&["stored"])?;
                ("generation clauses specified", column.generated.replace(expression).is_some())
            }
            false => {
                let identity = self.identity()?;
                column.not_null = true;
                ("identity specifications", column.identity.replace(identity).is_some())
            }
        };
        if !twice {
            return Ok(());
        }
        let name = &column.name.name.value;
        let message = format!("multiple {what} for column \"{name}\" of table \"{table}\"");
        Err(ParseError::syntax(message, position))
    }

    /// Checks that a column has only one source of values: DEFAULT, a sequence or an expression.
    fn check_generated(&self, column: &ColumnDefinition, table: &str) -> Result<()> {
        let sources = [
            (column.identity.is_some() && column.default.is_some(), "both default and identity"),
            (column.serial && column.default.is_some(), "multiple default values"),
            (column.serial && column.identity.is_some(), "both default and identity"),
            (
                column.generated.is_some() && (column.default.is_some() || column.serial),
                "both default and generation expression",
            ),
            (
                column.generated.is_some() && column.identity.is_some(),
                "both identity and generation expression",
            ),
        ];
        let Some((_, what)) = sources.iter().find(|(both, _)| *both) else { return Ok(()) };
        let name = &column.name.name;
        let message =
            format!("{what} specified for column \"{}\" of table \"{table}\"", name.value);
        Err(ParseError::syntax(message, name.position))
    }

    pub(super) fn nth_word_is(&self, n: usize, word: &str) -> bool {
        match &self.parser.peek_nth_token_ref(n).token {
            Token::Word(found) => found.value.eq_ignore_ascii_case(word),
            _ => false,
        }
    }

    /// Rejects unsupported column constraints; returns false if there is none.
    fn refuse_column_constraint(&mut self) -> Result<bool> {
        self.column_attributes(false)?;
        let position = self.position();
        Err(match self.peek_word().as_str() {
            "storage" => ParseError::unsupported("this attribute of a column", position)
                .with_hint("Use ALTER COLUMN … SET STORAGE."),
            _ => return Ok(false),
        })
    }
}
