//! Traversal and analysis of expressions, for the planner.

use std::sync::Arc;

use super::Expr;
use crate::cast;
use crate::datatype::DataType;
use crate::datum::Datum;
use crate::function::{self, CompareOp, KernelKind, Volatility};

impl Expr {
    /// Returns a constant.
    pub fn constant(value: Datum, data_type: impl Into<DataType>) -> Expr {
        Expr::Constant { value, data_type: data_type.into() }
    }

    /// Returns a column of the input row.
    pub fn column(index: usize, data_type: impl Into<DataType>) -> Expr {
        Expr::Column { index, data_type: data_type.into() }
    }

    /// Returns a comparison of two operands of one type.
    ///
    /// # Panics
    ///
    /// If the operands have types that cannot be compared directly.
    pub fn compare(op: CompareOp, left: Expr, right: Expr) -> Expr {
        let types = [comparable(left.data_type()), comparable(right.data_type())];
        let function = function::find(op.symbol(), &types)
            .unwrap_or_else(|| panic!("{types:?} are not compared with {}", op.symbol()));
        Expr::Call { function, arguments: vec![left, right], data_type: DataType::Bool }
    }

    /// Returns the type of the value.
    pub fn data_type(&self) -> &DataType {
        match self {
            Expr::Constant { data_type, .. }
            | Expr::Column { data_type, .. }
            | Expr::Parameter { data_type, .. }
            | Expr::Call { data_type, .. }
            | Expr::Case { data_type, .. }
            | Expr::Unreadable { data_type, .. }
            | Expr::Coalesce { data_type, .. } => data_type,
            Expr::Routine { routine, .. } => &routine.result,
            Expr::Cast { to, .. } => &to.base,
            Expr::Domain { operand, .. } => operand.data_type(),
            Expr::And(_)
            | Expr::Or(_)
            | Expr::Not(_)
            | Expr::IsNull(_)
            | Expr::IsDistinct { .. }
            | Expr::InList { .. } => &DataType::Bool,
        }
    }

    /// Calls `visit` for each direct operand.
    pub fn for_each_child<'a>(&'a self, visit: &mut dyn FnMut(&'a Expr)) {
        match self {
            Expr::Constant { .. }
            | Expr::Column { .. }
            | Expr::Parameter { .. }
            | Expr::Unreadable { .. } => {}
            Expr::Cast { operand, .. }
            | Expr::Domain { operand, .. }
            | Expr::Not(operand)
            | Expr::IsNull(operand) => visit(operand),
            Expr::Call { arguments: operands, .. }
            | Expr::Routine { arguments: operands, .. }
            | Expr::And(operands)
            | Expr::Or(operands)
            | Expr::Coalesce { operands, .. } => operands.iter().for_each(visit),
            Expr::IsDistinct { left, right, .. } => {
                visit(left);
                visit(right);
            }
            Expr::InList { operand, list } => {
                visit(operand);
                list.iter().for_each(visit);
            }
            Expr::Case { branches, otherwise, .. } => {
                for (condition, result) in branches {
                    visit(condition);
                    visit(result);
                }
                visit(otherwise);
            }
        }
    }

    /// Calls `visit` with a mutable reference to each direct operand.
    pub fn for_each_child_mut(&mut self, visit: &mut dyn FnMut(&mut Expr)) {
        match self {
            Expr::Constant { .. }
            | Expr::Column { .. }
            | Expr::Parameter { .. }
            | Expr::Unreadable { .. } => {}
            Expr::Call { arguments: list, .. }
            | Expr::Routine { arguments: list, .. }
            | Expr::And(list)
            | Expr::Or(list)
            | Expr::Coalesce { operands: list, .. } => list.iter_mut().for_each(visit),
            Expr::Cast { operand, .. }
            | Expr::Domain { operand, .. }
            | Expr::Not(operand)
            | Expr::IsNull(operand) => visit(operand),
            Expr::IsDistinct { left, right, .. } => {
                visit(left);
                visit(right);
            }
            Expr::InList { operand, list } => {
                visit(operand);
                Arc::make_mut(list).iter_mut().for_each(visit);
            }
            Expr::Case { branches, otherwise, .. } => {
                for (condition, result) in branches {
                    visit(condition);
                    visit(result);
                }
                visit(otherwise);
            }
        }
    }

    /// Calls `visit` for this expression and all nested ones, parents first.
    pub fn walk(&self, visit: &mut dyn FnMut(&Expr)) {
        visit(self);
        self.for_each_child(&mut |child| child.walk(visit));
    }

    /// Calls `visit` with a mutable reference to this expression and all nested ones, parents
    /// first.
    pub fn walk_mut(&mut self, visit: &mut dyn FnMut(&mut Expr)) {
        visit(self);
        self.for_each_child_mut(&mut |child| child.walk_mut(visit));
    }

    /// Returns the expression with `change` applied to each node, children first.
    #[must_use]
    pub fn transform(self, change: &mut dyn FnMut(Expr) -> Expr) -> Expr {
        let changed = self.map_children(&mut |child| child.transform(change));
        change(changed)
    }

