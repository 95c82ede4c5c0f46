//! Unique names of the entries of FROM and of their columns in the text.
//!
//! Source: PostgreSQL's `set_rtable_names`, `set_using_names`, `set_relation_column_names`.

use crate::ast::{Ident, JoinQualifier, JoinType, TableAlias, TableRef};
use crate::binder::resolution_notes::{EntryKind, entry_position};
use crate::deparse::SqlWriter;

/// An entry of FROM.
pub(super) struct RangeTableEntry {
    /// Its name in the text, which is unique; `None` for a join without an alias.
    pub(super) name: Option<String>,
    /// Its name in the tree.
    pub(super) known_as: String,
    /// The names in the text of the columns that the tree knows.
    pub(super) columns: Vec<String>,
    /// The column list after the name, if one is written: its columns, including those added
    /// later.
    pub(super) listed: Option<Vec<String>>,
    /// The columns that the tree does not know, because they were added later.
    later: Vec<String>,
}

/// A column of an entry of FROM.
struct OutputColumnName {
    /// Its name in the text.
    name: String,
    /// Its name in the tree, if the tree knows it.
    known: Option<String>,
}

impl RangeTableEntry {
    /// Adds a column list.
    fn list(&mut self) {
        self.list_beside(&[]);
    }

    /// Adds a column list in which no later column has one of these names.
    fn list_beside(&mut self, taken: &[String]) {
        let mut names = self.columns.clone();
        for later in &mut self.later {
            let beside: Vec<String> = names.iter().chain(taken).cloned().collect();
            *later = distinct(later, &beside);
            names.push(later.clone());
        }
        self.listed = Some(names);
    }
}

impl<'a> SqlWriter<'a> {
    /// Assigns names to the entries of a FROM clause; returns the previous number of names.
    pub(super) fn enter(&mut self, from: &'a [TableRef]) -> usize {
        let before = self.taken.len();
        from.iter().for_each(|entry| self.name_entry(entry));
        from.iter().for_each(|entry| self.name_merged(entry));
        from.iter().for_each(|entry| self.list_renamed(entry));
        before
    }

    /// Removes the names that were assigned after `before`.
    pub(super) fn leave(&mut self, before: usize) {
        self.taken.truncate(before);
    }

