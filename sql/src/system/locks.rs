//! View `pg_locks`: held and awaited locks, in PostgreSQL's form.
//!
//! Rows are computed from the lock manager of the store, the advisory locks and the sessions:
//!
//! * `relation`: locks on tables and sequences. `fastpath` is true for AccessShareLocks of readers
//!   that are not in the lock table.
//! * `virtualxid` and `transactionid`: the locks of each open transaction on itself; the second
//!   only if it has locked rows or tables for writing.
//! * A row lock appears only if a transaction waits for it, as in PostgreSQL: the first waiter
//!   holds the `tuple` lock and waits for the `transactionid` of the row's holder; further waiters
//!   wait for the `tuple` lock. Rows have no physical address: page and tuple number are made of a
//!   hash of the key.
//! * `advisory`.

use std::collections::{BTreeMap, BTreeSet};

use ahash::AHashMap;
use store::transaction::{LockMode, TableLockMode};
use store::{ADVISORY_LOCKS, LockName, LockOwner, LockStatus, TRANSACTION_ENDS};
use types::Datum;

use crate::advisory::{AdvisoryKey, AdvisoryLockRow, AdvisoryMode};
use crate::catalog::record::CATALOG_TABLE;
use crate::ddl::{relation_lock, relation_lock_name};
use crate::system::catalog_objects::{database_oid, user_oid};
use crate::system::relation_definitions::RelationDefinition;
use crate::system::value::{int2, int4, oid, text};
use crate::system::views::timestamptz;
use crate::system::{Row, SystemContext};

/// Returns the rows of the view.
pub(super) fn locks(shape: &RelationDefinition, source: &SystemContext) -> Vec<Row> {
    let mut view = LockViewBuilder::new(shape, source);
    let contended = source.engine.store().contended_locks();
    view.relations();
    view.rows_waited_for(&contended);
    view.transactions();
    for engine in source.engine.engines() {
        let advisory = engine.advisory.lock_rows();
        let rows = advisory.iter().map(|lock| advisory_lock(shape, lock, engine.database));
        view.found.extend(rows);
    }
    view.found
}

/// Builder of the rows.
struct LockViewBuilder<'a> {
    shape: &'a RelationDefinition,
    source: &'a SystemContext,
    /// Sessions by their open transactions.
    sessions: BTreeMap<u64, i32>,
    prepared: BTreeSet<u64>,
    /// Transactions that hold a lock for writing.
    writing: BTreeSet<u64>,
    found: Vec<Row>,
}

/// Columns that identify the locked object.
type LockTargetColumns = Vec<(&'static str, Datum)>;

impl<'a> LockViewBuilder<'a> {
    fn new(shape: &'a RelationDefinition, source: &'a SystemContext) -> LockViewBuilder<'a> {
        let engine = &source.engine;
        let prepared: BTreeSet<u64> =
            engine.prepared.all().iter().map(|one| one.transaction).collect();
        let all = engine.sessions.all();
        let open = all.iter().filter(|activity| activity.now().state != "idle");
        let open: BTreeSet<i32> = open.map(|activity| activity.session).collect();
        let mut sessions = engine.sessions.by_transaction();
        sessions.retain(|number, session| open.contains(session) && !prepared.contains(number));
        let writing = prepared.clone();
        LockViewBuilder { shape, source, sessions, prepared, writing, found: Vec::new() }
    }

    /// Adds a row for a lock of an owner; `since` is the begin of the wait, `None` if the lock is
    /// held.
    fn add(&mut self, owner: LockOwner, target: LockTargetColumns, mode: &str, since: Option<i64>) {
        let (session, transaction) = match owner {
            LockOwner::Session(session) => (Some(session.cast_signed()), 0),
            LockOwner::Transaction(number) => (self.sessions.get(&number).copied(), number),
        };
        let mut columns = target;
        // A transaction that has ended after its lock was listed is left out.
        match session {
            Some(session) => {
                columns.push(("pid", int4(session)));
                columns.push(("virtualtransaction", text(format!("{session}/{transaction}"))));
            }
            None if self.prepared.contains(&transaction) => {
                columns.push(("virtualtransaction", text(format!("-1/{transaction}"))));
            }
            None => return,
        }
        columns.push(("mode", text(mode)));
        columns.push(("granted", Datum::Bool(since.is_none())));
        if !columns.iter().any(|(name, _)| *name == "fastpath") {
            columns.push(("fastpath", Datum::Bool(false)));
        }
        columns.extend(since.map(|since| ("waitstart", timestamptz(since))));
        self.found.push(self.shape.row(columns));
    }

    /// Returns the begin of the wait of a waiter, in microseconds.
    fn since(&self, lock: &LockStatus) -> Option<i64> {
        let now = self.source.engine.store().now_micros();
        let micros = |waits: std::time::Duration| i64::try_from(waits.as_micros()).unwrap_or(0);
        lock.waits.map(|waits| now.saturating_sub(micros(waits)))
    }

    fn relations(&mut self) {
        let mut noted: AHashMap<LockName, Vec<LockOwner>> = AHashMap::new();
        for (owner, lock) in self.source.engine.store().noted_reads() {
            noted.entry(lock).or_default().push(owner);
        }
        let mut relations: Vec<(u32, u32, u32)> = Vec::new();
        for engine in self.source.engine.engines() {
            let (catalog, database) = (engine.catalog(), engine.database);
            let tables = catalog.tables().into_iter();
            relations.extend(tables.map(|table| (database, table.id.0, table.oid)));
            let sequences = catalog.sequences();
            relations.extend(sequences.map(|sequence| (database, sequence.id, sequence.oid)));
        }
        for (database, number, relation) in relations {
            let relation_columns = || {
                vec![
                    ("locktype", text("relation")),
                    ("database", oid(database_oid(database))),
                    ("relation", oid(user_oid(relation))),
                ]
            };
            for owner in noted.remove(&relation_lock_name(number)).unwrap_or_default() {
                let mut target = relation_columns();
                target.push(("fastpath", Datum::Bool(true)));
                self.add(owner, target, table_mode(TableLockMode::AccessShare), None);
            }
            let store = self.source.engine.store();
            for lock in store.lock_status(CATALOG_TABLE, &relation_lock(number)) {
                let LockMode::Table(mode) = lock.mode else { continue };
                if mode >= TableLockMode::RowExclusive {
                    self.writes(&lock.owner);
                }
                let since = self.since(&lock);
                self.add(lock.owner, relation_columns(), table_mode(mode), since);
            }
        }
    }

    fn writes(&mut self, owner: &LockOwner) {
        if let LockOwner::Transaction(number) = owner {
            self.writing.insert(*number);
        }
    }

    fn rows_waited_for(&mut self, contended: &[LockStatus]) {
        for lock in contended {
            if lock.table == TRANSACTION_ENDS {
                self.end_waited_for(lock);
                continue;
            }
            if lock.table == ADVISORY_LOCKS || matches!(lock.mode, LockMode::Table(_)) {
                continue;
            }
            self.writes(&lock.owner);
            let Some(since) = self.since(lock) else { continue };
            let table = self.source.engine.engines().iter().find_map(|engine| {
                let table = engine.catalog().table_stored(lock.table)?.oid;
                Some((engine.database, table))
            });
            let is_first = lock.ahead.is_empty();
            if let Some((database, relation)) = table {
                let target = vec![
                    ("locktype", text("tuple")),
                    ("database", oid(database_oid(database))),
                    ("relation", oid(user_oid(relation))),
                    ("page", int4((lock.key[0] >> 33) as i32)),
                    ("tuple", int2((lock.key[1] >> 49) as i16)),
                ];
                let since = (!is_first).then_some(since);
                self.add(lock.owner, target, row_mode(lock.mode), since);
            }
            let blockers = if is_first { &lock.blockers } else { &lock.ahead };
            if (is_first || table.is_none())
                && let Some(LockOwner::Transaction(blocker)) = blockers.first()
            {
                self.writing.insert(*blocker);
                self.add(lock.owner, transaction(*blocker), "ShareLock", Some(since));
            }
        }
    }

    /// Adds a waiter for the end of a transaction, which PostgreSQL shows on the `virtualxid`.
    fn end_waited_for(&mut self, lock: &LockStatus) {
        let Some(since) = self.since(lock) else { return };
        if let Some(LockOwner::Transaction(other)) = lock.blockers.first() {
            let session = self.sessions.get(other).copied().unwrap_or_default();
            self.add(lock.owner, virtual_transaction(session, *other), "ShareLock", Some(since));
        }
    }

    fn transactions(&mut self) {
        for (number, session) in self.sessions.clone() {
            let target = virtual_transaction(session, number);
            self.add(LockOwner::Transaction(number), target, "ExclusiveLock", None);
        }
        for number in self.writing.clone() {
            let owner = LockOwner::Transaction(number);
            self.add(owner, transaction(number), "ExclusiveLock", None);
        }
    }
}

