//! Sets of byte strings as sorted ranges: the selected rows or columns, and the next selected
//! one.

use std::ops::Bound;

use crate::scan::filter::{Comparator, CompareOp, Comparison, prefix_end};
use crate::scan::merge::RowOrder;

/// A range of rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilterRange {
    /// Start of the range.
    pub start: Bound<Vec<u8>>,
    /// End of the range.
    pub stop: Bound<Vec<u8>>,
}

impl FilterRange {
    /// Returns the range from `start` to before `stop`.
    pub fn new(start: impl Into<Vec<u8>>, stop: impl Into<Vec<u8>>) -> FilterRange {
        FilterRange { start: Bound::Included(start.into()), stop: Bound::Excluded(stop.into()) }
    }
}

/// A set of byte strings: ranges from an included start to an excluded stop, ascending, neither
/// overlapping nor adjacent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ranges {
    ranges: Vec<(Vec<u8>, Option<Vec<u8>>)>,
}

/// Position of some bytes relative to a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SetPosition<'a> {
    /// Inside.
    In,
    /// Outside; the next bytes in the set are at or after these (in reverse: before them).
    Before(&'a [u8]),
    /// Outside, and beyond the whole set.
    Past,
}

/// Returns the least bytes above the given ones.
fn successor(bytes: &[u8]) -> Vec<u8> {
    [bytes, &[0]].concat()
}

impl Ranges {
    /// Returns the set of ranges, which may overlap and be in any order.
    pub(super) fn new(mut ranges: Vec<(Vec<u8>, Option<Vec<u8>>)>) -> Ranges {
        ranges.retain(|(start, stop)| stop.as_ref().is_none_or(|stop| start < stop));
        ranges.sort();
        let mut merged: Vec<(Vec<u8>, Option<Vec<u8>>)> = Vec::with_capacity(ranges.len());
        for (start, stop) in ranges {
            match merged.last_mut() {
                Some((_, None)) => break,
                Some((_, Some(last))) if start <= *last => match stop {
                    None => merged.last_mut().expect("there is one").1 = None,
                    Some(stop) if stop > *last => *last = stop,
                    Some(_) => {}
                },
                _ => merged.push((start, stop)),
            }
        }
        debug_assert!(
            merged.windows(2).all(|pair| pair[0].1.as_ref().is_some_and(|stop| *stop < pair[1].0)),
            "ranges ascend and are not adjacent"
        );
        Ranges { ranges: merged }
    }

    /// Returns a range with any bounds as start and stop.
    pub(super) fn of_bounds(
        start: &Bound<Vec<u8>>,
        stop: &Bound<Vec<u8>>,
    ) -> (Vec<u8>, Option<Vec<u8>>) {
        let start = match start {
            Bound::Included(bytes) => bytes.clone(),
            Bound::Excluded(bytes) => successor(bytes),
            Bound::Unbounded => Vec::new(),
        };
        let stop = match stop {
            Bound::Included(bytes) => Some(successor(bytes)),
            Bound::Excluded(bytes) => Some(bytes.clone()),
            Bound::Unbounded => None,
        };
        (start, stop)
    }

    /// Returns the set of bytes that begin with one of the prefixes.
    pub(super) fn of_prefixes(prefixes: &[Vec<u8>]) -> Ranges {
        Ranges::new(prefixes.iter().map(|prefix| (prefix.clone(), prefix_end(prefix))).collect())
    }

    /// Returns the set of bytes that satisfy a comparison, if it is expressible by ranges.
    pub(super) fn of_comparison(comparison: &Comparison) -> Option<Ranges> {
        let (from, end) = match &comparison.with {
            Comparator::Binary(bytes) => (bytes.clone(), Some(successor(bytes))),
            Comparator::BinaryPrefix(prefix) => (prefix.clone(), prefix_end(prefix)),
            _ => return None,
        };
        let below = (Vec::new(), Some(from.clone()));
        let from_end = |end: Option<Vec<u8>>| end.map(|end| (end, None));
        let ranges = match comparison.op {
            CompareOp::Less => vec![below],
            CompareOp::LessOrEqual => vec![(Vec::new(), end)],
            CompareOp::Equal => vec![(from, end)],
            CompareOp::NotEqual => [below].into_iter().chain(from_end(end)).collect(),
            CompareOp::GreaterOrEqual => vec![(from, None)],
            CompareOp::Greater => from_end(end).into_iter().collect(),
        };
        Some(Ranges::new(ranges))
    }

