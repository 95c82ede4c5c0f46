//! EXPLAIN text of window functions.

use crate::logical::{Exclusion, Frame, FrameBound, FrameUnits, WindowFunction, WindowKind};
use crate::plan::WindowAggNode;
use crate::plan::explain::{sort_text, texts};
use crate::plan::expression::text;

/// Returns the text `sum(x) OVER (PARTITION BY a ORDER BY b ROWS …)`.
pub(super) fn window_call(
    function: &WindowFunction,
    window: &WindowAggNode,
    names: &[String],
) -> String {
    let call = match &function.kind {
        WindowKind::Aggregate(aggregate) => aggregate.describe_with(&|part| text(part, names)),
        kind => format!("{}({})", window_name(kind), texts(&function.arguments, names)),
    };
    let mut parts = Vec::new();
    if !window.partition_by.is_empty() {
        parts.push(format!("PARTITION BY {}", texts(&window.partition_by, names)));
    }
    if !window.order_by.is_empty() {
        parts.push(format!("ORDER BY {}", sort_text(&window.order_by, names)));
    }
    parts.extend(frame_text(&function.frame));
    format!("{call} OVER ({})", parts.join(" "))
}

fn window_name(kind: &WindowKind) -> &'static str {
    match kind {
        WindowKind::RowNumber => "row_number",
        WindowKind::Rank => "rank",
        WindowKind::DenseRank => "dense_rank",
        WindowKind::PercentRank => "percent_rank",
        WindowKind::CumeDist => "cume_dist",
        WindowKind::Ntile => "ntile",
        WindowKind::Lag => "lag",
        WindowKind::Lead => "lead",
        WindowKind::FirstValue => "first_value",
        WindowKind::LastValue => "last_value",
        WindowKind::NthValue => "nth_value",
        WindowKind::Aggregate(aggregate) => aggregate.kind.name(),
    }
}

/// Returns the text of a frame, unless it is the default one.
fn frame_text(frame: &Frame) -> Option<String> {
    if *frame == Frame::default() {
        return None;
    }
    let bound = |bound: &FrameBound| match bound {
        FrameBound::UnboundedPreceding => "UNBOUNDED PRECEDING".to_owned(),
        FrameBound::CurrentRow => "CURRENT ROW".to_owned(),
        FrameBound::UnboundedFollowing => "UNBOUNDED FOLLOWING".to_owned(),
        FrameBound::Offset { offset, following, .. } => {
            let side = if *following { "FOLLOWING" } else { "PRECEDING" };
            format!("{} {side}", text(offset, &[]))
        }
    };
    let units = match frame.units {
        FrameUnits::Rows => "ROWS",
        FrameUnits::Range => "RANGE",
        FrameUnits::Groups => "GROUPS",
    };
    let exclusion = match frame.exclusion {
        Exclusion::NoOthers => "",
        Exclusion::CurrentRow => " EXCLUDE CURRENT ROW",
        Exclusion::Group => " EXCLUDE GROUP",
        Exclusion::Ties => " EXCLUDE TIES",
    };
    let (start, end) = (bound(&frame.start), bound(&frame.end));
    Some(format!("{units} BETWEEN {start} AND {end}{exclusion}"))
}
