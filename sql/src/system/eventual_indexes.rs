//! Eventual indexes: views for a statement that reads one, and `wait_for_index`.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use store::env::process::{self, monotonic_now};
use types::Datum;

use crate::catalog::table::{Index, IndexState};
use crate::error::{Error, Result};
use crate::exec::{FollowedViews, not_followed};
use crate::system::SystemContext;
use crate::system::catalog_objects::{CatalogObjects, SystemRelationKind};
use crate::system::functions::{Arguments, oid_at};
use crate::system::session::micros_of;

/// Longest wait of a statement for an index that is handed over or rebuilt at the moment.
const HANDOVER_WAIT: Duration = Duration::from_secs(10);
/// Interval at which the state of a build is read.
const LOOK: Duration = Duration::from_millis(20);

/// Returns the views of an index that a statement reads: they show the commits of the session, and
/// are no older than `max_staleness`.
pub(super) fn views(source: &SystemContext, index: &Index) -> Result<FollowedViews> {
    let (engine, store_table) = (&source.engine, index.spec.store_table);
    let (store, followers) = (engine.store(), &engine.followers);
    let (visible, now) = (store.visible(), store.now_micros());
    let own = source.transaction.progress().made().min(visible);
    let staleness_max = source.settings.parsed().max_staleness;
    let staleness = |views: &FollowedViews| match views.rows.commit() >= visible {
        true => Duration::ZERO,
        false => {
            let micros = now.saturating_sub(views.time_micros).max(0);
            Duration::from_micros(micros.unsigned_abs())
        }
    };
    let is_enough = |views: &FollowedViews| {
        let is_fresh = staleness_max.is_none_or(|max| staleness(views) <= max);
        views.rows.commit() >= own && is_fresh
    };
    let cancelled = &source.cancelled;
    loop {
        let deadline = Some(monotonic_now() + HANDOVER_WAIT);
        let found = followers.wait((store, store_table), is_enough, (cancelled, deadline))?;
        let Some(views) = found else {
            match followers.views(store_table) {
                // The server is behind.
                Some(_) => continue,
                None => return Err(not_followed(&index.name)),
            }
        };
        source.transaction.progress().note(0, staleness(&views));
        return Ok(views);
    }
}

/// `wait_for_index`: waits until an index has the entries of all commits before the call, at most
/// for the given time; also for a build.
pub(super) fn wait(
    source: &SystemContext,
    objects: &CatalogObjects,
    arguments: Arguments<'_>,
) -> Result<Datum> {
    let oid = oid_at(arguments, 0);
    let Some(relation) = objects.relation(oid) else {
        bail!(UNDEFINED_OBJECT: "index with OID {oid} does not exist");
    };
    let index = match &relation.kind {
        SystemRelationKind::Index(table, index) => (table.oid, index.oid),
        // The rows are stored by their primary key.
        SystemRelationKind::PrimaryKey(_) => return Ok(Datum::Bool(true)),
        _ => bail!(WRONG_OBJECT_TYPE: "\"{}\" is not an index", relation.name),
    };
    let deadline = match arguments.get(1) {
        Some(Datum::Interval(span)) => {
            let micros = micros_of(span).max(0).unsigned_abs();
            monotonic_now().checked_add(Duration::from_micros(micros))
        }
        _ => None,
    };
    let store = source.engine.store();
    let target = store.visible();
    while !is_caught_up(source, index, target, deadline)? {
        store.wait_without_slot(&mut || process::sleep(LOOK));
    }
    Ok(Datum::Bool(true))
}

/// Returns whether an index has the entries of all commits up to `target`; waits for it if the
/// server follows it.
fn is_caught_up(
    source: &SystemContext,
    (table, index): (u32, u32),
    target: store::Sequence,
    deadline: Option<Instant>,
) -> Result<bool> {
    let engine = &source.engine;
    if source.cancelled.load(Ordering::Relaxed) {
        return Err(store::Error::Cancelled.into());
    }
    let catalog = engine.catalog();
    let mut indexes = catalog.table(table).into_iter().flat_map(|table| &table.indexes);
    // An index of the running transaction is not published yet.
    let found = indexes.find(|one| one.oid == index).map(Arc::clone);
    let own = source.catalog.table(table).into_iter().flat_map(|table| &table.indexes);
    let found = found.or_else(|| own.into_iter().find(|one| one.oid == index).map(Arc::clone));
    let Some(index) = found else { bail!(UNDEFINED_OBJECT: "the index was dropped") };
    let name = &index.name;
    if index.state == IndexState::Disabled {
        bail!(OBJECT_NOT_IN_PREREQUISITE_STATE: "index \"{name}\" is disabled";
            hint "Rebuild it with ALTER INDEX … REBUILD.");
    }
    if index.is_followed {
        let is_enough = |views: &FollowedViews| views.rows.commit() >= target;
        let of = (&**engine.store(), index.spec.store_table);
        let soon = monotonic_now() + HANDOVER_WAIT;
        let until = deadline.map_or(soon, |deadline| deadline.min(soon));
        let waits = (&*source.cancelled, Some(until));
        if engine.followers.wait(of, is_enough, waits)?.is_some() {
            return Ok(true);
        }
    } else if index.is_complete() {
        return Ok(true);
    } else if let Some(error) = build_error(source, index.oid)? {
        bail!(OBJECT_NOT_IN_PREREQUISITE_STATE: "index \"{name}\" could not be built: {error}";
            hint "Rebuild it with ALTER INDEX … REBUILD.");
    }
    if deadline.is_some_and(|deadline| deadline <= monotonic_now()) {
        bail!(QUERY_CANCELED: "index \"{name}\" has not caught up within the timeout";
            hint "bennu.indexes shows its state and its lag.");
    }
    Ok(false)
}

fn build_error(source: &SystemContext, index: u32) -> Result<Option<String>> {
    let builds = source.engine.stored_builds()?;
    Ok(builds.into_iter().find(|build| build.index == index).and_then(|build| build.error))
}
