//! Program with custom coprocessors, which SQL attaches to a table: an observer, and an endpoint
//! that runs in the table's regions when it is called by name.
//!
//! * `max_change` rejects a change of a number by more than a maximum.
//! * `Histogram` counts the rows of a table by ranges of a number, separately in each region.
//!
//! Run it with `cargo run --example coprocessor`, its test with
//! `cargo test --example coprocessor`. The hooks and their permissions are documented in
//! `docs/coprocessors.md`.

#![allow(clippy::disallowed_methods, reason = "tests use the system directly")]

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use bennu::statement::{self, Outcome};
use bennu::{Database, Result};
use coprocessors::change::{changes, load_previous};
use coprocessors::registry::{
    AnswerColumn, ArgumentKind, Attachment, CoprocessorFactory, EndpointCall, Parameter,
    ParameterRequirement, TableEndpoint, TableSchema,
};
use coprocessors::row;
use sql::EngineOptions;
use store::endpoint::{Endpoint, EndpointContext, Page};
use store::error::Veto;
use store::observer::{Hook, Hooks, ObserverContext, RegionObserver};
use store::{CellBatch, Mutation, Options, Scan};
use types::rowcode::RowDecoder;
use types::{DataType, Datum};

fn main() -> Result<()> {
    let directory = tempfile::tempdir()?;
    run(directory.path(), &mut std::io::stdout().lock())
}

/// Attaches both to a table, changes rows, and computes histograms.
fn run(directory: &Path, out: &mut impl Write) -> Result<()> {
    let mut options = EngineOptions::default();
    options.registry.add(Arc::new(MaxChangeFactory));
    options.registry.add_endpoint(Arc::new(Histogram));
    let database = Database::open_with(directory, Options::default(), options)?;
    let mut session = database.session("ann");
    let mut tell = |sql: &str| -> Result<()> {
        match statement::run(&mut session, sql) {
            Ok(Outcome { rows: Some(rows), .. }) => write!(out, "{sql}:\n{}", rows.render(10))?,
            Ok(_) => writeln!(out, "{sql}: ok")?,
            Err(error) => writeln!(out, "{sql}: {error}")?,
        }
        Ok(())
    };
    tell("CREATE TABLE price (item int PRIMARY KEY, cents bigint) SPLIT ON (50)")?;
    tell("ALTER TABLE price ATTACH COPROCESSOR max_change WITH (column = 'cents')")?;
    tell("ALTER TABLE price ATTACH COPROCESSOR max_change WITH (column = 'cents', most = 100)")?;
    tell("INSERT INTO price SELECT n, n * 10 FROM generate_series(1, 99) AS n")?;
    tell("UPDATE price SET cents = cents + 100 WHERE item = 7")?;
    tell("UPDATE price SET cents = cents * 2 WHERE item > 7")?;
    tell("UPDATE price SET cents = NULL WHERE item = 1")?;
    tell("ALTER TABLE price ATTACH COPROCESSOR histogram WITH (column = 'cents')")?;
    tell("SELECT * FROM endpoint('price', 'histogram', width => 250)")?;
    tell("SELECT max(row_count) FROM endpoint('price', 'histogram', start => 40, stop => 60)")?;
    tell("SELECT * FROM endpoint('price', 'histogram', width => 0)")?;
    tell("SELECT name, kind, rejections FROM bennu.coprocessors WHERE scope = 'table'")?;
    drop(session);
    database.shut_down()
}

/// Factory of `max_change`. The registry has checked the arguments against the parameters before
/// it calls [`MaxChangeFactory::build`]; further checks are made there.
struct MaxChangeFactory;

impl CoprocessorFactory for MaxChangeFactory {
    fn name(&self) -> &str {
        "max_change"
    }

    fn about(&self) -> &str {
        "refuses to change a number by too much at once"
    }

    fn parameters(&self) -> &[Parameter] {
        const PARAMETERS: &[Parameter] = &[
            Parameter {
                name: "column",
                kind: ArgumentKind::Column,
                need: ParameterRequirement::Required,
                about: "the integer column that may move so far only",
            },
            Parameter {
                name: "most",
                kind: ArgumentKind::Integer,
                need: ParameterRequirement::Required,
                about: "how far it may move in one statement",
            },
        ];
        PARAMETERS
    }

