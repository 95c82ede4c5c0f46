//! Table of the options of tables, column families, indexes, columns and roles.
//!
//! CREATE … WITH, ALTER … SET and RESET, `pg_class.reloptions` and thereby dumps, hints, and the
//! tables of `docs/sql/table-options.md` are derived from the rows. A new option is a row, a field
//! of [`StorageSettings`], and the code that reads the field.

use store::descriptor::{
    BloomFilter, CompactionOptions, CompactionPolicy, Compression, DataBlockEncoding, Durability,
    KeepDeletedCells,
};
use store::quota::QuotaKind;

use crate::ast::{IndexMethod, TableOption};
use crate::error::{Error, Result};
use crate::storage_options::parse::OptionKind::{
    Bool, Bytes, Integer, IntegerOrWord, Real, Special, Word,
};
use crate::storage_options::parse::{
    OptionKind, any_text, cleanup, column_families, duration, family_name, not_yet, oids,
    split_policy,
};
use crate::storage_options::settings::StorageSettings;
use crate::storage_options::value::{
    IndexConsistency, OptionDatum, OptionField, RowStorage, SplitAlgorithm, TimestampSource,
    WordField,
};

/// Option of a table, a column family, an index, a column or a role.
pub struct OptionSpec {
    /// Its name, in lower case.
    pub name: &'static str,
    /// The domain of its values.
    pub kind: OptionKind,
    /// The objects that it applies to.
    pub scopes: &'static [OptionScope],
    /// The default, as in the manual; empty for none.
    pub default: &'static str,
    /// The effect of ALTER … SET and RESET.
    pub change: OptionChange,
    /// The setting; `None` for an option without one.
    pub field: Option<SettingField>,
    /// The description, as in the manual.
    pub description: &'static str,
}

/// Kind of object that an option applies to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptionScope {
    /// A table or a materialized view; for its column families, the option of all of them.
    Table,
    /// One column family: `f.name`.
    Family,
    /// The TOAST table of PostgreSQL: `toast.name`, checked and not stored.
    Toast,
    /// An index.
    Index,
    /// An index created `USING hash`.
    HashIndex,
    /// An inverted index, created `USING gin`.
    InvertedIndex,
    /// The index of a PRIMARY KEY or UNIQUE constraint.
    Constraint,
    /// A column.
    Column,
    /// A role.
    Role,
}

impl OptionScope {
    /// Returns the scope of an index.
    pub fn of_index(method: IndexMethod) -> OptionScope {
        match method {
            IndexMethod::Btree => OptionScope::Index,
            IndexMethod::Hash => OptionScope::HashIndex,
            IndexMethod::Gin => OptionScope::InvertedIndex,
        }
    }
}

/// Effect of ALTER … SET and RESET on an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptionChange {
    /// It cannot be changed.
    Never,
    /// The new value is used from the commit on.
    AtCommit,
    /// The new value is used for files that are written after the commit, by flushes and
    /// compactions.
    NewFiles,
    /// The rows, or the entries, are copied while others read and write them.
    ByCopy,
    /// The new value is used by transactions that begin after the commit.
    NewTransactions,
    /// The value is stored and shown; it never has an effect.
    NoEffect,
    /// As [`OptionChange::NoEffect`], with a notice.
    Noted,
}

/// Setting of an option.
pub struct SettingField {
    /// Returns its value.
    pub get: fn(&StorageSettings) -> OptionDatum,
    /// Sets its value, which must be of the type that the domain of the option yields.
    pub set: fn(&mut StorageSettings, OptionDatum),
}

/// Returns the setting for a field of [`StorageSettings`].
macro_rules! field {
    ($($field:ident).+) => {
        Some(SettingField {
            get: |settings| settings.$($field).+.datum(),
            set: |settings, datum| {
                match OptionField::from_datum(datum) {
                    Some(value) => settings.$($field).+ = value,
                    None => debug_assert!(false, "the domain of an option is not of its field's type"),
                }
            },
        })
    };
}

/// The setting of the compaction policy, which leaves the period of major compactions unchanged.
const COMPACTION: SettingField = SettingField {
    get: |settings| OptionDatum::Word(settings.family.compaction.policy.name()),
    set: |settings, datum| {
        let OptionDatum::Word(name) = datum else { return };
        let Some(policy) = CompactionPolicy::by_name(name) else { return };
        let major_period = settings.family.compaction.major_period;
        settings.family.compaction =
            CompactionOptions { major_period, ..CompactionOptions::of(policy) };
    },
};

