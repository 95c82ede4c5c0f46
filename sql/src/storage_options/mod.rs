//! Storage options of tables, column families, indexes, columns and roles: `WITH (ttl = '30 days')`
//! or `… ) TTL = 2592000`, `ALTER TABLE t SET (…)`.
//!
//! ```text
//!   CREATE … WITH, ALTER … SET          table::OPTIONS            reloptions, the manual
//!            |                                |                          ^
//!            +--> lookup --> parse --> OptionDatum --> StorageSettings --+
//! ```
//!
//! An option that is not implemented is rejected with 0A000, an unknown name with 22023.
//! PostgreSQL's storage parameters are rows of the same table: they are validated as in PostgreSQL,
//! stored as written, and have no effect.

mod value;
mod settings;
mod parse;
mod table;
mod lookup;
mod reloptions;

pub use parse::OptionKind;
pub use settings::StorageSettings;
pub use table::{OPTIONS, OptionChange, OptionScope, OptionSpec, SettingField};
pub use value::{IndexConsistency, OptionDatum, RowStorage, SplitAlgorithm, TimestampSource};

pub(crate) use lookup::{
    changeable, find, find_quota, find_reset, is_of_toast, option_text, unrecognized,
};
pub(crate) use parse::invalid;
pub(crate) use reloptions::{has_nullable_key, of_index, of_table, timestamp_source, with_clause};
pub(crate) use settings::{set_unlogged, storage};
