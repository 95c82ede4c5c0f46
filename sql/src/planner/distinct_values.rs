//! Rule: aggregates over distinct values of one thing are aggregates of its groups.
//!
//! ```text
//! SELECT k, count(DISTINCT x) … GROUP BY k
//!                              SELECT k, count(x) FROM (SELECT k, x … GROUP BY k, x) GROUP BY k
//! ```
//!
//! Groups are made side by side and merged partition by partition; the values of a DISTINCT would
//! all go to one table.

use types::aggregate::Aggregate;
use types::expr::Expr;

use crate::planner::conjunct::{column, is_volatile};

/// Two levels of groups.
pub(super) struct Levels {
    /// The keys of those below.
    pub below: Vec<Expr>,
    /// The keys of those above, over these.
    pub group_by: Vec<Expr>,
    /// The aggregates, likewise.
    pub aggregates: Vec<Aggregate>,
}

/// Returns the levels of such groups; `None` if some aggregate is over something else, or wants its
/// values in an order.
pub(super) fn levels(group_by: &[Expr], aggregates: &[Aggregate]) -> Option<Levels> {
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
            && !of_groups(aggregate).keeps_all()
    };
    if !aggregates.iter().all(is_of_value) || is_volatile(value) {
        return None;
    }
    let keys = group_by.iter().enumerate();
    Some(Levels {
        below: group_by.iter().chain([value]).cloned().collect(),
        group_by: keys.map(|(index, key)| column(index, key.data_type())).collect(),
        aggregates: aggregates.iter().map(of_groups).collect(),
    })
}
