//! Functions and views that act on or show sessions: advisory locks, `pg_sleep`, cancelling and
//! terminating, exported snapshots, blocking sessions, `pg_stat_activity`, prepared statements and
//! cursors.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

use store::descriptor::RegionId;
use store::env::process::{self, monotonic_now};
use store::transaction::LockMode;
use store::{ADVISORY_LOCKS, ExportedSnapshot, LockOwner, LockStatus, TRANSACTION_ENDS};
use types::Datum;
use types::datetime::{Interval, MICROS_PER_DAY, UNIX_EPOCH_SECONDS};
use types::datum::Nested;

use crate::activity::SessionActivity;
use crate::advisory::{AdvisoryKey, AdvisoryLevel, AdvisoryMode, AdvisoryWait};
use crate::catalog::Catalog;
use crate::catalog::access::role::{READ_ALL_STATS_ROLE, SIGNAL_BACKEND_ROLE};
use crate::error::{Error, Result};
use crate::index_builds::RunningBuild;
use crate::prepared_transactions::PreparedTransactionRow;
use crate::session_objects::{CursorRow, StatementRow};
use crate::system::catalog_objects::{database_oid, role_oid};
use crate::system::functions::Arguments;
use crate::system::relation_definitions::RelationDefinition;
use crate::system::value::{array, int4, int8, oid, text, text_or_null};
use crate::system::views::timestamptz;
use crate::system::{Row, SystemContext};

/// Interval at which `pg_sleep` checks for cancellation.
const LOOK: Duration = Duration::from_millis(20);
/// Microseconds of a month, which PostgreSQL takes as 30 days in an interval.
const MICROS_PER_MONTH: i64 = 30 * MICROS_PER_DAY;

/// Calls a function on sessions; `None` for other functions.
pub(super) fn call(
    source: &SystemContext,
    function: &str,
    arguments: Arguments<'_>,
) -> Result<Option<Datum>> {
    if let Some(rest) = function.strip_prefix("pg_try_advisory_") {
        let (mode, level) = mode_and_level(rest);
        let lock = (key(arguments), mode, level);
        return Ok(Some(Datum::Bool(source.locks.try_acquire(&source.transaction, lock)?)));
    }
    Ok(Some(match function {
        "pg_advisory_unlock_all" => {
            source.locks.release_all(AdvisoryLevel::Session, source.transaction.required_commit());
            nothing()
        }
        "pg_advisory_unlock" | "pg_advisory_unlock_shared" => {
            let (mode, _) = mode_and_level(function);
            Datum::Bool(source.locks.release(
                key(arguments),
                mode,
                source.transaction.required_commit(),
            ))
        }
        _ if function.starts_with("pg_advisory_") => {
            let (mode, level) = mode_and_level(function.trim_start_matches("pg_advisory_"));
            let lock = (key(arguments), mode, level);
            let wait = AdvisoryWait {
                lock_timeout: source.settings.parsed().lock_timeout,
                deadlock_timeout: source.settings.parsed().deadlock_timeout,
                cancelled: &source.cancelled,
            };
            source.locks.acquire(&source.transaction, lock, wait)?;
            nothing()
        }
        "pg_notify" | "pg_listening_channels" | "pg_notification_queue_usage" => {
            notify(source, function, arguments)?
        }
        "pg_sleep" | "pg_sleep_for" | "pg_sleep_until" => {
            sleep(source, arguments)?;
            nothing()
        }
        "hold_primary" | "hold_replicas" => {
            hold(source, arguments)?;
            nothing()
        }
        "release_holds" => {
            source.own_objects.release_holds();
            nothing()
        }
        "pg_cancel_backend" => {
            let session = arguments[0].as_i64().and_then(|session| i32::try_from(session).ok());
            check_may_signal(source, session, ["cancel", "query", "canceled"])?;
            Datum::Bool(session.is_some_and(|session| source.engine.sessions.cancel(session)))
        }
        "pg_export_snapshot" => text(name_of_exported(source.transaction.export_snapshot()?)),
        "pg_terminate_backend" => terminate(source, arguments)?,
        "pg_blocking_pids" => array(blockers(source, arguments).into_iter().map(int4).collect()),
        "pg_safe_snapshot_blocking_pids" => {
            array(snapshot_blockers(source, arguments).into_iter().map(int4).collect())
        }
        "pg_isolation_test_session_is_blocked" => {
            let among: Vec<i64> = match &arguments[1] {
                Datum::Nested(Nested::Array(sessions)) => {
                    sessions.elements.iter().filter_map(Datum::as_i64).collect()
                }
                _ => Vec::new(),
            };
            let mut blockers = blockers(source, arguments);
            blockers.extend(snapshot_blockers(source, arguments));
            Datum::Bool(blockers.iter().any(|session| among.contains(&i64::from(*session))))
        }
        _ => return Ok(None),
    }))
}

