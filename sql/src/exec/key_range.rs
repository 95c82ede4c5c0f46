//! Key ranges of an access path: evaluates key conditions and encodes them as byte ranges.
//!
//! A set of values of one column is a set of disjoint byte ranges of its key encoding
//! ([`KeySpan`]), which includes direction and NULLS FIRST; so intersecting conditions is
//! intersecting byte ranges, and `a > 3 and a > $1` needs no special case.

use types::datum::Nested;
use types::expr::EvalContext;
use types::keycode::{self, prefix_end};
use types::{DataType, Datum};

use crate::error::Result;
use crate::plan::scan::{AccessPath, Comparison, ComputedValues, KeyCondition, KeyTerm, PathShape};
use crate::planner::key_term::computed_values;
use crate::planner::key_term::{is_integer, like_prefix};

/// Keys that a path reads, without salt bytes, in key order.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum PathKeys {
    /// Whole row keys, each once.
    Points(Vec<Vec<u8>>),
    /// Disjoint ranges.
    Ranges(Vec<RowRange>),
}

/// Row keys from `start` to before `stop`; `None`: to the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RowRange {
    /// Inclusive lower bound.
    pub start: Vec<u8>,
    /// Exclusive upper bound.
    pub stop: Option<Vec<u8>>,
}

impl RowRange {
    /// Returns the range in a salt bucket.
    pub(super) fn salted(&self, bucket: u8) -> RowRange {
        RowRange {
            start: salted(bucket, &self.start),
            stop: match &self.stop {
                Some(stop) => Some(salted(bucket, stop)),
                None => prefix_end(&[bucket]),
            },
        }
    }

    /// Returns the range of one row.
    pub(super) fn of_row(row: Vec<u8>) -> RowRange {
        RowRange { stop: Some([row.as_slice(), &[0]].concat()), start: row }
    }
}

/// Prepends the salt byte to a key.
pub(super) fn salted(bucket: u8, key: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(key.len() + 1);
    out.push(bucket);
    out.extend_from_slice(key);
    out
}

/// Encoded keys of one column from `start` to before `stop`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct KeySpan {
    start: Vec<u8>,
    stop: Option<Vec<u8>>,
    /// True for one value: all keys with the prefix `start`.
    point: bool,
}

/// Computes the keys of a path.
pub(super) fn resolve(path: &AccessPath, context: &EvalContext) -> Result<PathKeys> {
    let whole = matches!(path.shape, PathShape::Points(_));
    let (mut keys, mut ranges) = (Vec::new(), Vec::new());
    let alone = std::slice::from_ref(&path.conditions);
    let branches = if path.branches.is_empty() { alone } else { path.branches.as_slice() };
    for conditions in branches {
        let mut columns = Vec::with_capacity(conditions.len());
        for condition in conditions {
            columns.push(spans(condition, context)?);
        }
        match whole {
            true => points(&mut Vec::new(), &columns, &mut keys),
            false => string_together(&mut Vec::new(), &columns, &mut ranges),
        }
    }
    if branches.len() > 1 {
        keys.sort_unstable();
        keys.dedup();
        ranges = merge_overlapping(ranges);
    }
    debug_assert!(
        keys.windows(2).all(|pair| pair[0] < pair[1]),
        "the keys of a path are not ascending"
    );
    debug_assert!(are_disjoint(&ranges), "the ranges of a path are not ascending and disjoint");
    Ok(if whole { PathKeys::Points(keys) } else { PathKeys::Ranges(ranges) })
}

/// Returns the range of the table's rows whose entries a path over a local index reads; `None` for
/// all.
pub(super) fn base_rows(
    path: &AccessPath,
    context: &EvalContext,
) -> Result<Option<store::descriptor::RowRange>> {
    if path.base_conditions.is_empty() {
        return Ok(None);
    }
    let ranges = SuffixSpans::of(&path.base_conditions, context)?.ranges(&[]);
    let (first, last) = (ranges.first(), ranges.last());
    let start = first.map_or_else(Vec::new, |first| first.start.clone());
    let stop = last.map_or_else(|| Some(Vec::new()), |last| last.stop.clone());
    Ok(Some(store::descriptor::RowRange { start, stop }))
}

/// Ranges of a path with the same values of the first [`AccessPath::merged`] key columns.
pub(super) struct MergedRanges {
    /// Length of these values in the keys, without a salt byte.
    pub prefix: usize,
    /// Ranges, ascending.
    pub ranges: Vec<RowRange>,
}

