//! Names that PostgreSQL chooses when a statement gives none, and which names are taken.

use std::collections::BTreeSet;

use crate::ast::TableConstraint;
use crate::catalog::Catalog;
use crate::error::{Error, Result, sqlstate};
use crate::parser;

/// The names of all tables, views, sequences and indexes of a schema, which share one name space.
#[derive(Debug)]
pub struct Taken<'a> {
    catalog: &'a Catalog,
    schema: &'a str,
    added: BTreeSet<String>,
}

impl<'a> Taken<'a> {
    /// Returns the names that a schema uses.
    pub fn of(catalog: &'a Catalog, schema: &'a str) -> Taken<'a> {
        Taken { catalog, schema, added: BTreeSet::new() }
    }

    /// Returns the catalog that has the schema.
    pub fn catalog(&self) -> &'a Catalog {
        self.catalog
    }

    /// Adds a name.
    pub fn add(&mut self, name: &str) {
        self.added.insert(name.to_owned());
    }

    /// Returns whether a name is in use.
    pub fn contains(&self, name: &str) -> bool {
        self.added.contains(name) || self.catalog.relation(self.schema, name).is_some()
    }
}

/// Returns the name of the index of a constraint: its own, or the chosen one with a number.
///
/// # Errors
///
/// 42P07 if its own is in use.
pub fn of_index(
    constraint: &TableConstraint,
    taken: &Taken<'_>,
    chosen: impl FnOnce() -> String,
) -> Result<String> {
    let Some(name) = &constraint.name else {
        return Ok(numbered(&chosen(), |candidate| taken.contains(candidate)));
    };
    if taken.contains(&name.value) {
        let message = format!("relation \"{}\" already exists", name.value);
        return Err(Error::new(sqlstate::DUPLICATE_TABLE, message));
    }
    Ok(name.value.clone())
}

/// Returns `t_pkey`.
pub fn primary_key(table: &str) -> String {
    join(table, &[], "pkey")
}

/// Returns `t_a_b_key`.
pub fn unique(table: &str, columns: &[&str]) -> String {
    join(table, columns, "key")
}

/// Returns `t_a_b_fkey`.
pub fn foreign_key(table: &str, columns: &[&str]) -> String {
    join(table, columns, "fkey")
}

/// Returns `t_a_seq`.
pub fn sequence(table: &str, column: &str) -> String {
    join(table, &[column], "seq")
}

/// Returns `t_a_b_idx`; an expression is called `expr`.
pub fn index(table: &str, columns: &[&str]) -> String {
    join(table, columns, "idx")
}

/// Returns `t_a_check`, or `t_check` for a check of several columns.
pub fn check(table: &str, columns: &[&str]) -> String {
    join(table, if columns.len() == 1 { columns } else { &[] }, "check")
}

/// Returns the name itself or with the first number from 1 that makes it free.
pub fn numbered(name: &str, taken: impl Fn(&str) -> bool) -> String {
    if !taken(name) {
        return name.to_owned();
    }
    let mut number = 1_u32;
    loop {
        let candidate = format!("{name}{number}");
        if !taken(&candidate) {
            return candidate;
        }
        number += 1;
    }
}

/// Joins the parts of a name, cut so that it fits.
fn join(table: &str, columns: &[&str], suffix: &str) -> String {
    let mut stem = table.to_owned();
    for column in columns {
        stem.push('_');
        stem.push_str(column);
    }
    let room = parser::IDENTIFIER_BYTES - suffix.len() - 1;
    while stem.len() > room {
        stem.pop();
    }
    format!("{stem}_{suffix}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_chosen_as_postgres_chooses_them() {
        assert_eq!(primary_key("t"), "t_pkey");
        assert_eq!(unique("t", &["a", "b"]), "t_a_b_key");
        assert_eq!(check("t", &["a"]), "t_a_check");
        assert_eq!(check("t", &["a", "b"]), "t_check");
        assert_eq!(primary_key(&"x".repeat(80)).len(), parser::IDENTIFIER_BYTES);
        assert_eq!(numbered("t_idx", |name| name != "t_idx2"), "t_idx2");
    }
}
