//! Names that PostgreSQL chooses when a statement gives none, and which names are taken.

use std::collections::BTreeSet;

use crate::ast::TableConstraint;
use crate::catalog::Catalog;
use crate::catalog::record::TableRecord;
use crate::catalog::user_type::UserType;
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

    /// Returns whether a name is in use, by a constraint or else.
    pub fn contains_constraint(&self, name: &str) -> bool {
        self.contains(name) || is_constraint(self.catalog, self.schema, name)
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
    chosen: impl FnOnce() -> GeneratedName,
) -> Result<String> {
    let Some(name) = &constraint.name else {
        return Ok(chosen().free(|candidate| taken.contains_constraint(candidate)));
    };
    if taken.contains(&name.value) {
        let message = format!("relation \"{}\" already exists", name.value);
        return Err(Error::new(sqlstate::DUPLICATE_TABLE, message));
    }
    Ok(name.value.clone())
}

/// A name that is made of others, for what has none of its own.
///
/// Source: PostgreSQL's `makeObjectName` and `ChooseRelationName` (indexcmds.c).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GeneratedName {
    table: String,
    columns: Option<String>,
    label: &'static str,
}

impl GeneratedName {
    /// Returns the name with the first number behind it, from none, that makes it free. The longer
    /// one of its parts is cut until it fits.
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

/// Returns `t_a_b_idx`; an expression is called `expr`.
pub fn index(table: &str, columns: &[&str]) -> GeneratedName {
    join(table, columns, "idx")
}

/// Returns `t_a_check`, or `t_check` for a check of several columns.
pub fn check(table: &str, columns: &[&str]) -> GeneratedName {
    join(table, if columns.len() == 1 { columns } else { &[] }, "check")
}

/// Returns the name itself or with the first number from 1 that makes it free, cut to the length of
/// a name.
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
    // What comes after so many bytes cannot be in the name.
    let cut = |mut columns: String| {
        columns.truncate(columns.floor_char_boundary(2 * parser::IDENTIFIER_BYTES));
        columns
    };
    GeneratedName { table: table.to_owned(), columns: columns.map(cut), label }
}

/// Returns whether a constraint of a table or a domain of a schema has a name.
pub fn is_constraint(catalog: &Catalog, schema: &str, name: &str) -> bool {
    let of_table = |record: &TableRecord| {
        record.checks.iter().any(|check| check.name == name)
            || record.foreign_keys.iter().any(|key| key.name == name)
            || record.indexes.iter().any(|index| index.constraint && index.name == name)
            || (!record.primary_key_name.is_empty() && record.primary_key_name == name)
    };
    let of_type = |one: &UserType| match one {
        UserType::Domain(domain) => domain.record.checks.iter().any(|check| check.name == name),
        _ => false,
    };
    let tables = catalog.tables().into_iter().filter(|table| table.schema == schema);
    tables.filter_map(|table| catalog.record(table.oid)).any(|record| of_table(record))
        || catalog.types().filter(|one| one.schema() == schema).any(|one| of_type(one))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_chosen_as_postgres_chooses_them() {
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
    fn the_longer_part_of_a_name_is_cut() {
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
