//! Values of `jsonpath` evaluation: parts of the document, computed values, and datetimes.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::sync::Arc;

use super::comparison::compare_across;
use super::date_parse::standard;
use crate::cast;
use crate::context::EvalContext;
use crate::datatype::{DataType, SqlType};
use crate::datetime::TimeZone;
use crate::datum::{Datum, Json};
use crate::error::{Error, Result};
use crate::interruptible::InterruptPacer;
use crate::numeric::Numeric;
use crate::text::{self, TextStyle};

/// A value during the evaluation of a path.
#[derive(Debug, Clone)]
pub(super) enum Value<'a> {
    /// JSON; borrowed if it is part of the document or of a variable.
    Json(Cow<'a, Json>),
    /// A result of `.datetime()`.
    Moment {
        /// A date, time or timestamp.
        datum: Datum,
        /// For `timestamptz`, the offset in its text, in seconds east.
        offset: i32,
    },
}

impl<'a> Value<'a> {
    pub(super) fn of(json: &'a Json) -> Value<'a> {
        Value::Json(Cow::Borrowed(json))
    }

    fn json(&self) -> Option<&Json> {
        match self {
            Value::Json(json) => Some(json),
            Value::Moment { .. } => None,
        }
    }

    pub(super) fn is_array(&self) -> bool {
        matches!(self.json(), Some(Json::Array(_)))
    }

    pub(super) fn is_container(&self) -> bool {
        self.json().is_some_and(Json::is_container)
    }

    /// Returns the number of elements of an array.
    pub(super) fn size(&self) -> Option<usize> {
        match self.json() {
            Some(Json::Array(elements)) => Some(elements.len()),
            _ => None,
        }
    }

    pub(super) fn number(&self) -> Option<&Numeric> {
        match self.json() {
            Some(Json::Number(number)) => Some(number),
            _ => None,
        }
    }

    pub(super) fn string(&self) -> Option<&str> {
        match self.json() {
            Some(Json::String(text)) => Some(text),
            _ => None,
        }
    }

    /// Returns parts of this value, borrowed if this value is borrowed.
    fn parts(&self, of: fn(&Json) -> Vec<&Json>) -> Vec<Value<'a>> {
        match self {
            Value::Json(Cow::Borrowed(json)) => of(json).into_iter().map(Value::of).collect(),
            Value::Json(Cow::Owned(json)) => {
                let owned = |part: &Json| Value::Json(Cow::Owned(part.clone()));
                of(json).into_iter().map(owned).collect()
            }
            Value::Moment { .. } => Vec::new(),
        }
    }

    /// Returns the elements of an array.
    pub(super) fn elements(&self) -> Vec<Value<'a>> {
        self.parts(|json| match json {
            Json::Array(elements) => elements.iter().collect(),
            _ => Vec::new(),
        })
    }

    /// Returns an element of an array.
    pub(super) fn element(&self, index: usize) -> Option<Value<'a>> {
        match self {
            Value::Json(Cow::Borrowed(Json::Array(elements))) => elements.get(index).map(Value::of),
            other => other.elements().into_iter().nth(index),
        }
    }

    /// Returns the elements of an array or the values of an object.
    pub(super) fn children(&self) -> Vec<Value<'a>> {
        self.members().unwrap_or_else(|| self.elements())
    }

    /// Returns the values of an object; `None` if this is not an object.
    pub(super) fn members(&self) -> Option<Vec<Value<'a>>> {
        matches!(self.json(), Some(Json::Object(_))).then(|| {
            self.parts(|json| match json {
                Json::Object(pairs) => pairs.iter().map(|(_, value)| value).collect(),
                _ => Vec::new(),
            })
        })
    }

    /// Returns the value of a key, if it exists; `None` if this is not an object.
    pub(super) fn member(&self, key: &str) -> Option<Option<Value<'a>>> {
        match self {
            Value::Json(Cow::Borrowed(json @ Json::Object(_))) => {
                Some(json.get(key).map(Value::of))
            }
            Value::Json(Cow::Owned(json @ Json::Object(_))) => {
                Some(json.get(key).map(|found| Value::Json(Cow::Owned(found.clone()))))
            }
            _ => None,
        }
    }

    /// Returns keys and values of an object.
    pub(super) fn pairs(&self) -> Option<Vec<(Arc<str>, Json)>> {
        match self.json() {
            Some(Json::Object(pairs)) => Some(pairs.clone()),
            _ => None,
        }
    }

    /// Returns the index of an object among all objects of the document, from 0; -1 if it is not
    /// part of it.
    pub(super) fn id_in(&self, root: &Json) -> i64 {
        fn look(json: &Json, wanted: &Json, seen: &mut i64) -> bool {
            match json {
                Json::Object(pairs) => {
                    if std::ptr::eq(json, wanted) {
                        return true;
                    }
                    *seen += 1;
                    pairs.iter().any(|(_, value)| look(value, wanted, seen))
                }
                Json::Array(elements) => elements.iter().any(|one| look(one, wanted, seen)),
                _ => false,
            }
        }
        let mut seen = 0;
        match self {
            Value::Json(Cow::Borrowed(json)) if look(root, json, &mut seen) => seen,
            _ => -1,
        }
    }

    /// Returns the result of `.type()`.
    pub(super) fn type_name(&self) -> &'static str {
        match self {
            Value::Json(json) => match json.as_ref() {
                Json::Null => "null",
                Json::Bool(_) => "boolean",
                Json::Number(_) => "number",
                Json::String(_) => "string",
                Json::Array(_) => "array",
                Json::Object(_) => "object",
            },
            Value::Moment { datum, .. } => type_of(datum).sql_name(),
        }
    }

    pub(super) fn into_json(self) -> Json {
        match self {
            Value::Json(json) => json.into_owned(),
            Value::Moment { datum, offset } => Json::String(written(&datum, offset).into()),
        }
    }
}

