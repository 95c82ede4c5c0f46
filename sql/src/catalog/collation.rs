//! Collations of types and columns.

use types::{DataType, SqlType};

use crate::ast::{Collation, TypeName};
use crate::catalog::Catalog;
use crate::error::{Error, Result};

/// Returns the default collation of a type; `None` if the type is not collatable.
pub fn of_type(data_type: &DataType) -> Option<Collation> {
    match data_type.element().unwrap_or(data_type) {
        DataType::Name => Some(Collation::C),
        DataType::Text | DataType::Varchar | DataType::Char => Some(Collation::Default),
        _ => None,
    }
}

/// Returns the default collation of a type, which may be a domain.
pub fn of(catalog: &Catalog, sql_type: &SqlType) -> Option<Collation> {
    let domain = sql_type.domain.and_then(|oid| catalog.domain(oid));
    domain.map_or(of_type(&sql_type.base), |domain| domain.collation)
}

/// Checks that a type is collatable, for a COLLATE clause at a position.
///
/// # Errors
///
/// 42804 if it is not.
pub fn check(sql_type: &SqlType, position: usize) -> Result<()> {
    if sql_type.base == DataType::Unknown || of_type(&sql_type.base).is_some() {
        return Ok(());
    }
    let name = sql_type.base.sql_name();
    bail!(DATATYPE_MISMATCH: "collations are not supported by type {name}"; with_type_mention sql_type; at position)
}

/// Returns the collation of a type name's COLLATE clause.
///
/// # Errors
///
/// 42804 if the type is not collatable.
pub fn written(type_name: &TypeName, sql_type: &SqlType) -> Result<Option<Collation>> {
    let Some((collation, position)) = type_name.collation else { return Ok(None) };
    check(sql_type, position)?;
    Ok(Some(collation))
}