    fn build(&self, attachment: &Attachment<'_>) -> types::Result<Arc<dyn RegionObserver>> {
        let table = Arc::clone(attachment.table);
        let column = attachment.arguments.column("column").unwrap_or_default();
        let most = attachment.arguments.integer("most").unwrap_or_default();
        if !is_integer(&table, column) {
            let message = format!("column \"{}\" is not an integer", table.columns[column].name);
            return Err(types::Error::new("42804", message));
        }
        Ok(Arc::new(MaxChange { name: attachment.name.to_owned(), table, column, most }))
    }
}

fn is_integer(table: &TableSchema, column: usize) -> bool {
    let data_type = table.columns[column].sql_type.base.clone();
    matches!(data_type, DataType::Int2 | DataType::Int4 | DataType::Int8)
}

/// Observer that rejects changes above a maximum.
struct MaxChange {
    name: String,
    table: Arc<TableSchema>,
    column: usize,
    most: i64,
}

impl RegionObserver for MaxChange {
    fn name(&self) -> &str {
        &self.name
    }

    /// Only this hook is called; the others cost nothing.
    fn hooks(&self) -> Hooks {
        Hooks::of(&[Hook::PreBatch])
    }

    /// The observer enforces a constraint: while it is suspended, writes fail.
    fn is_essential(&self) -> bool {
        true
    }

    fn pre_batch(
        &self,
        context: &dyn ObserverContext,
        batch: &mut [Mutation],
    ) -> store::Result<()> {
        // The rows are locked. Their previous state is read once, for this and all later
        // observers.
        let layout = &self.table.layout;
        load_previous(context, layout, batch, |_| true)?;
        let column = [self.column];
        let value_error = |error| coprocessors::violation::value_error(&self.name, error);
        let decoder = RowDecoder::new(layout, &column).map_err(value_error)?;
        for change in changes(layout, batch) {
            let mut values = [Datum::Null, Datum::Null];
            for (value, state) in values.iter_mut().zip([&change.old, &change.new]) {
                if state.exists() {
                    let value = std::slice::from_mut(value);
                    decoder.decode(change.row, &state.packed(), value).map_err(value_error)?;
                }
            }
            let [Some(old), Some(new)] = values.map(|value| value.as_i64()) else { continue };
            if new.abs_diff(old) > self.most.unsigned_abs() {
                return Err(self.refusal(old, new));
            }
        }
        Ok(())
    }
}

impl MaxChange {
    /// A veto is the error that the client receives: code, message, detail.
    fn refusal(&self, old: i64, new: i64) -> store::Error {
        store::Error::Vetoed(Box::new(Veto {
            code: "23514".to_owned(),
            message: format!(
                "column \"{}\" may change by {} at once",
                self.table.columns[self.column].name, self.most
            ),
            detail: format!("It would change from {old} to {new}."),
            table: self.table.name.clone(),
            ..Veto::default()
        }))
    }
}

/// Endpoint that counts rows by ranges of a column.
struct Histogram;

/// The request to each region.
struct HistogramRequest {
    table: Arc<TableSchema>,
    column: usize,
    width: i64,
}

impl Endpoint for Histogram {
    type Request = HistogramRequest;
    /// Row counts by the start of their range, without rows with NULL.
    type Response = BTreeMap<i64, u64>;

    fn name(&self) -> &str {
        "histogram"
    }

