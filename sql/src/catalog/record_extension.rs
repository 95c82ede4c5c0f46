//! Record extensions: fields added to the records of tables, views, types and functions after
//! their first version.
//!
//! Extensions are in a second record after the first one, and only if there are any. So records of
//! older versions remain readable, and the format of the first record never changes. An extension
//! contains its kind, and the position of the column or index that it belongs to; new kinds are
//! appended to [`TableExtension`].

use std::ops::{Deref, DerefMut};

use bincode::de::{BorrowDecoder, Decoder};
use bincode::enc::Encoder;
use bincode::error::{DecodeError, EncodeError};
use bincode::{BorrowDecode, Decode, Encode};
use store::codec;
use store::codec::RecordDamage;

use crate::ast::{CheckOption, Collation, Deferral, OnCommit};
use crate::catalog::composite::CompositeRecord;
use crate::catalog::domain::DomainRecord;
use crate::catalog::ignored_attributes::{
    IgnoredColumnAttributes, IgnoredIndexAttributes, IgnoredTableAttributes,
};
use crate::catalog::record::{TableRecord, ViewRecord};
use crate::error::{Error, Result, sqlstate};

/// A field that is stored in a record extension.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Extended<T>(pub T);

impl<T> Deref for Extended<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for Extended<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

impl<T> Encode for Extended<T> {
    fn encode<E: Encoder>(&self, _: &mut E) -> std::result::Result<(), EncodeError> {
        Ok(())
    }
}

impl<T: Default, C> Decode<C> for Extended<T> {
    fn decode<D: Decoder<Context = C>>(_: &mut D) -> std::result::Result<Self, DecodeError> {
        Ok(Extended::default())
    }
}

impl<'de, T: Default, C> BorrowDecode<'de, C> for Extended<T> {
    fn borrow_decode<D: BorrowDecoder<'de, Context = C>>(
        _: &mut D,
    ) -> std::result::Result<Self, DecodeError> {
        Ok(Extended::default())
    }
}

/// The kind of a table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TableKind {
    /// An ordinary table.
    #[default]
    Ordinary,
    /// A materialized view; its query is in the view with the same number.
    Materialized {
        /// False after `WITH NO DATA`.
        populated: bool,
    },
}

/// A record extension of a table.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
enum TableExtension {
    /// [`TableKind::Materialized`]
    Materialized { populated: bool },
    /// The deferral mode of a foreign key, by its position.
    ForeignKey { position: u32, deferral: Deferral },
    /// ON COMMIT of a temporary table.
    OnCommit(OnCommit),
    /// `NULLS NOT DISTINCT` of an index, by its position.
    NullsNotDistinct { position: u32 },
    /// The predicate of a partial index, by its position.
    Predicate { position: u32, text: String },
    /// An index that is being built, by its position.
    Building { position: u32 },
    /// The deferral mode of the UNIQUE constraint of an index, by its position.
    Unique { position: u32, deferral: Deferral },
    /// The index of a deferrable primary key, by its position.
    Primary { position: u32 },
    /// The collation of a column, by its position.
    Collation { position: u32, collation: Collation },
    /// Attributes of the table without effect.
    Retained(IgnoredTableAttributes),
    /// Attributes of a column without effect, by its position.
    RetainedColumn { position: u32, retained: IgnoredColumnAttributes },
    /// Attributes of an index without effect, by its position.
    RetainedIndex { position: u32, retained: IgnoredIndexAttributes },
    /// `DISABLE TRIGGER ALL`: foreign keys are not checked when rows of the table change.
    WithoutTriggers,
    /// The columns that `ON DELETE SET …` of a foreign key sets, by its position.
    DeleteColumns { position: u32, columns: Vec<u32> },
}

/// A record extension of a view.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
enum ViewExtension {
    /// `WITH CHECK OPTION`
    CheckOption(CheckOption),
    /// The default of a column, by its position.
    Default { position: u32, text: String },
}

/// A record extension of a domain or a composite type.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
enum TypeExtension {
    /// The collation of an attribute, by its position; 0 for a domain.
    Collation { position: u32, collation: Collation },
}

/// Returns the encoded record of a domain.
pub fn encode_domain(record: &DomainRecord) -> Vec<u8> {
    let collation = record.collation.iter();
    let additions =
        collation.map(|&collation| TypeExtension::Collation { position: 0, collation }).collect();
    encode_with(record, &additions)
}

