//! Storage options of tables and indexes: `WITH (ttl = '30 days')` or `… ) TTL = 2592000`.
//!
//! Option names are a fixed list. An option of the list that is not implemented yet is rejected
//! with 0A000, any other name with 22023.

use std::time::Duration;

use store::FamilyDescriptor;
use store::descriptor::{BloomFilter, CompactionOptions, CompactionPolicy, Compression};
use store::descriptor::{DataBlockEncoding, Durability, KeepDeletedCells};
use store::descriptor::{SplitOptions, SplitPolicy};
use types::text::TextStyle;
use types::{DataType, Datum};

use crate::ast::{CreateTable, OptionValue, TableOption};
use crate::catalog::ignored_attributes::{Parameter, set_parameter};
use crate::ddl::storage_parameters::{is_of_toast, is_without_oids, table_parameter};
use crate::error::{Error, Result};
use crate::settings::parse_bytes;

/// The parsed options of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct TableOptions {
    /// Salt buckets; 0 for none.
    pub salt_buckets: u8,
    /// The number of copies of each region.
    pub region_replication: u8,
    /// The durability of commits.
    pub durability: Durability,
    /// The size in bytes at which a memstore is flushed.
    pub memstore_flush_bytes: Option<u64>,
    /// The policy of automatic region splits.
    pub split: SplitOptions,
    /// The algorithm of pre-splitting into [`TableOptions::split_regions`] regions.
    pub split_algorithm: Option<SplitAlgorithm>,
    /// The initial number of regions, with an algorithm.
    pub split_regions: Option<u32>,
    /// Options of all families.
    pub family: FamilyDescriptor,
    /// True if the block size is given; otherwise it depends on the encoding.
    has_block_size: bool,
    /// Options of single families: `f.ttl = 5`.
    pub overrides: Vec<TableOption>,
    /// PostgreSQL's storage parameters, which are stored without effect.
    pub parameters: Vec<Parameter>,
    /// `column_families`: families with the names of their columns.
    families: Vec<(String, Vec<String>)>,
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

/// Options that are not implemented yet.
const NOT_YET: &[&str] = &["immutable_rows"];

/// The maximum number of regions of pre-splitting with an algorithm: each has memstores and files
/// of its own from the first row on.
const SPLIT_REGIONS_MAX: i64 = 4_096;

impl TableOptions {
    /// Parses the options of a table.
    ///
    /// # Errors
    ///
    /// 22023 for an unknown name or an invalid value, 0A000 for an option that is not implemented.
    pub fn read(options: &[TableOption]) -> Result<TableOptions> {
        let mut result = TableOptions {
            salt_buckets: 0,
            region_replication: 1,
            durability: Durability::SyncWal,
            memstore_flush_bytes: None,
            split: SplitOptions::default(),
            split_algorithm: None,
            split_regions: None,
            family: FamilyDescriptor {
                data_block_encoding: DataBlockEncoding::Columnar,
                ..FamilyDescriptor::new("0")
            },
            has_block_size: false,
            overrides: Vec::new(),
            parameters: Vec::new(),
            families: Vec::new(),
        };
        for (index, option) in options.iter().enumerate() {
            let again = options[..index].iter().any(|other| {
                other.name.value == option.name.value && other.family == option.family
            });
            if again {
                return Err(bad(option, "it is specified more than once"));
            }
            if is_without_oids(option)? {
                continue;
            }
            if let Some((name, value)) = table_parameter(option)? {
                if !is_of_toast(option) {
                    set_parameter(&mut result.parameters, &name, Some(value));
                }
                continue;
            }
            if option.family.is_some() {
                set_family_option(&mut FamilyDescriptor::new("0"), option)?;
                result.overrides.push(option.clone());
            } else {
                result.set(option)?;
            }
        }
        Ok(result)
    }

    fn set(&mut self, option: &TableOption) -> Result<()> {
        match option.name.value.as_str() {
            "salt_buckets" => self.salt_buckets = integer(option, 0, 255)? as u8,
            "region_replication" => self.region_replication = integer(option, 1, 3)? as u8,
            "column_families" => self.families = column_families(option)?,
            "durability" => {
                self.durability = match word(option)?.as_str() {
                    "sync_wal" => Durability::SyncWal,
                    "async_wal" => Durability::AsyncWal,
                    "skip_wal" => Durability::SkipWal,
                    _ => return Err(bad(option, "use SYNC_WAL, ASYNC_WAL or SKIP_WAL")),
                }
            }
            "memstore_flushsize" => {
                self.memstore_flush_bytes = Some(bytes(option, 1 << 16, i64::MAX)? as u64);
            }
            "split_policy" | "max_filesize" => set_split_option(&mut self.split, option)?,
            "split_algorithm" => {
                self.split_algorithm = Some(match word(option)?.as_str() {
                    "hex" => SplitAlgorithm::Hex,
                    "decimal" => SplitAlgorithm::Decimal,
                    "uniform" => SplitAlgorithm::Uniform,
                    _ => return Err(bad(option, "use HEX, DECIMAL or UNIFORM")),
                });
            }
            "split_regions" => {
                self.split_regions = Some(integer(option, 2, SPLIT_REGIONS_MAX)? as u32);
            }
            "storage" => {
                if word(option)? != "row" {
                    return Err(Error::not_supported(
                        "STORAGE = CELL",
                        "Use STORAGE = ROW, the default.",
                    ));
                }
            }
            _ => {
                self.has_block_size |= is_block_size(option);
                set_family_option(&mut self.family, option)?;
            }
        }
        Ok(())
    }

