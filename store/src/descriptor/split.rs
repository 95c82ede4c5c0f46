//! When and where the regions of a table are split: HBase's policies.

/// Bytes of a store at which its region is split, where the table does not say otherwise: HBase's
/// default.
const MAX_FILE_BYTES: u64 = 10 << 30;

/// How the regions of a table are split by themselves. By statement they are split whatever this
/// says.
#[derive(Debug, Clone, PartialEq, Eq, bincode::Encode, bincode::Decode)]
pub struct SplitOptions {
    /// When, and where.
    pub policy: SplitPolicy,
    /// MAX_FILESIZE: bytes of the files of one family above which a region is too large.
    pub max_file_bytes: u64,
}

impl Default for SplitOptions {
    fn default() -> SplitOptions {
        SplitOptions { policy: SplitPolicy::Stepping, max_file_bytes: MAX_FILE_BYTES }
    }
}

impl SplitOptions {
    /// Returns options by which nothing is ever split but by statement.
    pub fn disabled() -> SplitOptions {
        SplitOptions { policy: SplitPolicy::Disabled, ..SplitOptions::default() }
    }
}

/// The policy by which regions are split.
#[derive(Debug, Clone, PartialEq, Eq, bincode::Encode, bincode::Decode)]
pub enum SplitPolicy {
    /// Never.
    Disabled,
    /// Above MAX_FILESIZE, more or less an eighth.
    ConstantSize,
    /// Above twice the flush size times the cube of the table's regions, up to MAX_FILESIZE.
    IncreasingToUpperBound,
    /// The only region of a table above twice the flush size, others above MAX_FILESIZE.
    Stepping,
    /// As `IncreasingToUpperBound`; rows that begin with the same bytes stay together.
    KeyPrefix {
        /// How many bytes.
        length: u32,
    },
    /// As `IncreasingToUpperBound`; rows that are the same before a delimiter stay together.
    DelimitedKeyPrefix {
        /// The delimiter; never empty.
        delimiter: Vec<u8>,
    },
    /// As `IncreasingToUpperBound`, and where a fifth of the writes has to wait.
    Busy,
}

impl SplitPolicy {
    /// Returns where to split, given a row in the middle: what belongs together stays together.
    pub fn point(&self, middle: Vec<u8>) -> Vec<u8> {
        let length = match self {
            SplitPolicy::KeyPrefix { length } => *length as usize,
            SplitPolicy::DelimitedKeyPrefix { delimiter } => {
                let at = middle.windows(delimiter.len().max(1)).position(|part| part == delimiter);
                // With the delimiter: what has another one behind the same prefix stays left of it.
                at.unwrap_or(middle.len())
            }
            _ => middle.len(),
        };
        let mut point = middle;
        point.truncate(length);
        point
    }
}
