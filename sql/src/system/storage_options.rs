//! `pg_class.reloptions`: storage parameters, and bennu's own options that differ from the
//! defaults, in the form that CREATE TABLE and CREATE INDEX accept.
//!
//! pg_dump copies them to its output. The second kind is left out under `portable_definitions`,
//! since PostgreSQL does not know it.

use std::time::Duration;

use store::FamilyDescriptor;
use store::TableDescriptor;
use store::descriptor::{
    BloomFilter, CompactionOptions, CompactionPolicy, Compression, DataBlockEncoding, Durability,
    KeepDeletedCells, SplitOptions, SplitPolicy,
};
use types::function::quote_ident;

use crate::catalog::ignored_attributes::Parameter;
use crate::catalog::record::{IndexRecord, TableRecord};

/// Name of the default column family.
const DEFAULT_FAMILY: &str = "0";

/// Returns the options of a table.
pub(super) fn of_table(record: &TableRecord, portable: bool) -> Vec<Parameter> {
    let mut options = record.retained.parameters.clone();
    if portable {
        return options;
    }
    let mut add = |name: &str, value: String| options.push((name.to_owned(), value));
    let descriptor = &record.descriptor;
    if record.salt_buckets > 0 {
        add("salt_buckets", record.salt_buckets.to_string());
    }
    if descriptor.region_replication > 1 {
        add("region_replication", descriptor.region_replication.to_string());
    }
    match (descriptor.durability, record.retained.unlogged) {
        (Durability::SyncWal, _) | (Durability::AsyncWal, true) => {}
        (Durability::AsyncWal, false) => add("durability", "async_wal".to_owned()),
        (Durability::SkipWal, _) => add("durability", "skip_wal".to_owned()),
    }
    if let Some(bytes) = descriptor.memstore_flush_bytes {
        add("memstore_flushsize", bytes.to_string());
    }
    options.extend(split_options(&descriptor.split));
    options.extend(column_families(record));
    options.extend(family_options(descriptor));
    options
}

/// Returns the options of an index.
pub(super) fn of_index(index: &IndexRecord, portable: bool) -> Vec<Parameter> {
    let mut options = index.retained.parameters.clone();
    if index.salt_buckets > 0 && !portable {
        options.push(("salt_buckets".to_owned(), index.salt_buckets.to_string()));
    }
    options
}

/// Returns ` WITH (…)` for a definition; empty without options.
pub(super) fn with_clause(options: &[Parameter]) -> String {
    if options.is_empty() {
        return String::new();
    }
    let option = |(name, value): &Parameter| {
        let value = value.replace('\'', "''");
        format!("{}='{value}'", quote_ident(name))
    };
    format!(" WITH ({})", options.iter().map(option).collect::<Vec<_>>().join(", "))
}

fn split_options(split: &SplitOptions) -> Vec<Parameter> {
    let default = SplitOptions::default();
    let mut options = Vec::new();
    if split.policy != default.policy {
        let name = match &split.policy {
            SplitPolicy::Disabled => "disabled".to_owned(),
            SplitPolicy::ConstantSize => "constant_size".to_owned(),
            SplitPolicy::IncreasingToUpperBound => "increasing_to_upper_bound".to_owned(),
            SplitPolicy::Stepping => "stepping".to_owned(),
            SplitPolicy::KeyPrefix { length } => format!("key_prefix({length})"),
            SplitPolicy::DelimitedKeyPrefix { delimiter } => {
                format!("delimited_key_prefix({})", String::from_utf8_lossy(delimiter))
            }
            SplitPolicy::Busy => "busy".to_owned(),
        };
        options.push(("split_policy".to_owned(), name));
    }
    if split.max_file_bytes != default.max_file_bytes {
        options.push(("max_filesize".to_owned(), split.max_file_bytes.to_string()));
    }
    options
}