    /// Returns the node with `change` applied to its operands.
    #[must_use]
    pub fn map_children(self, change: &mut dyn FnMut(Expr) -> Expr) -> Expr {
        let mut boxed = |operand: Box<Expr>| Box::new(change(*operand));
        match self {
            leaf @ (Expr::Constant { .. }
            | Expr::Column { .. }
            | Expr::Parameter { .. }
            | Expr::Unreadable { .. }) => leaf,
            Expr::Cast { operand, from, to, explicit } => {
                Expr::Cast { operand: boxed(operand), from, to, explicit }
            }
            Expr::Domain { operand, checks, explicit } => {
                Expr::Domain { operand: boxed(operand), checks, explicit }
            }
            Expr::Not(operand) => Expr::Not(boxed(operand)),
            Expr::IsNull(operand) => Expr::IsNull(boxed(operand)),
            Expr::IsDistinct { left, right, negated } => {
                Expr::IsDistinct { left: boxed(left), right: boxed(right), negated }
            }
            Expr::Call { function, arguments, data_type } => Expr::Call {
                function,
                arguments: arguments.into_iter().map(change).collect(),
                data_type,
            },
            Expr::Routine { routine, arguments } => {
                Expr::Routine { routine, arguments: arguments.into_iter().map(change).collect() }
            }
            Expr::And(operands) => Expr::And(operands.into_iter().map(change).collect()),
            Expr::Or(operands) => Expr::Or(operands.into_iter().map(change).collect()),
            Expr::InList { operand, list } => Expr::InList {
                operand: boxed(operand),
                list: Arc::new(Arc::unwrap_or_clone(list).into_iter().map(change).collect()),
            },
            Expr::Case { branches, otherwise, data_type } => Expr::Case {
                branches: branches
                    .into_iter()
                    .map(|(condition, result)| (change(condition), change(result)))
                    .collect(),
                otherwise: Box::new(change(*otherwise)),
                data_type,
            },
            Expr::Coalesce { operands, data_type } => {
                Expr::Coalesce { operands: operands.into_iter().map(change).collect(), data_type }
            }
        }
    }

    /// Returns whether some node of the expression satisfies `test`.
    pub(super) fn any(&self, test: &dyn Fn(&Expr) -> bool) -> bool {
        let mut found = test(self);
        self.for_each_child(&mut |child| found = found || child.any(test));
        found
    }

    /// Returns whether the value depends only on its inputs (no `random()`, no clock).
    pub fn is_immutable(&self) -> bool {
        !self.any(&|node| match node {
            Expr::Call { function, .. } => {
                function::signature(*function).volatility != Volatility::Immutable
            }
            Expr::Routine { routine, .. } => !routine.is_immutable,
            Expr::Cast { from, to, .. } => !cast::is_immutable(from, &to.base),
            Expr::Domain { checks, .. } => !checks.is_immutable(),
            Expr::Unreadable { .. } => true,
            _ => false,
        })
    }

    /// Returns whether the value is the same for all executions of a statement and all settings:
    /// as [`Expr::is_immutable`], but excluding the text of floats and bytea.
    pub fn is_foldable(&self) -> bool {
        self.is_immutable()
            && !self.any(&|node| match node {
                Expr::Cast { from, to, .. } => !cast::is_foldable(from, &to.base),
                Expr::Domain { checks, .. } => !checks.is_foldable(),
                _ => false,
            })
    }

    /// Returns whether the value may change from call to call within a statement (`random()`).
    pub fn is_volatile(&self) -> bool {
        self.any(&|node| match node {
            Expr::Call { function, .. } => {
                function::signature(*function).volatility == Volatility::Volatile
            }
            Expr::Routine { routine, .. } => routine.is_volatile,
            _ => false,
        })
    }

    /// Returns whether the expression contains a parameter.
    pub fn has_parameters(&self) -> bool {
        self.any(&|node| matches!(node, Expr::Parameter { .. }))
    }

    /// Returns whether the expression contains one of these parameters.
    pub fn has_parameter(&self, is_meant: &dyn Fn(usize) -> bool) -> bool {
        self.any(&|node| matches!(node, Expr::Parameter { index, .. } if is_meant(*index)))
    }

    /// Returns the columns that the expression reads, ascending, without duplicates.
    pub fn columns(&self) -> Vec<usize> {
        let mut columns = Vec::new();
        self.walk(&mut |node| {
            if let Expr::Column { index, .. } = node {
                columns.push(*index);
            }
        });
        columns.sort_unstable();
        columns.dedup();
        columns
    }

    /// Returns the expression with renumbered columns: column `i` becomes column `target(i)`.
    #[must_use]
    pub fn remap_columns(self, target: &dyn Fn(usize) -> usize) -> Expr {
        self.transform(&mut |node| match node {
            Expr::Column { index, data_type } => Expr::Column { index: target(index), data_type },
            other => other,
        })
    }

    /// Returns the conjuncts of nested ANDs, in order.
    pub fn split_conjunction(self) -> Vec<Expr> {
        match self {
            Expr::And(operands) => operands.into_iter().flat_map(Expr::split_conjunction).collect(),
            other => vec![other],
        }
    }

    /// Returns the AND of conditions; true if there are none.
    pub fn conjunction(mut conditions: Vec<Expr>) -> Expr {
        match conditions.len() {
            0 => Expr::constant(Datum::Bool(true), DataType::Bool),
            1 => conditions.remove(0),
            _ => Expr::And(conditions),
        }
    }

    /// Returns the operands and the operator of a comparison. The operands may have different
    /// types that are compared directly, such as `integer` and `bigint`.
    pub fn as_comparison(&self) -> Option<(&Expr, CompareOp, &Expr)> {
        let Expr::Call { function, arguments, .. } = self else {
            return None;
        };
        match (function::shape(*function), arguments.as_slice()) {
            (KernelKind::Compare(op), [left, right]) => Some((left, op, right)),
            _ => None,
        }
    }
}

/// Returns the type as which values of a type are compared.
fn comparable(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Varchar | DataType::Unknown => DataType::Text,
        DataType::Array(_) => DataType::AnyArray,
        DataType::Enum(_) => DataType::AnyEnum,
        DataType::Reg(_) => DataType::Oid,
        other => other.clone(),
    }
}
