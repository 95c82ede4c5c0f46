//! Textual syntax of filters for scripts: `all(prefix(a),value(>=,5))`. Without spaces.
//!
//! ```text
//! all(F,…) any(F,…) while(F) skip(F)
//! prefix(TEXT) ranges(RANGE,…) fuzzy(a??d,…) row(OP,WITH) page(ROWS)
//! family(OP,WITH) qualifier(OP,WITH) column-prefix(TEXT,…) column-range(RANGE)
//! column-page(LIMIT,COUNT) column-page(LIMIT,from:TEXT)
//! value(OP,WITH) column-value(FAMILY:QUALIFIER,OP,WITH) timestamps(TIME,…)
//! first-key key-only key-only(length)
//! single(FAMILY:QUALIFIER,OP,WITH) with keep-missing, any-version, exclude behind it
//! custom(TEXT)                    user code: rows of which a value contains the text
//!
//! OP      <  <=  =  !=  >=  >
//! WITH    TEXT  prefix:TEXT  at3:TEXT  long:5  and:TEXT or:TEXT xor:TEXT  null:  sub:TEXT
//!         regex:TEXT
//! RANGE   a..c  a..=c  >a..c  a..  ..c
//! ```

use std::ops::Bound;
use std::sync::Arc;

use store::scan::filter::{
    BitOp, ColumnCondition, ColumnOffset, Comparator, CompareOp, Comparison, FilterRange, FuzzyRow,
    RowPredicate,
};
use store::{Filter, RowRef, Timestamp};

type Parsed<T> = Result<T, String>;

/// Look-up of the index of a family by its name.
type Families<'a> = &'a dyn Fn(&str) -> Parsed<u8>;

/// Keeps rows with a value that contains a text.
struct Contains(String);

impl RowPredicate for Contains {
    fn keep(&self, row: &RowRef<'_>) -> store::Result<bool> {
        Ok(row.cells().any(|cell| String::from_utf8_lossy(cell.value).contains(&self.0)))
    }

    fn describe(&self) -> String {
        format!("contains {}", self.0)
    }
}

/// Parses a filter.
pub(crate) fn parse(text: &str, families: Families<'_>) -> Parsed<Filter> {
    let (name, arguments) = match text.split_once('(') {
        Some((name, rest)) => {
            let inner = rest.strip_suffix(')').ok_or_else(|| format!("no end: {text}"))?;
            (name, split(inner))
        }
        None => (text, Vec::new()),
    };
    let list = || arguments.iter().map(|text| parse(text, families)).collect::<Parsed<Vec<_>>>();
    let one = || -> Parsed<&str> { arguments.first().copied().ok_or_else(|| text.to_owned()) };
    let inner = || -> Parsed<Box<Filter>> { parse(one()?, families).map(Box::new) };
    let texts = || arguments.iter().map(|text| text.as_bytes().to_vec()).collect::<Vec<_>>();
    Ok(match name {
        "all" => Filter::All(list()?),
        "any" => Filter::Any(list()?),
        "while" => Filter::WhileMatch(inner()?),
        "skip" => Filter::Skip(inner()?),
        "prefix" => Filter::RowPrefix(one()?.into()),
        "ranges" => Filter::RowRanges(arguments.iter().map(|text| range(text)).collect()),
        "fuzzy" => Filter::FuzzyRow(arguments.iter().map(|text| fuzzy(text)).collect()),
        "row" => Filter::Row(comparison(&arguments)?),
        "page" => Filter::Page(number(one()?)?),
        "family" => Filter::Family(comparison(&arguments)?),
        "qualifier" => Filter::Qualifier(comparison(&arguments)?),
        "column-prefix" => Filter::ColumnPrefix(texts()),
        "column-range" => {
            let FilterRange { start, stop } = range(one()?);
            Filter::ColumnRange { start, stop }
        }
        "column-page" => {
            let offset = arguments.get(1).ok_or("no offset")?;
            let offset = match offset.strip_prefix("from:") {
                Some(from) => ColumnOffset::Qualifier(from.into()),
                None => ColumnOffset::Count(number(offset)?),
            };
            Filter::ColumnPage { limit: number(one()?)?, offset }
        }
        "value" => Filter::Value(comparison(&arguments)?),
        "column-value" => {
            let (family, qualifier) = column(one()?, families)?;
            Filter::ColumnValue { family, qualifier, value: comparison(&arguments[1..])? }
        }
        "timestamps" => {
            let times = arguments.iter().map(|text| number(text).map(Timestamp));
            Filter::Timestamps(times.collect::<Parsed<_>>()?)
        }
        "first-key" => Filter::FirstKeyOnly,
        "key-only" => Filter::KeyOnly { length_as_value: arguments == ["length"] },
        "single" => {
            let (family, qualifier) = column(one()?, families)?;
            let value = comparison(&arguments[1..])?;
            let mut condition = ColumnCondition::new(family, qualifier, value);
            condition.keep_if_missing = arguments.contains(&"keep-missing");
            condition.any_version = arguments.contains(&"any-version");
            condition.exclude_column = arguments.contains(&"exclude");
            Filter::SingleColumnValue(Box::new(condition))
        }
        "custom" => Filter::Custom(Arc::new(Contains(one()?.to_owned()))),
        other => return Err(format!("unknown filter {other}")),
    })
}

