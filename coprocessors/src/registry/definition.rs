//! Definition of the table that a coprocessor writes to, and the check of an existing table
//! against it.

use types::{Error, Result, SqlType};

use crate::registry::TableSchema;

/// The definition of a coprocessor's target table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableDefinition {
    /// Its name.
    pub name: String,
    /// Its columns, in order.
    pub columns: Vec<ColumnDefinition>,
    /// The number of leading columns that form the primary key.
    pub key_count: usize,
    /// All rows belong to the coprocessor: the table must be empty when the coprocessor is
    /// attached, its rows must not expire, and other writes to it are rejected.
    pub is_exclusive: bool,
}

/// A column of a [`TableDefinition`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnDefinition {
    /// Its name.
    pub name: String,
    /// Its type.
    pub sql_type: SqlType,
    /// NULL is never written. A nullable key column may have NULL in the key.
    pub not_null: bool,
}

impl TableDefinition {
    /// Checks that a table fits: it has the columns in the same order with the same types, allows
    /// NULL where the coprocessor writes it, and has the same key. Further nullable columns may
    /// follow. Salt buckets, families, versions, key directions and indexes may differ.
    ///
    /// # Errors
    ///
    /// `42809` with the difference.
    pub fn check(&self, coprocessor: &str, table: &TableSchema) -> Result<()> {
        let misfit = |why: String| {
            err!(WRONG_OBJECT_TYPE: "table \"{}\" cannot be used as the output table of coprocessor \"{coprocessor}\"",
                table.name; detail why)
        };
        for (position, wanted) in self.columns.iter().enumerate() {
            let type_name = wanted.sql_type.base.sql_name();
            let Some(column) = table.columns.get(position) else {
                return Err(misfit(format!(
                    "Column {} is missing: \"{}\" of type {type_name}.",
                    position + 1,
                    wanted.name
                )));
            };
            if column.name != wanted.name || column.sql_type != wanted.sql_type {
                return Err(misfit(format!(
                    "Column {} is \"{}\" of type {}; it must be \"{}\" of type {type_name}.",
                    position + 1,
                    column.name,
                    column.sql_type.base.sql_name(),
                    wanted.name
                )));
            }
            if column.not_null && !wanted.not_null {
                return Err(misfit(format!(
                    "Column \"{}\" has a not-null constraint.",
                    column.name
                )));
            }
        }
        let more = table.columns.iter().skip(self.columns.len());
        if let Some(column) = more.into_iter().find(|column| column.not_null) {
            return Err(misfit(format!(
                "Column \"{}\" has a not-null constraint, but the coprocessor does not write it.",
                column.name
            )));
        }
        let mut families = table.descriptor.families.iter();
        if self.is_exclusive && families.any(|family| family.ttl.is_some()) {
            return Err(misfit(
                "The table has a TTL, but the coprocessor does not write expired rows again."
                    .into(),
            ));
        }
        let key: Vec<usize> = table.layout.key.iter().map(|key| key.column).collect();
        if key != Vec::from_iter(0..self.key_count) {
            let names: Vec<&str> =
                self.columns[..self.key_count].iter().map(|column| column.name.as_str()).collect();
            return Err(misfit(format!("The primary key must be ({}).", names.join(", "))));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::shape;
    use types::DataType;

    fn definition() -> TableDefinition {
        let column = |name: &str, data_type: DataType, not_null: bool| ColumnDefinition {
            name: name.to_owned(),
            sql_type: data_type.into(),
            not_null,
        };
        TableDefinition {
            name: "log".to_owned(),
            columns: vec![column("id", DataType::Int4, true), column("b", DataType::Text, false)],
            key_count: 1,
            is_exclusive: false,
        }
    }

    fn why(table: &TableSchema) -> String {
        let error = definition().check("audit", table).unwrap_err();
        assert_eq!(error.sqlstate, "42809");
        error.detail.unwrap_or_default()
    }

    #[test]
    fn extra_nullable_columns_are_accepted() {
        let columns = [("id", DataType::Int4), ("b", DataType::Text), ("remark", DataType::Text)];
        let mut table = shape("log", &columns);
        definition().check("audit", &table).unwrap();
        table.columns[2].not_null = true;
        assert!(
            why(&table).starts_with("Column \"remark\" has a not-null constraint"),
            "{}",
            why(&table)
        );
    }

    #[test]
    fn schema_mismatch_is_described() {
        assert_eq!(
            why(&shape("log", &[("id", DataType::Int4)])),
            "Column 2 is missing: \"b\" of type text."
        );
        assert_eq!(
            why(&shape("log", &[("id", DataType::Int8), ("b", DataType::Text)])),
            "Column 1 is \"id\" of type bigint; it must be \"id\" of type integer."
        );
        let mut strict = shape("log", &[("id", DataType::Int4), ("b", DataType::Text)]);
        strict.columns[1].not_null = true;
        assert_eq!(why(&strict), "Column \"b\" has a not-null constraint.");
        let columns = [("id", DataType::Int4), ("b", DataType::Text)];
        let mut other_key = shape("log", &columns);
        other_key.layout = std::sync::Arc::new(crate::fixture::layout(
            &[(DataType::Int4, 0), (DataType::Text, 0)],
            &[crate::fixture::key(1, false)],
            0,
        ));
        assert_eq!(why(&other_key), "The primary key must be (id).");
    }
}
