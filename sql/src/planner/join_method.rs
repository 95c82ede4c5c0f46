//! Join method selection: index nested-loop, merge, hash or nested-loop join.
//!
//! The sides, and whether rows are looked up, were decided with the join order
//! ([`join_tree`](crate::planner::join_tree)); merge joins are decided here, by the order that
//! the inputs provide.

use std::sync::Arc;

use types::expr::{CompareOp, Expr};
use types::{DataType, SqlType};

use crate::logical::{Join, JoinKind, Logical, SortKey, sort_keys};
use crate::plan::scan::ScanNode;
use crate::plan::{KeyJoinNode, KeyRange, LookupJoinNode, LoopJoinNode, Node, RangeBound};
use crate::planner::conjunct::{
    Columns, add_columns, all, as_column, as_operator, is_volatile, renumber, split, within,
};
use crate::planner::estimate_recording::EstimateRecorder;
use crate::planner::key_term::is_integer;
use crate::planner::lookup::{LookupKey, lookup_sides};
use crate::planner::physical_properties::{ProvidedProperties, RequiredProperties};
use crate::planner::scan;

/// Callback that builds a plan node with required properties.
pub(super) type BuildStep<'a> = &'a dyn Fn(Logical, RequiredProperties) -> ProvidedProperties;

/// Returns the properties that a join requires of its left side.
pub(super) fn wanted_of_left(
    join: &Join,
    wanted: RequiredProperties,
    left_width: usize,
) -> RequiredProperties {
    let is_of_left = |key: &SortKey| within(&key.expression, 0..left_width);
    if !join.keeps_order() || !wanted.order.iter().all(is_of_left) {
        return RequiredProperties::default();
    }
    match join.kind {
        // Each left row yields at least one row.
        JoinKind::Left => wanted,
        _ => wanted.below(join.choice.left_rows_per_row.unwrap_or(1.0)),
    }
}

/// Builds a join: by look-ups if that was decided, else as a merge join if both sides are sorted,
/// else as a hash join, and without an equality as a nested-loop join.
pub(super) fn build(
    join: Join,
    wanted: RequiredProperties,
    notes: EstimateRecorder<'_>,
    step: BuildStep<'_>,
) -> ProvidedProperties {
    let whole = |plan: Logical| step(plan, RequiredProperties::default()).node;
    let left_types = join.left.column_types();
    let right_types = join.right.column_types();
    let (left_width, width) = (left_types.len(), left_types.len() + right_types.len());
    let wanted = wanted_of_left(&join, wanted, left_width);
    let terms = JoinTerms::of(join.on, left_width, width);
    let kind = join.kind;
    let found = join
        .choice
        .lookup
        .and_then(|first| look_up(&join.right, (first, terms.of_lookup(left_width, width)), notes));
    let JoinTerms { mut left_keys, mut right_keys, rest } = terms;
    let residual = all(rest);
    if let Some(LookupScan { right, bindings, range }) = found {
        let (goal, order) = (wanted.goal.clone(), wanted.order.clone());
        let ProvidedProperties { node: left, ordered } = step(*join.left, wanted);
        let before_index_history = travels_by_index(&right).then(|| {
            let sides = JoinSides {
                kind,
                left: left.clone(),
                right: whole(*join.right),
                left_keys: left_keys.clone(),
                right_keys: right_keys.clone(),
                residual: residual.clone(),
                left_types: left_types.clone(),
                right_types: right_types.clone(),
            };
            sides.join(if ordered { order } else { Vec::new() })
        });
        let node = LookupJoinNode {
            kind,
            left,
            right,
            bindings,
            left_keys,
            right_keys,
            range,
            residual,
            left_types,
            right_types,
            goal,
            before_index_history,
        };
        return ProvidedProperties { node: Node::LookupJoin(Arc::new(node)), ordered };
    }
    let streams =
        matches!(kind, JoinKind::Inner | JoinKind::Left | JoinKind::Semi | JoinKind::Anti);
    let sides = match join.choice.merge && streams && wanted.order.is_empty() {
        true => merge((&join.left, &join.right), (&mut left_keys, &mut right_keys), step),
        false => None,
    };
    let is_merge = sides.is_some();
    let (left, ordered, right, order) = match sides {
        Some((left, right)) => (left, false, right, Vec::new()),
        None => {
            let order = wanted.order.clone();
            let ProvidedProperties { node: left, ordered } = step(*join.left, wanted);
            (left, ordered, whole(*join.right), if ordered { order } else { Vec::new() })
        }
    };
    let sides =
        JoinSides { kind, left, right, left_keys, right_keys, residual, left_types, right_types };
    let node = match is_merge {
        true => Node::MergeJoin(Arc::new(sides.by_keys(order))),
        false => sides.join(order),
    };
    ProvidedProperties { node, ordered }
}

