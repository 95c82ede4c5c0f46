//! Background threads: flushes, compactions, and one thread for splits ([`crate::auto_split`]).
//!
//! A flush is due when the memstores of a region are above its flush size, when all memstores are
//! above their share of memory (then the largest is flushed), or when the log is too long (then
//! the region that holds it back). After a flush, obsolete log segments are removed and the
//! region's compactions are scheduled ([`crate::schedule`]). Failures are logged and retried
//! later; a write never fails because of them.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use crate::applied_rules;
use crate::auto_split;
use crate::engine::Engine;
use crate::env::process::spawn_thread;
use crate::error::{Error, Result, WriteFailure};
use crate::region::Region;
use crate::schedule::CompactionProgress;

/// Pause after a failure.
const RETRY: Duration = Duration::from_secs(1);

/// The running threads.
#[derive(Default)]
pub(crate) struct Background {
    threads: Vec<JoinHandle<()>>,
}

impl Background {
    /// Starts the threads.
    pub(crate) fn start(engine: &Arc<Engine>) -> Result<Background> {
        let mut background = Background::default();
        let options = engine.options();
        let flushers = options.flush_threads.max(1);
        let compactors = options.compactions.threads.max(1);
        let flush = std::iter::repeat_n(("bennu-flush", run_flushes as fn(&Engine)), flushers);
        let compact = std::iter::repeat_n(("bennu-compact", run_compactions as _), compactors);
        let split = std::iter::once(("bennu-split", auto_split::run as _));
        for (name, run) in flush.chain(compact).chain(split) {
            let engine_of_thread = Arc::clone(engine);
            match spawn_thread(name, move || run(&engine_of_thread)) {
                Ok(thread) => background.threads.push(thread),
                Err(source) => {
                    background.stop(engine);
                    return Err(Error::io(&engine.regions_directory, source));
                }
            }
        }
        Ok(background)
    }

    /// Stops the threads and waits for them: at most for the running flush. Compactions are
    /// stopped.
    pub(crate) fn stop(&mut self, engine: &Engine) {
        engine.pressure.stop();
        engine.schedule.stop();
        engine.splits.stop();
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                tracing::error!("a background thread panicked");
            }
        }
    }
}

fn run_flushes(engine: &Engine) {
    while engine.pressure.next_flush() {
        while let Some(region) = next_to_flush(engine) {
            if !engine.pressure.claim_flush(region.id()) {
                // Another thread flushes it; there may be more work afterwards.
                break;
            }
            let flushed = flush_one(engine, &region);
            engine.pressure.release_flush(region.id());
            if !flushed && !engine.pressure.pause(RETRY) {
                return;
            }
            if engine.check_running().is_err() {
                return;
            }
        }
        // Writers may have requested a flush while the last one ran.
        engine.pressure.relieve();
    }
}

fn flush_one(engine: &Engine, region: &Arc<Region>) -> bool {
    let flushed = region.flush(engine).and_then(|_| engine.release_log());
    let failure = flushed.as_ref().err().filter(|error| !matches!(error, Error::ShutDown));
    engine.pressure.note_flush(failure.map(WriteFailure::from));
    engine.pressure.relieve();
    match flushed {
        Ok(()) => {
            engine.schedule.schedule_policy(region);
            engine.splits.want(region.id());
            true
        }
        Err(Error::ShutDown) => false,
        Err(error) => {
            tracing::error!(%error, region = region.id().0, "could not flush");
            false
        }
    }
}

/// Returns the region whose flush is most urgent, or `None` if none is due.
fn next_to_flush(engine: &Engine) -> Option<Arc<Region>> {
    let regions = engine.regions();
    let largest = regions
        .iter()
        .filter(|region| region.unflushed().is_some())
        .max_by_key(|region| region.memstore_bytes())?;
    if engine.pressure.is_above_soft_limit() {
        return Some(Arc::clone(largest));
    }
    if let Some(full) = regions.iter().find(|region| region.memstore_bytes() > region.flush_bytes())
    {
        return Some(Arc::clone(full));
    }
    if engine.wal.byte_count() > log_limit_bytes(engine) {
        return regions
            .iter()
            .filter(|region| region.unflushed().is_some())
            .min_by_key(|region| region.unflushed())
            .cloned();
    }
    None
}

/// Returns the length of the log at which the region that holds it back is flushed.
pub(crate) fn log_limit_bytes(engine: &Engine) -> u64 {
    (4 * engine.options().wal_segment_bytes).max(engine.pressure.soft_limit_bytes())
}

fn run_compactions(engine: &Engine) {
    while let Some(task) = engine.schedule.next(&|| engine.regions(), engine) {
        let watch = CompactionProgress::over(&engine.schedule, &task);
        let done = task.region().compact(task.family(), &task.plan, engine, &watch);
        let (table, region) = (task.region().table(), task.region().id());
        let is_major = task.plan.sees_oldest();
        engine.schedule.end(task, done);
        // Without a wait for definitions, which may wait for compactions.
        if is_major && let Some(defining) = engine.ddl_lock.try_lock() {
            let removed = applied_rules::remove(engine, table, &defining);
            if let Err(error) = removed
                && !matches!(error, Error::ShutDown)
            {
                tracing::error!(%error, table = table.0, "could not remove retired rules");
            }
        }
        engine.splits.want(region);
        // Writers may wait for fewer files.
        engine.pressure.relieve();
    }
}
