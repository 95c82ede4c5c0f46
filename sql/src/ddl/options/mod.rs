//! Options of CREATE TABLE, CREATE INDEX and constraints: those of [`crate::storage_options`] as
//! settings of the new object.

mod alter;
mod family;
pub mod salting;

use store::FamilyDescriptor;
use store::descriptor::{DataBlockEncoding, KeepDeletedCells};

use crate::ast::{CreateTable, TableOption};
use crate::catalog::ignored_attributes::{Parameter, set_parameter};
use crate::catalog::record::TableRecord;
use crate::error::{Error, Result};
use crate::storage_options::{
    OptionScope, RowStorage, StorageSettings, find, invalid, is_of_toast, unrecognized,
};

/// The option whose default depends on STORAGE.
const DATA_BLOCK_ENCODING: &str = "data_block_encoding";

/// The parsed options of a table or an index.
#[derive(Debug, Clone, PartialEq)]
pub struct TableOptions {
    /// The settings; without a given block size, [`FamilyDescriptor::block_bytes`] is 0.
    pub settings: StorageSettings,
    /// Options of single families: `f.ttl = 5`.
    pub overrides: Vec<TableOption>,
    /// PostgreSQL's storage parameters, which are stored without effect.
    pub parameters: Vec<Parameter>,
}

impl TableOptions {
    /// Parses the options of an object.
    ///
    /// # Errors
    ///
    /// 22023 for an unknown name or an invalid value, 0A000 for an option that is not implemented.
    pub fn read(options: &[TableOption], scope: OptionScope) -> Result<TableOptions> {
        TableOptions::with_storage(RowStorage::Row, options, scope)
    }

    /// As [`TableOptions::read`], with another default of STORAGE.
    ///
    /// # Errors
    ///
    /// See [`TableOptions::read`].
    pub fn with_storage(
        storage: RowStorage,
        options: &[TableOption],
        scope: OptionScope,
    ) -> Result<TableOptions> {
        let mut settings = StorageSettings::of(storage);
        settings.family.block_bytes = 0;
        let mut read = TableOptions { settings, overrides: Vec::new(), parameters: Vec::new() };
        for (index, option) in options.iter().enumerate() {
            let key = |one: &TableOption| {
                (one.name.value.clone(), one.family.as_ref().map(|family| family.value.clone()))
            };
            let again = options[..index].iter().any(|other| key(other) == key(option));
            if again {
                return Err(invalid(&option.name, "it is specified more than once"));
            }
            let spec = find(option, scope)?;
            if spec.is_quota() {
                return Err(unrecognized(&option.name, scope));
            }
            let datum = spec.parse(option)?;
            match &spec.field {
                _ if is_of_toast(option) => {}
                _ if spec.is_stored_text() => {
                    set_parameter(&mut read.parameters, spec.name, Some(datum.to_string()));
                }
                _ if option.family.is_some() => read.overrides.push(option.clone()),
                Some(field) => (field.set)(&mut read.settings, datum),
                None => {}
            }
        }
        let has_encoding = options
            .iter()
            .any(|option| option.family.is_none() && option.name.value == DATA_BLOCK_ENCODING);
        if !has_encoding {
            read.settings.family.data_block_encoding = read.settings.storage.default_encoding();
        }
        Ok(read)
    }

    /// Returns the family of a column according to the option `column_families`.
    pub fn family_of(&self, column: &str) -> Option<&str> {
        let mut families = self.settings.column_families.iter();
        let found = families.find(|(_, columns)| columns.iter().any(|one| one == column));
        let default = self.settings.default_family.as_deref();
        found.map(|(family, _)| family.as_str()).or(default)
    }

