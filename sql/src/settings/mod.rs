//! Session settings: the parameters of SET, SHOW and the start-up message.
//!
//! A setting is accepted only with values that are implemented; others are rejected with 22023 or
//! 0A000, never ignored. Values are stored in the form that SHOW prints.

mod modes;
mod implemented;
pub mod domain;
mod parsed;
mod quantity;
mod time_style;
mod value_error;
mod roles;

pub(crate) use modes::TransactionModeSet;
pub(crate) use parsed::ParsedSettings;
pub(crate) use quantity::parse_bytes;
pub use quantity::parse_time;

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock, OnceLock};
use std::time::Duration;

use store::TimelineRead;
use store::options::{AdmissionOptions, CoprocessorLimits};
use types::datetime::IntervalStyle;
use types::encoding::Encoding;
use types::text::TextStyle;

use crate::ast::{OptionValue, SetVariable};
use crate::audit;
use crate::catalog::Catalog;
use crate::catalog::access::role::SessionRoles;
use crate::catalog::name::SearchPath;
use crate::error::{Error, Result, sqlstate};
use crate::parser::quoted;
use crate::settings::implemented::{LEVELS, OWN};
use crate::settings::quantity::{
    INTEGER_MAX, PAGE_KILOBYTES, SECOND_UNITS, SIZE_UNITS, TIME_UNITS, Units, parse_quantity,
    parse_real, print_millis, print_quantity, print_time, unread_quantity, whole_quantity,
};
use crate::settings::time_style::{print_date_style, read_date_style, read_time, read_zone};
use crate::settings::value_error::{invalid, outside, unknown};
use crate::statement_log::LoggedStatements;

/// Specification of one setting.
#[derive(Clone)]
struct SettingSpec {
    name: &'static str,
    default: &'static str,
    kind: SettingKind,
    /// True if changes are reported to the client (ParameterStatus).
    reported: bool,
    description: &'static str,
}

/// Value domain of a setting.
#[derive(Clone)]
enum SettingKind {
    /// Boolean, in all spellings of PostgreSQL.
    Bool,
    /// Integer within bounds.
    Integer(i64, i64),
    /// Floating-point number within bounds.
    Real(f64, f64),
    /// Number with one of these units, within bounds in the first unit.
    Quantity(Units, i64, i64),
    /// Fractional time; numbers without a unit, and the bounds, are milliseconds.
    RealMilliseconds(f64, f64),
    /// Size; numbers without a unit, and the bounds, are pages of 8 KiB.
    Pages(i64, i64),
    /// Time, stored in milliseconds.
    Milliseconds,
    /// Time, stored in milliseconds, or -1: no limit.
    MillisecondLimit,
    /// Size, stored in KiB.
    Kilobytes,
    /// Size, stored in KiB, or -1: no limit.
    KilobyteLimit,
    /// One of these words.
    Word(&'static [&'static str]),
    /// Any text.
    Text,
    /// Name; characters other than printable ASCII are replaced by `?`.
    Name,
    /// Time zone.
    Zone,
    /// Point in time, or empty.
    Time,
    /// Date style and field order.
    Dates,
    /// List of names, separated by commas.
    Names,
    /// Name of a supported encoding.
    Encoding,
    /// List of classes of audited statements.
    AuditClasses,
    /// Only these spellings, which all mean the default.
    Only(&'static [&'static str]),
    /// Read-only.
    Fixed,
}

/// Description of settings that are stored and shown only.
const WITHOUT_EFFECT: &str = "Accepted for compatibility with PostgreSQL; has no effect.";

/// Settings whose values are roles of the catalog ([`Settings::set_with`]).
const ROLE_SETTINGS: [&str; 2] = ["role", "session_authorization"];

/// Maximum length of a name in bytes.
const NAME_BYTES_MAX: usize = 63;

const fn spec(
    name: &'static str,
    default: &'static str,
    kind: SettingKind,
    reported: bool,
    description: &'static str,
) -> SettingSpec {
    SettingSpec { name, default, kind, reported, description }
}

/// Specifications sorted by name in lower case: those of [`OWN`], and those of PostgreSQL that
/// are accepted and shown without effect.
static SPECS: LazyLock<Vec<SettingSpec>> = LazyLock::new(|| {
    let lines = include_str!("without_effect.txt").lines();
    let others = lines.filter(|line| !line.starts_with('#')).filter_map(without_effect);
    let mut specs: Vec<SettingSpec> = OWN.to_vec();
    specs.extend(others);
    specs.sort_by_key(|spec| spec.name.to_ascii_lowercase());
    specs
});

/// Positions in [`SPECS`] of the settings that are reported to clients.
static REPORTED: LazyLock<Vec<usize>> =
    LazyLock::new(|| (0..SPECS.len()).filter(|index| SPECS[*index].reported).collect());

