//! Views of schema `bennu`: declarations of their columns, each beside the function of its rows.
//!
//! [`system_view`] declares names, types, values and descriptions in one list. The system catalogs,
//! among them `pg_description`, and `docs/sql/system-views.md` are derived from [`VIEWS`].

mod catalog;
mod storage;
mod regions;
mod statistics;
mod memory;
mod coprocessors;

use types::{DataType, Datum};

use crate::error::Result;
use crate::system::value::{bytes, int4, int8, text};
use crate::system::views::timestamptz;
use crate::system::{Row, SystemContext};

/// View of schema `bennu`.
pub struct SystemView {
    /// Its name in the schema.
    pub name: &'static str,
    /// Its description.
    pub description: &'static str,
    /// Its columns.
    pub columns: &'static [SystemViewColumn],
    /// Returns its rows.
    pub(super) rows: fn(&SystemContext) -> Result<Vec<Row>>,
}

/// Column of a view of schema `bennu`.
pub struct SystemViewColumn {
    /// Its name.
    pub name: &'static str,
    /// Its type.
    pub data_type: DataType,
    /// Its description.
    pub description: &'static str,
}

/// All views of schema `bennu`. New views are appended, because OIDs depend on the position.
pub static VIEWS: &[SystemView] = &[
    catalog::TABLES,
    catalog::VIEWS,
    catalog::SEQUENCES,
    regions::REGIONS,
    statistics::STATISTICS,
    storage::ADMISSION,
    storage::QUOTAS,
    storage::COMPACTIONS,
    storage::ENDPOINT_CALLS,
    storage::FAMILIES,
    storage::STORAGE,
    coprocessors::COPROCESSORS,
    coprocessors::AVAILABLE_COPROCESSORS,
    catalog::SETTINGS,
    memory::MEMORY,
    storage::STORES,
    storage::STORE_FILES,
    regions::NORMALIZER_PLAN,
    regions::REPLICAS,
    catalog::INDEXES,
];

/// Value of a column.
trait ViewValue {
    /// Returns the value in the type of the column.
    fn datum(self, data_type: &DataType) -> Datum;
}

/// Implements [`ViewValue`] for integers; a `timestamptz` is in microseconds since 1970.
macro_rules! integer_values {
    ($($integer:ty),+) => {$(
        impl ViewValue for $integer {
            fn datum(self, data_type: &DataType) -> Datum {
                match data_type {
                    DataType::Int4 => int4(self),
                    DataType::Timestamptz => timestamptz(self.try_into().unwrap_or(i64::MAX)),
                    _ => int8(self),
                }
            }
        }
    )+};
}

integer_values!(u8, u16, u32, u64, usize, i32, i64);

/// Implements [`ViewValue`] for types with one type of column.
macro_rules! plain_values {
    ($($kind:ty: |$value:ident| $datum:expr;)+) => {$(
        impl ViewValue for $kind {
            fn datum(self, _: &DataType) -> Datum {
                let $value = self;
                $datum
            }
        }
    )+};
}

plain_values! {
    Datum: |value| value;
    bool: |value| Datum::Bool(value);
    f64: |value| Datum::Float8(value);
    &str: |value| text(value);
    String: |value| text(value);
    &String: |value| text(value);
    &[u8]: |value| bytes(value);
}

impl<V: ViewValue> ViewValue for Option<V> {
    fn datum(self, data_type: &DataType) -> Datum {
        self.map_or(Datum::Null, |value| value.datum(data_type))
    }
}

/// Declares a view: its name and description, the function that returns the items to show, and for
/// each column its name, type, value for an item, and description.
macro_rules! system_view {
    (
        $constant:ident: $name:literal, $about:literal, $items:path => |$item:pat_param| {
            $($column:ident $data_type:ident = $value:expr, $description:literal;)+
        }
    ) => {
        pub(super) const $constant: SystemView = SystemView {
            name: $name,
            description: $about,
            columns: &[$(SystemViewColumn {
                name: stringify!($column),
                data_type: DataType::$data_type,
                description: $description,
            }),+],
            rows: |source| {
                let items = $items(source)?.into_iter();
                Ok(items.map(|$item| vec![$(ViewValue::datum($value, &DataType::$data_type)),+]).collect())
            },
        };
    };
}

use system_view;

/// Returns a list of values in parentheses, `None` if it is empty.
fn tuple(values: &[String]) -> Option<String> {
    (!values.is_empty()).then(|| format!("({})", values.join(", ")))
}
