//! Plan cache of a session: plans of prepared statements, of texts that a client repeats, of
//! functions, and of the checks of foreign keys.
//!
//! ```text
//!   prepared statement ──┐                                ┌── size limit: evicts the least
//!   repeated text ───────┤                                │   recently used plans
//!   called function ─────┼── PlanCacheKey ──> PlanCache ──┤
//!   referential check ───┘                                └── memory governor: drops all plans
//! ```
//!
//! A plan is found by what it was made for ([`PlanCacheKey`]). Its users may keep a reference, as
//! a prepared statement and the calls of a function do. They check before each use that it is
//! valid ([`PlanValidity::is_current`]), and plan again if not. An evicted plan is freed when its
//! execution has ended.
//!
//! The memory of plans belongs to the account of the session; their sizes are
//! [measured](store::memory::measure) while they are made.

use std::any::Any;
use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicIsize, AtomicU64, Ordering::Relaxed};

use ahash::AHashMap;
use parking_lot::Mutex;
use store::{Sequence, memory};
use types::SqlType;
use types::expr::Routine;

use crate::activity::SessionPlans;
use crate::catalog::name::SearchPath;
use crate::planner::statistics::{Statistics, TableSizes};

/// Maximum size of the plans, in bytes.
const PLAN_BYTES_MAX: usize = 32 << 20;
/// Divisor of the memory limit that bounds them as well: a 16th.
const MEMORY_PART: usize = 16;
/// Minimum size of a plan with its entry; the size where allocations are not counted.
const PLAN_BYTES_MIN: usize = 2 << 10;
/// Maximum length of a repeated text: for longer ones, planning is a small part of the work.
const TEXT_BYTES_MAX: usize = 8 << 10;
/// Number of slots for texts that came once; a later text may displace an earlier one.
const SEEN: usize = 256;

/// Key of a plan: what it was made for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct PlanCacheKey<'k> {
    subject: PlanSubject<'k>,
    search_path: Arc<SearchPath>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum PlanSubject<'k> {
    /// Text of a message with one statement.
    Message(Cow<'k, str>),
    /// Text of a statement, and the types of its parameters.
    Statement(Cow<'k, str>, Cow<'k, [SqlType]>),
    /// Call of a function, with its types.
    Call(Cow<'k, Routine>),
}

impl<'k> PlanCacheKey<'k> {
    /// Returns the key of the text of a message, unless it is long.
    pub(crate) fn of_message(text: &'k str, path: &Arc<SearchPath>) -> Option<PlanCacheKey<'k>> {
        let subject = PlanSubject::Message(Cow::Borrowed(text));
        (text.len() <= TEXT_BYTES_MAX)
            .then(|| PlanCacheKey { subject, search_path: Arc::clone(path) })
    }

    /// Returns the key of a statement with parameters of these types.
    pub(crate) fn of_statement(
        text: &'k str,
        types: &'k [SqlType],
        path: &Arc<SearchPath>,
    ) -> PlanCacheKey<'k> {
        let subject = PlanSubject::Statement(Cow::Borrowed(text), Cow::Borrowed(types));
        PlanCacheKey { subject, search_path: Arc::clone(path) }
    }

    /// Returns the key of the body of a function for a call.
    pub(crate) fn of_call(routine: &'k Routine, path: &Arc<SearchPath>) -> PlanCacheKey<'k> {
        let subject = PlanSubject::Call(Cow::Borrowed(routine));
        PlanCacheKey { subject, search_path: Arc::clone(path) }
    }

    /// Returns the key without borrowed parts.
    pub(crate) fn into_owned(self) -> PlanCacheKey<'static> {
        let subject = match self.subject {
            PlanSubject::Message(text) => PlanSubject::Message(Cow::Owned(text.into_owned())),
            PlanSubject::Statement(text, types) => {
                let types = Cow::Owned(types.into_owned());
                PlanSubject::Statement(Cow::Owned(text.into_owned()), types)
            }
            PlanSubject::Call(routine) => PlanSubject::Call(Cow::Owned(routine.into_owned())),
        };
        PlanCacheKey { subject, search_path: self.search_path }
    }
}

/// Present state of what plans depend on.
#[derive(Clone, Copy)]
pub(crate) struct PlanningState<'a> {
    pub(crate) catalog_version: u64,
    pub(crate) search_path: &'a Arc<SearchPath>,
    /// Snapshot of the transaction, if it does not see all indexes.
    pub(crate) old_snapshot: Option<Sequence>,
    /// Setting `enable_maintained_views`.
    pub(crate) reads_views: bool,
    /// Permission of a query to read eventual indexes; `None` if there are none.
    pub(crate) reads_followed: Option<bool>,
    pub(crate) statistics: &'a dyn Statistics,
}

