//! ANALYZE: statistics of a table and its columns, from a sample of the rows.
//!
//! All rows are read. Those that satisfy the predicate of a partial index are counted. The sample
//! has as many rows as PostgreSQL takes by default (300 times its target of 100), each row with
//! the same probability (reservoir sampling, Vitter's algorithm R). The number of distinct values
//! is estimated from the number of values that occur once in the sample (Haas and Stokes, 1998),
//! as in PostgreSQL. The planner reads the result from the catalog ([`TableStatistics`]).

use std::sync::Arc;

use types::Batch;
use types::expr::Expr;

use crate::catalog::statistics::{ColumnStatistics, TableStatistics, key_form};
use crate::catalog::table::{Index, Table};
use crate::error::Result;
use crate::exec::{self, Context};
use crate::logical::{BoundPlan, Logical, Query, TableScan};
use crate::planner;
use crate::planner::statistics::NoStatistics;

/// Number of rows of a sample.
const SAMPLE_ROWS: usize = 30_000;
/// Maximum number of common values, and of histogram buckets.
const TARGET: usize = 100;
/// Length above which a value is not stored, in bytes: it would fill the catalog.
const VALUE_BYTES_MAX: usize = 256;

/// Reads a table and returns its statistics. `estimate`: the store's estimate of the row count.
///
/// # Errors
///
/// Errors of the scan, for example a cancellation.
pub fn analyze(table: &Arc<Table>, estimate: u64, context: Context) -> Result<TableStatistics> {
    let mut sample = RowSample::new(table);
    let scan = TableScan {
        table: Arc::clone(table),
        alias: table.name.clone(),
        columns: sample.columns.iter().map(|column| column.position).collect(),
        system_time: None,
        lock: None,
        index_hint: Some(Vec::new()),
        statistics: None,
        policies: None,
    };
    let query = Query { plan: Logical::Scan(scan), columns: Vec::new() };
    let plan = Arc::new(planner::plan(&BoundPlan::Query(query), &NoStatistics)?);
    let eval = context.eval.clone();
    let mut indexes = partial_indexes(table, &sample.columns);
    let mut rows = exec::open(&plan, context)?;
    while let Some(batch) = rows.next()? {
        for (predicate, (_, entries)) in &mut indexes {
            *entries += predicate.filter_batch(&batch, &eval)?.len() as u64;
        }
        sample.add(&batch);
    }
    let partial_indexes = indexes.into_iter().map(|(_, counted)| counted).collect();
    let rows = sample.row_count;
    let columns = sample.columns.into_iter().map(|column| column.statistics(rows)).collect();
    Ok(TableStatistics { rows, estimate, columns, partial_indexes, unknown: Default::default() })
}

/// Returns the predicates of a table's partial indexes over the columns of a sample, each with
/// the number of its index and an entry count of zero.
fn partial_indexes(table: &Table, columns: &[SampledColumn]) -> Vec<(Expr, (u32, u64))> {
    let place = |position| {
        let place = columns.iter().position(|column| column.position == position);
        place.expect("a predicate reads columns that are shown")
    };
    let predicate = |index: &Arc<Index>| {
        let predicate = index.spec.predicate.clone()?;
        Some((predicate.remap_columns(&place), (index.oid, 0)))
    };
    table.indexes.iter().filter_map(predicate).collect()
}

/// Reservoir sample of a table.
struct RowSample {
    row_count: u64,
    kept: usize,
    random: u64,
    columns: Vec<SampledColumn>,
}

struct SampledColumn {
    /// Position in the table.
    position: usize,
    name: String,
    data_type: types::DataType,
    /// Sampled values in key encoding; `None`: NULL, or longer than the limit.
    values: Vec<Option<Vec<u8>>>,
    /// True if the sampled value is not NULL, stored or not.
    present: Vec<bool>,
}

impl RowSample {
    fn new(table: &Table) -> RowSample {
        let shown = table.columns.iter().enumerate().filter(|(_, column)| !column.is_hidden());
        let columns = shown.map(|(position, column)| SampledColumn {
            position,
            name: column.name.clone(),
            data_type: table.layout.columns[position].data_type.clone(),
            values: Vec::new(),
            present: Vec::new(),
        });
        // The seed is fixed: the same table gives the same sample.
        let random = u64::from(table.id.0);
        RowSample { row_count: 0, kept: 0, random, columns: columns.collect() }
    }

