//! Rule: DISTINCT aggregates of one argument become aggregates over groups of it.
//!
//! ```text
//! SELECT k, count(DISTINCT x) … GROUP BY k
//!                              SELECT k, count(x) FROM (SELECT k, x … GROUP BY k, x) GROUP BY k
//! ```
//!
//! Groups are computed in parallel and merged by partition; the values of a DISTINCT aggregate
//! would all be collected in one hash table.

use types::aggregate::Aggregate;
use types::expr::Expr;

use crate::planner::conjunct::{column, is_volatile};

/// Two levels of grouping.
pub(super) struct GroupingLevels {
    /// Keys of the lower level.
    pub below: Vec<Expr>,
    /// Keys of the upper level, over the lower one.
    pub group_by: Vec<Expr>,
    /// Aggregates of the upper level, over the lower one.
    pub aggregates: Vec<Aggregate>,
}

/// Returns the levels for aggregates; `None` if one has a different argument or an ORDER BY.
pub(super) fn levels(group_by: &[Expr], aggregates: &[Aggregate]) -> Option<GroupingLevels> {
    let value = aggregates.first()?.arguments.first()?;
    let of_groups = |aggregate: &Aggregate| Aggregate {
        arguments: vec![column(group_by.len(), value.data_type())],
        distinct: false,
        ..aggregate.clone()
    };
    let is_of_value = |aggregate: &Aggregate| {
        aggregate.distinct
            && aggregate.arguments.as_slice() == std::slice::from_ref(value)
            && aggregate.filter.is_none()
            && aggregate.order_by.is_empty()
            && !of_groups(aggregate).is_partial_unreduced()
    };
    if !aggregates.iter().all(is_of_value) || is_volatile(value) {
        return None;
    }
    let keys = group_by.iter().enumerate();
    Some(GroupingLevels {
        below: group_by.iter().chain([value]).cloned().collect(),
        group_by: keys.map(|(index, key)| column(index, key.data_type())).collect(),
        aggregates: aggregates.iter().map(of_groups).collect(),
    })
}
