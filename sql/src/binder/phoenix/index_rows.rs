//! Rows of an index in FROM, which setting `phoenix_compatibility` allows: a query of the table,
//! for which the planner can choose the index.
//!
//! The columns are those of Phoenix: the keys, the primary key, then the included columns. Their
//! names are `family:column`, without a family for columns of the primary key; that of an
//! expression is its text.

use std::fmt::Write as _;

use crate::ast::{TableAlias, TableName, TableRef};
use crate::binder::level::Binder;
use crate::catalog::CatalogRelation;
use crate::catalog::table::Table;
use crate::error::Result;
use crate::parser::{parse_query, quoted};

impl Binder<'_> {
    /// Returns the query of the rows of an index; `None` if the name is not that of an index.
    pub(in crate::binder) fn index_rows(
        &self,
        name: &TableName,
        alias: Option<&TableAlias>,
    ) -> Result<Option<TableRef>> {
        let Some(CatalogRelation::Index(table, index)) = self.find_relation(name) else {
            return Ok(None);
        };
        let records = self.catalog.record(table.oid).into_iter().flat_map(|one| &one.indexes);
        let Some(record) = records.into_iter().find(|one| one.oid == index.oid) else {
            return Ok(None);
        };
        let of_column = |at: usize| (quoted(&table.columns[at].name), column_name(table, at));
        let keys = record.keys.iter().map(|key| {
            let mut columns = (0..table.columns.len()).filter(|at| !table.columns[*at].dropped);
            let found = columns.find(|at| quoted(&table.columns[*at].name) == key.expression);
            found.map_or((key.expression.clone(), key.expression.clone()), of_column)
        });
        let stored = table.key_columns().chain(record.include.iter().map(|at| *at as usize));
        let mut columns: Vec<(String, String)> = Vec::new();
        for column in keys.chain(stored.map(of_column)) {
            if !columns.contains(&column) {
                columns.push(column);
            }
        }
        let columns: Vec<String> = columns
            .into_iter()
            .map(|(value, name)| format!("{value} AS {}", quoted(&name)))
            .collect();
        let mut text = format!("SELECT {} FROM {}", columns.join(", "), table.full_name());
        if let Some(predicate) = &record.predicate {
            write!(text, " WHERE {predicate}").expect("a String accepts any text");
        }
        let query = Box::new(parse_query(&text)?);
        let own = || TableAlias { name: name.name.clone(), columns: Vec::new() };
        let alias = Some(alias.cloned().unwrap_or_else(own));
        Ok(Some(TableRef::Subquery { query, lateral: false, alias }))
    }
}

/// Returns the name of a column as Phoenix writes it in an index.
fn column_name(table: &Table, at: usize) -> String {
    format!("{}:{}", table.family_name(at), table.columns[at].shown_name())
}
