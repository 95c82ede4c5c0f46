//! Expression nodes of the deparser, in the form that PostgreSQL's analysis produces and
//! ruleutils.c shows: names resolved, literals typed, conversions explicit.

use types::SqlType;

use crate::ast::{FrameBound, OrderItem, Over, Query};

/// An expression to write.
pub(super) enum Node<'a> {
    /// A constant; `None` is NULL.
    Constant {
        value: Option<String>,
        sql_type: SqlType,
    },
    /// The text of a column or parameter; for a whole row with its type.
    Word {
        text: String,
        row_type: Option<SqlType>,
    },
    Operator {
        symbol: String,
        operands: Vec<Node<'a>>,
    },
    Call(Box<Call<'a>>),
    /// A call in special syntax: keywords and arguments alternate.
    Syntax {
        parts: Vec<Part<'a>>,
    },
    Cast {
        operand: Box<Node<'a>>,
        to: SqlType,
        implicit: bool,
        /// True for a cast by a function; false for one through text, and a binary-coercible one.
        by_function: bool,
    },
    And(Vec<Node<'a>>),
    Or(Vec<Node<'a>>),
    Not(Box<Node<'a>>),
    /// An `IS …` test.
    Test {
        operand: Box<Node<'a>>,
        words: &'static str,
        /// True for a test of NULL, false for one of a truth value.
        of_null: bool,
    },
    Distinct(Box<Node<'a>>, Box<Node<'a>>),
    NullIf(Box<Node<'a>>, Box<Node<'a>>),
    /// `left operator ANY (array)`
    OfArray {
        left: Box<Node<'a>>,
        symbol: String,
        word: &'static str,
        right: Box<Node<'a>>,
        /// The type of the array as written.
        array: Option<SqlType>,
    },
    CompareRows {
        symbol: String,
        left: Vec<Node<'a>>,
        right: Vec<Node<'a>>,
    },
    Row {
        fields: Vec<Node<'a>>,
        to: Option<SqlType>,
    },
    Array {
        elements: Vec<Node<'a>>,
        sql_type: SqlType,
    },
    Subscript {
        operand: Box<Node<'a>>,
        bounds: Vec<Bounds<'a>>,
    },
    Field {
        operand: Box<Node<'a>>,
        name: String,
    },
    Case {
        operand: Option<Box<Node<'a>>>,
        branches: Vec<(Node<'a>, Node<'a>)>,
        otherwise: Box<Node<'a>>,
    },
    /// `COALESCE(…)`, `GREATEST(…)` and `LEAST(…)`.
    Listed {
        word: &'static str,
        operands: Vec<Node<'a>>,
    },
    /// `CURRENT_DATE` and the other functions without parentheses.
    SqlValue(String),
    Subquery {
        kind: SubqueryKind,
        query: &'a Query,
    },
    /// A value or row compared with the rows of a query.
    Compared {
        left: Vec<Node<'a>>,
        is_row: bool,
        words: String,
        query: &'a Query,
    },
    Collate {
        operand: Box<Node<'a>>,
        name: String,
    },
}

/// The kind of a subquery as a value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum SubqueryKind {
    Scalar,
    Exists,
    Array,
}

/// A subscript: an index, or the bounds of a slice.
pub(super) enum Bounds<'a> {
    Index(Node<'a>),
    Slice(Option<Node<'a>>, Option<Node<'a>>),
}

/// A call of a function, an aggregate or a window function.
pub(super) struct Call<'a> {
    /// Its name as text.
    pub(super) name: String,
    pub(super) arguments: Vec<(Option<String>, Node<'a>)>,
    pub(super) variadic: bool,
    pub(super) star: bool,
    pub(super) distinct: bool,
    pub(super) order_by: &'a [OrderItem],
    pub(super) within_group: bool,
    pub(super) filter: Option<Node<'a>>,
    pub(super) over: Option<&'a Over>,
}

/// A part of a call in special syntax.
pub(super) enum Part<'a> {
    Words(&'static str),
    Value(Node<'a>),
    /// A value in parentheses, if necessary.
    Operand(Node<'a>),
    /// A keyword that is a literal in the tree.
    Keyword(String),
}

/// Returns the offset of a frame bound.
pub(super) fn offset_of(bound: &FrameBound) -> Option<&crate::ast::Expr> {
    match bound {
        FrameBound::Preceding(offset) | FrameBound::Following(offset) => Some(offset),
        _ => None,
    }
}

impl Node<'_> {
    /// Returns whether it is a scalar subquery.
    pub(super) fn is_scalar_query(&self) -> bool {
        matches!(self, Node::Subquery { kind: SubqueryKind::Scalar, .. })
    }

    /// Returns whether it has the form of a function call.
    pub(super) fn is_call(&self) -> bool {
        matches!(
            self,
            Node::Call(_)
                | Node::Syntax { .. }
                | Node::Listed { .. }
                | Node::NullIf(..)
                | Node::SqlValue(_)
        )
    }

    /// Returns whether it needs no parentheses inside of another node in pretty layout.
    ///
    /// Source: PostgreSQL's `isSimpleNode`.
    pub(super) fn is_simple(&self, parent: &Node<'_>) -> bool {
        match self {
            Node::Constant { .. }
            | Node::Word { .. }
            | Node::Subscript { .. }
            | Node::Array { .. }
            | Node::Row { .. }
            | Node::Listed { .. }
            | Node::SqlValue(_)
            | Node::NullIf(..)
            | Node::Call(_)
            | Node::Syntax { .. }
            | Node::Case { .. } => true,
            Node::Cast { by_function: true, .. } => true,
            Node::Cast { operand, .. } => operand.is_simple(self),
            Node::Field { .. } => !matches!(parent, Node::Field { .. }),
            Node::Operator { .. } => match parent {
                Node::Operator { operands, .. } => self.binds_tighter(parent, operands),
                _ => parent.separates() || parent.is_logical(),
            },
            Node::Subquery { .. }
            | Node::Compared { .. }
            | Node::Test { .. }
            | Node::Distinct(..) => parent.separates() || parent.is_logical(),
            Node::And(_) | Node::Not(_) => match parent {
                Node::And(_) | Node::Or(_) => true,
                _ => parent.separates(),
            },
            Node::Or(_) => matches!(parent, Node::Or(_)) || parent.separates(),
            Node::OfArray { .. } | Node::CompareRows { .. } | Node::Collate { .. } => false,
        }
    }

    fn is_logical(&self) -> bool {
        matches!(self, Node::And(_) | Node::Or(_) | Node::Not(_))
    }

    /// Returns whether the syntax of a node separates its operands.
    fn separates(&self) -> bool {
        matches!(
            self,
            Node::Subscript { .. }
                | Node::Array { .. }
                | Node::Row { .. }
                | Node::Listed { .. }
                | Node::NullIf(..)
                | Node::Call(_)
                | Node::Case { .. }
        )
    }

    /// Returns whether an arithmetic operator has higher precedence than the enclosing one, or the
    /// same as its left operand.
    fn binds_tighter(&self, parent: &Node<'_>, siblings: &[Node<'_>]) -> bool {
        let rank = |node: &Node<'_>| match node {
            Node::Operator { symbol, operands } if operands.len() == 2 => match symbol.as_str() {
                "+" | "-" => Some(0),
                "*" | "/" | "%" => Some(1),
                _ => None,
            },
            _ => None,
        };
        let (Some(own), Some(around)) = (rank(self), rank(parent)) else { return false };
        let is_first = siblings.first().is_some_and(|first| std::ptr::eq(first, self));
        own > around || (own == around && is_first)
    }
}