/// Computes the ranges of a path whose rows are merged.
pub(super) fn resolve_merged(
    path: &AccessPath,
    context: &EvalContext,
) -> Result<Vec<MergedRanges>> {
    let spans = path.conditions.iter().map(|condition| spans(condition, context));
    let columns: Vec<Vec<KeySpan>> = spans.collect::<Result<_>>()?;
    let (merged, rest) = columns.split_at(path.merged);
    let mut prefixes = Vec::new();
    points(&mut Vec::new(), merged, &mut prefixes);
    let groups = prefixes.into_iter().map(|mut prefix| {
        let (length, mut ranges) = (prefix.len(), Vec::new());
        string_together(&mut prefix, rest, &mut ranges);
        MergedRanges { prefix: length, ranges }
    });
    Ok(groups.collect())
}

/// Values of the key columns after a prefix.
pub(super) struct SuffixSpans(Vec<Vec<KeySpan>>);

impl SuffixSpans {
    /// Evaluates the conditions on these columns.
    pub(super) fn of(conditions: &[KeyCondition], context: &EvalContext) -> Result<SuffixSpans> {
        let spans = conditions.iter().map(|condition| spans(condition, context));
        Ok(SuffixSpans(spans.collect::<Result<_>>()?))
    }

    /// Returns the ranges of the keys with a prefix.
    pub(super) fn ranges(&self, prefix: &[u8]) -> Vec<RowRange> {
        let mut ranges = Vec::new();
        string_together(&mut prefix.to_vec(), &self.0, &mut ranges);
        ranges
    }
}

/// Returns whether ranges ascend without overlapping.
fn are_disjoint(ranges: &[RowRange]) -> bool {
    let is_before =
        |a: &RowRange, b: &RowRange| a.stop.as_ref().is_some_and(|stop| *stop <= b.start);
    ranges.windows(2).all(|pair| is_before(&pair[0], &pair[1]))
}

/// Returns the ranges in order, with overlapping and adjacent ones merged.
pub(super) fn merge_overlapping(mut ranges: Vec<RowRange>) -> Vec<RowRange> {
    ranges.sort_by(|a, b| a.start.cmp(&b.start));
    let mut united: Vec<RowRange> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match united.last_mut() {
            Some(last) if last.stop.as_ref().is_none_or(|stop| range.start <= *stop) => {
                if ends_before(&last.stop, &range.stop) {
                    last.stop = range.stop;
                }
            }
            _ => united.push(range),
        }
    }
    united
}

fn points(prefix: &mut Vec<u8>, columns: &[Vec<KeySpan>], out: &mut Vec<Vec<u8>>) {
    let Some((first, rest)) = columns.split_first() else {
        out.push(prefix.clone());
        return;
    };
    let length = prefix.len();
    for span in first {
        prefix.extend_from_slice(&span.start);
        points(prefix, rest, out);
        prefix.truncate(length);
    }
}

fn string_together(prefix: &mut Vec<u8>, columns: &[Vec<KeySpan>], out: &mut Vec<RowRange>) {
    let Some((first, rest)) = columns.split_first() else {
        let stop = prefix_end(prefix);
        out.push(RowRange { start: prefix.clone(), stop });
        return;
    };
    let length = prefix.len();
    for span in first {
        prefix.extend_from_slice(&span.start);
        if span.point {
            string_together(prefix, rest, out);
            prefix.truncate(length);
            continue;
        }
        let start = prefix.clone();
        prefix.truncate(length);
        let stop = match &span.stop {
            Some(stop) => Some([prefix.as_slice(), stop].concat()),
            None => prefix_end(prefix),
        };
        out.push(RowRange { start, stop });
    }
}

/// Returns the values that satisfy all terms of a condition, in key order.
fn spans(condition: &KeyCondition, context: &EvalContext) -> Result<Vec<KeySpan>> {
    let mut all: Option<Vec<KeySpan>> = None;
    for term in &condition.terms {
        let spans = term_spans(term, condition, context)?;
        all = Some(match all {
            None => spans,
            Some(all) => intersect(&all, &spans),
        });
    }
    Ok(all.unwrap_or_else(|| vec![KeySpan { start: Vec::new(), stop: None, point: false }]))
}

