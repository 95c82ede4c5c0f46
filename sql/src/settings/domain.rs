//! Summaries of settings for the manual: values with type, unit and bounds, default, effect.

use crate::settings::quantity::{INTEGER_MAX, Units};
use crate::settings::{SPECS, SettingKind, SettingSpec, WITHOUT_EFFECT};

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
        SettingKind::KilobyteLimit => "size, in kB; -1: no limit".to_owned(),
        SettingKind::Word(words) => words.join(", "),
        SettingKind::Text => "text".to_owned(),
        SettingKind::Name => "name".to_owned(),
        SettingKind::Zone => "time zone".to_owned(),
        SettingKind::Dates => "style, order of fields".to_owned(),
        SettingKind::Names => "list of names".to_owned(),
        SettingKind::Encoding => "encoding".to_owned(),
        SettingKind::Only(_) => "the default only".to_owned(),
        SettingKind::Fixed => "read-only".to_owned(),
    }
}
