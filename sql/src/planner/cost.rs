//! Cost constants and formulas, in units of reading one row of a row-block scan; measured as
//! ratios.

/// Probe of a hash table.
pub(super) const PROBE: f64 = 0.5;
/// Insertion of a row into a hash table.
pub(super) const BUILD: f64 = 0.75;
/// Evaluation of a join condition on a pair of rows.
pub(super) const PAIR: f64 = 0.05;
/// Output of a row.
pub(super) const OUTPUT: f64 = 0.25;
/// Get of a row by key.
pub(super) const GET: f64 = 12.0;
/// Comparison of two rows in a sort.
pub(super) const COMPARISON: f64 = 0.05;
/// Top-N check of a row.
pub(super) const TOP: f64 = 0.1;
/// Build-side row count above which a merge join is preferred if both sides are sorted.
pub(super) const MANY_KEPT: f64 = 100_000.0;
/// Read of a row in columnar blocks, for any number of columns.
const COLUMNAR_ROW: f64 = 0.04;
/// Read of a column of that row.
const COLUMNAR_VALUE: f64 = 0.02;
/// Seek to the start of a range.
pub(super) const RANGE: f64 = 20.0;

/// Returns the cost of reading a scanned row with `columns` columns, given the fraction of rows
/// in columnar blocks.
pub(super) fn scanned_row(columnar_part: f64, columns: usize) -> f64 {
    let columnar = (COLUMNAR_ROW + COLUMNAR_VALUE * columns as f64).min(1.0);
    columnar_part * columnar + (1.0 - columnar_part)
}

/// Returns the cost of a hash join, without that of its inputs.
pub(super) fn hash_join(outer_rows: f64, kept_rows: f64, rows: f64) -> f64 {
    PROBE * outer_rows + BUILD * kept_rows + OUTPUT * rows
}

/// Returns the cost of a nested-loop join, without that of its inputs.
pub(super) fn loop_join(left_rows: f64, right_rows: f64, rows: f64) -> f64 {
    left_rows + right_rows + PAIR * left_rows * right_rows + OUTPUT * rows
}

/// Returns the cost of an index nested-loop join, without that of its outer input. `lookup`: the
/// cost per outer row.
pub(super) fn lookup_join(outer_rows: f64, lookup: f64, rows: f64) -> f64 {
    (PROBE + lookup) * outer_rows + OUTPUT * rows
}