    /// Checks that the option `column_families` contains only columns of the table, each in one
    /// family.
    ///
    /// # Errors
    ///
    /// 42703 for a column that does not exist, 22023 for one that occurs twice.
    pub fn check_families(&self, statement: &CreateTable) -> Result<()> {
        let mut seen: Vec<&str> = Vec::new();
        for name in self.settings.column_families.iter().flat_map(|(_, columns)| columns) {
            let found = statement.columns.iter().find(|column| column.name.name.value == *name);
            let Some(column) = found else {
                bail!(UNDEFINED_COLUMN: "column \"{name}\" named in column_families does not exist");
            };
            if seen.contains(&name.as_str()) || column.name.family.is_some() {
                bail!(INVALID_PARAMETER_VALUE: "column \"{name}\" is assigned to two column families");
            }
            seen.push(name);
        }
        Ok(())
    }

    /// Returns the descriptor of a family by name.
    ///
    /// # Errors
    ///
    /// 22023 for a name with `=`, which is the separator of family options in dumps, and for
    /// conflicting options.
    pub fn family(&self, name: &str) -> Result<FamilyDescriptor> {
        if name.contains('=') {
            bail!(INVALID_PARAMETER_VALUE: "invalid column family name \"{name}\": must not contain \"=\"");
        }
        let mut settings = self.settings.clone();
        for option in &self.overrides {
            if option.family.as_ref().is_some_and(|owner| owner.value == name) {
                let spec = find(option, OptionScope::Table)?;
                let datum = spec.parse(option)?;
                spec.field.iter().for_each(|field| (field.set)(&mut settings, datum.clone()));
            }
        }
        let mut family = FamilyDescriptor { name: name.to_owned(), ..settings.family };
        if family.block_bytes == 0 {
            family.block_bytes = family.data_block_encoding.default_block_bytes();
        }
        // Checked after all options are set: FIFO needs a TTL, which may follow it.
        check_family(self.settings.storage, &family)?;
        Ok(family)
    }
}

/// Checks the options of a column family.
///
/// # Errors
///
/// 22023 for conflicting options.
pub fn check_family(storage: RowStorage, family: &FamilyDescriptor) -> Result<()> {
    let of_encoding = (storage == RowStorage::Cell
        && family.data_block_encoding == DataBlockEncoding::Columnar)
        .then(|| "STORAGE = CELL requires DATA_BLOCK_ENCODING = ROW".to_owned());
    let of_compaction = family.compaction.objection(family.ttl, family.min_versions);
    let of_versions = (family.min_versions > family.versions)
        .then(|| "MIN_VERSIONS must not exceed VERSIONS".to_owned());
    match of_encoding.or(of_versions).or(of_compaction.map(Into::into)) {
        Some(why) => {
            bail!(INVALID_PARAMETER_VALUE: "invalid options of column family \"{}\": {why}", family.name)
        }
        None => Ok(()),
    }
}

/// Returns the error for a column family that does not exist.
pub fn undefined_family(family: &str, position: usize) -> Error {
    err!(UNDEFINED_OBJECT: "column family \"{family}\" does not exist"; at position)
}

/// Checks the targets of the normaliser.
///
/// # Errors
///
/// 22023 for a target size together with a target number.
pub(super) fn check_normalizer_targets(record: &TableRecord) -> Result<()> {
    let split = &record.descriptor.split;
    if split.normalizer_target_bytes.is_some() && split.normalizer_target_regions.is_some() {
        bail!(INVALID_PARAMETER_VALUE: "NORMALIZER_TARGET_REGION_SIZE and NORMALIZER_TARGET_REGION_COUNT are mutually exclusive";
            hint "Set one of them, and RESET the other.");
    }
    Ok(())
}

