//! Definitions as they are read from the store: with texts that this build can read.
//!
//! What an older build has stored may have words for names that are none by now
//! ([`stored`](crate::parser::stored)). They get quotes here, when the catalog is read, and so
//! everybody else finds texts as this build would have written them; on disk they are as they were
//! until the object is changed.

use crate::catalog::domain::DomainRecord;
use crate::catalog::function::{FunctionRecord, decode_function};
use crate::catalog::later::{decode_domain, decode_table, decode_view};
use crate::catalog::record::{IndexRecord, TableRecord, ViewRecord};
use crate::error::Result;
use crate::parser::stored::{mend_expression, mend_query, mend_statements};

/// Returns the table's record of some bytes.
///
/// # Errors
///
/// XX001 if they are not one.
pub fn table(bytes: &[u8]) -> Result<TableRecord> {
    let mut record = decode_table(bytes)?;
    for column in &mut record.columns {
        column.default.iter_mut().chain(&mut column.generated).for_each(mend_expression);
    }
    record.checks.iter_mut().map(|check| &mut check.predicate).for_each(mend_expression);
    record.indexes.iter_mut().flat_map(IndexRecord::texts_mut).for_each(mend_expression);
    Ok(record)
}

/// Returns the domain's record of some bytes.
///
/// # Errors
///
/// XX001 if they are not one.
pub fn domain(bytes: &[u8]) -> Result<DomainRecord> {
    let mut record = decode_domain(bytes)?;
    record.default.iter_mut().for_each(mend_expression);
    record.checks.iter_mut().map(|check| &mut check.predicate).for_each(mend_expression);
    Ok(record)
}

/// Returns the view's record of some bytes.
///
/// # Errors
///
/// XX001 if they are not one.
pub fn view(bytes: &[u8]) -> Result<ViewRecord> {
    let mut record = decode_view(bytes)?;
    mend_query(&mut record.text);
    let columns = record.columns.iter_mut();
    columns.flat_map(|column| &mut column.default.0).for_each(mend_expression);
    Ok(record)
}

/// Returns the function's record of some bytes.
///
/// # Errors
///
/// XX001 if they are not one.
pub fn function(bytes: &[u8]) -> Result<FunctionRecord> {
    let mut record = decode_function(bytes)?;
    mend_statements(&mut record.body);
    let parameters = record.parameters.iter_mut();
    parameters.flat_map(|parameter| &mut parameter.default).for_each(mend_expression);
    Ok(record)
}
