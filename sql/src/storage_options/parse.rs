//! Values of options as statements contain them: parsing, bounds, units and their errors.

use std::time::Duration;

use store::descriptor::SplitPolicy;
use types::text::TextStyle;
use types::{DataType, Datum};

use crate::ast::{Ident, OptionValue, TableOption};
use crate::error::{Error, Result};
use crate::parser::parse_column_families;
use crate::settings::parse_bytes;
use crate::storage_options::value::{OptionDatum, PLAIN_SPLIT_POLICIES};

/// Domain of the values of an option.
#[derive(Debug, Clone, Copy)]
pub enum OptionKind {
    /// A Boolean, in all spellings of PostgreSQL.
    Bool,
    /// An integer within bounds.
    Integer(i64, i64),
    /// A number within bounds.
    Real(f64, f64),
    /// A number of bytes within bounds, with or without a unit.
    Bytes(i64, i64),
    /// An integer within bounds, or one of these words.
    IntegerOrWord(i64, i64, &'static [&'static str]),
    /// One of these words.
    Word(&'static [&'static str]),
    /// Values of this form, with a parser of their own.
    Special(&'static str, fn(&TableOption) -> Result<OptionDatum>),
}

/// Mismatch of a value and its domain.
pub(super) enum ValueMismatch {
    /// A value of another type, or another word.
    Type,
    /// A number out of bounds.
    Bounds,
}

impl OptionKind {
    /// Parses the value of an option; a special one reports its own errors.
    pub(super) fn parse(
        &self,
        option: &TableOption,
    ) -> Result<std::result::Result<OptionDatum, ValueMismatch>> {
        let text = text(option);
        let lower = text.to_ascii_lowercase();
        let text = text.trim();
        let integer = |number: Option<i64>, low, high| match number.ok_or(ValueMismatch::Type)? {
            number if (low..=high).contains(&number) => Ok(OptionDatum::Integer(number)),
            _ => Err(ValueMismatch::Bounds),
        };
        Ok(match *self {
            OptionKind::Bool => {
                let words =
                    ["on", "off", "true", "false", "yes", "no", "1", "0", "t", "f", "y", "n"];
                let word = words.into_iter().find(|word| *word == lower);
                word.map(OptionDatum::Word).ok_or(ValueMismatch::Type)
            }
            OptionKind::Integer(low, high) => integer(text.parse().ok(), low, high),
            OptionKind::Bytes(low, high) => {
                integer(parse_bytes(text).and_then(|bytes| bytes.try_into().ok()), low, high)
            }
            OptionKind::Real(low, high) => match text.parse::<f64>() {
                Err(_) => Err(ValueMismatch::Type),
                Ok(number) if !(low..=high).contains(&number) => Err(ValueMismatch::Bounds),
                Ok(_) => Ok(OptionDatum::Text(text.to_owned())),
            },
            OptionKind::IntegerOrWord(low, high, words) => {
                match words.iter().find(|word| **word == lower) {
                    Some(word) => Ok(OptionDatum::Word(word)),
                    None => integer(text.parse().ok(), low, high),
                }
            }
            OptionKind::Word(words) => {
                let word = words.iter().find(|word| **word == lower);
                word.map(|word| OptionDatum::Word(word)).ok_or(ValueMismatch::Type)
            }
            OptionKind::Special(_, parse) => return parse(option).map(Ok),
        })
    }

    /// Returns the error of one of PostgreSQL's parameters.
    pub(super) fn parameter_error(&self, option: &TableOption, mismatch: ValueMismatch) -> Error {
        let (name, text) = (&option.name.value, text(option));
        let (kind, bounds) = match self {
            OptionKind::Integer(low, high) => ("integer", format!("\"{low}\" and \"{high}\"")),
            OptionKind::Real(low, high) => {
                ("floating point", format!("\"{low:.6}\" and \"{high:.6}\""))
            }
            _ => ("boolean", String::new()),
        };
        match mismatch {
            ValueMismatch::Type => {
                err!(INVALID_PARAMETER_VALUE: "invalid value for {kind} option \"{name}\": {text}")
            }
            ValueMismatch::Bounds => {
                err!(INVALID_PARAMETER_VALUE: "value {text} out of bounds for option \"{name}\"";
                    detail "Valid values are between {bounds}.")
            }
        }
    }

