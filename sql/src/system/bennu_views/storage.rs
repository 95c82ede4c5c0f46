//! Views `bennu.admission`, `bennu.quotas`, `bennu.compactions`, `bennu.endpoint_calls`,
//! `bennu.families`, `bennu.storage`, `bennu.stores` and `bennu.store_files`: work, options and
//! files of the store.

use store::admission::AdmissionStatus;
use store::compaction::Reason;
use store::quota::QuotaStatus;
use store::store::{
    CompactionStatistics, CompactionStatus, EndpointCallStatus, FamilyStatus, FileStatus,
    RegionFamilyStatus,
};
use store::{FamilyDescriptor, TableId};
use types::DataType;

use crate::catalog::quota::QuotaSubject;
use crate::catalog::table;
use crate::error::Result;
use crate::storage_options::{StorageSettings, option_text};
use crate::system::SystemContext;
use crate::system::bennu_views::{SystemView, SystemViewColumn, ViewValue, system_view};

system_view! {
    ADMISSION: "admission", "Admission control of long statements", admission => |status| {
        slots Int8 = status.handlers, "Number of execution slots";
        active Int8 = status.active, "Number of slots in use";
        queued Int8 = status.queued, "Number of statements that wait for a slot";
        admitted Int8 = status.admitted, "Number of slots granted since the start";
        waits Int8 = status.waited, "Number of slots granted after a wait";
        wait_seconds Float8 = status.waited_micros as f64 / 1e6, "Total time of these waits";
    }
}

fn admission(source: &SystemContext) -> Result<Vec<AdmissionStatus>> {
    Ok(vec![source.engine.store().admission()])
}

system_view! {
    QUOTAS: "quotas", "Quotas of tables, schemas, roles and databases", quotas => |(kind, name, status)| {
        kind Text = kind, "`table`, `schema`, `role` or `database`";
        name Text = name, "Table, schema, role or database";
        quota Text = status.kind.name(), "Name of the quota";
        per_second Int8 = status.per_second, "Limit per second, which is also the burst";
        available Int8 = status.available, "Available requests or bytes; negative: debt";
        rejected Int8 = status.refused, "Number of rejected requests since the quota was set or the server started";
    }
}

fn quotas(source: &SystemContext) -> Result<Vec<(&'static str, Option<String>, QuotaStatus)>> {
    let now = source.engine.store().now_micros();
    let mut rows = Vec::new();
    for (subject, quota) in source.engine.quotas.all().iter() {
        let (kind, name) = match subject {
            QuotaSubject::Role(name) => ("role", Some(name.clone())),
            QuotaSubject::Schema(number) => {
                let schema = source.catalog.schemas().find(|schema| schema.oid == *number);
                ("schema", schema.map(|schema| schema.name.clone()))
            }
            QuotaSubject::Database(number) => {
                let database = source.catalog.database(*number);
                ("database", database.map(|database| database.name.clone()))
            }
            QuotaSubject::Table(id) => {
                let table = source.catalog.table_stored(*id);
                ("table", table.map(|table| table.full_name().short()))
            }
        };
        rows.extend(quota.status(now).into_iter().map(|status| (kind, name.clone(), status)));
    }
    Ok(rows)
}

system_view! {
    COMPACTIONS: "compactions", "Running compactions", compactions => |(table, family, running)| {
        table_name Text = table, "Table or index; NULL: a system table";
        region Int8 = running.region.0, "Region";
        family Text = family, "Column family";
        reason Text = reason(running.reason), "Reason: `expired`, `split`, `major`, `period` or `policy`";
        store_files Int8 = running.files, "Number of files to read";
        started Timestamptz = running.started_micros, "Start";
        cells_done Int8 = running.cells_done, "Cells read";
        cells_total Int8 = running.cells_total, "Cells to read";
        bytes_done Int8 = running.bytes_done, "Uncompressed bytes of cells read";
        bytes_total Int8 = running.bytes_total, "Bytes of the files to read";
    }
}

type RunningCompaction = (Option<String>, Option<String>, CompactionStatus);

fn compactions(source: &SystemContext) -> Result<Vec<RunningCompaction>> {
    let (names, descriptors) = (store_tables(source), source.engine.store().tables());
    let row = |running: CompactionStatus| {
        let descriptor = descriptors.iter().find(|table| table.id == running.table);
        let family = descriptor.and_then(|table| table.families.get(usize::from(running.family)));
        (name_of(&names, running.table), family.map(|family| family.name.clone()), running)
    };
    // Those of other databases are left out.
    let is_own = |running: &CompactionStatus| {
        let table = running.table;
        table == source.engine.catalog_table || names.iter().any(|(_, id)| *id == table)
    };
    let running = source.engine.store().compactions().into_iter();
    Ok(running.filter(is_own).map(row).collect())
}

