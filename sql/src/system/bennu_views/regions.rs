//! Views `bennu.regions`, boundaries, size and load counters of each region, `bennu.replicas`,
//! their replicas, and `bennu.normalizer_plan`, what the normaliser would do.
//!
//! Boundaries appear in two forms: as bytes, which are exact, and as SQL literals of the key
//! columns that they begin with. The salt byte has its own column.

use std::sync::Arc;
use std::time::Duration;

use store::descriptor::RegionId;
use store::normalizer::{NormalizerAction, NormalizerActionKind, NormalizerPlan};
use store::store::{RegionStatus, ReplicaStatus};
use types::rowcode::RowLayout;
use types::{DataType, keycode};

use crate::catalog::table::{StoreTable, normalizer_rules, stores};
use crate::error::Result;
use crate::plan::literal;
use crate::system::SystemContext;
use crate::system::bennu_views::{SystemView, SystemViewColumn, ViewValue, system_view, tuple};
use crate::system::value::bytes;

system_view! {
    REGIONS: "regions", "Regions of tables and indexes", held_regions => |(table, layout, region, now)| {
        table_name Text = table, "Table or index";
        region Int8 = region.region.0, "Number of the region";
        start_key Bytea = region.start.as_slice(), "First row";
        end_key Bytea = region.stop.as_deref(), "Row after the last; NULL: the end of the table";
        salt_bucket Int4 = (layout.salt_buckets > 0).then(|| region.start.first().copied().unwrap_or(0)), "Salt bucket";
        start_values Text = key_values(layout, &region.start), "Key values of `start_key`; bytes that are not a value come last";
        end_values Text = region.stop.as_deref().and_then(|stop| key_values(layout, stop)), "Key values of `end_key`";
        memstore_bytes Int8 = region.memstore_bytes, "Bytes of the memstores";
        store_files Int8 = region.file_count, "Number of store files";
        store_file_bytes Int8 = region.file_bytes, "Bytes of the store files";
        read_requests Int8 = region.load.read_requests, "Gets, and scans that entered the region, since the region was opened";
        rows_read Int8 = region.load.rows_read, "Rows returned, since the region was opened";
        cells_read Int8 = region.load.cells_read, "Cells returned, since the region was opened";
        bytes_read Int8 = region.load.bytes_read, "Bytes returned, since the region was opened";
        write_requests Int8 = region.load.write_requests, "Commits that wrote to the region, since the region was opened";
        rows_written Int8 = region.load.rows_written, "Rows written, since the region was opened";
        cells_written Int8 = region.load.cells_written, "Cells written, since the region was opened";
        bytes_written Int8 = region.load.bytes_written, "Bytes written, since the region was opened";
        lock_waits Int8 = region.load.lock_waits, "Waits for row locks, since the region was opened";
        read_requests_per_second Float8 = region.rates.read_requests, "Decayed rate: gets, and scans that entered the region";
        rows_read_per_second Float8 = region.rates.rows_read, "Decayed rate: rows returned";
        cells_read_per_second Float8 = region.rates.cells_read, "Decayed rate: cells returned";
        bytes_read_per_second Float8 = region.rates.bytes_read, "Decayed rate: bytes returned";
        write_requests_per_second Float8 = region.rates.write_requests, "Decayed rate: commits that wrote to the region";
        rows_written_per_second Float8 = region.rates.rows_written, "Decayed rate: rows written";
        cells_written_per_second Float8 = region.rates.cells_written, "Decayed rate: cells written";
        bytes_written_per_second Float8 = region.rates.bytes_written, "Decayed rate: bytes written";
        lock_waits_per_second Float8 = region.rates.lock_waits, "Decayed rate: waits for row locks";
        damage Text = region.damage.as_deref(), "Damage of files or of the log; NULL: none";
        held_until Timestamptz = held_until(region.held_for, now),
            "End of a hold of the primary by `hold_primary`; NULL: none";
    }
}

/// Region with its table or index, the layout, and the present time in microseconds.
type HeldRegion<'s> = (String, &'s RowLayout, RegionStatus, i64);

