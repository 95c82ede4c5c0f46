//! Which collations types and columns have.

use types::{DataType, SqlType};

use crate::ast::{Collation, TypeName};
use crate::catalog::Catalog;
use crate::error::{Error, Result, sqlstate};

/// Returns the collation that values of a type have where nothing is said; `None` if it is of no
/// meaning for them.
pub fn of_type(data_type: DataType) -> Option<Collation> {
    match data_type.element().unwrap_or(data_type) {
        DataType::Name => Some(Collation::C),
        DataType::Text | DataType::Varchar | DataType::Char => Some(Collation::Default),
        _ => None,
    }
}

/// Returns the collation that values of a type, which may be a domain, have where nothing is said.
pub fn of(catalog: &Catalog, sql_type: SqlType) -> Option<Collation> {
    let domain = sql_type.domain.and_then(|oid| catalog.domain(oid));
    domain.map_or(of_type(sql_type.base), |domain| domain.collation)
}

/// Checks that values of a type can have a collation, which is written at a place.
///
/// # Errors
///
/// 42804 if they cannot.
pub fn check(sql_type: SqlType, position: usize) -> Result<()> {
    if sql_type.base == DataType::Unknown || of_type(sql_type.base).is_some() {
        return Ok(());
    }
    let name = sql_type.base.sql_name();
    let message = format!("collations are not supported by type {name}");
    Err(Error::new(sqlstate::DATATYPE_MISMATCH, message).naming(sql_type).at(position))
}

/// Returns the collation that is written behind a type.
///
/// # Errors
///
/// 42804 if the type has none.
pub fn written(type_name: &TypeName, sql_type: SqlType) -> Result<Option<Collation>> {
    let Some((collation, position)) = type_name.collation else { return Ok(None) };
    check(sql_type, position)?;
    Ok(Some(collation))
}