fn reason(reason: Reason) -> &'static str {
    match reason {
        Reason::Expired => "expired",
        Reason::Split => "split",
        Reason::Major => "major",
        Reason::Period => "period",
        Reason::Policy => "policy",
    }
}

system_view! {
    ENDPOINT_CALLS: "endpoint_calls", "Running calls of endpoints in regions", endpoint_calls => |(table, call)| {
        call Int8 = call.call, "Number of the call";
        table_name Text = table, "Table or index";
        endpoint Text = call.endpoint.as_str(), "Endpoint";
        transaction Int8 = call.transaction, "Calling transaction";
        started Timestamptz = call.started_micros, "Start";
        rows_read Int8 = call.rows, "Rows read";
        pages Int8 = call.pages, "Pages of results returned";
        regions_done Int8 = call.regions_done, "Number of completed regions, as of the start of the call";
        regions Int8 = call.regions, "Number of regions, as of the start of the call";
    }
}

fn endpoint_calls(source: &SystemContext) -> Result<Vec<(Option<String>, EndpointCallStatus)>> {
    let names = store_tables(source);
    let calls = source.engine.store().endpoint_calls().into_iter();
    let of_table = |call: EndpointCallStatus| Some((Some(name_of(&names, call.table)?), call));
    Ok(calls.filter_map(of_table).collect())
}

system_view! {
    STORAGE: "storage", "Files and compactions of tables and indexes", storage => |(table, statistics)| {
        table_name Text = table, "Table or index";
        store_files Int8 = statistics.files, "Number of store files";
        sorted_runs Int8 = statistics.runs, "Number of sorted runs";
        store_file_bytes Int8 = statistics.file_bytes, "Bytes of the store files";
        flushed_bytes Int8 = statistics.flushed_bytes, "Bytes written by flushes";
        compacted_bytes Int8 = statistics.compacted_out_bytes, "Bytes written by compactions";
        compactions Int8 = statistics.compactions, "Number of compactions";
        expired_files Int8 = statistics.expired_files, "Number of files dropped because all their rows had expired";
        write_amplification Float8 = statistics.write_amplification(), "Bytes written to files for each byte flushed";
        space_amplification Float8 = statistics.space_amplification(), "Bytes of files for each byte that is alive";
    }
}

system_view! {
    STORES: "stores", "Stores of tables and indexes: one for each column family of each region", stores => |(table, store)| {
        table_name Text = table, "Table or index";
        region Int8 = store.region.0, "Number of the region";
        family Text = store.family.name.as_str(), "Column family";
        memstore_bytes Int8 = store.status.memstore_bytes, "Bytes of the memstores";
        sorted_runs Int8 = store.status.run_count, "Number of sorted runs: a read of a row accesses at most one file of each";
        store_files Int8 = store.status.files.len(), "Number of store files";
        store_file_bytes Int8 = sum(&store.status, |file| file.byte_count), "Bytes of the store files";
        cells Int8 = sum(&store.status, |file| file.properties.cell_count),
            "Cells of the store files, with those that no read returns";
        delete_markers Int8 = sum(&store.status, |file| file.properties.marker_count()), "Delete markers of the store files";
        oldest_file Timestamptz = store.status.files.iter().map(|file| file.record.created_micros).min(),
            "Creation of the oldest store file";
        cache_hits Int8 = store.status.cache.hit_count, "Blocks found in the block cache since the start";
        cache_misses Int8 = store.status.cache.miss_count, "Blocks read from files since the start";
        damage Text = store.status.damage.map(|damage| damage.error().to_string()), "Damage of a file; NULL: none";
    }
}

system_view! {
    STORE_FILES: "store_files", "Store files of tables and indexes", store_files => |(table, store, file)| {
        table_name Text = table, "Table or index";
        region Int8 = store.region.0, "Number of the region";
        family Text = store.family.name.as_str(), "Column family";
        file Int8 = file.record.id.0, "Number of the file";
        level Int4 = file.record.level, "Level of the leveled policy; 0 otherwise";
        sorted_run Int8 = file.record.run, "Number of the sorted run in level 0";
        created Timestamptz = file.record.created_micros, "Creation";
        bytes Int8 = file.byte_count, "Bytes; an estimate if the region has a part of the file";
        is_part Bool = file.is_part, "Whether the region has only a part of the file, after a split";
        rows Int8 = file.properties.row_count, "Rows of the whole file";
        cells Int8 = file.properties.cell_count, "Cells of the whole file";
        delete_markers Int8 = file.properties.marker_count(), "Delete markers of the whole file";
        uncompressed_bytes Int8 = file.properties.raw_bytes, "Bytes of keys and values before encoding and compression";
        first_row Bytea = file.properties.first_row.as_slice(), "First row";
        last_row Bytea = file.properties.last_row.as_slice(), "Last row";
        min_timestamp Timestamptz = file.properties.min_timestamp.0, "Lowest timestamp of a cell";
        max_timestamp Timestamptz = file.properties.max_timestamp.0, "Highest timestamp of a cell";
    }
}

