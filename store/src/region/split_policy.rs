//! Split policies of HBase: the decision whether a region is due for an automatic split.
//!
//! They are pure functions of metrics, so that tables of cases can test them.

use std::time::Duration;

use crate::descriptor::{RegionId, SplitOptions, SplitPolicy};

/// Number of a table's regions above which a split requires MAX_FILESIZE: HBase's value.
const REGIONS_MAX: u64 = 100;
/// Maximal jitter of MAX_FILESIZE for a region, in thousandths, so that regions that were filled
/// evenly are not all split at once. HBase's value.
const JITTER_MILLIS: i64 = 125;
/// Fraction of waiting writes from which a region is busy.
const BUSY_SHARE: f64 = 0.2;
/// Minimal age of a busy region.
const BUSY_AGE: Duration = Duration::from_secs(600);
/// Window of the fraction of waiting writes.
const BUSY_WINDOW: Duration = Duration::from_secs(300);

/// Metrics of a region for a split decision.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SplitMetrics {
    /// The region.
    pub(crate) region: RegionId,
    /// Bytes of the files of its largest family.
    pub(crate) bytes: u64,
    /// Number of regions of its table.
    pub(crate) table_regions: u64,
    /// Size at which its memstores are flushed.
    pub(crate) flush_bytes: u64,
    /// Time since it was opened.
    pub(crate) age: Duration,
    /// Recent fraction of writes that had to wait.
    pub(crate) blocked_share: f64,
}

/// Returns whether a region is due for a split.
pub(crate) fn is_due(options: &SplitOptions, facts: &SplitMetrics) -> bool {
    let moved = moved(options.max_file_bytes, facts.region);
    let is_busy = options.policy == SplitPolicy::Busy
        && facts.age >= BUSY_AGE
        && facts.blocked_share >= BUSY_SHARE;
    is_busy
        || facts.bytes > size_limit(&options.policy, moved, facts.table_regions, facts.flush_bytes)
}

/// Returns the size up to which no region of a table with this number of regions is split because
/// of its size, regardless of its jitter. It does not decrease as the number of regions grows.
pub(crate) fn unsplit_bytes(options: &SplitOptions, table_regions: u64, flush_bytes: u64) -> u64 {
    let least = with_jitter(options.max_file_bytes, -JITTER_MILLIS);
    size_limit(&options.policy, least, table_regions, flush_bytes)
}

/// Returns the size above which a region is split; `moved` is its MAX_FILESIZE.
fn size_limit(policy: &SplitPolicy, moved: u64, table_regions: u64, flush_bytes: u64) -> u64 {
    let first = flush_bytes.saturating_mul(2);
    match policy {
        SplitPolicy::Disabled => u64::MAX,
        SplitPolicy::Stepping if table_regions == 1 => first.min(moved),
        SplitPolicy::ConstantSize | SplitPolicy::Stepping => moved,
        SplitPolicy::IncreasingToUpperBound
        | SplitPolicy::KeyPrefix { .. }
        | SplitPolicy::DelimitedKeyPrefix { .. }
        | SplitPolicy::Busy => match table_regions {
            0 | REGIONS_MAX.. => moved,
            regions => first.saturating_mul(regions.saturating_pow(3)).min(moved),
        },
    }
}

/// Returns MAX_FILESIZE with the region's jitter, which is constant.
fn moved(max_bytes: u64, region: RegionId) -> u64 {
    let spread = region.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    let thousandths = spread as i64 * 2 * JITTER_MILLIS / i64::from(u32::MAX) - JITTER_MILLIS;
    with_jitter(max_bytes, thousandths)
}

fn with_jitter(max_bytes: u64, thousandths: i64) -> u64 {
    let by = i128::from(max_bytes) * i128::from(thousandths) / 1000;
    u64::try_from(i128::from(max_bytes) + by).unwrap_or(u64::MAX)
}

/// Moving average of the fraction of a region's writes that had to wait.
#[derive(Debug, Default)]
pub(crate) struct BlockedShare {
    window_began_micros: Option<i64>,
    /// The counts at the start of the window.
    before: (u64, u64),
    /// The fraction in the previous window.
    last: f64,
}