/// State that a plan was made in.
pub(crate) struct PlanValidity {
    /// [`Catalog::version`](crate::catalog::Catalog::version).
    pub(crate) catalog_version: u64,
    search_path: Arc<SearchPath>,
    /// Snapshot whose invisible indexes the plan avoids.
    old_snapshot: Option<Sequence>,
    reads_views: bool,
    /// Permission of the plan to read eventual indexes; `None` if its tables have none.
    reads_followed: Option<bool>,
    sizes: TableSizes,
}

impl PlanValidity {
    /// Returns the validity of a plan that is made now, for tables of these sizes.
    pub(crate) fn new(
        now: &PlanningState<'_>,
        reads_followed: Option<bool>,
        sizes: TableSizes,
    ) -> PlanValidity {
        let PlanningState { catalog_version, search_path, old_snapshot, reads_views, .. } = *now;
        let search_path = Arc::clone(search_path);
        PlanValidity {
            catalog_version,
            search_path,
            old_snapshot,
            reads_views,
            reads_followed,
            sizes,
        }
    }

    /// Returns whether the plan is valid now.
    pub(crate) fn is_current(&self, now: &PlanningState<'_>) -> bool {
        self.catalog_version == now.catalog_version
            && self.old_snapshot == now.old_snapshot
            && self.reads_views == now.reads_views
            && (self.reads_followed.is_none() || self.reads_followed == now.reads_followed)
            && (Arc::ptr_eq(&self.search_path, now.search_path)
                || self.search_path == *now.search_path)
            && self.sizes.are_similar(now.statistics)
    }
}

/// Size and last use of a cached plan.
#[derive(Default)]
pub(crate) struct PlanUsage {
    pub(crate) bytes: AtomicIsize,
    pub(crate) last_used: AtomicU64,
}

/// An entry of the plan cache.
pub(crate) trait CachedPlan: Any + Send + Sync {
    /// Returns the size and the last use of the plan.
    fn usage(&self) -> &PlanUsage;

    /// Returns whether the plan is valid now.
    fn is_current(&self, now: &PlanningState<'_>) -> bool;

    /// Drops the plan of an entry that has other owners.
    fn forget_plan(&self) {}
}

/// Plan cache; see the module.
pub(crate) struct PlanCache {
    entries: Mutex<PlanCacheEntries>,
    /// Counter of uses, for LRU replacement. Concurrent uses may have the same number.
    clock: AtomicU64,
    bytes_max: usize,
}

#[derive(Default)]
struct PlanCacheEntries {
    plans: AHashMap<PlanCacheKey<'static>, Arc<dyn CachedPlan>>,
    /// Hashes of texts that came once.
    seen: Vec<u64>,
}

impl Default for PlanCache {
    fn default() -> PlanCache {
        PlanCache::new(PLAN_BYTES_MAX)
    }
}

impl PlanCache {
    /// Returns an empty cache with a maximum size of its plans.
    pub(crate) fn new(bytes_max: usize) -> PlanCache {
        PlanCache { entries: Mutex::default(), clock: AtomicU64::new(0), bytes_max }
    }

    /// Returns the plan of a key, which may not be valid any more.
    pub(crate) fn find<T: CachedPlan>(&self, key: &PlanCacheKey<'_>) -> Option<Arc<T>> {
        let plan = Arc::clone(self.entries.lock().plans.get(key)?);
        self.touch(plan.usage());
        let plan: Arc<dyn Any + Send + Sync> = plan;
        plan.downcast().ok()
    }

    /// Records a use of a plan.
    pub(crate) fn touch(&self, usage: &PlanUsage) {
        let now = self.clock.load(Relaxed) + 1;
        self.clock.store(now, Relaxed);
        usage.last_used.store(now, Relaxed);
    }