    /// Locates some bytes, for a scan in `order`.
    pub(super) fn find(&self, bytes: &[u8], order: RowOrder) -> SetPosition<'_> {
        // The last range that begins at or before the bytes, and the one after it.
        let after = self.ranges.partition_point(|(start, _)| &start[..] <= bytes);
        let at = after.checked_sub(1).map(|index| &self.ranges[index]);
        if let Some((_, stop)) = at
            && stop.as_ref().is_none_or(|stop| bytes < &stop[..])
        {
            return SetPosition::In;
        }
        let next = match order {
            RowOrder::Forward => self.ranges.get(after).map(|(start, _)| start),
            RowOrder::Reverse => at.and_then(|(_, stop)| stop.as_ref()),
        };
        next.map_or(SetPosition::Past, |next| SetPosition::Before(next))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranges(list: &[(&str, &str)]) -> Ranges {
        Ranges::new(
            list.iter()
                .map(|(start, stop)| (start.as_bytes().into(), Some((*stop).into())))
                .collect(),
        )
    }

    #[test]
    fn overlapping_ranges_are_merged() {
        let merged =
            ranges(&[("m", "p"), ("a", "c"), ("b", "d"), ("d", "e"), ("x", "x"), ("n", "o")]);
        assert_eq!(merged, Ranges { ranges: ranges(&[("a", "e"), ("m", "p")]).ranges });
        let open = Ranges::new(vec![(b"b".to_vec(), None), (b"c".to_vec(), Some(b"d".to_vec()))]);
        assert_eq!(open.ranges, [(b"b".to_vec(), None)]);
    }

    #[test]
    fn range_set_finds_position_in_both_orders() {
        let set = ranges(&[("b", "d"), ("m", "p")]);
        let forward = |row: &str| set.find(row.as_bytes(), RowOrder::Forward);
        assert_eq!(forward("a"), SetPosition::Before(b"b"));
        assert_eq!(forward("c"), SetPosition::In);
        assert_eq!(forward("d"), SetPosition::Before(b"m"));
        assert_eq!(forward("p"), SetPosition::Past);
        let reverse = |row: &str| set.find(row.as_bytes(), RowOrder::Reverse);
        assert_eq!(reverse("z"), SetPosition::Before(b"p"));
        assert_eq!(reverse("o"), SetPosition::In);
        assert_eq!(reverse("e"), SetPosition::Before(b"d"));
        assert_eq!(reverse("a"), SetPosition::Past);
    }

    #[test]
    fn comparisons_translate_to_ranges() {
        let of = |op, with| Ranges::of_comparison(&Comparison { op, with }).unwrap();
        let inside = |set: &Ranges, row: &str| {
            set.find(row.as_bytes(), RowOrder::Forward) == SetPosition::In
        };
        let all = ["a", "b", "ba", "bz", "c"];
        let found = |op, with: fn(Vec<u8>) -> Comparator| {
            let set = of(op, with(b"b".to_vec()));
            all.into_iter().filter(|row| inside(&set, row)).collect::<Vec<_>>()
        };
        assert_eq!(found(CompareOp::Less, Comparator::Binary), ["a"]);
        assert_eq!(found(CompareOp::LessOrEqual, Comparator::Binary), ["a", "b"]);
        assert_eq!(found(CompareOp::Equal, Comparator::Binary), ["b"]);
        assert_eq!(found(CompareOp::NotEqual, Comparator::Binary), ["a", "ba", "bz", "c"]);
        assert_eq!(found(CompareOp::GreaterOrEqual, Comparator::Binary), ["b", "ba", "bz", "c"]);
        assert_eq!(found(CompareOp::Greater, Comparator::Binary), ["ba", "bz", "c"]);
        assert_eq!(found(CompareOp::LessOrEqual, Comparator::BinaryPrefix), ["a", "b", "ba", "bz"]);
        assert_eq!(found(CompareOp::Equal, Comparator::BinaryPrefix), ["b", "ba", "bz"]);
        assert_eq!(found(CompareOp::NotEqual, Comparator::BinaryPrefix), ["a", "c"]);
        assert_eq!(found(CompareOp::Greater, Comparator::BinaryPrefix), ["c"]);
    }
}
