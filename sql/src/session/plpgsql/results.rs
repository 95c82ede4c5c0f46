//! PL/pgSQL results: RETURN, RETURN NEXT, RETURN QUERY and OUT parameters.

use types::{DataType, Datum, SqlType};

use crate::binder::BodyTarget;
use crate::error::{Error, Result};
use crate::exec::memory;
use crate::session::plpgsql::BodyExecution;
use crate::session::plpgsql::assignment::row;
use crate::session::plpgsql::statements::fields_of;

/// Result type of a body.
#[derive(Debug, Clone, Default)]
pub(super) struct ResultShape {
    /// Type of the value or of each value of a set; `None` if it returns rows of columns.
    pub(super) value: Option<SqlType>,
    /// Names and types of the columns.
    pub(super) columns: Vec<(String, SqlType)>,
    /// Variables of the OUT parameters, if these are the columns.
    pub(super) outs: Vec<usize>,
}

impl ResultShape {
    /// Returns the target type of RETURN.
    pub(super) fn target(&self) -> BodyTarget<'_> {
        self.value.as_ref().map_or(BodyTarget::Any, BodyTarget::Type)
    }
}

impl BodyExecution<'_> {
    /// Returns the row of the OUT parameters.
    pub(super) fn out_row(&self) -> Result<Vec<Datum>> {
        Ok(self.compiled.result.outs.iter().map(|at| self.values[*at].clone()).collect())
    }

    /// Converts a RETURN value to a result row.
    pub(super) fn row_of_value(&mut self, value: Datum, of: &SqlType) -> Result<Vec<Datum>> {
        let compiled = std::sync::Arc::clone(&self.compiled);
        let result = &compiled.result;
        if let Some(to) = &result.value {
            return Ok(vec![self.as_result(value, of, to)?]);
        }
        let Some((types, values)) = fields_of(&value) else {
            if value.is_null() {
                return Ok(vec![Datum::Null; result.columns.len()]);
            }
            bail!(DATATYPE_MISMATCH: "cannot return non-composite value from function returning composite type");
        };
        self.check_result_columns(&types)?;
        self.row_of_columns(values, &types)
    }

    /// Converts a value to the result type of the body.
    pub(super) fn as_result(&mut self, value: Datum, of: &SqlType, to: &SqlType) -> Result<Datum> {
        if !matches!(to.base, DataType::Composite(_)) {
            return match to.base {
                DataType::Record if !value.is_null() && fields_of(&value).is_none() => Err(
                    err!(DATATYPE_MISMATCH: "cannot return non-composite value from function returning composite type"),
                ),
                DataType::Record => Ok(value),
                _ => self.convert(value, of, to),
            };
        }
        self.as_row(value, of, to, "returned record type does not match expected record type")
    }

    /// Converts a value to a composite type; `message` is that of the error of other columns.
    pub(super) fn as_row(
        &mut self,
        value: Datum,
        of: &SqlType,
        to: &SqlType,
        message: &'static str,
    ) -> Result<Datum> {
        let DataType::Composite(composite) = &to.base else { return Ok(value) };
        if value.is_null() || of.base == to.base {
            return Ok(value);
        }
        let Some((types, values)) = fields_of(&value) else {
            bail!(DATATYPE_MISMATCH: "cannot return non-composite value from function returning composite type");
        };
        let attributes = composite.attributes();
        let differs = |detail: String| Err(err!(DATATYPE_MISMATCH: message; detail detail));
        if types.len() != attributes.len() {
            return differs(format!(
                "Number of returned columns ({}) does not match expected column count ({}).",
                types.len(),
                attributes.len()
            ));
        }
        for (at, (from, to)) in types.iter().zip(attributes).enumerate() {
            if from.base != to.sql_type.base {
                let (from, to) = (from.base.sql_name(), to.sql_type.base.sql_name());
                return differs(format!(
                    "Returned type {from} does not match expected type {to} in column {}.",
                    at + 1
                ));
            }
        }
        let mut fields = Vec::with_capacity(values.len());
        for ((value, from), to) in values.into_iter().zip(types).zip(attributes) {
            fields.push(self.convert(value, &from, &to.sql_type)?);
        }
        Ok(row(Some(composite.clone()), std::sync::Arc::clone(composite.fields()), fields))
    }

    /// Checks that columns of these types match the result type.
    pub(super) fn check_result_columns(&self, types: &[SqlType]) -> Result<()> {
        let result = &self.compiled.result;
        let wanted: Vec<SqlType> = match (result.value.clone(), result.columns.as_slice()) {
            (Some(one), _) => match one.base {
                DataType::Composite(of) => {
                    of.attributes().iter().map(|one| one.sql_type.clone()).collect()
                }
                _ => vec![one],
            },
            (None, columns) => columns.iter().map(|(_, of)| of.clone()).collect(),
        };
        let message = "structure of query does not match function result type";
        let mismatch = |detail: String| Err(err!(DATATYPE_MISMATCH: message; detail detail));
        if result.value.as_ref().is_some_and(|of| of.base == DataType::Record) {
            return Ok(());
        }
        if types.len() != wanted.len() {
            return mismatch(format!(
                "Number of returned columns ({}) does not match expected column count ({}).",
                types.len(),
                wanted.len()
            ));
        }
        for (at, (from, to)) in types.iter().zip(&wanted).enumerate() {
            if from.base != to.base {
                let (from, to) = (from.base.sql_name(), to.base.sql_name());
                return mismatch(format!(
                    "Returned type {from} does not match expected type {to} in column {}.",
                    at + 1
                ));
            }
        }
        Ok(())
    }

    /// Converts a query row to a result row.
    pub(super) fn row_of_columns(
        &mut self,
        values: Vec<Datum>,
        types: &[SqlType],
    ) -> Result<Vec<Datum>> {
        let result = self.compiled.result.clone();
        let Some(to) = result.value else {
            let wanted = result.columns.iter().map(|(_, of)| of.clone());
            let pairs = values.into_iter().zip(types).zip(wanted);
            return pairs.map(|((value, from), to)| self.convert(value, from, &to)).collect();
        };
        match to.base {
            DataType::Composite(of) => {
                let mut fields = Vec::with_capacity(values.len());
                for ((value, from), to) in values.into_iter().zip(types).zip(of.attributes()) {
                    fields.push(self.convert(value, from, &to.sql_type)?);
                }
                Ok(vec![row(Some(of.clone()), std::sync::Arc::clone(of.fields()), fields)])
            }
            DataType::Record => {
                let field = |(at, of): (usize, &SqlType)| {
                    (std::sync::Arc::from(format!("f{}", at + 1)), of.base.clone())
                };
                let fields = types.iter().enumerate().map(field).collect();
                Ok(vec![row(None, fields, values)])
            }
            _ => {
                let value = values.into_iter().next().unwrap_or(Datum::Null);
                let from = types.first().cloned().unwrap_or(to.clone());
                Ok(vec![self.convert(value, &from, &to)?])
            }
        }
    }

    /// Adds a result row.
    pub(super) fn add_row(&mut self, row: Vec<Datum>) -> Result<()> {
        let bytes = row.iter().map(|value| size_of_val(value) + value.heap_bytes()).sum::<usize>();
        self.row_bytes += bytes;
        memory::check(self.row_bytes, self.session.settings.parsed().work_mem_bytes)?;
        self.rows.push(row);
        Ok(())
    }
}
