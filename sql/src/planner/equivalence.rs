//! Classes of expressions that a list of equalities makes equal.
//!
//! `a = b and b = c and c = 5` makes one class of `a`, `b`, `c` and 5. Each member can then be
//! compared with the constant where it comes from, and a join needs one equality of each class
//! that both its sides have a member of.
//!
//! Only types within which equality is transitive and that are compared without a conversion that
//! could lose something share a class: one type, the integers, text with varchar.

use std::hash::{Hash, Hasher};

use ahash::{AHashMap, AHasher};
use types::DataType;
use types::expr::{CompareOp, Expr};

use crate::planner::key_term::is_integer;

/// A member of a class.
#[derive(Debug, Clone)]
pub(super) struct Member {
    /// What it is.
    pub expression: Expr,
    /// The unit that its columns are of; `None`: it has no columns.
    pub unit: Option<usize>,
}

/// The classes of some equalities.
#[derive(Debug, Default)]
pub(super) struct Classes {
    members: Vec<Member>,
    /// Towards the member that stands for the class, which is its own.
    parents: Vec<usize>,
    /// Members by what their expressions have in common with equal ones.
    numbers: AHashMap<u64, Vec<usize>>,
}

/// Returns a number that equal expressions share, and others hardly ever.
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
    // `x = x` says that x is not NULL.
    let usable = op == CompareOp::Eq && alike && left != right && equal(left, right).is_some();
    usable.then_some((left, right))
}

/// Returns a type that stands for all types it shares classes with.
fn domain(data_type: DataType) -> DataType {
    match data_type {
        data_type if is_integer(data_type) => DataType::Int8,
        DataType::Varchar => DataType::Text,
        data_type => data_type,
    }
}

/// Returns the equality of two expressions of one domain; `None` if there is no operator for it.
pub(super) fn equal(left: &Expr, right: &Expr) -> Option<Expr> {
    compared(CompareOp::Eq, left, right)
}

/// Returns a comparison of two expressions; `None` if there is no operator for it.
pub(super) fn compared(op: CompareOp, left: &Expr, right: &Expr) -> Option<Expr> {
    let operand = |data_type| match data_type {
        DataType::Varchar => DataType::Text,
        data_type => data_type,
    };
    let types = [operand(left.data_type()), operand(right.data_type())];
    let function = types::function::find(op.symbol(), &types)?;
    let arguments = vec![left.clone(), right.clone()];
    Some(Expr::Call { function, arguments, data_type: DataType::Bool })
}

impl Classes {
    /// Makes two expressions members of one class.
    pub(super) fn unite(&mut self, left: Member, right: Member) {
        let (left, right) = (self.number(left), self.number(right));
        let (left, right) = (self.find(left), self.find(right));
        // The older one stands for both, so that what comes out is in the order of what came in.
        self.parents[left.max(right)] = left.min(right);
    }

    fn number(&mut self, member: Member) -> usize {
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

    /// Returns the classes, members in the order in which they came.
    pub(super) fn into_classes(mut self) -> Vec<Vec<Member>> {
        let roots: Vec<usize> = (0..self.members.len()).map(|member| self.find(member)).collect();
        let mut classes: Vec<Vec<Member>> = Vec::new();
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

    fn member(index: usize, data_type: DataType) -> Member {
        Member { expression: Expr::column(index, data_type), unit: Some(index) }
    }

    #[test]
    fn equalities_in_a_row_make_one_class() {
        let mut classes = Classes::default();
        let int = |index| member(index, DataType::Int4);
        let five =
            || Member { expression: Expr::constant(Datum::Int4(5), DataType::Int4), unit: None };
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
    fn members_of_one_domain_can_all_be_compared() {
        let integers = [DataType::Int2, DataType::Int4, DataType::Int8];
        let texts = [DataType::Text, DataType::Varchar];
        for domain in [integers.as_slice(), texts.as_slice()] {
            for (&left, &right) in domain.iter().flat_map(|a| domain.iter().map(move |b| (a, b))) {
                let equality = equal(&Expr::column(0, left), &Expr::column(1, right)).unwrap();
                assert!(sides(&equality).is_some(), "{left:?} {right:?}");
            }
        }
    }
}
