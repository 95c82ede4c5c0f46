//! Values of storage options: typed data, their texts, and their conversion to the fields of
//! descriptors.

use std::fmt;
use std::time::Duration;

use store::descriptor::{
    BloomFilter, Compression, DataBlockEncoding, Durability, KeepDeletedCells, SplitPolicy,
};
use types::function::quote_ident;

/// Value of an option.
#[derive(Debug, Clone, PartialEq)]
pub enum OptionDatum {
    /// No value, where that is the default.
    Absent,
    /// A number, also of bytes.
    Integer(i64),
    /// A time of at least a second.
    Duration(Duration),
    /// One of the words of its kind.
    Word(&'static str),
    /// A policy of automatic splits.
    SplitPolicy(SplitPolicy),
    /// Column families with the names of their columns.
    Families(Vec<(String, Vec<String>)>),
    /// A storage parameter without effect, as written.
    Text(String),
}

/// The text that CREATE and ALTER accept.
impl fmt::Display for OptionDatum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OptionDatum::Absent => Ok(()),
            OptionDatum::Integer(number) => write!(f, "{number}"),
            OptionDatum::Duration(time) if time.subsec_micros() == 0 => {
                write!(f, "{} seconds", time.as_secs())
            }
            OptionDatum::Duration(time) => write!(f, "{} seconds", time.as_secs_f64()),
            OptionDatum::Word(word) => f.write_str(word),
            OptionDatum::SplitPolicy(SplitPolicy::KeyPrefix { length }) => {
                write!(f, "key_prefix({length})")
            }
            OptionDatum::SplitPolicy(SplitPolicy::DelimitedKeyPrefix { delimiter }) => {
                write!(f, "delimited_key_prefix({})", String::from_utf8_lossy(delimiter))
            }
            OptionDatum::SplitPolicy(policy) => {
                let plain = PLAIN_SPLIT_POLICIES.iter().find(|(_, plain)| plain == policy);
                f.write_str(plain.map_or("", |(name, _)| name))
            }
            OptionDatum::Families(families) => {
                for (at, (family, columns)) in families.iter().enumerate() {
                    let columns: Vec<String> = columns.iter().map(|one| quote_ident(one)).collect();
                    let comma = if at == 0 { "" } else { ", " };
                    write!(f, "{comma}{}({})", quote_ident(family), columns.join(", "))?;
                }
                Ok(())
            }
            OptionDatum::Text(text) => f.write_str(text),
        }
    }
}

/// The split policies without an argument.
pub(super) const PLAIN_SPLIT_POLICIES: &[(&str, SplitPolicy)] = &[
    ("disabled", SplitPolicy::Disabled),
    ("constant_size", SplitPolicy::ConstantSize),
    ("increasing_to_upper_bound", SplitPolicy::IncreasingToUpperBound),
    ("stepping", SplitPolicy::Stepping),
    ("busy", SplitPolicy::Busy),
];

/// Type of a field that an option sets.
pub(super) trait OptionField: Sized {
    /// Returns the value of a field.
    fn datum(&self) -> OptionDatum;

    /// Returns the field for a value; `None` if the value has another type.
    fn from_datum(datum: OptionDatum) -> Option<Self>;
}

/// Type with one value for each word.
pub(super) trait WordField: OptionField {
    /// The words, in the order of hints.
    const WORDS: &'static [&'static str];
}

/// Algorithm of pre-splitting into a number of regions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SplitAlgorithm {
    /// Text of eight hexadecimal digits, in lower case: HBase's `HexStringSplit`.
    Hex,
    /// Text of eight decimal digits: HBase's `DecimalStringSplit`.
    Decimal,
    /// Evenly spread bytes: HBase's `UniformSplit`.
    Uniform,
}

/// Consistency of an index with its table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexConsistency {
    /// Each commit changes rows and entries.
    Strong,
    /// Entries are changed after the commits.
    Eventual,
}

