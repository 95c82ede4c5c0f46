//! Output of FROM clauses as SQL text.
//!
//! Source: PostgreSQL's `get_from_clause` and `get_from_clause_item` (ruleutils.c).

use types::DataType;
use types::function::quote_ident;

use crate::ast::{
    FromCall, Ident, JoinQualifier, JoinType, SystemTime, TableFunction, TableRef, TableSample,
    TypeName,
};
use crate::binder::resolution_notes::{EntryKind, entry_position};
use crate::deparse::range_table::join_word;
use crate::deparse::{ColumnNaming, STEP, SqlWriter};

impl<'a> SqlWriter<'a> {
    /// Writes a FROM clause.
    pub(super) fn write_from(&mut self, from: &'a [TableRef]) {
        for (at, entry) in from.iter().enumerate() {
            if at == 0 {
                self.keyword(" FROM ", -STEP, STEP, 2);
                self.entry(entry);
                continue;
            }
            self.push(", ");
            let text = self.aside(|writer| writer.entry(entry));
            self.wrapped(&text, false, false);
        }
    }

    fn entry(&mut self, entry: &'a TableRef) {
        let at = entry_position(entry);
        match entry {
            TableRef::Join { .. } => self.join(entry, None),
            TableRef::Renamed { join, .. } => {
                self.join(join, Some(at));
            }
            // Views have no dynamic columns.
            TableRef::Table { name, alias, system_time, sample, .. } => {
                let own = self.table_name(at, &name.name.value);
                self.push(&own.1);
                if let Some(SystemTime { form, times }) = system_time {
                    self.push(" FOR SYSTEM_TIME");
                    for (at, word) in form.words().iter().enumerate() {
                        self.push(&format!(" {word}"));
                        if let Some(time) = times.get(at) {
                            self.push(" ");
                            let node = self.value(time, Some(DataType::Timestamptz.into()));
                            self.write(&node, false);
                        }
                    }
                }
                self.alias(at, alias.is_some(), &own.0);
                self.column_list(at);
                if let Some(sample) = sample {
                    self.sample(sample);
                }
            }
            TableRef::Subquery { query, lateral, alias } => {
                self.push(if *lateral { "LATERAL (" } else { "(" });
                self.subquery(query, ColumnNaming::OWN);
                self.push(")");
                self.alias(at, alias.is_some(), "unnamed_subquery");
                self.column_list(at);
            }
            TableRef::Function(function) => {
                let before = self.used.len();
                let text = self.aside(|writer| writer.function(function, at));
                let own = &self.level;
                let lateral = self.used[before..].iter().any(|used| own.contains(used));
                self.push(if lateral { "LATERAL " } else { "" });
                self.push(&text);
            }
        }
    }

    /// Returns the name of a table, and its text in FROM.
    fn table_name(&self, at: usize, written: &str) -> (String, String) {
        let catalog = self.reader.catalog;
        let named = match self.notes.entries.get(&at).map(|note| &note.kind) {
            Some(EntryKind::Relation(oid)) => {
                let table = catalog.table(*oid).map(|one| (&one.schema, &one.name));
                let named =
                    table.or_else(|| catalog.view(*oid).map(|one| (&one.schema, &one.name)));
                named.map(|(schema, name)| (name.clone(), self.relation_name(schema, name, *oid)))
            }
            Some(EntryKind::System(schema)) if schema != "pg_catalog" => {
                let full = format!("{}.{}", quote_ident(schema), quote_ident(written));
                Some((written.to_owned(), full))
            }
            _ => None,
        };
        named.unwrap_or_else(|| (written.to_owned(), quote_ident(written)))
    }

    /// Writes the alias of an entry, if it was written or differs from the entry's own name.
    fn alias(&mut self, at: usize, is_given: bool, own: &str) {
        let Some(entry) = self.entries.get(&at) else { return };
        let Some(name) = entry.name.clone() else { return };
        if is_given || entry.listed.is_some() || name != own {
            self.push(" ");
            self.name(&name);
        }
    }

    fn column_list(&mut self, at: usize) {
        let Some(listed) = self.entries.get(&at).and_then(|entry| entry.listed.as_ref()) else {
            return;
        };
        let columns: Vec<String> = listed.iter().map(|name| quote_ident(name)).collect();
        self.push(&format!("({})", columns.join(", ")));
    }