impl OptionSpec {
    /// Parses the value of an option.
    ///
    /// # Errors
    ///
    /// 22023 for a value outside the domain, 0A000 for one that is not supported.
    pub fn parse(&self, option: &TableOption) -> Result<OptionDatum> {
        if let Some(value) = self.synonym(option) {
            return Ok(OptionDatum::Word(value));
        }
        match self.kind.parse(option)? {
            Err(mismatch) if self.is_parameter() => {
                Err(self.kind.parameter_error(option, mismatch))
            }
            Err(_) if self.is_quota() => {
                let domain = match self.kind {
                    Bytes(..) => "a positive number of bytes, such as 1000000 or '10MB'",
                    _ => "a positive integer",
                };
                bail!(INVALID_PARAMETER_VALUE: "invalid value for parameter \"{}\"", self.name;
                    hint "The value must be {domain}. Use RESET to remove the quota."; at option.name.position)
            }
            Err(_) => Err(self.kind.error(option)),
            Ok(datum) => Ok(datum),
        }
    }

    /// Returns the value that HBase's word for it stands for, if it is one.
    pub fn synonym(&self, option: &TableOption) -> Option<&'static str> {
        let text = option.value.text();
        let mut synonyms = VALUE_SYNONYMS.iter();
        let found =
            synonyms.find(|(name, word, _)| *name == self.name && word.eq_ignore_ascii_case(&text));
        found.map(|(_, _, value)| *value)
    }

    /// Returns whether it is a quota.
    pub fn is_quota(&self) -> bool {
        self.scopes.contains(&OptionScope::Role)
    }

    /// Returns whether it is a storage parameter of PostgreSQL, which has no effect.
    pub fn is_parameter(&self) -> bool {
        self.change == OptionChange::NoEffect
    }

    /// Returns whether it is an option of Phoenix or HBase that has no effect.
    pub fn is_noted(&self) -> bool {
        self.change == OptionChange::Noted
    }

    /// Returns whether its value is stored as written.
    pub fn is_stored_text(&self) -> bool {
        self.is_parameter() || self.is_noted() || self.name == NULLABLE_KEY
    }
}

/// Declares [`OPTIONS`]: names, domains, scopes, defaults, changes, settings and descriptions; then
/// the names, domains and scopes of PostgreSQL's parameters; then the names and domains of options
/// of Phoenix and HBase without effect.
macro_rules! options {
    (
        settings {
            $($name:expr => $kind:expr, $scopes:ident, $default:literal, $change:ident, $field:expr, $description:literal;)+
        }
        parameters { $($parameter:literal => $domain:expr, [$($scope:ident),+];)+ }
        noted { $($noted:literal => $noted_domain:expr;)+ }
    ) => {
        /// All options; `pg_class.reloptions` lists them in this order, parameters first.
        pub static OPTIONS: &[OptionSpec] = &[
            $(OptionSpec {
                name: $name,
                kind: $kind,
                scopes: $scopes,
                default: $default,
                change: OptionChange::$change,
                field: $field,
                description: $description,
            },)+
            $(OptionSpec {
                name: $parameter,
                kind: $domain,
                scopes: &[$(OptionScope::$scope),+],
                default: "",
                change: OptionChange::NoEffect,
                field: None,
                description: "",
            },)+
            $(OptionSpec {
                name: $noted,
                kind: $noted_domain,
                scopes: TABLES,
                default: "",
                change: OptionChange::Noted,
                field: None,
                description: "",
            },)+
        ];
    };
}

/// The option of tables whose key columns may be NULL; the columns themselves have the effect.
pub(super) const NULLABLE_KEY: &str = "nullable_key";

const TABLES: &[OptionScope] = &[OptionScope::Table];
const INDEXES: &[OptionScope] =
    &[OptionScope::Table, OptionScope::Index, OptionScope::HashIndex, OptionScope::InvertedIndex];
const ONLY_INDEXES: &[OptionScope] =
    &[OptionScope::Index, OptionScope::HashIndex, OptionScope::InvertedIndex];
const FAMILIES: &[OptionScope] = &[OptionScope::Table, OptionScope::Family];
const QUOTAS: &[OptionScope] = &[OptionScope::Table, OptionScope::Role];

const SPLIT_POLICIES: &str = "DISABLED, CONSTANT_SIZE, INCREASING_TO_UPPER_BOUND, STEPPING, \
                              KEY_PREFIX(n), DELIMITED_KEY_PREFIX(d), BUSY";
