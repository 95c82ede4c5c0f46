//! CREATE of tables and indexes.

use sqlparser::tokenizer::Token;

use super::cursor::Cursor;
use super::error::{ParseError, Result};
use super::query::nulls_order;
use crate::ast::{
    ColumnDefinition, ColumnName, ConstraintKind, CreateIndex, CreateTable, Expr, IndexKey,
    KeyColumn, NullsOrder, OptionValue, SortOrder, SourceExpr, Statement, TableConstraint,
    TableOption,
};

/// The words that start a constraint of a table.
pub(super) const CONSTRAINT_WORDS: &[&str] =
    &["constraint", "primary", "unique", "check", "foreign", "exclude"];

impl Cursor<'_> {
    pub(super) fn create(&mut self) -> Result<Statement> {
        let position = self.position();
        self.expect_words(&["create"])?;
        let (what, hint) = match self.peek_word().as_str() {
            "table" => return self.create_table(),
            "view" => return self.create_view(false),
            "sequence" => return self.create_sequence(),
            "type" => return self.create_type(),
            "schema" => return self.create_schema(),
            "or" if self.is_words(&["or", "replace", "view"]) => {
                self.expect_words(&["or", "replace"])?;
                return self.create_view(true);
            }
            "index" => return self.create_index(false),
            "unique" => {
                self.advance();
                return self.create_index(true);
            }
            "immutable" => ("CREATE IMMUTABLE TABLE", "Use WITH (immutable_rows = true)."),
            "local" => ("CREATE LOCAL INDEX", "Create a global index: CREATE INDEX."),
            "temp" | "temporary" => ("a temporary table", "Create a permanent one and drop it."),
            "unlogged" => ("an unlogged table", "Use WITH (durability = 'SKIP_WAL')."),
            other => {
                let construct = format!("CREATE {}", other.to_uppercase());
                if other.is_empty() {
                    return Err(self.unexpected());
                }
                return Err(ParseError::unsupported(construct, position));
            }
        };
        Err(ParseError::unsupported(what, position).with_hint(hint))
    }

    // ---- tables ----

    fn create_table(&mut self) -> Result<Statement> {
        self.expect_words(&["table"])?;
        let if_not_exists = self.take_words(&["if", "not", "exists"]);
        let name = self.table_name()?;
        if self.begins_table_as() {
            return self.create_table_as(if_not_exists, name);
        }
        for (words, construct) in
            [(&["partition"][..], "PARTITION OF"), (&["of"], "CREATE TABLE … OF")]
        {
            if self.is_words(words) {
                return Err(ParseError::unsupported(construct, self.position()));
            }
        }
        let mut table = CreateTable { if_not_exists, ..CreateTable::new(name) };
        self.expect(&Token::LParen)?;
        if !self.take(&Token::RParen) {
            loop {
                match self.take_word("like") {
                    true => self.like_table(&mut table)?,
                    false => self.table_element(&mut table)?,
                }
                // Phoenix lets the constraint follow the last column without a comma.
                if self.take(&Token::Comma) || self.is_word("constraint") {
                    continue;
                }
                self.expect(&Token::RParen)?;
                break;
            }
        }
        for (word, construct) in [
            ("inherits", "INHERITS"),
            ("partition", "PARTITION BY"),
            ("using", "a table access method"),
            ("tablespace", "TABLESPACE"),
        ] {
            if self.is_word(word) {
                return Err(ParseError::unsupported(construct, self.position()));
            }
        }
        self.tail(&mut table.options, &mut table.splits)?;
        Ok(Statement::CreateTable(Box::new(table)))
    }

    pub(super) fn table_element(&mut self, table: &mut CreateTable) -> Result<()> {
        if CONSTRAINT_WORDS.contains(&self.peek_word().as_str()) {
            let constraint = self.table_constraint()?;
            table.constraints.push(constraint);
            return Ok(());
        }
        let position = self.position();
        let family = self.is_word("family")
            && matches!(self.parser.peek_nth_token_ref(2).token, Token::LParen)
            && match &self.parser.peek_nth_token_ref(1).token {
                Token::Word(word) => {
                    types::DataType::from_name(&word.value.to_ascii_lowercase()).is_none()
                }
                _ => false,
            };
        if family {
            return Err(ParseError::unsupported("FAMILY", position)
                .with_hint("Write family.column names and family.option = value options."));
        }
        let name = self.column_name()?;
        let serial = self.take_serial();
        let type_name = match serial.clone() {
            Some(type_name) => type_name,
            None => self.type_name()?,
        };
        let base = type_name.sql_type.base;
        if base.element().unwrap_or(base) == types::DataType::Record {
            let message =
                format!("column \"{}\" has pseudo-type {}", name.name.value, base.sql_name());
            return Err(ParseError::new("42P16", message, type_name.position));
        }
        let mut column = ColumnDefinition {
            not_null: serial.is_some(),
            serial: serial.is_some(),
            ..ColumnDefinition::new(name, type_name)
        };
        while self.column_constraint(&mut column, table)? {}
        self.check_generated(&column, &table.name.name.value)?;
        if column.not_null && column.explicit_null {
            let message = format!(
                "conflicting NULL/NOT NULL declarations for column \"{}\" of table \"{}\"",
                column.name.name.value, table.name.name.value
            );
            return Err(ParseError::syntax(message, column.name.name.position));
        }
        table.columns.push(column);
        Ok(())
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
        let own_key =
            || KeyColumn { name: column.name.clone(), order: SortOrder::Ascending, nulls: None };
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
        } else if self.is_words(&["generated", "always", "as"])
            && self.parser.peek_nth_token_ref(3).token == Token::LParen
        {
            self.expect_words(&["generated", "always", "as"])?;
            let expression = self.check_expr()?;
            self.expect_words(&["stored"])?;
            if column.generated.replace(expression).is_some() {
                let message = format!(
                    "multiple generation clauses specified for column \"{}\" of table \"{}\"",
                    column.name.name.value, table.name.name.value
                );
                return Err(ParseError::syntax(message, position));
            }
            None
        } else if self.take_word("generated") {
            let identity = self.identity()?;
            if column.identity.replace(identity).is_some() {
                let message = format!(
                    "multiple identity specifications for column \"{}\" of table \"{}\"",
                    column.name.name.value, table.name.name.value
                );
                return Err(ParseError::syntax(message, position));
            }
            column.not_null = true;
            None
        } else if self.take_words(&["primary", "key"]) {
            let mut key = own_key();
            (key.order, key.nulls) = self.direction()?;
            Some(ConstraintKind::PrimaryKey(vec![key]))
        } else if self.take_word("unique") {
            Some(ConstraintKind::Unique(vec![own_key()]))
        } else if self.take_word("check") {
            Some(ConstraintKind::Check(self.check_expr()?))
        } else if name.is_some() {
            return Err(self.unexpected());
        } else {
            return self.refuse_column_constraint();
        };
        if let Some(kind) = kind {
            table.constraints.push(TableConstraint { name, kind, position });
        }
        self.refuse_attributes()?;
        Ok(true)
    }

    /// A column takes its values from one place.
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

    fn nth_word_is(&self, n: usize, word: &str) -> bool {
        match &self.parser.peek_nth_token_ref(n).token {
            Token::Word(found) => found.value.eq_ignore_ascii_case(word),
            _ => false,
        }
    }

    /// Refuses what may follow a column's type and bennu does not have; false if there is nothing.
    fn refuse_column_constraint(&mut self) -> Result<bool> {
        let position = self.position();
        let (construct, hint) = match self.peek_word().as_str() {
            "references" => ("a foreign key", "Check the reference in the application."),
            "collate" => ("COLLATE", "Text sorts by its bytes."),
            "row_timestamp" => ("ROW_TIMESTAMP", "Read the pseudo-column _timestamp."),
            "compression" | "storage" => ("this attribute of a column", "Use table options."),
            "array" => ("an array type", "Keep the elements as rows of a table of their own."),
            _ => return Ok(false),
        };
        Err(ParseError::unsupported(construct, position).with_hint(hint))
    }

    pub(super) fn table_constraint(&mut self) -> Result<TableConstraint> {
        let position = self.position();
        let name = if self.take_word("constraint") { Some(self.name()?) } else { None };
        let kind = if self.take_words(&["primary", "key"]) {
            ConstraintKind::PrimaryKey(self.parenthesized(Self::key_column)?)
        } else if self.take_word("unique") {
            if self.is_word("nulls") {
                return Err(ParseError::unsupported("UNIQUE NULLS …", self.position()));
            }
            ConstraintKind::Unique(self.parenthesized(Self::key_column)?)
        } else if self.take_word("check") {
            ConstraintKind::Check(self.check_expr()?)
        } else {
            let construct = match self.peek_word().as_str() {
                "foreign" => "a foreign key",
                "exclude" => "an exclusion constraint",
                _ => return Err(self.unexpected()),
            };
            return Err(ParseError::unsupported(construct, self.position()));
        };
        if self.is_word("include") || self.is_word("using") {
            return Err(ParseError::unsupported(
                "an index clause of a constraint",
                self.position(),
            ));
        }
        self.refuse_attributes()?;
        Ok(TableConstraint { name, kind, position })
    }

    fn refuse_attributes(&mut self) -> Result<()> {
        // `NOT DEFERRABLE` and `INITIALLY IMMEDIATE` are what constraints are anyway.
        while self.take_words(&["not", "deferrable"])
            || self.take_words(&["initially", "immediate"])
        {}
        let construct = match self.peek_word().as_str() {
            "deferrable" | "initially" => "a deferrable constraint",
            "no" if self.nth_word_is(1, "inherit") => "NO INHERIT",
            "row_timestamp" => "ROW_TIMESTAMP",
            _ => return Ok(()),
        };
        Err(ParseError::unsupported(construct, self.position()))
    }

    fn key_column(&mut self) -> Result<KeyColumn> {
        let name: ColumnName = self.column_name()?;
        let (order, nulls) = self.direction()?;
        if self.is_word("row_timestamp") {
            return Err(ParseError::unsupported("ROW_TIMESTAMP", self.position())
                .with_hint("Read the pseudo-column _timestamp."));
        }
        Ok(KeyColumn { name, order, nulls })
    }

    fn direction(&mut self) -> Result<(SortOrder, Option<NullsOrder>)> {
        let order = if self.take_word("desc") {
            SortOrder::Descending
        } else {
            self.take_word("asc");
            SortOrder::Ascending
        };
        if !self.take_word("nulls") {
            return Ok((order, None));
        }
        let first = self.take_word("first");
        if !first {
            self.expect_words(&["last"])?;
        }
        Ok((order, Some(nulls_order(first))))
    }

    /// Reads the expression of DEFAULT: without NOT NULL, which belongs to the column.
    pub(super) fn default_expr(&mut self) -> Result<SourceExpr> {
        let start = self.byte();
        // Above IS, so that `DEFAULT 1 NOT NULL` ends before NOT.
        const ABOVE_LIKE: u8 = 60;
        let parsed =
            self.parser.parse_subexpr(ABOVE_LIKE).map_err(|error| self.translate(error))?;
        let text = self.text_since(start);
        Ok(SourceExpr { expr: self.lower(parsed)?, text })
    }

    fn check_expr(&mut self) -> Result<SourceExpr> {
        self.expect(&Token::LParen)?;
        let expr = self.source_expr()?;
        self.expect(&Token::RParen)?;
        Ok(expr)
    }

    // ---- options ----

    /// Reads `WITH (…)`, Phoenix's options and `SPLIT ON`, in any order.
    fn tail(&mut self, options: &mut Vec<TableOption>, splits: &mut Vec<Vec<Expr>>) -> Result<()> {
        loop {
            if self.take_word("with") {
                options.extend(self.parenthesized(Self::option)?);
            } else if self.is_words(&["split", "on"]) {
                self.take_words(&["split", "on"]);
                splits.extend(self.parenthesized(Self::split_point)?);
            } else if self.is_word("async") {
                return Err(ParseError::unsupported("ASYNC", self.position())
                    .with_hint("Leave it out: the index is built by the statement."));
            } else if self.is_word("tablespace") || self.is_words(&["on", "commit"]) {
                return Err(ParseError::unsupported("this clause", self.position()));
            } else if matches!(self.peek(), Token::Word(_)) && !self.at_end() {
                let option = self.option()?;
                options.push(option);
                if self.take(&Token::Comma) && self.at_end() {
                    return Err(self.unexpected());
                }
            } else {
                return if self.at_end() { Ok(()) } else { Err(self.unexpected()) };
            }
        }
    }

    pub(super) fn split_point(&mut self) -> Result<Vec<Expr>> {
        if self.peek() == &Token::LParen {
            self.parenthesized(Self::expr)
        } else {
            Ok(vec![self.expr()?])
        }
    }

    /// Reads `name = value` or `family.name = value`.
    pub(super) fn option(&mut self) -> Result<TableOption> {
        let first = self.label()?;
        let (family, mut name) =
            if self.take(&Token::Period) { (Some(first), self.label()?) } else { (None, first) };
        name.value = name.value.to_ascii_lowercase();
        let value = if self.take(&Token::Eq) {
            self.option_value()?
        } else if matches!(self.peek(), Token::Comma | Token::RParen) {
            OptionValue::Boolean(true)
        } else {
            return Err(self.unexpected());
        };
        Ok(TableOption { family, name, value })
    }

    /// Reads a number, string, boolean or word.
    pub(super) fn option_value(&mut self) -> Result<OptionValue> {
        let sign = if self.take(&Token::Minus) {
            "-"
        } else {
            self.take(&Token::Plus);
            ""
        };
        let value = match self.peek() {
            Token::Number(text, false) => OptionValue::Number(format!("{sign}{text}")),
            _ if !sign.is_empty() => return Err(self.unexpected()),
            Token::Word(word) if word.quote_style.is_some() => {
                OptionValue::String(word.value.clone())
            }
            Token::Word(word) => match word.value.to_ascii_lowercase().as_str() {
                "true" => OptionValue::Boolean(true),
                "false" => OptionValue::Boolean(false),
                value => OptionValue::Word(value.to_owned()),
            },
            _ => return Ok(OptionValue::String(self.string()?)),
        };
        self.advance();
        Ok(value)
    }

    // ---- indexes ----

    fn create_index(&mut self, unique: bool) -> Result<Statement> {
        self.expect_words(&["index"])?;
        if self.is_word("concurrently") {
            return Err(ParseError::unsupported("CREATE INDEX CONCURRENTLY", self.position())
                .with_hint("Use CREATE INDEX."));
        }
        let if_not_exists = self.take_words(&["if", "not", "exists"]);
        let name = if self.is_word("on") { None } else { Some(self.name()?) };
        if if_not_exists && name.is_none() {
            return Err(self.unexpected());
        }
        self.expect_words(&["on"])?;
        if self.is_word("only") {
            return Err(ParseError::unsupported("ONLY", self.position()));
        }
        let table = self.table_name()?;
        if self.take_word("using") && !self.take_word("btree") {
            let method = self.peek_word();
            return Err(ParseError::unsupported(format!("index method {method}"), self.position())
                .with_hint("Leave out USING: indexes are ordered."));
        }
        let keys = self.parenthesized(Self::index_key)?;
        let include = if self.take_word("include") {
            self.parenthesized(Self::column_name)?
        } else {
            Vec::new()
        };
        let mut index = CreateIndex {
            unique,
            if_not_exists,
            name,
            table,
            keys,
            include,
            predicate: None,
            options: Vec::new(),
            splits: Vec::new(),
        };
        if self.is_word("nulls") {
            return Err(ParseError::unsupported("NULLS [NOT] DISTINCT", self.position()));
        }
        if self.take_word("with") {
            index.options = self.parenthesized(Self::option)?;
        }
        if self.take_word("where") {
            index.predicate = Some(self.source_expr()?);
        }
        self.tail(&mut index.options, &mut index.splits)?;
        Ok(Statement::CreateIndex(Box::new(index)))
    }

    fn index_key(&mut self) -> Result<IndexKey> {
        let source = self.source_expr()?;
        let (order, nulls) = self.direction()?;
        match self.peek() {
            Token::Comma | Token::RParen => Ok(IndexKey { source, order, nulls }),
            Token::Word(_) => Err(ParseError::unsupported("an operator class", self.position())),
            _ => Err(self.unexpected()),
        }
    }
}
