//! Generated names of constraints, indexes and sequences, and the names in use in a schema.

use std::collections::BTreeSet;

use crate::ast::TableConstraint;
use crate::catalog::Catalog;
use crate::error::{Error, Result};
use crate::parser;

/// The names in use in a schema: those of tables, views, sequences and indexes, which share one
/// name space.
#[derive(Debug)]
pub struct NamesInUse<'a> {
    catalog: &'a Catalog,
    schema: &'a str,
    added: BTreeSet<String>,
}

impl<'a> NamesInUse<'a> {
    /// Returns the names in use in a schema.
    pub fn of(catalog: &'a Catalog, schema: &'a str) -> NamesInUse<'a> {
        NamesInUse { catalog, schema, added: BTreeSet::new() }
    }

    /// Returns the catalog that contains the schema.
    pub fn catalog(&self) -> &'a Catalog {
        self.catalog
    }

    /// Adds a name.
    pub fn add(&mut self, name: &str) {
        self.added.insert(name.to_owned());
    }

    /// Returns whether a name is in use by a relation or a constraint.
    pub fn contains_constraint(&self, name: &str) -> bool {
        self.contains(name) || is_constraint(self.catalog, self.schema, name)
    }

    /// Returns whether a name is in use by a relation.
    pub fn contains(&self, name: &str) -> bool {
        self.added.contains(name) || self.catalog.relation(self.schema, name).is_some()
    }
}

/// Returns the name of the index of a constraint: its explicit name, or the generated one, with a
/// number if necessary.
///
/// # Errors
///
/// 42P07 if the explicit name is in use.
pub fn of_index(
    constraint: &TableConstraint,
    taken: &NamesInUse<'_>,
    chosen: impl FnOnce() -> GeneratedName,
) -> Result<String> {
    let Some(name) = &constraint.name else {
        return Ok(chosen().free(|candidate| taken.contains_constraint(candidate)));
    };
    if taken.contains(&name.value) {
        bail!(DUPLICATE_TABLE: "relation \"{}\" already exists", name.value);
    }
    Ok(name.value.clone())
}

/// A generated name, combined from the names of a table and columns.
///
/// Source: PostgreSQL's `makeObjectName` and `ChooseRelationName` (indexcmds.c).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GeneratedName {
    table: String,
    columns: Option<String>,
    label: &'static str,
}

impl GeneratedName {
    /// Returns the first unused name: without a number, or with the lowest number that makes it
    /// unused. The longer part is truncated to fit the maximum length.
    pub fn free(&self, taken: impl Fn(&str) -> bool) -> String {
        let mut label = self.label.to_owned();
        let mut number = 0_u32;
        loop {
            let candidate = self.with_label(&label);
            if !taken(&candidate) {
                return candidate;
            }
            number += 1;
            label = format!("{}{number}", self.label);
        }
    }

    fn with_label(&self, label: &str) -> String {
        let columns = self.columns.as_deref();
        let between = 1 + usize::from(columns.is_some());
        let room = parser::IDENTIFIER_BYTES - label.len() - between;
        let (mut first, mut second) = (self.table.len(), columns.map_or(0, str::len));
        while first + second > room {
            *(if first > second { &mut first } else { &mut second }) -= 1;
        }
        let table = &self.table[..self.table.floor_char_boundary(first)];
        match columns {
            Some(columns) => {
                format!("{table}_{}_{label}", &columns[..columns.floor_char_boundary(second)])
            }
            None => format!("{table}_{label}"),
        }
    }
}

/// Returns `t_pkey`.
pub fn primary_key(table: &str) -> GeneratedName {
    join(table, &[], "pkey")
}

/// Returns `t_a_b_key`.
pub fn unique(table: &str, columns: &[&str]) -> GeneratedName {
    join(table, columns, "key")
}

/// Returns `t_a_b_fkey`.
pub fn foreign_key(table: &str, columns: &[&str]) -> GeneratedName {
    join(table, columns, "fkey")
}

/// Returns `t_a_seq`.
pub fn sequence(table: &str, column: &str) -> GeneratedName {
    join(table, &[column], "seq")
}

/// Returns `t_a_b_idx`; `expr` stands for an expression.
pub fn index(table: &str, columns: &[&str]) -> GeneratedName {
    join(table, columns, "idx")
}

/// Returns `t_a_check`, or `t_check` for a check of several columns.
pub fn check(table: &str, columns: &[&str]) -> GeneratedName {
    join(table, if columns.len() == 1 { columns } else { &[] }, "check")
}

/// Returns the name itself or with the lowest number from 1 that makes it unused, truncated to the
/// maximum length of a name.
pub fn numbered(name: &str, taken: impl Fn(&str) -> bool) -> String {
    let mut candidate = name.to_owned();
    let mut number = 0_u32;
    while taken(&candidate) {
        number += 1;
        let digits = number.to_string();
        let room = parser::IDENTIFIER_BYTES.saturating_sub(digits.len()).min(name.len());
        candidate = format!("{}{digits}", &name[..name.floor_char_boundary(room)]);
    }
    candidate
}

fn join(table: &str, columns: &[&str], label: &'static str) -> GeneratedName {
    let columns = (!columns.is_empty()).then(|| columns.join("_"));
    // The name cannot contain anything after this number of bytes.
    let cut = |mut columns: String| {
        columns.truncate(columns.floor_char_boundary(2 * parser::IDENTIFIER_BYTES));
        columns
    };
    GeneratedName { table: table.to_owned(), columns: columns.map(cut), label }
}

/// Returns whether a constraint of a table or a domain of a schema has a name.
pub fn is_constraint(catalog: &Catalog, schema: &str, name: &str) -> bool {
    catalog.schema(schema).is_some_and(|schema| schema.constraints.contains_key(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_names_match_postgresql() {
        let free = |name: GeneratedName| name.free(|_| false);
        assert_eq!(free(primary_key("t")), "t_pkey");
        assert_eq!(free(unique("t", &["a", "b"])), "t_a_b_key");
        assert_eq!(free(check("t", &["a"])), "t_a_check");
        assert_eq!(free(check("t", &["a", "b"])), "t_check");
        assert_eq!(free(primary_key(&"x".repeat(80))).len(), parser::IDENTIFIER_BYTES);
        assert_eq!(index("t", &[]).free(|name| name != "t_idx2"), "t_idx2");
        assert_eq!(numbered("a", |name| name != "a2"), "a2");
    }

    #[test]
    fn generated_name_truncates_longer_component() {
        let (table, column) = ("t".repeat(40), "c".repeat(50));
        let name = unique(&table, &[&column]);
        assert_eq!(name.free(|_| false), format!("{}_{}_key", &table[..29], &column[..29]));
        let second = name.free(|name| !name.ends_with("key1"));
        assert_eq!(second, format!("{}_{}_key1", &table[..29], &column[..28]));
        let name = unique("t", &[&"é".repeat(40)]);
        assert_eq!(name.free(|_| false), format!("t_{}_key", "é".repeat(28)));
        let long = "é".repeat(31);
        assert_eq!(numbered(&long, |name| name == long), format!("{}1", "é".repeat(31)));
    }
}