/// Returns the ISO 8601 text of a datetime.
fn written(datum: &Datum, offset: i32) -> String {
    let style = TextStyle { time_zone: TimeZone::fixed(offset), ..TextStyle::default() };
    let mut out = Vec::new();
    text::write_short(datum, type_of(datum), &style, &mut out);
    let mut out = String::from_utf8_lossy(&out).into_owned();
    let is_timestamp = matches!(datum, Datum::Timestamp(_) | Datum::Timestamptz(_));
    if let Some(blank) = out.find(' ').filter(|_| is_timestamp) {
        out.replace_range(blank..=blank, "T");
    }
    let is_zoned = matches!(datum, Datum::Timestamptz(_) | Datum::Nested(_));
    let sign = out.rfind(['+', '-']).filter(|_| is_zoned);
    if sign.is_some_and(|sign| !out[sign..].contains(':')) {
        out.push_str(":00");
    }
    out
}

fn type_of(datum: &Datum) -> &'static DataType {
    match datum {
        Datum::Date(_) => &DataType::Date,
        Datum::Time(_) => &DataType::Time,
        Datum::Timestamp(_) => &DataType::Timestamp,
        Datum::Timestamptz(_) => &DataType::Timestamptz,
        _ => &DataType::Timetz,
    }
}

/// Compares strings by their UTF-16 code units, as SQL/JSON does.
pub(super) fn compare_strings(left: &str, right: &str) -> Ordering {
    left.encode_utf16().cmp(right.encode_utf16())
}

/// Compares datetimes; unknown for a time and a date. If only one has a time zone, the session's
/// zone is used, if there is a context.
///
/// # Errors
///
/// 0A000 if a time zone is needed and may not be used.
pub(super) fn compare_moments(
    left: &Datum,
    right: &Datum,
    zoned: Option<&EvalContext>,
) -> Result<Option<Ordering>> {
    use DataType::{Date, Time, Timestamp, Timestamptz, Timetz};
    let (from, to) = (type_of(left), type_of(right));
    if from == to {
        return Ok(Some(left.compare(right)));
    }
    let common = match (from, to) {
        (Time, Timetz) | (Timetz, Time) => &Timetz,
        (Date, Timestamp) | (Timestamp, Date) => &Timestamp,
        (Date | Timestamp, Timestamptz) | (Timestamptz, Date | Timestamp) => &Timestamptz,
        _ => return Ok(None),
    };
    let context = match (common, zoned) {
        (Timestamp, _) => &EvalContext::default(),
        (_, Some(context)) => context,
        (_, None) => {
            let local = if from == common { to } else { from };
            bail!(FEATURE_NOT_SUPPORTED: "cannot convert value from {} to {} without time zone usage",
                local.internal_name(), common.internal_name(); hint "Use *_tz() function for time zone support.");
        }
    };
    if *common == Timetz {
        let cast = |datum: &Datum| {
            cast::cast(datum, type_of(datum), &SqlType::from(common), true, context)
        };
        return Ok(Some(cast(left)?.compare(&cast(right)?)));
    }
    // Values beyond the range of the other type sort before or after all of its values.
    compare_across(left, right, context).map(Some)
}

