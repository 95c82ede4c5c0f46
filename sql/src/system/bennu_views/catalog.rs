//! Views `bennu.tables`, `bennu.indexes`, `bennu.views`, `bennu.sequences` and `bennu.settings`:
//! objects of the catalog, and the session's settings.

use std::sync::Arc;

use store::TableDescriptor;
use types::DataType;

use crate::catalog::name::ObjectName;
use crate::catalog::sequence::Sequence;
use crate::catalog::table::{Index, IndexState, Table};
use crate::catalog::view::View;
use crate::error::Result;
use crate::index_builds::IndexBuild;
use crate::index_builds::followers::IndexLag;
use crate::storage_options::{StorageSettings, option_text};
use crate::system::SystemContext;
use crate::system::bennu_views::{SystemView, SystemViewColumn, ViewValue, system_view};

system_view! {
    TABLES: "tables", "Tables and materialized views", tables => |(table, regions)| {
        table_name Text = table.full_name().short(), "Name, with the schema unless that is public";
        primary_key Text = primary_key(table), "Columns of the primary key";
        salt_buckets Int4 = table.layout.salt_buckets, "Number of salt buckets; 0: not salted";
        regions Int4 = regions, "Number of regions";
        region_replication Int4 = table.descriptor.region_replication, "Number of copies of each region";
        versions Int8 = table.descriptor.families[0].versions, "Number of versions retained of each row, in the first family";
        ttl_seconds Int8 = table.descriptor.families[0].ttl.map(|ttl| ttl.as_secs()),
            "Age at which rows expire, in the first family; NULL: never";
        indexes Int4 = table.indexes.len(), "Number of indexes";
        durability Text = option(table, "durability"), "Durability of commits";
        split_policy Text = option(table, "split_policy"), "Policy of automatic splits";
        max_filesize Int8 = table.descriptor.split.max_file_bytes,
            "Size of the files of one family above which a region is too large";
        memstore_flushsize Int8 = table.descriptor.memstore_flush_bytes,
            "Size of a region's memstores at which they are flushed; NULL: the server's";
    }
}

system_view! {
    INDEXES: "indexes", "Indexes and their builds", indexes => |(table, index, build, lag)| {
        index_name Text = ObjectName::new(&table.schema, &index.name).short(), "Name, with the schema unless that is public";
        table_name Text = table.full_name().short(), "Table";
        state Text = index_state(&index, build.as_ref()), "[State](create-index.md#states), such as `active`";
        salt_buckets Int4 = index.spec.layout.salt_buckets, "Number of salt buckets; 0: not salted";
        local Bool = index.spec.local, "Whether its entries are in the regions of their rows";
        rows_done Int8 = build.as_ref().map(|build| build.row_count), "Rows whose entries a stored build has written";
        consistency Text = if index.is_eventual { "eventual" } else { "strong" },
            "[Consistency](create-index.md#eventual-indexes)";
        lag_commits Int8 = lag.map(|lag| lag.commits),
            "Number of commits, of any table, that an eventual index lacks at most; NULL: writers maintain it";
        lag_seconds Float8 = lag.map(|lag| lag.age.as_secs_f64()),
            "Age of the moment that an eventual index shows; 0 if it lacks no commit";
        error Text = build.as_ref().and_then(|build| build.error.clone()), "Error of the failed build";
    }
}

system_view! {
    VIEWS: "views", "Views and their queries", views => |view| {
        view_name Text = ObjectName::new(&view.schema, &view.name).short(), "Name, with the schema unless that is public";
        definition Text = view.text.as_str(), "The query";
    }
}

system_view! {
    SEQUENCES: "sequences", "Sequences", sequences => |(sequence, last, owner)| {
        sequence_name Text = ObjectName::new(&sequence.schema, &sequence.name).short(),
            "Name, with the schema unless that is public";
        data_type Text = DataType::from_oid(sequence.type_oid).unwrap_or(DataType::Int8).sql_name(), "Type of the values";
        start_value Int8 = sequence.start, "First value";
        min_value Int8 = sequence.min, "Smallest value";
        max_value Int8 = sequence.max, "Largest value";
        increment_by Int8 = sequence.increment, "Difference of successive values";
        cycle Bool = sequence.cycle, "Whether the sequence starts again at its end";
        cache_size Int8 = sequence.cache, "Number of values that a session reserves";
        last_value Int8 = last, "Last value taken; NULL: none";
        owned_by Text = owner, "Column that the sequence belongs to";
    }
}

system_view! {
    SETTINGS: "settings", "Settings of the session", settings => |(name, value, about)| {
        name Text = name, "Name";
        setting Text = value, "Value, as SHOW prints it";
        description Text = about, "Description";
    }
}

fn tables(source: &SystemContext) -> Result<Vec<(&Arc<Table>, usize)>> {
    let store = source.engine.store();
    let tables = source.catalog.tables().into_iter();
    tables.map(|table| Ok((table, store.regions(table.id)?.len()))).collect()
}

/// Returns the text of an option of a table.
fn option(table: &Table, name: &str) -> Option<String> {
    let table = TableDescriptor::clone(&table.descriptor);
    option_text(&StorageSettings { table, ..StorageSettings::default() }, name)
}

fn primary_key(table: &Table) -> String {
    let key = table.primary_key().into_iter();
    key.map(|column| table.columns[column].name.as_str()).collect::<Vec<_>>().join(", ")
}

fn views(source: &SystemContext) -> Result<Vec<&Arc<View>>> {
    Ok(source.catalog.views().collect())
}

/// Sequence with its last value and its owner.
type SequenceStatus<'s> = (&'s Arc<Sequence>, Option<i64>, Option<String>);

fn sequences(source: &SystemContext) -> Result<Vec<SequenceStatus<'_>>> {
    let catalog = &source.catalog;
    let owner = |sequence: &Sequence| {
        let (table, column) = sequence.owned_by?;
        let table = catalog.table(table)?;
        let column = table.columns.get(column as usize)?;
        Some(format!("{}.{}", table.full_name().short(), column.name))
    };
    let last = |sequence: &Sequence| source.engine.sequences.last(sequence);
    catalog.sequences().map(|one| Ok((one, last(one)?, owner(one)))).collect()
}

fn settings(source: &SystemContext) -> Result<Vec<(&'static str, &str, &'static str)>> {
    Ok(source.settings.show_all().collect())
}

type IndexRow = (Arc<Table>, Arc<Index>, Option<IndexBuild>, Option<IndexLag>);

fn indexes(source: &SystemContext) -> Result<Vec<IndexRow>> {
    let builds = source.engine.stored_builds()?;
    let build = |index: &Index| builds.iter().find(|one| one.index == index.oid).cloned();
    let engine = &source.engine;
    let lag = |index: &Index| match index.is_followed {
        true => engine.followers.lag(engine.store(), index.spec.store_table),
        false => None,
    };
    let tables = source.catalog.tables().into_iter();
    let rows = tables.flat_map(|table| {
        let row =
            |index: &Arc<Index>| (Arc::clone(table), Arc::clone(index), build(index), lag(index));
        table.indexes.iter().map(row).collect::<Vec<_>>()
    });
    Ok(rows.collect())
}

fn index_state(index: &Index, build: Option<&IndexBuild>) -> &'static str {
    match (index.state, build) {
        (IndexState::Active, _) => "active",
        (IndexState::Unusable, _) => "unusable",
        (IndexState::Disabled, _) => "disabled",
        (IndexState::Building, Some(build)) if build.error.is_none() => "building",
        (IndexState::Building, Some(_)) => "failed",
        (IndexState::Building, None) => "invalid",
    }
}
