//! Generator of FROM clauses: tables, subqueries, functions, and joins.

use crate::random_queries::expression::Names;
use crate::random_queries::query::Generator;
use crate::random_queries::schema::{Column, Table, Type};
use crate::random_queries::shrinkable_sql::SqlNode;

/// A FROM clause or one of its items.
pub(super) struct From {
    pub(super) text: SqlNode,
    pub(super) columns: Vec<Column>,
}

impl Generator<'_> {
    pub(super) fn from(&mut self, outer: &[Column]) -> From {
        let count = match self.chance.below(20) {
            0 if self.depth > 0 => {
                return From { text: SqlNode::default(), columns: Vec::new() };
            }
            0..=9 => 1,
            10..=16 => 2,
            17 | 18 => 3,
            _ => 4,
        };
        let first = self.relation(outer);
        let mut text = SqlNode::text(" FROM ").with(first.text);
        let mut columns = first.columns;
        for _ in 1..count {
            if self.chance.percent(20) {
                let (clause, more) = self.lateral(&columns, outer);
                text = text.maybe(clause);
                columns.extend(more);
                continue;
            }
            let right = self.relation(outer);
            let clause = self.join(&columns, &right, outer);
            text = text.maybe(clause.0);
            if clause.1 {
                columns.extend(right.columns);
            }
        }
        From { text, columns }
    }

    /// Returns the join of the items so far with a relation, and whether its columns are visible.
    fn join(&mut self, left: &[Column], right: &From, outer: &[Column]) -> (SqlNode, bool) {
        let relation = right.text.clone();
        let kind = match self.chance.below(10) {
            0 => return (SqlNode::text(" CROSS JOIN ").with(relation), true),
            1 => return (SqlNode::text(" NATURAL JOIN ").with(relation), true),
            2..=4 => " JOIN ",
            5 | 6 => " LEFT JOIN ",
            7 => " RIGHT JOIN ",
            _ => " FULL JOIN ",
        };
        let join = SqlNode::text(kind).with(relation).then(" ON ");
        let mut equalities: Vec<SqlNode> = Vec::new();
        for _ in 0..=self.chance.below(2) {
            let pairs: Vec<(&Column, &Column)> = left
                .iter()
                .flat_map(|l| right.columns.iter().map(move |r| (l, r)))
                .filter(|(l, r)| l.data_type == r.data_type)
                .collect();
            if !pairs.is_empty() {
                let (l, r) = self.chance.one_of(&pairs);
                equalities.push(SqlNode::text(format!("{} = {}", l.name, r.name)));
            }
        }
        // Subqueries over both sides of an outer join are not supported.
        let mut own: Vec<Column> = right.columns.clone();
        if kind == " JOIN " || self.subqueries_left == 0 {
            own.extend(left.iter().cloned());
        }
        let names = Names { own, outer: outer.to_vec(), ..Names::default() };
        let full = kind == " FULL JOIN ";
        if equalities.is_empty() || self.chance.percent(20) && !full {
            // PostgreSQL supports full joins only with equalities.
            let condition = if full { SqlNode::text("true") } else { self.condition(&names, 1) };
            equalities.push(condition);
        }
        (join.list(equalities, " AND "), true)
    }

    /// Returns a lateral join, and its columns.
    fn lateral(&mut self, left: &[Column], outer: &[Column]) -> (SqlNode, Vec<Column>) {
        let around: Vec<Column> =
            left.iter().chain(outer).filter(|column| !column.name.contains('(')).cloned().collect();
        let left_join = self.chance.percent(40);
        let head = if left_join { " LEFT JOIN " } else { " CROSS JOIN " };
        let relation = match self.may_nest() {
            true => {
                let query = self.derived(&around);
                From { text: SqlNode::text("LATERAL ").with(query.text), columns: query.columns }
            }
            false => self.function(&around),
        };
        let mut clause = SqlNode::text(head).with(relation.text);
        if left_join {
            let own = relation.columns.iter().chain(left).cloned().collect();
            let names = Names { own, ..Names::default() };
            let nested = std::mem::take(&mut self.subqueries_left);
            let condition = self.condition(&names, 1);
            self.subqueries_left = nested;
            clause = clause.then(" ON ").with(condition);
        }
        (clause, relation.columns)
    }

    /// Returns a subquery with an alias.
    fn derived(&mut self, outer: &[Column]) -> From {
        let alias = self.new_name();
        let types = self.some_types();
        let query = self.subquery(&types, outer);
        let names: Vec<String> = (0..types.len()).map(|at| format!("c{at}")).collect();
        let columns = names.iter().zip(&types);
        let columns: Vec<Column> =
            columns.map(|(name, &data_type)| Column { name: name.clone(), data_type }).collect();
        let text = SqlNode::text("(").with(query);
        let text = text.then(format!(") AS {alias} ({})", names.join(", ")));
        From { text, columns: renamed(&columns, &alias) }
    }

    /// Returns a set-returning function over the columns in scope, with one column of this type.
    pub(super) fn set_function(&mut self, data_type: Type, names: &Names) -> Option<SqlNode> {
        let templates: &[(&str, &[Type])] = match data_type {
            Type::Integer => &[
                ("generate_series(1, @ % 4)", &[Type::Integer]),
                ("generate_series(@ % 3, 4, 2)", &[Type::Integer]),
                ("generate_series(3, 1, -1 - abs(@ % 2))", &[Type::Integer]),
                ("generate_subscripts(@, 1)", &[Type::Texts]),
                ("unnest(@)", &[Type::Integers]),
            ],
            Type::Text => &[
                ("unnest(@)", &[Type::Texts]),
                ("regexp_split_to_table(@, 'a')", &[Type::Text]),
                ("string_to_table(@, @)", &[Type::Text, Type::Text]),
            ],
            Type::Numeric => &[("generate_series(0.5, (@ % 3)::numeric, 0.5)", &[Type::Integer])],
            Type::Timestamp => {
                &[("generate_series(@, timestamp '2020-02-14', '1 day')", &[Type::Timestamp])]
            }
            Type::Json => &[("jsonb_array_elements('[1, 2]' || @)", &[Type::Json])],
            Type::Texts => &[("regexp_matches(@, '(.)(a)?', 'g')", &[Type::Text])],
            _ => return None,
        };
        let (template, types) = *self.chance.one_of(templates);
        let mut texts = template.split('@');
        let mut piece = SqlNode::text(texts.next().unwrap_or_default());
        for (&of, text) in types.iter().zip(texts) {
            let argument = self.expression(of, names, 1);
            piece = piece.with(argument).then(text);
        }
        Some(piece)
    }

    fn function(&mut self, outer: &[Column]) -> From {
        const OF_SETS: [Type; 6] =
            [Type::Integer, Type::Text, Type::Numeric, Type::Timestamp, Type::Json, Type::Texts];
        let alias = self.new_name();
        let names = Names { outer: outer.to_vec(), ..Names::default() };
        let several = self.chance.percent(25);
        let mut calls = Vec::new();
        let mut columns = Vec::new();
        for at in 0..=usize::from(several) {
            let data_type = *self.chance.one_of(&OF_SETS);
            if let Some(call) = self.set_function(data_type, &names) {
                calls.push(call);
                columns.push(Column { name: format!("c{at}"), data_type });
            }
        }
        let mut text = match several {
            true => SqlNode::text("ROWS FROM (").list(calls, ", ").then(")"),
            false => SqlNode::default().list(calls, ", "),
        };
        if self.chance.percent(30) {
            text = text.then(" WITH ORDINALITY");
            columns.push(Column { name: "n".to_owned(), data_type: Type::Bigint });
        }
        let named: Vec<&str> = columns.iter().map(|column| &*column.name).collect();
        let text = text.then(format!(" AS {alias} ({})", named.join(", ")));
        From { text, columns: renamed(&columns, &alias) }
    }

    fn relation(&mut self, outer: &[Column]) -> From {
        let alias = self.new_name();
        if !self.with.is_empty() && self.chance.percent(40) {
            let (name, columns) = self.chance.one_of(&self.with).clone();
            let text = SqlNode::text(format!("{name} AS {alias}"));
            return From { text, columns: renamed(&columns, &alias) };
        }
        match self.chance.below(10) {
            0 | 1 if self.may_nest() => {
                let outer: Vec<Column> =
                    outer.iter().filter(|column| !column.name.contains('(')).cloned().collect();
                self.derived(&outer)
            }
            3 if self.chance.percent(50) => {
                let outer: Vec<Column> =
                    outer.iter().filter(|column| !column.name.contains('(')).cloned().collect();
                self.function(&outer)
            }
            2 => {
                let (from, to) = (self.chance.between(-1, 2), self.chance.between(0, 5));
                let text = format!("generate_series({from}, {to}) AS {alias} (c0)");
                let column = Column { name: "c0".to_owned(), data_type: Type::Integer };
                From { text: SqlNode::text(text), columns: renamed(&[column], &alias) }
            }
            _ => {
                let table: &Table = self.chance.one_of(&self.schema.tables);
                let text = SqlNode::text(format!("{} AS {alias}", table.name));
                From { text, columns: renamed(&table.columns, &alias) }
            }
        }
    }
}

/// Returns columns qualified with their relation.
pub(super) fn renamed(columns: &[Column], relation: &str) -> Vec<Column> {
    let with = |column: &Column| Column {
        name: format!("{relation}.{}", column.name),
        data_type: column.data_type,
    };
    columns.iter().map(with).collect()
}