fn term_spans(
    term: &KeyTerm,
    condition: &KeyCondition,
    context: &EvalContext,
) -> Result<Vec<KeySpan>> {
    match term {
        KeyTerm::Equal(value) => equal(&value.eval_row(&[], context)?, condition),
        KeyTerm::In(values) => {
            let mut spans = Vec::with_capacity(values.len());
            for value in values {
                spans.extend(equal(&value.eval_row(&[], context)?, condition)?);
            }
            Ok(unite(spans))
        }
        KeyTerm::InArray(array) => {
            let mut spans = Vec::new();
            if let Datum::Nested(Nested::Array(array)) = array.eval_row(&[], context)? {
                for value in &array.elements {
                    spans.extend(equal(value, condition)?);
                }
            }
            Ok(unite(spans))
        }
        KeyTerm::IsNull => Ok(vec![point(encode(&Datum::Null, condition)?)]),
        KeyTerm::IsNotNull => Ok(vec![not_null(condition)?]),
        KeyTerm::Compare(comparison, value) => {
            compare(*comparison, &value.eval_row(&[], context)?, condition)
        }
        KeyTerm::Like(pattern) => like(&pattern.eval_row(&[], context)?, condition),
        KeyTerm::Computed(computed) => computed_spans(computed, condition, context),
        KeyTerm::Any(terms) => {
            let mut spans = Vec::new();
            for term in terms {
                spans.extend(term_spans(term, condition, context)?);
            }
            Ok(unite(spans))
        }
    }
}

/// Returns the values of a computed column: each one, or ranges if there are many.
fn computed_spans(
    computed: &ComputedValues,
    condition: &KeyCondition,
    context: &EvalContext,
) -> Result<Vec<KeySpan>> {
    let mut spans = Vec::new();
    for interval in computed_values::values(computed, context) {
        if computed.count.is_some() {
            for value in interval.first..=interval.last {
                spans.extend(equal(&Datum::Int8(value), condition)?);
            }
            continue;
        }
        let (first, last) = (Datum::Int8(interval.first), Datum::Int8(interval.last));
        let from = compare(Comparison::GreaterOrEqual, &first, condition)?;
        spans.extend(intersect(&from, &compare(Comparison::LessOrEqual, &last, condition)?));
    }
    Ok(unite(spans))
}

/// A value converted to the type of the key column.
enum ConvertedBound {
    /// The same value.
    Value(Datum),
    /// Less than all values of the type.
    Below,
    /// Greater than all values of the type.
    Above,
    Null,
}

fn convert(value: &Datum, to: &DataType) -> ConvertedBound {
    let integer = match value {
        Datum::Null => return ConvertedBound::Null,
        Datum::Int2(value) => i64::from(*value),
        Datum::Int4(value) => i64::from(*value),
        Datum::Int8(value) => *value,
        value => return ConvertedBound::Value(value.clone()),
    };
    if !is_integer(to) {
        return ConvertedBound::Value(value.clone());
    }
    let fitting = match to {
        DataType::Int2 => i16::try_from(integer).ok().map(Datum::Int2),
        DataType::Int4 => i32::try_from(integer).ok().map(Datum::Int4),
        _ => Some(Datum::Int8(integer)),
    };
    match fitting {
        Some(value) => ConvertedBound::Value(value),
        None if integer < 0 => ConvertedBound::Below,
        None => ConvertedBound::Above,
    }
}

/// Returns the value in the type `to` of a key column; `None` if no row can have it.
pub(super) fn as_key(value: &Datum, to: &DataType) -> Option<Datum> {
    match convert(value, to) {
        ConvertedBound::Value(value) => Some(value),
        ConvertedBound::Below | ConvertedBound::Above | ConvertedBound::Null => None,
    }
}

fn encode(value: &Datum, condition: &KeyCondition) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    let key = condition.key;
    keycode::encode(value, &condition.data_type, key.descending, key.nulls_first, &mut out)?;
    Ok(out)
}

fn point(start: Vec<u8>) -> KeySpan {
    let stop = prefix_end(&start);
    KeySpan { start, stop, point: true }
}

fn not_null(condition: &KeyCondition) -> Result<KeySpan> {
    let null = encode(&Datum::Null, condition)?;
    Ok(if condition.key.nulls_first {
        KeySpan { start: prefix_end(&null).unwrap_or_default(), stop: None, point: false }
    } else {
        KeySpan { start: Vec::new(), stop: Some(null), point: false }
    })
}

fn equal(value: &Datum, condition: &KeyCondition) -> Result<Vec<KeySpan>> {
    match as_key(value, &condition.data_type) {
        Some(value) => Ok(vec![point(encode(&value, condition)?)]),
        None => Ok(Vec::new()),
    }
}

