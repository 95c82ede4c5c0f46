//! Lowering of FROM: tables, joins and functions.

use sqlparser::ast as parsed;
use sqlparser::ast::{JoinOperator, TableFactor};
use sqlparser::tokenizer::{Token, TokenWithSpan};
use types::key_words;

use super::cursor::TokenCursor;
use super::error::{ParseError, Result};
use super::expr::PlacedExpr;
use super::limits;
use super::name;
use super::rewrite::{NO_ALIAS, SAMPLE, is_own};
use super::rewrite_from::{
    ALL_VERSIONS, BETWEEN, DEFINED, DYNAMIC, FAMILY_SEPARATOR, FROM_TO, ROWS_FROM,
};
use super::type_name::lower_type;
use crate::ast::{
    ColumnName, DynamicColumn, Expr, FromCall, FunctionCall, Ident, JoinQualifier, JoinType,
    SystemTime, SystemTimeForm, TableAlias, TableFunction, TableName, TableRef, TableSample,
    TypeName,
};

impl TokenCursor<'_> {
    /// Lowers one comma-separated entry.
    pub(super) fn joins(&mut self, table: parsed::TableWithJoins) -> Result<TableRef> {
        limits::with_stack(|| self.lower_joins(table))
    }

    fn lower_joins(&mut self, table: parsed::TableWithJoins) -> Result<TableRef> {
        let parsed::TableWithJoins { relation, joins } = table;
        let mut left = self.factor(relation)?;
        for parsed::Join { relation, global, join_operator } in joins {
            let right = self.factor(relation)?;
            if global {
                return Err(ParseError::unsupported("GLOBAL JOIN", None));
            }
            let (kind, constraint) = match join_operator {
                JoinOperator::Join(constraint) | JoinOperator::Inner(constraint) => {
                    (JoinType::Inner, constraint)
                }
                JoinOperator::Left(constraint) | JoinOperator::LeftOuter(constraint) => {
                    (JoinType::Left, constraint)
                }
                JoinOperator::Right(constraint) | JoinOperator::RightOuter(constraint) => {
                    (JoinType::Right, constraint)
                }
                JoinOperator::FullOuter(constraint) => (JoinType::Full, constraint),
                JoinOperator::CrossJoin(constraint) => (JoinType::Cross, constraint),
                _ => return Err(ParseError::unsupported("this kind of join", None)),
            };
            let condition = self.join_condition(constraint)?;
            if (kind == JoinType::Cross) != (condition == JoinQualifier::None) {
                return Err(self.join_without_condition(&right));
            }
            left = TableRef::Join { left: Box::new(left), right: Box::new(right), kind, condition };
        }
        Ok(left)
    }

    fn join_without_condition(&self, right: &TableRef) -> ParseError {
        if matches!(self.peek(), Token::Word(_)) {
            return self.unexpected();
        }
        let position = match right {
            TableRef::Table { name, .. } => Some(name.position()),
            TableRef::Subquery { query, .. } => Some(query.position),
            TableRef::Function(function) => {
                function.calls.first().map(|one| one.call.name.position())
            }
            TableRef::Renamed { alias, .. } => Some(alias.name.position),
            TableRef::Join { .. } => None,
        };
        ParseError::syntax("syntax error: a join requires ON or USING", position)
            .with_hint("Add ON or USING, or write CROSS JOIN.")
    }

    fn join_condition(&mut self, constraint: parsed::JoinConstraint) -> Result<JoinQualifier> {
        match constraint {
            parsed::JoinConstraint::On(expr) => Ok(JoinQualifier::On(self.lower(expr)?)),
            parsed::JoinConstraint::Natural => Ok(JoinQualifier::Natural),
            parsed::JoinConstraint::None => Ok(JoinQualifier::None),
            parsed::JoinConstraint::Using(names) => {
                let mut columns = Vec::with_capacity(names.len());
                for name in names {
                    let mut parts = self.object_name(&name)?;
                    match (parts.pop(), parts.first()) {
                        (Some(column), None) => columns.push(column),
                        (_, Some(first)) => return Err(self.syntax_error_near(first.position)),
                        (None, None) => return Err(self.unexpected()),
                    }
                }
                let first = columns.first().map_or(0, |column| column.position);
                let named = self.join_aliases.iter().find(|(at, _)| *at == first);
                let alias = named.map(|(_, token)| token.clone());
                let alias = alias.map(|token| self.alias_of(&token)).transpose()?;
                Ok(JoinQualifier::Using { columns, alias })
            }
        }
    }

    /// Returns the name of a token.
    fn alias_of(&self, token: &TokenWithSpan) -> Result<Ident> {
        let Token::Word(word) = &token.token else { return Err(self.syntax_error_at(token)) };
        let quoted = word.quote_style.is_some();
        let value = name::fold(&word.value, quoted);
        if !quoted && !key_words::is_column_name(&value) {
            return Err(self.syntax_error_at(token));
        }
        Ok(Ident { value, position: self.position_of(token) })
    }

    fn factor(&mut self, factor: TableFactor) -> Result<TableRef> {
        match factor {
            TableFactor::Table { .. } => self.plain_table(factor),
            TableFactor::Derived { lateral, subquery, alias, sample } => {
                let query = self.lower_query(*subquery)?;
                if sample.is_some() {
                    return Err(ParseError::unsupported("TABLESAMPLE", query.position));
                }
                let alias = self.alias(alias)?;
                Ok(TableRef::Subquery { query: Box::new(query), lateral, alias })
            }
            TableFactor::Function { lateral: _, name, args, with_ordinality, alias } => {
                self.table_function(name, args, with_ordinality, alias)
            }
            TableFactor::UNNEST {
                alias,
                array_exprs,
                with_offset: false,
                with_offset_alias: None,
                with_ordinality,
            } => self.unnest(array_exprs, with_ordinality, alias),
            TableFactor::NestedJoin { table_with_joins, alias } => {
                let join = self.joins(*table_with_joins)?;
                match alias {
                    None => Ok(join),
                    Some(alias) => match self.alias(Some(alias))? {
                        Some(alias) => Ok(TableRef::Renamed { join: Box::new(join), alias }),
                        None => Ok(join),
                    },
                }
            }
            other => Err(self.refuse_factor(&other)),
        }
    }

    /// Lowers a table, or a function with arguments.
    fn plain_table(&mut self, factor: TableFactor) -> Result<TableRef> {
        let TableFactor::Table {
            name,
            alias,
            args,
            with_hints,
            version,
            with_ordinality,
            partitions,
            json_path,
            sample,
            index_hints,
        } = factor
        else {
            return Err(self.refuse_factor(&factor));
        };
        let parts = self.parts(&name)?;
        let position = parts.first().map_or(1, |part| part.position);
        for (present, construct) in [
            (!with_hints.is_empty(), "WITH hints of a table"),
            (!partitions.is_empty(), "PARTITION of a table"),
            (json_path.is_some(), "a JSON path of a table"),
            (!index_hints.is_empty(), "an index hint of a table"),
        ] {
            if present {
                return Err(ParseError::unsupported(construct, position));
            }
        }
        let (args, dynamic_columns) = match args {
            Some(args) if is_dynamic(&args.args) => (None, self.dynamic_columns(args.args)?),
            args => (args, Vec::new()),
        };
        if let Some(parsed::TableFunctionArgs { args, settings }) = args {
            if sample.is_some() {
                let position = self.word_before(position, "tablesample");
                return Err(self.syntax_error_near(position));
            }
            if version.is_some() || settings.is_some() {
                return Err(ParseError::unsupported("this clause of a function in FROM", position));
            }
            return self.table_function(name, args, with_ordinality, alias);
        }
        if with_ordinality {
            return Err(self.syntax_error_near(position));
        }
        self.object_name(&name)?;
        let TableName { schema, name: table } = self.without_database(parts)?;
        let system_time = match version {
            None => None,
            Some(parsed::TableVersion::ForSystemTimeAsOf(expr)) => Some(self.system_time(expr)?),
            Some(_) => return Err(self.syntax_error_near(position)),
        };
        if schema.is_none() {
            self.table_names.push(table.value.clone());
        }
        let name = TableName { schema, name: table };
        let alias = self.alias(alias)?;
        let sample = sample.map(|kind| self.table_sample(kind, position)).transpose()?;
        let locking = Vec::new();
        Ok(TableRef::Table { name, dynamic_columns, alias, system_time, sample, locking })
    }

    /// Lowers dynamic columns in the form that [`rewrite_from`](super::rewrite_from) produces.
    fn dynamic_columns(&mut self, args: Vec<parsed::FunctionArg>) -> Result<Vec<DynamicColumn>> {
        let definitions = self.typed_arguments(args.into_iter().skip(1))?;
        let column = |(name, type_name): (Ident, TypeName)| {
            let part = |value: &str| Ident { value: value.to_owned(), position: name.position };
            let name = match name.value.split_once(FAMILY_SEPARATOR) {
                Some((family, column)) => {
                    ColumnName { family: Some(part(family)), name: part(column) }
                }
                None => ColumnName { family: None, name },
            };
            DynamicColumn { name, type_name }
        };
        Ok(definitions.into_iter().map(column).collect())
    }

    /// Lowers arguments of the form `name => NULL::type`.
    fn typed_arguments(
        &mut self,
        arguments: impl Iterator<Item = parsed::FunctionArg>,
    ) -> Result<Vec<(Ident, TypeName)>> {
        let mut definitions = Vec::new();
        for argument in arguments {
            let parsed::FunctionArg::Named {
                name,
                arg: parsed::FunctionArgExpr::Expr(parsed::Expr::Cast { data_type, .. }),
                ..
            } = argument
            else {
                return Err(self.unexpected());
            };
            let name = self.checked_alias(&name)?;
            let type_name = lower_type(&data_type, self.type_position(&data_type, name.position))?;
            definitions.push((name, type_name));
        }
        Ok(definitions)
    }

    /// Lowers `FOR SYSTEM_TIME`, whose other forms [`rewrite_from`](super::rewrite_from) has
    /// rewritten to AS OF.
    fn system_time(&mut self, expr: parsed::Expr) -> Result<SystemTime<Expr>> {
        let is_marker = |expr: &parsed::Expr, marker: &str| match expr {
            parsed::Expr::Identifier(name) => name.value == marker,
            _ => false,
        };
        if is_marker(&expr, ALL_VERSIONS) {
            return Ok(SystemTime { form: SystemTimeForm::All, times: Vec::new() });
        }
        let (rest, end) = match expr {
            parsed::Expr::BinaryOp { left, op: parsed::BinaryOperator::Or, right } => (left, right),
            time => return Ok(SystemTime::as_of(self.lower(time)?)),
        };
        let parsed::Expr::BinaryOp { left: marker, op: parsed::BinaryOperator::Or, right: begin } =
            *rest
        else {
            return Err(self.unexpected());
        };
        let form = match *marker {
            marker if is_marker(&marker, FROM_TO) => SystemTimeForm::FromTo,
            marker if is_marker(&marker, BETWEEN) => SystemTimeForm::Between,
            _ => return Err(self.unexpected()),
        };
        Ok(SystemTime { form, times: vec![self.lower(*begin)?, self.lower(*end)?] })
    }

    /// Lowers `TABLESAMPLE` in the form that [`rewrite`](super::rewrite) produces.
    fn table_sample(
        &mut self,
        kind: parsed::TableSampleKind,
        position: usize,
    ) -> Result<Box<TableSample>> {
        let (parsed::TableSampleKind::BeforeTableAlias(sample)
        | parsed::TableSampleKind::AfterTableAlias(sample)) = kind;
        let Some(parsed::TableSampleQuantity { value: parsed::Expr::Function(function), .. }) =
            sample.quantity
        else {
            return Err(self.syntax_error_near(position));
        };
        if !is_own(&function.name, SAMPLE) {
            return Err(self.syntax_error_near(position));
        }
        let parsed::FunctionArguments::List(list) = function.args else {
            return Err(self.unexpected());
        };
        let mut parts = Vec::new();
        for part in list.args {
            let parsed::FunctionArg::Unnamed(parsed::FunctionArgExpr::Expr(part)) = part else {
                return Err(self.unexpected());
            };
            parts.push(self.lower_placed(part)?);
        }
        let mut parts = parts.into_iter();
        let (Some(method), seed) = (parts.next(), parts.next()) else {
            return Err(self.unexpected());
        };
        let seed = seed.map(|seed| seed.expr);
        Ok(Box::new(TableSample { method: from_call(method)?, seed }))
    }

    fn table_function(
        &mut self,
        name: parsed::ObjectName,
        args: Vec<parsed::FunctionArg>,
        ordinality: bool,
        alias: Option<parsed::TableAlias>,
    ) -> Result<TableRef> {
        if is_own(&name, ROWS_FROM) {
            return self.rows_from(args, ordinality, alias);
        }
        let list =
            parsed::FunctionArgumentList { duplicate_treatment: None, args, clauses: Vec::new() };
        let function = parsed::Function {
            name,
            uses_odbc_syntax: false,
            parameters: parsed::FunctionArguments::None,
            args: parsed::FunctionArguments::List(list),
            within_group: Vec::new(),
            filter: None,
            null_treatment: None,
            over: None,
        };
        let placed = self.function(function)?;
        let call = from_call(placed)?;
        let mut alias = alias;
        let definitions = self.definitions(&mut alias)?;
        if let Some((first, _)) = definitions.first().filter(|_| ordinality) {
            let message = "WITH ORDINALITY cannot be used with a column definition list";
            return Err(ParseError::syntax(message, first.position)
                .with_hint("Put the column definition list inside ROWS FROM()."));
        }
        let mut alias = self.alias(alias)?;
        if let Some(alias) = alias.as_mut().filter(|alias| alias.name.value == NO_ALIAS) {
            alias.name.value.clone_from(&call.name.name.value);
        }
        let calls = vec![FromCall { call, definitions }];
        let function = TableFunction { calls, ordinality, alias };
        Ok(TableRef::Function(Box::new(function)))
    }

    /// Lowers `ROWS FROM (…)`: the functions are the arguments.
    fn rows_from(
        &mut self,
        functions: Vec<parsed::FunctionArg>,
        ordinality: bool,
        alias: Option<parsed::TableAlias>,
    ) -> Result<TableRef> {
        let mut calls = Vec::with_capacity(functions.len());
        for function in functions {
            let parsed::FunctionArg::Unnamed(parsed::FunctionArgExpr::Expr(function)) = function
            else {
                return Err(self.unexpected());
            };
            calls.push(self.call_in_from(function)?);
        }
        if calls.is_empty() {
            return Err(self.unexpected());
        }
        let mut alias = alias;
        let definitions = self.definitions(&mut alias)?;
        match (definitions.first(), calls.as_mut_slice()) {
            (None, _) => {}
            (Some(_), [only]) if only.definitions.is_empty() && !ordinality => {
                only.definitions = definitions;
            }
            (Some((first, _)), [_]) => {
                let message = "WITH ORDINALITY cannot be used with a column definition list";
                return Err(ParseError::syntax(message, first.position)
                    .with_hint("Put the column definition list inside ROWS FROM()."));
            }
            (Some((first, _)), _) => {
                let message =
                    "ROWS FROM() with multiple functions cannot have a column definition list";
                let hint = "Put a separate column definition list for each function inside \
                            ROWS FROM().";
                return Err(ParseError::syntax(message, first.position).with_hint(hint));
            }
        }
        let alias = self.alias(alias)?;
        let function = TableFunction { calls, ordinality, alias };
        Ok(TableRef::Function(Box::new(function)))
    }

    /// Lowers a call in `ROWS FROM (…)`, with its column definition list.
    fn call_in_from(&mut self, call: parsed::Expr) -> Result<FromCall> {
        let mut function = match call {
            parsed::Expr::Function(function) if is_own(&function.name, DEFINED) => function,
            call => {
                let call = from_call(self.lower_placed(call)?)?;
                return Ok(FromCall { call, definitions: Vec::new() });
            }
        };
        let parsed::FunctionArguments::List(list) = &mut function.args else {
            return Err(self.unexpected());
        };
        let mut arguments = std::mem::take(&mut list.args).into_iter();
        let Some(parsed::FunctionArg::Unnamed(parsed::FunctionArgExpr::Expr(call))) =
            arguments.next()
        else {
            return Err(self.unexpected());
        };
        let call = from_call(self.lower_placed(call)?)?;
        let definitions = self.typed_arguments(arguments)?;
        Ok(FromCall { call, definitions })
    }

    /// Lowers `unnest(…)`, for which `sqlparser` has a node of its own.
    fn unnest(
        &mut self,
        arrays: Vec<parsed::Expr>,
        ordinality: bool,
        alias: Option<parsed::TableAlias>,
    ) -> Result<TableRef> {
        let mut arguments = Vec::with_capacity(arrays.len());
        let mut first = None;
        for array in arrays {
            let array = self.lower_placed(array)?;
            first.get_or_insert(array.start);
            arguments.push(array.expr);
        }
        let position = self.word_before(first.unwrap_or(1), "unnest");
        let Expr::Call(call) = self.call_of("unnest", position, arguments) else {
            return Err(self.unexpected());
        };
        let alias = self.alias(alias)?;
        let calls = vec![FromCall { call: *call, definitions: Vec::new() }];
        let function = TableFunction { calls, ordinality, alias };
        Ok(TableRef::Function(Box::new(function)))
    }

    fn alias(&mut self, alias: Option<parsed::TableAlias>) -> Result<Option<TableAlias>> {
        let Some(parsed::TableAlias { explicit: _, name, columns, at }) = alias else {
            return Ok(None);
        };
        let name = self.checked_alias(&name)?;
        if at.is_some() {
            return Err(ParseError::unsupported("AT after an alias", name.position));
        }
        let mut lowered = Vec::with_capacity(columns.len());
        for parsed::TableAliasColumnDef { name, data_type } in columns {
            let column = self.checked_alias(&name)?;
            if data_type.is_some() {
                let message = "a column definition list is only allowed for functions returning \
                               \"record\"";
                return Err(ParseError::syntax(message, column.position));
            }
            lowered.push(column);
        }
        Ok(Some(TableAlias { name, columns: lowered }))
    }

    /// Removes a column definition list from the alias of a function, and returns it.
    fn definitions(
        &mut self,
        alias: &mut Option<parsed::TableAlias>,
    ) -> Result<Vec<(Ident, TypeName)>> {
        let Some(alias) = alias.as_mut() else { return Ok(Vec::new()) };
        if !alias.columns.iter().any(|column| column.data_type.is_some()) {
            return Ok(Vec::new());
        }
        let mut definitions = Vec::with_capacity(alias.columns.len());
        for column in std::mem::take(&mut alias.columns) {
            let name = self.checked_alias(&column.name)?;
            let Some(data_type) = column.data_type else {
                return Err(self.syntax_error_near(name.position));
            };
            let type_name = lower_type(&data_type, self.type_position(&data_type, name.position))?;
            definitions.push((name, type_name));
        }
        Ok(definitions)
    }
}

/// Returns whether the arguments of a table are dynamic columns.
fn is_dynamic(args: &[parsed::FunctionArg]) -> bool {
    matches!(args.first(), Some(parsed::FunctionArg::Unnamed(parsed::FunctionArgExpr::Expr(
        parsed::Expr::Identifier(marker)))) if marker.value == DYNAMIC)
}

/// Returns a function in FROM as a call.
fn from_call(placed: PlacedExpr) -> Result<FunctionCall> {
    match placed.expr {
        Expr::Call(call) if call.star => {
            Err(ParseError::syntax("a function in FROM takes no *", placed.start))
        }
        Expr::Call(call) => Ok(*call),
        _ => Err(ParseError::unsupported("this function in FROM", placed.start)),
    }
}
