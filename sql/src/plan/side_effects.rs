//! Row-by-row execution of nodes with side effects: rows that are not read must have no effects.
//!
//! The reader of a node may stop early (LIMIT, a cursor). A volatile expression is evaluated for
//! the rows for which PostgreSQL evaluates it: `WHERE nextval('s') > 1 LIMIT 1` takes values
//! until it has a row. Nodes below one that reads all rows anyway, such as a sort, work in
//! batches.
//!
//! Data-changing statements read their rows one by one if they call user-defined functions that
//! see the changes.

use std::sync::Arc;

use types::expr::Expr;

use crate::logical::SetFunction;
use crate::plan::{LimitNode, Node, ProjectSetNode, ValuesNode};

impl Node {
    /// Returns a LIMIT and OFFSET node.
    pub(crate) fn limit(
        input: Node,
        (limit, offset): (Option<Expr>, Option<Expr>),
        ties: Vec<Expr>,
    ) -> Node {
        let row_by_row = input.has_effects_of_rows();
        Node::Limit(Arc::new(LimitNode { input, limit, offset, ties, row_by_row }))
    }

    /// Returns whether it reads its input on demand, as its own rows are read.
    pub(crate) fn passes_rows(&self) -> bool {
        let is_leaf = matches!(
            self,
            Node::Scan(_) | Node::SystemRows(_) | Node::Values(_) | Node::CteScan(_)
        );
        let is_step = matches!(
            self,
            Node::Filter(_)
                | Node::Project(_)
                | Node::ProjectSet(_)
                | Node::Limit(_)
                | Node::Apply(_)
                | Node::LockRows(_)
                | Node::Append(_)
                | Node::With(_)
        );
        is_leaf || is_step
    }

    /// Returns whether producing its rows may have side effects.
    fn has_effects_of_rows(&self) -> bool {
        let own = match self {
            Node::Filter(filter) => filter.predicate.is_session_only(),
            Node::Project(project) => project.expressions.iter().any(Expr::is_session_only),
            Node::ProjectSet(sets) => sets.has_effects(),
            Node::Values(values) => values.has_effects(),
            _ => false,
        };
        own || (self.passes_rows() && self.inputs().into_iter().any(Node::has_effects_of_rows))
    }
}

impl ValuesNode {
    /// Returns whether its rows may have side effects.
    pub(crate) fn has_effects(&self) -> bool {
        self.rows.iter().flatten().any(Expr::is_session_only)
    }
}

impl ProjectSetNode {
    /// Returns whether the calls may have side effects.
    pub(crate) fn has_effects(&self) -> bool {
        let mut arguments = self.functions.iter().flat_map(SetFunction::arguments);
        self.functions.iter().any(SetFunction::calls_volatile_routine)
            || arguments.any(Expr::is_session_only)
    }
}