fn virtual_transaction(session: i32, number: u64) -> LockTargetColumns {
    let shown = format!("{session}/{number}");
    vec![("locktype", text("virtualxid")), ("virtualxid", text(shown))]
}

fn transaction(number: u64) -> LockTargetColumns {
    vec![("locktype", text("transactionid")), ("transactionid", oid(number as u32))]
}

fn table_mode(mode: TableLockMode) -> &'static str {
    match mode {
        TableLockMode::AccessShare => "AccessShareLock",
        TableLockMode::RowShare => "RowShareLock",
        TableLockMode::RowExclusive => "RowExclusiveLock",
        TableLockMode::ShareUpdateExclusive => "ShareUpdateExclusiveLock",
        TableLockMode::Share => "ShareLock",
        TableLockMode::ShareRowExclusive => "ShareRowExclusiveLock",
        TableLockMode::Exclusive => "ExclusiveLock",
        TableLockMode::AccessExclusive => "AccessExclusiveLock",
    }
}

/// Source: PostgreSQL's `tupleLockExtraInfo` (heapam.c).
fn row_mode(mode: LockMode) -> &'static str {
    match mode {
        LockMode::KeyShared => "AccessShareLock",
        LockMode::Shared => "RowShareLock",
        LockMode::NoKeyExclusive => "ExclusiveLock",
        LockMode::Exclusive | LockMode::Table(_) => "AccessExclusiveLock",
    }
}

fn advisory_lock(shape: &RelationDefinition, lock: &AdvisoryLockRow, database: u32) -> Row {
    // PostgreSQL's encoding: `objsubid` is 1 for one bigint key and 2 for two integer keys.
    let (class, object, kind) = match lock.key {
        AdvisoryKey::One(number) => ((number >> 32) as u32, number as u32, 1_i16),
        AdvisoryKey::Two(first, second) => (first.cast_unsigned(), second.cast_unsigned(), 2),
    };
    let mode = match lock.mode {
        AdvisoryMode::Exclusive => "ExclusiveLock",
        AdvisoryMode::Shared => "ShareLock",
    };
    let mut columns = vec![
        ("locktype", text("advisory")),
        ("database", oid(database_oid(database))),
        ("classid", oid(class)),
        ("objid", oid(object)),
        ("objsubid", int2(kind)),
        ("mode", text(mode)),
        ("granted", Datum::Bool(lock.granted)),
        ("fastpath", Datum::Bool(false)),
    ];
    columns.extend(lock.session.map(|session| ("pid", int4(session))));
    shape.row(columns)
}