/// Calls a function on notifications.
fn notify(source: &SystemContext, function: &str, arguments: Arguments<'_>) -> Result<Datum> {
    let notifications = &source.notifications;
    match function {
        "pg_listening_channels" => Ok(array(notifications.channels().iter().map(text).collect())),
        "pg_notification_queue_usage" => Ok(Datum::Float8(notifications.queue_usage())),
        _ => {
            let [channel, payload] = [0, 1].map(|at| arguments[at].as_str().unwrap_or_default());
            notifications.notify(channel, payload)?;
            Ok(nothing())
        }
    }
}

/// Returns the identifier of an exported snapshot, in PostgreSQL's form.
fn name_of_exported(snapshot: ExportedSnapshot) -> String {
    let ExportedSnapshot { transaction, number } = snapshot;
    format!("{:08X}-{:08X}-{number}", transaction >> 32, transaction & u64::from(u32::MAX))
}

/// Returns the snapshot of an identifier; `None` if it is malformed.
pub(crate) fn exported_named(name: &str) -> Option<ExportedSnapshot> {
    let mut parts = name.splitn(3, '-');
    let mut half = || u32::from_str_radix(parts.next()?, 16).ok().map(u64::from);
    let transaction = half()? << 32 | half()?;
    let snapshot = ExportedSnapshot { transaction, number: parts.next()?.parse().ok()? };
    (name_of_exported(snapshot) == name).then_some(snapshot)
}

