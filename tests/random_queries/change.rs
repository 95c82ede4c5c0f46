//! Generator of statements that change rows.

use crate::random_queries::expression::Names;
use crate::random_queries::from::renamed;
use crate::random_queries::query::Generator;
use crate::random_queries::schema::{Column, Table, Type};
use crate::random_queries::shrinkable_sql::SqlNode;

/// Alias of a statement's target table.
const TARGET: &str = "target_row";

impl Generator<'_> {
    /// Returns a statement that changes a table.
    pub(super) fn change(&mut self) -> SqlNode {
        let table = self.chance.one_of(&self.schema.tables).clone();
        let (piece, more) = match self.chance.below(8) {
            0 | 1 => (self.insert(&table), Vec::new()),
            2 | 3 => self.update(&table),
            4 | 5 => self.delete(&table),
            _ => return self.merge(&table),
        };
        let mut own = renamed(&table.columns, TARGET);
        own.extend(more);
        let names = Names { own, ..Names::default() };
        let types = self.some_types();
        if self.chance.percent(15) {
            return self.read_by_a_query(piece, &names, &types);
        }
        self.returning(piece, &names, &types)
    }

    /// Returns a change in WITH, and a query that may read its result.
    fn read_by_a_query(&mut self, change: SqlNode, names: &Names, types: &[Type]) -> SqlNode {
        let changed = self.new_name();
        let items = types.iter().map(|&of| {
            let value = self.expression(of, names, 1);
            SqlNode::text("CAST(").with(value).then(format!(" AS {})", of.name()))
        });
        let items = items.collect();
        let columns: Vec<Column> = types
            .iter()
            .enumerate()
            .map(|(at, &data_type)| Column { name: format!("c{at}"), data_type })
            .collect();
        let named: Vec<&str> = columns.iter().map(|column| &*column.name).collect();
        let head = format!("WITH {changed} ({}) AS (", named.join(", "));
        self.with.push((changed, columns));
        let query = self.statement_after_with();
        SqlNode::text(head)
            .with(change)
            .then(" RETURNING ")
            .list(items, ", ")
            .then(") ")
            .with(query)
    }

    fn returning(&mut self, statement: SqlNode, names: &Names, types: &[Type]) -> SqlNode {
        if self.chance.percent(60) {
            return statement;
        }
        let items = types.iter().map(|&of| self.expression(of, names, 1)).collect();
        statement.maybe(SqlNode::text(" RETURNING ").list(items, ", "))
    }

    fn insert(&mut self, table: &Table) -> SqlNode {
        let mut columns: Vec<Column> = table.columns.clone();
        if self.chance.percent(40) {
            columns.remove(self.chance.below(columns.len()));
        }
        let names: Vec<&str> = columns.iter().map(|column| &*column.name).collect();
        let into = format!("INSERT INTO {} AS {TARGET} ({}) ", table.name, names.join(", "));
        let types: Vec<_> = columns.iter().map(|column| column.data_type).collect();
        if self.chance.percent(40) {
            return SqlNode::text(into).with(self.subquery(&types, &[]));
        }
        let none = Names::default();
        let rows = (0..=self.chance.below(3)).map(|_| {
            let items = types.iter().map(|&of| match self.chance.percent(10) {
                true => SqlNode::text("DEFAULT"),
                false => self.expression(of, &none, self.chance_of_depth()),
            });
            let items: Vec<SqlNode> = items.collect();
            let mut row = SqlNode::text("(");
            for (at, item) in items.into_iter().enumerate() {
                row = if at > 0 { row.then(", ") } else { row }.with(item);
            }
            row.then(")")
        });
        let rows = rows.collect();
        let piece = SqlNode::text(into).then("VALUES ").list(rows, ", ");
        let Some(clause) = self.on_conflict(table) else { return piece };
        piece.maybe(clause)
    }

    fn chance_of_depth(&self) -> usize {
        1
    }

    fn on_conflict(&mut self, table: &Table) -> Option<SqlNode> {
        if self.chance.percent(30) {
            return None;
        }
        if table.key.is_empty() || self.chance.percent(30) {
            return Some(SqlNode::text(" ON CONFLICT DO NOTHING"));
        }
        let keys: Vec<&str> = table.key.iter().map(|&at| &*table.columns[at].name).collect();
        let target = format!(" ON CONFLICT ({})", keys.join(", "));
        let own = renamed(&table.columns, TARGET);
        let own = own.into_iter().chain(renamed(&table.columns, "excluded")).collect();
        let names = Names { own, ..Names::default() };
        let set = self.assignments(table, &names)?;
        let piece = SqlNode::text(target).then(" DO UPDATE SET ").with(set);
        let condition = self.condition(&names, 1);
        Some(piece.maybe(SqlNode::text(" WHERE ").with(condition)))
    }

    /// Returns assignments to columns without unique constraints, because the conflicting row
    /// would depend on the order.
    fn assignments(&mut self, table: &Table, names: &Names) -> Option<SqlNode> {
        let free: Vec<usize> = (0..table.columns.len())
            .filter(|at| !table.key.contains(at) && table.unique != Some(*at))
            .collect();
        let mut chosen: Vec<usize> = Vec::new();
        for _ in 0..=self.chance.below(3) {
            let at = if free.is_empty() { return None } else { *self.chance.one_of(&free) };
            if !chosen.contains(&at) {
                chosen.push(at);
            }
        }
        let items = chosen.iter().map(|&at| {
            let Column { name, data_type } = &table.columns[at];
            SqlNode::text(format!("{name} = ")).with(self.expression(*data_type, names, 2))
        });
        let items = items.collect();
        Some(SqlNode::default().list(items, ", "))
    }

    /// Returns an UPDATE, and the columns of another table that it reads.
    fn update(&mut self, table: &Table) -> (SqlNode, Vec<Column>) {
        let (other, condition) = self.others(table);
        let mut own = renamed(&table.columns, TARGET);
        own.extend(other.iter().filter(|other| other.row_is_known).flat_map(JoinedTable::columns));
        let names = Names { own, ..Names::default() };
        let Some(set) = self.assignments(table, &names) else { return self.delete(table) };
        let head = format!("UPDATE {} AS {TARGET} SET ", table.name);
        let piece = SqlNode::text(head).with(set);
        self.where_others(piece, " FROM ", table, other, condition)
    }

    fn delete(&mut self, table: &Table) -> (SqlNode, Vec<Column>) {
        let (other, condition) = self.others(table);
        let piece = SqlNode::text(format!("DELETE FROM {} AS {TARGET}", table.name));
        self.where_others(piece, " USING ", table, other, condition)
    }

    /// Returns another table to read, and a condition that matches at most one row of it, if it
    /// has a key.
    fn others(&mut self, table: &Table) -> (Option<JoinedTable>, SqlNode) {
        if self.chance.percent(60) {
            return (None, SqlNode::default());
        }
        let other = self.chance.one_of(&self.schema.tables).clone();
        let own = renamed(&table.columns, TARGET);
        let names = Names { own, ..Names::default() };
        let row_is_known = !other.key.is_empty() && self.chance.percent(60);
        let mut condition = SqlNode::default();
        for &at in other.key.iter().filter(|_| row_is_known) {
            let Column { name, data_type } = &other.columns[at];
            let value = self.expression(*data_type, &names, 0);
            let piece = condition.then(format!("other.{name} = ")).with(value);
            condition = piece.then(" AND ");
        }
        (Some(JoinedTable { table: other, row_is_known }), condition)
    }

    fn where_others(
        &mut self,
        piece: SqlNode,
        word: &str,
        table: &Table,
        other: Option<JoinedTable>,
        condition: SqlNode,
    ) -> (SqlNode, Vec<Column>) {
        let mut names = Names { own: renamed(&table.columns, TARGET), ..Names::default() };
        let mut piece = piece;
        let mut known = Vec::new();
        if let Some(other) = &other {
            names.own.extend(other.columns());
            piece = piece.then(format!("{word}{} AS other", other.table.name));
            if other.row_is_known {
                known = other.columns();
                let more = self.condition(&names, 1);
                return (piece.then(" WHERE ").with(condition).with(more), known);
            }
        }
        let condition = self.condition(&names, 2);
        (piece.maybe(SqlNode::text(" WHERE ").with(condition)), known)
    }

    fn merge(&mut self, table: &Table) -> SqlNode {
        let types = self.some_types();
        let names: Vec<String> = (0..types.len()).map(|at| format!("c{at}")).collect();
        let columns = names.iter().zip(&types);
        let columns: Vec<Column> =
            columns.map(|(name, &data_type)| Column { name: name.clone(), data_type }).collect();
        let source = self.subquery(&types, &[]);
        let head = format!("MERGE INTO {} AS {TARGET} USING (", table.name);
        let piece = SqlNode::text(head).with(source);
        let piece = piece.then(format!(") AS source ({}) ON ", names.join(", ")));
        let of_source = renamed(&columns, "source");
        let own = renamed(&table.columns, TARGET);
        let pairs: Vec<(&Column, &Column)> = own
            .iter()
            .flat_map(|target| of_source.iter().map(move |source| (target, source)))
            .filter(|(target, source)| target.data_type == source.data_type)
            .collect();
        let both = own.iter().chain(&of_source).cloned().collect();
        let both = Names { own: both, ..Names::default() };
        let condition = match pairs.is_empty() || self.chance.percent(30) {
            true => self.condition(&both, 1),
            false => {
                let (target, source) = *self.chance.one_of(&pairs);
                SqlNode::text(format!("{} = {}", target.name, source.name))
            }
        };
        let mut piece = piece.with(condition);
        for _ in 0..=self.chance.below(3) {
            piece = piece.maybe(self.merge_action(table, &both, &of_source));
        }
        piece.then(" WHEN MATCHED THEN DO NOTHING")
    }

    fn merge_action(&mut self, table: &Table, both: &Names, of_source: &[Column]) -> SqlNode {
        let inserts = self.chance.percent(40);
        let names = match inserts {
            true => Names { own: of_source.to_vec(), ..Names::default() },
            false => both.clone(),
        };
        let mut piece = SqlNode::text(if inserts { " WHEN NOT MATCHED" } else { " WHEN MATCHED" });
        if self.chance.percent(60) {
            piece = piece.then(" AND ").with(self.condition(&names, 1));
        }
        let action = match (inserts, self.chance.below(4)) {
            (_, 0) => SqlNode::text("DO NOTHING"),
            (false, 1) => SqlNode::text("DELETE"),
            (false, _) => match self.assignments(table, &names) {
                Some(set) => SqlNode::text("UPDATE SET ").with(set),
                None => SqlNode::text("DELETE"),
            },
            (true, _) => {
                let named: Vec<&str> = table.columns.iter().map(|column| &*column.name).collect();
                let head = format!("INSERT ({}) VALUES (", named.join(", "));
                let mut piece = SqlNode::text(head);
                for (at, column) in table.columns.iter().enumerate() {
                    let value = self.expression(column.data_type, &names, 1);
                    piece = if at > 0 { piece.then(", ") } else { piece }.with(value);
                }
                piece.then(")")
            }
        };
        piece.then(" THEN ").with(action)
    }
}

/// A table that a change reads in addition to its target.
struct JoinedTable {
    table: Table,
    /// A row of the target matches at most one row of it, so that the result is determined.
    row_is_known: bool,
}

impl JoinedTable {
    fn columns(&self) -> Vec<Column> {
        renamed(&self.table.columns, "other")
    }
}