/// Parses a line of the file of settings without effect.
fn without_effect(line: &'static str) -> Option<SettingSpec> {
    let mut parts = line.split('|');
    let (name, kind, default) = (parts.next()?, parts.next()?, parts.next()?);
    let values = parts.next()?;
    let (low, high) = values.split_once(',').unwrap_or_default();
    let whole = |text: &str| text.parse::<i64>().unwrap_or_default();
    let real = |text: &str| text.parse::<f64>().unwrap_or_default();
    let kind = match kind {
        "bool" => SettingKind::Bool,
        "enum" => SettingKind::Word(values.split(',').collect::<Vec<_>>().leak()),
        "integer" => SettingKind::Integer(whole(low), whole(high)),
        "real" => SettingKind::Real(real(low), real(high)),
        "real milliseconds" => SettingKind::RealMilliseconds(real(low), real(high)),
        "milliseconds" => SettingKind::Quantity(TIME_UNITS, whole(low), whole(high)),
        "seconds" => SettingKind::Quantity(SECOND_UNITS, whole(low), whole(high)),
        "kilobytes" => SettingKind::Quantity(SIZE_UNITS, whole(low), whole(high)),
        "pages" => SettingKind::Pages(whole(low), whole(high)),
        _ => SettingKind::Text,
    };
    let draft = spec(name, default, kind, false, WITHOUT_EFFECT);
    // In the form that SHOW prints.
    let default = canonical(&draft, default).map_or(default, |shown| shown.leak());
    Some(SettingSpec { default, ..draft })
}

/// Positions in [`SPECS`] of the transaction modes.
static MODES: LazyLock<[usize; 3]> = LazyLock::new(|| {
    ["transaction_isolation", "transaction_read_only", "transaction_deferrable"]
        .map(|name| position(name).expect("it is in SPECS"))
});

/// Description of a setting, for `pg_settings`.
pub struct SettingDescription<'s> {
    /// Canonical name.
    pub name: &'static str,
    /// Value, as SHOW prints it.
    pub value: &'s str,
    /// Description in one sentence.
    pub about: &'static str,
    /// Built-in default.
    pub default: &'static str,
    /// Value after RESET.
    pub initial: &'s str,
    /// True if the value is the default.
    pub is_default: bool,
    /// True if the setting is read-only.
    pub is_fixed: bool,
    /// `bool`, `integer`, `enum` or `string`.
    pub kind: &'static str,
    /// Values of an `enum`.
    pub words: Option<&'static [&'static str]>,
    domain: &'static SettingKind,
}

/// Settings of a session and modes of its transaction. Clones share the values until one is
/// changed: a rollback restores a clone, and each statement has one.
#[derive(Clone)]
pub struct Settings {
    shared: Arc<SettingValues>,
    /// Modes of the current transaction, in the order of [`MODES`]; `None` after the setting was
    /// changed.
    modes: [Option<&'static str>; 3],
}

/// Values of all settings.
#[derive(Clone)]
struct SettingValues {
    /// Values in the order of [`SPECS`].
    values: Arc<Vec<Arc<str>>>,
    /// Values that RESET restores: the defaults, or the client's start-up parameters.
    initial: Arc<InitialValues>,
    /// Custom settings, whose names contain a dot, by name in lower case.
    custom: BTreeMap<String, Arc<str>>,
    style: TextStyle,
    /// Roles of the session.
    roles: Arc<SessionRoles>,
    /// Schema of the session's temporary tables; empty without a session.
    temp_schema: Arc<str>,
    logged: LoggedStatements,
    /// Parsed values, computed at the first use after a change: RESET ALL sets some hundred
    /// values.
    parsed: OnceLock<ParsedSettings>,
}

/// Values that RESET restores.
#[derive(Clone)]
struct InitialValues {
    values: Arc<Vec<Arc<str>>>,
    custom: BTreeMap<String, Arc<str>>,
}

impl Settings {
    /// Sets the schema for temporary objects, which need not exist yet.
    pub fn set_temp_schema(&mut self, name: &str) {
        Arc::make_mut(&mut self.shared).temp_schema = Arc::from(name);
    }

    /// Returns the schema for temporary objects.
    pub fn temp_schema(&self) -> &str {
        &self.shared.temp_schema
    }

    /// Returns the search path for unqualified names.
    pub fn search_path(&self) -> SearchPath {
        let current = &self.roles().current;
        let path = SearchPath::parse(self.value("search_path"), &current.name).unwrap_or_default();
        let path = path
            .with_role(current.number)
            .with_as_of(self.parsed().as_of)
            .with_row_security(self.parsed().row_security)
            .with_ignored_case(self.parsed().phoenix_compatibility);
        match self.temp_schema() {
            "" => path,
            temp => path.with_temp(temp),
        }
    }

