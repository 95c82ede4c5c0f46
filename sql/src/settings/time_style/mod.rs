//! Values of the settings `TimeZone`, `DateStyle` and `as_of`.

use types::datetime::{DateOrder, DateStyle, MICROS_PER_SECOND, TimeZone};
use types::text::TextStyle;
use types::{DataType, Datum};

use crate::error::Result;
use crate::settings::value_error::invalid;

/// Converts a point in time to UTC in ISO form, which has the same meaning after a change of
/// `TimeZone` and `DateStyle`; empty remains empty.
pub(super) fn read_time(value: &str, style: &TextStyle) -> Result<String> {
    if value.trim().is_empty() {
        return Ok(String::new());
    }
    let time = types::text::parse(value, &DataType::Timestamptz, style)?;
    let mut bytes = Vec::new();
    types::text::write_short(&time, &DataType::Timestamptz, &TextStyle::default(), &mut bytes);
    Ok(String::from_utf8(bytes).unwrap_or_default())
}

/// Parses a time zone: a name, a number of hours, or `INTERVAL '…'`, an offset.
pub(super) fn read_zone(value: &str) -> Result<TimeZone> {
    let bad = || invalid("TimeZone", value);
    let Some(rest) = value.get(8..).filter(|_| value[..8].eq_ignore_ascii_case("interval")) else {
        return TimeZone::parse_setting(value).map_err(|_| bad());
    };
    let quoted = rest.trim().strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''));
    let text = quoted.ok_or_else(bad)?.replace("''", "'");
    let read = types::text::parse(&text, &DataType::Interval, &TextStyle::default())?;
    let Datum::Interval(offset) = read else { return Err(bad()) };
    if offset.months != 0 {
        return Err(bad().with_detail("Cannot specify months in time zone interval."));
    }
    if offset.days != 0 {
        return Err(bad().with_detail("Cannot specify days in time zone interval."));
    }
    let seconds = i32::try_from(offset.microseconds / MICROS_PER_SECOND).ok();
    let seconds = seconds.filter(|seconds| seconds.abs() < 168 * 3600);
    seconds.map(TimeZone::fixed).ok_or_else(bad)
}

/// Parses `DateStyle`: keywords separated by commas, at most one for the style and one for the
/// field order; a missing one is unchanged.
pub(super) fn read_date_style(
    value: &str,
    now: (DateStyle, DateOrder),
) -> Result<(DateStyle, DateOrder)> {
    const NAME: &str = "DateStyle";
    let (mut style, mut order, mut conflict) = (None, None, false);
    let words = value.split(',').map(str::trim);
    if words.clone().any(|word| word.is_empty() || word.contains(['"', ' '])) && !value.is_empty() {
        return Err(invalid(NAME, value).with_detail("List syntax is invalid."));
    }
    for word in words.filter(|word| !word.is_empty()) {
        let lower = word.to_ascii_lowercase();
        let (new_style, new_order) = match &*lower {
            "iso" => (Some(DateStyle::Iso), None),
            "sql" => (Some(DateStyle::Sql), None),
            "german" => (Some(DateStyle::German), None),
            "ymd" => (None, Some(DateOrder::Ymd)),
            "dmy" => (None, Some(DateOrder::Dmy)),
            "mdy" | "us" => (None, Some(DateOrder::Mdy)),
            "default" => (Some(DateStyle::Iso), Some(DateOrder::Mdy)),
            _ if lower.starts_with("postgres") => (Some(DateStyle::Postgres), None),
            _ if lower.starts_with("euro") => (None, Some(DateOrder::Dmy)),
            _ if lower.starts_with("noneuro") => (None, Some(DateOrder::Mdy)),
            _ => {
                let detail = format!("Unrecognized key word: \"{word}\".");
                return Err(invalid(NAME, value).with_detail(detail));
            }
        };
        if lower == "default" {
            // DEFAULT fills in what is not specified.
            (style, order) = (style.or(new_style), order.or(new_order));
            continue;
        }
        conflict |= new_style.is_some() && style.is_some_and(|style| Some(style) != new_style);
        conflict |= new_order.is_some() && order.is_some_and(|order| Some(order) != new_order);
        (style, order) = (new_style.or(style), new_order.or(order));
    }
    if conflict {
        return Err(invalid(NAME, value).with_detail("Conflicting \"datestyle\" specifications."));
    }
    let german = (style == Some(DateStyle::German)).then_some(DateOrder::Dmy);
    Ok((style.unwrap_or(now.0), order.or(german).unwrap_or(now.1)))
}

/// Prints `DateStyle` as SHOW does.
pub(super) fn print_date_style(style: DateStyle, order: DateOrder) -> String {
    let style = match style {
        DateStyle::Iso => "ISO",
        DateStyle::Sql => "SQL",
        DateStyle::Postgres => "Postgres",
        DateStyle::German => "German",
    };
    let order = match order {
        DateOrder::Mdy => "MDY",
        DateOrder::Dmy => "DMY",
        DateOrder::Ymd => "YMD",
    };
    format!("{style}, {order}")
}
