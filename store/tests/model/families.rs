//! Random family descriptors: with so few versions, such short TTLs, such small blocks and such
//! eager policies that a few cells are affected by all of them.

use std::time::Duration;

use proptest::prelude::*;

use super::super::{
    BloomFilter, CompactionOptions, CompactionPolicy, Compression, DataBlockEncoding,
    DateTieredOptions, ExploringOptions, FamilyDescriptor, KeepDeletedCells, LeveledOptions,
    SectionKind, ValueLayout, ValuePiece, ValueShape,
};

/// Policies so eager, and files so small, that a few cells make several levels, runs and windows.
pub(crate) fn compaction() -> impl Strategy<Value = CompactionOptions> {
    let min_bytes = Some(64 << 20);
    let within = ExploringOptions { min_files: 2, min_bytes, ..ExploringOptions::default() };
    let leveled = LeveledOptions { level0_files: 2, base_bytes: 2000, multiplier: 2 };
    let tiered = DateTieredOptions {
        base_window: Duration::from_micros(100_000),
        windows_per_tier: 2,
        max_age: None,
        incoming_files: 2,
        within,
    };
    let policy = prop_oneof![
        Just(CompactionPolicy::Exploring(within)),
        Just(CompactionPolicy::Leveled(leveled)),
        Just(CompactionPolicy::DateTiered(tiered)),
        Just(CompactionPolicy::Fifo),
    ];
    let file_bytes = prop_oneof![Just(1), Just(300), Just(1 << 20)];
    (policy, file_bytes).prop_map(|(policy, file_bytes)| CompactionOptions {
        file_bytes,
        ..CompactionOptions::of(policy)
    })
}

/// A family whose cells have timestamps from 100,000 to 600,000, or later; the clock is at
/// 600,000 or later.
pub(crate) fn family() -> impl Strategy<Value = FamilyDescriptor> {
    let keep = prop_oneof![
        3 => Just(KeepDeletedCells::False),
        1 => Just(KeepDeletedCells::True),
        1 => Just(KeepDeletedCells::Ttl),
    ];
    let bloom =
        prop_oneof![Just(BloomFilter::None), Just(BloomFilter::Row), Just(BloomFilter::RowCol)];
    let ttl = prop_oneof![2 => Just(None), 1 => Just(Some(Duration::from_micros(250_000)))];
    let encoding = prop_oneof![Just(DataBlockEncoding::Rows), Just(DataBlockEncoding::Columnar)];
    (1..4_u32, 0..3_u32, ttl, keep, bloom, any::<bool>(), (encoding, compaction())).prop_map(
        |(versions, min_versions, ttl, keep, bloom_filter, lz4, (encoding, compaction))| {
            FamilyDescriptor {
                versions,
                min_versions: min_versions.min(versions),
                ttl,
                keep_deleted_cells: keep,
                bloom_filter,
                data_block_encoding: encoding,
                value_layout: ValueLayout {
                    sections: vec![SectionKind::Variable],
                    shapes: vec![ValueShape { prefix: vec![], pieces: vec![ValuePiece::Rest(0)] }],
                }
                .into(),
                compression: if lz4 { Compression::Lz4 } else { Compression::None },
                // So small that a block holds few cells.
                block_bytes: 120,
                compaction,
                ..FamilyDescriptor::new("f")
            }
        },
    )
}