    /// Returns the family of a column according to the option `column_families`.
    pub fn family_of(&self, column: &str) -> Option<&str> {
        let mut families = self.families.iter();
        let found = families.find(|(_, columns)| columns.iter().any(|one| one == column));
        found.map(|(family, _)| family.as_str())
    }

    /// Checks that the option `column_families` contains only columns of the table, each in one
    /// family.
    ///
    /// # Errors
    ///
    /// 42703 for a column that does not exist, 22023 for one that occurs twice.
    pub fn check_families(&self, statement: &CreateTable) -> Result<()> {
        let mut seen: Vec<&str> = Vec::new();
        for name in self.families.iter().flat_map(|(_, columns)| columns) {
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
        let mut family = FamilyDescriptor { name: name.to_owned(), ..self.family.clone() };
        let mut has_block_size = self.has_block_size;
        for option in &self.overrides {
            if option.family.as_ref().is_some_and(|owner| owner.value == name) {
                has_block_size |= is_block_size(option);
                set_family_option(&mut family, option)?;
            }
        }
        if !has_block_size {
            family.block_bytes = family.data_block_encoding.default_block_bytes();
        }
        // Checked after all options are set: FIFO needs a TTL, which may follow it.
        let of_compaction = family.compaction.objection(family.ttl, family.min_versions);
        let of_versions = (family.min_versions > family.versions)
            .then(|| "MIN_VERSIONS must not exceed VERSIONS".to_owned());
        match of_versions.or(of_compaction.map(Into::into)) {
            Some(why) => {
                bail!(INVALID_PARAMETER_VALUE: "invalid options of column family \"{name}\": {why}")
            }
            None => Ok(family),
        }
    }
}

/// Parses `column_families`: `f(a, b), g(c)`, with names quoted as in SQL.
fn column_families(option: &TableOption) -> Result<Vec<(String, Vec<String>)>> {
    let text = match &option.value {
        OptionValue::String(text) if option.family.is_none() => text.as_str(),
        _ => return Err(bad(option, "write 'family(column, …), …'")),
    };
    let wrong = || bad(option, "write 'family(column, …), …'");
    let mut families = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let (family, behind) = identifier(rest).ok_or_else(wrong)?;
        rest = behind.trim_start().strip_prefix('(').ok_or_else(wrong)?;
        let mut columns = Vec::new();
        loop {
            let (column, behind) = identifier(rest.trim_start()).ok_or_else(wrong)?;
            columns.push(column);
            rest = behind.trim_start();
            if let Some(behind) = rest.strip_prefix(')') {
                rest = behind.trim_start();
                break;
            }
            rest = rest.strip_prefix(',').ok_or_else(wrong)?;
        }
        families.push((family, columns));
        if !rest.is_empty() {
            rest = rest.strip_prefix(',').ok_or_else(wrong)?.trim_start();
        }
    }
    Ok(families)
}

/// Parses an identifier at the beginning of a text; also returns the rest.
fn identifier(text: &str) -> Option<(String, &str)> {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find(|c: char| !c.is_alphanumeric() && c != '_' && c != '$');
        let (name, rest) = text.split_at(end.unwrap_or(text.len()));
        return (!name.is_empty()).then(|| (name.to_lowercase(), rest));
    };
    let mut name = String::new();
    let mut characters = quoted.char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        if character != '"' {
            name.push(character);
        } else if characters.next_if(|(_, next)| *next == '"').is_some() {
            name.push('"');
        } else {
            return (!name.is_empty()).then(|| (name, &quoted[at + 1..]));
        }
    }
    None
}

/// Sets `split_policy` or `max_filesize`.
///
/// # Errors
///
/// 22023 for a bad value, and for an option of a family.
pub fn set_split_option(split: &mut SplitOptions, option: &TableOption) -> Result<()> {
    if option.family.is_some() {
        return Err(bad(option, "it is an option of the table, not of a column family"));
    }
    match option.name.value.as_str() {
        "split_policy" => split.policy = split_policy(option)?,
        _ => split.max_file_bytes = bytes(option, 1 << 16, i64::MAX)? as u64,
    }
    Ok(())
}

