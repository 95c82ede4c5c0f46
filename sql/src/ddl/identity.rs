//! Identity, serial and other columns with different values in each existing row, added to a
//! table; and ALTER COLUMN … IDENTITY.

use std::sync::Arc;

use types::expr::Expr;
use types::{DataType, Datum, SqlType};

use crate::ast::{self, IdentityKind, SequenceOptions, TypeName};
use crate::catalog::ObjectId;
use crate::catalog::object::Object;
use crate::catalog::record::{ColumnRecord, IdentityRecord, TableRecord};
use crate::catalog::sequence::Sequence;
use crate::catalog::table::Table;
use crate::ddl::Ddl;
use crate::ddl::alter_column::{column_of, family_of};
use crate::error::{Error, Result};

/// The source of a new column's values in existing rows, if they differ from row to row.
pub(super) enum ColumnFill {
    /// The value of a generated column.
    Generated,
    /// A default that is evaluated for each row.
    Default(Expr),
    /// The next number of a sequence.
    Sequence(Arc<Sequence>),
}

impl Ddl<'_> {
    /// Adds a serial or identity column, and creates its sequence.
    pub(super) fn add_own_sequence(
        &mut self,
        record: &mut TableRecord,
        column: &ast::ColumnDefinition,
    ) -> Result<ColumnFill> {
        let catalog = self.changes.catalog(self.engine);
        let sql_type = catalog.type_named(&column.type_name, &self.path)?;
        let (type_oid, modifier) = sql_type.stored_oid_and_modifier();
        record.columns.push(ColumnRecord {
            name: column.name.name.value.clone(),
            type_oid,
            modifier,
            not_null: true,
            family: family_of(record, column)?,
            identity: column.identity.as_ref().map(|identity| kind_of(identity.kind)),
            ..Default::default()
        });
        let none = SequenceOptions::default();
        let options = column.identity.as_ref().map_or(&none, |identity| &identity.options);
        let of = (options, sql_type.base, column.identity.is_some());
        let oid = self.create_own_sequence(record, record.columns.len() - 1, of)?;
        let catalog = self.changes.catalog(self.engine);
        catalog.sequence(oid).cloned().map(ColumnFill::Sequence).ok_or_else(
            || err!(INTERNAL_ERROR: "the sequence of an identity column does not exist"),
        )
    }

    /// Stores a table with a new last column, and rewrites its rows with the column's values.
    pub(super) fn fill_column(
        &mut self,
        table: &Table,
        mut record: TableRecord,
        filling: &ColumnFill,
    ) -> Result<()> {
        if matches!(filling, ColumnFill::Generated) {
            return self.rewrite_generated(table, record);
        }
        record.schema_version += 1;
        if !self.has_rows(table)? {
            return self.store_changed(table, record);
        }
        let (eval, engine) = (self.eval.clone(), self.engine);
        let Some(target) = record.columns.last() else { return Ok(()) };
        let data_type = self.changes.catalog(engine).column_type(target)?.base;
        self.rewrite(table, record, &mut |row| {
            row.push(match filling {
                ColumnFill::Default(default) => default.eval_row(&[], &eval)?,
                ColumnFill::Sequence(sequence) => {
                    whole_number(engine.sequences.next(sequence)?, &data_type)?
                }
                ColumnFill::Generated => Datum::Null,
            });
            Ok(())
        })
    }

    /// Makes a column an identity column, with a new sequence.
    pub(super) fn add_identity(
        &mut self,
        table: &Table,
        record: &mut TableRecord,
        (column, identity): (&ast::Ident, &ast::Identity),
    ) -> Result<()> {
        let position = column_of(table, column)?;
        let known = &table.columns[position];
        let refused = |what: &str| {
            bail!(OBJECT_NOT_IN_PREREQUISITE_STATE:
                "column \"{}\" of relation \"{}\" {what}", column.value, table.name)
        };
        check_identity_type(&known.sql_type)?;
        if !record.columns[position].not_null {
            return refused("must be declared NOT NULL before identity can be added");
        }
        if known.identity.is_some() {
            return refused("is already an identity column");
        }
        if record.columns[position].default.is_some() {
            return refused("already has a default value");
        }
        let of = (&identity.options, known.sql_type.base.clone(), true);
        self.create_own_sequence(record, position, of)?;
        record.columns[position].identity = Some(kind_of(identity.kind));
        Ok(())
    }

    /// Changes the kind of an identity column, and its sequence.
    pub(super) fn alter_identity(
        &mut self,
        table: &Table,
        record: &mut TableRecord,
        (column, kind, options): (&ast::Ident, Option<IdentityKind>, &SequenceOptions),
    ) -> Result<()> {
        let position = column_of(table, column)?;
        if table.columns[position].identity.is_none() {
            return Err(no_identity(table, column));
        }
        if let Some(kind) = kind {
            record.columns[position].identity = Some(kind_of(kind));
        }
        match self.own_sequence(table, position) {
            Some(sequence) if *options != SequenceOptions::default() => {
                self.change_sequence(&sequence, options)
            }
            _ => Ok(()),
        }
    }

    /// Changes the type of an identity column's sequence to the column's new type; bounds that
    /// were those of the old type become those of the new one.
    pub(super) fn change_identity_type(
        &mut self,
        table: &Table,
        position: usize,
        to: &SqlType,
    ) -> Result<()> {
        check_identity_type(to)?;
        let Some(sequence) = self.own_sequence(table, position) else { return Ok(()) };
        let data_type =
            TypeName { sql_type: to.clone(), named: None, collation: None, position: 1 };
        let options = SequenceOptions { data_type: Some(data_type), ..SequenceOptions::default() };
        self.change_sequence(&sequence, &options)
    }

    /// Turns an identity column into a plain one, and drops its sequence; returns whether it was
    /// an identity column.
    pub(super) fn drop_identity(
        &mut self,
        table: &Table,
        record: &mut TableRecord,
        (column, if_exists): (&ast::Ident, bool),
    ) -> Result<bool> {
        let position = column_of(table, column)?;
        if table.columns[position].identity.is_none() {
            return self.missing_object(no_identity(table, column), if_exists).map(|()| false);
        }
        record.columns[position].identity = None;
        record.columns[position].default = None;
        Ok(true)
    }

    /// Drops the sequence of a column that is no longer an identity column.
    pub(super) fn drop_own_sequence(&mut self, table: &Table, column: &ast::Ident) -> Result<()> {
        let position = column_of(table, column)?;
        match self.own_sequence(table, position) {
            Some(sequence) => {
                self.remove(&Object::Whole(ObjectId::Sequence(sequence.oid)), false, &[])
            }
            None => Ok(()),
        }
    }

    fn own_sequence(&self, table: &Table, position: usize) -> Option<Arc<Sequence>> {
        let catalog = self.changes.catalog(self.engine);
        let owner = Some((table.oid, position as u32));
        catalog.sequences().find(|sequence| sequence.owned_by == owner).cloned()
    }
}

