//! `ALTER TABLE … ADD CONSTRAINT … {UNIQUE | PRIMARY KEY} USING INDEX`.
//!
//! A UNIQUE constraint takes over the index. For a primary key the rows are rewritten in its
//! order, because it is the row key, and the index is dropped. The index is also dropped and
//! rebuilt if the constraint is deferrable, because its index has another format.

use std::sync::Arc;

use types::expr::Expr;

use crate::ast::{self, ConstraintKind, Deferral, KeyColumn};
use crate::ast::{TableConstraint, UniqueKey};
use crate::catalog::CatalogRelation;
use crate::catalog::object::Object;
use crate::catalog::record::TableRecord;
use crate::catalog::table::{Index, IndexState, Table};
use crate::ddl::{Ddl, foreign_key};
use crate::error::{Error, Result, sqlstate};

impl Ddl<'_> {
    /// Creates a constraint from an index.
    pub(super) fn add_index_constraint(
        &mut self,
        table: &Table,
        (name, written): (Option<&ast::Ident>, &ast::Ident),
        (is_primary, deferral): (bool, Deferral),
    ) -> Result<()> {
        let catalog = self.changes.catalog(self.engine);
        let found = table.indexes.iter().find(|index| index.name == written.value);
        let Some(index) = found else {
            let error = match catalog.relation(&table.schema, &written.value) {
                Some(CatalogRelation::Index(..) | CatalogRelation::PrimaryKey(_)) => {
                    err!(OBJECT_NOT_IN_PREREQUISITE_STATE: "index \"{}\" does not belong to table \"{}\"",
                        written.value, table.name)
                }
                _ => err!(UNDEFINED_OBJECT: "index \"{}\" does not exist", written.value),
            };
            return Err(error.at(written.position));
        };
        let columns = columns_of(table, index).map_err(|error| error.at(written.position))?;
        let name = name.map_or(&index.name, |name| &name.value);
        if *name != index.name {
            let message = format!(
                "ALTER TABLE / ADD CONSTRAINT USING INDEX will rename index \"{}\" to \"{name}\"",
                index.name
            );
            self.add_notice(sqlstate::SUCCESSFUL_COMPLETION, message);
            if catalog.relation(&table.schema, name).is_some() {
                bail!(DUPLICATE_TABLE: "relation \"{name}\" already exists");
            }
        }
        if is_primary || deferral != Deferral::Never {
            let position = written.position;
            let name = ast::Ident { value: name.clone(), position };
            let nulls_not_distinct = index.spec.nulls_not_distinct;
            let kind = match is_primary {
                true => ConstraintKind::PrimaryKey(columns),
                false => ConstraintKind::Unique(UniqueKey { columns, nulls_not_distinct }),
            };
            let (name, not_valid) = (Some(name), false);
            let clauses = ast::IndexClauses::default();
            let constraint =
                TableConstraint { name, kind, deferral, not_valid, index: clauses, position };
            self.drop_objects(&[Object::Index(table.oid, index.name.clone())], false)?;
            return self.add_constraint(table.oid, &constraint);
        }
        let mut record = TableRecord::clone(self.record_of(&catalog, table)?.as_ref());
        if foreign_key::has_constraint(&record, name) {
            return Err(foreign_key::duplicate(&record, name));
        }
        if let Some(kept) = record.indexes.iter_mut().find(|one| one.name == index.name) {
            kept.constraint = true;
            kept.name.clone_from(name);
            Arc::make_mut(&mut kept.descriptor).name.clone_from(name);
        }
        self.store_changed(table, record)
    }
}

/// Returns the columns of an index that can be used for a constraint.
fn columns_of(table: &Table, index: &Index) -> Result<Vec<KeyColumn>> {
    let name = &index.name;
    let state = sqlstate::OBJECT_NOT_IN_PREREQUISITE_STATE;
    if index.constraint {
        let message = format!("index \"{name}\" is already associated with a constraint");
        return Err(Error::new(state, message));
    }
    if index.state != IndexState::Active {
        return Err(Error::new(state, format!("index \"{name}\" is not valid")));
    }
    let unfit = |message: String| {
        err!(WRONG_OBJECT_TYPE: message;
            detail "Cannot create a primary key or unique constraint using such an index.")
    };
    if index.spec.local {
        let hint = "Create a global index: CREATE UNIQUE INDEX.";
        return Err(Error::not_supported("a constraint with a local index", hint));
    }
    if !index.is_unique() {
        return Err(unfit(format!("\"{name}\" is not a unique index")));
    }
    let mut columns = Vec::new();
    for key in &index.spec.keys {
        let Expr::Column { index: position, .. } = key else {
            return Err(unfit(format!("index \"{name}\" contains expressions")));
        };
        let column = ast::Ident { value: table.columns[*position].name.clone(), position: 1 };
        let column = ast::ColumnName { family: None, name: column };
        columns.push(KeyColumn::ascending(column));
    }
    if index.spec.predicate.is_some() {
        return Err(unfit(format!("\"{name}\" is a partial index")));
    }
    let mut keys = index.spec.layout.key.iter().take(columns.len());
    let ordered_otherwise = keys.position(|key| key.descending || key.nulls_first);
    let mut collations = index.collations.iter().zip(&index.spec.keys);
    let collated_otherwise = collations.position(|(written, key)| match key {
        Expr::Column { index: position, .. } => {
            written.is_some_and(|written| table.columns[*position].collation != Some(written))
        }
        _ => false,
    });
    if let Some(at) = ordered_otherwise.or(collated_otherwise) {
        let number = at + 1;
        return Err(unfit(format!(
            "index \"{name}\" column number {number} does not have default sorting behavior"
        )));
    }
    Ok(columns)
}
