//! Expressions as PostgreSQL's analysis leaves them, which is what its ruleutils.c shows: names
//! resolved, literals of a type, conversions explicit.

use types::SqlType;

use crate::ast::{FrameBound, OrderItem, Over, Query};

/// An expression to be written.
pub(super) enum Node<'a> {
    /// A constant; `None` is NULL.
    Constant {
        value: Option<String>,
        sql_type: SqlType,
    },
    /// A column or parameter, as it is written; of a whole row its type, too.
    Word {
        text: String,
        row_type: Option<SqlType>,
    },
    Operator {
        symbol: String,
        operands: Vec<Node<'a>>,
    },
    Call(Box<Call<'a>>),
    /// A call in a syntax of its own: words and arguments by turns.
    Syntax {
        parts: Vec<Part<'a>>,
    },
    Cast {
        operand: Box<Node<'a>>,
        to: SqlType,
        implicit: bool,
        /// A function makes it, not the text of the value, and the bytes do not stay as they are.
        by_function: bool,
    },
    And(Vec<Node<'a>>),
    Or(Vec<Node<'a>>),
    Not(Box<Node<'a>>),
    /// `IS …`, of whatever kind.
    Test {
        operand: Box<Node<'a>>,
        words: &'static str,
        /// It is one of NULL, not of truth.
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
        /// The type of the array, if it is as it was written.
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
    /// `COALESCE(…)` and its kin.
    Listed {
        word: &'static str,
        operands: Vec<Node<'a>>,
    },
    /// `CURRENT_DATE` and its kin.
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

/// A subquery that is a value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum SubqueryKind {
    Scalar,
    Exists,
    Array,
}

/// What stands between brackets: an index, or the bounds of a slice.
pub(super) enum Bounds<'a> {
    Index(Node<'a>),
    Slice(Option<Node<'a>>, Option<Node<'a>>),
}

/// A call of a function, an aggregate or a window function.
pub(super) struct Call<'a> {
    /// As it is written.
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

/// Part of a call in a syntax of its own.
pub(super) enum Part<'a> {
    Words(&'static str),
    Value(Node<'a>),
    /// In parentheses, where it needs them.
    Operand(Node<'a>),
    /// A keyword out of a literal.
    Keyword(String),
}

/// Offsets of a window's frame.
pub(super) fn offset_of(bound: &FrameBound) -> Option<&crate::ast::Expr> {
    match bound {
        FrameBound::Preceding(offset) | FrameBound::Following(offset) => Some(offset),
        _ => None,
    }
}

impl Node<'_> {
    /// Returns whether it is a query that gives one value.
    pub(super) fn is_scalar_query(&self) -> bool {
        matches!(self, Node::Subquery { kind: SubqueryKind::Scalar, .. })
    }

    /// Returns whether it looks like a call of a function.
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

    /// Returns whether it needs no parentheses inside of another one, where these are spared.
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

    /// Returns whether operands are told apart by what is around them.
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

    /// Returns whether an operator binds tighter than the one around it, of the arithmetic ones.
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
