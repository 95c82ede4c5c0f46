//! Tags of descriptors in records of the catalog and of the manifest. Unknown tags are damage: an
//! option of a later build must not be lost.

use bincode::de::Decoder;
use bincode::enc::Encoder;
use bincode::error::{DecodeError, EncodeError};
use bincode::{Decode, Encode};

use crate::codec::tagged::{FieldInput, FieldValue};
use crate::descriptor::{
    BloomFilter, CompactionOptions, CompactionPolicy, Compression, DataBlockEncoding,
    DateTieredOptions, Durability, ExploringOptions, FamilyDescriptor, KeepDeletedCells,
    LeveledOptions, RetiredRule, SplitOptions, SplitPolicy, TableDescriptor, TableId,
};
use crate::layout::{EndWidth, SectionKind, ValueLayout, ValuePiece, ValueShape};
use crate::{tagged_enum, tagged_fields};

impl FieldValue for TableId {
    fn append(&self, out: &mut Vec<u8>) {
        self.0.append(out);
    }

    fn read(input: FieldInput<'_>) -> Result<TableId, String> {
        u32::read(input).map(TableId)
    }
}

/// Encoding in records of the manifest: the length of the tagged fields, then the fields.
impl Encode for TableDescriptor {
    fn encode<E: Encoder>(&self, encoder: &mut E) -> Result<(), EncodeError> {
        let mut bytes = Vec::new();
        self.append(&mut bytes);
        bytes.encode(encoder)
    }
}

impl<Context> Decode<Context> for TableDescriptor {
    fn decode<D: Decoder<Context = Context>>(
        decoder: &mut D,
    ) -> Result<TableDescriptor, DecodeError> {
        let bytes = Vec::<u8>::decode(decoder)?;
        TableDescriptor::read(FieldInput::of_payload(&bytes, 0)).map_err(DecodeError::OtherString)
    }
}

bincode::impl_borrow_decode!(TableDescriptor);

tagged_fields!(TableDescriptor {
    1 id,
    2 name,
    3 families,
    4 region_replication,
    5 durability,
    6 split_points,
    7 memstore_flush_bytes,
    8 split,
    9 colocated_with,
});

tagged_fields!(FamilyDescriptor {
    1 name,
    2 versions,
    3 min_versions,
    4 ttl,
    5 keep_deleted_cells,
    6 delete_purge_delay,
    7 compression,
    8 bloom_filter,
    9 block_bytes,
    10 data_block_encoding,
    11 value_layout,
    12 compaction,
    13 block_cache,
    14 retired,
    15 in_memory,
});

tagged_fields!(RetiredRule {
    1 last_sequence,
    2 until_micros,
    3 versions,
    4 min_versions,
    5 ttl,
});

tagged_enum!(KeepDeletedCells { 0 False, 1 True, 2 Ttl });
tagged_enum!(Compression { 0 None, 1 Lz4, 2 Zstd });
tagged_enum!(BloomFilter { 0 None, 1 Row, 2 RowCol });
tagged_enum!(DataBlockEncoding { 0 Rows, 1 Columnar });
tagged_enum!(Durability { 0 SyncWal, 1 AsyncWal, 2 SkipWal });

tagged_fields!(ValueLayout { 1 sections, 2 shapes });
tagged_enum!(SectionKind { 0 Fixed(width), 1 Variable });
tagged_fields!(ValueShape { 1 prefix, 2 pieces });
tagged_enum!(ValuePiece { 0 Fixed(section), 1 Variable { ends, sections }, 2 Rest(section) });
tagged_enum!(EndWidth { 0 Two, 1 Four });

tagged_fields!(CompactionOptions {
    1 policy,
    2 file_bytes,
    3 blocking_files,
    4 major_period,
    5 major_jitter_percent,
});
tagged_enum!(CompactionPolicy {
    0 Exploring(options),
    1 Leveled(options),
    2 DateTiered(options),
    3 Fifo,
});
tagged_fields!(ExploringOptions {
    1 min_files,
    2 max_files,
    3 ratio_percent,
    4 off_peak_ratio_percent,
    5 min_bytes,
    6 max_bytes,
});
tagged_fields!(LeveledOptions { 1 level0_files, 2 base_bytes, 3 multiplier });
tagged_fields!(DateTieredOptions {
    1 base_window,
    2 windows_per_tier,
    3 max_age,
    4 incoming_files,
    5 within,
});

tagged_fields!(SplitOptions {
    1 policy,
    2 max_file_bytes,
    3 normalization,
    4 normalizer_target_bytes,
    5 normalizer_target_regions,
});
tagged_enum!(SplitPolicy {
    0 Disabled,
    1 ConstantSize,
    2 IncreasingToUpperBound,
    3 Stepping,
    4 KeyPrefix { length },
    5 DelimitedKeyPrefix { delimiter },
    6 Busy,
});
