//! Endpoints that SQL calls by name: their declaration, which extends [`Endpoint`], and the flow
//! of a call.
//!
//! ```text
//! ALTER TABLE price ATTACH COPROCESSOR histogram WITH (column = 'cents')
//! SELECT * FROM endpoint('price', 'histogram', width => 250)
//!   -> TableEndpoint::request      once, from the arguments of both
//!   -> Endpoint::call in each region, page by page, in parallel
//!   -> TableEndpoint::merge each page, on arrival
//!   -> TableEndpoint::rows         once: the answer of the statement
//! ```
//!
//! All four run under supervision ([`AttachedEndpoint`]): a panic, an error or a timeout fails
//! the statement with the endpoint's name, and is counted.

use std::sync::Arc;

use store::endpoint::Endpoint;
use store::transaction::{AttachedEndpoint, PartitionRange};
use types::{DataType, Datum, Error, Result};

use crate::registry::{Arguments, Parameter, TableSchema};
use crate::violation;

/// A column of an endpoint's answer. It may be NULL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnswerColumn {
    /// Its name, in lower case.
    pub name: &'static str,
    /// Its type.
    pub data_type: DataType,
}

/// The parameters of a call.
pub struct EndpointCall<'a> {
    /// The name of the attachment, for messages: the name after `AS`, or the endpoint's own.
    pub name: &'a str,
    /// The table.
    pub table: &'a Arc<TableSchema>,
    /// The arguments of ATTACH and of the call, checked.
    pub arguments: &'a Arguments,
}

/// An endpoint that SQL can call: [`Endpoint::name`] is its name in ATTACH COPROCESSOR, in lower
/// case.
pub trait TableEndpoint: Endpoint {
    /// The merged answer of the regions; starts with its default.
    type Answer: Default;

    /// Returns a one-sentence description.
    fn about(&self) -> &str;

    /// Returns its parameters. Arguments may be set by ATTACH or by the call; the call's take
    /// precedence. The names `start` and `stop` are reserved: they limit the rows of the call.
    fn parameters(&self) -> &[Parameter] {
        &[]
    }

    /// Returns the columns of its answer.
    fn columns(&self) -> &[AnswerColumn];

    /// Returns the request that is sent to the regions.
    ///
    /// # Errors
    ///
    /// Those of an unsuitable table or invalid arguments.
    fn request(&self, call: &EndpointCall<'_>) -> Result<Self::Request>;

    /// Merges the response of a page. Pages arrive in any order.
    ///
    /// # Errors
    ///
    /// Any error ends the call.
    fn merge(&self, answer: &mut Self::Answer, page: Self::Response) -> Result<()>;

    /// Returns the rows of the whole answer, with the declared columns.
    ///
    /// # Errors
    ///
    /// Any error ends the call.
    fn rows(&self, request: &Self::Request, answer: Self::Answer) -> Result<Vec<Vec<Datum>>>;
}

/// A [`TableEndpoint`] with erased request and answer types.
pub trait CallableEndpoint: Send + Sync {
    /// [`Endpoint::name`].
    fn name(&self) -> &str;

    /// [`TableEndpoint::about`].
    fn about(&self) -> &str;

    /// [`TableEndpoint::parameters`].
    fn parameters(&self) -> &[Parameter];

    /// [`TableEndpoint::columns`].
    fn columns(&self) -> &[AnswerColumn];

    /// Calls the endpoint over ranges of rows (half-open, ascending, disjoint) and returns its
    /// answer.
    ///
    /// # Errors
    ///
    /// Those of the endpoint, with the name of the attachment; those of the store.
    fn run(
        &self,
        attached: AttachedEndpoint<'_>,
        call: &EndpointCall<'_>,
        ranges: &[PartitionRange],
    ) -> store::Result<Vec<Vec<Datum>>>;
}

impl<E: TableEndpoint> CallableEndpoint for E {
    fn name(&self) -> &str {
        Endpoint::name(self)
    }

    fn about(&self) -> &str {
        TableEndpoint::about(self)
    }

    fn parameters(&self) -> &[Parameter] {
        TableEndpoint::parameters(self)
    }

    fn columns(&self) -> &[AnswerColumn] {
        TableEndpoint::columns(self)
    }

    fn run(
        &self,
        attached: AttachedEndpoint<'_>,
        call: &EndpointCall<'_>,
        ranges: &[PartitionRange],
    ) -> store::Result<Vec<Vec<Datum>>> {
        let refused = |error| violation::value_error(call.name, error);
        let request = attached.run(|| self.request(call).map_err(refused))?;
        let mut answer = E::Answer::default();
        attached
            .call(ranges, self, &request, |page| self.merge(&mut answer, page).map_err(refused))?;
        let rows = attached.run(|| {
            let rows = self.rows(&request, answer).map_err(refused)?;
            check_rows(call.name, TableEndpoint::columns(self), &rows).map_err(refused)?;
            Ok(rows)
        })?;
        attached.succeeded();
        Ok(rows)
    }
}

/// Checks that rows have the declared columns.
fn check_rows(name: &str, columns: &[AnswerColumn], rows: &[Vec<Datum>]) -> Result<()> {
    let fits = |row: &Vec<Datum>| {
        row.len() == columns.len()
            && row.iter().zip(columns).all(|(value, column)| value.fits(&column.data_type))
    };
    match rows.iter().find(|row| !fits(row)) {
        None => Ok(()),
        Some(row) => {
            bail!(INTERNAL_ERROR: "endpoint \"{name}\" returned a row that does not match its result columns";
                detail "The row is {row:?}.")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoint_rows_must_match_declared_columns() {
        let columns = [
            AnswerColumn { name: "a", data_type: DataType::Int8 },
            AnswerColumn { name: "b", data_type: DataType::Text },
        ];
        let check = |row: &[Datum]| check_rows("e", &columns, &[row.to_vec()]);
        check(&[Datum::Int8(1), Datum::text("x")]).unwrap();
        check(&[Datum::Null, Datum::Null]).unwrap();
        for wrong in [
            vec![Datum::Int8(1)],
            vec![Datum::Int4(1), Datum::text("x")],
            vec![Datum::Int8(1), Datum::text("x"), Datum::Null],
        ] {
            assert_eq!(check(&wrong).unwrap_err().sqlstate, "XX000", "{wrong:?}");
        }
    }
}
