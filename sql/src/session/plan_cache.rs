//! Plan cache of a session for unnamed statements, by statement text.
//!
//! A plan is cached when its text comes a second time, so that a client with literals in its
//! texts does not fill the cache. The caller checks that a cached plan is valid
//! (`Planned::is_current`).

use std::sync::Arc;

use ahash::{AHashMap, RandomState};

use crate::session::prepared::PreparedStatement;

/// Maximum number of plans.
const PLANS_MAX: usize = 128;
/// Maximum length of a text: for longer ones, planning is a small part of the work.
const TEXT_BYTES_MAX: usize = 8 << 10;
/// Number of slots for texts that came once; a later text may displace an earlier one.
const SEEN: usize = 256;

/// Plan cache; see the module.
pub(super) struct PlanCache {
    plans: AHashMap<Box<str>, CachedStatement>,
    /// Hashes of texts that came once.
    seen: Vec<u64>,
    hasher: RandomState,
    /// Counter of uses, for LRU replacement.
    clock: u64,
}

struct CachedStatement {
    prepared: Arc<PreparedStatement>,
    last_used: u64,
}

impl PlanCache {
    /// Returns an empty cache.
    pub(super) fn new() -> PlanCache {
        PlanCache { plans: AHashMap::new(), seen: Vec::new(), hasher: RandomState::new(), clock: 0 }
    }

    /// Returns the plan of a text.
    pub(super) fn get(&mut self, text: &str) -> Option<Arc<PreparedStatement>> {
        let entry = self.plans.get_mut(text)?;
        self.clock += 1;
        entry.last_used = self.clock;
        Some(Arc::clone(&entry.prepared))
    }

    /// Records a text and its plan; returns whether the plan is cached now.
    pub(super) fn add(&mut self, text: &str, prepared: &Arc<PreparedStatement>) -> bool {
        if text.len() > TEXT_BYTES_MAX {
            return false;
        }
        let hash = self.hasher.hash_one(text);
        self.seen.resize(SEEN, 0);
        let seen = &mut self.seen[hash as usize % SEEN];
        if std::mem::replace(seen, hash) != hash {
            return false;
        }
        if self.plans.len() >= PLANS_MAX {
            let oldest = self.plans.iter().min_by_key(|(_, entry)| entry.last_used);
            if let Some(oldest) = oldest.map(|(text, _)| text.clone()) {
                self.plans.remove(&oldest);
            }
        }
        self.clock += 1;
        let entry = CachedStatement { prepared: Arc::clone(prepared), last_used: self.clock };
        self.plans.insert(text.into(), entry);
        true
    }

    /// Removes the plan of a text.
    pub(super) fn remove(&mut self, text: &str) {
        self.plans.remove(text);
    }

    /// Removes all plans.
    pub(super) fn clear(&mut self) {
        self.plans.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::prepared::PreparedKind;

    fn prepared() -> Arc<PreparedStatement> {
        let parsed = crate::parser::parse_statements("SELECT 1").unwrap().remove(0);
        Arc::new(PreparedStatement {
            parameter_types: Vec::new(),
            columns: None,
            text: parsed.text.clone(),
            kind: PreparedKind::Utility(Arc::new(parsed)),
            runs: Default::default(),
        })
    }

    #[test]
    fn plan_is_cached_at_second_use() {
        let mut cache = PlanCache::new();
        cache.add("a", &prepared());
        assert!(cache.get("a").is_none());
        cache.add("a", &prepared());
        assert!(cache.get("a").is_some());
        cache.remove("a");
        assert!(cache.get("a").is_none());
        let long = "x".repeat(TEXT_BYTES_MAX + 1);
        cache.add(&long, &prepared());
        cache.add(&long, &prepared());
        assert!(cache.get(&long).is_none());
    }

    #[test]
    fn plan_cache_evicts_least_recently_used() {
        let mut cache = PlanCache::new();
        for number in 0..PLANS_MAX {
            let text = number.to_string();
            cache.add(&text, &prepared());
            cache.add(&text, &prepared());
        }
        assert!(cache.get("0").is_some());
        cache.add("new", &prepared());
        cache.add("new", &prepared());
        assert_eq!(cache.plans.len(), PLANS_MAX);
        assert!(cache.get("0").is_some() && cache.get("new").is_some());
        assert!(cache.get("1").is_none());
    }
}
