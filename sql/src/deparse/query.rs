//! Output of queries as SQL text: WITH, set operations, ORDER BY and the clauses after it.
//!
//! Source: PostgreSQL's `get_query_def`, `get_select_query_def`, `get_setop_query`,
//! `get_with_clause` (ruleutils.c).

use types::DataType;

use crate::ast::{
    Cycle, Expr, LockStrength, LockWait, NamedQueryBody, NullsOrder, OrderItem, QueryBody,
    QueryExpr, Search, SetOperator, SortOrder, TableRef, WithClause,
};
use crate::binder::resolution_notes::entry_position;
use crate::deparse::{ColumnNaming, STEP, SelectTarget, SqlWriter};

impl<'a> SqlWriter<'a> {
    /// Writes a nested query.
    pub(super) fn subquery(&mut self, query: &'a QueryExpr, naming: ColumnNaming<'_>) {
        let (indent, targets) = (self.indent, std::mem::take(&mut self.targets));
        let level = std::mem::take(&mut self.level);
        self.query(query, naming);
        (self.indent, self.targets, self.level) = (indent, targets, level);
    }

    /// Writes a query.
    pub(super) fn query(&mut self, query: &'a QueryExpr, naming: ColumnNaming<'_>) {
        let from: &'a [TableRef] = match &query.body {
            QueryBody::Select(select) => &select.from,
            _ => &[],
        };
        let before = self.enter(from);
        if let Some(with) = &query.with {
            self.with(with);
        }
        let by_number = match &query.body {
            QueryBody::Select(select) => {
                self.select(select, naming);
                false
            }
            QueryBody::Values(rows) => {
                self.values_query(rows, naming);
                true
            }
            QueryBody::SetOperation { .. } => {
                self.set_operation(query, naming);
                true
            }
        };
        if !query.order_by.is_empty() {
            self.keyword(" ORDER BY ", -STEP, STEP, 1);
            match by_number {
                true => self.order_by_number(query),
                false => {
                    let targets = std::mem::take(&mut self.targets);
                    self.order_by(&query.order_by, &targets);
                    self.targets = targets;
                }
            }
        }
        self.tail(query, from);
        self.leave(before);
    }

    fn tail(&mut self, query: &'a QueryExpr, from: &'a [TableRef]) {
        let count = Some(DataType::Int8.into());
        if let Some(offset) = &query.offset {
            self.keyword(" OFFSET ", -STEP, STEP, 0);
            let node = self.value(offset, count.clone());
            self.write(&node, false);
        }
        match &query.limit {
            Some(limit) if query.with_ties => {
                self.keyword(" FETCH FIRST (", -STEP, STEP, 0);
                let node = self.value(limit, count);
                self.write(&node, false);
                self.push(") ROWS WITH TIES");
            }
            Some(Expr::Null { .. }) => self.keyword(" LIMIT ALL", -STEP, STEP, 0),
            Some(limit) => {
                self.keyword(" LIMIT ", -STEP, STEP, 0);
                let node = self.value(limit, count);
                self.write(&node, false);
            }
            None => {}
        }
        self.locking(query, from);
    }

    fn locking(&mut self, query: &'a QueryExpr, from: &'a [TableRef]) {
        let mut all = Vec::new();
        from.iter().for_each(|entry| lockable(entry, &mut all));
        for clause in &query.locking {
            let words = match clause.strength {
                LockStrength::Update => " FOR UPDATE",
                LockStrength::NoKeyUpdate => " FOR NO KEY UPDATE",
                LockStrength::Share => " FOR SHARE",
                LockStrength::KeyShare => " FOR KEY SHARE",
            };
            let named = |at: &&usize| {
                let entry = self.entries.get(*at);
                let of = clause.of.as_ref();
                of.is_none_or(|of| entry.is_some_and(|entry| entry.known_as == of.value))
            };
            let locked: Vec<usize> = all.iter().filter(named).copied().collect();
            for at in locked {
                self.keyword(words, -STEP, STEP, 0);
                let entry = self.entries.get(&at).and_then(|entry| entry.name.clone());
                self.push(" OF ");
                self.name(&entry.unwrap_or_default());
                self.push(match clause.wait {
                    LockWait::Block => "",
                    LockWait::NoWait => " NOWAIT",
                    LockWait::SkipLocked => " SKIP LOCKED",
                });
            }
        }
    }

    // ---- WITH ----

    fn with(&mut self, with: &'a WithClause) {
        let wraps = self.layout.wrap.is_some();
        if wraps {
            self.indent += STEP;
            self.push(" ");
        }
        let mut separator = if with.recursive { "WITH RECURSIVE " } else { "WITH " };
        for named in &with.queries {
            self.push(separator);
            separator = ", ";
            self.name(&named.name.value);
            if !named.columns.is_empty() {
                self.push("(");
                self.list(&named.columns, |writer, column| writer.name(&column.value));
                self.push(")");
            }
            self.push(match named.materialized {
                None => " AS (",
                Some(true) => " AS MATERIALIZED (",
                Some(false) => " AS NOT MATERIALIZED (",
            });
            if wraps {
                self.keyword("", 0, 0, 0);
            }
            if let NamedQueryBody::Query(query) = &named.body {
                self.subquery(query, ColumnNaming::OWN);
            }
            if wraps {
                self.keyword("", 0, 0, 0);
            }
            self.push(")");
            if let Some(search) = &named.search {
                self.search(search);
            }
            if let Some(cycle) = &named.cycle {
                self.cycle(cycle);
            }
        }
        match wraps {
            true => {
                self.indent -= STEP;
                self.keyword("", 0, 0, 0);
            }
            false => self.push(" "),
        }
    }

    fn search(&mut self, search: &'a Search) {
        let order = if search.depth_first { "DEPTH" } else { "BREADTH" };
        self.push(&format!(" SEARCH {order} FIRST BY "));
        self.list(&search.columns, |writer, column| writer.name(&column.value));
        self.push(" SET ");
        self.name(&search.sequence.value);
    }

    fn cycle(&mut self, cycle: &'a Cycle) {
        self.push(" CYCLE ");
        self.list(&cycle.columns, |writer, column| writer.name(&column.value));
        self.push(" SET ");
        self.name(&cycle.mark.value);
        if let Some((value, default)) = &cycle.values {
            for (word, expr) in [(" TO ", value), (" DEFAULT ", default)] {
                self.push(word);
                let node = self.value(expr, None);
                self.write(&node, false);
            }
        }
        self.push(" USING ");
        self.name(&cycle.path.value);
    }

    // ---- set operations ----

    fn set_operation(&mut self, query: &'a QueryExpr, naming: ColumnNaming<'_>) {
        let QueryBody::SetOperation { operator, all, left, right } = &query.body else {
            return self.leaf(query, naming);
        };
        let nested = match &left.body {
            QueryBody::SetOperation { operator: inner, all: inner_all, .. } if left.is_bare() => {
                inner != operator || inner_all != all
            }
            _ => false,
        };
        let wraps = self.layout.wrap.is_some();
        let deeper = if nested { STEP } else { 0 };
        if nested {
            self.push("(");
            self.keyword("", deeper, 0, 0);
        }
        self.side(left, naming);
        match (nested, wraps) {
            (true, _) => self.keyword(") ", -deeper, 0, 0),
            (false, true) => self.keyword("", -deeper, 0, 0),
            (false, false) => self.push(" "),
        }
        self.push(match operator {
            SetOperator::Union => "UNION ",
            SetOperator::Intersect => "INTERSECT ",
            SetOperator::Except => "EXCEPT ",
        });
        self.push(if *all { "ALL " } else { "" });
        let nested = is_operation(right);
        let deeper = if nested { STEP } else { 0 };
        self.push(if nested { "(" } else { "" });
        self.keyword("", deeper, 0, 0);
        self.side(right, ColumnNaming { is_seen: false, ..naming });
        if wraps {
            self.indent -= deeper;
        }
        if nested {
            self.keyword(")", 0, 0, 0);
        }
    }

    fn side(&mut self, query: &'a QueryExpr, naming: ColumnNaming<'_>) {
        match is_operation(query) {
            true => self.set_operation(query, naming),
            false => self.leaf(query, naming),
        }
    }

    fn leaf(&mut self, query: &'a QueryExpr, naming: ColumnNaming<'_>) {
        let apart = query.with.is_some()
            || !query.order_by.is_empty()
            || query.limit.is_some()
            || query.offset.is_some()
            || !query.locking.is_empty();
        self.push(if apart { "(" } else { "" });
        self.subquery(query, naming);
        self.push(if apart { ")" } else { "" });
    }

    // ---- ORDER BY ----

    /// Writes an ORDER BY whose keys are only known as columns of the result.
    fn order_by_number(&mut self, query: &'a QueryExpr) {
        let names = output_names(query);
        self.list(&query.order_by, |writer, item| {
            let is_values = matches!(query.body, QueryBody::Values(_));
            let number = match &item.expr {
                Expr::Number { text, .. } => text.clone(),
                Expr::Column(parts) => {
                    let name = parts.last().map(|part| part.value.as_str());
                    let at = names.iter().position(|one| Some(one.as_str()) == name);
                    at.map_or_else(String::new, |at| (at + 1).to_string())
                }
                _ => String::new(),
            };
            writer.push(if is_values { "\"*VALUES*\".column" } else { "" });
            writer.push(&number);
            writer.direction(item);
        });
    }

    /// Writes the keys of an ORDER BY, which may be entries of a select list.
    pub(super) fn order_by(&mut self, items: &'a [OrderItem], targets: &[SelectTarget<'a>]) {
        self.list(items, |writer, item| {
            writer.sort_key(&item.expr, targets, true);
            writer.direction(item);
        });
    }

    fn direction(&mut self, item: &OrderItem) {
        let descends = item.order == SortOrder::Descending;
        self.push(if descends { " DESC" } else { "" });
        self.push(match (descends, item.nulls) {
            (true, Some(NullsOrder::Last)) => " NULLS LAST",
            (false, Some(NullsOrder::First)) => " NULLS FIRST",
            _ => "",
        });
    }
}

/// Returns whether a query is a set operation without other clauses.
fn is_operation(query: &QueryExpr) -> bool {
    matches!(query.body, QueryBody::SetOperation { .. }) && query.is_bare()
}

/// Returns the names of a query's columns in the query itself.
fn output_names(query: &QueryExpr) -> Vec<String> {
    match &query.body {
        QueryBody::Select(select) => {
            let targets = crate::deparse::select::targets_of(&select.items, &|_| Vec::new());
            targets.into_iter().map(|target| target.name).collect()
        }
        QueryBody::Values(rows) => {
            let count = rows.first().map_or(0, Vec::len);
            (1..=count).map(|number| format!("column{number}")).collect()
        }
        QueryBody::SetOperation { left, .. } => output_names(left),
    }
}

/// Adds the entries that a locking clause without OF applies to.
fn lockable(entry: &TableRef, found: &mut Vec<usize>) {
    match entry {
        TableRef::Join { left, right, .. } => {
            lockable(left, found);
            lockable(right, found);
        }
        TableRef::Renamed { join, .. } => lockable(join, found),
        TableRef::Function(_) => {}
        entry => found.push(entry_position(entry)),
    }
}