/// Returns option `column_families`: the columns outside the default family; `None` if there are
/// none.
fn column_families(record: &TableRecord) -> Option<Parameter> {
    let mut listed: Vec<String> = Vec::new();
    for (at, family) in record.descriptor.families.iter().enumerate() {
        let is_key =
            |position: usize| record.primary_key.iter().any(|key| key.column as usize == position);
        let columns = record.columns.iter().enumerate().filter(|(position, column)| {
            usize::from(column.family) == at
                && !column.dropped
                && !column.name.is_empty()
                && !is_key(*position)
        });
        let columns: Vec<String> = columns.map(|(_, column)| quote_ident(&column.name)).collect();
        if family.name != DEFAULT_FAMILY && !columns.is_empty() {
            listed.push(format!("{}({})", quote_ident(&family.name), columns.join(", ")));
        }
    }
    (!listed.is_empty()).then(|| ("column_families".to_owned(), listed.join(", ")))
}

/// Returns the options of column families: under their own names if all families have the same,
/// else prefixed by the name of the family.
fn family_options(descriptor: &TableDescriptor) -> Vec<Parameter> {
    let of_families: Vec<Vec<Parameter>> = descriptor.families.iter().map(rules).collect();
    let [first, others @ ..] = of_families.as_slice() else { return Vec::new() };
    if others.iter().all(|rules| rules == first) {
        return first.clone();
    }
    let families = descriptor.families.iter().zip(&of_families);
    families
        .flat_map(|(family, rules)| {
            let name = |rule: &String| format!("{}.{rule}", family.name);
            rules.iter().map(move |(rule, value)| (name(rule), value.clone()))
        })
        .collect()
}

/// Returns the options of a family that differ from the defaults.
fn rules(family: &FamilyDescriptor) -> Vec<Parameter> {
    let default = FamilyDescriptor::new("");
    let mut rules: Vec<(&str, String)> = Vec::new();
    if family.versions != default.versions {
        rules.push(("versions", family.versions.to_string()));
    }
    if family.min_versions != default.min_versions {
        rules.push(("min_versions", family.min_versions.to_string()));
    }
    if let Some(ttl) = family.ttl {
        rules.push(("ttl", seconds(ttl)));
    }
    match family.keep_deleted_cells {
        KeepDeletedCells::False => {}
        KeepDeletedCells::True => rules.push(("keep_deleted_cells", "true".to_owned())),
        KeepDeletedCells::Ttl => rules.push(("keep_deleted_cells", "ttl".to_owned())),
    }
    match family.compression {
        Compression::Lz4 => {}
        Compression::None => rules.push(("compression", "none".to_owned())),
        Compression::Zstd => rules.push(("compression", "zstd".to_owned())),
    }
    match family.bloom_filter {
        BloomFilter::Row => {}
        BloomFilter::None => rules.push(("bloomfilter", "none".to_owned())),
        BloomFilter::RowCol => rules.push(("bloomfilter", "rowcol".to_owned())),
    }
    if family.data_block_encoding == DataBlockEncoding::Rows {
        rules.push(("data_block_encoding", "row".to_owned()));
    }
    if family.block_bytes != family.data_block_encoding.default_block_bytes() {
        rules.push(("blocksize", family.block_bytes.to_string()));
    }
    if !family.block_cache {
        rules.push(("blockcache", "false".to_owned()));
    }
    let policy = std::mem::discriminant(&family.compaction.policy);
    if policy != std::mem::discriminant(&CompactionOptions::default().policy) {
        let name = match family.compaction.policy {
            CompactionPolicy::Exploring(_) => "exploring",
            CompactionPolicy::Leveled(_) => "leveled",
            CompactionPolicy::DateTiered(_) => "date_tiered",
            CompactionPolicy::Fifo => "fifo",
        };
        rules.push(("compaction", name.to_owned()));
    }
    if let Some(period) = family.compaction.major_period {
        rules.push(("major_compaction_period", seconds(period)));
    }
    rules.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Returns a duration as an interval that options accept.
fn seconds(time: Duration) -> String {
    match time.subsec_micros() {
        0 => format!("{} seconds", time.as_secs()),
        _ => format!("{} seconds", time.as_secs_f64()),
    }
}
