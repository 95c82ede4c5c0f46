//! Compaction options of a family: the policies and their parameters, as plain data.
//!
//! The policies are implemented in [`crate::compaction`]. Ratios are percentages, so that
//! descriptors compare and print exactly.

use std::time::Duration;

/// Compaction options of a family.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompactionOptions {
    /// The policy that selects files.
    pub policy: CompactionPolicy,
    /// Size at which an output file of a compaction is closed and the next one started.
    pub file_bytes: u64,
    /// Number of sorted runs at which writers wait for compactions.
    pub blocking_files: u32,
    /// Age of the oldest file at which all files are merged. `None`: never. Zero is invalid.
    ///
    /// Default: never. A merge that includes the oldest files of its rows drops markers and
    /// masked cells anyway, and expired files are dropped without being read; the rest rarely
    /// justifies rewriting everything periodically.
    pub major_period: Option<Duration>,
    /// Maximal random shift of the period, so that not all stores are due at once, in percent.
    pub major_jitter_percent: u32,
}

/// Compaction policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CompactionPolicy {
    /// HBase's exploring policy: adjacent files of about equal size. Lowest write amplification.
    Exploring(ExploringOptions),
    /// RocksDB's leveled policy: levels that grow tenfold. Lowest space amplification and fewest
    /// runs.
    Leveled(LeveledOptions),
    /// HBase's date-tiered policy: files of one window of time. For time series.
    DateTiered(DateTieredOptions),
    /// Nothing is merged; files are dropped when all their cells have expired. Requires a TTL.
    Fifo,
}

/// Parameters of the exploring policy; the defaults are HBase's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExploringOptions {
    /// Minimal number of runs per merge.
    pub min_files: u32,
    /// Maximal number of runs per merge.
    pub max_files: u32,
    /// Maximal size of a run relative to the sum of the others, in percent.
    pub ratio_percent: u32,
    /// The same in off-peak hours.
    pub off_peak_ratio_percent: u32,
    /// Runs that are smaller together are merged regardless of the ratio. `None`: the size of a
    /// flush.
    pub min_bytes: Option<u64>,
    /// Runs that are larger together are merged only by a major compaction. `None`: no limit.
    pub max_bytes: Option<u64>,
}

/// Parameters of the leveled policy; the defaults are RocksDB's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeveledOptions {
    /// Number of level-0 runs at which they are merged into the first level.
    pub level0_files: u32,
    /// Target size of the first level in use.
    pub base_bytes: u64,
    /// Size ratio between adjacent levels.
    pub multiplier: u32,
}

/// Parameters of the date-tiered policy; the defaults are HBase's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DateTieredOptions {
    /// Width of the newest window.
    pub base_window: Duration,
    /// Number of windows of one width; the next tier's windows are this many times as wide.
    pub windows_per_tier: u32,
    /// Age beyond which windows do not become wider. `None`: no limit.
    pub max_age: Option<Duration>,
    /// Number of runs of the newest window at which they are merged.
    pub incoming_files: u32,
    /// Selection within a window.
    pub within: ExploringOptions,
}

impl Default for CompactionOptions {
    fn default() -> CompactionOptions {
        CompactionOptions::of(CompactionPolicy::Exploring(ExploringOptions::default()))
    }
}

impl CompactionOptions {
    /// Returns a policy with the defaults for it.
    pub fn of(policy: CompactionPolicy) -> CompactionOptions {
        let file_bytes = match policy {
            CompactionPolicy::Leveled(_) => 64 << 20,
            _ => 1 << 30,
        };
        // Each time window is a separate run.
        let blocking_files = match policy {
            CompactionPolicy::DateTiered(_) => 60,
            _ => 16,
        };
        CompactionOptions {
            policy,
            file_bytes,
            blocking_files,
            major_period: None,
            major_jitter_percent: 50,
        }
    }

    /// Returns the reason why the options are invalid, if they are, given the family's TTL and
    /// MIN_VERSIONS.
    pub fn objection(&self, ttl: Option<Duration>, min_versions: u32) -> Option<&'static str> {
        if self.file_bytes == 0 || self.blocking_files < 2 {
            return Some("file size must be greater than zero and blocking file count at least 2");
        }
        if self.major_period.is_some_and(|period| period.is_zero())
            || self.major_jitter_percent > 100
        {
            return Some(
                "major compaction period must be greater than zero and jitter at most 100 percent",
            );
        }
        match &self.policy {
            CompactionPolicy::Exploring(options) => options.objection(),
            CompactionPolicy::Leveled(options) => {
                (options.level0_files < 2 || options.base_bytes == 0 || options.multiplier < 2)
                    .then_some(
                        "level size must be greater than zero, and level 0 file count and \
                         multiplier at least 2",
                    )
            }
            CompactionPolicy::DateTiered(options) => {
                let flat = options.base_window.as_micros() == 0
                    || options.windows_per_tier < 2
                    || options.incoming_files < 2;
                let flat = flat.then_some(
                    "base window must be greater than zero, and windows per tier and incoming file \
                     count at least 2",
                );
                flat.or_else(|| options.within.objection())
            }
            CompactionPolicy::Fifo if ttl.is_none() => Some("FIFO compaction requires a TTL"),
            CompactionPolicy::Fifo if min_versions > 0 => {
                Some("FIFO compaction does not support MIN_VERSIONS")
            }
            CompactionPolicy::Fifo => None,
        }
    }
}

impl CompactionPolicy {
    /// Returns its name in SQL.
    pub fn name(&self) -> &'static str {
        match self {
            CompactionPolicy::Exploring(_) => "exploring",
            CompactionPolicy::Leveled(_) => "leveled",
            CompactionPolicy::DateTiered(_) => "date_tiered",
            CompactionPolicy::Fifo => "fifo",
        }
    }

    /// Returns the policy of this name with its defaults.
    pub fn by_name(name: &str) -> Option<CompactionPolicy> {
        match name {
            "exploring" => Some(CompactionPolicy::Exploring(ExploringOptions::default())),
            "leveled" => Some(CompactionPolicy::Leveled(LeveledOptions::default())),
            "date_tiered" => Some(CompactionPolicy::DateTiered(DateTieredOptions::default())),
            "fifo" => Some(CompactionPolicy::Fifo),
            _ => None,
        }
    }
}

impl Default for ExploringOptions {
    fn default() -> ExploringOptions {
        ExploringOptions {
            min_files: 3,
            max_files: 10,
            ratio_percent: 120,
            off_peak_ratio_percent: 500,
            min_bytes: None,
            max_bytes: None,
        }
    }
}

impl ExploringOptions {
    fn objection(&self) -> Option<&'static str> {
        let nothing = self.min_files < 2
            || self.max_files < self.min_files
            || self.ratio_percent == 0
            || self.off_peak_ratio_percent == 0;
        nothing.then_some(
            "minimum file count must be at least 2 and not exceed the maximum, and ratios must be \
             greater than zero",
        )
    }
}

impl Default for LeveledOptions {
    fn default() -> LeveledOptions {
        LeveledOptions { level0_files: 4, base_bytes: 256 << 20, multiplier: 10 }
    }
}

impl Default for DateTieredOptions {
    fn default() -> DateTieredOptions {
        DateTieredOptions {
            base_window: Duration::from_secs(6 * 3600),
            windows_per_tier: 4,
            max_age: None,
            incoming_files: 6,
            within: ExploringOptions::default(),
        }
    }
}
