//! Migration of stored SQL texts when the catalog is read.
//!
//! A text stored by an older version may use a word as a name that has become a keyword
//! ([`stored_text_migration`](crate::parser::stored_text_migration)). Such words are quoted here,
//! when the catalog is read, so the rest of the code sees texts as this version writes them; the
//! stored text is unchanged until the object is altered.

use crate::catalog::domain::DomainRecord;
use crate::catalog::function::{FunctionRecord, decode_function};
use crate::catalog::record::{IndexRecord, TableRecord, ViewRecord};
use crate::catalog::record_extension::{decode_domain, decode_table, decode_view};
use crate::error::Result;
use crate::parser::stored_text_migration::{requote_expression, requote_query, requote_statements};

/// Decodes the record of a table.
///
/// # Errors
///
/// XX001 if the bytes are damaged.
pub fn table(bytes: &[u8]) -> Result<TableRecord> {
    let mut record = decode_table(bytes)?;
    for column in &mut record.columns {
        column.default.iter_mut().chain(&mut column.generated).for_each(requote_expression);
    }
    record.checks.iter_mut().map(|check| &mut check.predicate).for_each(requote_expression);
    record.indexes.iter_mut().flat_map(IndexRecord::texts_mut).for_each(requote_expression);
    Ok(record)
}

/// Decodes the record of a domain.
///
/// # Errors
///
/// XX001 if the bytes are damaged.
pub fn domain(bytes: &[u8]) -> Result<DomainRecord> {
    let mut record = decode_domain(bytes)?;
    record.default.iter_mut().for_each(requote_expression);
    record.checks.iter_mut().map(|check| &mut check.predicate).for_each(requote_expression);
    Ok(record)
}

/// Decodes the record of a view.
///
/// # Errors
///
/// XX001 if the bytes are damaged.
pub fn view(bytes: &[u8]) -> Result<ViewRecord> {
    let mut record = decode_view(bytes)?;
    requote_query(&mut record.text);
    let columns = record.columns.iter_mut();
    columns.flat_map(|column| &mut column.default.0).for_each(requote_expression);
    Ok(record)
}

/// Decodes the record of a function.
///
/// # Errors
///
/// XX001 if the bytes are damaged.
pub fn function(bytes: &[u8]) -> Result<FunctionRecord> {
    let mut record = decode_function(bytes)?;
    requote_statements(&mut record.body);
    let parameters = record.parameters.iter_mut();
    parameters.flat_map(|parameter| &mut parameter.default).for_each(requote_expression);
    Ok(record)
}
