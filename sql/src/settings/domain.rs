//! Summaries of settings: values with type, unit and bounds, default and effect, for the manual;
//! units and values in them, for `pg_settings`.

use std::borrow::Cow;

use crate::settings::quantity::{
    INTEGER_MAX, PAGE_KILOBYTES, SIZE_UNITS, TIME_UNITS, Units, parse_quantity, parse_real,
};
use crate::settings::{SPECS, SettingDescription, SettingKind, SettingSpec, WITHOUT_EFFECT};

/// Summary of a setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingSummary {
    /// Canonical name.
    pub name: &'static str,
    /// Accepted values: type, unit and bounds.
    pub values: String,
    /// Built-in default, as SHOW prints it; empty if the server determines it.
    pub default: &'static str,
    /// Description in one sentence.
    pub description: &'static str,
    /// False for a setting of PostgreSQL that is stored and shown only.
    pub has_effect: bool,
}

/// Returns the summaries of all settings, by name.
pub fn summaries() -> impl Iterator<Item = SettingSummary> {
    SPECS.iter().map(|spec| SettingSummary {
        name: spec.name,
        values: values(spec),
        default: spec.default,
        description: spec.description,
        has_effect: spec.description != WITHOUT_EFFECT,
    })
}

impl SettingDescription<'_> {
    /// Returns the unit of numbers in `pg_settings`, if there is one.
    pub fn unit(&self) -> Option<&'static str> {
        self.domain.unit()
    }

    /// Returns a value as `pg_settings` shows it: a number in that unit, if there is one.
    pub fn in_unit<'v>(&self, value: &'v str) -> Cow<'v, str> {
        self.domain.in_unit(value)
    }
}

impl SettingKind {
    /// Returns the unit of a number without a unit.
    pub(super) fn unit(&self) -> Option<&'static str> {
        Some(match self {
            SettingKind::Quantity(units, ..) => units[0].0,
            SettingKind::Milliseconds
            | SettingKind::MillisecondLimit
            | SettingKind::RealMilliseconds(..) => TIME_UNITS[0].0,
            SettingKind::Kilobytes | SettingKind::KilobyteLimit => SIZE_UNITS[0].0,
            SettingKind::Pages(..) => "8kB",
            _ => return None,
        })
    }

    fn in_unit<'v>(&self, value: &'v str) -> Cow<'v, str> {
        let number = match self {
            SettingKind::Quantity(units, ..) => parse_quantity(value, units),
            SettingKind::Milliseconds | SettingKind::MillisecondLimit => {
                parse_quantity(value, TIME_UNITS)
            }
            SettingKind::Kilobytes | SettingKind::KilobyteLimit => {
                parse_quantity(value, SIZE_UNITS)
            }
            SettingKind::Pages(..) => {
                parse_quantity(value, SIZE_UNITS).map(|size| size / PAGE_KILOBYTES)
            }
            SettingKind::RealMilliseconds(..) => {
                let millis = parse_real(value, TIME_UNITS);
                return millis.map_or(Cow::Borrowed(value), |millis| millis.to_string().into());
            }
            _ => None,
        };
        number.map_or(Cow::Borrowed(value), |number| number.to_string().into())
    }
}

fn values(spec: &SettingSpec) -> String {
    let whole = |low: i64, high: i64| match high {
        INTEGER_MAX.. => format!("from {low}"),
        high => format!("{low} to {high}"),
    };
    let real = |low: f64, high: f64| match high {
        1e308.. => format!("from {low}"),
        high => format!("{low} to {high}"),
    };
    let with_unit = |units: Units, range: String| format!("{range}, in {}", units[0].0);
    match &spec.kind {
        SettingKind::Bool => "Boolean".to_owned(),
        SettingKind::Integer(low, high) => format!("integer, {}", whole(*low, *high)),
        SettingKind::Real(low, high) => format!("number, {}", real(*low, *high)),
        SettingKind::Quantity(units, low, high) => with_unit(units, whole(*low, *high)),
        SettingKind::RealMilliseconds(low, high) => format!("{}, in ms", real(*low, *high)),
        SettingKind::Pages(low, high) => format!("{}, in pages of 8 kB", whole(*low, *high)),
        SettingKind::Milliseconds => "time, in ms".to_owned(),
        SettingKind::Kilobytes => "size, from 64, in kB".to_owned(),
        SettingKind::MillisecondLimit => "time, in ms; -1: no limit".to_owned(),
        SettingKind::KilobyteLimit => "size, in kB; -1: no limit".to_owned(),
        SettingKind::Word(words) => words.join(", "),
        SettingKind::Text => "text".to_owned(),
        SettingKind::Name => "name".to_owned(),
        SettingKind::Zone => "time zone".to_owned(),
        SettingKind::Time => "timestamp with time zone, or empty".to_owned(),
        SettingKind::Dates => "style, order of fields".to_owned(),
        SettingKind::Names => "list of names".to_owned(),
        SettingKind::Encoding => "encoding".to_owned(),
        SettingKind::AuditClasses => "list of classes".to_owned(),
        SettingKind::Only(_) => "the default only".to_owned(),
        SettingKind::Fixed => "read-only".to_owned(),
    }
}