/// `pg_blocking_pids`: the sessions that a session waits for, in row, table or advisory locks.
fn blockers(source: &SystemContext, arguments: Arguments<'_>) -> Vec<i32> {
    let asked = arguments[0].as_i64().and_then(|session| i32::try_from(session).ok());
    let Some(session) = asked else { return Vec::new() };
    let sessions = source.engine.sessions.by_transaction();
    // An owner without session is a prepared transaction, for which PostgreSQL shows 0.
    let of = |owner: &LockOwner| session_of(owner, &sessions).unwrap_or(0);
    let locks = source.engine.store().contended_locks();
    let own = locks.iter().filter(|lock| lock.waits.is_some() && of(&lock.owner) == session);
    let mut found: Vec<i32> =
        own.flat_map(|lock| lock.blockers.iter().chain(&lock.ahead)).map(of).collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// `pg_safe_snapshot_blocking_pids`: the sessions that a READ ONLY DEFERRABLE transaction waits
/// for.
fn snapshot_blockers(source: &SystemContext, arguments: Arguments<'_>) -> Vec<i32> {
    let asked = arguments[0].as_i64().and_then(|session| i32::try_from(session).ok());
    let sessions = source.engine.sessions.by_transaction();
    let own = sessions.iter().filter(|(_, session)| Some(**session) == asked);
    let store = source.engine.store();
    let found = own.flat_map(|(transaction, _)| store.safe_snapshot_blockers(*transaction));
    found.map(|transaction| sessions.get(&transaction).copied().unwrap_or(0)).collect()
}

/// Returns the session of the owner of a lock.
fn session_of(owner: &LockOwner, sessions: &BTreeMap<u64, i32>) -> Option<i32> {
    match owner {
        LockOwner::Transaction(number) => sessions.get(number).copied(),
        LockOwner::Session(number) => Some(number.cast_signed()),
    }
}

/// Checks that the current role may cancel or terminate a session, if there is one.
///
/// # Errors
///
/// 42501. The words are those of PostgreSQL's messages.
fn check_may_signal(
    source: &SystemContext,
    session: Option<i32>,
    [verb, noun, done]: [&str; 3],
) -> Result<()> {
    let (catalog, own) = (&source.catalog, source.settings.roles().current.number);
    let sessions = source.engine.sessions.all();
    let Some(target) = sessions.iter().find(|one| Some(one.session) == session) else {
        return Ok(());
    };
    let target = target.role.number;
    if catalog.is_superuser(target) && !catalog.is_superuser(own) {
        bail!(INSUFFICIENT_PRIVILEGE: "must be a superuser to {verb} superuser {noun}");
    }
    if !catalog.has_privileges_of(own, target)
        && !catalog.has_privileges_of(own, SIGNAL_BACKEND_ROLE)
    {
        bail!(INSUFFICIENT_PRIVILEGE: "must be a member of the role whose {noun} is being {done} or member of pg_signal_backend");
    }
    Ok(())
}

/// `pg_terminate_backend`: terminates a session, and waits for its end up to the timeout, if any.
fn terminate(source: &SystemContext, arguments: Arguments<'_>) -> Result<Datum> {
    let session = arguments[0].as_i64().and_then(|session| i32::try_from(session).ok());
    check_may_signal(source, session, ["terminate", "process", "terminated"])?;
    let millis = arguments.get(1).and_then(Datum::as_i64).unwrap_or(0);
    let timeout = u64::try_from(millis)
        .map(Duration::from_millis)
        .map_err(|_| err!(NUMERIC_VALUE_OUT_OF_RANGE: "\"timeout\" must not be negative"))?;
    let sessions = &source.engine.sessions;
    let Some(session) = session.filter(|session| sessions.terminate(*session)) else {
        return Ok(Datum::Bool(false));
    };
    let end = monotonic_now() + timeout;
    source.engine.store().wait_without_slot(&mut || {
        while sessions.is_open(session)
            && monotonic_now() < end
            && !source.cancelled.load(Ordering::Relaxed)
        {
            process::sleep(LOOK);
        }
    });
    Ok(Datum::Bool(timeout.is_zero() || !sessions.is_open(session)))
}

/// Returns the value of type `void`.
fn nothing() -> Datum {
    text("")
}

fn mode_and_level(name: &str) -> (AdvisoryMode, AdvisoryLevel) {
    let mode =
        if name.ends_with("_shared") { AdvisoryMode::Shared } else { AdvisoryMode::Exclusive };
    let level =
        if name.starts_with("xact_") { AdvisoryLevel::Transaction } else { AdvisoryLevel::Session };
    (mode, level)
}

fn key(arguments: Arguments<'_>) -> AdvisoryKey {
    match arguments {
        [Datum::Int4(first), Datum::Int4(second)] => AdvisoryKey::Two(*first, *second),
        _ => AdvisoryKey::One(arguments.first().and_then(Datum::as_i64).unwrap_or_default()),
    }
}

/// Limit of a hold: a session that is forgotten must not stop others for long.
const HOLD_MAX: Duration = Duration::from_secs(60);

/// `hold_primary`, with the number of a region, and `hold_replicas`: lets the primary of the
/// region serve no calls, or all replicas apply no commits, for some time. The session is not
/// stopped.
fn hold(source: &SystemContext, arguments: Arguments<'_>) -> Result<()> {
    let limit = match arguments.last() {
        Some(Datum::Interval(span)) => Duration::from_micros(micros_of(span).max(0) as u64),
        _ => Duration::ZERO,
    };
    if limit.is_zero() || limit > HOLD_MAX {
        bail!(INVALID_PARAMETER_VALUE: "the duration of a hold must be greater than 0 and at most 1 minute");
    }
    let store = source.engine.store();
    let region = arguments.first().and_then(Datum::as_i64);
    let Some(number) = region else {
        source.own_objects.hold(store.hold_replicas(limit));
        return Ok(());
    };
    let held = u64::try_from(number).ok().map(|region| store.hold_region(RegionId(region), limit));
    let Some(Ok(held)) = held else {
        bail!(UNDEFINED_OBJECT: "region {number} does not exist");
    };
    source.own_objects.hold(held);
    Ok(())
}

/// Returns the microseconds of an interval.
pub(super) fn micros_of(span: &Interval) -> i64 {
    let days = i64::from(span.days).saturating_mul(MICROS_PER_DAY);
    let months = i64::from(span.months).saturating_mul(MICROS_PER_MONTH);
    span.microseconds.saturating_add(days).saturating_add(months)
}

fn sleep(source: &SystemContext, arguments: Arguments<'_>) -> Result<()> {
    let micros = match &arguments[0] {
        Datum::Float8(seconds) => seconds * 1e6,
        Datum::Interval(span) => micros_of(span) as f64,
        Datum::Timestamptz(until) => {
            let now = source.engine.store().now_micros() - UNIX_EPOCH_SECONDS * 1_000_000;
            until.saturating_sub(now) as f64
        }
        _ => 0.0,
    };
    // Negative and NaN durations are zero; long and infinite ones are limited.
    let micros = micros.clamp(0.0, 1e15) as u64;
    let end = monotonic_now() + Duration::from_micros(micros);
    source.engine.store().wait_without_slot(&mut || {
        while !source.cancelled.load(Ordering::Relaxed) {
            let left = end.saturating_duration_since(monotonic_now());
            if left.is_zero() {
                break;
            }
            process::sleep(left.min(LOOK));
        }
    });
    if source.cancelled.load(Ordering::Relaxed) {
        bail!(QUERY_CANCELED: "canceling statement due to user request");
    }
    Ok(())
}

pub(super) fn activity(shape: &RelationDefinition, source: &SystemContext) -> Vec<Row> {
    let sessions = source.engine.sessions.by_transaction();
    let locks = source.engine.store().contended_locks();
    let wait_event = |activity: &SessionActivity| {
        let is_own = |lock: &&LockStatus| {
            lock.waits.is_some() && session_of(&lock.owner, &sessions) == Some(activity.session)
        };
        locks.iter().find(is_own).map(|lock| match lock.mode {
            _ if lock.table == ADVISORY_LOCKS => "advisory",
            _ if lock.table == TRANSACTION_ENDS => "virtualxid",
            LockMode::Table(_) => "relation",
            _ if lock.ahead.is_empty() => "transactionid",
            _ => "tuple",
        })
    };
    let row = |activity: &SessionActivity| {
        let wait = wait_event(activity);
        let now = activity.now();
        // A role that was renamed since has another name.
        let role = source.catalog.role(activity.role.number);
        let name = role.map_or(&*activity.role.name, |role| role.name.as_str());
        let statement = now.statement.as_ref();
        let own = source.settings.roles().current.number;
        let sees = source.catalog.has_privileges_of(own, activity.role.number)
            || source.catalog.has_privileges_of(own, READ_ALL_STATS_ROLE);
        if !sees {
            return shape.row([
                ("datid", oid(database_oid(activity.database))),
                ("datname", database_name(&source.catalog, activity.database)),
                ("pid", int4(activity.session)),
                ("usesysid", oid(role_oid(activity.role.number))),
                ("usename", text(name)),
                ("application_name", text(now.settings.value("application_name"))),
                ("query", text("<insufficient privilege>")),
            ]);
        }
        shape.row([
            ("datid", oid(database_oid(activity.database))),
            ("datname", database_name(&source.catalog, activity.database)),
            ("pid", int4(activity.session)),
            ("usesysid", oid(role_oid(activity.role.number))),
            ("usename", text(name)),
            ("application_name", text(now.settings.value("application_name"))),
            ("backend_start", timestamptz(activity.began)),
            ("query_start", statement.map_or(Datum::Null, |(_, began)| timestamptz(*began))),
            ("state_change", timestamptz(now.since)),
            ("wait_event_type", text_or_null(wait.map(|_| "Lock"))),
            ("wait_event", text_or_null(wait)),
            ("state", text(now.state)),
            ("query", text_or_null(statement.map(|(statement, _)| statement.as_str()))),
            ("backend_type", text("client backend")),
        ])
    };
    source.engine.sessions.all().iter().map(|activity| row(activity)).collect()
}

/// `pg_stat_progress_create_index`
pub(super) fn index_builds(shape: &RelationDefinition, source: &SystemContext) -> Vec<Row> {
    let row = |one: &RunningBuild| {
        let phase = match one.progress.is_loading() {
            true => "building index: loading tuples in tree",
            false => "building index: scanning table",
        };
        shape.row([
            ("pid", int4(one.session)),
            ("datid", oid(database_oid(source.catalog.database))),
            ("datname", text(source.catalog.current_database())),
            ("relid", oid(one.table)),
            ("index_relid", oid(one.index)),
            ("command", text(one.command)),
            ("phase", text(phase)),
            ("tuples_total", int8(one.rows_total)),
            ("tuples_done", int8(one.progress.row_count())),
        ])
    };
    source.engine.index_builds.all().iter().map(|one| row(one)).collect()
}

fn database_name(catalog: &Catalog, number: u32) -> Datum {
    text_or_null(catalog.database(number).map(|database| &database.name))
}

/// `pg_prepared_xacts`
pub(super) fn prepared_transactions(
    shape: &RelationDefinition,
    source: &SystemContext,
) -> Vec<Row> {
    let row = |one: PreparedTransactionRow| {
        shape.row([
            ("transaction", int8(one.transaction)),
            ("gid", text(one.gid)),
            ("prepared", timestamptz(one.prepared_micros)),
            ("owner", text_or_null(source.catalog.role(one.owner).map(|role| &role.name))),
            ("database", database_name(&source.catalog, one.database)),
        ])
    };
    source.engine.prepared.all().into_iter().map(row).collect()
}

/// Returns the rows of `pg_prepared_statements`. All executions count as generic plans.
pub(super) fn prepared_statements(shape: &RelationDefinition, source: &SystemContext) -> Vec<Row> {
    let row = |(name, statement): (String, StatementRow)| {
        let types = statement.parameter_types.iter().map(|one| oid(one.oid()));
        shape.row([
            ("name", text(name)),
            ("statement", text(&*statement.text)),
            ("prepare_time", timestamptz(statement.since)),
            ("parameter_types", array(types.collect())),
            ("from_sql", Datum::Bool(statement.from_sql)),
            ("generic_plans", int8(statement.runs.count())),
            ("custom_plans", int8(0)),
        ])
    };
    source.own_objects.statements().into_iter().map(row).collect()
}

pub(super) fn cursors(shape: &RelationDefinition, source: &SystemContext) -> Vec<Row> {
    let row = |(name, cursor): (String, CursorRow)| {
        shape.row([
            ("name", text(name)),
            ("statement", text(cursor.statement.as_deref().unwrap_or_default())),
            ("is_holdable", Datum::Bool(cursor.is_held)),
            ("is_binary", Datum::Bool(cursor.is_binary)),
            ("is_scrollable", Datum::Bool(cursor.is_scrollable)),
            ("creation_time", timestamptz(cursor.since)),
        ])
    };
    source.own_objects.cursors().into_iter().map(row).collect()
}
