//! Rules of expiry and versions of a family over time: the present ones and those that changes of
//! the descriptor have retired.
//!
//! ```text
//!   sequences  ──── retired[0] ────┤ retired[1] ─┤ present rule ────▶   VERSIONS
//!   time       ──── retired[0] ────┤ retired[1] ─┤ present rule ────▶   TTL, MIN_VERSIONS
//! ```
//!
//! A cell is expired at a time if it was expired by the rule of that time, or at the end of an
//! earlier rule. So a higher TTL does not make a cell visible again. VERSIONS applies to the
//! commits of its rule ([`retention`](crate::scan::retention)).

use std::time::Duration;

use smallvec::SmallVec;

use crate::cell::Timestamp;
use crate::descriptor::{FamilyDescriptor, RetiredRule};

/// Expiry at the end of a retired rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ExpiryFloor {
    /// Cells below had expired.
    pub(crate) expiry: Timestamp,
    /// Number of versions that the rule retained beyond that.
    pub(crate) min_versions: u32,
    /// The last commit under the rule.
    pub(crate) last_sequence: u64,
}

/// Ends of the retired rules of a family, with the TTLs that alone decided about expiry, in
/// microseconds; `i64::MAX` for none.
#[derive(Debug, Clone)]
pub(crate) struct ExpirySteps {
    steps: SmallVec<[(i64, i64); 1]>,
    /// That of the present rule.
    ttl: i64,
}

impl ExpirySteps {
    /// Returns the last moment at which a cell may be visible by the TTLs, or a later one;
    /// `i64::MAX` if it never expires by them alone.
    pub(crate) fn last_visible(&self, timestamp: Timestamp) -> i64 {
        let mut begin = i64::MIN;
        for &(until, ttl) in &self.steps {
            let last = timestamp.0.saturating_add(ttl);
            if last < until {
                return last.max(begin);
            }
            // From then on the next rule applies.
            begin = until.saturating_sub(1);
        }
        timestamp.0.saturating_add(self.ttl).max(begin)
    }
}

/// The rules of a family at one time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RulesAt<'a> {
    family: &'a FamilyDescriptor,
    now_micros: i64,
    /// The number of rules that had ended.
    ended: usize,
}

impl FamilyDescriptor {
    /// Returns the rules at a time.
    pub(crate) fn rules_at(&self, now_micros: i64) -> RulesAt<'_> {
        let ended = self.retired.partition_point(|rule| rule.until_micros <= now_micros);
        RulesAt { family: self, now_micros, ended }
    }

    /// Returns the ends of the rules and their TTLs.
    pub(crate) fn expiry_steps(&self) -> ExpirySteps {
        let steps = self.retired.iter().map(|rule| {
            (rule.until_micros, alone(rule.ttl, rule.min_versions).map_or(i64::MAX, micros))
        });
        let ttl = alone(self.ttl, self.min_versions).map_or(i64::MAX, micros);
        ExpirySteps { steps: steps.collect(), ttl }
    }

    /// Returns whether cells may expire by a TTL of the family.
    pub(crate) fn has_ttl(&self) -> bool {
        self.ttl.is_some() || self.retired.iter().any(|rule| rule.ttl.is_some())
    }

    /// Returns whether these rules of expiry and versions differ from those of another descriptor.
    pub(crate) fn has_other_rule(&self, other: &FamilyDescriptor) -> bool {
        (self.versions, self.min_versions, self.ttl)
            != (other.versions, other.min_versions, other.ttl)
    }

    /// Returns the rule as retired after a commit, at a time.
    pub(crate) fn retire(&self, last_sequence: u64, until_micros: i64) -> RetiredRule {
        RetiredRule {
            last_sequence,
            until_micros,
            versions: self.versions,
            min_versions: self.min_versions,
            ttl: self.ttl,
        }
    }
}

/// Returns the rules that remain of the first `count` ones once compactions have applied them to
/// all cells: at most one, which hides what their TTLs had ended and what is written with such a
/// timestamp afterwards. Versions that they retained beyond a TTL need no rule: the others are
/// gone.
pub(crate) fn applied(family: &FamilyDescriptor, count: usize) -> Vec<RetiredRule> {
    let (applied, later) = family.retired.split_at(count);
    let Some(last) = applied.last() else { return family.retired.clone() };
    let floors = applied.iter().filter(|rule| rule.min_versions == 0);
    let floor = floors.map(|rule| expiry_of(rule.ttl, rule.until_micros)).max();
    let floor = floor.filter(|floor| floor.0 != i64::MIN).map(|floor| RetiredRule {
        // No more versions are left than the next rule retains.
        versions: later.first().map_or(family.versions, |rule| rule.versions),
        min_versions: 0,
        ttl: Some(Duration::from_micros(last.until_micros.abs_diff(floor.0))),
        ..last.clone()
    });
    floor.into_iter().chain(later.iter().cloned()).collect()
}

impl RulesAt<'_> {
    /// Returns MIN_VERSIONS.
    pub(crate) fn min_versions(&self) -> u32 {
        match self.family.retired.get(self.ended) {
            Some(rule) => rule.min_versions,
            None => self.family.min_versions,
        }
    }

    /// Returns the timestamp below which cells have expired by the TTL of the time.
    pub(crate) fn own_expiry(&self) -> Timestamp {
        let ttl = match self.family.retired.get(self.ended) {
            Some(rule) => rule.ttl,
            None => self.family.ttl,
        };
        expiry_of(ttl, self.now_micros)
    }

    /// Returns what had expired at the ends of the earlier rules.
    pub(crate) fn floors(&self) -> impl Iterator<Item = ExpiryFloor> {
        self.family.retired[..self.ended].iter().map(|rule| ExpiryFloor {
            expiry: expiry_of(rule.ttl, rule.until_micros),
            min_versions: rule.min_versions,
            last_sequence: rule.last_sequence,
        })
    }

    /// Returns the timestamp from which on no cell has expired.
    pub(crate) fn live_from(&self) -> Timestamp {
        let floors = self.floors().map(|floor| floor.expiry);
        floors.fold(self.own_expiry(), Timestamp::max)
    }

    /// Returns the timestamp below which all cells have expired.
    pub(crate) fn dead_below(&self) -> Timestamp {
        let own = match self.min_versions() {
            0 => self.own_expiry(),
            _ => Timestamp(i64::MIN),
        };
        let floors = self.floors().filter(|floor| floor.min_versions == 0);
        floors.map(|floor| floor.expiry).fold(own, Timestamp::max)
    }
}

fn alone(ttl: Option<Duration>, min_versions: u32) -> Option<Duration> {
    ttl.filter(|_| min_versions == 0)
}

fn expiry_of(ttl: Option<Duration>, now_micros: i64) -> Timestamp {
    Timestamp(ttl.map_or(i64::MIN, |ttl| now_micros.saturating_sub(micros(ttl))))
}

fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}