    /// Returns the error of another option.
    pub(super) fn error(&self, option: &TableOption) -> Error {
        let why = match self {
            OptionKind::Integer(low, high) => format!("it must be an integer from {low} to {high}"),
            OptionKind::IntegerOrWord(low, high, words) => {
                format!(
                    "use {} or an integer from {low} to {high}",
                    words.join(", ").to_uppercase()
                )
            }
            OptionKind::Bool => "use TRUE or FALSE".to_owned(),
            OptionKind::Bytes(low, high) => {
                format!("it must be a number of bytes from {low} to {high}, such as '64MB'")
            }
            OptionKind::Word(words) => format!("use {}", listed(words, "or")),
            _ => "it has another type".to_owned(),
        };
        invalid(&option.name, &why)
    }
}

/// Returns the error for an invalid value.
pub(crate) fn invalid(name: &Ident, why: &str) -> Error {
    err!(INVALID_PARAMETER_VALUE: "invalid value for parameter \"{}\": {why}", name.value; at name.position)
}

/// Returns a list of names in upper case: `A, B and C`.
pub(super) fn listed(names: &[&str], conjunction: &str) -> String {
    let names: Vec<String> = names.iter().map(|name| name.to_uppercase()).collect();
    match names.as_slice() {
        [others @ .., last] if !others.is_empty() => {
            format!("{} {conjunction} {last}", others.join(", "))
        }
        _ => names.concat(),
    }
}

/// Returns the text of a value as written.
fn text(option: &TableOption) -> String {
    match &option.value {
        OptionValue::Boolean(value) => value.to_string(),
        value => value.text(),
    }
}

/// Parses a time: seconds as in HBase, an interval as text, or FOREVER.
pub(super) fn duration(option: &TableOption) -> Result<OptionDatum> {
    let micros = match &option.value {
        OptionValue::Number(text) => {
            let seconds = text.parse::<i32>().ok().and_then(|seconds| u64::try_from(seconds).ok());
            seconds
                .filter(|seconds| *seconds > 0)
                .map(|seconds| seconds * 1_000_000)
                .ok_or_else(|| OptionKind::Integer(1, i64::from(i32::MAX)).error(option))?
        }
        OptionValue::String(text) | OptionValue::Word(text)
            if text.eq_ignore_ascii_case("forever") =>
        {
            return Ok(OptionDatum::Absent);
        }
        OptionValue::String(text) => {
            let interval = types::text::parse(text, &DataType::Interval, &TextStyle::default())
                .map_err(|error| invalid(&option.name, &error.message))?;
            let Datum::Interval(interval) = interval else {
                return Err(invalid(&option.name, "it must be an interval"));
            };
            let days = i64::from(interval.months) * 30 + i64::from(interval.days);
            let micros = i128::from(days) * 86_400_000_000 + i128::from(interval.microseconds);
            u64::try_from(micros)
                .ok()
                .filter(|micros| *micros >= 1_000_000)
                .ok_or_else(|| invalid(&option.name, "it must be at least a second"))?
        }
        _ => return Err(invalid(&option.name, "use seconds, an interval or FOREVER")),
    };
    Ok(OptionDatum::Duration(Duration::from_micros(micros)))
}

/// Parses `vacuum_index_cleanup`.
pub(super) fn cleanup(option: &TableOption) -> Result<OptionDatum> {
    let (name, text) = (&option.name.value, text(option));
    if !["auto", "on", "off", "true", "false"].contains(&text.to_ascii_lowercase().as_str()) {
        bail!(INVALID_PARAMETER_VALUE: "invalid value for enum option \"{name}\": {text}";
            detail "Valid values are \"on\", \"off\", and \"auto\".");
    }
    Ok(OptionDatum::Text(text))
}