fn held_regions(source: &SystemContext) -> Result<Vec<HeldRegion<'_>>> {
    let now = source.engine.store().now_micros();
    let regions = regions(source)?.into_iter();
    Ok(regions.map(|(table, layout, region)| (table, layout, region, now)).collect())
}

/// Returns the end of a hold, in microseconds since 1970.
fn held_until(held: Option<Duration>, now: i64) -> Option<i64> {
    held.map(|held| now.saturating_add(i64::try_from(held.as_micros()).unwrap_or(i64::MAX)))
}

fn regions(source: &SystemContext) -> Result<Vec<(String, &RowLayout, RegionStatus)>> {
    let mut rows = Vec::new();
    for StoreTable { name, id, layout } in source.readable_tables().into_iter().flat_map(stores) {
        let regions = source.engine.store().regions(id)?.into_iter();
        rows.extend(regions.map(|region| (name.clone(), &**layout, region)));
    }
    Ok(rows)
}

system_view! {
    REPLICAS: "replicas", "Replicas of regions", replicas => |(table, region, replica, now)| {
        table_name Text = table, "Table or index";
        region Int8 = region.0, "Number of the region";
        replica Int4 = replica.replica, "Number of the replica; the primary is 0";
        applied Timestamptz = replica.applied_timestamp.0, "Time of the last commit that was applied";
        lag_commits Int8 = replica.lag_commits, "Number of commits that the replicas of all regions have still to apply";
        lag_bytes Int8 = replica.lag_bytes, "Bytes of the cells of these commits";
        lag_seconds Float8 = lag_seconds(&replica, now), "Age of the oldest of these commits; 0 if there are none";
        held_until Timestamptz = held_until(replica.held_for, now),
            "End of a hold of all replicas by `hold_replicas`; NULL: none";
        memstore_bytes Int8 = replica.memstore_bytes, "Bytes of its own memstores";
        rows_read Int8 = replica.rows_read, "Rows that TIMELINE reads were returned, since the replica was created";
    }
}

/// Replica with the table or index, the region, and the present time in microseconds.
type RegionReplica = (String, RegionId, ReplicaStatus, i64);

fn replicas(source: &SystemContext) -> Result<Vec<RegionReplica>> {
    let now = source.engine.store().now_micros();
    let mut rows = Vec::new();
    for (table, _, region) in regions(source)? {
        let replicas = region.replicas.into_iter();
        rows.extend(replicas.map(|replica| (table.clone(), region.region, replica, now)));
    }
    Ok(rows)
}

fn lag_seconds(replica: &ReplicaStatus, now: i64) -> f64 {
    replica.lag_since.map_or(0.0, |since| (now - since.0).max(0) as f64 / 1e6)
}

system_view! {
    NORMALIZER_PLAN: "normalizer_plan", "What the normaliser would do", plans => |(table, layout, plan, action)| {
        table_name Text = table, "Table or index";
        enabled Bool = plan.enabled, "Whether the normaliser acts automatically: `NORMALIZATION_ENABLED`";
        action Text = kind(&action), "`merge` or `split`";
        regions Text = list(action.regions.iter().map(|region| region.0)), "Numbers of the regions, in key order";
        region_bytes Text = list(action.region_bytes.iter().copied()), "Their sizes: bytes of store files and memstores";
        start_key Bytea = action.rows.start.as_slice(), "First row";
        end_key Bytea = action.rows.stop.as_deref(), "Row after the last; NULL: the end of the table";
        start_values Text = key_values(layout, &action.rows.start), "Key values of `start_key`";
        end_values Text = action.rows.stop.as_deref().and_then(|stop| key_values(layout, stop)), "Key values of `end_key`";
        target_bytes Int8 = plan.target_bytes, "Size of a region that the normaliser aims at";
        reason Text = reason(&action, plan.target_bytes), "Reason of the action";
        due_at Timestamptz = action.due_micros, "Time from which the regions are old enough; NULL: at any time";
    }
}

/// Action with the table or index, its layout, and the plan that it is from.
type PlannedAction<'s> = (String, &'s RowLayout, Arc<NormalizerPlan>, NormalizerAction);

