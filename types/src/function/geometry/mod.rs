//! SQL functions and operators of the geometric types. The computations are in
//! [`geometry`](crate::geometry).

mod areas;
mod boxes;
mod circles;
mod curves;
mod points;
mod value;

use super::FunctionRow;

/// The function table of this family.
pub(super) fn functions() -> Vec<FunctionRow> {
    let families = [
        areas::FUNCTIONS,
        boxes::FUNCTIONS,
        circles::FUNCTIONS,
        curves::FUNCTIONS,
        points::FUNCTIONS,
    ];
    families.concat()
}
