//! A program with coprocessors of its own: an observer that SQL attaches to a table, and an
//! endpoint that runs in the table's regions.
//!
//! * `max_change` refuses a change of a number by more than it may move at once.
//! * `Histogram` counts the rows of a table by ranges of a number, in each region for itself.
//!
//! Run it with `cargo run --example coprocessor`, its test with `cargo test --example coprocessor`.
//! What hooks there are, and what they may do, is in `docs/coprocessors.md`.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use bennu::{Database, Result, statement};
use coprocessors::change::{changes, load_previous};
use coprocessors::registry::{
    ArgumentKind, Attachment, CoprocessorFactory, Need, Parameter, TableShape,
};
use coprocessors::row;
use sql::EngineOptions;
use store::endpoint::{Endpoint, EndpointContext, Page};
use store::error::Veto;
use store::observer::{Hook, Hooks, ObserverContext, RegionObserver};
use store::transaction::TransactionOptions;
use store::{CellBatch, Mutation, Options, Scan};
use types::rowcode::RowDecoder;
use types::{DataType, Datum};

fn main() -> Result<()> {
    let directory = tempfile::tempdir()?;
    run(directory.path(), &mut std::io::stdout().lock())
}

/// Attaches `max_change` to a table, changes rows, and asks for a histogram of them.
fn run(directory: &Path, out: &mut impl Write) -> Result<()> {
    let mut options = EngineOptions::default();
    options.registry.add(Arc::new(MaxChangeFactory));
    let database = Database::open_with(directory, Options::default(), options)?;
    let mut session = database.session("ann");
    let mut tell = |sql: &str| -> Result<()> {
        match statement::run(&mut session, sql) {
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
    for (from, count) in histogram(&database, "price", "cents", 250)? {
        writeln!(out, "{from} to {}: {count} rows", from + 249)?;
    }
    drop(session);
    database.shut_down()
}

/// Makes `max_change`. The registry has checked the arguments before [`MaxChangeFactory::build`]
/// sees them; what only the coprocessor can know, it checks itself.
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
                need: Need::Required,
                about: "the integer column that may move so far only",
            },
            Parameter {
                name: "most",
                kind: ArgumentKind::Integer,
                need: Need::Required,
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

fn is_integer(table: &TableShape, column: usize) -> bool {
    let data_type = table.columns[column].sql_type.base;
    matches!(data_type, DataType::Int2 | DataType::Int4 | DataType::Int8)
}

/// Refuses changes that are too large.
struct MaxChange {
    name: String,
    table: Arc<TableShape>,
    column: usize,
    most: i64,
}

impl RegionObserver for MaxChange {
    fn name(&self) -> &str {
        &self.name
    }

    /// Only this one is called; the others cost nothing.
    fn hooks(&self) -> Hooks {
        Hooks::of(&[Hook::PreBatch])
    }

    /// A rule that data must keep: while it cannot be asked, nothing is written.
    fn is_essential(&self) -> bool {
        true
    }

    fn pre_batch(
        &self,
        context: &dyn ObserverContext,
        batch: &mut [Mutation],
    ) -> store::Result<()> {
        // The rows are locked: what they were is read once, for all observers behind this one.
        load_previous(context, batch, |_| true)?;
        let layout = &self.table.layout;
        let column = [self.column];
        let value_error = |error| coprocessors::violation::value_error(&self.name, error);
        let decoder = RowDecoder::new(layout, &column).map_err(value_error)?;
        for change in changes(layout.family_count, batch) {
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
    /// A veto is what the client sees: code, message, detail.
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

/// Counts rows by ranges of a column.
struct Histogram;

/// What each region is asked.
struct HistogramRequest {
    table: TableShape,
    column: usize,
    width: i64,
}

impl Endpoint for Histogram {
    type Request = HistogramRequest;
    /// Rows by the start of their range; rows with NULL are left out.
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
            let families = row::families_of(layout, &columns);
            let scan = Scan { families, ..Scan::range(start.clone(), stop.clone()) };
            let mut scanner = region.scan(scan)?;
            while scanner.next_batch(1_000, &mut cells)? {
                let mut vectors = row::vectors_for(layout, &columns, cells.row_count());
                row::decode_batch(layout, &columns, &cells, &mut vectors).map_err(value_error)?;
                for index in 0..cells.row_count() {
                    if let Some(value) = vectors[0].datum(index).as_i64() {
                        let from = value.div_euclid(request.width) * request.width;
                        *counts.entry(from).or_default() += 1;
                    }
                }
                // A full page is handed over; the caller asks for the rest of the region.
                if let Some(row) = region.page_end(cells.row_count() as u64, &mut scanner)? {
                    return Ok(Page::until(row, counts));
                }
            }
        }
        Ok(Page::whole(counts))
    }
}

/// Asks all regions and puts their answers together.
fn histogram(
    database: &Database,
    table: &str,
    column: &str,
    width: i64,
) -> Result<BTreeMap<i64, u64>> {
    let engine = database.engine();
    let catalog = engine.catalog();
    let missing = || sql::Error::new("42P01", format!("there is no {table} with {column}"));
    let shape = catalog.table(table).map(|table| table.shape()).ok_or_else(missing)?;
    let column = shape.column(column).ok_or_else(missing)?;
    let (id, request) = (shape.id, HistogramRequest { table: shape, column, width });
    let transaction =
        engine.store().begin(TransactionOptions { read_only: true, ..Default::default() });
    let mut counts = BTreeMap::new();
    transaction
        .call_endpoint(id, &[(Vec::new(), None)], &Histogram, &request, |part| {
            for (from, count) in part {
                *counts.entry(from).or_default() += count;
            }
            Ok::<(), store::Error>(())
        })
        .map_err(sql::Error::from)?;
    Ok(counts)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_observer_refuses_and_the_endpoint_counts() {
        let directory = tempfile::tempdir().expect("a directory can be made");
        let mut out = Vec::new();
        super::run(directory.path(), &mut out).expect("the program runs");
        let out = String::from_utf8(out).expect("it writes text");
        let ends: Vec<&str> =
            out.lines().map(|line| line.rsplit_once(": ").map_or(line, |(_, end)| end)).collect();
        assert_eq!(
            ends,
            [
                "ok",
                "coprocessor \"max_change\" needs parameter \"most\" (SQLSTATE 22023)",
                "ok",
                "ok",
                "ok",
                "column \"cents\" may change by 100 at once (SQLSTATE 23514)",
                "ok",
                "23 rows",
                "25 rows",
                "25 rows",
                "25 rows",
            ],
            "{out}"
        );
    }
}