fn plans(source: &SystemContext) -> Result<Vec<PlannedAction<'_>>> {
    let store = source.engine.store();
    let min_age = store.normalizer_min_age();
    let mut rows = Vec::new();
    for StoreTable { name, id, layout } in source.readable_tables().into_iter().flat_map(stores) {
        let mut plan = store.normalizer_plan(id, normalizer_rules(layout.salt_buckets, min_age))?;
        let actions = std::mem::take(&mut plan.actions);
        let plan = Arc::new(plan);
        let action = |action| (name.clone(), &**layout, Arc::clone(&plan), action);
        rows.extend(actions.into_iter().map(action));
    }
    Ok(rows)
}

fn kind(action: &NormalizerAction) -> &'static str {
    match action.kind {
        NormalizerActionKind::Merge => "merge",
        NormalizerActionKind::Split => "split",
    }
}

fn list(numbers: impl Iterator<Item = u64>) -> String {
    numbers.map(|number| number.to_string()).collect::<Vec<_>>().join(", ")
}

fn reason(action: &NormalizerAction, target: u64) -> String {
    let filled = action.region_bytes.iter().filter(|bytes| **bytes > 0).count();
    match action.kind {
        NormalizerActionKind::Split => format!("larger than twice the target, {target} bytes"),
        NormalizerActionKind::Merge if filled <= 1 => "empty regions".to_owned(),
        NormalizerActionKind::Merge => format!("together at most the target, {target} bytes"),
    }
}

/// Returns the values of the key columns that a boundary begins with, such as `(42, 'abc')`. A
/// rest that does not decode as a key column is shown as bytes. `None` if the boundary consists of
/// a salt byte or is empty.
fn key_values(layout: &RowLayout, boundary: &[u8]) -> Option<String> {
    let mut rest = match layout.salt_buckets {
        0 => boundary,
        _ => boundary.get(1..).unwrap_or_default(),
    };
    if rest.is_empty() {
        return None;
    }
    let mut values = Vec::new();
    for key in &layout.key {
        let data_type = &layout.columns[key.column].data_type;
        match keycode::decode(rest, data_type, key.descending, key.nulls_first) {
            Ok((value, taken)) => {
                values.push(literal(&value, data_type));
                rest = rest.get(taken..).unwrap_or_default();
            }
            Err(_) => break,
        }
        if rest.is_empty() {
            break;
        }
    }
    if !rest.is_empty() {
        values.push(literal(&bytes(rest), &DataType::Bytea));
    }
    tuple(&values)
}

#[cfg(test)]
mod tests {
    use types::Datum;
    use types::rowcode::{ColumnPlace, KeyColumn, LayoutColumn};

    use super::*;

    fn layout(salt_buckets: u16) -> RowLayout {
        let types = [DataType::Int4, DataType::Text];
        let column = |(position, data_type)| LayoutColumn {
            data_type,
            place: ColumnPlace::Key(position),
            missing: Datum::Null,
        };
        let key = |column| KeyColumn { column, descending: column == 1, nulls_first: false };
        RowLayout {
            salt_buckets,
            ..RowLayout::new(
                types.into_iter().enumerate().map(column).collect(),
                (0..2).map(key).collect(),
                1,
            )
        }
    }

    #[test]
    fn region_boundaries_decode_to_key_values() {
        let plain = layout(0);
        let key = plain.encode_key_values(&[Datum::Int4(42), Datum::text("it's")]).unwrap();
        let shown = |layout: &RowLayout, bytes: &[u8]| {
            key_values(layout, bytes).unwrap_or_else(|| "none".to_owned())
        };
        assert_eq!(shown(&plain, &key), "(42, 'it''s')");
        let first = plain.encode_key_prefix(&[Datum::Int4(-1)]).unwrap();
        assert_eq!(shown(&plain, &first), "(-1)");
        assert_eq!(shown(&plain, &key[..7]), "(42, '\\x02b9'::bytea)".replace("b9", &hex(key[6])));
        assert_eq!(shown(&plain, b"\x80"), "('\\x80'::bytea)");
        assert_eq!(shown(&plain, b""), "none");
        let salted = [&[3], key.as_slice()].concat();
        assert_eq!(shown(&layout(4), &salted), "(42, 'it''s')");
        assert_eq!(shown(&layout(4), &[3]), "none");
    }

    fn hex(byte: u8) -> String {
        format!("{byte:02x}")
    }
}