    fn function(&mut self, function: &'a TableFunction, at: usize) {
        let alone = match function.calls.as_slice() {
            [only] => only.definitions.is_empty() || !function.ordinality,
            _ => false,
        };
        let mut definitions: &'a [(Ident, TypeName)] = &[];
        let many = matches!(function.calls.as_slice(), [only] if is_unnest_of_many(only));
        if let (true, false, [only]) = (alone, many, function.calls.as_slice()) {
            let node = self.call(&only.call);
            self.write(&node, true);
            definitions = &only.definitions;
        } else {
            self.rows_from(&function.calls);
        }
        self.push(if function.ordinality { " WITH ORDINALITY" } else { "" });
        let own = if definitions.is_empty() { None } else { Some(definitions) };
        if let Some(entry) = self.entries.get(&at) {
            let name = entry.name.clone().unwrap_or_default();
            self.push(" ");
            self.name(&name);
        }
        match own {
            None => self.column_list(at),
            Some(definitions) => {
                self.push("(");
                self.definitions(definitions);
                self.push(")");
            }
        }
    }

    fn rows_from(&mut self, calls: &'a [FromCall]) {
        let is_unnest =
            |one: &FromCall| one.call.name.name.value == "unnest" && one.definitions.is_empty();
        if calls.iter().all(is_unnest) {
            self.push("UNNEST(");
            self.list(calls, |writer, one| {
                writer.list(&one.call.arguments, |writer, argument| {
                    let node = writer.value(&argument.value, None);
                    writer.write(&node, true);
                });
            });
            return self.push(")");
        }
        self.push("ROWS FROM(");
        self.list(calls, |writer, one| {
            let node = writer.call(&one.call);
            writer.write(&node, true);
            if !one.definitions.is_empty() {
                writer.push(" AS (");
                writer.definitions(&one.definitions);
                writer.push(")");
            }
        });
        self.push(")");
    }

    fn definitions(&mut self, definitions: &'a [(Ident, TypeName)]) {
        self.list(definitions, |writer, (name, type_name)| {
            writer.name(&name.value);
            let sql_type = writer.reader.catalog.type_named(type_name, writer.reader.path);
            let shown = sql_type
                .map_or_else(|_| type_name.sql_type.name(), |sql_type| writer.type_name(&sql_type));
            writer.push(&format!(" {shown}"));
        });
    }

    fn sample(&mut self, sample: &'a TableSample) {
        self.push(" TABLESAMPLE ");
        self.name(&sample.method.name.name.value);
        self.push(" (");
        self.list(&sample.method.arguments, |writer, argument| {
            let node = writer.value(&argument.value, Some(DataType::Float4.into()));
            writer.write(&node, false);
        });
        self.push(")");
        if let Some(seed) = &sample.seed {
            self.push(" REPEATABLE (");
            let node = self.value(seed, Some(DataType::Float8.into()));
            self.write(&node, false);
            self.push(")");
        }
    }

    /// Writes a join; `named` is the entry of its alias.
    fn join(&mut self, entry: &'a TableRef, named: Option<usize>) {
        let TableRef::Join { left, right, kind, condition } = entry else {
            return self.entry(entry);
        };
        let pretty = self.layout.pretty;
        let enclosed = !pretty || named.is_some();
        self.push(if enclosed { "(" } else { "" });
        self.entry(left);
        let using = self.merged_names(left, right, condition);
        let has_condition = !using.is_empty() || matches!(condition, JoinQualifier::On(_));
        self.keyword(join_word(*kind, has_condition), -STEP, STEP, 4);
        let in_parentheses = pretty && matches!(**right, TableRef::Join { .. });
        self.push(if in_parentheses { "(" } else { "" });
        self.entry(right);
        self.push(if in_parentheses { ")" } else { "" });
        if !using.is_empty() {
            let columns: Vec<String> = using.iter().map(|name| quote_ident(name)).collect();
            self.push(&format!(" USING ({})", columns.join(", ")));
            if let JoinQualifier::Using { alias: Some(alias), .. } = condition {
                self.push(" AS ");
                self.name(&alias.value);
            }
        } else if let JoinQualifier::On(on) = condition {
            self.push(" ON ");
            self.push(if pretty { "" } else { "(" });
            let node = self.value(on, None);
            self.write(&node, false);
            self.push(if pretty { "" } else { ")" });
        } else if !matches!(kind, JoinType::Inner | JoinType::Cross) {
            self.push(" ON TRUE");
        }
        self.push(if enclosed { ")" } else { "" });
        if let Some(at) = named {
            self.alias(at, true, "");
            self.column_list(at);
        }
    }
}

fn is_unnest_of_many(one: &FromCall) -> bool {
    one.call.name.name.value == "unnest" && one.call.arguments.len() > 1
}
