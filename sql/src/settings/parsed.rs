//! Settings that each statement or transaction reads, parsed once after a change.

use std::sync::Arc;
use std::time::Duration;

use store::transaction::Consistency;
use types::text::{self, TextStyle};
use types::{DataType, Datum};

use crate::ast::IsolationLevel;
use crate::audit::AuditSettings;
use crate::catalog::policy::RowSecurityMode;
use crate::settings::modes::TransactionModeSet;
use crate::settings::quantity::{SIZE_UNITS, TIME_UNITS, parse_quantity};
use crate::settings::value_of;

/// Parsed values of settings. For time limits, `None` means no limit.
#[derive(Clone)]
pub(crate) struct ParsedSettings {
    /// `statement_timeout`.
    pub statement_timeout: Option<Duration>,
    /// `idle_session_timeout`.
    pub idle_session_timeout: Option<Duration>,
    /// `idle_in_transaction_session_timeout`.
    pub idle_in_transaction_session_timeout: Option<Duration>,
    /// `lock_timeout`.
    pub lock_timeout: Option<Duration>,
    /// `deadlock_timeout`: the wait for a lock after which deadlocks are searched for.
    pub deadlock_timeout: Duration,
    /// `work_mem` in bytes.
    pub work_mem_bytes: usize,
    /// `temp_file_limit` in bytes; `None` is no limit.
    pub temp_file_limit: Option<u64>,
    /// `synchronous_commit` is off.
    pub is_commit_asynchronous: bool,
    /// `enable_maintained_views`.
    pub enable_maintained_views: bool,
    /// `consistency`, with `primary_call_timeout` and `max_staleness`.
    pub consistency: Consistency,
    /// `max_staleness`; `None` for no limit.
    pub max_staleness: Option<Duration>,
    /// `timeline_notice`.
    pub timeline_notice: bool,
    /// `phoenix_compatibility`.
    pub phoenix_compatibility: bool,
    /// `default_transaction_isolation`, `_read_only` and `_deferrable`.
    pub default_modes: TransactionModeSet,
    /// `row_security`
    pub row_security: RowSecurityMode,
    /// `as_of`, in microseconds since 2000-01-01 UTC.
    pub as_of: Option<i64>,
    /// `pgaudit.…`.
    pub audit: AuditSettings,
    /// `search_path`; the same pointer until it is set again.
    pub search_path: Arc<str>,
}

impl ParsedSettings {
    /// Parses the values of all settings, in the order of their declarations.
    pub(super) fn of(values: &[Arc<str>]) -> ParsedSettings {
        let value = |name| &**value_of(values, name);
        let duration = |name| {
            let millis = parse_quantity(value(name), TIME_UNITS)?;
            (millis > 0).then(|| Duration::from_millis(millis.unsigned_abs()))
        };
        let kilobytes = |name| parse_quantity(value(name), SIZE_UNITS);
        let max_staleness = parse_quantity(value("max_staleness"), TIME_UNITS)
            .and_then(|millis| u64::try_from(millis).ok())
            .map(Duration::from_millis);
        let consistency = match value("consistency") {
            "TIMELINE" => {
                let timeout = duration("primary_call_timeout").unwrap_or_default();
                Consistency::Timeline { timeout, max_staleness }
            }
            _ => Consistency::Strong,
        };
        let isolation = IsolationLevel::named(value("default_transaction_isolation"));
        ParsedSettings {
            statement_timeout: duration("statement_timeout"),
            idle_session_timeout: duration("idle_session_timeout"),
            idle_in_transaction_session_timeout: duration("idle_in_transaction_session_timeout"),
            lock_timeout: duration("lock_timeout"),
            deadlock_timeout: duration("deadlock_timeout").unwrap_or_default(),
            work_mem_bytes: kilobytes("work_mem")
                .map_or(64 << 20, |kilobytes| (kilobytes as usize) << 10),
            temp_file_limit: kilobytes("temp_file_limit")
                .and_then(|kilobytes| u64::try_from(kilobytes).ok())
                .map(|kilobytes| kilobytes.saturating_mul(1 << 10)),
            is_commit_asynchronous: value("synchronous_commit") == "off",
            enable_maintained_views: value("enable_maintained_views") == "on",
            consistency,
            max_staleness,
            timeline_notice: value("timeline_notice") == "on",
            phoenix_compatibility: value("phoenix_compatibility") == "on",
            default_modes: TransactionModeSet {
                isolation: isolation.unwrap_or(IsolationLevel::ReadCommitted),
                read_only: value("default_transaction_read_only") == "on",
                deferrable: value("default_transaction_deferrable") == "on",
            },
            row_security: match value("row_security") {
                "off" => RowSecurityMode::Off,
                _ => RowSecurityMode::On,
            },
            as_of: time_of(value("as_of")),
            audit: AuditSettings::of(value),
            search_path: Arc::clone(value_of(values, "search_path")),
        }
    }
}

/// Returns the time of a setting, in microseconds since 2000-01-01 UTC; `None` if it is empty.
fn time_of(value: &str) -> Option<i64> {
    match text::parse(value, &DataType::Timestamptz, &TextStyle::default()) {
        Ok(Datum::Timestamptz(time)) if !value.is_empty() => Some(time),
        _ => None,
    }
}
