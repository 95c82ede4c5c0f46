//! The parameters of a statement: the client's, whose types may be found from context, and the
//! outer columns of subqueries, which are numbered after them once all are known.

use types::expr::Expr;
use types::{DataType, SqlType};

use crate::ast::MAX_PARAMETER;
use crate::binder::typed::Typed;
use crate::error::{Error, Result, sqlstate};
use crate::logical::ParameterTypes;

/// While binding, outer parameters are numbered from here, because the number of the client's is
/// not known before the end.
const OUTER: usize = 1 << 40;

/// The parameters seen so far.
#[derive(Debug)]
pub(super) struct Parameters {
    types: Vec<Option<SqlType>>,
    outer_count: usize,
    /// Whether `$n` is allowed at all.
    allowed: bool,
}

impl Parameters {
    /// Returns parameters with the types that the client gave.
    pub(super) fn new(given: &[Option<SqlType>]) -> Parameters {
        let settled = |given: &Option<SqlType>| given.filter(|one| one.base != DataType::Unknown);
        Parameters { types: given.iter().map(settled).collect(), outer_count: 0, allowed: true }
    }

    /// Returns parameters of which there are none.
    pub(super) fn none() -> Parameters {
        Parameters { types: Vec::new(), outer_count: 0, allowed: false }
    }

    /// Returns `$number` with the type known of it so far.
    pub(super) fn client(&mut self, number: usize, position: usize) -> Result<Typed> {
        if !self.allowed || number == 0 || number > MAX_PARAMETER as usize {
            let message = format!("there is no parameter ${number}");
            return Err(Error::new(sqlstate::UNDEFINED_PARAMETER, message).at(position));
        }
        if self.types.len() < number {
            self.types.resize(number, None);
        }
        let sql_type = self.types[number - 1].unwrap_or(DataType::Unknown.into());
        let expr = Expr::Parameter { index: number - 1, data_type: sql_type.base };
        Ok(Typed { expr, sql_type, position })
    }

    /// Settles the type of a parameter that was unknown when it was met: a domain, if it is
    /// assigned or cast to one.
    pub(super) fn settle(&mut self, index: usize, to: SqlType, position: usize) -> Result<Expr> {
        let slot = &mut self.types[index];
        match *slot {
            Some(SqlType { base: found, .. }) if found != to.base => {
                let message = format!("inconsistent types deduced for parameter ${}", index + 1);
                let detail = format!("{} versus {}", found.sql_name(), to.base.sql_name());
                Err(Error::new("42P08", message).with_detail(detail).at(position))
            }
            _ => {
                slot.get_or_insert(to);
                Ok(Expr::Parameter { index, data_type: to.base })
            }
        }
    }

    /// Fails if nothing has settled the type of a parameter of the client.
    ///
    /// # Errors
    ///
    /// 42P18 with the first of them.
    pub(super) fn check_determined(&self) -> Result<()> {
        match self.types.iter().position(Option::is_none) {
            Some(index) => Err(undetermined(index)),
            None => Ok(()),
        }
    }

    /// Returns the index of a new outer parameter.
    pub(super) fn outer(&mut self) -> usize {
        self.outer_count += 1;
        OUTER + self.outer_count - 1
    }

    /// Returns the index of a parameter of the client whose type its use may determine; `None` for
    /// other values, outer parameters among them, which have the type of what they stand for.
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

    /// Returns the final type of a parameter of the client; text if nothing has settled it.
    pub(super) fn final_type(&self, index: usize) -> SqlType {
        self.types.get(index).copied().flatten().unwrap_or(DataType::Text.into())
    }

    /// Returns the final types of the client's parameters.
    pub(super) fn final_types(&self) -> ParameterTypes {
        (0..self.types.len()).map(|index| self.final_type(index)).collect()
    }

    /// Returns the number of parameters, the outer ones included.
    pub(super) fn count(&self) -> usize {
        self.types.len() + self.outer_count
    }
}

/// Returns the error of a parameter whose type nothing tells.
pub(super) fn undetermined(index: usize) -> Error {
    let message = format!("could not determine data type of parameter ${}", index + 1);
    Error::new(sqlstate::INDETERMINATE_DATATYPE, message)
}
