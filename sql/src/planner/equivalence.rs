//! Equivalence classes of expressions that equalities in a conjunction make equal.
//!
//! `a = b and b = c and c = 5` makes one class of `a`, `b`, `c` and 5. Each member can then be
//! compared with the constant at its source, and a join needs only one equality of each class
//! that has members on both sides.
//!
//! A class only contains types within which equality is transitive and comparison needs no lossy
//! conversion: one type, the integer types, or text with varchar.

use std::hash::{Hash, Hasher};

use ahash::{AHashMap, AHasher};
use types::DataType;
use types::expr::{CompareOp, Expr};

use crate::planner::key_term::is_integer;

/// Member of a class.
#[derive(Debug, Clone)]
pub(super) struct ClassMember {
    /// Expression.
    pub expression: Expr,
    /// Unit of its columns; `None`: it has no columns.
    pub unit: Option<usize>,
}

/// Equivalence classes, as a union-find forest.
#[derive(Debug, Default)]
pub(super) struct EquivalenceClasses {
    members: Vec<ClassMember>,
    /// Parent of each member; a root is its own parent.
    parents: Vec<usize>,
    /// Members by the fingerprint of their expressions.
    numbers: AHashMap<u64, Vec<usize>>,
}

/// Returns a hash of an expression: equal for equal expressions.
fn fingerprint(expression: &Expr) -> u64 {
    let mut hasher = AHasher::default();
    expression.walk(&mut |part| {
        std::mem::discriminant(part).hash(&mut hasher);
        match part {
            Expr::Column { index, .. } | Expr::Parameter { index, .. } => index.hash(&mut hasher),
            Expr::Constant { value, .. } => value.as_i64().hash(&mut hasher),
            Expr::Call { function, .. } => function.0.hash(&mut hasher),
            _ => {}
        }
    });
    hasher.finish()
}

/// Returns the sides of an equality that can be in one class.
pub(super) fn sides(conjunct: &Expr) -> Option<(&Expr, &Expr)> {
    let (left, op, right) = conjunct.as_comparison()?;
    let alike = domain(left.data_type()) == domain(right.data_type());
    // `x = x` means that x is not NULL.
    let usable = op == CompareOp::Eq && alike && left != right && equal(left, right).is_some();
    usable.then_some((left, right))
}

/// Returns the representative type of the types that share classes.
fn domain(data_type: &DataType) -> DataType {
    match data_type {
        data_type if is_integer(data_type) => DataType::Int8,
        DataType::Varchar => DataType::Text,
        data_type => data_type.clone(),
    }
}

/// Returns the equality of two expressions of one domain; `None` if there is no operator.
pub(super) fn equal(left: &Expr, right: &Expr) -> Option<Expr> {
    compared(CompareOp::Eq, left, right)
}

/// Returns a comparison of two expressions; `None` if there is no operator.
pub(super) fn compared(op: CompareOp, left: &Expr, right: &Expr) -> Option<Expr> {
    let operand = |data_type: &DataType| match data_type {
        DataType::Varchar => DataType::Text,
        data_type => data_type.clone(),
    };
    let types = [operand(left.data_type()), operand(right.data_type())];
    let function = types::function::find(op.symbol(), &types)?;
    let arguments = vec![left.clone(), right.clone()];
    Some(Expr::Call { function, arguments, data_type: DataType::Bool })
}

impl EquivalenceClasses {
    /// Unites the classes of two expressions.
    pub(super) fn unite(&mut self, left: ClassMember, right: ClassMember) {
        let (left, right) = (self.number(left), self.number(right));
        let (left, right) = (self.find(left), self.find(right));
        // The older member becomes the root, so that the result has the order of the input.
        self.parents[left.max(right)] = left.min(right);
    }

    fn number(&mut self, member: ClassMember) -> usize {
        let numbers = self.numbers.entry(fingerprint(&member.expression)).or_default();
        let same = |&&other: &&usize| self.members[other].expression == member.expression;
        if let Some(&known) = numbers.iter().find(same) {
            return known;
        }
        let number = self.members.len();
        numbers.push(number);
        self.members.push(member);
        self.parents.push(number);
        number
    }

    fn find(&mut self, mut member: usize) -> usize {
        while self.parents[member] != member {
            self.parents[member] = self.parents[self.parents[member]];
            member = self.parents[member];
        }
        member
    }

    /// Returns the classes, with members in order of insertion.
    pub(super) fn into_classes(mut self) -> Vec<Vec<ClassMember>> {
        let roots: Vec<usize> = (0..self.members.len()).map(|member| self.find(member)).collect();
        let mut classes: Vec<Vec<ClassMember>> = Vec::new();
        let mut position_of = AHashMap::new();
        for (member, root) in self.members.into_iter().zip(roots) {
            let position = *position_of.entry(root).or_insert(classes.len());
            if position == classes.len() {
                classes.push(Vec::new());
            }
            classes[position].push(member);
        }
        classes
    }
}

#[cfg(test)]
mod tests {
    use types::Datum;

    use super::*;

    fn member(index: usize, data_type: &DataType) -> ClassMember {
        ClassMember { expression: Expr::column(index, data_type), unit: Some(index) }
    }

    #[test]
    fn transitive_equalities_form_one_class() {
        let mut classes = EquivalenceClasses::default();
        let int = |index| member(index, &DataType::Int4);
        let five = || ClassMember {
            expression: Expr::constant(Datum::Int4(5), DataType::Int4),
            unit: None,
        };
        classes.unite(int(0), int(1));
        classes.unite(int(2), int(3));
        classes.unite(int(4), five());
        classes.unite(int(3), int(1));
        classes.unite(int(5), five());
        let classes = classes.into_classes();
        let units: Vec<Vec<Option<usize>>> =
            classes.iter().map(|class| class.iter().map(|member| member.unit).collect()).collect();
        let all: Vec<Option<usize>> = (0..4).map(Some).collect();
        assert_eq!(units, [all, vec![Some(4), None, Some(5)]]);
    }

    #[test]
    fn members_of_comparison_domain_are_comparable() {
        let integers = [DataType::Int2, DataType::Int4, DataType::Int8];
        let texts = [DataType::Text, DataType::Varchar];
        for domain in [integers.as_slice(), texts.as_slice()] {
            for (left, right) in domain.iter().flat_map(|a| domain.iter().map(move |b| (a, b))) {
                let equality = equal(&Expr::column(0, left), &Expr::column(1, right)).unwrap();
                assert!(sides(&equality).is_some(), "{left:?} {right:?}");
            }
        }
    }
}