    /// Returns the defaults of a session of the bootstrap superuser, with the server's admission
    /// options and coprocessor limits.
    pub fn new(admission: AdmissionOptions, coprocessors: &CoprocessorLimits) -> Settings {
        let values: Arc<Vec<Arc<str>>> =
            Arc::new(SPECS.iter().map(|spec| Arc::from(spec.default)).collect());
        let initial = InitialValues { values: Arc::clone(&values), custom: BTreeMap::new() };
        let shared = SettingValues {
            values,
            initial: Arc::new(initial),
            custom: BTreeMap::new(),
            style: TextStyle::default(),
            roles: Arc::default(),
            temp_schema: Arc::from(""),
            logged: LoggedStatements::None,
            parsed: OnceLock::new(),
        };
        let mut settings = Settings { shared: Arc::new(shared), modes: [None; 3] };
        let AdmissionOptions { handlers } = admission;
        let of_server = [
            ("coprocessor_failures_max", coprocessors.failures_max.to_string()),
            ("coprocessor_time_limit", print_time(coprocessors.time.unwrap_or_default())),
            ("handlers", handlers.to_string()),
        ];
        for (name, value) in of_server {
            settings.set_of_server(name, &value);
        }
        settings
    }

    /// Sets a setting from the server's options, including those that clients cannot change.
    pub fn set_of_server(&mut self, name: &str, value: &str) {
        let index = position(name).expect("the server names settings of SPECS");
        let shared = Arc::make_mut(&mut self.shared);
        shared.put(index, value);
        shared.logged = LoggedStatements::named(value_of(&shared.values, "log_statement"));
        self.keep_initial(name);
    }

    /// Sets a setting from a start-up parameter, which becomes the value that RESET restores.
    ///
    /// # Errors
    ///
    /// See [`Settings::set_with`].
    pub fn set_initial(&mut self, catalog: &Catalog, name: &str, value: &str) -> Result<()> {
        self.set_with(catalog, name, Some(value))?;
        self.keep_initial(name);
        Ok(())
    }

    pub(in crate::settings) fn keep_initial(&mut self, name: &str) {
        let SettingValues { values, initial, custom, .. } = Arc::make_mut(&mut self.shared);
        let initial = Arc::make_mut(initial);
        let lower = name.to_ascii_lowercase();
        match (position(name), custom.get(&lower)) {
            (Some(index), _) => {
                Arc::make_mut(&mut initial.values)[index] = Arc::clone(&values[index]);
            }
            (None, Some(value)) => {
                initial.custom.insert(lower, Arc::clone(value));
            }
            (None, None) => {}
        }
    }

    /// Returns the canonical name of a setting, and its value as SHOW prints it.
    ///
    /// # Errors
    ///
    /// 42704 if there is no such setting.
    pub fn show(&self, name: &str) -> Result<(&str, &str)> {
        if let Some(index) = position(name) {
            return Ok((SPECS[index].name, self.value_at(index)));
        }
        let custom = self.shared.custom.get_key_value(&name.to_ascii_lowercase());
        custom.map(|(name, value)| (name.as_str(), &**value)).ok_or_else(|| unknown(name))
    }

    /// Records the modes of the current transaction: isolation, read only, deferrable.
    pub fn show_transaction(&mut self, modes: [&'static str; 3]) {
        self.modes = modes.map(Some);
    }

    /// Sets what `last_read_stale` and `last_read_staleness` show. A rollback does not restore
    /// them: the session calls this before each statement.
    pub fn show_last_read(&mut self, read: TimelineRead) {
        let stale = if read.is_stale() { "on" } else { "off" };
        let staleness = print_time(whole_millis(read.staleness));
        for (name, value) in [("last_read_stale", stale), ("last_read_staleness", &*staleness)] {
            let index = position(name).expect("it is in SPECS");
            if &*self.shared.values[index] != value {
                Arc::make_mut(&mut self.shared).put(index, value);
            }
        }
    }

    /// Returns whether a setting is a mode of the current transaction.
    pub fn is_transaction_mode(name: &str) -> bool {
        position(name).is_some_and(|index| MODES.contains(&index))
    }

    /// Returns the value of the setting at a position of [`SPECS`].
    fn value_at(&self, index: usize) -> &str {
        let mode = MODES.iter().position(|mode| *mode == index);
        let shown = mode.and_then(|mode| self.modes[mode]);
        shown.unwrap_or(&self.shared.values[index])
    }

    /// Returns name, value and description of all settings, by name.
    pub fn show_all(&self) -> impl Iterator<Item = (&'static str, &str, &'static str)> {
        let specs = SPECS.iter().enumerate();
        specs.map(|(index, spec)| (spec.name, self.value_at(index), spec.description))
    }

    /// Returns the descriptions of all settings for `pg_settings`, by name.
    pub fn describe(&self) -> impl Iterator<Item = SettingDescription<'_>> {
        let pairs = SPECS.iter().enumerate().zip(self.shared.initial.values.iter());
        pairs.map(|((index, spec), initial)| SettingDescription {
            name: spec.name,
            value: self.value_at(index),
            about: spec.description,
            default: spec.default,
            initial,
            domain: &spec.kind,
            is_default: self.value_at(index) == spec.default,
            is_fixed: matches!(spec.kind, SettingKind::Fixed),
            kind: match spec.kind {
                SettingKind::Bool => "bool",
                SettingKind::Real(..) | SettingKind::RealMilliseconds(..) => "real",
                SettingKind::Integer(..) => "integer",
                _ if spec.kind.unit().is_some() => "integer",
                SettingKind::Word(_) => "enum",
                _ => "string",
            },
            words: match spec.kind {
                SettingKind::Word(words) => Some(words),
                _ => None,
            },
        })
    }

