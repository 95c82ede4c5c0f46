//! Results of PostgreSQL 15 for arithmetic and fields.

use super::*;
use crate::datatype::DataType;

struct DatetimeFixture {
    zone: TimeZone,
}

impl DatetimeFixture {
    fn reading(&self) -> ParseSettings<'_> {
        ParseSettings { zone: &self.zone, now: None, style: Style::default() }
    }

    fn ts(&self, text: &str) -> crate::Result<i64> {
        parse_timestamp(text, &self.reading())
    }

    fn tz(&self, text: &str) -> crate::Result<i64> {
        parse_timestamptz(text, &self.reading())
    }

    fn shown(&self, write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    fn answer(&self, operation: &str, a: &str, b: &str) -> crate::Result<String> {
        let ts = |value: i64| self.shown(|out| write_timestamp(value, Style::default(), out));
        let tz = |value: i64| {
            self.shown(|out| write_timestamptz(value, &self.zone, Style::default(), out))
        };
        let iv =
            |value: Interval| self.shown(|out| write_interval(value, IntervalStyle::Postgres, out));
        let field = |data_type| Field::parse(a, data_type);
        let extracted =
            |value: Option<crate::numeric::Numeric>| value.map_or("NULL".into(), |v| v.to_string());
        Ok(match operation {
            "ts+iv" => ts(timestamp_plus_interval(self.ts(a)?, span(b)?)?),
            "tz+iv" => tz(timestamptz_plus_interval(self.tz(a)?, span(b)?, &self.zone)?),
            "age" => iv(age(self.ts(a)?, self.ts(b)?)?),
            "ts-ts" => iv(timestamp_minus_timestamp(self.ts(a)?, self.ts(b)?)?),
            "extract ts" => {
                extracted(extract_from_timestamp(field(&DataType::Timestamp)?, self.ts(b)?)?)
            }
            "extract tz" => {
                let field = field(&DataType::Timestamptz)?;
                extracted(extract_from_timestamptz(field, self.tz(b)?, &self.zone)?)
            }
            "extract iv" => {
                extracted(extract_from_interval(field(&DataType::Interval)?, span(b)?)?)
            }
            "extract date" => {
                let date = parse_date(b, &self.reading())?;
                extracted(extract_from_date(field(&DataType::Date)?, date)?)
            }
            "extract time" => {
                let time = parse_time(b, &self.reading())?;
                extracted(extract_from_time(field(&DataType::Time)?, time)?)
            }
            "trunc ts" => ts(date_trunc_timestamp(field(&DataType::Timestamp)?, self.ts(b)?)?),
            "trunc tz" => {
                let field = field(&DataType::Timestamptz)?;
                tz(date_trunc_timestamptz(field, self.tz(b)?, &self.zone)?)
            }
            "trunc iv" => iv(date_trunc_interval(field(&DataType::Interval)?, span(b)?)?),
            "iv*" => iv(span(a)?.checked_mul(b.parse().unwrap())?),
            "iv/" => iv(span(a)?.checked_div(b.parse().unwrap())?),
            "justify_days" => iv(span(a)?.justify_days()?),
            "justify_hours" => iv(span(a)?.justify_hours()?),
            "justify_interval" => iv(span(a)?.justify_interval()?),
            "iv=" => match span(a)?.cmp(&parse_interval(b, IntervalStyle::Postgres, None)?) {
                std::cmp::Ordering::Less => "<".into(),
                std::cmp::Ordering::Equal => "=".into(),
                std::cmp::Ordering::Greater => ">".into(),
            },
            other => panic!("no operation {other}"),
        })
    }
}

fn span(text: &str) -> crate::Result<Interval> {
    parse_interval(text, IntervalStyle::Postgres, None)
}

#[test]
fn datetime_arithmetic_matches_postgresql() {
    let bench = DatetimeFixture { zone: TimeZone::parse_setting("europe/berlin").unwrap() };
    let mut wrong = Vec::new();
    for line in include_str!("golden.txt").lines().filter(|line| !line.starts_with('#')) {
        let [operation, a, b, answer] = line.splitn(4, '|').collect::<Vec<_>>()[..] else {
            panic!("bad line {line:?}");
        };
        let got = bench
            .answer(operation, a, b)
            .unwrap_or_else(|error| format!("{} {}", error.sqlstate, error.message));
        if got != answer {
            wrong.push(format!("{operation}: {a}, {b}\n  PostgreSQL {answer}\n  here       {got}"));
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn time_zone_offset_signs_match_postgresql() {
    let at_noon = |zone: TimeZone| zone.offset_at(0);
    assert_eq!(at_noon(TimeZone::parse("+02").unwrap()), -7200);
    assert_eq!(at_noon(TimeZone::parse_setting("+02").unwrap()), 7200);
    assert_eq!(at_noon(TimeZone::parse_setting("-3.5").unwrap()), -12_600);
    assert_eq!(at_noon(TimeZone::parse("PST").unwrap()), -28_800);
    assert_eq!(at_noon(TimeZone::parse("america/new_york").unwrap()), -18_000);
    assert_eq!(at_noon(TimeZone::parse("UTC+3").unwrap()), -10_800);
    assert_eq!(TimeZone::parse_setting("america/new_york").unwrap().name(), "America/New_York");
    assert_eq!(TimeZone::parse_setting("-7").unwrap().name(), "<-07>+07");
    assert_eq!(TimeZone::parse("Nowhere/Land").unwrap_err().sqlstate, "22023");
    assert_eq!(TimeZone::default().name(), "UTC");
}

#[test]
fn daylight_saving_time_applies_in_far_future() {
    let zone = TimeZone::parse("Europe/Berlin").unwrap();
    for year in [2024, 12_024] {
        for (month, offset) in [(1, 3600), (7, 7200)] {
            let local =
                timestamp_from_civil(&CivilTime { year, month, day: 15, ..CivilTime::default() });
            assert_eq!(zone.offset_of_local(local.unwrap()), offset, "{year}-{month}");
            let instant = local_to_timestamptz(local.unwrap(), &zone).unwrap();
            assert_eq!(zone.offset_at(instant), offset, "{year}-{month}");
        }
    }
}

#[test]
fn make_date_rejects_invalid_fields() {
    assert_eq!(make_date(2000, 1, 1).unwrap(), 0);
    assert_eq!(make_date(-1, 12, 31).unwrap() + 1, make_date(1, 1, 1).unwrap());
    assert!(make_date(0, 1, 1).is_err() && make_date(2001, 2, 29).is_err());
    assert_eq!(make_time(24, 0, 0.0).unwrap(), MICROS_PER_DAY);
    assert!(make_time(24, 0, 1.0).is_none());
    assert_eq!(make_timestamp((2000, 1, 1), || Ok(1_500_000)).unwrap(), 1_500_000);
}
