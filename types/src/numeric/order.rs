//! Equality, order and hash of SQL.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

use super::digits::Digits;
use super::{MAX_SMALL_SCALE, Numeric, Repr, at_scale, reduced};

impl PartialEq for Numeric {
    fn eq(&self, other: &Numeric) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Numeric {}

impl PartialOrd for Numeric {
    fn partial_cmp(&self, other: &Numeric) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Numeric {
    fn cmp(&self, other: &Numeric) -> Ordering {
        if let Some(((a, a_scale), (b, b_scale))) = self.small_pair(other) {
            if a_scale == b_scale {
                return a.cmp(&b);
            }
            let scale = a_scale.max(b_scale);
            if let (Some(a), Some(b)) = (at_scale(a, a_scale, scale), at_scale(b, b_scale, scale)) {
                return a.cmp(&b);
            }
        }
        match (self.to_digits(), other.to_digits()) {
            (Some(a), Some(b)) => a.cmp(&b),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl Numeric {
    /// Returns the rank of special values relative to finite ones, which have rank 0.
    fn rank(&self) -> i8 {
        match self.0 {
            Repr::NegativeInfinity => -1,
            Repr::Small { .. } | Repr::Big(_) => 0,
            Repr::Infinity => 1,
            Repr::NaN => 2,
        }
    }
}

impl Hash for Numeric {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match &self.0 {
            Repr::Small { scale, mantissa } => reduced(*mantissa, u32::from(*scale)).hash(state),
            Repr::Big(digits) => {
                let mut shortest = Digits::clone(digits);
                shortest.scale = shortest.min_scale();
                let small = if shortest.scale <= MAX_SMALL_SCALE {
                    shortest.mantissa().and_then(|mantissa| i64::try_from(mantissa).ok())
                } else {
                    None
                };
                match small {
                    Some(mantissa) => reduced(mantissa, shortest.scale).hash(state),
                    None => {
                        shortest.negative.hash(state);
                        shortest.weight.hash(state);
                        shortest.digits.hash(state);
                    }
                }
            }
            _ => self.rank().hash(state),
        }
    }
}