fn compare(
    comparison: Comparison,
    value: &Datum,
    condition: &KeyCondition,
) -> Result<Vec<KeySpan>> {
    let present = not_null(condition)?;
    let smaller = comparison.is_upper();
    let value = match convert(value, &condition.data_type) {
        ConvertedBound::Null => return Ok(Vec::new()),
        ConvertedBound::Below => return Ok(if smaller { Vec::new() } else { vec![present] }),
        ConvertedBound::Above => return Ok(if smaller { vec![present] } else { Vec::new() }),
        ConvertedBound::Value(value) => encode(&value, condition)?,
    };
    let inclusive = matches!(comparison, Comparison::LessOrEqual | Comparison::GreaterOrEqual);
    let after = prefix_end(&value);
    // True if the matching values precede the bound in key order.
    let span = if smaller != condition.key.descending {
        let stop = if inclusive { after } else { Some(value) };
        KeySpan { start: present.start, stop, point: false }
    } else {
        let start = if inclusive { Some(value) } else { after };
        let Some(start) = start else { return Ok(Vec::new()) };
        KeySpan { start, stop: present.stop, point: false }
    };
    Ok(intersect(&[span], &[not_null(condition)?]))
}

fn like(pattern: &Datum, condition: &KeyCondition) -> Result<Vec<KeySpan>> {
    let Some(pattern) = pattern.as_str() else { return Ok(Vec::new()) };
    let (prefix, rest) = like_prefix(pattern);
    if rest.is_empty() {
        return equal(&Datum::text(prefix), condition);
    }
    if prefix.is_empty() {
        return Ok(vec![not_null(condition)?]);
    }
    let after = text_after(&prefix);
    let from = compare(Comparison::GreaterOrEqual, &Datum::text(prefix), condition)?;
    match after {
        None => Ok(from),
        Some(after) => {
            let to = compare(Comparison::Less, &Datum::text(after), condition)?;
            Ok(intersect(&from, &to))
        }
    }
}

/// Returns the smallest text greater than every text with a prefix.
fn text_after(prefix: &str) -> Option<String> {
    let mut after = prefix.to_owned();
    while let Some(last) = after.pop() {
        let next = match last {
            '\u{d7ff}' => Some('\u{e000}'),
            last => char::from_u32(u32::from(last) + 1),
        };
        if let Some(next) = next {
            after.push(next);
            return Some(after);
        }
    }
    None
}

/// Returns whether `a` ends before `b` does.
fn ends_before(a: &Option<Vec<u8>>, b: &Option<Vec<u8>>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => a < b,
        (Some(_), None) => true,
        (None, _) => false,
    }
}

/// Sorts spans and merges overlapping ones.
fn unite(mut spans: Vec<KeySpan>) -> Vec<KeySpan> {
    spans.sort_by(|a, b| a.start.cmp(&b.start));
    let mut united: Vec<KeySpan> = Vec::with_capacity(spans.len());
    for span in spans {
        match united.last_mut() {
            Some(last) if last.stop.as_ref().is_none_or(|stop| span.start < *stop) => {
                if last.start == span.start && last.stop == span.stop {
                    last.point |= span.point;
                    continue;
                }
                last.point = false;
                if ends_before(&last.stop, &span.stop) {
                    last.stop = span.stop;
                }
            }
            _ => united.push(span),
        }
    }
    united
}

/// Returns the intersection of two sorted lists of disjoint spans.
fn intersect(a: &[KeySpan], b: &[KeySpan]) -> Vec<KeySpan> {
    let (mut i, mut j) = (0, 0);
    let mut out = Vec::new();
    while let (Some(x), Some(y)) = (a.get(i), b.get(j)) {
        let start = x.start.as_slice().max(&y.start).to_vec();
        let x_first = ends_before(&x.stop, &y.stop);
        let stop = if x_first { x.stop.clone() } else { y.stop.clone() };
        if stop.as_ref().is_none_or(|stop| start < *stop) {
            // A value's span lies within a range or outside of it; a range never splits it.
            out.push(KeySpan { start, stop, point: x.point || y.point });
        }
        if x_first {
            i += 1;
        } else {
            j += 1;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(start: &str, stop: Option<&str>) -> RowRange {
        RowRange { start: start.into(), stop: stop.map(Into::into) }
    }

    #[test]
    fn adjacent_key_ranges_are_merged() {
        let all = vec![
            range("m", Some("n")),
            range("a", Some("c")),
            range("b", Some("d")),
            range("a", Some("b")),
            range("x", None),
            range("y", Some("z")),
        ];
        let wanted = vec![range("a", Some("d")), range("m", Some("n")), range("x", None)];
        assert_eq!(merge_overlapping(all), wanted);
    }
}