/// Splits at the commas outside of parentheses.
fn split(text: &str) -> Vec<&str> {
    if text.is_empty() {
        return Vec::new();
    }
    let (mut parts, mut depth, mut start) = (Vec::new(), 0, 0);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'(' => depth += 1,
            b')' => depth -= 1,
            b',' if depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

fn number<T: std::str::FromStr>(text: &str) -> Parsed<T> {
    text.parse().map_err(|_| format!("bad number {text}"))
}

fn column(text: &str, families: Families<'_>) -> Parsed<(u8, Vec<u8>)> {
    let (family, qualifier) = text.split_once(':').unwrap_or((text, ""));
    Ok((families(family)?, qualifier.into()))
}

/// Parses a range.
fn range(text: &str) -> FilterRange {
    let (start, stop) = text.split_once("..").unwrap_or((text, ""));
    let bytes = |text: &str| text.as_bytes().to_vec();
    let start = match start.strip_prefix('>') {
        Some(start) => Bound::Excluded(bytes(start)),
        None => Bound::Included(bytes(start)),
    };
    let stop = match (stop, stop.strip_prefix('=')) {
        ("", _) => Bound::Unbounded,
        (_, Some(stop)) => Bound::Included(bytes(stop)),
        (stop, None) => Bound::Excluded(bytes(stop)),
    };
    FilterRange { start, stop }
}

fn fuzzy(text: &str) -> FuzzyRow {
    FuzzyRow(text.bytes().map(|byte| (byte != b'?').then_some(byte)).collect())
}

fn comparison(arguments: &[&str]) -> Parsed<Comparison> {
    let [op, with, ..] = arguments else { return Err("a comparison is not whole".into()) };
    let op = match *op {
        "<" => CompareOp::Less,
        "<=" => CompareOp::LessOrEqual,
        "=" => CompareOp::Equal,
        "!=" => CompareOp::NotEqual,
        ">=" => CompareOp::GreaterOrEqual,
        ">" => CompareOp::Greater,
        other => return Err(format!("unknown comparison {other}")),
    };
    let (kind, text) = with.split_once(':').unwrap_or(("", with));
    let bytes = text.as_bytes().to_vec();
    let with = match kind {
        "" => Comparator::Binary(bytes),
        "prefix" => Comparator::BinaryPrefix(bytes),
        "long" => Comparator::Long(number(text)?),
        "and" => Comparator::Bit { op: BitOp::And, mask: bytes },
        "or" => Comparator::Bit { op: BitOp::Or, mask: bytes },
        "xor" => Comparator::Bit { op: BitOp::Xor, mask: bytes },
        "null" => Comparator::Null,
        "sub" => Comparator::Substring(text.to_owned()),
        "regex" => Comparator::Regex(text.to_owned()),
        at => match at.strip_prefix("at") {
            Some(offset) => Comparator::BinaryComponent { bytes, offset: number(offset)? },
            None => return Err(format!("unknown comparator {at}")),
        },
    };
    Ok(Comparison { op, with })
}
