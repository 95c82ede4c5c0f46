//! What the entries of FROM and their columns are called in the text.
//!
//! Source: PostgreSQL's `set_rtable_names`, `set_using_names`, `set_relation_column_names`.

use crate::ast::{Ident, JoinCondition, JoinKind, TableAlias, TableRef};
use crate::binder::notes::{EntryKind, entry_position};
use crate::deparse::Writer;

/// An entry of FROM.
pub(super) struct Entry {
    /// The name that it goes by in the text, unlike all others; `None` for the whole of a join.
    pub(super) name: Option<String>,
    /// The name that it goes by in the tree.
    pub(super) known_as: String,
    /// Its columns, as they are called in the text.
    pub(super) columns: Vec<String>,
    /// Whether the columns are listed behind the name.
    pub(super) lists_columns: bool,
}

impl<'a> Writer<'a> {
    /// Gives the entries of a FROM clause names; returns how many names there were before.
    pub(super) fn enter(&mut self, from: &'a [TableRef]) -> usize {
        let before = self.taken.len();
        from.iter().for_each(|entry| self.name_entry(entry));
        from.iter().for_each(|entry| self.name_merged(entry));
        before
    }

    /// Forgets the names since.
    pub(super) fn leave(&mut self, before: usize) {
        self.taken.truncate(before);
    }

    /// Returns a name that no entry around has.
    fn unique(&mut self, name: &str) -> String {
        let mut found = name.to_owned();
        let mut number = 0;
        while self.taken.contains(&found) {
            number += 1;
            found = format!("{name}_{number}");
        }
        self.taken.push(found.clone());
        found
    }

    fn name_entry(&mut self, entry: &'a TableRef) {
        let at = entry_position(entry);
        match entry {
            TableRef::Join { left, right, condition, .. } => {
                self.name_entry(left);
                self.name_entry(right);
                if let JoinCondition::Using { alias: Some(alias), .. } = condition {
                    self.add(at, &alias.value, None);
                }
            }
            TableRef::Renamed { join, alias } => {
                self.name_entry(join);
                self.add(at, &alias.name.value, Some(alias));
            }
            TableRef::Table { name, alias, .. } => {
                let now = match self.notes.entries.get(&at).map(|note| &note.kind) {
                    Some(EntryKind::Relation(oid)) => self.now_called(*oid),
                    _ => None,
                };
                let known_as = &name.name.value;
                let name = alias.as_ref().map(|alias| alias.name.value.clone());
                let name = name.or(now).unwrap_or_else(|| known_as.clone());
                self.add(at, &name, alias.as_ref());
                if let (None, Some(entry)) = (alias, self.entries.get_mut(&at)) {
                    entry.known_as.clone_from(known_as);
                }
            }
            TableRef::Subquery { alias, .. } => {
                let name = alias.as_ref().map_or("unnamed_subquery", |alias| &alias.name.value);
                self.add(at, name, alias.as_ref());
            }
            TableRef::Function(function) => {
                let first = function.calls.first();
                let own = first.map_or("", |one| one.call.name.name.value.as_str());
                let name = function.alias.as_ref().map_or(own, |alias| &alias.name.value);
                self.add(at, name, function.alias.as_ref());
                if let Some(entry) = self.entries.get_mut(&at) {
                    entry.lists_columns = true;
                }
            }
        }
    }

    fn now_called(&self, oid: u32) -> Option<String> {
        let catalog = self.reader.catalog;
        let table = catalog.table(oid).map(|table| table.name.clone());
        table.or_else(|| catalog.view(oid).map(|view| view.name.clone()))
    }

    fn add(&mut self, at: usize, name: &str, alias: Option<&TableAlias>) {
        let renamed: &[Ident] = alias.map_or(&[], |alias| &alias.columns);
        let mut columns: Vec<String> = Vec::new();
        let mut lists_columns = !renamed.is_empty();
        if let Some(note) = self.notes.entries.get(&at) {
            let is_relation = matches!(note.kind, EntryKind::Relation(_) | EntryKind::System(_));
            let mut changed = false;
            for (index, (known, now, _)) in note.columns.iter().enumerate() {
                let wanted = match renamed.get(index) {
                    Some(_) => known,
                    None => now,
                };
                let shown = distinct(wanted, &columns);
                changed |= shown != *now;
                columns.push(shown);
            }
            if is_relation {
                lists_columns = changed;
                let later = note.later.iter().filter(|_| changed);
                columns.extend(later.cloned());
            }
        }
        self.level.push(at);
        let known_as = name.to_owned();
        let name = Some(self.unique(name));
        self.entries.insert(at, Entry { name, known_as, columns, lists_columns });
    }

    /// Gives columns that a join merges one name, where one of them was renamed since.
    fn name_merged(&mut self, entry: &'a TableRef) {
        let TableRef::Join { left, right, condition, .. } = entry else {
            if let TableRef::Renamed { join, .. } = entry {
                self.name_merged(join);
            }
            return;
        };
        if let JoinCondition::Using { columns, .. } = condition {
            for column in columns {
                for side in [left, right] {
                    self.keep_name(side, &column.value);
                }
            }
        }
        self.name_merged(left);
        self.name_merged(right);
    }

    /// Calls the column of a side of a join by the name that the tree knows it by.
    fn keep_name(&mut self, side: &TableRef, name: &str) {
        if let TableRef::Join { left, right, .. } = side {
            self.keep_name(left, name);
            return self.keep_name(right, name);
        }
        let at = entry_position(side);
        let (Some(note), Some(entry)) = (self.notes.entries.get(&at), self.entries.get_mut(&at))
        else {
            return;
        };
        let Some(index) = note.columns.iter().position(|(known, ..)| known == name) else {
            return;
        };
        if entry.columns[index] != name {
            name.clone_into(&mut entry.columns[index]);
            if !entry.lists_columns {
                entry.columns.extend(note.later.iter().cloned());
            }
            entry.lists_columns = true;
        }
    }

    /// Returns the columns that NATURAL merges, as the tree knows them.
    pub(super) fn natural(&self, left: &TableRef, right: &TableRef) -> Vec<String> {
        let right = self.names_of(right);
        self.names_of(left).into_iter().filter(|name| right.contains(name)).collect()
    }

    /// Returns the names of the columns of an entry, as the tree knows them.
    fn names_of(&self, entry: &TableRef) -> Vec<String> {
        if let TableRef::Join { left, right, .. } = entry {
            let mut names = self.names_of(left);
            for name in self.names_of(right) {
                if !names.contains(&name) {
                    names.push(name);
                }
            }
            return names;
        }
        let note = self.notes.entries.get(&entry_position(entry));
        note.map_or(Vec::new(), |note| {
            note.columns.iter().map(|(known, ..)| known.clone()).collect()
        })
    }
}

/// Returns the word for a join that has a condition, or is to have none.
pub(super) fn join_word(kind: JoinKind, has_condition: bool) -> &'static str {
    match kind {
        JoinKind::Inner | JoinKind::Cross if has_condition => " JOIN ",
        JoinKind::Inner | JoinKind::Cross => " CROSS JOIN ",
        JoinKind::Left => " LEFT JOIN ",
        JoinKind::Right => " RIGHT JOIN ",
        JoinKind::Full => " FULL JOIN ",
    }
}

fn distinct(name: &str, taken: &[String]) -> String {
    let mut found = name.to_owned();
    let mut number = 0;
    while taken.contains(&found) {
        number += 1;
        found = format!("{name}_{number}");
    }
    found
}