/// Checks that a type is allowed for an identity column.
pub(super) fn check_identity_type(sql_type: &SqlType) -> Result<()> {
    if sql_type.domain.is_none() && Sequence::range_of(&sql_type.base).is_ok() {
        return Ok(());
    }
    bail!(INVALID_PARAMETER_VALUE: "identity column type must be smallint, integer, or bigint")
}

fn kind_of(kind: IdentityKind) -> IdentityRecord {
    match kind {
        IdentityKind::Always => IdentityRecord::Always,
        IdentityKind::ByDefault => IdentityRecord::ByDefault,
    }
}

/// Returns a value of a sequence as a value of the column's type.
fn whole_number(value: i64, data_type: &DataType) -> Result<Datum> {
    let narrow = match data_type {
        DataType::Int2 => i16::try_from(value).ok().map(Datum::Int2),
        DataType::Int4 => i32::try_from(value).ok().map(Datum::Int4),
        _ => Some(Datum::Int8(value)),
    };
    narrow.ok_or_else(|| err!(NUMERIC_VALUE_OUT_OF_RANGE: "{} out of range", data_type.sql_name()))
}

fn no_identity(table: &Table, column: &ast::Ident) -> Error {
    err!(OBJECT_NOT_IN_PREREQUISITE_STATE: "column \"{}\" of relation \"{}\" is not an identity column",
        column.value, table.name)
}