/// Decodes the record of a domain.
///
/// # Errors
///
/// XX001 if the bytes are damaged.
pub fn decode_domain(bytes: &[u8]) -> Result<DomainRecord> {
    let (mut record, additions) = decode_with::<DomainRecord, TypeExtension>(bytes)?;
    for TypeExtension::Collation { collation, .. } in additions {
        record.collation.0 = Some(collation);
    }
    Ok(record)
}

/// Returns the encoded record of a composite type.
pub fn encode_composite(record: &CompositeRecord) -> Vec<u8> {
    let attributes = (0..).zip(&record.attributes);
    let additions = attributes.filter_map(|(position, attribute)| {
        let collation = (*attribute.collation)?;
        Some(TypeExtension::Collation { position, collation })
    });
    encode_with(record, &additions.collect())
}

/// Decodes the record of a composite type.
///
/// # Errors
///
/// XX001 if the bytes are damaged.
pub fn decode_composite(bytes: &[u8]) -> Result<CompositeRecord> {
    let (mut record, additions) = decode_with::<CompositeRecord, TypeExtension>(bytes)?;
    for TypeExtension::Collation { position, collation } in additions {
        let attribute = record.attributes.get_mut(position as usize).ok_or_else(to_nothing)?;
        attribute.collation.0 = Some(collation);
    }
    Ok(record)
}

/// Returns the encoded record of a view.
pub fn encode_view(record: &ViewRecord) -> Vec<u8> {
    let check_option = record.check_option.iter().copied().map(ViewExtension::CheckOption);
    let defaults = (0..).zip(&record.columns).filter_map(|(position, column)| {
        let text = column.default.0.clone()?;
        Some(ViewExtension::Default { position, text })
    });
    encode_with(record, &check_option.chain(defaults).collect())
}

/// Decodes the record of a view.
///
/// # Errors
///
/// XX001 if the bytes are damaged.
pub fn decode_view(bytes: &[u8]) -> Result<ViewRecord> {
    let (mut record, additions) = decode_with::<ViewRecord, ViewExtension>(bytes)?;
    for addition in additions {
        match addition {
            ViewExtension::CheckOption(option) => record.check_option.0 = Some(option),
            ViewExtension::Default { position, text } => {
                let column = record.columns.get_mut(position as usize).ok_or_else(to_nothing)?;
                column.default.0 = Some(text);
            }
        }
    }
    Ok(record)
}

fn to_nothing() -> Error {
    let message = "damaged catalog record: extension of a missing entry";
    Error::new(sqlstate::DATA_CORRUPTED, message)
}

fn damaged(damage: RecordDamage) -> Error {
    let (RecordDamage::Broken(why) | RecordDamage::Unreadable(why)) = damage;
    Error::new(sqlstate::DATA_CORRUPTED, format!("damaged catalog record: {why}"))
}

/// Returns an encoded record followed by its extensions.
pub fn encode_with<T: Encode, A: Encode>(record: &T, additions: &Vec<A>) -> Vec<u8> {
    let mut bytes = Vec::new();
    codec::append_record(record, &mut bytes);
    if !additions.is_empty() {
        codec::append_record(additions, &mut bytes);
    }
    bytes
}

/// Decodes a record and its extensions.
///
/// # Errors
///
/// XX001 if the bytes are damaged.
pub fn decode_with<T: Decode<()>, A: Decode<()>>(bytes: &[u8]) -> Result<(T, Vec<A>)> {
    let (record, used) = codec::read_record::<T>(bytes).map_err(damaged)?;
    let rest = bytes.get(used..).unwrap_or_default();
    if rest.is_empty() {
        return Ok((record, Vec::new()));
    }
    let (additions, _) = codec::read_record::<Vec<A>>(rest).map_err(damaged)?;
    Ok((record, additions))
}

/// Returns the encoded record of a table.
pub fn encode_table(record: &TableRecord) -> Vec<u8> {
    encode_with(record, &additions_of(record))
}