    /// Returns the next pseudo-random number: Steele, Lea and Flood's SplitMix64.
    fn random(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.random ^ (self.random >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn add(&mut self, batch: &Batch) {
        for row in 0..batch.row_count {
            self.row_count += 1;
            let place = if self.kept < SAMPLE_ROWS {
                self.kept += 1;
                self.kept - 1
            } else {
                match usize::try_from(self.random() % self.row_count) {
                    Ok(place) if place < SAMPLE_ROWS => place,
                    _ => continue,
                }
            };
            for (column, vector) in self.columns.iter_mut().zip(&batch.columns) {
                column.put(place, &vector.datum(row));
            }
        }
    }
}

impl SampledColumn {
    fn put(&mut self, place: usize, value: &types::Datum) {
        let form = key_form(value, &self.data_type, &self.data_type);
        let form = form.filter(|form| form.len() <= VALUE_BYTES_MAX);
        if place == self.values.len() {
            self.values.push(form);
            self.present.push(!value.is_null());
        } else {
            self.values[place] = form;
            self.present[place] = !value.is_null();
        }
    }

    /// Returns the statistics of the column. `row_count`: rows of the table.
    fn statistics(self, row_count: u64) -> ColumnStatistics {
        debug_assert_eq!(self.present.len(), self.values.len(), "sampled values");
        let sampled = self.present.len();
        let present = self.present.iter().filter(|present| **present).count();
        debug_assert!(sampled as u64 <= row_count, "{sampled} sampled rows of {row_count}");
        let part = |count: usize| count as f64 / sampled.max(1) as f64;
        let mut values: Vec<Vec<u8>> = self.values.into_iter().flatten().collect();
        values.sort_unstable();
        let runs: Vec<(&Vec<u8>, usize)> =
            values.chunk_by(|a, b| a == b).map(|run| (&run[0], run.len())).collect();
        let (left_out, total) = (present - values.len(), part(present) * row_count as f64);
        let common = common(&runs, values.len());
        let others: Vec<&Vec<u8>> = values
            .iter()
            .filter(|value| !common.iter().any(|(common, _)| common == value))
            .collect();
        ColumnStatistics {
            bounds: bounds(&others),
            common: common.into_iter().map(|(v, count)| (v.clone(), part(count))).collect(),
            // Long values are taken to be distinct.
            distinct: distinct(&runs, values.len(), total) + left_out as f64,
            null_fraction: part(sampled - present),
            type_oid: self.data_type.oid(),
            name: self.name,
            unknown: Default::default(),
            decoded: Default::default(),
        }
    }
}

/// Returns the most common values, most frequent first.
fn common<'a>(runs: &[(&'a Vec<u8>, usize)], count: usize) -> Vec<(&'a Vec<u8>, usize)> {
    let average = count as f64 / runs.len().max(1) as f64;
    let all = runs.len() <= TARGET && runs.iter().all(|(_, run)| *run > 1);
    let is_common = |run: usize| all || (run > 1 && run as f64 > 1.25 * average);
    let mut common: Vec<_> = runs.iter().copied().filter(|(_, run)| is_common(*run)).collect();
    common.sort_by_key(|(_, run)| std::cmp::Reverse(*run));
    common.truncate(TARGET);
    common
}

/// Returns the histogram bounds: each bucket holds equally many values.
fn bounds(values: &[&Vec<u8>]) -> Vec<Vec<u8>> {
    if values.len() < 2 {
        return Vec::new();
    }
    let ranges = TARGET.min(values.len() - 1);
    (0..=ranges).map(|bound| values[bound * (values.len() - 1) / ranges].clone()).collect()
}

/// Estimates the number of distinct values among `total`, of which `drawn` were sampled.
fn distinct(runs: &[(&Vec<u8>, usize)], drawn: usize, total: f64) -> f64 {
    let (n, d) = (drawn as f64, runs.len() as f64);
    let once = runs.iter().filter(|(_, run)| *run == 1).count() as f64;
    if drawn == 0 || n >= total {
        return d;
    }
    if once >= n {
        return total;
    }
    (n * d / (n - once + once * n / total)).clamp(d, total)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn distinct_of(values: impl Iterator<Item = u32>, total: f64) -> f64 {
        let mut values: Vec<Vec<u8>> = values.map(|value| value.to_be_bytes().to_vec()).collect();
        values.sort_unstable();
        let runs: Vec<(&Vec<u8>, usize)> =
            values.chunk_by(|a, b| a == b).map(|run| (&run[0], run.len())).collect();
        distinct(&runs, values.len(), total)
    }

    #[test]
    fn distinct_estimate_uses_values_that_occur_once() {
        assert_eq!(distinct_of(0..100, 100.0), 100.0);
        assert_eq!(distinct_of(0..1_000, 1e6), 1e6, "all are different");
        assert_eq!(distinct_of((0..1_000).map(|v| v % 10), 1e6), 10.0, "none occurs once");
        let some = distinct_of((0..1_000).map(|v| v * v % 1_009), 1e6);
        assert!((500.0..=600.0).contains(&some), "{some}");
    }

    #[test]
    fn histogram_bounds_have_equal_frequency() {
        let values: Vec<Vec<u8>> = (0..=1_000_u32).map(|v| v.to_be_bytes().to_vec()).collect();
        let values: Vec<&Vec<u8>> = values.iter().collect();
        let bounds = bounds(&values);
        assert_eq!(bounds.len(), TARGET + 1);
        assert_eq!(bounds[1], 10_u32.to_be_bytes());
        assert_eq!(bounds[TARGET], 1_000_u32.to_be_bytes());
    }
}
