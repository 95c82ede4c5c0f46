//! How the store files of a family are merged: the policies and their numbers, as plain data.
//!
//! What a policy does with its numbers is in [`crate::compaction`]. Ratios are percentages, so that
//! descriptors compare and print exactly.

use std::time::Duration;

/// How the store files of a family are merged.
#[derive(Debug, Clone, PartialEq, Eq, bincode::Encode, bincode::Decode)]
pub struct CompactionOptions {
    /// Which files are merged, and when.
    pub policy: CompactionPolicy,
    /// Bytes at which a file of a merge's output is closed and the next begun.
    pub file_bytes: u64,
    /// Sorted runs at which writers wait until a compaction has made them fewer.
    pub blocking_files: u32,
    /// Age of the oldest file at which all files are merged. `None`: never. Zero is refused.
    ///
    /// Never by default: a merge that takes in the oldest files of its rows drops markers and what
    /// they mask anyway, and files that have expired go without being read; what is left to gain is
    /// seldom worth reading and writing everything by the clock.
    pub major_period: Option<Duration>,
    /// How far the period is moved, at most, so that not all stores come due at once, in percent.
    pub major_jitter_percent: u32,
}

/// Which files are merged.
#[derive(Debug, Clone, PartialEq, Eq, bincode::Encode, bincode::Decode)]
pub enum CompactionPolicy {
    /// HBase's exploring policy: neighbours of about equal size. The least writing.
    Exploring(ExploringOptions),
    /// RocksDB's leveled policy: levels that grow tenfold. The least space and the fewest runs.
    Leveled(LeveledOptions),
    /// HBase's date-tiered policy: files of one window of time. For time series.
    DateTiered(DateTieredOptions),
    /// Nothing is merged; files go when all their cells have expired. Needs a TTL.
    Fifo,
}

/// Numbers of the exploring policy; the defaults are HBase's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, bincode::Encode, bincode::Decode)]
pub struct ExploringOptions {
    /// Runs merged at least.
    pub min_files: u32,
    /// Runs merged at most.
    pub max_files: u32,
    /// A run joins only if it is no larger than this share of the others together, in percent.
    pub ratio_percent: u32,
    /// The same in off-peak hours.
    pub off_peak_ratio_percent: u32,
    /// Runs that are smaller together are merged whatever the ratio. `None`: the size of a flush.
    pub min_bytes: Option<u64>,
    /// Runs that are larger together are not merged, but by a major compaction. `None`: no limit.
    pub max_bytes: Option<u64>,
}

/// Numbers of the leveled policy; the defaults are RocksDB's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, bincode::Encode, bincode::Decode)]
pub struct LeveledOptions {
    /// Runs of level 0 at which they are merged into the first level.
    pub level0_files: u32,
    /// Bytes of the first level that is in use.
    pub base_bytes: u64,
    /// How many times larger each level is than the one above.
    pub multiplier: u32,
}

/// Numbers of the date-tiered policy; the defaults are HBase's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, bincode::Encode, bincode::Decode)]
pub struct DateTieredOptions {
    /// Width of the newest window.
    pub base_window: Duration,
    /// Windows of one width before the next, which is so many times as wide.
    pub windows_per_tier: u32,
    /// Age from which windows do not get wider. `None`: they always do.
    pub max_age: Option<Duration>,
    /// Runs of the newest window at which they are merged.
    pub incoming_files: u32,
    /// What is merged within a window.
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
        // Each window of time is a run of its own.
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

    /// Returns what makes no sense in it, given whether the family has a TTL, and its
    /// MIN_VERSIONS.
    pub fn objection(&self, ttl: Option<Duration>, min_versions: u32) -> Option<&'static str> {
        if self.file_bytes == 0 || self.blocking_files < 2 {
            return Some("files of no bytes, or writers that wait for fewer than two");
        }
        if self.major_period.is_some_and(|period| period.is_zero())
            || self.major_jitter_percent > 100
        {
            return Some("the period of major compactions is zero, or moved by more than itself");
        }
        match &self.policy {
            CompactionPolicy::Exploring(options) => options.objection(),
            CompactionPolicy::Leveled(options) => {
                (options.level0_files < 2 || options.base_bytes == 0 || options.multiplier < 2)
                    .then_some("levels that hold nothing or do not grow")
            }
            CompactionPolicy::DateTiered(options) => {
                let flat = options.base_window.as_micros() == 0
                    || options.windows_per_tier < 2
                    || options.incoming_files < 2;
                let flat = flat.then_some("windows that hold nothing or do not grow");
                flat.or_else(|| options.within.objection())
            }
            CompactionPolicy::Fifo if ttl.is_none() => Some("FIFO compaction needs a TTL"),
            CompactionPolicy::Fifo if min_versions > 0 => {
                Some("FIFO compaction cannot keep MIN_VERSIONS")
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
        nothing.then_some("a merge of fewer than two files, or of more than the most")
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