/// Decodes the record of a table.
///
/// # Errors
///
/// XX001 if the bytes are damaged.
pub fn decode_table(bytes: &[u8]) -> Result<TableRecord> {
    let (mut record, additions) = decode_with::<TableRecord, TableExtension>(bytes)?;
    for addition in additions {
        add(&mut record, addition).ok_or_else(to_nothing)?;
    }
    Ok(record)
}

fn additions_of(record: &TableRecord) -> Vec<TableExtension> {
    let mut additions = Vec::new();
    match *record.kind {
        TableKind::Ordinary => {}
        TableKind::Materialized { populated } => {
            additions.push(TableExtension::Materialized { populated });
        }
    }
    if *record.on_commit != OnCommit::PreserveRows {
        additions.push(TableExtension::OnCommit(*record.on_commit));
    }
    for (position, column) in (0..).zip(&record.columns) {
        if let Some(collation) = *column.collation {
            additions.push(TableExtension::Collation { position, collation });
        }
        if *column.retained != IgnoredColumnAttributes::default() {
            let retained = column.retained.0.clone();
            additions.push(TableExtension::RetainedColumn { position, retained });
        }
    }
    for (position, key) in (0..).zip(&record.foreign_keys) {
        if *key.deferral != Deferral::Never {
            let deferral = *key.deferral;
            additions.push(TableExtension::ForeignKey { position, deferral });
        }
        if !key.delete_columns.is_empty() {
            let columns = key.delete_columns.0.clone();
            additions.push(TableExtension::DeleteColumns { position, columns });
        }
    }
    for (position, index) in (0..).zip(&record.indexes) {
        if *index.nulls_not_distinct {
            additions.push(TableExtension::NullsNotDistinct { position });
        }
        if let Some(text) = &*index.predicate {
            additions.push(TableExtension::Predicate { position, text: text.clone() });
        }
        if *index.building {
            additions.push(TableExtension::Building { position });
        }
        if *index.deferral != Deferral::Never {
            additions.push(TableExtension::Unique { position, deferral: *index.deferral });
        }
        if *index.primary {
            additions.push(TableExtension::Primary { position });
        }
        if *index.retained != IgnoredIndexAttributes::default() {
            let retained = index.retained.0.clone();
            additions.push(TableExtension::RetainedIndex { position, retained });
        }
    }
    if *record.retained != IgnoredTableAttributes::default() {
        additions.push(TableExtension::Retained(record.retained.0.clone()));
    }
    if *record.without_triggers {
        additions.push(TableExtension::WithoutTriggers);
    }
    additions
}

