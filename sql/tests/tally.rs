//! Test endpoint that counts the rows of a table by the value of a column.

#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

use std::collections::BTreeMap;

use coprocessors::registry::{
    AnswerColumn, ArgumentKind, EndpointCall, Parameter, ParameterRequirement, TableEndpoint,
};
use coprocessors::row;
use coprocessors::violation::value_error;
use store::endpoint::{Endpoint, EndpointContext, Page};
use store::error::Veto;
use store::{CellBatch, Error, Scan};
use types::{DataType, Datum};

/// Endpoint `tally`: row counts by value.
pub(crate) struct Tally;

pub(crate) struct Request {
    layout: std::sync::Arc<types::rowcode::RowLayout>,
    column: usize,
    by: i64,
    then: String,
}

const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "column",
        kind: ArgumentKind::Column,
        need: ParameterRequirement::Required,
        about: "whose values are counted",
    },
    Parameter {
        name: "by",
        kind: ArgumentKind::Integer,
        need: ParameterRequirement::Default("1"),
        about: "what values are divided by",
    },
    Parameter {
        name: "then",
        kind: ArgumentKind::Text,
        need: ParameterRequirement::Default("count"),
        about: "how to fail",
    },
];

impl Endpoint for Tally {
    type Request = Request;
    type Response = BTreeMap<i64, i64>;

    fn name(&self) -> &str {
        "tally"
    }

    fn call(
        &self,
        region: &dyn EndpointContext,
        request: &Request,
    ) -> store::Result<Page<BTreeMap<i64, i64>>> {
        match request.then.as_str() {
            "panic" => panic!("as it was told"),
            "refuse" => {
                let (code, message) = ("BN007".to_owned(), "not today".to_owned());
                return Err(Error::Vetoed(Box::new(Veto { code, message, ..Veto::default() })));
            }
            _ => {}
        }
        let mut counts = BTreeMap::new();
        let mut cells = CellBatch::new();
        let columns = [request.column];
        for (start, stop) in region.ranges() {
            let scan = Scan::range(start.clone(), stop.clone());
            let columns_read = row::ReadColumns::of(&request.layout, &columns);
            let mut scanner = region.scan(columns_read.scan(scan))?;
            while scanner.next_batch(100, &mut cells)? {
                let mut vectors = row::vectors_for(&request.layout, &columns, cells.row_count());
                row::decode_batch(&request.layout, &columns, &cells, &mut vectors)
                    .map_err(|error| value_error("tally", error))?;
                for index in 0..cells.row_count() {
                    if let Some(value) = vectors[0].datum(index).as_i64() {
                        *counts.entry(value / request.by).or_default() += 1;
                    }
                }
                if let Some(row) = region.page_end(cells.row_count() as u64, &mut scanner)? {
                    return Ok(Page::until(row, counts));
                }
            }
        }
        Ok(Page::whole(counts))
    }
}

impl TableEndpoint for Tally {
    type Answer = BTreeMap<i64, i64>;

    fn about(&self) -> &str {
        "counts rows by a value"
    }

    fn parameters(&self) -> &[Parameter] {
        PARAMETERS
    }

    fn columns(&self) -> &[AnswerColumn] {
        &[
            AnswerColumn { name: "value", data_type: DataType::Int8 },
            AnswerColumn { name: "row_count", data_type: DataType::Int8 },
        ]
    }

    fn request(&self, call: &EndpointCall<'_>) -> types::Result<Request> {
        let by = call.arguments.integer("by").unwrap_or_default();
        if by == 0 {
            return Err(types::Error::new("22012", "division by zero"));
        }
        Ok(Request {
            layout: std::sync::Arc::clone(&call.table.layout),
            column: call.arguments.column("column").unwrap_or_default(),
            by,
            then: call.arguments.text("then").unwrap_or_default().to_owned(),
        })
    }

    fn merge(
        &self,
        answer: &mut BTreeMap<i64, i64>,
        page: BTreeMap<i64, i64>,
    ) -> types::Result<()> {
        for (value, count) in page {
            *answer.entry(value).or_default() += count;
        }
        Ok(())
    }

    fn rows(
        &self,
        request: &Request,
        answer: BTreeMap<i64, i64>,
    ) -> types::Result<Vec<Vec<Datum>>> {
        assert!(request.then != "panic late", "as it was told");
        let row = |(value, count)| match request.then.as_str() {
            "wrong" => vec![Datum::Int8(value), Datum::text("many")],
            _ => vec![Datum::Int8(value), Datum::Int8(count)],
        };
        Ok(answer.into_iter().map(row).collect())
    }
}
