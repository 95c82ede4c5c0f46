//! Parameters and columns of the table function `cells`, which lists the stored cells of a table or
//! index as the HBase shell does.

use types::DataType;

/// Parameters after the table, in the order of arguments without a name. Each has the default
/// NULL, which restricts nothing.
pub const CELL_PARAMETERS: &[(&str, DataType)] = &[
    ("raw", DataType::Bool),
    ("versions", DataType::Int4),
    ("family", DataType::Text),
    ("qualifier", DataType::Text),
    ("qualifier_prefix", DataType::Text),
    ("qualifier_start", DataType::Text),
    ("qualifier_stop", DataType::Text),
    ("cell_offset", DataType::Int4),
    ("cell_limit", DataType::Int4),
    ("time_start", DataType::Timestamptz),
    ("time_stop", DataType::Timestamptz),
];

/// Columns of the result.
pub const CELL_COLUMNS: &[(&str, DataType)] = &[
    ("row", DataType::Bytea),
    ("family", DataType::Text),
    ("qualifier", DataType::Text),
    ("timestamp", DataType::Timestamptz),
    ("type", DataType::Text),
    ("value", DataType::Bytea),
    ("key", DataType::Json),
    ("columns", DataType::Json),
];
