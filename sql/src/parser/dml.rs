//! Parsing of INSERT, UPSERT, UPDATE and DELETE.

use sqlparser::parser::Parser;
use sqlparser::tokenizer::Token;

use super::cursor::TokenCursor;
use super::error::{ParseError, Result, sqlstate};
use super::query::hints;
use crate::ast::{
    AssignedValue, AssignmentClause, CellAttributes, ColumnName, ConflictAction,
    ConflictTargetClause, DeleteLimit, DeleteStatement, DynamicColumn, Expr, Hint, Ident,
    InsertSource, InsertStatement, OnConflictClause, OnDuplicate, Overriding, QueryBody, QueryExpr,
    SelectItem, Selection, Statement, Subscript, TableName, TableRef, TargetColumn, TargetStep,
    UpdateStatement, Upsert,
};

impl TokenCursor<'_> {
    /// Reads the hints directly after the current word.
    fn statement_hints(&mut self) -> Vec<Hint> {
        self.comments()
            .iter()
            .filter_map(|comment| comment.strip_prefix('+'))
            .flat_map(hints)
            .collect()
    }

    pub(super) fn insert(&mut self) -> Result<Statement> {
        self.expect_words(&["insert"])?;
        self.take_word("into");
        let table = self.table_name()?;
        let alias = if self.take_word("as") { Some(self.name()?) } else { None };
        let columns = self.target_columns(&mut |column| {
            Err(ParseError::unsupported("a dynamic column in INSERT", column.name.name.position)
                .with_hint("Use UPSERT."))
        })?;
        let overriding = if self.take_words(&["overriding", "system", "value"]) {
            Some(Overriding::System)
        } else if self.take_words(&["overriding", "user", "value"]) {
            Some(Overriding::User)
        } else {
            None
        };
        let source = self.insert_source()?;
        let on_conflict =
            if self.is_words(&["on", "conflict"]) { Some(self.on_conflict()?) } else { None };
        let returning = self.returning()?;
        let with = None;
        let insert = InsertStatement {
            with,
            table,
            alias,
            columns,
            overriding,
            source,
            on_conflict,
            returning,
        };
        Ok(Statement::Insert(Box::new(insert)))
    }

    pub(super) fn upsert(&mut self) -> Result<Statement> {
        self.expect_words(&["upsert"])?;
        let hints = self.statement_hints();
        self.expect_words(&["into"])?;
        let table = self.table_name()?;
        let mut dynamic_columns = Vec::new();
        let columns = self.target_columns(&mut |column| {
            dynamic_columns.push(column);
            Ok(())
        })?;
        let source = self.insert_source()?;
        let on_duplicate = if self.take_words(&["on", "duplicate", "key"]) {
            Some(self.on_duplicate()?)
        } else {
            None
        };
        let attributes = self.cell_attributes(&["timestamp", "ttl"])?;
        let returning = self.returning()?;
        let upsert = Upsert {
            table,
            columns,
            dynamic_columns,
            source,
            on_duplicate,
            attributes,
            returning,
            hints,
        };
        Ok(Statement::Upsert(Box::new(upsert)))
    }

    /// Reads `(a, f.b)`; empty if there is no list, or if the parenthesis starts a query. `declare`
    /// receives the dynamic columns, which have a type.
    fn target_columns(
        &mut self,
        declare: &mut dyn FnMut(DynamicColumn) -> Result<()>,
    ) -> Result<Vec<TargetColumn>> {
        let starts_query = (1..super::limits::NESTING_DEPTH)
            .map(|n| &self.parser.peek_nth_token_ref(n).token)
            .find(|token| **token != Token::LParen)
            .is_some_and(|token| match token {
                Token::Word(word) => {
                    word.quote_style.is_none()
                        && ["select", "values", "with", "table"]
                            .iter()
                            .any(|query| word.value.eq_ignore_ascii_case(query))
                }
                _ => false,
            });
        if self.peek() != &Token::LParen || starts_query {
            return Ok(Vec::new());
        }
        self.parenthesized(|cursor| {
            let target = cursor.target_column()?;
            if target.path.is_empty() && matches!(cursor.peek(), Token::Word(_)) {
                let name = target.column.clone();
                declare(DynamicColumn { name, type_name: cursor.type_name()? })?;
            }
            Ok(target)
        })
    }

    /// Reads `a`, `f.b`, `a[1][2:3]` or `a.b[1].c`.
    pub(super) fn target_column(&mut self) -> Result<TargetColumn> {
        let first = self.name()?;
        let column = match self.take(&Token::Period) {
            true => ColumnName { family: Some(first), name: self.label()? },
            false => ColumnName { family: None, name: first },
        };
        let mut path = Vec::new();
        loop {
            if self.take(&Token::Period) {
                path.push(TargetStep::Field(self.label()?));
                continue;
            }
            let mut subscripts = Vec::new();
            while self.take(&Token::LBracket) {
                subscripts.push(self.target_subscript()?);
                self.expect(&Token::RBracket)?;
            }
            if subscripts.is_empty() {
                return Ok(TargetColumn { column, path });
            }
            path.push(TargetStep::Subscripts(subscripts));
        }
    }

    fn target_subscript(&mut self) -> Result<Subscript> {
        let lower = match self.peek() {
            Token::Colon => None,
            _ => Some(self.expr()?),
        };
        if !self.take(&Token::Colon) {
            return lower.map(Subscript::Index).ok_or_else(|| self.unexpected());
        }
        let upper = match self.peek() {
            Token::RBracket => None,
            _ => Some(self.expr()?),
        };
        Ok(Subscript::Slice { lower, upper })
    }

    fn insert_source(&mut self) -> Result<InsertSource> {
        if self.take_words(&["default", "values"]) {
            return Ok(InsertSource::DefaultValues);
        }
        if !self.is_word("values") {
            return Ok(InsertSource::Query(Box::new(self.query()?)));
        }
        let start = self.position();
        self.advance();
        let rows = self.value_rows()?;
        if self.at_end() || ["on", "with", "returning"].iter().any(|word| self.is_word(word)) {
            return Ok(InsertSource::Values(rows));
        }
        // VALUES is followed by more: it is the first operand of a larger query.
        while self.position() > start {
            self.parser.prev_token();
        }
        Ok(InsertSource::Query(Box::new(self.query()?)))
    }

    fn value_rows(&mut self) -> Result<Vec<Vec<AssignedValue>>> {
        let mut width = None;
        self.list(|cursor| {
            let row = cursor.parenthesized(Self::assigned_value)?;
            // The number of values of `(row).*` is not known yet.
            if row.iter().any(|one| matches!(one, AssignedValue::Expr(one) if one.is_expanded())) {
                width = Some(0);
            }
            if ![row.len(), 0].contains(width.get_or_insert(row.len())) {
                let position = row.first().map(AssignedValue::position);
                let message = "VALUES lists must all be the same length";
                return Err(ParseError::syntax(message, position));
            }
            Ok(row)
        })
    }

    pub(super) fn assigned_value(&mut self) -> Result<AssignedValue> {
        let position = self.position();
        if self.take_word("default") {
            return Ok(AssignedValue::Default { position });
        }
        Ok(AssignedValue::Expr(self.expr()?))
    }

    fn on_conflict(&mut self) -> Result<OnConflictClause> {
        let position = self.position();
        self.expect_words(&["on", "conflict"])?;
        let target = if self.take_words(&["on", "constraint"]) {
            Some(ConflictTargetClause::Constraint(self.name()?))
        } else if self.peek() == &Token::LParen {
            let keys = self.parenthesized(Self::conflict_key)?;
            let predicate = if self.take_word("where") { Some(self.expr()?) } else { None };
            Some(ConflictTargetClause::Keys { keys, predicate })
        } else {
            None
        };
        self.expect_words(&["do"])?;
        let action = if self.take_word("nothing") {
            ConflictAction::Nothing
        } else {
            self.expect_words(&["update", "set"])?;
            let assignments = self.assignments()?;
            ConflictAction::Update { assignments, selection: self.selection()? }
        };
        if target.is_none() && action != ConflictAction::Nothing {
            let message =
                "ON CONFLICT DO UPDATE requires inference specification or constraint name";
            return Err(ParseError::syntax(message, position)
                .with_hint("For example, ON CONFLICT (column_name)."));
        }
        Ok(OnConflictClause { target, action, position })
    }

    fn conflict_key(&mut self) -> Result<Expr> {
        let key = self.expr()?;
        match self.peek() {
            Token::Comma | Token::RParen => Ok(key),
            _ => Err(self.unexpected()),
        }
    }

    fn on_duplicate(&mut self) -> Result<OnDuplicate> {
        if self.take_word("ignore") {
            return Ok(OnDuplicate::Ignore);
        }
        if self.take_word("update_only") {
            return Ok(OnDuplicate::UpdateOnly(self.assignments()?));
        }
        self.expect_words(&["update"])?;
        Ok(OnDuplicate::Update(self.assignments()?))
    }

    pub(super) fn update(&mut self) -> Result<Statement> {
        self.expect_words(&["update"])?;
        let hints = self.statement_hints();
        let table = self.table_name()?;
        let alias = self.target_alias("set")?;
        self.expect_words(&["set"])?;
        // Phoenix: UPDATE STATISTICS t SET "phoenix.stats.guidepost.width" = n.
        let is_property =
            matches!(self.peek(), Token::Word(word) if word.value.starts_with("phoenix."));
        if is_property && table.schema.is_none() && table.name.value == "statistics" {
            return Err(self.unexpected());
        }
        let assignments = self.assignments()?;
        let from = self.table_refs("from")?;
        let selection = self.changed_selection()?;
        let returning = self.returning()?;
        let with = None;
        let update =
            UpdateStatement { with, table, alias, assignments, from, selection, returning, hints };
        Ok(Statement::Update(Box::new(update)))
    }

    pub(super) fn delete(&mut self) -> Result<Statement> {
        let start = self.position();
        self.expect_words(&["delete"])?;
        if self.is_word("jar") {
            return Err(ParseError::unsupported("DELETE JAR", start));
        }
        let hints = self.statement_hints();
        self.expect_words(&["from"])?;
        let (table, dynamic_columns, alias) = self.delete_target()?;
        let using = self.table_refs("using")?;
        let selection = self.changed_selection()?;
        let limit = self.delete_limit(dynamic_columns)?;
        let attributes = self.cell_attributes(&["timestamp", "version"])?;
        let returning = self.returning()?;
        let with = None;
        let delete = DeleteStatement {
            with,
            table,
            alias,
            using,
            selection,
            limit,
            attributes,
            returning,
            hints,
        };
        Ok(Statement::Delete(Box::new(delete)))
    }

    /// Reads Phoenix's `[ORDER BY …] LIMIT n`.
    fn delete_limit(
        &mut self,
        dynamic_columns: Vec<DynamicColumn>,
    ) -> Result<Option<Box<DeleteLimit>>> {
        let position = self.position();
        let mut order_by = Vec::new();
        if self.take_words(&["order", "by"]) {
            let list = self.parser.parse_comma_separated(Parser::parse_order_by_expr);
            order_by = self.order_items(list.map_err(|error| self.translate(error))?)?;
            if !self.is_word("limit") {
                return Err(self.unexpected());
            }
        }
        let limit = if self.take_word("limit") { Some(self.expr()?) } else { None };
        if limit.is_none() && dynamic_columns.is_empty() {
            return Ok(None);
        }
        Ok(Some(Box::new(DeleteLimit { dynamic_columns, order_by, limit, position })))
    }

    /// Reads `t [(c type, …)] [[AS] alias]`.
    fn delete_target(&mut self) -> Result<(TableName, Vec<DynamicColumn>, Option<Ident>)> {
        let start = self.position();
        let table = self.table_name()?;
        if self.peek() != &Token::LParen {
            return Ok((table, Vec::new(), self.target_alias("where")?));
        }
        // Dynamic columns are those of a table in FROM.
        while self.position() > start {
            self.parser.prev_token();
        }
        match self.table_ref()? {
            TableRef::Table { name, dynamic_columns, alias, .. } if !dynamic_columns.is_empty() => {
                Ok((name, dynamic_columns, alias.map(|alias| alias.name)))
            }
            _ => Err(self.syntax_error_near(start)),
        }
    }

    /// Reads `[AS] alias` before the word `next`.
    pub(super) fn target_alias(&mut self, next: &str) -> Result<Option<Ident>> {
        if self.take_word("as") {
            return self.name().map(Some);
        }
        let is_alias = matches!(self.peek(), Token::Word(_))
            && ![next, "set", "where", "returning", "using", "order", "limit", "from", "with"]
                .iter()
                .any(|word| self.is_word(word));
        if is_alias { self.name().map(Some) } else { Ok(None) }
    }

    /// Reads the tables after a word, if the word follows.
    fn table_refs(&mut self, word: &str) -> Result<Vec<TableRef>> {
        if !self.take_word(word) {
            return Ok(Vec::new());
        }
        self.list(Self::table_ref)
    }

    /// Reads a table with its joins.
    pub(super) fn table_ref(&mut self) -> Result<TableRef> {
        let table = self.parser.parse_table_and_joins().map_err(|error| self.translate(error))?;
        self.joins(table)
    }

    fn selection(&mut self) -> Result<Option<Expr>> {
        if self.take_word("where") { self.expr().map(Some) } else { Ok(None) }
    }

    /// Reads `WHERE …` or `WHERE CURRENT OF cursor`.
    fn changed_selection(&mut self) -> Result<Option<Selection>> {
        if self.take_words(&["where", "current", "of"]) {
            return self.name().map(Selection::CurrentOf).map(Some);
        }
        Ok(self.selection()?.map(Selection::Where))
    }

    /// Reads `WITH TIMESTAMP …, TTL …`, of which each word may occur once.
    fn cell_attributes(&mut self, words: &[&str]) -> Result<CellAttributes> {
        let mut attributes = CellAttributes::default();
        if !self.take_word("with") {
            return Ok(attributes);
        }
        self.list(|cursor| {
            let Some(word) = words.iter().find(|word| cursor.is_word(word)) else {
                return Err(cursor.unexpected());
            };
            let attribute = match *word {
                "timestamp" => &mut attributes.timestamp,
                "version" => &mut attributes.version,
                _ => &mut attributes.ttl,
            };
            if attribute.is_some() {
                return Err(cursor.unexpected());
            }
            cursor.advance();
            *attribute = Some(cursor.expr()?);
            Ok(())
        })?;
        match (&attributes.timestamp, &attributes.version) {
            (Some(_), Some(version)) => {
                let message = "TIMESTAMP and VERSION exclude each other";
                Err(ParseError::syntax(message, Some(version.position())))
            }
            _ => Ok(attributes),
        }
    }

    fn returning(&mut self) -> Result<Vec<SelectItem>> {
        if self.take_word("returning") { self.select_items() } else { Ok(Vec::new()) }
    }

    pub(super) fn assignments(&mut self) -> Result<Vec<AssignmentClause>> {
        let lists = self.list(Self::assignment)?;
        Ok(lists.into_iter().flatten().collect())
    }

    fn assignment(&mut self) -> Result<Vec<AssignmentClause>> {
        if self.peek() == &Token::LParen {
            return self.row_assignment();
        }
        let column = self.target_column()?;
        self.expect(&Token::Eq)?;
        let value = self.assigned_value()?;
        Ok(vec![AssignmentClause::Column { column, value: Box::new(value) }])
    }

    /// Converts `(a, b) = ROW (t.*)` to `= (VALUES (t.*))`.
    fn expanded_row(
        &self,
        columns: Vec<TargetColumn>,
        values: Vec<AssignedValue>,
        position: usize,
    ) -> Result<Vec<AssignmentClause>> {
        let mut row = Vec::with_capacity(values.len());
        for value in values {
            match value {
                AssignedValue::Expr(value) => row.push(value),
                AssignedValue::Default { position } => {
                    let message = "DEFAULT is not allowed in this context";
                    return Err(ParseError::syntax(message, position));
                }
            }
        }
        let query = Box::new(QueryExpr::bare(QueryBody::Values(vec![row]), position));
        Ok(vec![AssignmentClause::Subquery { columns, query }])
    }

    /// Reads `(a, b) = (x, y)`, `= ROW (x, y)` or `= (SELECT …)`.
    fn row_assignment(&mut self) -> Result<Vec<AssignmentClause>> {
        let columns = self.parenthesized(Self::target_column)?;
        self.expect(&Token::Eq)?;
        let is_query = match &self.parser.peek_nth_token_ref(1).token {
            Token::Word(word) => {
                word.quote_style.is_none()
                    && ["select", "values", "with"]
                        .iter()
                        .any(|query| word.value.eq_ignore_ascii_case(query))
            }
            _ => false,
        };
        if self.peek() == &Token::LParen && is_query {
            self.advance();
            let query = Box::new(self.query()?);
            self.expect(&Token::RParen)?;
            return Ok(vec![AssignmentClause::Subquery { columns, query }]);
        }
        let position = self.position();
        let is_row = self.take_word("row");
        let values = self.parenthesized(Self::assigned_value)?;
        let is_whole =
            |value: &AssignedValue| matches!(value, AssignedValue::Expr(one) if one.is_expanded());
        if is_row && values.iter().any(is_whole) {
            // The number of values is not known yet.
            return self.expanded_row(columns, values, position);
        }
        if let (false, [AssignedValue::Expr(only)]) = (is_row, values.as_slice()) {
            let message = "source for a multiple-column UPDATE item must be a sub-SELECT or ROW() \
                           expression";
            let code = sqlstate::FEATURE_NOT_SUPPORTED;
            return Err(ParseError::new(code, message, only.position()));
        }
        if values.len() != columns.len() {
            let message = "number of columns does not match number of values";
            return Err(ParseError::syntax(message, position));
        }
        let pairs = columns.into_iter().zip(values);
        let assign = |(column, value)| AssignmentClause::Column { column, value: Box::new(value) };
        Ok(pairs.map(assign).collect())
    }
}
