//! FOREIGN KEY constraints: their stored form, and the look-up of referenced keys.
//!
//! A constraint belongs to the referencing table and identifies the referenced one by its number.
//! The referenced columns are those of its primary key or of a unique index.

use std::sync::Arc;

use coprocessors::index::index_row_key;
use store::TableId;
use store::codec::tagged::UnknownFields;
use types::expr::EvalContext;
use types::{DataType, Datum};

use crate::ast::{Deferral, ReferentialAction};
use crate::catalog::table::{Index, Table};
use crate::error::Result;

/// A FOREIGN KEY.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForeignKey {
    /// Its name.
    pub name: String,
    /// The referencing columns, by position.
    pub columns: Vec<u32>,
    /// The number of the referenced table.
    pub table: u32,
    /// Its columns, by position, in the order of `columns`.
    pub referenced: Vec<u32>,
    /// The number of the unique index over them; `None` for the primary key.
    pub index: Option<u32>,
    /// `MATCH FULL`
    pub match_full: bool,
    /// The action on referencing rows when the referenced row is deleted.
    pub on_delete: ReferentialAction,
    /// The action on referencing rows when the key of the referenced row changes.
    pub on_update: ReferentialAction,
    /// True if all rows are known to satisfy it; otherwise only rows written after its creation.
    pub valid: bool,
    /// Its deferral mode.
    pub deferral: Deferral,
    /// The columns that `ON DELETE SET …` sets, by position; none for all.
    pub delete_columns: Vec<u32>,
    /// Fields that this build does not know.
    pub unknown: UnknownFields,
}

/// The location of a referenced key.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct KeyLocation {
    /// The store table: that of the referenced table, or of its index.
    pub table: TableId,
    /// The row key.
    pub row: Vec<u8>,
}

impl ForeignKey {
    /// Returns the values of the referencing columns of a row.
    pub fn values(&self, row: &[Datum]) -> Vec<Datum> {
        self.columns.iter().map(|column| row[*column as usize].clone()).collect()
    }

    /// Returns the values of the referenced columns of a row of the referenced table.
    pub fn referenced_values(&self, row: &[Datum]) -> Vec<Datum> {
        self.referenced.iter().map(|column| row[*column as usize].clone()).collect()
    }

    /// Returns the location of a key with these values, none of them NULL, in the referenced
    /// table; `None` if its columns cannot hold the values.
    pub fn place(&self, referenced: &Table, values: &[Datum]) -> Result<Option<KeyLocation>> {
        let mut row = vec![Datum::Null; referenced.columns.len()];
        for (column, value) in self.referenced.iter().zip(values) {
            let data_type = &referenced.columns[*column as usize].sql_type.base;
            let Some(value) = converted(value, data_type) else { return Ok(None) };
            row[*column as usize] = value;
        }
        let place = match self.index_of(referenced) {
            Some(index) => KeyLocation {
                table: index.spec.store_table,
                row: index_row_key(&index.spec, &row, &EvalContext::default())?,
            },
            None => KeyLocation { table: referenced.id, row: referenced.layout.encode_key(&row)? },
        };
        Ok(Some(place))
    }

    /// Returns the unique index over the referenced columns; `None` for the primary key.
    pub fn index_of<'t>(&self, referenced: &'t Table) -> Option<&'t Arc<Index>> {
        referenced.indexes.iter().find(|index| Some(index.oid) == self.index)
    }
}

/// Returns whether values of two types can be compared by their encoded keys.
pub fn are_comparable(left: &DataType, right: &DataType) -> bool {
    let is_text = |one| matches!(one, DataType::Text | DataType::Varchar);
    left == right
        || (is_integer(left) && is_integer(right))
        || (is_text(left.clone()) && is_text(right.clone()))
}

fn is_integer(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Int2 | DataType::Int4 | DataType::Int8)
}

/// Returns a value as another comparable type; `None` if it does not fit.
fn converted(value: &Datum, to: &DataType) -> Option<Datum> {
    if !is_integer(to) {
        return Some(value.clone());
    }
    let number = value.as_i64()?;
    match to {
        DataType::Int2 => i16::try_from(number).ok().map(Datum::Int2),
        DataType::Int4 => i32::try_from(number).ok().map(Datum::Int4),
        _ => Some(Datum::Int8(number)),
    }
}
