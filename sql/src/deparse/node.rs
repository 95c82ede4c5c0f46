//! Expression nodes of the deparser, in the form that PostgreSQL's analysis produces and
//! ruleutils.c shows: names resolved, literals typed, conversions explicit.

use types::SqlType;

use crate::ast::{FrameBoundClause, OrderItem, Over, QueryExpr};

/// An expression to write.
pub(super) enum DeparseNode<'a> {
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
        operands: Vec<DeparseNode<'a>>,
    },
    Call(Box<Call<'a>>),
    /// A call in special syntax: keywords and arguments alternate.
    Syntax {
        parts: Vec<SyntaxPart<'a>>,
    },
    Cast {
        operand: Box<DeparseNode<'a>>,
        to: SqlType,
        implicit: bool,
        /// True for a cast by a function; false for one through text, and a binary-coercible one.
        by_function: bool,
    },
    And(Vec<DeparseNode<'a>>),
    Or(Vec<DeparseNode<'a>>),
    Not(Box<DeparseNode<'a>>),
    /// An `IS …` test.
    Test {
        operand: Box<DeparseNode<'a>>,
        words: &'static str,
        /// True for a test of NULL, false for one of a truth value.
        of_null: bool,
    },
    Distinct(Box<DeparseNode<'a>>, Box<DeparseNode<'a>>),
    NullIf(Box<DeparseNode<'a>>, Box<DeparseNode<'a>>),
    /// `left operator ANY (array)`
    OfArray {
        left: Box<DeparseNode<'a>>,
        symbol: String,
        word: &'static str,
        right: Box<DeparseNode<'a>>,
        /// The type of the array as written.
        array: Option<SqlType>,
    },
    CompareRows {
        symbol: String,
        left: Vec<DeparseNode<'a>>,
        right: Vec<DeparseNode<'a>>,
    },
    Row {
        fields: Vec<DeparseNode<'a>>,
        to: Option<SqlType>,
    },
    Array {
        elements: Vec<DeparseNode<'a>>,
        sql_type: SqlType,
    },
    Subscript {
        operand: Box<DeparseNode<'a>>,
        bounds: Vec<Bounds<'a>>,
    },
    Field {
        operand: Box<DeparseNode<'a>>,
        name: String,
    },
    Case {
        operand: Option<Box<DeparseNode<'a>>>,
        branches: Vec<(DeparseNode<'a>, DeparseNode<'a>)>,
        otherwise: Box<DeparseNode<'a>>,
    },
    /// `COALESCE(…)`, `GREATEST(…)` and `LEAST(…)`.
    Listed {
        word: &'static str,
        operands: Vec<DeparseNode<'a>>,
    },
    /// `CURRENT_DATE` and the other functions without parentheses.
    SqlValue(String),
    Subquery {
        kind: SubqueryKind,
        query: &'a QueryExpr,
    },
    /// A value or row compared with the rows of a query.
    Compared {
        left: Vec<DeparseNode<'a>>,
        is_row: bool,
        words: String,
        query: &'a QueryExpr,
    },
    Collate {
        operand: Box<DeparseNode<'a>>,
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
    Index(DeparseNode<'a>),
    Slice(Option<DeparseNode<'a>>, Option<DeparseNode<'a>>),
}

/// A call of a function, an aggregate or a window function.
pub(super) struct Call<'a> {
    /// Its name as text.
    pub(super) name: String,
    pub(super) arguments: Vec<(Option<String>, DeparseNode<'a>)>,
    pub(super) variadic: bool,
    pub(super) star: bool,
    pub(super) distinct: bool,
    pub(super) order_by: &'a [OrderItem],
    pub(super) within_group: bool,
    pub(super) filter: Option<DeparseNode<'a>>,
    pub(super) over: Option<&'a Over>,
}

/// A part of a call in special syntax.
pub(super) enum SyntaxPart<'a> {
    Words(&'static str),
    Value(DeparseNode<'a>),
    /// A value in parentheses, if necessary.
    Operand(DeparseNode<'a>),
    /// A keyword that is a literal in the tree.
    Keyword(String),
}

/// Returns the offset of a frame bound.
pub(super) fn offset_of(bound: &FrameBoundClause) -> Option<&crate::ast::Expr> {
    match bound {
        FrameBoundClause::Preceding(offset) | FrameBoundClause::Following(offset) => Some(offset),
        _ => None,
    }
}

impl DeparseNode<'_> {
    /// Returns whether it is a scalar subquery.
    pub(super) fn is_scalar_query(&self) -> bool {
        matches!(self, DeparseNode::Subquery { kind: SubqueryKind::Scalar, .. })
    }

    /// Returns whether it has the form of a function call.
    pub(super) fn is_call(&self) -> bool {
        matches!(
            self,
            DeparseNode::Call(_)
                | DeparseNode::Syntax { .. }
                | DeparseNode::Listed { .. }
                | DeparseNode::NullIf(..)
                | DeparseNode::SqlValue(_)
        )
    }

    /// Returns whether it needs no parentheses inside of another node in pretty layout.
    ///
    /// Source: PostgreSQL's `isSimpleNode`.
    pub(super) fn is_simple(&self, parent: &DeparseNode<'_>) -> bool {
        match self {
            DeparseNode::Constant { .. }
            | DeparseNode::Word { .. }
            | DeparseNode::Subscript { .. }
            | DeparseNode::Array { .. }
            | DeparseNode::Row { .. }
            | DeparseNode::Listed { .. }
            | DeparseNode::SqlValue(_)
            | DeparseNode::NullIf(..)
            | DeparseNode::Call(_)
            | DeparseNode::Syntax { .. }
            | DeparseNode::Case { .. } => true,
            DeparseNode::Cast { by_function: true, .. } => true,
            DeparseNode::Cast { operand, .. } => operand.is_simple(self),
            DeparseNode::Field { .. } => !matches!(parent, DeparseNode::Field { .. }),
            DeparseNode::Operator { .. } => match parent {
                DeparseNode::Operator { operands, .. } => self.binds_tighter(parent, operands),
                _ => parent.separates() || parent.is_logical(),
            },
            DeparseNode::Subquery { .. }
            | DeparseNode::Compared { .. }
            | DeparseNode::Test { .. }
            | DeparseNode::Distinct(..) => parent.separates() || parent.is_logical(),
            DeparseNode::And(_) | DeparseNode::Not(_) => match parent {
                DeparseNode::And(_) | DeparseNode::Or(_) => true,
                _ => parent.separates(),
            },
            DeparseNode::Or(_) => matches!(parent, DeparseNode::Or(_)) || parent.separates(),
            DeparseNode::OfArray { .. }
            | DeparseNode::CompareRows { .. }
            | DeparseNode::Collate { .. } => false,
        }
    }

    fn is_logical(&self) -> bool {
        matches!(self, DeparseNode::And(_) | DeparseNode::Or(_) | DeparseNode::Not(_))
    }

    /// Returns whether the syntax of a node separates its operands.
    fn separates(&self) -> bool {
        matches!(
            self,
            DeparseNode::Subscript { .. }
                | DeparseNode::Array { .. }
                | DeparseNode::Row { .. }
                | DeparseNode::Listed { .. }
                | DeparseNode::NullIf(..)
                | DeparseNode::Call(_)
                | DeparseNode::Case { .. }
        )
    }

    /// Returns whether an arithmetic operator has higher precedence than the enclosing one, or the
    /// same as its left operand.
    fn binds_tighter(&self, parent: &DeparseNode<'_>, siblings: &[DeparseNode<'_>]) -> bool {
        let rank = |node: &DeparseNode<'_>| match node {
            DeparseNode::Operator { symbol, operands } if operands.len() == 2 => {
                match symbol.as_str() {
                    "+" | "-" => Some(0),
                    "*" | "/" | "%" => Some(1),
                    _ => None,
                }
            }
            _ => None,
        };
        let (Some(own), Some(around)) = (rank(self), rank(parent)) else { return false };
        let is_first = siblings.first().is_some_and(|first| std::ptr::eq(first, self));
        own > around || (own == around && is_first)
    }
}