/// Applies an extension to a record; `None` if the record has no such column, index or foreign
/// key.
fn add(record: &mut TableRecord, addition: TableExtension) -> Option<()> {
    match addition {
        TableExtension::Materialized { populated } => {
            record.kind.0 = TableKind::Materialized { populated };
        }
        TableExtension::NullsNotDistinct { position } => {
            record.indexes.get_mut(position as usize)?.nulls_not_distinct.0 = true;
        }
        TableExtension::Predicate { position, text } => {
            record.indexes.get_mut(position as usize)?.predicate.0 = Some(text);
        }
        TableExtension::Building { position } => {
            record.indexes.get_mut(position as usize)?.building.0 = true;
        }
        TableExtension::Unique { position, deferral } => {
            record.indexes.get_mut(position as usize)?.deferral.0 = deferral;
        }
        TableExtension::Collation { position, collation } => {
            record.columns.get_mut(position as usize)?.collation.0 = Some(collation);
        }
        TableExtension::Primary { position } => {
            record.indexes.get_mut(position as usize)?.primary.0 = true;
        }
        TableExtension::OnCommit(on_commit) => record.on_commit.0 = on_commit,
        TableExtension::Retained(retained) => record.retained.0 = retained,
        TableExtension::WithoutTriggers => record.without_triggers.0 = true,
        TableExtension::RetainedColumn { position, retained } => {
            record.columns.get_mut(position as usize)?.retained.0 = retained;
        }
        TableExtension::RetainedIndex { position, retained } => {
            record.indexes.get_mut(position as usize)?.retained.0 = retained;
        }
        TableExtension::DeleteColumns { position, columns } => {
            record.foreign_keys.get_mut(position as usize)?.delete_columns.0 = columns;
        }
        TableExtension::ForeignKey { position, deferral } => {
            record.foreign_keys.get_mut(position as usize)?.deferral.0 = deferral;
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use store::{FamilyDescriptor, TableDescriptor, TableId};

    use super::*;
    use crate::ast::StorageKind;
    use crate::catalog::ignored_attributes::ReplicaIdentity;
    use crate::catalog::record;

    fn table() -> TableRecord {
        TableRecord {
            oid: 1_000,
            schema: "public".to_owned(),
            name: "t".to_owned(),
            columns: Vec::new(),
            primary_key: Vec::new(),
            primary_key_name: String::new(),
            checks: Vec::new(),
            indexes: Vec::new(),
            foreign_keys: Vec::new(),
            salt_buckets: 0,
            schema_version: 1,
            descriptor: TableDescriptor {
                id: TableId(1_000),
                name: "t".to_owned(),
                families: vec![FamilyDescriptor::new("0")],
                region_replication: 1,
                durability: store::descriptor::Durability::SyncWal,
                split_points: Vec::new(),
                memstore_flush_bytes: None,
                split: store::descriptor::SplitOptions::default(),
            },
            kind: Extended::default(),
            on_commit: Extended::default(),
            retained: Extended::default(),
            without_triggers: Extended::default(),
        }
    }

    #[test]
    fn a_table_without_additions_is_written_as_it_always_was() {
        let bytes = encode_table(&table());
        assert_eq!(bytes, record::encode(&table()));
        assert_eq!(decode_table(&bytes).unwrap(), table());
    }

    #[test]
    fn additions_come_back_and_damage_is_seen() {
        let mut written = table();
        written.kind.0 = TableKind::Materialized { populated: true };
        let mut bytes = encode_table(&written);
        let first = record::encode(&table()).len();
        // Frame of eight bytes, version, one extension of kind 0: true.
        assert_eq!(bytes[first + 8..], [1, 1, 0, 1]);
        assert_eq!(decode_table(&bytes).unwrap(), written);
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
        assert_eq!(decode_table(&bytes).unwrap_err().sqlstate, "XX001");
    }

    /// The encoding of PostgreSQL's attributes without effect: `docs/formats/catalog.md`.
    #[test]
    fn what_is_only_shown_is_written_as_documented() {
        let fillfactor = |value: &str| vec![("fillfactor".to_owned(), value.to_owned())];
        let of_table = TableExtension::Retained(IgnoredTableAttributes {
            parameters: fillfactor("70"),
            unlogged: true,
            replica_identity: ReplicaIdentity::Index(7),
            clustered_on: Some(7),
            key_parameters: fillfactor("80"),
            key_include: vec![2],
        });
        let of_column = IgnoredColumnAttributes {
            statistics: Some(100),
            storage: Some(StorageKind::External),
            compression: Some('l'),
            options: vec![("n_distinct".to_owned(), "5".to_owned())],
        };
        let of_index = IgnoredIndexAttributes {
            parameters: fillfactor("70"),
            is_hash: true,
            operator_classes: vec![(0, "text_pattern_ops".to_owned())],
        };
        let documented: [(TableExtension, &[&[u8]]); 4] = [
            (
                of_table,
                &[
                    &[9, 1, 10],
                    b"fillfactor\x0270",
                    &[1, 3, 7, 1, 7, 1, 10],
                    b"fillfactor\x0280",
                    &[1, 2],
                ],
            ),
            (
                TableExtension::RetainedColumn { position: 1, retained: of_column },
                &[&[10, 1, 1, 200, 1, 1, 1, b'l', 1, 10], b"n_distinct\x015"],
            ),
            (
                TableExtension::RetainedIndex { position: 0, retained: of_index },
                &[&[11, 0, 1, 10], b"fillfactor\x0270", &[1, 1, 0, 16], b"text_pattern_ops"],
            ),
            (TableExtension::WithoutTriggers, &[&[12]]),
        ];
        let first = record::encode(&table()).len();
        for (addition, bytes) in documented {
            let written = encode_with(&table(), &vec![addition.clone()]);
            let (_, read) = decode_with::<TableRecord, TableExtension>(&written).unwrap();
            assert_eq!(read, [addition]);
            // Frame of eight bytes, version, one extension.
            let one: &[&[u8]] = &[&[1, 1]];
            assert_eq!(written[first + 8..], [one, bytes].concat().concat(), "{read:?}");
        }
    }
}
