//! Random queries.

use crate::random_queries::chance::Chance;
use crate::random_queries::expression::Names;
use crate::random_queries::piece::Piece;
use crate::random_queries::schema::{Column, Schema, Table, Type};

/// Draws queries over the tables of a schema.
pub(super) struct Generator<'a> {
    pub(super) chance: &'a mut Chance,
    pub(super) schema: &'a Schema,
    /// How many queries are around the present one.
    depth: usize,
    /// Subqueries that may still be drawn in this statement.
    subqueries_left: usize,
    names_given: usize,
    /// Queries of WITH that are in sight.
    with: Vec<(String, Vec<Column>)>,
}

/// What stands in FROM.
struct From {
    text: Piece,
    columns: Vec<Column>,
}

impl<'a> Generator<'a> {
    /// Returns a generator.
    pub(super) fn new(chance: &'a mut Chance, schema: &'a Schema) -> Generator<'a> {
        let subqueries_left = chance.below(7);
        let (depth, names_given, with) = (0, 0, Vec::new());
        Generator { chance, schema, depth, subqueries_left, names_given, with }
    }

    /// Returns whether a subquery may be put here; counts it.
    pub(super) fn may_nest(&mut self) -> bool {
        if self.depth >= 3 || self.subqueries_left == 0 {
            return false;
        }
        self.subqueries_left -= 1;
        true
    }

    fn new_name(&mut self) -> String {
        self.names_given += 1;
        format!("q{}", self.names_given)
    }

    /// Returns the types of one to three columns.
    pub(super) fn some_types(&mut self) -> Vec<Type> {
        (0..=self.chance.below(3)).map(|_| *self.chance.one_of(&Type::ALL)).collect()
    }

    /// Returns a whole query, and whether the order of its rows is known.
    pub(super) fn statement(&mut self) -> (Piece, bool) {
        let mut piece = Piece::default();
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

    fn with_clause(&mut self) -> Piece {
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
        Piece::text(head).with(query).then(") ")
    }

    /// ORDER BY all columns, so that rows which tie are the same, and perhaps LIMIT.
    fn order_and_limit(&mut self, width: usize) -> Piece {
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
        let order = Piece::text(format!(" ORDER BY {}", keys.join(", ")));
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
        order.maybe(Piece::text(limit))
    }

    /// Returns a query in parentheses' stead, of these types.
    pub(super) fn subquery(&mut self, types: &[Type], outer: &[Column]) -> Piece {
        self.depth += 1;
        let mut query = self.query(types, outer);
        if self.chance.percent(10) {
            query = query.with(self.order_and_limit(types.len()));
        }
        self.depth -= 1;
        query
    }

    /// Returns a query of one row at most, but for some that may have several.
    pub(super) fn scalar_subquery(&mut self, data_type: Type, outer: &[Column]) -> Piece {
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

    fn query(&mut self, types: &[Type], outer: &[Column]) -> Piece {
        match self.chance.below(12) {
            0 | 1 if self.depth < 3 => {
                let operation = *self.chance.one_of(&["UNION", "INTERSECT", "EXCEPT"]);
                let all = *self.chance.one_of(&["", " ALL"]);
                self.depth += 1;
                let left = self.query(types, outer);
                let right = self.query(types, outer);
                self.depth -= 1;
                let piece = Piece::text("(").or_only(left);
                piece.then(format!(") {operation}{all} (")).or_only(right).then(")")
            }
            2..=4 => {
                let grouped = self.chance.percent(75);
                self.aggregated(types, outer, grouped)
            }
            5 if self.depth > 0 => self.values(types, outer),
            _ => self.plain(types, outer),
        }
    }

    fn values(&mut self, types: &[Type], outer: &[Column]) -> Piece {
        let names = Names { outer: outer.to_vec(), ..Names::default() };
        let rows = (0..=self.chance.below(3)).map(|_| {
            let items = types
                .iter()
                .map(|&of| {
                    let value = self.expression(of, &names, 0);
                    Piece::text("CAST(").with(value).then(format!(" AS {})", of.name()))
                })
                .collect();
            Piece::text("(").list(items, ", ").then(")")
        });
        let rows = rows.collect();
        Piece::text("VALUES ").list(rows, ", ")
    }

    fn plain(&mut self, types: &[Type], outer: &[Column]) -> Piece {
        let from = self.from(outer);
        let windowed = self.chance.percent(12).then(|| from.columns.clone());
        let names =
            Names { own: from.columns.clone(), outer: outer.to_vec(), aggregated: None, windowed };
        let distinct = if self.chance.percent(15) { "DISTINCT " } else { "" };
        let items: Vec<Piece> = types.iter().map(|&of| self.expression(of, &names, 2)).collect();
        let on = self.chance.percent(5) && distinct.is_empty() && types.len() > 1;
        let mut piece = Piece::text(format!("SELECT {distinct}"));
        // All outputs are ordered by, so which row of a group comes first is known.
        let mut order = Piece::default();
        if on && self.depth == 0 {
            let first = items[0].to_string();
            // A number here would be a position.
            let constant = !first.contains(|c: char| c.is_alphabetic()) || first.starts_with('\'');
            if !constant && !first.contains("SELECT") && !first.contains("VALUES") {
                piece = piece.then(format!("DISTINCT ON ({first}) "));
                let keys: Vec<String> = items.iter().map(Piece::to_string).collect();
                if keys.iter().all(|key| key.contains("q")) {
                    order = Piece::text(format!(" ORDER BY {}", keys.join(", ")));
                }
            }
        }
        let needs_order = !order.to_string().is_empty();
        if !needs_order {
            piece = Piece::text(format!("SELECT {distinct}"));
        }
        piece = piece
            .list(items, ", ")
            .with(from.text)
            .maybe(self.filter(&Names { windowed: None, ..names }));
        if needs_order {
            return Piece::text("SELECT * FROM (").with(piece.with(order)).then(") AS first_rows");
        }
        piece
    }

    fn filter(&mut self, names: &Names) -> Piece {
        if self.chance.percent(25) {
            return Piece::default();
        }
        Piece::text(" WHERE ").with(self.condition(names, 2))
    }

    /// A query with aggregates: grouped, or of one row.
    fn aggregated(&mut self, types: &[Type], outer: &[Column], grouped: bool) -> Piece {
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
                // Constants would be positions, and subqueries are not the same twice.
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
        let piece = Piece::text("SELECT ").list(items, ", ").with(from.text);
        let mut piece = piece.maybe(self.filter(&below));
        let key_names: Vec<Piece> = keys.iter().map(|key| Piece::text(key.name.clone())).collect();
        if !keys.is_empty() {
            let how = match self.chance.below(10) {
                0 if self.has_grouping_sets() => "ROLLUP ",
                1 if self.has_grouping_sets() => "CUBE ",
                _ => "",
            };
            let list = match how {
                "" => Piece::text(" GROUP BY ").list(key_names, ", "),
                how => Piece::text(format!(" GROUP BY {how}(")).list(key_names, ", ").then(")"),
            };
            piece = piece.maybe(list);
        }
        if self.chance.percent(25) {
            let names = Names { windowed: None, ..names };
            let having = Piece::text(" HAVING ").with(self.condition(&names, 1));
            piece = piece.maybe(having);
        }
        piece
    }

    fn has_grouping_sets(&self) -> bool {
        false
    }

    fn from(&mut self, outer: &[Column]) -> From {
        let count = match self.chance.below(20) {
            0 if self.depth > 0 => return From { text: Piece::default(), columns: Vec::new() },
            0..=9 => 1,
            10..=16 => 2,
            17 | 18 => 3,
            _ => 4,
        };
        let first = self.relation(outer);
        let mut text = Piece::text(" FROM ").with(first.text);
        let mut columns = first.columns;
        for _ in 1..count {
            let right = self.relation(outer);
            let clause = self.join(&columns, &right, outer);
            text = text.maybe(clause.0);
            if clause.1 {
                columns.extend(right.columns);
            }
        }
        From { text, columns }
    }

    /// Returns the join of what is there with a relation, and whether its columns are in sight.
    fn join(&mut self, left: &[Column], right: &From, outer: &[Column]) -> (Piece, bool) {
        let relation = right.text.clone();
        let kind = match self.chance.below(10) {
            0 => return (Piece::text(" CROSS JOIN ").with(relation), true),
            1 => return (Piece::text(" NATURAL JOIN ").with(relation), true),
            2..=4 => " JOIN ",
            5 | 6 => " LEFT JOIN ",
            7 => " RIGHT JOIN ",
            _ => " FULL JOIN ",
        };
        let join = Piece::text(kind).with(relation).then(" ON ");
        let mut equalities: Vec<Piece> = Vec::new();
        for _ in 0..=self.chance.below(2) {
            let pairs: Vec<(&Column, &Column)> = left
                .iter()
                .flat_map(|l| right.columns.iter().map(move |r| (l, r)))
                .filter(|(l, r)| l.data_type == r.data_type)
                .collect();
            if !pairs.is_empty() {
                let (l, r) = self.chance.one_of(&pairs);
                equalities.push(Piece::text(format!("{} = {}", l.name, r.name)));
            }
        }
        // A subquery over both sides of an outer join is not there.
        let mut own: Vec<Column> = right.columns.clone();
        if kind == " JOIN " || self.subqueries_left == 0 {
            own.extend(left.iter().cloned());
        }
        let names = Names { own, outer: outer.to_vec(), ..Names::default() };
        let full = kind == " FULL JOIN ";
        if equalities.is_empty() || self.chance.percent(20) && !full {
            // PostgreSQL does a full join by equalities alone.
            let condition = if full { Piece::text("true") } else { self.condition(&names, 1) };
            equalities.push(condition);
        }
        (join.list(equalities, " AND "), true)
    }

    fn relation(&mut self, _outer: &[Column]) -> From {
        let alias = self.new_name();
        if !self.with.is_empty() && self.chance.percent(40) {
            let (name, columns) = self.chance.one_of(&self.with).clone();
            let text = Piece::text(format!("{name} AS {alias}"));
            return From { text, columns: renamed(&columns, &alias) };
        }
        match self.chance.below(10) {
            0 | 1 if self.may_nest() => {
                let types = self.some_types();
                let query = self.subquery(&types, &[]);
                let names: Vec<String> = (0..types.len()).map(|at| format!("c{at}")).collect();
                let columns = names.iter().zip(&types);
                let columns: Vec<Column> = columns
                    .map(|(name, &data_type)| Column { name: name.clone(), data_type })
                    .collect();
                let text = Piece::text("(").with(query);
                let text = text.then(format!(") AS {alias} ({})", names.join(", ")));
                From { text, columns: renamed(&columns, &alias) }
            }
            2 => {
                let (from, to) = (self.chance.between(-1, 2), self.chance.between(0, 5));
                let text = format!("generate_series({from}, {to}) AS {alias} (c0)");
                let column = Column { name: "c0".to_owned(), data_type: Type::Integer };
                From { text: Piece::text(text), columns: renamed(&[column], &alias) }
            }
            _ => {
                let table: &Table = self.chance.one_of(&self.schema.tables);
                let text = Piece::text(format!("{} AS {alias}", table.name));
                From { text, columns: renamed(&table.columns, &alias) }
            }
        }
    }
}

/// Returns columns with the name of their relation before them.
pub(super) fn renamed(columns: &[Column], relation: &str) -> Vec<Column> {
    let with = |column: &Column| Column {
        name: format!("{relation}.{}", column.name),
        data_type: column.data_type,
    };
    columns.iter().map(with).collect()
}
