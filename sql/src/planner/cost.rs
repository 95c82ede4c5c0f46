//! What steps cost, in units of reading one row of a scan of row blocks: measured in
//! proportion, not in time.

/// Looking a row up in a hash table.
pub(super) const PROBE: f64 = 0.5;
/// Putting a row into one.
pub(super) const BUILD: f64 = 0.75;
/// Trying a pair of rows.
pub(super) const PAIR: f64 = 0.05;
/// Yielding a row.
pub(super) const OUTPUT: f64 = 0.25;
/// Getting a row by its key.
pub(super) const GET: f64 = 12.0;
/// Comparing two rows of a sort.
pub(super) const COMPARISON: f64 = 0.05;
/// Finding out whether a row is among the first ones.
pub(super) const TOP: f64 = 0.1;
/// So many rows of a side are not kept for a join if both sides can be merged instead.
pub(super) const MANY_KEPT: f64 = 100_000.0;
/// Reading a row of columnar blocks, whatever of it.
const COLUMNAR_ROW: f64 = 0.04;
/// Reading a column of that row.
const COLUMNAR_VALUE: f64 = 0.02;
/// Going to where a range begins.
pub(super) const RANGE: f64 = 20.0;

/// Returns the cost of reading a row of a scan, so many columns of it, where such a part of the
/// rows is in columnar blocks.
pub(super) fn scanned_row(columnar_part: f64, columns: usize) -> f64 {
    let columnar = (COLUMNAR_ROW + COLUMNAR_VALUE * columns as f64).min(1.0);
    columnar_part * columnar + (1.0 - columnar_part)
}

/// Returns the cost of a hash join, what it costs to make its inputs left aside.
pub(super) fn hash_join(outer_rows: f64, kept_rows: f64, rows: f64) -> f64 {
    PROBE * outer_rows + BUILD * kept_rows + OUTPUT * rows
}

/// Returns the cost of trying all pairs, likewise.
pub(super) fn loop_join(left_rows: f64, right_rows: f64, rows: f64) -> f64 {
    left_rows + right_rows + PAIR * left_rows * right_rows + OUTPUT * rows
}

/// Returns the cost of looking rows up by key for each outer row, each look-up costing so much.
pub(super) fn lookup_join(outer_rows: f64, lookup: f64, rows: f64) -> f64 {
    (PROBE + lookup) * outer_rows + OUTPUT * rows
}