fn stores(source: &SystemContext) -> Result<Vec<(String, RegionFamilyStatus)>> {
    let mut found = Vec::new();
    for (name, id) in store_tables(source) {
        let stores = source.engine.store().stores(id)?.into_iter();
        found.extend(stores.map(|store| (name.clone(), store)));
    }
    Ok(found)
}

fn store_files(source: &SystemContext) -> Result<Vec<(String, RegionFamilyStatus, FileStatus)>> {
    let mut found = Vec::new();
    for (name, mut store) in stores(source)? {
        let files = std::mem::take(&mut store.status.files).into_iter();
        found.extend(files.map(|file| (name.clone(), store.clone(), file)));
    }
    Ok(found)
}

/// Sums a value over the files of a store.
fn sum(status: &FamilyStatus, value: impl Fn(&FileStatus) -> u64) -> u64 {
    status.files.iter().map(value).sum()
}

system_view! {
    FAMILIES: "families", "Column families of tables and indexes, with the options in force", families => |(table, family)| {
        table_name Text = table, "Table or index";
        family Text = family.name.as_str(), "Name";
        versions Int8 = family.versions, "Number of versions retained of each row";
        min_versions Int8 = family.min_versions, "Number of versions retained even when older than the TTL";
        ttl_seconds Int8 = family.ttl.map(|ttl| ttl.as_secs()), "Age at which rows expire; NULL: never";
        keep_deleted_cells Text = option(&family, "keep_deleted_cells"), "Whether deleted rows are retained for time travel";
        rules_changed Timestamptz = family.retired.last().map(|rule| rule.until_micros),
            "Last change of `VERSIONS`, `MIN_VERSIONS` or `TTL` that the store still applies; NULL: none";
        compression Text = option(&family, "compression"), "Compression of blocks in new files";
        bloomfilter Text = option(&family, "bloomfilter"), "Keys of the Bloom filters of new files";
        data_block_encoding Text = option(&family, "data_block_encoding"), "Encoding of blocks in new files";
        blocksize Int8 = family.block_bytes, "Size at which a block of a new file is closed";
        blockcache Bool = family.block_cache, "Whether blocks enter the block cache when they are read";
        in_memory Bool = family.in_memory, "Whether blocks have priority in the block cache";
        compaction Text = option(&family, "compaction"), "Compaction policy";
        major_compaction_period_seconds Int8 = family.compaction.major_period.map(|period| period.as_secs()),
            "Age of the oldest file at which all files are merged; NULL: only by `MAJOR COMPACT`";
    }
}

/// Returns the families of all tables and indexes, as the store has them.
fn families(source: &SystemContext) -> Result<Vec<(String, FamilyDescriptor)>> {
    let known = source.engine.store().tables();
    let mut found = Vec::new();
    for (name, id) in store_tables(source) {
        let table = known.iter().find(|table| table.id == id);
        let families = table.into_iter().flat_map(|table| &table.families);
        let living = families.filter(|family| !family.is_dropped());
        found.extend(living.map(|family| (name.clone(), family.clone())));
    }
    Ok(found)
}

/// Returns the text of an option of a family.
fn option(family: &FamilyDescriptor, name: &str) -> Option<String> {
    option_text(&StorageSettings { family: family.clone(), ..StorageSettings::default() }, name)
}

fn storage(source: &SystemContext) -> Result<Vec<(String, CompactionStatistics)>> {
    let tables = store_tables(source).into_iter();
    let store = source.engine.store();
    tables.map(|(name, id)| Ok((name, store.compaction_figures(Some(id))?))).collect()
}

/// Returns the store tables of tables and indexes, with their names.
fn store_tables(source: &SystemContext) -> Vec<(String, TableId)> {
    let tables = source.readable_tables().into_iter().flat_map(table::stores);
    tables.map(|store| (store.name, store.id)).collect()
}

/// Returns the name of a store table; `None` for tables of the catalog itself.
fn name_of(names: &[(String, TableId)], table: TableId) -> Option<String> {
    names.iter().find(|(_, id)| *id == table).map(|(name, _)| name.clone())
}