    /// Returns a name that no enclosing entry has.
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
                if let JoinQualifier::Using { alias: Some(alias), .. } = condition {
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
                    entry.list();
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
        let mut later = Vec::new();
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
                later.clone_from(&note.later);
            }
        }
        self.level.push(at);
        let known_as = name.to_owned();
        let name = Some(self.unique(name));
        let mut entry = RangeTableEntry { name, known_as, columns, listed: None, later };
        if lists_columns {
            entry.list();
        }
        self.entries.insert(at, entry);
    }

    /// Assigns the same name to columns that a join merges, where one of them was renamed.
    fn name_merged(&mut self, entry: &'a TableRef) {
        let TableRef::Join { left, right, condition, .. } = entry else {
            if let TableRef::Renamed { join, .. } = entry {
                self.name_merged(join);
            }
            return;
        };
        for column in &self.merged_names(left, right, condition) {
            for side in [left, right] {
                self.keep_name(side, column);
            }
        }
        self.name_merged(left);
        self.name_merged(right);
    }

    /// Returns the names in the tree of the columns that a join merges.
    pub(super) fn merged_names(
        &self,
        left: &TableRef,
        right: &TableRef,
        condition: &JoinQualifier,
    ) -> Vec<String> {
        match condition {
            JoinQualifier::Using { columns, .. } => {
                columns.iter().map(|column| column.value.clone()).collect()
            }
            JoinQualifier::Natural => self.natural(left, right),
            _ => Vec::new(),
        }
    }

    /// Sets the name of a column on one side of a join to its name in the tree, and renames others
    /// that have it.
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
        let kept = note.columns.iter().position(|(known, ..)| known == name);
        let is_other = |index: usize| Some(index) != kept && entry.columns[index] == name;
        let other = (0..entry.columns.len()).find(|index| is_other(*index));
        if let Some(other) = other {
            let taken: Vec<String> = entry.columns.iter().chain(&entry.later).cloned().collect();
            entry.columns[other] = distinct(name, &taken);
        }
        let is_renamed = kept.is_some_and(|index| entry.columns[index] != name);
        if let Some(index) = kept {
            name.clone_into(&mut entry.columns[index]);
        }
        let is_later = entry.later.iter().any(|later| later == name);
        if other.is_some() || is_renamed || is_later {
            entry.list_beside(&[name.to_owned()]);
        }
    }

    /// Adds a column list to joins with an alias, where its columns differ from the join's.
    fn list_renamed(&mut self, entry: &TableRef) {
        match entry {
            TableRef::Join { left, right, .. } => {
                self.list_renamed(left);
                self.list_renamed(right);
            }
            TableRef::Renamed { join, .. } => {
                self.list_renamed(join);
                let made = self.outputs(join);
                let Some(entry) = self.entries.get_mut(&entry_position(entry)) else { return };
                let mut own = entry.columns.iter();
                let mut taken = entry.columns.clone();
                let mut listed = Vec::with_capacity(made.len());
                for output in &made {
                    let known = output.known.as_ref().and_then(|_| own.next());
                    listed.push(known.cloned().unwrap_or_else(|| {
                        let name = distinct(&output.name, &taken);
                        taken.push(name.clone());
                        name
                    }));
                }
                let same = listed.iter().eq(made.iter().map(|output| &output.name));
                entry.listed = (!same).then_some(listed);
            }
            _ => {}
        }
    }

    /// Returns the columns of an entry in the text, in order.
    fn outputs(&self, tree: &TableRef) -> Vec<OutputColumnName> {
        if let TableRef::Join { left, right, condition, .. } = tree {
            let merged = self.merged_names(left, right, condition);
            let is_merged = |one: &OutputColumnName| {
                one.known.as_ref().is_some_and(|known| merged.contains(known))
            };
            let first = merged
                .iter()
                .map(|name| OutputColumnName { name: name.clone(), known: Some(name.clone()) });
            let sides = [self.outputs(left), self.outputs(right)].into_iter().flatten();
            return first.chain(sides.filter(|one| !is_merged(one))).collect();
        }
        let at = entry_position(tree);
        let (Some(note), Some(entry)) = (self.notes.entries.get(&at), self.entries.get(&at)) else {
            return Vec::new();
        };
        let mut known = note.columns.iter().map(|(known, ..)| known.clone());
        if let TableRef::Renamed { join, .. } = tree {
            let made = self.outputs(join).into_iter().enumerate();
            let output = |(at, made): (usize, OutputColumnName)| {
                let name = entry.listed.as_ref().and_then(|listed| listed.get(at)).cloned();
                let known = made.known.and_then(|_| known.next());
                OutputColumnName { name: name.unwrap_or(made.name), known }
            };
            return made.map(output).collect();
        }
        let names = match &entry.listed {
            Some(listed) => listed.clone(),
            None => entry.columns.iter().chain(&entry.later).cloned().collect(),
        };
        names.into_iter().map(|name| OutputColumnName { name, known: known.next() }).collect()
    }

    /// Returns the names in the tree of the columns that NATURAL merges.
    pub(super) fn natural(&self, left: &TableRef, right: &TableRef) -> Vec<String> {
        let right = self.names_of(right);
        self.names_of(left).into_iter().filter(|name| right.contains(name)).collect()
    }

    /// Returns the names in the tree of an entry's columns.
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

/// Returns the keyword of a join, given whether it has a condition.
pub(super) fn join_word(kind: JoinType, has_condition: bool) -> &'static str {
    match kind {
        JoinType::Inner | JoinType::Cross if has_condition => " JOIN ",
        JoinType::Inner | JoinType::Cross => " CROSS JOIN ",
        JoinType::Left => " LEFT JOIN ",
        JoinType::Right => " RIGHT JOIN ",
        JoinType::Full => " FULL JOIN ",
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
