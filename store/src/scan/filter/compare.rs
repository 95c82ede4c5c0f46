//! Prepared comparisons of filters.

use std::cmp::Ordering;

use regex::bytes::Regex;

use crate::error::{Error, Result};
use crate::scan::filter::{BitOp, Comparator, CompareOp, Comparison};

/// A comparison whose comparator was prepared.
#[derive(Debug, Clone)]
pub(super) struct Test {
    op: CompareOp,
    with: With,
}

#[derive(Debug, Clone)]
enum With {
    Plain(Comparator),
    /// In lower case.
    Substring(String),
    Regex(Box<Regex>),
}

impl Test {
    /// Prepares a comparison.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidRequest`] for an ordering of unordered comparators, and for an invalid
    /// expression.
    pub(super) fn new(comparison: &Comparison) -> Result<Test> {
        let ordered = !matches!(comparison.op, CompareOp::Equal | CompareOp::NotEqual);
        let with = match &comparison.with {
            Comparator::Bit { .. } | Comparator::Null if ordered => return Err(unordered()),
            Comparator::Substring(_) | Comparator::Regex(_) if ordered => return Err(unordered()),
            Comparator::Substring(text) => With::Substring(text.to_lowercase()),
            Comparator::Regex(pattern) => {
                let regex = Regex::new(pattern).map_err(|error| {
                    Error::InvalidRequest(format!("invalid expression: {error}"))
                })?;
                With::Regex(Box::new(regex))
            }
            plain => With::Plain(plain.clone()),
        };
        Ok(Test { op: comparison.op, with })
    }

    /// Returns whether the comparison holds for the bytes.
    pub(super) fn passes(&self, bytes: &[u8]) -> bool {
        let ordering = match &self.with {
            With::Plain(comparator) => compare(bytes, comparator),
            With::Substring(text) => {
                equal_if(String::from_utf8_lossy(bytes).to_lowercase().contains(text))
            }
            With::Regex(regex) => equal_if(regex.is_match(bytes)),
        };
        self.op.holds(ordering)
    }
}

fn unordered() -> Error {
    Error::InvalidRequest(
        "bit, null, substring and expression comparators support only EQUAL and NOT_EQUAL".into(),
    )
}

fn equal_if(equal: bool) -> Ordering {
    if equal { Ordering::Equal } else { Ordering::Less }
}

fn compare(bytes: &[u8], with: &Comparator) -> Ordering {
    match with {
        Comparator::Binary(other) => bytes.cmp(other),
        Comparator::BinaryPrefix(prefix) => bytes[..bytes.len().min(prefix.len())].cmp(prefix),
        Comparator::BinaryComponent { bytes: component, offset } => {
            let start = bytes.len().min(*offset as usize);
            let end = bytes.len().min(start + component.len());
            bytes[start..end].cmp(component)
        }
        Comparator::Long(number) => {
            <[u8; 8]>::try_from(bytes).map_or(Ordering::Less, |b| i64::from_be_bytes(b).cmp(number))
        }
        Comparator::Bit { op, mask } => {
            let combine = |(a, b): (&u8, &u8)| match op {
                BitOp::And => a & b,
                BitOp::Or => a | b,
                BitOp::Xor => a ^ b,
            };
            let same_length = bytes.len() == mask.len();
            equal_if(same_length && bytes.iter().zip(mask).any(|pair| combine(pair) != 0))
        }
        Comparator::Null => equal_if(bytes.is_empty()),
        // Prepared by `Test::new`.
        Comparator::Substring(_) | Comparator::Regex(_) => Ordering::Less,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passes(op: CompareOp, with: Comparator, bytes: &[u8]) -> bool {
        Test::new(&Comparison { op, with }).unwrap().passes(bytes)
    }

    #[test]
    fn comparators_test_equality() {
        let equal = |with: Comparator, bytes: &[u8]| {
            let is = passes(CompareOp::Equal, with.clone(), bytes);
            assert_ne!(is, passes(CompareOp::NotEqual, with, bytes));
            is
        };
        assert!(equal(Comparator::Null, b""));
        assert!(!equal(Comparator::Null, b"0"));
        assert!(equal(Comparator::Substring("LoW".into()), b"aLOWb"));
        assert!(equal(Comparator::Regex("^a.c$".into()), b"abc"));
        assert!(!equal(Comparator::Regex("^a.c$".into()), b"abcd"));
        let bit = |op| Comparator::Bit { op, mask: vec![0b0101, 0] };
        assert!(equal(bit(BitOp::And), &[0b0100, 0]));
        assert!(!equal(bit(BitOp::And), &[0b1010, 9]));
        assert!(!equal(bit(BitOp::And), &[0b0101]), "another length");
        assert!(equal(bit(BitOp::Or), &[0, 0]));
        assert!(!equal(bit(BitOp::Xor), &[0b0101, 0]));
        let component = |offset| Comparator::BinaryComponent { bytes: b"bc".to_vec(), offset };
        assert!(equal(component(1), b"abcd"));
        assert!(!equal(component(2), b"abcd"));
        assert!(!equal(component(9), b"abcd"));
    }

    #[test]
    fn unordered_comparators_reject_range_operators() {
        let long = |number: i64| Comparator::Long(number);
        assert!(passes(CompareOp::Less, long(5), &(-7_i64).to_be_bytes()));
        assert!(passes(CompareOp::Greater, long(-5), &7_i64.to_be_bytes()));
        assert!(passes(CompareOp::Less, long(i64::MIN), b"short"));
        let component = Comparator::BinaryComponent { bytes: b"b".to_vec(), offset: 1 };
        assert!(passes(CompareOp::GreaterOrEqual, component, b"ac"));
        for with in [Comparator::Null, Comparator::Substring("x".into())] {
            assert!(Test::new(&Comparison { op: CompareOp::Less, with }).is_err());
        }
        let broken = Comparator::Regex("(".into());
        assert!(Test::new(&Comparison { op: CompareOp::Equal, with: broken }).is_err());
    }
}