    /// Returns the settings that are reported to clients.
    pub fn reported(&self) -> impl Iterator<Item = (&'static str, &Arc<str>)> {
        REPORTED.iter().map(|index| (SPECS[*index].name, &self.shared.values[*index]))
    }

    /// Sets a setting; `None` restores its initial value.
    ///
    /// # Errors
    ///
    /// 42704 for an unknown name, 22023 for an invalid value, 55P02 for a read-only setting,
    /// 0A000 for a value of PostgreSQL that bennu does not support.
    pub fn set(&mut self, name: &str, value: Option<&str>) -> Result<()> {
        let Some(index) = position(name) else { return self.set_custom(name, value) };
        let spec = &SPECS[index];
        if matches!(spec.kind, SettingKind::Fixed) && value.is_none() {
            return Ok(());
        }
        let initial = Arc::clone(&self.shared.initial.values[index]);
        let value = value.unwrap_or(&initial);
        if ROLE_SETTINGS.contains(&spec.name) {
            bail!(INTERNAL_ERROR: "setting \"{}\" needs the catalog", spec.name);
        }
        let SettingValues { style, logged, .. } = Arc::make_mut(&mut self.shared);
        let canonical = match spec.kind {
            SettingKind::Zone => {
                style.time_zone = read_zone(value)?;
                style.time_zone.name().to_owned()
            }
            SettingKind::Time => read_time(value, style).map_err(|_| invalid(spec.name, value))?,
            SettingKind::Dates => {
                let style = &mut style.formats.style;
                (style.date, style.order) = read_date_style(value, (style.date, style.order))?;
                print_date_style(style.date, style.order)
            }
            SettingKind::Word(_) => canonical(spec, value).map_err(|mut error| {
                // PostgreSQL's message has the name as it was written.
                error.message = error.message.replacen(spec.name, name, 1);
                error
            })?,
            _ => canonical(spec, value)?,
        };
        match spec.name {
            "bytea_output" => style.formats.escape_bytea = canonical == "escape",
            "IntervalStyle" => {
                style.formats.style.interval = match &*canonical {
                    "postgres_verbose" => IntervalStyle::PostgresVerbose,
                    "sql_standard" => IntervalStyle::SqlStandard,
                    "iso_8601" => IntervalStyle::Iso8601,
                    _ => IntervalStyle::Postgres,
                };
            }
            "client_encoding" => {
                style.encoding = Encoding::by_name(&canonical).unwrap_or_default();
            }
            "log_statement" => *logged = LoggedStatements::named(&canonical),
            "extra_float_digits" => {
                style.formats.float_digits = canonical.parse().unwrap_or(1);
            }
            _ => {}
        }
        Arc::make_mut(&mut self.shared).put(index, &canonical);
        if let Some(mode) = MODES.iter().position(|mode| *mode == index) {
            self.modes[mode] = None;
        }
        Ok(())
    }

    /// Sets a custom setting and creates it if necessary; its initial value is the empty text or
    /// the client's start-up parameter.
    fn set_custom(&mut self, name: &str, value: Option<&str>) -> Result<()> {
        let lower = name.to_ascii_lowercase();
        if !lower.contains('.') {
            return Err(unknown(name));
        }
        if lower.starts_with(audit::PREFIX) {
            bail!(INVALID_NAME: "invalid configuration parameter name \"{name}\"";
                detail "\"pgaudit\" is a reserved prefix.");
        }
        let is_simple = |part: &str| {
            part.starts_with(|c: char| c.is_alphabetic() || c == '_')
                && part.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '$')
        };
        if !lower.split('.').all(is_simple) {
            bail!(INVALID_NAME: "invalid configuration parameter name \"{name}\"";
                detail "Custom parameter names must be two or more simple identifiers separated by dots.");
        }
        let value = match value {
            Some(value) => Arc::from(value),
            None => self.initial_custom(&lower),
        };
        Arc::make_mut(&mut self.shared).custom.insert(lower, value);
        Ok(())
    }