    fn call(
        &self,
        region: &dyn EndpointContext,
        request: &HistogramRequest,
    ) -> store::Result<Page<BTreeMap<i64, u64>>> {
        let layout = &request.table.layout;
        let columns = [request.column];
        let value_error = |error| coprocessors::violation::value_error("histogram", error);
        let mut counts = BTreeMap::new();
        let mut cells = CellBatch::new();
        for (start, stop) in region.ranges() {
            let scan = Scan::range(start.clone(), stop.clone());
            let mut scanner = region.scan(row::ReadColumns::of(layout, &columns).scan(scan))?;
            while scanner.next_batch(1_000, &mut cells)? {
                let mut vectors = row::vectors_for(layout, &columns, cells.row_count());
                row::decode_batch(layout, &columns, &cells, &mut vectors).map_err(value_error)?;
                for index in 0..cells.row_count() {
                    if let Some(value) = vectors[0].datum(index).as_i64() {
                        let from = value.div_euclid(request.width) * request.width;
                        *counts.entry(from).or_default() += 1;
                    }
                }
                // A full page is returned; the caller then requests the rest of the region.
                if let Some(row) = region.page_end(cells.row_count() as u64, &mut scanner)? {
                    return Ok(Page::until(row, counts));
                }
            }
        }
        Ok(Page::whole(counts))
    }
}

/// The SQL interface: arguments, columns, and the conversion of the regions' answers to rows.
impl TableEndpoint for Histogram {
    type Answer = BTreeMap<i64, u64>;

    fn about(&self) -> &str {
        "counts rows by ranges of a number"
    }

    fn parameters(&self) -> &[Parameter] {
        const PARAMETERS: &[Parameter] = &[
            Parameter {
                name: "column",
                kind: ArgumentKind::Column,
                need: ParameterRequirement::Required,
                about: "the integer column whose values make the ranges",
            },
            Parameter {
                name: "width",
                kind: ArgumentKind::Integer,
                need: ParameterRequirement::Default("100"),
                about: "how many values a range has",
            },
        ];
        PARAMETERS
    }

    fn columns(&self) -> &[AnswerColumn] {
        &[
            AnswerColumn { name: "from_value", data_type: DataType::Int8 },
            AnswerColumn { name: "row_count", data_type: DataType::Int8 },
        ]
    }

    fn request(&self, call: &EndpointCall<'_>) -> types::Result<HistogramRequest> {
        let table = Arc::clone(call.table);
        let column = call.arguments.column("column").unwrap_or_default();
        if !is_integer(&table, column) {
            let message = format!("column \"{}\" is not an integer", table.columns[column].name);
            return Err(types::Error::new("42804", message));
        }
        match call.arguments.integer("width").unwrap_or_default() {
            width if width > 0 => Ok(HistogramRequest { table, column, width }),
            _ => Err(types::Error::new("22023", "the width of a range is above 0")),
        }
    }

    fn merge(
        &self,
        answer: &mut BTreeMap<i64, u64>,
        page: BTreeMap<i64, u64>,
    ) -> types::Result<()> {
        for (from, count) in page {
            *answer.entry(from).or_default() += count;
        }
        Ok(())
    }

    fn rows(
        &self,
        _: &HistogramRequest,
        answer: BTreeMap<i64, u64>,
    ) -> types::Result<Vec<Vec<Datum>>> {
        let row = |(from, count)| vec![Datum::Int8(from), Datum::Int8(count as i64)];
        Ok(answer.into_iter().map(row).collect())
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn observer_rejects_rows_and_endpoint_counts() {
        let directory = tempfile::tempdir().expect("a directory can be made");
        let mut out = Vec::new();
        super::run(directory.path(), &mut out).expect("the program runs");
        let out = String::from_utf8(out).expect("it writes text");
        let answers: Vec<&str> = out
            .lines()
            .map(|line| line.rsplit_once(": ").map_or(line, |(_, end)| end).trim())
            .filter(|line| !line.ends_with(':') && !line.contains("-+-") && !line.ends_with("--"))
            .collect();
        assert_eq!(
            answers,
            [
                "ok",
                "coprocessor \"max_change\" requires parameter \"most\" (SQLSTATE 22023)",
                "ok",
                "ok",
                "ok",
                "column \"cents\" may change by 100 at once (SQLSTATE 23514)",
                "ok",
                "ok",
                "from_value | row_count",
                "0 |        23",
                "250 |        25",
                "500 |        25",
                "750 |        25",
                "(4 rows)",
                "max",
                "10",
                "(1 row)",
                "the width of a range is above 0 (SQLSTATE 22023)",
                "name    |   kind   | rejections",
                "max_change | observer |          1",
                "histogram  | endpoint |          1",
                "(2 rows)",
            ],
            "{out}"
        );
    }
}
