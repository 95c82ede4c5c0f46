//! Generator of queries.

use crate::random_queries::expression::Names;
use crate::random_queries::from::renamed;
use crate::random_queries::schema::{Column, Schema, Type};
use crate::random_queries::seeded_random::SeededRandom;
use crate::random_queries::shrinkable_sql::SqlNode;

/// Generator of queries over the tables of a schema.
pub(super) struct Generator<'a> {
    pub(super) chance: &'a mut SeededRandom,
    pub(super) schema: &'a Schema,
    /// Nesting depth of the current query.
    pub(super) depth: usize,
    /// Subqueries that may still be generated in this statement.
    pub(super) subqueries_left: usize,
    names_given: usize,
    /// WITH queries in scope.
    pub(super) with: Vec<(String, Vec<Column>)>,
}

impl<'a> Generator<'a> {
    /// Creates a generator.
    pub(super) fn new(chance: &'a mut SeededRandom, schema: &'a Schema) -> Generator<'a> {
        let subqueries_left = chance.below(7);
        let (depth, names_given, with) = (0, 0, Vec::new());
        Generator { chance, schema, depth, subqueries_left, names_given, with }
    }

    /// Returns whether a subquery may be generated here; counts it.
    pub(super) fn may_nest(&mut self) -> bool {
        if self.depth >= 3 || self.subqueries_left == 0 {
            return false;
        }
        self.subqueries_left -= 1;
        true
    }

    pub(super) fn new_name(&mut self) -> String {
        self.names_given += 1;
        format!("q{}", self.names_given)
    }

    /// Returns the types of one to three columns.
    pub(super) fn some_types(&mut self) -> Vec<Type> {
        (0..=self.chance.below(3)).map(|_| *self.chance.one_of(&Type::ALL)).collect()
    }

    /// Returns a whole query, and whether the order of its rows is total.
    pub(super) fn statement(&mut self) -> (SqlNode, bool) {
        let mut piece = SqlNode::default();
        if self.chance.percent(15) {
            piece = piece.maybe(self.with_clause());
        }
        let types = self.some_types();
        let query = self.query(&types, &[]);
        let ordered = self.chance.percent(50);
        piece = piece.with(query);
        if ordered {
            piece = piece.with(self.order_and_limit(types.len()));
        }
        (piece, ordered)
    }

    /// Returns a query that may read the WITH queries.
    pub(super) fn statement_after_with(&mut self) -> SqlNode {
        let types = self.some_types();
        self.query(&types, &[])
    }

    fn with_clause(&mut self) -> SqlNode {
        if self.chance.percent(30) {
            return self.recursion();
        }
        let (name, types) = (self.new_name(), self.some_types());
        self.depth += 1;
        let query = self.query(&types, &[]);
        self.depth -= 1;
        let columns: Vec<Column> = types
            .iter()
            .enumerate()
            .map(|(at, &data_type)| Column { name: format!("c{at}"), data_type })
            .collect();
        let names: Vec<&str> = columns.iter().map(|column| &*column.name).collect();
        let how = *self.chance.one_of(&["", "", "MATERIALIZED ", "NOT MATERIALIZED "]);
        let head = format!("WITH {name} ({}) AS {how}(", names.join(", "));
        self.with.push((name, columns));
        SqlNode::text(head).with(query).then(") ")
    }

    /// Generates WITH RECURSIVE, with a counting column and others.
    fn recursion(&mut self) -> SqlNode {
        let name = self.new_name();
        let mut types = vec![Type::Integer];
        types.extend(self.some_types());
        let names: Vec<String> = (0..types.len()).map(|at| format!("c{at}")).collect();
        let columns: Vec<Column> = names
            .iter()
            .zip(&types)
            .map(|(name, &data_type)| Column { name: name.clone(), data_type })
            .collect();
        self.depth += 1;
        let nothing = Names::default();
        let typed = |piece: SqlNode, of: Type| {
            SqlNode::text("CAST(").with(piece).then(format!(" AS {})", of.name()))
        };
        let first = types[1..].iter().map(|&of| {
            let value = self.expression(of, &nothing, 1);
            typed(value, of)
        });
        let first: Vec<SqlNode> = first.collect();
        let reader = self.new_name();
        let table = self.chance.one_of(&self.schema.tables).clone();
        let other = self.new_name();
        let mut own = renamed(&columns, &reader);
        own.extend(renamed(&table.columns, &other));
        let own = Names { own, ..Names::default() };
        let next = types[1..].iter().map(|&of| {
            let value = self.expression(of, &own, 1);
            typed(value, of)
        });
        let next: Vec<SqlNode> = next.collect();
        let left = std::mem::take(&mut self.subqueries_left);
        let condition = self.condition(&own, 1);
        self.subqueries_left = left;
        self.depth -= 1;
        let head = format!("WITH RECURSIVE {name} ({}) AS (SELECT 0, ", names.join(", "));
        let again = format!(" UNION SELECT {reader}.c0 + 1, ");
        let from = format!(" FROM {name} AS {reader}, {} AS {other}", table.name);
        let bound = format!("{from} WHERE {reader}.c0 < 3");
        self.with.push((name, columns));
        let piece = SqlNode::text(head).list(first, ", ").then(again).list(next, ", ").then(bound);
        piece.then(" AND ").with(condition).then(") ")
    }

    /// Generates ORDER BY all columns, so that ties are equal rows, and optionally LIMIT.
    fn order_and_limit(&mut self, width: usize) -> SqlNode {
        let mut keys: Vec<usize> = (1..=width).collect();
        for at in (1..width).rev() {
            keys.swap(at, self.chance.below(at + 1));
        }
        let keys: Vec<String> = keys
            .iter()
            .map(|key| {
                let directions = ["", "", " DESC", " NULLS FIRST", " DESC NULLS LAST"];
                format!("{key}{}", self.chance.one_of(&directions))
            })
            .collect();
        let order = SqlNode::text(format!(" ORDER BY {}", keys.join(", ")));
        if self.chance.percent(60) {
            return order;
        }
        let (count, skipped) = (self.chance.below(8), self.chance.below(4));
        let limit = match self.chance.below(5) {
            0 => format!(" OFFSET {skipped}"),
            1 => format!(" FETCH FIRST {count} ROWS WITH TIES"),
            2 => format!(" LIMIT {count} OFFSET {skipped}"),
            _ => format!(" LIMIT {count}"),
        };
        order.maybe(SqlNode::text(limit))
    }

    /// Returns a subquery with these column types, without parentheses.
    pub(super) fn subquery(&mut self, types: &[Type], outer: &[Column]) -> SqlNode {
        self.depth += 1;
        let mut query = self.query(types, outer);
        if self.chance.percent(10) {
            query = query.with(self.order_and_limit(types.len()));
        }
        self.depth -= 1;
        query
    }

    /// Returns a scalar subquery; some may have several rows.
    pub(super) fn scalar_subquery(&mut self, data_type: Type, outer: &[Column]) -> SqlNode {
        self.depth += 1;
        let piece = match self.chance.below(10) {
            0 => self.query(&[data_type], outer),
            1..=3 => {
                let order =
                    *self.chance.one_of(&[" ORDER BY 1 LIMIT 1", " ORDER BY 1 DESC LIMIT 1"]);
                self.query(&[data_type], outer).then(order)
            }
            _ => self.aggregated(&[data_type], outer, false),
        };
        self.depth -= 1;
        piece
    }

    fn query(&mut self, types: &[Type], outer: &[Column]) -> SqlNode {
        match self.chance.below(12) {
            0 | 1 if self.depth < 3 => {
                let operation = *self.chance.one_of(&["UNION", "INTERSECT", "EXCEPT"]);
                let all = *self.chance.one_of(&["", " ALL"]);
                self.depth += 1;
                let left = self.query(types, outer);
                let right = self.query(types, outer);
                self.depth -= 1;
                let piece = SqlNode::text("(").with_or_replaced_by(left);
                piece.then(format!(") {operation}{all} (")).with_or_replaced_by(right).then(")")
            }
            2..=4 => {
                let grouped = self.chance.percent(75);
                self.aggregated(types, outer, grouped)
            }
            5 if self.depth > 0 => self.values(types, outer),
            _ => self.plain(types, outer),
        }
    }

    fn values(&mut self, types: &[Type], outer: &[Column]) -> SqlNode {
        let names = Names { outer: outer.to_vec(), ..Names::default() };
        let rows = (0..=self.chance.below(3)).map(|_| {
            let items = types
                .iter()
                .map(|&of| {
                    let value = self.expression(of, &names, 0);
                    SqlNode::text("CAST(").with(value).then(format!(" AS {})", of.name()))
                })
                .collect();
            SqlNode::text("(").list(items, ", ").then(")")
        });
        let rows = rows.collect();
        SqlNode::text("VALUES ").list(rows, ", ")
    }

    fn plain(&mut self, types: &[Type], outer: &[Column]) -> SqlNode {
        let from = self.from(outer);
        let windowed = self.chance.percent(12).then(|| from.columns.clone());
        let names =
            Names { own: from.columns.clone(), outer: outer.to_vec(), aggregated: None, windowed };
        let distinct = if self.chance.percent(15) { "DISTINCT " } else { "" };
        let sets = self.chance.percent(8);
        let mut items: Vec<SqlNode> = Vec::new();
        for &of in types {
            let plain = names.plain();
            let set = if sets { self.set_function(of, &plain) } else { None };
            items.push(set.unwrap_or_else(|| self.expression(of, &names, 2)));
        }
        let on = !sets && self.chance.percent(5) && distinct.is_empty() && types.len() > 1;
        let mut piece = SqlNode::text(format!("SELECT {distinct}"));
        // ORDER BY has all outputs, so that the first row of a group is determined.
        let mut order = SqlNode::default();
        if on && self.depth == 0 {
            let first = items[0].to_string();
            // A number would be a column position here.
            let constant = !first.contains(|c: char| c.is_alphabetic()) || first.starts_with('\'');
            if !constant && !first.contains("SELECT") && !first.contains("VALUES") {
                piece = piece.then(format!("DISTINCT ON ({first}) "));
                let keys: Vec<String> = items.iter().map(SqlNode::to_string).collect();
                if keys.iter().all(|key| key.contains("q")) {
                    order = SqlNode::text(format!(" ORDER BY {}", keys.join(", ")));
                }
            }
        }
        let needs_order = !order.to_string().is_empty();
        if !needs_order {
            piece = SqlNode::text(format!("SELECT {distinct}"));
        }
        piece = piece
            .list(items, ", ")
            .with(from.text)
            .maybe(self.filter(&Names { windowed: None, ..names }));
        if needs_order {
            return SqlNode::text("SELECT * FROM (")
                .with(piece.with(order))
                .then(") AS first_rows");
        }
        piece
    }

    fn filter(&mut self, names: &Names) -> SqlNode {
        if self.chance.percent(25) {
            return SqlNode::default();
        }
        SqlNode::text(" WHERE ").with(self.condition(names, 2))
    }

    /// Generates a query with aggregates: grouped, or of one row.
    fn aggregated(&mut self, types: &[Type], outer: &[Column], grouped: bool) -> SqlNode {
        let from = self.from(outer);
        let below = Names { own: from.columns.clone(), outer: outer.to_vec(), ..Names::default() };
        let mut keys: Vec<Column> = Vec::new();
        if grouped {
            for _ in 0..=self.chance.below(3) {
                let plain = !below.own.is_empty() && self.chance.percent(75);
                let key = match plain {
                    true => self.chance.one_of(&below.own).clone(),
                    false => {
                        let data_type = *self.chance.one_of(&Type::ALL);
                        let name = self.expression(data_type, &below, 1).to_string();
                        Column { name, data_type }
                    }
                };
                // Constants would be column positions, and repeated subqueries are not recognized
                // as equal.
                let own = below.own.iter().any(|column| key.name.contains(&column.name));
                if own && !key.name.contains("SELECT") {
                    keys.push(key);
                }
            }
        }
        let windowed = (!keys.is_empty() && self.chance.percent(10)).then(|| keys.clone());
        let names = Names {
            own: keys.clone(),
            outer: outer.to_vec(),
            aggregated: Some(from.columns),
            windowed,
        };
        let items = types.iter().map(|&of| self.expression(of, &names, 2)).collect();
        let piece = SqlNode::text("SELECT ").list(items, ", ").with(from.text);
        let mut piece = piece.maybe(self.filter(&below));
        if !keys.is_empty() {
            let list = self.group_by(&keys);
            piece = piece.maybe(list);
        } else if self.chance.percent(10) {
            piece = piece.maybe(SqlNode::text(" GROUP BY ()"));
        }
        if self.chance.percent(25) {
            let names = Names { windowed: None, ..names };
            let having = SqlNode::text(" HAVING ").with(self.condition(&names, 1));
            piece = piece.maybe(having);
        }
        piece
    }

    /// Generates GROUP BY keys in one of its forms.
    fn group_by(&mut self, keys: &[Column]) -> SqlNode {
        let names: Vec<SqlNode> = keys.iter().map(|key| SqlNode::text(key.name.clone())).collect();
        let list = |names: Vec<SqlNode>| SqlNode::default().list(names, ", ");
        let (first, others) = names.split_at(1);
        match self.chance.below(16) {
            0 => SqlNode::text(" GROUP BY ROLLUP (").with(list(names)).then(")"),
            1 => SqlNode::text(" GROUP BY CUBE (").with(list(names)).then(")"),
            2 if !others.is_empty() => {
                let rest = SqlNode::text(", ROLLUP (").with(list(others.to_vec())).then(")");
                SqlNode::text(" GROUP BY ").with(first[0].clone()).with(rest)
            }
            3 | 4 => {
                let mut sets = Vec::new();
                for _ in 0..=self.chance.below(3) {
                    let some: Vec<SqlNode> =
                        names.iter().filter(|_| self.chance.percent(50)).cloned().collect();
                    sets.push(SqlNode::text("(").with(list(some)).then(")"));
                }
                // Each key is in one of the sets, so that all expressions are grouped.
                let all = SqlNode::text("(").with(list(names)).then(")");
                sets.push(all);
                let distinct = *self.chance.one_of(&["", "DISTINCT "]);
                let head = format!(" GROUP BY {distinct}GROUPING SETS (");
                SqlNode::text(head).list(sets, ", ").then(")")
            }
            5 => SqlNode::text(" GROUP BY (").with(list(names)).then("), ()"),
            _ => SqlNode::text(" GROUP BY ").with(list(names)),
        }
    }
}