    fn initial_custom(&self, lower: &str) -> Arc<str> {
        self.shared.initial.custom.get(lower).map_or_else(|| Arc::from(""), Arc::clone)
    }

    /// Restores the initial value of every setting that is not read-only, except the roles.
    ///
    /// # Errors
    ///
    /// None for values that were accepted before.
    pub fn reset_all(&mut self) -> Result<()> {
        let names: Vec<String> = self.shared.custom.keys().cloned().collect();
        for name in names {
            self.set_custom(&name, None)?;
        }
        let is_reset = |spec: &&SettingSpec| {
            !matches!(spec.kind, SettingKind::Fixed) && !ROLE_SETTINGS.contains(&spec.name)
        };
        let mut specs = SPECS.iter().filter(is_reset);
        specs.try_for_each(|spec| self.set(spec.name, None))
    }

    /// Returns which statements are logged: `log_statement`.
    pub fn logged_statements(&self) -> LoggedStatements {
        self.shared.logged
    }

    /// Returns the text format of values.
    pub fn style(&self) -> &TextStyle {
        &self.shared.style
    }

    /// Returns the parsed values that statements and transactions read.
    pub(crate) fn parsed(&self) -> &ParsedSettings {
        let SettingValues { parsed, values, .. } = &*self.shared;
        parsed.get_or_init(|| ParsedSettings::of(values))
    }

    /// Returns whether the value of a setting is `on`.
    pub fn is_on(&self, name: &str) -> bool {
        self.value(name) == "on"
    }

    /// Returns the value of an existing setting.
    pub fn value(&self, name: &str) -> &str {
        self.value_at(position(name).expect("callers name settings of SPECS"))
    }

    /// Returns the truncated value if a value is too long for a setting of kind name.
    pub fn truncated<'v>(name: &str, value: &'v str) -> Option<&'v str> {
        let index = position(name)?;
        let is_name = matches!(SPECS[index].kind, SettingKind::Name);
        (is_name && value.len() > NAME_BYTES_MAX).then(|| name_cut(value))
    }

    /// Returns the value text of a SET statement; `None` for DEFAULT.
    pub fn given(set: &SetVariable) -> Option<String> {
        let text = |value: &OptionValue| match Settings::is_list(&set.name.value) {
            true => quoted(&value.text()),
            false => value.text(),
        };
        let values = set.value.as_ref()?;
        Some(values.iter().map(text).collect::<Vec<_>>().join(", "))
    }

    /// Returns whether a setting is a list of names.
    pub fn is_list(name: &str) -> bool {
        position(name).is_some_and(|index| matches!(SPECS[index].kind, SettingKind::Names))
    }

    /// Returns whether messages of a severity are sent to the client.
    pub fn wants_message(&self, severity: &str) -> bool {
        let rank = |level: &str| LEVELS.iter().position(|known| known.eq_ignore_ascii_case(level));
        match severity {
            "INFO" => true,
            "DEBUG" => rank("debug1") >= rank(self.value("client_min_messages")),
            severity => rank(severity) >= rank(self.value("client_min_messages")),
        }
    }
}

impl SettingValues {
    /// Sets the value at a position of [`SPECS`].
    fn put(&mut self, index: usize, value: &str) {
        Arc::make_mut(&mut self.values)[index] = Arc::from(value);
        self.parsed = OnceLock::new();
    }
}

/// Returns a time rounded up to milliseconds: a stale read is never shown as 0.
fn whole_millis(time: Duration) -> Duration {
    Duration::from_millis(u64::try_from(time.as_micros().div_ceil(1_000)).unwrap_or(u64::MAX))
}

/// Returns the value of an existing setting.
fn value_of<'v>(values: &'v [Arc<str>], name: &str) -> &'v Arc<str> {
    &values[position(name).expect("callers name settings of SPECS")]
}

/// Truncates a text to the maximum length of a name.
fn name_cut(value: &str) -> &str {
    &value[..value.floor_char_boundary(NAME_BYTES_MAX)]
}

/// Parses the name of an encoding, in any spelling.
fn read_encoding(value: &str) -> Result<String> {
    const NAME: &str = "client_encoding";
    // Accepted unchanged for old clients, as in PostgreSQL.
    if value == "UNICODE" {
        return Ok(value.to_owned());
    }
    let encoding = Encoding::by_name(value).ok_or_else(|| invalid(NAME, value))?;
    if encoding.is_supported() {
        return Ok(encoding.name.to_owned());
    }
    let detail = format!("Conversion between {} and UTF8 is not supported.", encoding.name);
    let hint = "Supported encodings are UTF8, SQL_ASCII, LATIN1 to LATIN10, WIN866 to WIN1258, \
                KOI8R, KOI8U, ISO_8859_5 to ISO_8859_8, EUC_CN, EUC_JP, EUC_KR, EUC_TW, BIG5, GBK, \
                SJIS and UHC.";
    let error = Error { sqlstate: sqlstate::FEATURE_NOT_SUPPORTED.into(), ..invalid(NAME, value) };
    Err(error.with_detail(detail).with_hint(hint))
}

