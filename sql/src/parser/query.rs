//! Parsing and lowering of queries.

use sqlparser::ast as parsed;
use sqlparser::ast::{SetExpr, TableFactor};
use sqlparser::tokenizer::Token;
use types::key_words;

use super::cursor::TokenCursor;
use super::error::{ParseError, Result};
use super::limits;
use super::name;
use super::rewrite::{ALL_FIELDS, EMPTY_LIST, KEY, NO_KEY, WITH_TIES, is_own};
use crate::ast::{
    BinaryOperator, Distinct, Expr, Hint, Ident, LockStrength, LockWait, Locking, NullsOrder,
    OrderItem, QueryBody, QueryExpr, Select, SelectItem, SetOperator, SortOrder, TableAlias,
    TableRef, WithClause,
};

impl TokenCursor<'_> {
    /// Reads a query.
    pub(super) fn query(&mut self) -> Result<QueryExpr> {
        if self.is_word("with") {
            let (with, query) = self.with(Self::query_body)?;
            return with_query(with, query);
        }
        self.query_body()
    }

    /// Reads a query that does not begin with WITH.
    pub(super) fn query_body(&mut self) -> Result<QueryExpr> {
        if self.is_word("with") {
            return Err(self.unexpected());
        }
        let parsed = self.parser.parse_query().map_err(|error| self.translate(error))?;
        self.lower_query(*parsed)
    }

    pub(super) fn lower_query(&mut self, query: parsed::Query) -> Result<QueryExpr> {
        limits::with_stack(|| self.lower_clauses(query))
    }

    fn lower_clauses(&mut self, mut query: parsed::Query) -> Result<QueryExpr> {
        if let Some(with) = query.with.take() {
            let (with, query) = self.lower_with(with, |cursor| cursor.lower_clauses(query))?;
            return with_query(with, query);
        }
        let parsed::Query {
            with: _,
            body,
            order_by,
            limit_clause,
            fetch,
            locks,
            for_clause,
            settings,
            format_clause,
            pipe_operators,
        } = query;
        let bare = order_by.is_none() && limit_clause.is_none() && fetch.is_none();
        let body = match *body {
            SetExpr::Query(inner) if bare && locks.is_empty() => return self.lower_query(*inner),
            other => other,
        };
        let (mut body, position) = self.body(body)?;
        if for_clause.is_some()
            || settings.is_some()
            || format_clause.is_some()
            || !pipe_operators.is_empty()
        {
            return Err(ParseError::unsupported("this clause of a query", position));
        }
        let order_by = order_by.map(|order| self.order_by(order, position)).transpose()?;
        let (limit, with_ties, mut offset) = self.limits(limit_clause, fetch, position)?;
        skip_to_row(&mut body, &mut offset);
        let locking =
            locks.into_iter().map(|lock| self.locking(lock, position)).collect::<Result<_>>()?;
        let query = QueryExpr {
            with: None,
            body,
            order_by: order_by.unwrap_or_default(),
            limit,
            with_ties,
            offset,
            locking,
            position,
        };
        if query.with_ties {
            check_ties(&query)?;
        }
        Ok(query)
    }

    /// Lowers LIMIT, OFFSET and FETCH: the row count, whether WITH TIES, and the offset.
    fn limits(
        &mut self,
        limit_clause: Option<parsed::LimitClause>,
        fetch: Option<parsed::Fetch>,
        position: usize,
    ) -> Result<(Option<Expr>, bool, Option<Expr>)> {
        let (mut limit, offset) = match limit_clause {
            None => (None, None),
            Some(parsed::LimitClause::LimitOffset { limit, offset, limit_by }) => {
                if !limit_by.is_empty() {
                    return Err(ParseError::unsupported("LIMIT BY", position));
                }
                (limit, offset.map(|offset| offset.value))
            }
            Some(parsed::LimitClause::OffsetCommaLimit { .. }) => {
                return Err(ParseError::syntax("LIMIT #,# syntax is not supported", position)
                    .with_hint("Use separate LIMIT and OFFSET clauses."));
            }
        };
        let mut with_ties = false;
        if let Some(parsed::Fetch { with_ties: ties, percent, quantity }) = fetch {
            if percent {
                return Err(ParseError::unsupported("FETCH … PERCENT", position));
            }
            with_ties = ties;
            if limit.is_some() {
                return Err(ParseError::syntax("multiple LIMIT clauses not allowed", position));
            }
            limit = Some(quantity.unwrap_or_else(|| {
                parsed::Expr::Value(parsed::Value::Number("1".to_owned(), false).with_empty_span())
            }));
        }
        if let Some(parsed::Expr::Function(call)) = &mut limit
            && is_own(&call.name, WITH_TIES)
        {
            with_ties = true;
            let parsed::FunctionArguments::List(list) = &mut call.args else {
                return Err(self.unexpected());
            };
            limit = match list.args.pop() {
                Some(parsed::FunctionArg::Unnamed(parsed::FunctionArgExpr::Expr(count))) => {
                    Some(count)
                }
                _ => return Err(self.unexpected()),
            };
        }
        let limit = limit.map(|limit| self.lower(limit)).transpose()?;
        let offset = offset.map(|offset| self.lower(offset)).transpose()?;
        Ok((limit, with_ties, offset))
    }

    fn body(&mut self, body: SetExpr) -> Result<(QueryBody, usize)> {
        match body {
            SetExpr::Select(select) => {
                let select = self.select(*select)?;
                let position = select.position;
                Ok((QueryBody::Select(Box::new(select)), position))
            }
            SetExpr::Values(values) => self.values(values),
            SetExpr::Query(query) => {
                let query = self.lower_query(*query)?;
                let position = query.position;
                let body = match query.is_bare() {
                    true => query.body,
                    false => QueryBody::Select(Box::new(wrap(query))),
                };
                Ok((body, position))
            }
            SetExpr::SetOperation { left, op, set_quantifier, right } => {
                self.set_operation(*left, op, set_quantifier, *right)
            }
            SetExpr::Table(_) => Err(self.unexpected()),
            SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_) | SetExpr::Merge(_) => {
                let message =
                    "WITH clause containing a data-modifying statement must be at the top level";
                Err(ParseError { sqlstate: "0A000", ..ParseError::syntax(message, None) })
            }
        }
    }

    /// Lowers a left-deep chain of set operators, in a loop.
    fn set_operation(
        &mut self,
        left: SetExpr,
        op: parsed::SetOperator,
        quantifier: parsed::SetQuantifier,
        right: SetExpr,
    ) -> Result<(QueryBody, usize)> {
        let mut spine = vec![(op, quantifier, right)];
        let mut leaf = left;
        while let SetExpr::SetOperation { left, op, set_quantifier, right } = leaf {
            spine.push((op, set_quantifier, *right));
            leaf = *left;
        }
        let mut left = self.operand(leaf)?;
        let position = left.position;
        for (op, quantifier, right) in spine.into_iter().rev() {
            let right = self.operand(right)?;
            let operator = match op {
                parsed::SetOperator::Union => SetOperator::Union,
                parsed::SetOperator::Except => SetOperator::Except,
                parsed::SetOperator::Intersect => SetOperator::Intersect,
                parsed::SetOperator::Minus => {
                    return Err(self.syntax_error_near(self.word_before(right.position, "minus")));
                }
            };
            let all = match quantifier {
                parsed::SetQuantifier::All => true,
                parsed::SetQuantifier::Distinct | parsed::SetQuantifier::None => false,
                parsed::SetQuantifier::ByName
                | parsed::SetQuantifier::AllByName
                | parsed::SetQuantifier::DistinctByName => {
                    return Err(ParseError::unsupported("BY NAME", right.position));
                }
            };
            let body = QueryBody::SetOperation {
                operator,
                all,
                left: Box::new(left),
                right: Box::new(right),
            };
            left = QueryExpr::bare(body, position);
        }
        Ok((left.body, position))
    }

    fn operand(&mut self, body: SetExpr) -> Result<QueryExpr> {
        if let SetExpr::Query(query) = body {
            return self.lower_query(*query);
        }
        let (body, position) = self.body(body)?;
        Ok(QueryExpr::bare(body, position))
    }

    fn values(&mut self, values: parsed::Values) -> Result<(QueryBody, usize)> {
        let parsed::Values { explicit_row, value_keyword, rows } = values;
        let first = rows.first().map_or(1, |row| self.position_of(&row.opening_token.0));
        let position = self.word_before(first, "values");
        if explicit_row || value_keyword {
            return Err(self.syntax_error_near(position));
        }
        let mut lowered = Vec::with_capacity(rows.len());
        for row in rows {
            lowered.push(self.lower_list(row.content)?);
            // The expansion of `t.*` is not known yet.
            let has_row = |row: &Vec<Expr>| row.iter().any(Expr::is_expanded);
            let (first, last) = (&lowered[0], &lowered[lowered.len() - 1]);
            if first.len() != last.len() && !has_row(first) && !has_row(last) {
                return Err(ParseError::syntax(
                    "VALUES lists must all be the same length",
                    last.first().map_or(position, Expr::position),
                ));
            }
        }
        Ok((QueryBody::Values(lowered), position))
    }

    fn select(&mut self, select: parsed::Select) -> Result<Select> {
        let position = self.position_of(&select.select_token.0);
        self.refuse_foreign_clauses(&select, position)?;
        if let Some(into) = &select.into {
            self.take_into(into, position)?;
        }
        let distinct = match select.distinct {
            None | Some(parsed::Distinct::All) => None,
            Some(parsed::Distinct::Distinct) if select.projection.is_empty() => {
                let index = self.token_index(position).and_then(|at| self.token_after(at));
                let behind = index.and_then(|at| self.token_after(at));
                let behind = behind.map(|at| self.syntax_error_at(self.parser.token_at(at)));
                return Err(behind.unwrap_or_else(|| self.unexpected()));
            }
            Some(parsed::Distinct::Distinct) => Some(Distinct::All),
            Some(parsed::Distinct::On(list)) if list.is_empty() => {
                return Err(self.syntax_error_near(position));
            }
            Some(parsed::Distinct::On(list)) => Some(Distinct::On(self.lower_list(list)?)),
        };
        let hints = select
            .optimizer_hints
            .iter()
            .filter(|hint| {
                hint.prefix.is_empty() && hint.style == parsed::OptimizerHintStyle::MultiLine
            })
            .flat_map(|hint| hints(&hint.text))
            .collect();
        let items = select
            .projection
            .into_iter()
            .filter(|item| !is_nothing(item))
            .map(|item| self.lower_item(item))
            .collect::<Result<_>>()?;
        let from = select.from.into_iter().map(|table| self.joins(table)).collect::<Result<_>>()?;
        let selection = select.selection.map(|expr| self.lower(expr)).transpose()?;
        let (group_by, distinct_groups) = self.group_by(select.group_by, position)?;
        let having = select.having.map(|expr| self.lower(expr)).transpose()?;
        let windows = self.named_windows(select.named_window)?;
        Ok(Select {
            distinct,
            items,
            from,
            selection,
            group_by,
            distinct_groups,
            having,
            windows,
            hints,
            position,
        })
    }

    /// Rejects all clauses of other dialects, and clauses that are not supported.
    fn refuse_foreign_clauses(&self, select: &parsed::Select, position: usize) -> Result<()> {
        let parsed::Select {
            select_token: _,
            optimizer_hints: _,
            distinct: _,
            select_modifiers,
            top,
            top_before_distinct: _,
            projection: _,
            exclude,
            into: _,
            from: _,
            lateral_views,
            prewhere,
            selection: _,
            connect_by,
            group_by: _,
            cluster_by,
            distribute_by,
            sort_by,
            having: _,
            named_window: _,
            qualify,
            window_before_qualify: _,
            value_table_mode,
            flavor,
        } = select;
        let refused = [
            (select_modifiers.is_some(), "this modifier of SELECT"),
            (top.is_some(), "TOP"),
            (exclude.is_some(), "EXCLUDE"),
            (!lateral_views.is_empty(), "LATERAL VIEW"),
            (prewhere.is_some(), "PREWHERE"),
            (!connect_by.is_empty(), "CONNECT BY"),
            (!cluster_by.is_empty(), "CLUSTER BY"),
            (!distribute_by.is_empty(), "DISTRIBUTE BY"),
            (!sort_by.is_empty(), "SORT BY"),
            (qualify.is_some(), "QUALIFY"),
            (value_table_mode.is_some(), "SELECT AS STRUCT or VALUE"),
            (*flavor != parsed::SelectFlavor::Standard, "FROM before SELECT"),
        ];
        match refused.into_iter().find(|(present, _)| *present) {
            Some((_, construct)) => Err(ParseError::unsupported(construct, position)),
            None => Ok(()),
        }
    }

    // ---- lists ----

    /// Reads the list of SELECT or RETURNING.
    pub(super) fn select_items(&mut self) -> Result<Vec<SelectItem>> {
        self.list(|cursor| {
            let item =
                cursor.parser.parse_select_item().map_err(|error| cursor.translate(error))?;
            cursor.lower_item(item)
        })
    }

    fn lower_item(&mut self, item: parsed::SelectItem) -> Result<SelectItem> {
        match item {
            parsed::SelectItem::UnnamedExpr(expr) => {
                let item = self.lower_placed(expr)?;
                Ok(match item.expr {
                    Expr::Field { operand, name } if name.value == ALL_FIELDS => {
                        SelectItem::Fields { row: *operand, position: item.start }
                    }
                    expr => SelectItem::Expr { expr, alias: None },
                })
            }
            parsed::SelectItem::ExprWithAlias { expr, alias } => {
                let expr = self.lower(expr)?;
                Ok(SelectItem::Expr { expr, alias: Some(self.named(&alias)?) })
            }
            parsed::SelectItem::ExprWithAliases { expr, .. } => {
                let position = self.lower_placed(expr)?.start;
                Err(ParseError::unsupported("multiple names for one value", position))
            }
            parsed::SelectItem::Wildcard(options) => {
                let position = self.wildcard(&options)?;
                Ok(SelectItem::Wildcard { qualifier: Vec::new(), position })
            }
            parsed::SelectItem::QualifiedWildcard(kind, options) => {
                self.wildcard(&options)?;
                let parsed::SelectItemQualifiedWildcardKind::ObjectName(name) = kind else {
                    return Err(self.unexpected());
                };
                let qualifier = self.object_name(&name)?;
                let position = qualifier.first().map_or(1, |part| part.position);
                Ok(SelectItem::Wildcard { qualifier, position })
            }
        }
    }

    /// Returns the position of a `*`; rejects the modifiers of other dialects.
    fn wildcard(&self, options: &parsed::WildcardAdditionalOptions) -> Result<usize> {
        let parsed::WildcardAdditionalOptions {
            wildcard_token,
            opt_ilike,
            opt_exclude,
            opt_except,
            opt_replace,
            opt_rename,
            opt_alias,
        } = options;
        let position = self.position_of(&wildcard_token.0);
        if opt_ilike.is_some()
            || opt_exclude.is_some()
            || opt_except.is_some()
            || opt_replace.is_some()
            || opt_rename.is_some()
            || opt_alias.is_some()
        {
            return Err(ParseError::unsupported("a modified *", position));
        }
        Ok(position)
    }

    fn order_by(&mut self, order: parsed::OrderBy, position: usize) -> Result<Vec<OrderItem>> {
        let parsed::OrderBy { kind, interpolate } = order;
        let parsed::OrderByKind::Expressions(list) = kind else {
            return Err(ParseError::unsupported("ORDER BY ALL", position));
        };
        if interpolate.is_some() {
            return Err(ParseError::unsupported("INTERPOLATE", position));
        }
        self.order_items(list)
    }

    /// Lowers the list of an ORDER BY.
    pub(super) fn order_items(&mut self, list: Vec<parsed::OrderByExpr>) -> Result<Vec<OrderItem>> {
        let mut items = Vec::with_capacity(list.len());
        for parsed::OrderByExpr { expr, options, with_fill } in list {
            let parsed::OrderByOptions { sort, nulls_first } = options;
            let expr = self.lower(expr)?;
            let order = match sort {
                None | Some(parsed::OrderBySort::Asc) => SortOrder::Ascending,
                Some(parsed::OrderBySort::Desc) => SortOrder::Descending,
                Some(parsed::OrderBySort::Using(operator)) => {
                    using_order(&operator).ok_or_else(|| no_ordering(&operator, &expr))?
                }
            };
            if with_fill.is_some() {
                return Err(ParseError::unsupported("WITH FILL", expr.position()));
            }
            let nulls = nulls_first.map(nulls_order);
            items.push(OrderItem { expr, order, nulls });
        }
        Ok(items)
    }

    fn locking(&self, lock: parsed::LockClause, position: usize) -> Result<Locking> {
        let parsed::LockClause { lock_type, of, nonblock } = lock;
        let mut strength = match lock_type {
            parsed::LockType::Update => LockStrength::Update,
            parsed::LockType::Share => LockStrength::Share,
        };
        let mut of = of.map(|name| self.object_name(&name)).transpose()?;
        if let Some(parts) = &mut of
            && parts.first().is_some_and(|first| [NO_KEY, KEY].contains(&first.value.as_str()))
        {
            strength = match strength {
                LockStrength::Update => LockStrength::NoKeyUpdate,
                _ => LockStrength::KeyShare,
            };
            parts.remove(0);
        }
        let of = of.filter(|parts| !parts.is_empty());
        let of = match of {
            None => None,
            Some(mut parts) if parts.len() == 1 => parts.pop(),
            Some(parts) => {
                let message = "FOR UPDATE must specify unqualified relation names";
                let position = parts.first().map_or(position, |part| part.position);
                return Err(ParseError::syntax(message, position));
            }
        };
        let wait = match nonblock {
            None => LockWait::Block,
            Some(parsed::NonBlock::Nowait) => LockWait::NoWait,
            Some(parsed::NonBlock::SkipLocked) => LockWait::SkipLocked,
        };
        Ok(Locking { strength, of, wait, pushed: false, position })
    }

    /// Rejects a string as a name, which `sqlparser` accepts.
    fn named(&self, parsed: &parsed::Ident) -> Result<Ident> {
        let ident = self.ident(parsed);
        match parsed.quote_style {
            // `sqlparser` does not store its position.
            Some('\'') => {
                let is_it = |index: &usize| {
                    matches!(&self.parser.token_at(*index).token,
                        Token::SingleQuotedString(text) if *text == parsed.value)
                };
                let found = (0..self.token_count).rfind(is_it);
                let position =
                    found.map(|index| self.source.position(self.parser.token_at(index).span.start));
                Err(self.syntax_error_near(position.unwrap_or(ident.position)))
            }
            _ => Ok(ident),
        }
    }

    /// Rejects an unquoted alias that PostgreSQL's grammar does not allow.
    pub(super) fn checked_alias(&self, parsed: &parsed::Ident) -> Result<Ident> {
        let ident = self.named(parsed)?;
        if parsed.quote_style.is_none() && !key_words::is_column_name(&ident.value) {
            return Err(self.syntax_error_near(ident.position));
        }
        Ok(ident)
    }

    /// Returns the error for an unsupported entry of FROM.
    pub(super) fn refuse_factor(&self, factor: &TableFactor) -> ParseError {
        let construct = match factor {
            TableFactor::UNNEST { .. } => "UNNEST WITH OFFSET",
            TableFactor::JsonTable { .. } | TableFactor::OpenJsonTable { .. } => "JSON_TABLE",
            TableFactor::XmlTable { .. } => "XMLTABLE",
            TableFactor::Pivot { .. } => "PIVOT",
            TableFactor::Unpivot { .. } | TableFactor::UnpivotExpr { .. } => "UNPIVOT",
            TableFactor::MatchRecognize { .. } => "MATCH_RECOGNIZE",
            TableFactor::TableFunction { .. } => "TABLE()",
            _ => "this entry of FROM",
        };
        ParseError::unsupported(construct, None)
    }
}

