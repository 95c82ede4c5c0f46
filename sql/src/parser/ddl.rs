//! Parsing of CREATE TABLE and CREATE INDEX, and of storage options.

use sqlparser::ast::Expr as Parsed;
use sqlparser::tokenizer::Token;
use types::DataType;

use super::cursor::TokenCursor;
use super::error::{ParseError, Result, sqlstate};
use super::operator;
use super::parse_expression;
use super::query::nulls_order;
use crate::ast::{
    ColumnName, ConstraintKind, CreateIndex, CreateTable, Expr, Ident, IndexClauses, IndexKey,
    IndexMethod, KeyColumn, NullsOrder, OnCommit, OptionName, OptionValue, SortOrder, SourceExpr,
    Statement, TEMP, TableConstraint, TableName, TableOption, UniqueKey,
};

impl TokenCursor<'_> {
    pub(super) fn create(&mut self) -> Result<Statement> {
        let position = self.position();
        self.expect_words(&["create"])?;
        match self.peek_word().as_str() {
            "table" => self.create_table(),
            "view" | "recursive" => self.create_view(false),
            "materialized" => self.create_materialized_view(),
            "sequence" => self.create_sequence(),
            "type" => self.create_type(),
            "domain" => self.create_domain(),
            "function" | "procedure" => self.create_function(false),
            "or" if self.is_words(&["or", "replace", "function"])
                || self.is_words(&["or", "replace", "procedure"]) =>
            {
                self.expect_words(&["or", "replace"])?;
                self.create_function(true)
            }
            "trigger" => self.create_trigger(false),
            "policy" => self.create_policy(),
            "event" => Err(ParseError::unsupported("CREATE EVENT TRIGGER", position)),
            "constraint" if self.nth_word_is(1, "trigger") => self.create_trigger(false),
            "or" if self.is_words(&["or", "replace", "trigger"])
                || self.is_words(&["or", "replace", "constraint", "trigger"]) =>
            {
                self.expect_words(&["or", "replace"])?;
                self.create_trigger(true)
            }
            "schema" => self.create_schema(),
            "role" | "user" | "group" if !self.nth_word_is(1, "mapping") => {
                let noun = self.role_noun().unwrap_or_default();
                self.create_role(noun)
            }
            "database" => self.create_database(),
            "extension" => self.create_extension(),
            "or" if self.replaces_view() => {
                self.expect_words(&["or", "replace"])?;
                match self.takes_temporary() {
                    true => self.create_temporary(true),
                    false => self.create_view(true),
                }
            }
            "index" => self.create_index((false, false)),
            "unique" => {
                self.advance();
                let local = self.take_word("local");
                self.create_index((true, local))
            }
            "uncovered" => self.create_uncovered_index(),
            "immutable" => self.create_immutable_table(),
            "local" | "global" | "temp" | "temporary" if self.takes_temporary() => {
                self.create_temporary(false)
            }
            "local" => {
                self.advance();
                let unique = self.take_word("unique");
                self.create_index((unique, true))
            }
            "unlogged" => {
                self.advance();
                self.create_unlogged()
            }
            other => {
                let construct = format!("CREATE {}", other.to_uppercase());
                if other.is_empty() {
                    return Err(self.unexpected());
                }
                Err(ParseError::unsupported(construct, position))
            }
        }
    }

    /// Reads `[LOCAL | GLOBAL] TEMP[ORARY]`.
    fn takes_temporary(&mut self) -> bool {
        let words = ["temp", "temporary"];
        words.into_iter().any(|word| {
            self.take_words(&["local", word])
                || self.take_words(&["global", word])
                || self.take_word(word)
        })
    }

    /// Returns whether the next words are `OR REPLACE [TEMP] [RECURSIVE] VIEW`.
    fn replaces_view(&self) -> bool {
        const KINDS: [&[&str]; 7] = [
            &[],
            &["temp"],
            &["temporary"],
            &["local", "temp"],
            &["local", "temporary"],
            &["global", "temp"],
            &["global", "temporary"],
        ];
        KINDS.iter().any(|kind| {
            ["view", "recursive"].iter().any(|word| {
                let words = ["or", "replace"].iter().chain(*kind).chain([word]);
                self.is_words(&words.copied().collect::<Vec<&str>>())
            })
        })
    }

    /// Reads the rest of a statement after TEMPORARY: the object is in schema `pg_temp`.
    fn create_temporary(&mut self, or_replace: bool) -> Result<Statement> {
        let mut statement = match self.peek_word().as_str() {
            "view" | "recursive" => self.create_view(or_replace)?,
            "table" if !or_replace => self.create_table()?,
            "sequence" if !or_replace => self.create_sequence()?,
            "function" => {
                return Err(ParseError::unsupported("CREATE TEMPORARY FUNCTION", self.position()));
            }
            _ => return Err(self.unexpected()),
        };
        let name = match &mut statement {
            Statement::CreateTable(create) => &mut create.name,
            Statement::CreateTableAs(create) => &mut create.name,
            Statement::CreateView(create) => &mut create.name,
            Statement::CreateSequence(create) => &mut create.name,
            _ => return Err(self.unexpected()),
        };
        *name = temporary(name.clone())?;
        Ok(statement)
    }

    /// Reads the rest of a statement after UNLOGGED.
    fn create_unlogged(&mut self) -> Result<Statement> {
        let position = self.position();
        if !self.is_word("table") {
            return Err(ParseError::unsupported("this unlogged object", position)
                .with_hint("Only tables can be unlogged."));
        }
        let mut statement = self.create_table()?;
        match &mut statement {
            Statement::CreateTable(create) => create.unlogged = true,
            Statement::CreateTableAs(create) => create.unlogged = true,
            _ => return Err(self.syntax_error_near(position)),
        }
        Ok(statement)
    }

    /// Reads Phoenix's `IMMUTABLE TABLE`: the option IMMUTABLE_ROWS.
    fn create_immutable_table(&mut self) -> Result<Statement> {
        let position = self.position();
        self.advance();
        let mut statement = self.create_table()?;
        let Statement::CreateTable(table) = &mut statement else {
            return Err(self.syntax_error_near(position));
        };
        let name = Ident { value: "immutable_rows".to_owned(), position };
        if table.options.iter().all(|option| option.name.value != name.value) {
            let value = OptionValue::Boolean(true);
            table.options.push(TableOption { family: None, name, value });
        }
        Ok(statement)
    }

    /// Reads `[USING heap]`, the only table access method.
    pub(super) fn heap(&mut self) -> Result<()> {
        if !self.take_word("using") {
            return Ok(());
        }
        let name = self.name()?;
        if name.value == "heap" {
            return Ok(());
        }
        let message = format!("access method \"{}\" does not exist", name.value);
        Err(ParseError::new("42704", message, None))
    }

    /// Reads `[TABLESPACE pg_default]`, the only tablespace.
    pub(super) fn default_tablespace(&mut self) -> Result<()> {
        if !self.take_word("tablespace") {
            return Ok(());
        }
        let name = self.name()?;
        if name.value == "pg_default" {
            return Ok(());
        }
        let message = format!("tablespace \"{}\" does not exist", name.value);
        Err(ParseError::new("42704", message, None))
    }

    /// Reads `[WITH (…)]` or `[WITHOUT OIDS]`.
    pub(super) fn with_options(&mut self) -> Result<Vec<TableOption>> {
        if self.take_words(&["without", "oids"]) || !self.take_word("with") {
            return Ok(Vec::new());
        }
        self.parenthesized(Self::option)
    }

    /// Reads `[ON COMMIT …]`.
    pub(super) fn on_commit(&mut self) -> Result<Option<OnCommit>> {
        if !self.take_words(&["on", "commit"]) {
            return Ok(None);
        }
        let on_commit = if self.take_words(&["preserve", "rows"]) {
            OnCommit::PreserveRows
        } else if self.take_words(&["delete", "rows"]) {
            OnCommit::DeleteRows
        } else if self.take_word("drop") {
            OnCommit::Drop
        } else {
            return Err(self.unexpected());
        };
        Ok(Some(on_commit))
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
        let mut families = Vec::new();
        self.expect(&Token::LParen)?;
        if !self.take(&Token::RParen) {
            loop {
                if self.take_word("like") {
                    self.like_table(&mut table)?;
                } else if self.begins_family_clause() {
                    families.push(self.family_clause(&mut table, &families)?);
                } else {
                    self.table_element(&mut table, None)?;
                }
                // Phoenix allows the constraint after the last column without a comma.
                if self.take(&Token::Comma) || self.is_word("constraint") {
                    continue;
                }
                self.expect(&Token::RParen)?;
                break;
            }
        }
        for (word, construct) in [("inherits", "INHERITS"), ("partition", "PARTITION BY")] {
            if self.is_word(word) {
                return Err(ParseError::unsupported(construct, self.position()));
            }
        }
        self.heap()?;
        self.tail(&mut table.options, &mut table.splits)?;
        self.set_row_timestamp(&mut table)?;
        table.on_commit = self.on_commit()?;
        self.default_tablespace()?;
        if !self.at_end() {
            return Err(self.unexpected());
        }
        Ok(Statement::CreateTable(Box::new(table)))
    }

    /// Sets the default of the key column with Phoenix's ROW_TIMESTAMP, if there is one.
    fn set_row_timestamp(&self, table: &mut CreateTable) -> Result<()> {
        let keys = table.constraints.iter().filter_map(|one| match &one.kind {
            ConstraintKind::PrimaryKey(key) => Some(key),
            _ => None,
        });
        let marked = keys.flatten().find(|key| key.row_timestamp);
        let Some(name) = marked.map(|key| key.name.name.clone()) else { return Ok(()) };
        let column = table.columns.iter_mut().find(|one| one.name.name.value == name.value);
        let Some(column) = column else { return Ok(()) };
        let is_unsigned =
            column.type_name.named.as_ref().is_some_and(|named| named.name == "unsigned_long");
        let text = match &column.type_name.sql_type.base {
            DataType::Date => "CURRENT_DATE",
            DataType::Time => "LOCALTIME",
            DataType::Timestamp => "LOCALTIMESTAMP",
            DataType::Timestamptz => "now()",
            DataType::Int8 => MILLISECONDS,
            _ if is_unsigned => MILLISECONDS,
            _ => {
                let what = "ROW_TIMESTAMP of a type other than date, time, timestamp and bigint";
                return Err(ParseError::unsupported(what, name.position)
                    .with_hint("Use one of these types."));
            }
        };
        if column.default.is_none() {
            let (expr, text) = (parse_expression(text)?, text.to_owned());
            column.default = Some(SourceExpr { expr, text });
        }
        let value = OptionValue::String(name.value.clone());
        let name = Ident { value: "row_timestamp".to_owned(), position: name.position };
        table.options.push(TableOption { family: None, name, value });
        Ok(())
    }

    /// Returns whether a table constraint follows.
    pub(super) fn begins_constraint(&self) -> bool {
        match self.peek_word().as_str() {
            "constraint" | "primary" | "unique" | "check" | "foreign" => true,
            "exclude" => {
                self.is_words(&["exclude", "using"])
                    || self.parser.peek_nth_token_ref(1).token == Token::LParen
            }
            _ => false,
        }
    }

    pub(super) fn table_constraint(&mut self) -> Result<TableConstraint> {
        let position = self.position();
        let name = if self.take_word("constraint") { Some(self.name()?) } else { None };
        let kind = if self.take_words(&["primary", "key"]) {
            ConstraintKind::PrimaryKey(self.parenthesized(Self::key_column)?)
        } else if self.take_word("unique") {
            let nulls_not_distinct = self.nulls_not_distinct()?;
            let columns = self.parenthesized(Self::key_column)?;
            ConstraintKind::Unique(UniqueKey { columns, nulls_not_distinct })
        } else if self.take_word("check") {
            ConstraintKind::Check(self.check_expr()?)
        } else if self.take_words(&["foreign", "key"]) {
            let columns = self.parenthesized(Self::column_name)?;
            ConstraintKind::ForeignKey(self.references(columns)?)
        } else {
            let construct = match self.peek_word().as_str() {
                "exclude" => "an exclusion constraint",
                _ => return Err(self.unexpected()),
            };
            return Err(ParseError::unsupported(construct, self.position()));
        };
        let index = self.index_clauses(&kind)?;
        let (deferral, not_valid) = self.table_attributes(kind.words(), Some(&kind))?;
        Ok(TableConstraint { name, kind, deferral, not_valid, index, position })
    }

    /// Reads `[INCLUDE (…)] [WITH (…)] [USING INDEX TABLESPACE …]` of PRIMARY KEY and UNIQUE.
    fn index_clauses(&mut self, kind: &ConstraintKind) -> Result<IndexClauses> {
        let mut index = IndexClauses::default();
        if !matches!(kind, ConstraintKind::PrimaryKey(_) | ConstraintKind::Unique(_)) {
            return Ok(index);
        }
        if self.take_word("include") {
            index.include = self.parenthesized(Self::column_name)?;
        }
        self.constraint_options(&mut index)?;
        Ok(index)
    }

    /// Reads `[WITH (…)] [USING INDEX TABLESPACE …]`.
    pub(super) fn constraint_options(&mut self, index: &mut IndexClauses) -> Result<()> {
        if self.take_word("with") {
            index.options = self.parenthesized(Self::option)?;
        }
        if self.take_words(&["using", "index"]) {
            if !self.is_word("tablespace") {
                return Err(self.unexpected());
            }
            self.default_tablespace()?;
        }
        Ok(())
    }

    /// Reads `[NULLS [NOT] DISTINCT]`.
    pub(super) fn nulls_not_distinct(&mut self) -> Result<bool> {
        if !self.take_word("nulls") {
            return Ok(false);
        }
        let not_distinct = self.take_word("not");
        self.expect_words(&["distinct"])?;
        Ok(not_distinct)
    }

    fn key_column(&mut self) -> Result<KeyColumn> {
        let name: ColumnName = self.column_name()?;
        let (order, nulls) = self.direction()?;
        let row_timestamp = self.take_word("row_timestamp");
        Ok(KeyColumn { name, order, nulls, row_timestamp })
    }

    pub(super) fn direction(&mut self) -> Result<(SortOrder, Option<NullsOrder>)> {
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

    /// Reads the expression of DEFAULT, without a following NOT NULL, which belongs to the column.
    pub(super) fn default_expr(&mut self) -> Result<SourceExpr> {
        let start = self.byte();
        // The precedence above IS, so that `DEFAULT 1 NOT NULL` ends before NOT.
        const ABOVE_LIKE: u8 = 60;
        let mut parsed =
            self.parser.parse_subexpr(ABOVE_LIKE).map_err(|error| self.translate(error))?;
        // Comparisons, which have lower precedence, are part of it.
        if let Some(op) = operator::comparison(self.peek()) {
            self.advance();
            let right = self.parser.parse_subexpr(ABOVE_LIKE);
            let right = Box::new(right.map_err(|error| self.translate(error))?);
            parsed = Parsed::BinaryOp { left: Box::new(parsed), op, right };
        }
        let text = self.text_since(start);
        Ok(SourceExpr { expr: self.lower(parsed)?, text })
    }

    pub(super) fn check_expr(&mut self) -> Result<SourceExpr> {
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
            } else if self.is_word("async") || self.is_words(&["on", "commit"]) {
                return Ok(());
            } else if self.is_word("tablespace") {
                self.default_tablespace()?;
            } else if self.is_words(&["without", "oids"]) {
                self.take_words(&["without", "oids"]);
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

    /// Reads `name` or `family.name`.
    pub(super) fn qualified_option_name(&mut self) -> Result<OptionName> {
        let first = self.label()?;
        let (family, name) =
            if self.take(&Token::Period) { (Some(first), self.label()?) } else { (None, first) };
        Ok(split_option(family, name))
    }

    /// Reads `name = value` or `family.name = value`.
    pub(super) fn option(&mut self) -> Result<TableOption> {
        let OptionName { family, name } = self.qualified_option_name()?;
        let value = if self.take(&Token::Eq) {
            self.option_value()?
        } else if matches!(self.peek(), Token::Comma | Token::RParen) {
            OptionValue::Boolean(true)
        } else {
            return Err(self.unexpected());
        };
        Ok(renamed(TableOption { family, name, value }))
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

    /// Reads Phoenix's `CREATE UNCOVERED INDEX`: an index without INCLUDE.
    fn create_uncovered_index(&mut self) -> Result<Statement> {
        self.advance();
        let local = self.take_word("local");
        let statement = self.create_index((false, local))?;
        match &statement {
            Statement::CreateIndex(index) if !index.include.is_empty() => {
                let position = index.include.first().map(ColumnName::position);
                let message = "an UNCOVERED index cannot have INCLUDE columns";
                Err(ParseError::new(sqlstate::INVALID_TABLE_DEFINITION, message, position)
                    .with_hint("Omit UNCOVERED."))
            }
            _ => Ok(statement),
        }
    }

    /// Reads the rest of `CREATE [UNIQUE] [LOCAL] INDEX`.
    fn create_index(&mut self, (unique, local): (bool, bool)) -> Result<Statement> {
        self.expect_words(&["index"])?;
        let concurrently = self.take_word("concurrently");
        let if_not_exists = self.take_words(&["if", "not", "exists"]);
        let name = if self.is_word("on") { None } else { Some(self.name()?) };
        if if_not_exists && name.is_none() {
            return Err(self.unexpected());
        }
        self.expect_words(&["on"])?;
        let table = self.table_name()?;
        let method = match self.take_word("using") {
            true => self.index_method()?,
            false => IndexMethod::default(),
        };
        let keys = self.parenthesized(Self::index_key)?;
        let include = if self.take_word("include") {
            self.parenthesized(Self::column_name)?
        } else {
            Vec::new()
        };
        let mut index = CreateIndex {
            unique,
            concurrently,
            is_async: false,
            local,
            if_not_exists,
            name,
            table,
            keys,
            include,
            nulls_not_distinct: false,
            predicate: None,
            options: Vec::new(),
            splits: Vec::new(),
            method,
        };
        index.nulls_not_distinct = self.nulls_not_distinct()?;
        if self.take_word("with") {
            index.options = self.parenthesized(Self::option)?;
        }
        self.default_tablespace()?;
        if self.take_word("where") {
            index.predicate = Some(self.source_expr()?);
        }
        self.tail(&mut index.options, &mut index.splits)?;
        if self.take_word("async") {
            index.is_async = true;
            self.tail(&mut index.options, &mut index.splits)?;
        }
        Ok(Statement::CreateIndex(Box::new(index)))
    }

    fn index_method(&mut self) -> Result<IndexMethod> {
        if let Some(method) = IndexMethod::ALL.into_iter().find(|one| self.take_word(one.name())) {
            return Ok(method);
        }
        let method = self.peek_word();
        if !["gist", "brin", "spgist"].contains(&method.as_str()) {
            let message = format!("access method \"{method}\" does not exist");
            return Err(ParseError::new("42704", message, None));
        }
        Err(ParseError::unsupported(format!("index method {method}"), self.position())
            .with_hint("Omit USING for an ordered index."))
    }

    fn index_key(&mut self) -> Result<IndexKey> {
        let source = self.source_expr()?;
        let named = !self.is_word("asc")
            && !self.is_word("desc")
            && !self.is_words(&["nulls", "first"])
            && !self.is_words(&["nulls", "last"]);
        let operator_class = match self.peek() {
            Token::Word(_) if named => Some(self.name()?),
            _ => None,
        };
        let is_ordered = self.is_word("asc") || self.is_word("desc");
        let (order, nulls) = self.direction()?;
        let order = is_ordered.then_some(order);
        match self.peek() {
            Token::Comma | Token::RParen => Ok(IndexKey { source, operator_class, order, nulls }),
            _ => Err(self.unexpected()),
        }
    }
}

/// The present time in milliseconds since 1970.
const MILLISECONDS: &str = "trunc(extract(epoch FROM now()) * 1000)::bigint";

/// Options of Phoenix that have another name here: the name, a value, and the option that it is.
const OPTION_SYNONYMS: &[(&str, &str, &str, &str)] = &[
    ("disable_wal", "true", "durability", "skip_wal"),
    ("disable_wal", "false", "durability", "sync_wal"),
    ("immutable_storage_scheme", "one_cell_per_column", "storage", "cell"),
    ("immutable_storage_scheme", "single_cell_array_with_offsets", "storage", "row"),
];

/// Returns an option of Phoenix as the one that it is here.
fn renamed(mut option: TableOption) -> TableOption {
    let text = match &option.value {
        OptionValue::Boolean(value) => value.to_string(),
        value => value.text(),
    };
    let written = option.name.value.clone();
    for (_, known, name, value) in OPTION_SYNONYMS.iter().filter(|one| one.0 == written) {
        option.name.value = (*name).to_owned();
        if known.eq_ignore_ascii_case(&text) {
            option.value = OptionValue::Word((*value).to_owned());
        }
    }
    option
}

/// Splits a name that `pg_dump` has quoted: `"f.ttl"` is `ttl` of family `f`.
fn split_option(family: Option<Ident>, name: Ident) -> OptionName {
    let position = name.position;
    match name.value.rsplit_once('.') {
        Some((family, option)) if !family.is_empty() => {
            let family = Ident { value: family.to_owned(), position };
            let name = Ident { value: option.to_owned(), position };
            OptionName { family: Some(family), name }
        }
        _ => OptionName { family, name },
    }
}

/// Returns the name of a temporary object: in schema `pg_temp`.
pub(super) fn temporary(name: TableName) -> Result<TableName> {
    match &name.schema {
        Some(schema) if schema.value != TEMP => Err(ParseError::new(
            sqlstate::INVALID_TABLE_DEFINITION,
            "cannot create temporary relation in non-temporary schema",
            schema.position,
        )),
        Some(_) => Ok(name),
        None => {
            let schema = Ident { value: TEMP.to_owned(), position: name.name.position };
            Ok(TableName { schema: Some(schema), ..name })
        }
    }
}