/// Source of the timestamps of a table's cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimestampSource {
    /// The commit.
    Commit,
    /// The commit, or the client where a statement has `WITH TIMESTAMP`.
    Client,
}

/// Mapping of rows to cells.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RowStorage {
    /// One cell for the columns of a family.
    #[default]
    Row,
    /// One cell for each column.
    Cell,
}

impl<F: OptionField> OptionField for Option<F> {
    fn datum(&self) -> OptionDatum {
        self.as_ref().map_or(OptionDatum::Absent, F::datum)
    }

    fn from_datum(datum: OptionDatum) -> Option<Self> {
        match datum {
            OptionDatum::Absent => Some(None),
            datum => F::from_datum(datum).map(Some),
        }
    }
}

/// Implements [`OptionField`]: the value of a field, and the field of a value.
macro_rules! option_fields {
    ($($kind:ty: |$field:ident| $datum:expr, $value:pat => $made:expr;)+) => {$(
        impl OptionField for $kind {
            fn datum(&self) -> OptionDatum {
                let $field = self;
                $datum
            }

            fn from_datum(datum: OptionDatum) -> Option<Self> {
                match datum {
                    $value => $made,
                    _ => None,
                }
            }
        }
    )+};
}

option_fields! {
    u8: |number| OptionDatum::Integer(i64::from(*number)), OptionDatum::Integer(number) => number.try_into().ok();
    u16: |number| OptionDatum::Integer(i64::from(*number)), OptionDatum::Integer(number) => number.try_into().ok();
    u32: |number| OptionDatum::Integer(i64::from(*number)), OptionDatum::Integer(number) => number.try_into().ok();
    u64: |number| OptionDatum::Integer(*number as i64), OptionDatum::Integer(number) => number.try_into().ok();
    Duration: |time| OptionDatum::Duration(*time), OptionDatum::Duration(time) => Some(time);
    SplitPolicy: |policy| OptionDatum::SplitPolicy(policy.clone()), OptionDatum::SplitPolicy(policy) => Some(policy);
    String: |text| OptionDatum::Text(text.clone()), OptionDatum::Text(text) => Some(text);
    Vec<(String, Vec<String>)>: |list| OptionDatum::Families(list.clone()), OptionDatum::Families(list) => Some(list);
}

/// Implements [`WordField`] for types with a word for each value.
macro_rules! word_fields {
    ($($kind:ident { $($value:tt)+ })+) => {$(word_fields! { @one $kind $($value)+ })+};
    (@one $kind:ident $($value:ident $word:literal),+) => {
        word_fields! { @one $kind $($kind::$value => $word => $kind::$value),+ }
    };
    (@one $kind:ident $($value:pat => $word:literal => $made:expr),+) => {
        option_fields! {
            $kind: |value| OptionDatum::Word(match value { $($value => $word),+ }),
            OptionDatum::Word(word) => {
                [$(($word, $made)),+].into_iter().find(|one| one.0 == word).map(|one| one.1)
            };
        }

        impl WordField for $kind {
            const WORDS: &'static [&'static str] = &[$($word),+];
        }
    };
}

word_fields! {
    bool { true => "true" => true, false => "false" => false }
    Durability { SyncWal "sync_wal", AsyncWal "async_wal", SkipWal "skip_wal" }
    SplitAlgorithm { Hex "hex", Decimal "decimal", Uniform "uniform" }
    IndexConsistency { Strong "strong", Eventual "eventual" }
    TimestampSource { Commit "commit", Client "client" }
    KeepDeletedCells { False "false", True "true", Ttl "ttl" }
    Compression { Lz4 "lz4", Zstd "zstd", None "none" }
    BloomFilter { Row "row", RowCol "rowcol", None "none" }
    RowStorage { Row "row", Cell "cell" }
    DataBlockEncoding { Rows "row", Columnar "columnar" }
}