fn is_block_size(option: &TableOption) -> bool {
    option.name.value == "blocksize"
}

/// Parses a split policy: a name, with its argument in parentheses if it has one: `stepping`,
/// `key_prefix(4)`, `delimited_key_prefix(_)`.
fn split_policy(option: &TableOption) -> Result<SplitPolicy> {
    let (OptionValue::String(text) | OptionValue::Word(text)) = &option.value else {
        return Err(bad(option, "it must be the name of a policy"));
    };
    let (name, argument) = match text.strip_suffix(')').and_then(|text| text.split_once('(')) {
        Some((name, argument)) => (name, Some(argument)),
        None => (text.as_str(), None),
    };
    let policy = match (name.to_ascii_lowercase().as_str(), argument) {
        ("disabled", None) => SplitPolicy::Disabled,
        ("constant_size", None) => SplitPolicy::ConstantSize,
        ("increasing_to_upper_bound", None) => SplitPolicy::IncreasingToUpperBound,
        ("stepping", None) => SplitPolicy::Stepping,
        ("busy", None) => SplitPolicy::Busy,
        ("key_prefix", Some(length)) => match length.trim().parse() {
            Ok(length @ 1..) => SplitPolicy::KeyPrefix { length },
            _ => return Err(bad(option, "KEY_PREFIX takes a number of bytes: KEY_PREFIX(4)")),
        },
        ("delimited_key_prefix", Some(delimiter)) if !delimiter.is_empty() => {
            SplitPolicy::DelimitedKeyPrefix { delimiter: delimiter.as_bytes().to_vec() }
        }
        _ => {
            return Err(bad(
                option,
                "use DISABLED, CONSTANT_SIZE, INCREASING_TO_UPPER_BOUND, STEPPING, KEY_PREFIX(n), \
                 DELIMITED_KEY_PREFIX(delimiter) or BUSY",
            ));
        }
    };
    Ok(policy)
}

fn set_family_option(family: &mut FamilyDescriptor, option: &TableOption) -> Result<()> {
    match option.name.value.as_str() {
        "versions" => family.versions = integer(option, 1, i64::from(u32::MAX))? as u32,
        "min_versions" => family.min_versions = integer(option, 0, i64::from(u32::MAX))? as u32,
        "ttl" => family.ttl = ttl(option)?,
        "keep_deleted_cells" => {
            family.keep_deleted_cells = match word(option)?.as_str() {
                "false" => KeepDeletedCells::False,
                "true" => KeepDeletedCells::True,
                "ttl" => KeepDeletedCells::Ttl,
                _ => return Err(bad(option, "use FALSE, TRUE or TTL")),
            }
        }
        "compression" => {
            family.compression = match word(option)?.as_str() {
                "none" => Compression::None,
                "lz4" => Compression::Lz4,
                "zstd" => Compression::Zstd,
                _ => return Err(bad(option, "use LZ4, ZSTD or NONE")),
            }
        }
        "compaction" => {
            let policy = CompactionPolicy::by_name(&word(option)?);
            let policy =
                policy.ok_or_else(|| bad(option, "use EXPLORING, LEVELED, DATE_TIERED or FIFO"))?;
            let major_period = family.compaction.major_period;
            family.compaction = CompactionOptions { major_period, ..CompactionOptions::of(policy) };
        }
        "major_compaction_period" => family.compaction.major_period = ttl(option)?,
        "data_block_encoding" => {
            family.data_block_encoding = match word(option)?.as_str() {
                "row" => DataBlockEncoding::Rows,
                "columnar" => DataBlockEncoding::Columnar,
                _ => return Err(bad(option, "use ROW or COLUMNAR")),
            }
        }
        "bloomfilter" => {
            family.bloom_filter = match word(option)?.as_str() {
                "none" => BloomFilter::None,
                "row" => BloomFilter::Row,
                "rowcol" => BloomFilter::RowCol,
                _ => return Err(bad(option, "use ROW, ROWCOL or NONE")),
            }
        }
        "blockcache" => {
            family.block_cache = match word(option)?.as_str() {
                "true" => true,
                "false" => false,
                _ => return Err(bad(option, "use TRUE or FALSE")),
            }
        }
        "blocksize" => family.block_bytes = bytes(option, 1 << 10, 1 << 24)? as u32,
        name if NOT_YET.contains(&name) => {
            return Err(Error::not_supported(
                format!("option {}", name.to_uppercase()),
                "Omit the option to use the default.",
            )
            .at(option.name.position));
        }
        name => {
            bail!(INVALID_PARAMETER_VALUE: "unrecognized parameter \"{name}\""; at option.name.position);
        }
    }
    Ok(())
}