fn not_recognized(what: &str, string: &str) -> Error {
    err!(INVALID_ARGUMENT_FOR_SQL_JSON_DATETIME_FUNCTION: "{what} format is not recognized: \"{string}\"")
}

/// Parses the datetime in a string, by a template or in ISO format.
///
/// # Errors
///
/// 22031 if the value is not a string or not a datetime.
pub(super) fn moment<'a>(
    value: &Value<'_>,
    template: Option<&str>,
    pace: &mut InterruptPacer<'_>,
) -> Result<Value<'a>> {
    let Some(string) = value.string() else {
        bail!(INVALID_ARGUMENT_FOR_SQL_JSON_DATETIME_FUNCTION:
            "jsonpath item method .datetime() can only be applied to a \
            string");
    };
    match template {
        Some(template) => by_template(string, template, pace),
        None => iso(string).ok_or_else(|| {
            not_recognized("datetime", string)
                .with_hint("Use a datetime template argument to specify the input data format.")
        }),
    }
}

/// Parses a string by a template, whose fields determine the type.
fn by_template<'a>(
    string: &str,
    template: &str,
    pace: &mut InterruptPacer<'_>,
) -> Result<Value<'a>> {
    let (datum, offset) = standard(string, template, pace)?;
    Ok(Value::Moment { datum, offset })
}

/// Parses `yyyy-mm-dd`, `hh:mm:ss[.ffffff]`, or both, with an offset after a time.
fn iso<'a>(string: &str) -> Option<Value<'a>> {
    let (date, clock) = match string.find(['T', ' ']) {
        Some(at) if string[..at].contains('-') => (Some(&string[..at]), Some(&string[at + 1..])),
        _ if string.contains(':') => (None, Some(string)),
        _ => (Some(string), None),
    };
    let digits = |part: &str, most: usize| {
        !part.is_empty() && part.len() <= most && part.bytes().all(|byte| byte.is_ascii_digit())
    };
    if let Some(date) = date {
        let parts: Vec<&str> = date.split('-').collect();
        let [year, month, day] = parts.as_slice() else { return None };
        if !(digits(year, 9) && digits(month, 2) && digits(day, 2)) {
            return None;
        }
    }
    let mut offset = None;
    if let Some(clock) = clock {
        let sign = clock.find(['+', '-']);
        let time = clock[..sign.unwrap_or(clock.len())].trim_end_matches(' ');
        let (whole, fraction) = time.split_once('.').unwrap_or((time, "0"));
        let parts: Vec<&str> = whole.split(':').collect();
        let three = parts.len() == 3 && parts.iter().all(|part| digits(part, 2));
        if !three || !digits(fraction, 6) {
            return None;
        }
        if let Some(sign) = sign {
            let zone = &clock[sign + 1..];
            let (hours, minutes) = zone.split_once(':').unwrap_or((zone, "0"));
            if !(digits(hours, 2) && digits(minutes, 2)) {
                return None;
            }
            let seconds: i32 =
                3600 * hours.parse::<i32>().ok()? + 60 * minutes.parse::<i32>().ok()?;
            offset = Some(if clock[sign..].starts_with('-') { -seconds } else { seconds });
        }
    }
    let data_type = match (date.is_some(), clock.is_some(), offset.is_some()) {
        (true, false, _) => DataType::Date,
        (false, _, false) => DataType::Time,
        (false, _, true) => DataType::Timetz,
        (true, true, false) => DataType::Timestamp,
        (true, true, true) => DataType::Timestamptz,
    };
    let datum = text::parse(string, &data_type, &TextStyle::default()).ok()?;
    Some(Value::Moment { datum, offset: offset.unwrap_or(0) })
}