/// Returns whether a scan by look-ups needs an alternative for a time before the history of its
/// index.
fn travels_by_index(right: &Node) -> bool {
    matches!(right, Node::Scan(scan) if scan.system_time.is_some() && scan.path.index.is_some())
}

/// Sides and conditions of a join without look-ups.
struct JoinSides {
    kind: JoinKind,
    left: Node,
    right: Node,
    left_keys: Vec<Expr>,
    right_keys: Vec<Expr>,
    residual: Option<Expr>,
    left_types: Vec<DataType>,
    right_types: Vec<DataType>,
}

impl JoinSides {
    /// Returns a hash join, or without keys a nested-loop join, which provides an order that the
    /// left rows have.
    fn join(self, order: Vec<SortKey>) -> Node {
        if !self.left_keys.is_empty() {
            return Node::HashJoin(Arc::new(self.by_keys(order)));
        }
        let JoinSides { kind, left, right, residual: on, left_types, right_types, .. } = self;
        let keeps_order = !order.is_empty();
        let node = LoopJoinNode { kind, left, right, on, left_types, right_types, keeps_order };
        Node::LoopJoin(Arc::new(node))
    }

    fn by_keys(self, order: Vec<SortKey>) -> KeyJoinNode {
        KeyJoinNode {
            kind: self.kind,
            left: self.left,
            right: self.right,
            left_keys: self.left_keys,
            right_keys: self.right_keys,
            join_filter: self.residual,
            left_types: self.left_types,
            right_types: self.right_types,
            order,
        }
    }
}

/// Join conditions.
struct JoinTerms {
    /// Keys over the left columns.
    left_keys: Vec<Expr>,
    /// Keys over the right columns, each equal to the left key at its position.
    right_keys: Vec<Expr>,
    /// Other conditions, over both sides.
    rest: Vec<Expr>,
}

impl JoinTerms {
    fn of(on: Expr, left_width: usize, width: usize) -> JoinTerms {
        let mut conjuncts = Vec::new();
        split(on, &mut conjuncts);
        let (mut left_keys, mut right_keys, mut rest) = (Vec::new(), Vec::new(), Vec::new());
        for conjunct in conjuncts {
            match equality(&conjunct, left_width, width) {
                Some((left, right)) => {
                    left_keys.push(left);
                    right_keys.push(right);
                }
                None => rest.push(conjunct),
            }
        }
        JoinTerms { left_keys, right_keys, rest }
    }

    /// Returns the terms that look-ups may use: the keys, then bounds.
    fn of_lookup(&self, left_width: usize, width: usize) -> Vec<LookupTerm> {
        let keys = self.left_keys.iter().zip(&self.right_keys);
        let keys = keys.map(|(left, right)| LookupTerm {
            key: LookupKey::equal(right.clone(), left.data_type()),
            outer: left.clone(),
        });
        let bounds = self.rest.iter().filter_map(|one| bound_of(one, left_width, width));
        keys.chain(bounds).collect()
    }
}

/// Returns both sides sorted by the keys, if both provide it without a sort. The key order is
/// that of the conditions, or that of the right side's columns.
fn merge(
    (left_side, right_side): (&Logical, &Logical),
    (left_keys, right_keys): (&mut Vec<Expr>, &mut Vec<Expr>),
    step: BuildStep<'_>,
) -> Option<(Node, Node)> {
    let alike = left_keys.iter().zip(&*right_keys).all(|(a, b)| a.data_type() == b.data_type());
    if !alike || left_keys.is_empty() {
        return None;
    }
    let mut by_column: Vec<usize> = (0..right_keys.len()).collect();
    by_column.sort_by_key(|&key| as_column(&right_keys[key]));
    for order in [(0..right_keys.len()).collect(), by_column] {
        let put = |keys: &[Expr]| order.iter().map(|&key: &usize| keys[key].clone()).collect();
        let (left, right): (Vec<Expr>, Vec<Expr>) = (put(left_keys), put(right_keys));
        if let Some(left_step) = in_order(left_side, &left, step)
            && let Some(right_step) = in_order(right_side, &right, step)
        {
            (*left_keys, *right_keys) = (left, right);
            return Some((left_step, right_step));
        }
    }
    None
}