const COMPACTIONS: &[&str] = &["exploring", "leveled", "date_tiered", "fifo"];
/// The smallest size of files and memstores.
const SIZE_MIN: i64 = 1 << 16;
const VERSIONS_MAX: i64 = u32::MAX as i64;
/// A salt is one byte.
const SALT_BUCKETS_MAX: i64 = 256;
/// The maximum number of regions of pre-splitting with an algorithm, and of the normaliser:
/// each has memstores and files of its own from the first row on.
const SPLIT_REGIONS_MAX: i64 = 4_096;

const INTEGER_MAX: i64 = i32::MAX as i64;
const XID_AGE: OptionKind = Integer(0, 2_000_000_000);
const PERCENT: OptionKind = Real(0.0, 100.0);
const DISTINCT: OptionKind = Real(-1.0, f64::MAX);
const CLEANUP: OptionKind = Special("ON, OFF, AUTO", cleanup);
const DURATION: OptionKind = Special("seconds, an interval, or FOREVER", duration);

options! {
    settings {
        "salt_buckets" => Integer(0, SALT_BUCKETS_MAX), INDEXES, "0", ByCopy, field!(salt_buckets),
            "number of buckets that the rows are spread over; each begins as a region";
        "split_algorithm" => Word(SplitAlgorithm::WORDS), INDEXES, "", Never, field!(split_algorithm),
            "algorithm that divides the keys into `SPLIT_REGIONS` regions";
        "split_regions" => Integer(2, SPLIT_REGIONS_MAX), INDEXES, "", Never, field!(split_regions),
            "initial number of regions, with `SPLIT_ALGORITHM`";
        "region_replication" => Integer(1, 3), TABLES, "1", AtCommit, field!(table.region_replication),
            "number of copies of each region";
        "durability" => Word(Durability::WORDS), TABLES, "SYNC_WAL", AtCommit, field!(table.durability),
            "durability of commits; `SKIP_WAL` is `ASYNC_WAL` while the table has an index";
        "memstore_flushsize" => Bytes(SIZE_MIN, i64::MAX), TABLES, "", AtCommit, field!(table.memstore_flush_bytes),
            "size of a region's memstores at which they are flushed; by default, the server's";
        "split_policy" => Special(SPLIT_POLICIES, split_policy), TABLES, "STEPPING", AtCommit, field!(table.split.policy),
            "policy of automatic splits of the table's and its indexes' regions";
        "max_filesize" => Bytes(SIZE_MIN, i64::MAX), TABLES, "10GB", AtCommit, field!(table.split.max_file_bytes),
            "size of the files of one family above which a region is too large";
        "normalization_enabled" => Word(bool::WORDS), TABLES, "FALSE", AtCommit, field!(table.split.normalization),
            "whether the [normaliser](regions.md#normaliser) merges small regions and splits large ones, also of indexes";
        "normalizer_target_region_size" => Bytes(SIZE_MIN, i64::MAX), TABLES, "", AtCommit,
            field!(table.split.normalizer_target_bytes),
            "size of a region that the normaliser aims at; by default, the average";
        "normalizer_target_region_count" => Integer(1, SPLIT_REGIONS_MAX), TABLES, "", AtCommit,
            field!(table.split.normalizer_target_regions),
            "number of regions that the normaliser aims at; excludes a target size";
        "column_families" => Special("'family(column, …), …'", column_families), TABLES, "", Never, field!(column_families),
            "families with their columns, as dumps contain them";
        "default_column_family" => Special("'family'", family_name), TABLES, "0", Never, field!(default_family),
            "family of the columns without one";
        "versions" => Integer(1, VERSIONS_MAX), FAMILIES, "1", AtCommit, field!(family.versions),
            "number of versions retained of each row";
        "min_versions" => Integer(0, VERSIONS_MAX), FAMILIES, "0", AtCommit, field!(family.min_versions),
            "number of versions retained even when older than the TTL; at most `VERSIONS`";
        "ttl" => DURATION, FAMILIES, "FOREVER", AtCommit, field!(family.ttl),
            "age at which rows expire";
        "keep_deleted_cells" => Word(KeepDeletedCells::WORDS), FAMILIES, "FALSE", AtCommit, field!(family.keep_deleted_cells),
            "whether deleted rows are retained for time travel; TTL: until their deletion is older than the TTL";
        "compression" => Word(Compression::WORDS), FAMILIES, "LZ4", NewFiles, field!(family.compression),
            "compression of blocks";
        "bloomfilter" => Word(BloomFilter::WORDS), FAMILIES, "ROW", NewFiles, field!(family.bloom_filter),
            "keys of the Bloom filters of store files";
        "data_block_encoding" => Word(DataBlockEncoding::WORDS), FAMILIES, "COLUMNAR; ROW with `STORAGE = CELL`", NewFiles,
            field!(family.data_block_encoding),
            "COLUMNAR stores columns separately, for scans of some columns; ROW is faster for gets of wide rows";
        "blocksize" => Bytes(1 << 10, 1 << 24), FAMILIES, "64kB; 32kB for ROW", NewFiles, field!(family.block_bytes),
            "size at which a block is closed";
        "blockcache" => Word(bool::WORDS), FAMILIES, "TRUE", AtCommit, field!(family.block_cache),
            "whether blocks enter the block cache when they are read";
        "in_memory" => Word(bool::WORDS), FAMILIES, "FALSE", AtCommit, field!(family.in_memory),
            "whether blocks have priority in the block cache";
        "compaction" => Word(COMPACTIONS), FAMILIES, "EXPLORING", AtCommit, Some(COMPACTION),
            "compaction policy; FIFO merges nothing, drops files whose rows have all expired, and requires a TTL";
        "major_compaction_period" => DURATION, FAMILIES, "FOREVER", AtCommit, field!(family.compaction.major_period),
            "age of the oldest file at which all files are merged; FOREVER: only by MAJOR COMPACT";
        "timestamps" => Word(TimestampSource::WORDS), TABLES, "COMMIT", AtCommit, field!(timestamps),
            "source of the timestamps of cells; CLIENT allows `WITH TIMESTAMP` and `WITH VERSION`, and remains";
        "cell_ttl" => Word(bool::WORDS), TABLES, "FALSE", AtCommit, field!(cell_ttl),
            "whether statements may set the TTL of cells, by `WITH TTL`; TRUE remains";
        "consistency" => Word(IndexConsistency::WORDS), ONLY_INDEXES, "STRONG", Never, field!(consistency),
            "[consistency](create-index.md#eventual-indexes) of an index; EVENTUAL is maintained after the commits";
        "maintained" => Word(bool::WORDS), TABLES, "FALSE", Never, field!(maintained),
            "whether each change of its table [maintains](materialized-views.md#maintained-views) a materialized view";
        "storage" => Word(RowStorage::WORDS), TABLES, "ROW", Never, field!(storage),
            "[mapping of rows to cells](#storage): ROW packs the columns of a family into one, CELL has one for each column";
        NULLABLE_KEY => Word(bool::WORDS), TABLES, "FALSE", Never, None,
            "whether [key columns](create-table.md#nullable-key-columns) but the first may be NULL, unless NOT NULL";
        "auto_partition_seq" => Special("not supported", not_yet), TABLES, "", Never, None, "for compatibility with Phoenix";
        "oids" => Special("FALSE", oids), TABLES, "FALSE", Never, None, "for compatibility with PostgreSQL";
        QuotaKind::Requests.name() => Integer(1, i64::MAX), QUOTAS, "", NewTransactions, field!(quota.requests),
            "quota of requests per second";
        QuotaKind::ReadBytes.name() => Bytes(1, i64::MAX), QUOTAS, "", NewTransactions, field!(quota.read_bytes),
            "quota of bytes read per second";
        QuotaKind::WriteBytes.name() => Bytes(1, i64::MAX), QUOTAS, "", NewTransactions, field!(quota.write_bytes),
            "quota of bytes written per second";
    }
    parameters {
        "fillfactor" => Integer(10, 100), [Table, Index, HashIndex, Constraint];
        "fastupdate" => Bool, [InvertedIndex];
        "gin_pending_list_limit" => Integer(64, INTEGER_MAX), [InvertedIndex];
        "deduplicate_items" => Bool, [Index, Constraint];
        "toast_tuple_target" => Integer(128, 8_160), [Table];
        "parallel_workers" => Integer(0, 1_024), [Table];
        "user_catalog_table" => Bool, [Table];
        "autovacuum_enabled" => Bool, [Table, Toast];
        "vacuum_index_cleanup" => CLEANUP, [Table, Toast];
        "vacuum_truncate" => Bool, [Table, Toast];
        "autovacuum_vacuum_threshold" => Integer(0, INTEGER_MAX), [Table, Toast];
        "autovacuum_vacuum_insert_threshold" => Integer(-1, INTEGER_MAX), [Table, Toast];
        "autovacuum_analyze_threshold" => Integer(0, INTEGER_MAX), [Table];
        "autovacuum_vacuum_cost_limit" => Integer(1, 10_000), [Table, Toast];
        "autovacuum_freeze_min_age" => Integer(0, 1_000_000_000), [Table, Toast];
        "autovacuum_multixact_freeze_min_age" => Integer(0, 1_000_000_000), [Table, Toast];
        "autovacuum_freeze_max_age" => Integer(100_000, 2_000_000_000), [Table, Toast];
        "autovacuum_multixact_freeze_max_age" => Integer(10_000, 2_000_000_000), [Table, Toast];
        "autovacuum_freeze_table_age" => XID_AGE, [Table, Toast];
        "autovacuum_multixact_freeze_table_age" => XID_AGE, [Table, Toast];
        "log_autovacuum_min_duration" => Integer(-1, INTEGER_MAX), [Table, Toast];
        "autovacuum_vacuum_cost_delay" => PERCENT, [Table, Toast];
        "autovacuum_vacuum_scale_factor" => PERCENT, [Table, Toast];
        "autovacuum_vacuum_insert_scale_factor" => PERCENT, [Table, Toast];
        "autovacuum_analyze_scale_factor" => PERCENT, [Table];
        "n_distinct" => DISTINCT, [Column];
        "n_distinct_inherited" => DISTINCT, [Column];
    }
    noted {
        "append_only_schema" => Bool;
        "change_detection_enabled" => Bool;
        "column_encoded_bytes" => IntegerOrWord(0, 4, &["none"]);
        "guide_posts_width" => IntegerOrWord(0, i64::MAX, &["null"]);
        "immutable_rows" => Bool;
        "is_strict_ttl" => Bool;
        "multi_tenant" => Bool;
        "replication_scope" => Integer(0, 1);
        "row_timestamp" => Special("column", any_text);
        "schema_version" => Special("text", any_text);
        "store_nulls" => Bool;
        "streaming_topic_name" => Special("text", any_text);
        "transaction_provider" => Word(&["omid", "tephra"]);
        "transactional" => Bool;
        "update_cache_frequency" => IntegerOrWord(0, i64::MAX, &["always", "never"]);
        "use_stats_for_parallelization" => Bool;
    }
}