/// Returns whether an item is the marker of an empty list.
fn is_nothing(item: &parsed::SelectItem) -> bool {
    matches!(item, parsed::SelectItem::UnnamedExpr(parsed::Expr::Identifier(ident))
        if ident.value == EMPTY_LIST)
}

/// Adds a WITH clause to a query; a query in parentheses may already have one.
pub(super) fn with_query(with: WithClause, query: QueryExpr) -> Result<QueryExpr> {
    if query.with.is_some() {
        return Err(ParseError::syntax("multiple WITH clauses not allowed", with.position));
    }
    Ok(QueryExpr { with: Some(with), ..query })
}

/// Checks the requirements of WITH TIES: ORDER BY, and no SKIP LOCKED.
fn check_ties(query: &QueryExpr) -> Result<()> {
    if query.order_by.is_empty() {
        let message = "WITH TIES cannot be specified without ORDER BY clause";
        return Err(ParseError::syntax(message, None));
    }
    match query.locking.iter().find(|one| one.wait == LockWait::SkipLocked) {
        Some(_) => {
            let message = "SKIP LOCKED and WITH TIES options cannot be used together";
            Err(ParseError::syntax(message, None))
        }
        None => Ok(()),
    }
}

/// Returns the direction of `ORDER BY … USING <` or `>`.
fn using_order(operator: &parsed::ObjectName) -> Option<SortOrder> {
    let name = operator.to_string();
    match name.strip_prefix("pg_catalog.").unwrap_or(&name) {
        "<" => Some(SortOrder::Ascending),
        ">" => Some(SortOrder::Descending),
        _ => None,
    }
}

