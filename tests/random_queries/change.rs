//! Random statements that change rows.

use crate::random_queries::expression::Names;
use crate::random_queries::piece::Piece;
use crate::random_queries::query::{Generator, renamed};
use crate::random_queries::schema::{Column, Table};

/// What a statement's target is called.
const TARGET: &str = "target_row";

impl Generator<'_> {
    /// Returns a statement that changes a table, and the table's name.
    pub(super) fn change(&mut self) -> (Piece, String) {
        let table = self.chance.one_of(&self.schema.tables).clone();
        let piece = match self.chance.below(6) {
            0 | 1 => self.insert(&table),
            2 | 3 => self.update(&table),
            _ => self.delete(&table),
        };
        let name = table.name.clone();
        (self.returning(piece, &table), name)
    }

    fn returning(&mut self, statement: Piece, table: &Table) -> Piece {
        if self.chance.percent(60) {
            return statement;
        }
        let own = renamed(&table.columns, TARGET);
        let names = Names { own, ..Names::default() };
        let types = self.some_types();
        let items = types.iter().map(|&of| self.expression(of, &names, 1)).collect();
        statement.maybe(Piece::text(" RETURNING ").list(items, ", "))
    }

    fn insert(&mut self, table: &Table) -> Piece {
        let mut columns: Vec<Column> = table.columns.clone();
        if self.chance.percent(40) {
            columns.remove(self.chance.below(columns.len()));
        }
        let names: Vec<&str> = columns.iter().map(|column| &*column.name).collect();
        let into = format!("INSERT INTO {} AS {TARGET} ({}) ", table.name, names.join(", "));
        let types: Vec<_> = columns.iter().map(|column| column.data_type).collect();
        if self.chance.percent(40) {
            return Piece::text(into).with(self.subquery(&types, &[]));
        }
        let none = Names::default();
        let rows = (0..=self.chance.below(3)).map(|_| {
            let items = types.iter().map(|&of| match self.chance.percent(10) {
                true => Piece::text("DEFAULT"),
                false => self.expression(of, &none, self.chance_of_depth()),
            });
            let items: Vec<Piece> = items.collect();
            let mut row = Piece::text("(");
            for (at, item) in items.into_iter().enumerate() {
                row = if at > 0 { row.then(", ") } else { row }.with(item);
            }
            row.then(")")
        });
        let rows = rows.collect();
        let piece = Piece::text(into).then("VALUES ").list(rows, ", ");
        let Some(clause) = self.on_conflict(table) else { return piece };
        piece.maybe(clause)
    }

    fn chance_of_depth(&self) -> usize {
        1
    }

    fn on_conflict(&mut self, table: &Table) -> Option<Piece> {
        if self.chance.percent(30) {
            return None;
        }
        if table.key.is_empty() || self.chance.percent(30) {
            return Some(Piece::text(" ON CONFLICT DO NOTHING"));
        }
        let keys: Vec<&str> = table.key.iter().map(|&at| &*table.columns[at].name).collect();
        let target = format!(" ON CONFLICT ({})", keys.join(", "));
        let own = renamed(&table.columns, TARGET);
        let own = own.into_iter().chain(renamed(&table.columns, "excluded")).collect();
        let names = Names { own, ..Names::default() };
        let set = self.assignments(table, &names)?;
        let piece = Piece::text(target).then(" DO UPDATE SET ").with(set);
        let condition = self.condition(&names, 1);
        Some(piece.maybe(Piece::text(" WHERE ").with(condition)))
    }

    /// Columns that are neither key nor unique: which row would be in the way when, is not known.
    fn assignments(&mut self, table: &Table, names: &Names) -> Option<Piece> {
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
            Piece::text(format!("{name} = ")).with(self.expression(*data_type, names, 2))
        });
        let items = items.collect();
        Some(Piece::default().list(items, ", "))
    }

    fn update(&mut self, table: &Table) -> Piece {
        let own = renamed(&table.columns, TARGET);
        let names = Names { own, ..Names::default() };
        let Some(set) = self.assignments(table, &names) else { return self.delete(table) };
        let head = format!("UPDATE {} AS {TARGET} SET ", table.name);
        let piece = Piece::text(head).with(set);
        self.where_others(piece, " FROM ", names)
    }

    fn delete(&mut self, table: &Table) -> Piece {
        let own = renamed(&table.columns, TARGET);
        let names = Names { own, ..Names::default() };
        let piece = Piece::text(format!("DELETE FROM {} AS {TARGET}", table.name));
        self.where_others(piece, " USING ", names)
    }

    /// Adds a condition, perhaps over another table as well.
    fn where_others(&mut self, piece: Piece, word: &str, mut names: Names) -> Piece {
        let mut piece = piece;
        if self.chance.percent(30) {
            let other = self.chance.one_of(&self.schema.tables).clone();
            names.own.extend(renamed(&other.columns, "other"));
            piece = piece.then(format!("{word}{} AS other", other.name));
        }
        let condition = self.condition(&names, 2);
        piece.maybe(Piece::text(" WHERE ").with(condition))
    }
}