/// Hash table of positions in [`SPECS`], by [`name_hash`], with linear probing.
static SLOTS: LazyLock<Vec<Option<u16>>> = LazyLock::new(|| {
    let mut slots = vec![None; (4 * SPECS.len()).next_power_of_two()];
    for (index, spec) in SPECS.iter().enumerate() {
        let mut slot = name_hash(spec.name) as usize & (slots.len() - 1);
        while slots[slot].is_some() {
            slot = (slot + 1) & (slots.len() - 1);
        }
        slots[slot] = u16::try_from(index).ok();
    }
    slots
});

/// Returns the position of a setting in [`SPECS`]. Each statement calls it about two dozen times.
fn position(name: &str) -> Option<usize> {
    let mut slot = name_hash(name) as usize;
    loop {
        slot &= SLOTS.len() - 1;
        let index = usize::from(SLOTS[slot]?);
        let found = SPECS[index].name;
        // Callers in the server usually pass the canonical name.
        if found == name || found.eq_ignore_ascii_case(name) {
            return Some(index);
        }
        slot += 1;
    }
}

/// Hashes a name case-insensitively: eight bytes at a time, each without its case bit.
fn name_hash(name: &str) -> u64 {
    let mix = |hash: u64, bytes: u64| (hash ^ bytes).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let (words, rest) = name.as_bytes().as_chunks::<8>();
    let words = words.iter().map(|word| u64::from_le_bytes(*word));
    let rest = rest.iter().fold(0, |all, &byte| all << 8 | u64::from(byte));
    let hash = words.chain([rest]).fold(name.len() as u64, |hash, bytes| {
        mix(hash.rotate_left(29), bytes | 0x2020_2020_2020_2020)
    });
    hash >> 40
}

/// Converts a value to the form that SHOW prints.
#[expect(clippy::too_many_lines, reason = "one arm for each kind")]
fn canonical(spec: &SettingSpec, value: &str) -> Result<String> {
    let bad = || invalid(spec.name, value);
    match &spec.kind {
        SettingKind::Bool => {
            parse_bool(value).map(|on| if on { "on" } else { "off" }.to_owned()).ok_or_else(|| {
                err!(INVALID_PARAMETER_VALUE: "parameter \"{}\" requires a Boolean value", spec.name)
            })
        }
        SettingKind::Integer(low, high) => {
            let number: i64 = value.trim().parse().map_err(|_| bad())?;
            if (*low..=*high).contains(&number) {
                return Ok(number.to_string());
            }
            Err(outside(spec.name, &number.to_string(), (&low.to_string(), &high.to_string())))
        }
        SettingKind::Real(low, high) => {
            let number: f64 = value.trim().parse().map_err(|_| bad())?;
            if number.is_nan() {
                return Err(bad());
            }
            if (*low..=*high).contains(&number) {
                return Ok(number.to_string());
            }
            Err(outside(spec.name, &number.to_string(), (&low.to_string(), &high.to_string())))
        }
        SettingKind::RealMilliseconds(low, high) => {
            let unread = || unread_quantity(spec.name, value, TIME_UNITS);
            let millis = parse_real(value, TIME_UNITS).ok_or_else(unread)?;
            if (*low..=*high).contains(&millis) {
                return Ok(print_millis(millis));
            }
            let bounds = (&*low.to_string(), &*high.to_string());
            Err(outside(spec.name, &format!("{millis} ms"), bounds))
        }
        SettingKind::Quantity(units, low, high) => {
            whole_quantity((spec.name, value), units, (*low, *high))
        }
        SettingKind::Pages(low, high) => {
            let is_bare = value.trim().bytes().all(|byte| byte.is_ascii_digit());
            let quantity = parse_quantity(value, SIZE_UNITS).ok_or_else(bad)?;
            let pages = if is_bare { quantity } else { quantity / PAGE_KILOBYTES };
            if (*low..=*high).contains(&pages) {
                return Ok(print_quantity(pages.saturating_mul(PAGE_KILOBYTES), SIZE_UNITS));
            }
            let bounds = (&*format!("{low}"), &*format!("{high}"));
            Err(outside(spec.name, &format!("{pages} 8kB"), bounds))
        }
        SettingKind::Milliseconds => {
            whole_quantity((spec.name, value), TIME_UNITS, (0, INTEGER_MAX))
        }
        SettingKind::KilobyteLimit | SettingKind::MillisecondLimit if value.trim() == "-1" => {
            Ok("-1".to_owned())
        }
        SettingKind::MillisecondLimit => {
            whole_quantity((spec.name, value), TIME_UNITS, (-1, INTEGER_MAX))
        }
        SettingKind::KilobyteLimit => {
            whole_quantity((spec.name, value), SIZE_UNITS, (-1, INTEGER_MAX))
        }
        SettingKind::Names => SearchPath::parse(value, "").map(|_| value.to_owned()),
        SettingKind::Kilobytes => whole_quantity((spec.name, value), SIZE_UNITS, (64, INTEGER_MAX)),
        SettingKind::Word(words) => words
            .iter()
            .find(|word| {
                let debug = spec.name == "client_min_messages" && **word == "debug2";
                word.eq_ignore_ascii_case(value) || (debug && value.eq_ignore_ascii_case("debug"))
            })
            .map(|word| (*word).to_owned())
            .ok_or_else(|| bad().with_hint(format!("Available values: {}.", words.join(", ")))),
        SettingKind::Name => {
            let shown = |byte| if matches!(byte, b' '..=b'~') { char::from(byte) } else { '?' };
            Ok(name_cut(value).bytes().map(shown).collect())
        }
        SettingKind::Text | SettingKind::Zone | SettingKind::Dates | SettingKind::Time => {
            Ok(value.to_owned())
        }
        SettingKind::Encoding => read_encoding(value),
        SettingKind::AuditClasses => match audit::parse_classes(value) {
            Some(_) => Ok(value.to_owned()),
            None => Err(bad().with_hint(audit::CLASSES_HINT)),
        },
        SettingKind::Only(spellings) => {
            let same = spellings.iter().any(|known| known.eq_ignore_ascii_case(value));
            if same || spec.default.eq_ignore_ascii_case(value) {
                return Ok(spec.default.to_owned());
            }
            Err(Error::not_supported(
                format!("{} = \"{value}\"", spec.name),
                format!("The only supported value is \"{}\".", spec.default),
            ))
        }
        SettingKind::Fixed if value == spec.default && !value.is_empty() => Ok(value.to_owned()),
        SettingKind::Fixed => {
            bail!(CANT_CHANGE_RUNTIME_PARAM: "parameter \"{}\" cannot be changed", spec.name)
        }
    }
}