fn no_ordering(operator: &parsed::ObjectName, expr: &Expr) -> ParseError {
    ParseError::unsupported(format!("ORDER BY … USING {operator}"), expr.position())
        .with_hint("Order by < or >, or write ASC or DESC.")
}

/// Turns a query in parentheses with clauses both inside and outside into a SELECT from a
/// subquery.
fn wrap(query: QueryExpr) -> Select {
    let position = query.position;
    let name = Ident { value: "subquery".to_owned(), position };
    let alias = Some(TableAlias { name, columns: Vec::new() });
    let from = vec![TableRef::Subquery { query: Box::new(query), lateral: false, alias }];
    let items = vec![SelectItem::Wildcard { qualifier: Vec::new(), position }];
    Select { from, ..Select::of_items(items, position) }
}

pub(super) fn nulls_order(first: bool) -> NullsOrder {
    if first { NullsOrder::First } else { NullsOrder::Last }
}

/// Parses a hint comment after its `+`: names, each with arguments in parentheses.
pub(super) fn hints(text: &str) -> Vec<Hint> {
    let mut hints: Vec<Hint> = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let end = rest.find(|c: char| c.is_whitespace() || c == '(' || c == ',');
        let (word, behind) = rest.split_at(end.unwrap_or(rest.len()));
        let behind = behind.trim_start();
        let (arguments, behind) = match behind.strip_prefix('(') {
            Some(inner) => inner.split_once(')').unwrap_or((inner, "")),
            None => ("", behind),
        };
        if !word.is_empty() {
            let arguments = hint_arguments(arguments);
            hints.push(Hint { name: word.to_ascii_lowercase(), arguments });
        }
        rest = behind.trim_start_matches(|c: char| c.is_whitespace() || c == ',' || c == ')');
    }
    hints
}