    /// Adds a plan.
    pub(crate) fn add<T: CachedPlan>(&self, key: PlanCacheKey<'_>, plan: &Arc<T>) {
        self.touch(plan.usage());
        let replaced = self.entries.lock().plans.insert(key.into_owned(), Arc::<T>::clone(plan));
        drop(replaced);
        self.evict();
    }

    /// Adds the plan of a message if its text came before: a client with literals in its texts
    /// does not fill the cache.
    pub(crate) fn add_repeated<T: CachedPlan>(&self, key: PlanCacheKey<'_>, plan: &Arc<T>) {
        let mut entries = self.entries.lock();
        let hash = entries.plans.hasher().hash_one(&key);
        entries.seen.resize(SEEN, 0);
        let seen = std::mem::replace(&mut entries.seen[hash as usize % SEEN], hash);
        drop(entries);
        if seen == hash {
            self.add(key, plan);
        }
    }

    /// Evicts the least recently used plans while all together exceed the maximum size. The last
    /// one stays.
    pub(crate) fn evict(&self) {
        let bytes_max = memory::limit().map_or(usize::MAX, |limit| limit / MEMORY_PART);
        let mut entries = self.entries.lock();
        let mut bytes = entries.byte_count();
        while bytes > bytes_max.min(self.bytes_max) && entries.plans.len() > 1 {
            let last_used = |plan: &Arc<dyn CachedPlan>| plan.usage().last_used.load(Relaxed);
            let oldest = entries.plans.iter().min_by_key(|(_, plan)| last_used(plan));
            let Some(oldest) = oldest.map(|(key, _)| key.clone()) else { return };
            if let Some(plan) = entries.plans.remove(&oldest) {
                bytes -= byte_count(&plan);
                plan.forget_plan();
            }
        }
    }
}

#[cfg(test)]
impl PlanCache {
    /// Returns the size of the plans in bytes.
    pub(crate) fn byte_count(&self) -> usize {
        self.entries.lock().byte_count()
    }
}

impl SessionPlans for PlanCache {
    fn drop_plans(&self) {
        let plans = std::mem::take(&mut self.entries.lock().plans);
        plans.values().for_each(|plan| plan.forget_plan());
    }
}

impl PlanCacheEntries {
    fn byte_count(&self) -> usize {
        self.plans.values().map(byte_count).sum()
    }
}

fn byte_count(plan: &Arc<dyn CachedPlan>) -> usize {
    plan.usage().bytes.load(Relaxed).max(0).cast_unsigned().max(PLAN_BYTES_MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct TestPlan(PlanUsage);

    impl CachedPlan for TestPlan {
        fn usage(&self) -> &PlanUsage {
            &self.0
        }

        fn is_current(&self, _now: &PlanningState<'_>) -> bool {
            true
        }
    }

    fn key(text: &str) -> PlanCacheKey<'_> {
        PlanCacheKey::of_message(text, &Arc::default()).unwrap()
    }

    fn has(cache: &PlanCache, text: &str) -> bool {
        cache.find::<TestPlan>(&key(text)).is_some()
    }

    #[test]
    fn text_is_cached_at_second_use() {
        let (cache, plan) = (PlanCache::default(), Arc::new(TestPlan::default()));
        cache.add_repeated(key("a"), &plan);
        assert!(!has(&cache, "a"));
        cache.add_repeated(key("a"), &plan);
        assert!(has(&cache, "a"));
        cache.drop_plans();
        assert!(!has(&cache, "a"));
        let long = "x".repeat(TEXT_BYTES_MAX + 1);
        assert!(PlanCacheKey::of_message(&long, &Arc::default()).is_none());
    }

    #[test]
    fn plan_cache_evicts_least_recently_used() {
        let cache = PlanCache::new(4 * PLAN_BYTES_MIN);
        for text in ["0", "1", "2", "3"] {
            cache.add(key(text), &Arc::new(TestPlan::default()));
        }
        assert!(has(&cache, "0"));
        cache.add(key("4"), &Arc::new(TestPlan::default()));
        assert!(has(&cache, "0") && has(&cache, "4"));
        assert!(!has(&cache, "1"));
        let usage = PlanUsage { bytes: AtomicIsize::new(1 << 20), ..PlanUsage::default() };
        cache.add(key("large"), &Arc::new(TestPlan(usage)));
        assert!(has(&cache, "large") && !has(&cache, "0"));
        assert_eq!(cache.entries.lock().plans.len(), 1);
    }
}