/// Accepts any text.
pub(super) fn any_text(option: &TableOption) -> Result<OptionDatum> {
    Ok(OptionDatum::Text(text(option)))
}

/// Parses the name of a column family.
pub(super) fn family_name(option: &TableOption) -> Result<OptionDatum> {
    match &option.value {
        OptionValue::String(name) | OptionValue::Word(name) if !name.is_empty() => {
            Ok(OptionDatum::Text(name.clone()))
        }
        _ => Err(invalid(&option.name, "it must be the name of a column family")),
    }
}

/// Parses `oids`, which is always false.
pub(super) fn oids(option: &TableOption) -> Result<OptionDatum> {
    match OptionKind::Bool.parse(option)? {
        Ok(OptionDatum::Word("false" | "off" | "no" | "0")) => Ok(OptionDatum::Absent),
        Ok(_) => bail!(FEATURE_NOT_SUPPORTED: "tables declared WITH OIDS are not supported"),
        Err(mismatch) => Err(OptionKind::Bool.parameter_error(option, mismatch)),
    }
}

/// Rejects an option that is not implemented.
pub(super) fn not_yet(option: &TableOption) -> Result<OptionDatum> {
    let name = option.name.value.to_uppercase();
    let hint = "Omit the option, and give the key column DEFAULT NEXT VALUE FOR a sequence.";
    Err(Error::not_supported(format!("option {name}"), hint).at(option.name.position))
}

/// Parses a split policy: a name, with its argument in parentheses if it has one: `stepping`,
/// `key_prefix(4)`, `delimited_key_prefix(_)`.
pub(super) fn split_policy(option: &TableOption) -> Result<OptionDatum> {
    let (OptionValue::String(text) | OptionValue::Word(text)) = &option.value else {
        return Err(invalid(&option.name, "it must be the name of a policy"));
    };
    let (name, argument) = match text.strip_suffix(')').and_then(|text| text.split_once('(')) {
        Some((name, argument)) => (name, Some(argument)),
        None => (text.as_str(), None),
    };
    let plain = PLAIN_SPLIT_POLICIES.iter().find(|(plain, _)| plain.eq_ignore_ascii_case(name));
    let policy = match (name.to_ascii_lowercase().as_str(), argument, plain) {
        (_, None, Some((_, policy))) => policy.clone(),
        ("key_prefix", Some(length), _) => match length.trim().parse() {
            Ok(length @ 1..) => SplitPolicy::KeyPrefix { length },
            _ => {
                return Err(invalid(
                    &option.name,
                    "KEY_PREFIX takes a number of bytes: KEY_PREFIX(4)",
                ));
            }
        },
        ("delimited_key_prefix", Some(delimiter), _) if !delimiter.is_empty() => {
            SplitPolicy::DelimitedKeyPrefix { delimiter: delimiter.as_bytes().to_vec() }
        }
        _ => {
            return Err(invalid(
                &option.name,
                "use DISABLED, CONSTANT_SIZE, INCREASING_TO_UPPER_BOUND, STEPPING, KEY_PREFIX(n), \
                 DELIMITED_KEY_PREFIX(delimiter) or BUSY",
            ));
        }
    };
    Ok(OptionDatum::SplitPolicy(policy))
}

/// Parses `column_families`: `f(a, b), g(c)`, with names quoted as in SQL.
pub(super) fn column_families(option: &TableOption) -> Result<OptionDatum> {
    let families = match &option.value {
        OptionValue::String(text) => parse_column_families(text).ok(),
        _ => None,
    };
    let families = families.map(OptionDatum::Families);
    families.ok_or_else(|| invalid(&option.name, "write 'family(column, …), …'"))
}