/// Returns the plan node if it provides this order: a scan of one table along one key, without
/// base-table fetches and without salt.
fn in_order(plan: &Logical, keys: &[Expr], step: BuildStep<'_>) -> Option<Node> {
    let order = sort_keys(keys, &[]);
    let built = step(plan.clone(), RequiredProperties { order, ..RequiredProperties::default() });
    let mut node = &built.node;
    while let Node::Project(_) | Node::Filter(_) = node {
        node = node.inputs()[0];
    }
    let cheap = |scan: &ScanNode| scan.lookup.is_none() && scan.path.layout.salt_buckets == 0;
    let direct = matches!(node, Node::Scan(scan) if cheap(scan));
    (built.ordered && direct).then_some(built.node)
}

/// Look-up key, and the outer expression that it is compared with.
struct LookupTerm {
    /// Key over the right columns.
    key: LookupKey,
    /// Outer expression over the left columns.
    outer: Expr,
}

/// Scan that looks up right rows.
struct LookupScan {
    right: Node,
    /// Its parameters, and the expressions over the left columns that set them.
    bindings: Vec<(usize, Expr)>,
    /// Range bounds among them.
    range: Option<KeyRange>,
}

/// Returns the scan that looks up right rows by some of these terms; `None` if it can use none.
fn look_up(
    right: &Logical,
    (first, terms): (usize, Vec<LookupTerm>),
    notes: EstimateRecorder<'_>,
) -> Option<LookupScan> {
    let keys: Vec<LookupKey> = terms.iter().map(|term| term.key.clone()).collect();
    let (right, used) = scan::build_lookup(right, (first, &keys), notes)?;
    let bindings = used.iter().map(|&at| (first + at, terms[at].outer.clone())).collect();
    let mut range: Option<KeyRange> = None;
    for term in used.into_iter().map(|at| &terms[at]) {
        let (inner, op) = (&term.key.inner, term.key.op);
        if op == CompareOp::Eq {
            continue;
        }
        let range = range.get_or_insert_with(|| KeyRange::of(inner.clone()));
        let is_inclusive = matches!(op, CompareOp::Ge | CompareOp::Le);
        let bound = Some(RangeBound { value: term.outer.clone(), is_inclusive });
        match op {
            // Further bounds are left to the join condition.
            _ if range.key != *inner => {}
            CompareOp::Gt | CompareOp::Ge => range.low = range.low.take().or(bound),
            _ => range.high = range.high.take().or(bound),
        }
    }
    Some(LookupScan { right, bindings, range })
}

/// Returns an inequality between the sides as a look-up term.
fn bound_of(conjunct: &Expr, left_width: usize, width: usize) -> Option<LookupTerm> {
    let is_inner = |side: &Expr| within(side, left_width..width);
    let is_outer = |side: &Expr| within(side, 0..left_width);
    let found = lookup_sides(conjunct, &is_inner, &is_outer)?;
    let inner = renumber(found.inner.clone(), &|index| index - left_width);
    let key = LookupKey { inner, op: found.op, data_type: found.outer.data_type().clone() };
    (found.op != CompareOp::Eq).then(|| LookupTerm { key, outer: found.outer.clone() })
}

/// Returns the keys of a hashable equality between the sides.
fn equality(conjunct: &Expr, left_width: usize, width: usize) -> Option<(Expr, Expr)> {
    let (symbol, a, b) = as_operator(conjunct)?;
    if symbol != "=" || is_volatile(conjunct) {
        return None;
    }
    let uses_any = |side: &Expr| {
        let mut columns = Columns::new();
        add_columns(side, &mut columns);
        !columns.is_empty()
    };
    let is_left = |side: &Expr| within(side, 0..left_width) && uses_any(side);
    let is_right = |side: &Expr| within(side, left_width..width) && uses_any(side);
    let (left, right) = if is_left(a) && is_right(b) {
        (a, b)
    } else if is_left(b) && is_right(a) {
        (b, a)
    } else {
        return None;
    };
    let right = renumber(right.clone(), &|index| index - left_width);
    let (left_type, right_type) = (left.data_type(), right.data_type());
    if left_type != right_type && is_integer(left_type) && is_integer(right_type) {
        return Some((as_bigint(left.clone()), as_bigint(right)));
    }
    let padded = *left_type == DataType::Char || *right_type == DataType::Char;
    let alike = left_type == right_type || (left_type.is_text() && right_type.is_text());
    (alike && !padded).then(|| (left.clone(), right))
}

fn as_bigint(operand: Expr) -> Expr {
    let from = operand.data_type().clone();
    if from == DataType::Int8 {
        return operand;
    }
    Expr::Cast {
        operand: Box::new(operand),
        from,
        to: SqlType::from(DataType::Int8),
        explicit: false,
    }
}
