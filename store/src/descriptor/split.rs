//! Options of the sizes of a table's regions: HBase's split policies and the targets of its
//! normaliser, as plain data.

/// Default size of a store at which its region is split: HBase's default.
const MAX_FILE_BYTES: u64 = 10 << 30;

/// Options of automatic splits, and of the normaliser. Explicit splits by statement ignore them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SplitOptions {
    /// The policy.
    pub policy: SplitPolicy,
    /// MAX_FILESIZE: bytes of the files of one family above which a region is too large.
    pub max_file_bytes: u64,
    /// NORMALIZATION_ENABLED: true if the normaliser merges and splits regions automatically.
    pub normalization: bool,
    /// NORMALIZER_TARGET_REGION_SIZE: size that the normaliser aims at. `None`: the average of the
    /// table, unless there is a target number.
    pub normalizer_target_bytes: Option<u64>,
    /// NORMALIZER_TARGET_REGION_COUNT: number of regions that the normaliser aims at. A target size
    /// excludes it.
    pub normalizer_target_regions: Option<u32>,
}

impl Default for SplitOptions {
    fn default() -> SplitOptions {
        SplitOptions {
            policy: SplitPolicy::Stepping,
            max_file_bytes: MAX_FILE_BYTES,
            normalization: false,
            normalizer_target_bytes: None,
            normalizer_target_regions: None,
        }
    }
}

impl SplitOptions {
    /// Returns options without automatic splits.
    pub fn disabled() -> SplitOptions {
        SplitOptions { policy: SplitPolicy::Disabled, ..SplitOptions::default() }
    }
}

/// Policy of automatic splits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SplitPolicy {
    /// Never.
    Disabled,
    /// Above MAX_FILESIZE, with a jitter of an eighth.
    ConstantSize,
    /// Above twice the flush size times the cube of the number of the table's regions, up to
    /// MAX_FILESIZE.
    IncreasingToUpperBound,
    /// The only region of a table above twice the flush size, others above MAX_FILESIZE.
    Stepping,
    /// As `IncreasingToUpperBound`; rows with a common prefix of this length stay together.
    KeyPrefix {
        /// Length of the prefix in bytes.
        length: u32,
    },
    /// As `IncreasingToUpperBound`; rows that are equal before a delimiter stay together.
    DelimitedKeyPrefix {
        /// The delimiter; never empty.
        delimiter: Vec<u8>,
    },
    /// As `IncreasingToUpperBound`, and if a fifth of the writes has to wait.
    Busy,
}

impl SplitPolicy {
    /// Returns the split row for a given middle row: rows of one group stay together.
    pub fn point(&self, middle: Vec<u8>) -> Vec<u8> {
        let length = match self {
            SplitPolicy::KeyPrefix { length } => *length as usize,
            SplitPolicy::DelimitedKeyPrefix { delimiter } => {
                let at = middle.windows(delimiter.len().max(1)).position(|part| part == delimiter);
                // Including the delimiter: rows with another delimiter behind the same prefix
                // stay on the left.
                at.unwrap_or(middle.len())
            }
            _ => middle.len(),
        };
        let mut point = middle;
        point.truncate(length);
        point
    }
}