/// Parses a TTL: seconds as in HBase, an interval as text, or FOREVER.
fn ttl(option: &TableOption) -> Result<Option<Duration>> {
    let micros = match &option.value {
        OptionValue::Number(_) => {
            let seconds = integer(option, 1, i64::from(i32::MAX))? as u64;
            return Ok(Some(Duration::from_secs(seconds)));
        }
        OptionValue::Word(word) if word == "forever" => return Ok(None),
        OptionValue::String(text) if text.eq_ignore_ascii_case("forever") => return Ok(None),
        OptionValue::String(text) => {
            let interval = types::text::parse(text, DataType::Interval, &TextStyle::default())
                .map_err(|error| bad(option, &error.message))?;
            let Datum::Interval(interval) = interval else {
                return Err(bad(option, "it must be an interval"));
            };
            let days = i64::from(interval.months) * 30 + i64::from(interval.days);
            let micros = i128::from(days) * 86_400_000_000 + i128::from(interval.microseconds);
            u64::try_from(micros)
                .ok()
                .filter(|micros| *micros >= 1_000_000)
                .ok_or_else(|| bad(option, "it must be at least a second"))?
        }
        _ => return Err(bad(option, "use seconds, an interval or FOREVER")),
    };
    Ok(Some(Duration::from_micros(micros)))
}

fn integer(option: &TableOption, low: i64, high: i64) -> Result<i64> {
    let text = match &option.value {
        OptionValue::Number(text) | OptionValue::String(text) => text.as_str(),
        _ => "",
    };
    text.parse()
        .ok()
        .filter(|number| (low..=high).contains(number))
        .ok_or_else(|| bad(option, &format!("it must be an integer from {low} to {high}")))
}

/// Parses a number of bytes, with or without a unit such as `'64MB'`.
fn bytes(option: &TableOption, low: i64, high: i64) -> Result<i64> {
    let written = match &option.value {
        OptionValue::String(text) => parse_bytes(text).and_then(|bytes| i64::try_from(bytes).ok()),
        OptionValue::Number(text) => text.parse().ok(),
        _ => None,
    };
    written.filter(|bytes| (low..=high).contains(bytes)).ok_or_else(|| {
        bad(option, &format!("it must be a number of bytes from {low} to {high}, such as '64MB'"))
    })
}

fn word(option: &TableOption) -> Result<String> {
    match &option.value {
        OptionValue::String(text) | OptionValue::Word(text) => Ok(text.to_ascii_lowercase()),
        OptionValue::Boolean(value) => Ok(value.to_string()),
        OptionValue::Number(_) => Err(bad(option, "it must be a number")),
    }
}

fn bad(option: &TableOption, why: &str) -> Error {
    err!(INVALID_PARAMETER_VALUE: "invalid value for parameter \"{}\": {why}", option.name.value; at option.name.position)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ast::Ident;

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
        let by_text = TableOptions::read(&[option("ttl", text)]).unwrap();
        let by_number = TableOptions::read(&[option("ttl", number("2592000"))]).unwrap();
        assert_eq!(by_text, by_number);
        assert_eq!(by_text.family.ttl, Some(Duration::from_secs(2_592_000)));
        let text = OptionValue::String("1500 milliseconds".to_owned());
        let exact = TableOptions::read(&[option("ttl", text)]).unwrap();
        assert_eq!(exact.family.ttl, Some(Duration::from_millis(1_500)));
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
            TableOptions::read(options).unwrap().family(name).unwrap().block_bytes
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
        let options = TableOptions::read(std::slice::from_ref(&fifo)).unwrap();
        assert_eq!(options.family("f").unwrap_err().sqlstate, "22023");
        let period = option("major_compaction_period", number("5"));
        let options = TableOptions::read(&[fifo, option("ttl", number("60")), period]).unwrap();
        let compaction = options.family("f").unwrap().compaction;
        assert_eq!(compaction.policy, CompactionPolicy::Fifo);
        assert_eq!(compaction.major_period, Some(Duration::from_secs(5)));
    }

    #[test]
    fn invalid_options_have_specific_sqlstates() {
        let code = |name: &str, value| {
            let error = TableOptions::read(&[option(name, value)]).unwrap_err();
            assert_eq!(error.position, Some(7));
            error.sqlstate
        };
        assert_eq!(code("colour", number("1")), "22023");
        assert_eq!(code("salt_buckets", number("256")), "22023");
        assert_eq!(code("compaction", OptionValue::Word("fast".to_owned())), "22023");
        assert_eq!(code("immutable_rows", OptionValue::Boolean(true)), "0A000");
        for wrong in ["sometimes", "key_prefix", "key_prefix(0)", "delimited_key_prefix()"] {
            assert_eq!(code("split_policy", OptionValue::String(wrong.to_owned())), "22023");
        }
        assert_eq!(code("data_block_encoding", OptionValue::Word("diff".to_owned())), "22023");
    }
}