/// Splits at blanks and commas, and folds each name; a quoted name may contain both.
fn hint_arguments(text: &str) -> Vec<String> {
    let separator = |c: char| c.is_whitespace() || c == ',';
    let mut arguments = Vec::new();
    let mut rest = text.trim_start_matches(separator);
    while !rest.is_empty() {
        let (argument, behind) = match rest.strip_prefix('"') {
            Some(quoted) => {
                let (argument, behind) = quoted.split_once('"').unwrap_or((quoted, ""));
                (name::fold(argument, true), behind)
            }
            None => {
                let (argument, behind) = rest.split_at(rest.find(separator).unwrap_or(rest.len()));
                (name::fold(argument, false), behind)
            }
        };
        arguments.push(argument);
        rest = behind.trim_start_matches(separator);
    }
    arguments
}

/// Rewrites Phoenix's `OFFSET (a, b) = (1, 2)`: the rows after the one with these values, in the
/// order of the columns. PostgreSQL has an error for a boolean offset.
fn skip_to_row(body: &mut QueryBody, offset: &mut Option<Expr>) {
    let is_row_offset = |offset: &mut Expr| {
        matches!(offset, Expr::Binary { operator: BinaryOperator::Equal, left, .. }
            if matches!(**left, Expr::Row { .. } | Expr::Column(_)))
    };
    let QueryBody::Select(select) = body else { return };
    if select.distinct.is_some() || !select.group_by.is_empty() {
        return;
    }
    let Some(mut condition) = offset.take_if(is_row_offset) else { return };
    if let Expr::Binary { operator, .. } = &mut condition {
        *operator = BinaryOperator::Greater;
    }
    select.selection = Some(match select.selection.take() {
        Some(Expr::And(mut conditions)) => {
            conditions.push(condition);
            Expr::And(conditions)
        }
        Some(one) => Expr::And(vec![one, condition]),
        None => condition,
    });
}