/// Words of HBase for values: the option, the word, and the value that is used instead.
pub(super) const VALUE_SYNONYMS: &[(&str, &str, &str)] = &[
    ("compression", "gz", "zstd"),
    ("compression", "lzo", "lz4"),
    ("compression", "snappy", "lz4"),
    ("data_block_encoding", "diff", "row"),
    ("data_block_encoding", "fast_diff", "row"),
    ("data_block_encoding", "none", "row"),
    ("data_block_encoding", "prefix", "row"),
    ("data_block_encoding", "row_index_v1", "row"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ast::{Ident, OptionValue};

    /// Parses a value and sets it.
    fn set(settings: &mut StorageSettings, spec: &OptionSpec, text: &str) {
        let name = Ident { value: spec.name.to_owned(), position: 0 };
        let value = OptionValue::String(text.to_owned());
        let datum = spec.parse(&TableOption { family: None, name, value }).unwrap();
        (spec.field.as_ref().unwrap().set)(settings, datum);
    }

    #[test]
    fn option_values_round_trip_through_text() {
        for spec in OPTIONS {
            let Some(field) = &spec.field else { continue };
            let values = match spec.kind {
                Integer(low, high) | Bytes(low, high) => vec![low.to_string(), high.to_string()],
                Word(words) => words.iter().map(|word| (*word).to_owned()).collect(),
                _ if spec.name == "split_policy" => {
                    let plain = crate::storage_options::value::PLAIN_SPLIT_POLICIES;
                    let plain = plain.iter().map(|(name, _)| (*name).to_owned());
                    plain
                        .chain(["key_prefix(4)", "delimited_key_prefix(_)"].map(str::to_owned))
                        .collect()
                }
                _ if spec.name == "column_families" => vec!["f(a, b), \"G\"(\"c d\")".to_owned()],
                _ => vec!["90 seconds".to_owned(), "1.5 seconds".to_owned()],
            };
            for value in values {
                let mut settings = StorageSettings::default();
                set(&mut settings, spec, &value);
                assert_eq!((field.get)(&settings).to_string(), value, "{}", spec.name);
            }
        }
    }

    #[test]
    fn option_names_are_unique() {
        for (at, spec) in OPTIONS.iter().enumerate() {
            assert!(OPTIONS[..at].iter().all(|other| other.name != spec.name), "{}", spec.name);
            assert_eq!(spec.name, spec.name.to_ascii_lowercase());
        }
    }
}