/// Checks the options for attributes of cells that statements set.
///
/// # Errors
///
/// 0A000 for options that exclude each other.
pub(super) fn check_cell_options(record: &TableRecord) -> Result<()> {
    if !record.client_timestamps {
        return Ok(());
    }
    if record.cell_ttl {
        // A put would be visible again when a newer version with a TTL expires.
        let what = "TIMESTAMPS = CLIENT together with CELL_TTL";
        return Err(Error::not_supported(what, "Use the option TTL, or only one of the two."));
    }
    let keeps = |family: &FamilyDescriptor| family.keep_deleted_cells != KeepDeletedCells::False;
    if record.descriptor.families.iter().any(keeps) {
        // Deleted versions would count as VERSIONS and evict older puts.
        let what = "TIMESTAMPS = CLIENT together with KEEP_DELETED_CELLS";
        return Err(Error::not_supported(what, "Use KEEP_DELETED_CELLS = FALSE."));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use store::descriptor::CompactionPolicy;

    use super::*;
    use crate::ast::{Ident, OptionValue};

    fn read(options: &[TableOption]) -> Result<TableOptions> {
        TableOptions::read(options, OptionScope::Table)
    }

    fn option(name: &str, value: OptionValue) -> TableOption {
        let name = Ident { value: name.to_owned(), position: 7 };
        TableOption { family: None, name, value }
    }

    fn number(text: &str) -> OptionValue {
        OptionValue::Number(text.to_owned())
    }

    #[test]
    fn ttl_as_interval_and_seconds_are_equal() {
        let text = OptionValue::String("30 days".to_owned());
        let by_text = read(&[option("ttl", text)]).unwrap();
        let by_number = read(&[option("ttl", number("2592000"))]).unwrap();
        assert_eq!(by_text, by_number);
        assert_eq!(by_text.settings.family.ttl, Some(Duration::from_secs(2_592_000)));
        let text = OptionValue::String("1500 milliseconds".to_owned());
        let exact = read(&[option("ttl", text)]).unwrap();
        assert_eq!(exact.settings.family.ttl, Some(Duration::from_millis(1_500)));
    }

    #[test]
    fn default_block_size_depends_on_encoding() {
        let rows = option("data_block_encoding", OptionValue::Word("row".to_owned()));
        let size = option("blocksize", number("32769"));
        let of_family = TableOption {
            family: Some(Ident { value: "g".to_owned(), position: 1 }),
            ..size.clone()
        };
        let bytes = |options: &[TableOption], name: &str| {
            read(options).unwrap().family(name).unwrap().block_bytes
        };
        assert_eq!(bytes(&[], "f"), 64 << 10);
        assert_eq!(bytes(std::slice::from_ref(&rows), "f"), 32 << 10);
        assert_eq!(bytes(&[size.clone(), rows.clone()], "f"), 32769);
        assert_eq!(bytes(&[rows.clone(), of_family.clone()], "g"), 32769);
        assert_eq!(bytes(&[rows, of_family], "f"), 32 << 10);
    }

    #[test]
    fn fifo_compaction_requires_ttl() {
        let fifo = option("compaction", OptionValue::String("FIFO".to_owned()));
        let options = read(std::slice::from_ref(&fifo)).unwrap();
        assert_eq!(options.family("f").unwrap_err().sqlstate, "22023");
        let period = option("major_compaction_period", number("5"));
        let options = read(&[fifo, option("ttl", number("60")), period]).unwrap();
        let compaction = options.family("f").unwrap().compaction;
        assert_eq!(compaction.policy, CompactionPolicy::Fifo);
        assert_eq!(compaction.major_period, Some(Duration::from_secs(5)));
    }

    #[test]
    fn invalid_options_have_specific_sqlstates() {
        let code = |name: &str, value| {
            let error = read(&[option(name, value)]).unwrap_err();
            assert_eq!(error.position, Some(7));
            error.sqlstate
        };
        assert_eq!(code("colour", number("1")), "22023");
        assert_eq!(code("salt_buckets", number("257")), "22023");
        assert_eq!(code("compaction", OptionValue::Word("fast".to_owned())), "22023");
        assert_eq!(code("auto_partition_seq", OptionValue::Boolean(true)), "0A000");
        for wrong in ["sometimes", "key_prefix", "key_prefix(0)", "delimited_key_prefix()"] {
            assert_eq!(code("split_policy", OptionValue::String(wrong.to_owned())), "22023");
        }
        assert_eq!(code("data_block_encoding", OptionValue::Word("sparse".to_owned())), "22023");
    }
}