/// Parses a boolean in any of PostgreSQL's spellings.
fn parse_bool(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "on" | "true" | "t" | "yes" | "y" | "1" => Some(true),
        "off" | "of" | "false" | "f" | "no" | "n" | "0" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> Settings {
        Settings::new(AdmissionOptions::default(), &CoprocessorLimits::default())
    }

    #[test]
    fn setting_specs_are_sorted_with_valid_defaults() {
        let names: Vec<_> = SPECS.iter().map(|spec| spec.name.to_ascii_lowercase()).collect();
        assert!(names.is_sorted());
        for spec in SPECS.iter() {
            let of_server = matches!(spec.kind, SettingKind::Fixed) && spec.default.is_empty();
            assert!(of_server || canonical(spec, spec.default).is_ok(), "{}", spec.name);
        }
    }

    #[test]
    fn quantities_print_in_their_largest_unit() {
        let mut settings = settings();
        settings.set("statement_timeout", Some("1500")).unwrap();
        assert_eq!(settings.show("statement_timeout").unwrap().1, "1500ms");
        settings.set("statement_timeout", Some("120 s")).unwrap();
        assert_eq!(settings.value("statement_timeout"), "2min");
        assert_eq!(settings.parsed().statement_timeout, Some(Duration::from_secs(120)));
        settings.set("statement_timeout", Some("0")).unwrap();
        assert_eq!(settings.parsed().statement_timeout, None);
        settings.set("work_mem", Some("1MB")).unwrap();
        assert_eq!(settings.parsed().work_mem_bytes, 1 << 20);
        assert_eq!(settings.parsed().temp_file_limit, None);
        settings.set("temp_file_limit", Some("3MB")).unwrap();
        assert_eq!(settings.parsed().temp_file_limit, Some(3 << 20));
        settings.set("temp_file_limit", Some("-1")).unwrap();
        assert_eq!(settings.parsed().temp_file_limit, None);
        assert_eq!(settings.set("temp_file_limit", Some("-2")).unwrap_err().sqlstate, "22023");
    }

    #[test]
    fn byte_sizes_parse_with_and_without_unit() {
        assert_eq!(parse_bytes("1000"), Some(1_000));
        assert_eq!(parse_bytes(" 2 kB "), Some(2_048));
        assert_eq!(parse_bytes("3GB"), Some(3 << 30));
        for bad in ["", "MB", "1.5MB", "-1", "5 parsec", "99999999999TB"] {
            assert_eq!(parse_bytes(bad), None, "{bad}");
        }
    }

    #[test]
    fn server_settings_cannot_be_changed() {
        let time = Some(Duration::from_millis(1_500));
        let limits = CoprocessorLimits { time, failures_max: 7 };
        let mut settings = Settings::new(AdmissionOptions::default(), &limits);
        for value in [Some("1s"), Some(""), None] {
            let refused = settings.set("coprocessor_time_limit", value).err();
            assert_eq!(refused.map(|error| error.sqlstate), value.map(|_| "55P02".into()));
        }
        settings.reset_all().unwrap();
        let shown = |name| settings.value(name).to_owned();
        assert_eq!(shown("coprocessor_time_limit"), "1500ms");
        assert_eq!(shown("coprocessor_failures_max"), "7");
        let any = CoprocessorLimits { time: None, ..limits };
        let settings = Settings::new(AdmissionOptions::default(), &any);
        assert_eq!(settings.value("coprocessor_time_limit"), "0");
    }

    #[test]
    fn application_name_is_truncated_ascii() {
        let mut settings = settings();
        settings.set("application_name", Some("a\té€")).unwrap();
        assert_eq!(settings.value("application_name"), "a??????");
        let long = "x".repeat(62) + "é";
        assert_eq!(Settings::truncated("Application_Name", &long), Some(&long[..62]));
        settings.set("application_name", Some(&long)).unwrap();
        assert_eq!(settings.value("application_name"), &long[..62]);
    }

    #[test]
    fn encoding_names_match_postgresql() {
        let mut settings = settings();
        for (name, shown) in
            [("latin-9", "LATIN9"), ("windows1252", "WIN1252"), ("euc_jp", "EUC_JP")]
        {
            settings.set("client_encoding", Some(name)).unwrap();
            assert_eq!(settings.value("client_encoding"), shown);
            assert_eq!(settings.style().encoding.name, shown);
        }
        settings.set("client_encoding", Some("UNICODE")).unwrap();
        assert!(settings.style().encoding.is_utf8());
        settings.set("client_encoding", None).unwrap();
        assert_eq!(settings.value("client_encoding"), "UTF8");
    }

    #[test]
    fn reset_restores_initial_session_values() {
        let mut settings = settings();
        settings.set_initial(&Catalog::default(), "timezone", "America/Chicago").unwrap();
        settings.set_initial(&Catalog::default(), "DateStyle", "German").unwrap();
        settings.set_initial(&Catalog::default(), "my.own", "first").unwrap();
        settings.set_of_server("log_statement", "ddl");
        settings.set("other.own", Some("x")).unwrap();
        for all in [false, true] {
            let values = [("TimeZone", "Asia/Tokyo"), ("DateStyle", "SQL"), ("my.own", "second")];
            for (name, value) in [values.as_slice(), &[("log_statement", "all")]].concat() {
                settings.set(name, Some(value)).unwrap();
            }
            assert_eq!(settings.logged_statements(), LoggedStatements::All);
            match all {
                true => settings.reset_all().unwrap(),
                false => ["timezone", "datestyle", "My.Own", "other.own", "log_statement"]
                    .iter()
                    .for_each(|name| settings.set(name, None).unwrap()),
            }
            let shown = |name| settings.show(name).unwrap().1.to_owned();
            assert_eq!(shown("timezone"), "America/Chicago");
            assert_eq!(settings.style().time_zone.name(), "America/Chicago");
            assert_eq!(shown("DateStyle"), "German, DMY");
            assert_eq!((shown("my.own"), shown("other.own")), ("first".into(), String::new()));
            assert_eq!(settings.logged_statements(), LoggedStatements::Ddl);
        }
    }

    #[test]
    fn settings_are_found_case_insensitively() {
        for (index, spec) in SPECS.iter().enumerate() {
            assert_eq!(position(spec.name), Some(index));
            assert_eq!(position(&spec.name.to_ascii_uppercase()), Some(index));
            assert_eq!(position(&format!("{}_", spec.name)), None);
        }
        assert_eq!(position(""), None);
    }

    #[test]
    fn invalid_settings_are_rejected() {
        let mut settings = settings();
        let code = |result: Result<()>| result.unwrap_err().sqlstate;
        assert_eq!(code(settings.set("nothing", Some("1"))), "42704");
        assert_eq!(code(settings.set("client_encoding", Some("EUC_JIS_2004"))), "0A000");
        assert_eq!(code(settings.set("client_encoding", Some("klingon"))), "22023");
        assert_eq!(code(settings.set("DateStyle", Some("ISO, SQL"))), "22023");
        assert_eq!(code(settings.set("server_version", Some("16"))), "55P02");
        assert_eq!(code(settings.set("work_mem", Some("1 parsec"))), "22023");
        assert_eq!(code(settings.set("consistency", Some("EVENTUAL"))), "22023");
        assert_eq!(code(settings.set("default_transaction_read_only", Some("maybe"))), "22023");
    }
}
