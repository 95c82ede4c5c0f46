//! Fuzzy row patterns with wildcard bytes, and the next row that can match.

use crate::scan::filter::prefix_end;
use crate::scan::merge::RowOrder;

/// A pattern of the first bytes of a row: a fixed byte, or `None` for any byte. A row that is
/// shorter than the pattern does not match.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FuzzyRow(pub Vec<Option<u8>>);

/// Result of matching a row against a pattern.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum FuzzyMatch {
    /// It matches.
    Match,
    /// It does not match; the next match is at or after these bytes (in reverse: before them).
    Next(Vec<u8>),
    /// It does not match, and no following row can.
    Past,
}

impl FuzzyRow {
    /// Matches a row, for a scan in `order`.
    pub(super) fn find(&self, row: &[u8], order: RowOrder) -> FuzzyMatch {
        let pattern = &self.0;
        let paired = pattern.iter().zip(row);
        let Some(wrong) =
            paired.clone().position(|(fixed, byte)| fixed.is_some_and(|f| f != *byte))
        else {
            if row.len() >= pattern.len() {
                return FuzzyMatch::Match;
            }
            // Too short: longer rows that begin with it follow it.
            return match order {
                RowOrder::Forward => FuzzyMatch::Next(self.extended(row.to_vec(), 0)),
                RowOrder::Reverse => self.before(row, row.len()),
            };
        };
        let fixed = pattern[wrong].expect("a free byte is never wrong");
        match order {
            RowOrder::Forward if fixed > row[wrong] => {
                FuzzyMatch::Next(self.extended(row[..wrong].to_vec(), 0))
            }
            RowOrder::Forward => self.after(row, wrong),
            RowOrder::Reverse if fixed < row[wrong] => {
                let last = self.extended(row[..wrong].to_vec(), 0xff);
                prefix_end(&last).map_or(FuzzyMatch::Past, FuzzyMatch::Next)
            }
            RowOrder::Reverse => self.before(row, wrong),
        }
    }

    /// Returns the least match above all rows that begin with `row[..end]`.
    fn after(&self, row: &[u8], end: usize) -> FuzzyMatch {
        let Some(raised) = (0..end).rfind(|&at| self.0[at].is_none() && row[at] < 0xff) else {
            return FuzzyMatch::Past;
        };
        let mut start = row[..=raised].to_vec();
        start[raised] += 1;
        FuzzyMatch::Next(self.extended(start, 0))
    }

    /// Returns the end of the matches below `row[..end]`.
    fn before(&self, row: &[u8], end: usize) -> FuzzyMatch {
        let Some(lowered) = (0..end).rfind(|&at| self.0[at].is_none() && row[at] > 0) else {
            return FuzzyMatch::Past;
        };
        let mut last = row[..=lowered].to_vec();
        last[lowered] -= 1;
        prefix_end(&self.extended(last, 0xff)).map_or(FuzzyMatch::Past, FuzzyMatch::Next)
    }

    /// Appends the rest of the pattern, with `free` for its wildcards.
    fn extended(&self, mut row: Vec<u8>, free: u8) -> Vec<u8> {
        let rest = self.0[row.len()..].iter();
        row.extend(rest.map(|byte| byte.unwrap_or(free)));
        row
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn matches(pattern: &FuzzyRow, row: &[u8]) -> bool {
        row.len() >= pattern.0.len()
            && pattern.0.iter().zip(row).all(|(fixed, byte)| fixed.is_none_or(|f| f == *byte))
    }

    /// Bytes at both ends of their range, and some in between.
    fn byte() -> impl Strategy<Value = u8> {
        prop_oneof![Just(0), Just(1), Just(7), Just(0xfe), Just(0xff)]
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn fuzzy_row_hint_skips_no_match_and_advances(
            pattern in prop::collection::vec(prop::option::of(byte()), 0..4),
            row in prop::collection::vec(byte(), 0..5),
            others in prop::collection::vec(prop::collection::vec(byte(), 0..5), 1..50),
        ) {
            let pattern = FuzzyRow(pattern);
            for order in [RowOrder::Forward, RowOrder::Reverse] {
                let found = pattern.find(&row, order);
                prop_assert_eq!(found == FuzzyMatch::Match, matches(&pattern, &row));
                let following = others.iter().filter(|other| matches(&pattern, other));
                let following = following.filter(|other| match order {
                    RowOrder::Forward => **other >= row,
                    RowOrder::Reverse => **other <= row,
                });
                for other in following {
                    match (&found, order) {
                        (FuzzyMatch::Match, _) => {}
                        (FuzzyMatch::Past, _) => prop_assert!(false, "{:?} follows", other),
                        (FuzzyMatch::Next(next), RowOrder::Forward) => prop_assert!(other >= next),
                        (FuzzyMatch::Next(next), RowOrder::Reverse) => prop_assert!(other < next),
                    }
                }
                match (&found, order) {
                    (FuzzyMatch::Next(next), RowOrder::Forward) => prop_assert!(*next > row),
                    (FuzzyMatch::Next(next), RowOrder::Reverse) => prop_assert!(*next <= row),
                    _ => {}
                }
            }
        }
    }
}