impl BlockedShare {
    /// Records the rows written and the rows that had to wait, both since the region was opened;
    /// returns the present fraction: that of the current window weighted by its elapsed part, and
    /// that of the previous window for the rest.
    pub(crate) fn note(&mut self, now_micros: i64, (blocked, all): (u64, u64)) -> f64 {
        let began = *self.window_began_micros.get_or_insert(now_micros);
        let (new_blocked, new_all) = (blocked - self.before.0, all - self.before.1);
        let share = if new_all == 0 { 0.0 } else { new_blocked as f64 / new_all as f64 };
        let passed = now_micros.saturating_sub(began).max(0) as f64;
        let passed = passed / BUSY_WINDOW.as_micros() as f64;
        if passed >= 1.0 {
            self.window_began_micros = Some(now_micros);
            self.before = (blocked, all);
            self.last = share;
            return share;
        }
        (1.0 - passed) * self.last + passed * share
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn facts(mib: u64, table_regions: u64) -> SplitMetrics {
        SplitMetrics {
            region: RegionId(0),
            bytes: mib * MIB,
            table_regions,
            flush_bytes: 128 * MIB,
            age: Duration::from_secs(3600),
            blocked_share: 0.0,
        }
    }

    /// Returns the sizes in MiB from which a region is split, for tables with these numbers of
    /// regions.
    fn sizes(policy: SplitPolicy, regions: &[u64]) -> Vec<Option<u64>> {
        let options = SplitOptions { policy, max_file_bytes: 10 << 30, ..SplitOptions::default() };
        let least = |&regions: &u64| {
            let sizes = || 1..20_000;
            sizes().find(|mib| is_due(&options, &facts(*mib, regions))).map(|mib| mib - 1)
        };
        regions.iter().map(least).collect()
    }

    #[test]
    fn split_sizes_match_hbase() {
        // The jitter of region 0 is minus an eighth: 10 GiB become 8960 MiB.
        let max = 8960;
        let regions = [1, 2, 3, 4, 100, 1000];
        assert_eq!(sizes(SplitPolicy::Disabled, &regions), [None; 6]);
        assert_eq!(sizes(SplitPolicy::ConstantSize, &regions), [Some(max); 6]);
        let stepping = [256, max, max, max, max, max].map(Some);
        assert_eq!(sizes(SplitPolicy::Stepping, &regions), stepping);
        let increasing = [256, 2048, 6912, max, max, max].map(Some);
        for policy in [
            SplitPolicy::IncreasingToUpperBound,
            SplitPolicy::KeyPrefix { length: 4 },
            SplitPolicy::DelimitedKeyPrefix { delimiter: b"_".to_vec() },
            SplitPolicy::Busy,
        ] {
            assert_eq!(sizes(policy, &regions), increasing);
        }
    }

    #[test]
    fn split_size_jitter_is_at_most_one_eighth() {
        let moved: Vec<u64> = (0..1000).map(|region| moved(1000, RegionId(region))).collect();
        assert!(moved.iter().all(|bytes| (875..=1125).contains(bytes)));
        assert!(moved.iter().any(|bytes| *bytes < 900) && moved.iter().any(|bytes| *bytes > 1100));
    }

    #[test]
    fn unsplit_size_grows_with_regions_and_is_never_split() {
        for policy in [
            SplitPolicy::Disabled,
            SplitPolicy::ConstantSize,
            SplitPolicy::Stepping,
            SplitPolicy::IncreasingToUpperBound,
            SplitPolicy::Busy,
        ] {
            let options = SplitOptions { policy, ..SplitOptions::default() };
            let sizes = (1..120).map(|regions| unsplit_bytes(&options, regions, 128 * MIB));
            let sizes: Vec<u64> = sizes.collect();
            assert!(sizes.is_sorted(), "{:?}", options.policy);
            for (bytes, table_regions) in sizes.into_iter().zip(1..) {
                let region =
                    |id| SplitMetrics { region: RegionId(id), bytes, ..facts(0, table_regions) };
                assert!((0..100).all(|id| !is_due(&options, &region(id))), "{:?}", options.policy);
            }
        }
    }

    #[test]
    fn busy_policy_splits_at_one_fifth_blocked_writes() {
        let options = SplitOptions { policy: SplitPolicy::Busy, ..SplitOptions::default() };
        let due = |blocked_share, minutes: u64| {
            let age = Duration::from_secs(60 * minutes);
            is_due(&options, &SplitMetrics { blocked_share, age, ..facts(1, 1) })
        };
        assert!(due(0.2, 10));
        assert!(!due(0.19, 10));
        assert!(!due(0.9, 9), "too young");
    }

    #[test]
    fn blocked_share_follows_recent_windows() {
        const MINUTE: i64 = 60_000_000;
        let mut share = BlockedShare::default();
        assert_eq!(share.note(0, (0, 0)), 0.0);
        assert_eq!(share.note(MINUTE, (50, 100)), 0.1, "a fifth of the window, half of it blocked");
        assert_eq!(share.note(5 * MINUTE, (50, 100)), 0.5, "the window is over");
        assert_eq!(share.note(6 * MINUTE, (50, 200)), 0.4);
        assert_eq!(share.note(10 * MINUTE, (50, 1000)), 0.0);
    }

    #[test]
    fn split_point_keeps_key_prefixes_together() {
        let point = |policy: SplitPolicy, middle: &str| {
            String::from_utf8(policy.point(middle.as_bytes().to_vec())).unwrap()
        };
        assert_eq!(point(SplitPolicy::Stepping, "user1_x"), "user1_x");
        assert_eq!(point(SplitPolicy::KeyPrefix { length: 5 }, "user1_x"), "user1");
        assert_eq!(point(SplitPolicy::KeyPrefix { length: 50 }, "user1_x"), "user1_x");
        let delimited = || SplitPolicy::DelimitedKeyPrefix { delimiter: b"_".to_vec() };
        assert_eq!(point(delimited(), "user1_x_y"), "user1");
        assert_eq!(point(delimited(), "user1"), "user1");
    }
}
