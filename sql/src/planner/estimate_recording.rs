//! Recording of cost and row estimates during planning, for EXPLAIN.
//!
//! Row counts are those of [`estimate`](crate::planner::estimate), costs those of [`cost`] as far
//! as plans are chosen by them; nodes without alternatives, such as a filter, are counted in the
//! same units. Without EXPLAIN nothing is computed here.

use std::cell::RefCell;

use types::DataType;

use crate::logical::Logical;
use crate::plan::{Estimate, Estimates, Node};
use crate::planner::access_paths::{PathCandidate, ScanRequirements};
use crate::planner::cost;
use crate::planner::estimate::Estimator;

/// Assumed width of a value without a fixed length, in bytes.
const TEXT_WIDTH: usize = 32;

/// Recorder of estimates; `None` inside: estimates are not recorded.
#[derive(Clone, Copy)]
pub(super) struct EstimateRecorder<'a>(Option<&'a EstimateLog<'a>>);

/// Estimates under construction.
pub(super) struct EstimateLog<'a> {
    estimator: Estimator<'a>,
    estimates: RefCell<Estimates>,
}

/// Estimate of a logical node, before its plan node is built.
pub(super) struct NodeEstimate {
    rows: f64,
    width: usize,
}

impl<'a> EstimateLog<'a> {
    pub(super) fn new(estimator: Estimator<'a>) -> EstimateLog<'a> {
        EstimateLog { estimator, estimates: RefCell::default() }
    }

    pub(super) fn into_estimates(self) -> Estimates {
        self.estimates.into_inner()
    }

    /// Records a node; inputs without an estimate get the same number of rows.
    fn note(&self, node: &Node, begun: &NodeEstimate) -> Estimate {
        let inputs = node.inputs().into_iter().map(|input| {
            let known = self.estimates.borrow().of(input.address());
            known.unwrap_or_else(|| self.note(input, begun))
        });
        let inputs: Vec<Estimate> = inputs.collect();
        let (startup, total) = costs(node, &inputs, begun.rows);
        let estimate = Estimate { startup, total, rows: begun.rows, width: begun.width };
        self.estimates.borrow_mut().set(node, estimate);
        estimate
    }
}

impl<'a> EstimateRecorder<'a> {
    /// Recorder that does nothing.
    pub(super) const NONE: EstimateRecorder<'static> = EstimateRecorder(None);

    pub(super) fn of(notebook: &'a EstimateLog<'a>) -> EstimateRecorder<'a> {
        EstimateRecorder(Some(notebook))
    }

    /// Estimates a logical node.
    pub(super) fn begin(self, plan: &Logical) -> Option<NodeEstimate> {
        let EstimateRecorder(notebook) = self;
        notebook.map(|notebook| NodeEstimate {
            rows: notebook.estimator.rows(plan),
            width: plan.column_types().iter().map(width_of).sum(),
        })
    }

    /// Records the estimate for the built plan node.
    pub(super) fn end(self, begun: Option<NodeEstimate>, node: &Node) {
        if let (EstimateRecorder(Some(notebook)), Some(begun)) = (self, begun) {
            notebook.note(node, &begun);
        }
    }

    /// Returns the cost of an access path.
    pub(super) fn path_cost(
        self,
        path: &PathCandidate,
        question: &ScanRequirements<'_>,
    ) -> Option<f64> {
        let EstimateRecorder(notebook) = self;
        notebook.map(|notebook| path.cost(question, notebook.estimator))
    }
}

/// Returns the approximate width of a value in bytes.
fn width_of(data_type: &DataType) -> usize {
    match data_type.length() {
        length @ 1..=32 => length.unsigned_abs().into(),
        _ => TEXT_WIDTH,
    }
}

/// Returns startup and total cost of a node.
fn costs(node: &Node, inputs: &[Estimate], rows: f64) -> (f64, f64) {
    let first = inputs.first().copied();
    let all: f64 = inputs.iter().map(|input| input.total).sum();
    let startup = first.map_or(0.0, |first| first.startup);
    let input_rows = first.map_or(0.0, |first| first.rows);
    // Cost of a node that reads all input before its first row.
    let whole = |own: f64| (all + own, all + own + cost::OUTPUT * rows);
    let passing = (startup, all + cost::COMPARISON * input_rows);
    match (node, inputs) {
        (Node::Scan(scan), _) => (0.0, scan.path.cost.unwrap_or(rows)),
        (Node::RegionAggregate(node), _) => {
            let read = node.path.cost.unwrap_or(rows);
            (read, read + cost::OUTPUT * rows)
        }
        (Node::RegionTopN(node), _) => {
            let read = node.path.cost.unwrap_or(rows);
            (read, read + cost::OUTPUT * rows)
        }
        (Node::HashJoin(_), [left, right]) => {
            let kept = cost::BUILD * right.rows;
            let own = cost::hash_join(left.rows, right.rows, rows);
            (left.startup + right.total + kept, all + own)
        }
        (Node::MergeJoin(_), [left, right]) => {
            let own = cost::hash_join(left.rows, right.rows, rows);
            (left.startup + right.startup, all + own)
        }
        (Node::LookupJoin(_), [left, right]) => {
            (left.startup, left.total + cost::lookup_join(left.rows, right.total, rows))
        }
        (Node::LoopJoin(_), [left, right]) => {
            (left.startup + right.total, all + cost::loop_join(left.rows, right.rows, rows))
        }
        (Node::Apply(_), [input, _, groups]) => {
            let own = cost::hash_join(input.rows, groups.rows, rows);
            (input.startup + groups.total, input.total + groups.total + own)
        }
        (Node::Apply(apply), [input, subquery]) if !apply.bindings.is_empty() => {
            (startup, input.total + input.rows * subquery.total)
        }
        (Node::Aggregate(_) | Node::GroupingSets(_), _) => whole(cost::BUILD * input_rows),
        (Node::Distinct(distinct), _) if !distinct.sorted => {
            (startup, all + cost::BUILD * input_rows)
        }
        (Node::SetOperation(_), _) => whole(cost::BUILD * input_rows),
        (Node::Sort(sort), _) => match sort.goal {
            Some(_) => whole(cost::TOP * input_rows),
            None => whole(cost::COMPARISON * input_rows * input_rows.max(2.0).log2()),
        },
        (Node::Limit(_), [input]) => {
            let part = (rows / input.rows.max(1.0)).min(1.0);
            (input.startup, input.startup + (input.total - input.startup).max(0.0) * part)
        }
        (Node::SystemRows(_) | Node::Values(_) | Node::CteScan(_), _) => {
            (0.0, cost::COMPARISON * rows)
        }
        _ => passing,
    }
}
