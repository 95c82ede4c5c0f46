//! Parameters of a statement: those of the client, whose types may be deduced, and outer
//! references.
//!
//! Outer references of subqueries and LATERAL are numbered after the client's parameters, once the
//! number of these is known.

use types::expr::Expr;
use types::{DataType, SqlType};

use crate::ast::MAX_PARAMETER;
use crate::binder::typed::Typed;
use crate::error::{Error, Result};
use crate::logical::ParameterTypes;

/// The first provisional number of outer references; the number of the client's parameters is
/// known only at the end.
const OUTER: usize = 1 << 40;

/// The parameters seen so far.
#[derive(Debug)]
pub(super) struct Parameters {
    types: Vec<Option<SqlType>>,
    outer_count: usize,
    /// True if `$n` is allowed.
    allowed: bool,
}

impl Parameters {
    /// Returns parameters with the types that the client declared.
    pub(super) fn new(given: &[Option<SqlType>]) -> Parameters {
        let settled =
            |given: &Option<SqlType>| given.clone().filter(|one| one.base != DataType::Unknown);
        Parameters { types: given.iter().map(settled).collect(), outer_count: 0, allowed: true }
    }

    /// Returns the state for a text in which parameters are not allowed.
    pub(super) fn none() -> Parameters {
        Parameters { types: Vec::new(), outer_count: 0, allowed: false }
    }

    /// Returns `$number` with its type, if it is known.
    pub(super) fn client(&mut self, number: usize, position: usize) -> Result<Typed> {
        if !self.allowed || number == 0 || number > MAX_PARAMETER as usize {
            bail!(UNDEFINED_PARAMETER: "there is no parameter ${number}"; at position);
        }
        if self.types.len() < number {
            self.types.resize(number, None);
        }
        let sql_type = self.types[number - 1].clone();
        let sql_type = sql_type.unwrap_or_else(|| DataType::Unknown.into());
        let expr = Expr::Parameter { index: number - 1, data_type: sql_type.base.clone() };
        Ok(Typed { expr, sql_type, position })
    }

    /// Sets the type of a parameter whose type was unknown. It may be a domain if the parameter is
    /// assigned or cast to one.
    pub(super) fn settle(&mut self, index: usize, to: &SqlType, position: usize) -> Result<Expr> {
        let slot = &mut self.types[index];
        match slot {
            Some(SqlType { base: found, .. }) if *found != to.base => {
                bail!(AMBIGUOUS_PARAMETER: "inconsistent types deduced for parameter ${}", index + 1;
                    detail "{} versus {}", found.sql_name(), to.base.sql_name(); at position)
            }
            _ => {
                slot.get_or_insert_with(|| to.clone());
                Ok(Expr::Parameter { index, data_type: to.base.clone() })
            }
        }
    }

    /// Checks that the types of all client parameters are determined.
    ///
    /// # Errors
    ///
    /// 42P18 for the first undetermined one.
    pub(super) fn check_determined(&self) -> Result<()> {
        match self.types.iter().position(Option::is_none) {
            Some(index) => Err(undetermined(index)),
            None => Ok(()),
        }
    }

    /// Returns the number of a new outer reference.
    pub(super) fn outer(&mut self) -> usize {
        self.outer_count += 1;
        OUTER + self.outer_count - 1
    }

    /// Returns the index of a client parameter whose type is still unknown; `None` for other
    /// values. Outer references always have the type of their value.
    pub(super) fn open_index(value: &Typed) -> Option<usize> {
        match value.expr {
            Expr::Parameter { index, .. } if value.is_unknown() && index < OUTER => Some(index),
            _ => None,
        }
    }

    /// Returns the final index of a parameter.
    pub(super) fn final_index(&self, index: usize) -> usize {
        if index >= OUTER { self.types.len() + index - OUTER } else { index }
    }

    /// Returns the final type of a client parameter; text if undetermined.
    pub(super) fn final_type(&self, index: usize) -> SqlType {
        self.types.get(index).cloned().flatten().unwrap_or_else(|| DataType::Text.into())
    }

    /// Returns the final types of the client's parameters.
    pub(super) fn final_types(&self) -> ParameterTypes {
        (0..self.types.len()).map(|index| self.final_type(index)).collect()
    }

    /// Returns the number of parameters, outer references included.
    pub(super) fn count(&self) -> usize {
        self.types.len() + self.outer_count
    }
}

/// Returns the error for a parameter whose type is undetermined.
pub(super) fn undetermined(index: usize) -> Error {
    err!(INDETERMINATE_DATATYPE: "could not determine data type of parameter ${}", index + 1)
}
