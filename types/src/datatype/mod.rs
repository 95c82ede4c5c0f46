//! The SQL types, by PostgreSQL's names, OIDs and modifiers.
//!
//! [`DataType`] is the type proper; [`SqlType`] adds the modifier that a column declares, such as
//! the 20 of `varchar(20)`.

pub mod composite;
pub mod enumeration;
mod geometry;
pub mod identity;
mod interval;
mod representation;
mod word;

pub use geometry::GeometryKind;
pub use interval::{IntervalFields, interval_modifier, interval_name};
pub use representation::Representation;
pub use word::FixedWidthKind;

use std::fmt;
use std::num::NonZeroU32;
use std::ops::Deref;
use std::sync::Arc;

use self::composite::CompositeType;
use self::enumeration::EnumType;
use self::identity::TypeIdentity;

/// A type without its modifier.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum DataType {
    /// `boolean`
    Bool,
    /// `smallint`
    Int2,
    /// `integer`
    Int4,
    /// `bigint`
    Int8,
    /// `real`
    Float4,
    /// `double precision`
    Float8,
    /// `numeric`
    Numeric,
    /// `text`
    Text,
    /// `character varying`
    Varchar,
    /// `character`, padded with blanks to its length
    Char,
    /// `"char"`, a byte
    InternalChar,
    /// `bytea`
    Bytea,
    /// `bit`
    Bit,
    /// `bit varying`
    Varbit,
    /// `date`
    Date,
    /// `time without time zone`
    Time,
    /// `time with time zone`
    Timetz,
    /// `timestamp without time zone`
    Timestamp,
    /// `timestamp with time zone`
    Timestamptz,
    /// `interval`
    Interval,
    /// `uuid`
    Uuid,
    /// `oid`
    Oid,
    /// `regclass` and the other `reg…` types: an OID whose text is an object name
    Reg(RegKind),
    /// `int2vector`: an array of `smallint` from subscript 0 on, written `1 2 3`
    Int2Vector,
    /// `oidvector`: likewise, of `oid`
    OidVector,
    /// A user-defined enum
    Enum(Arc<EnumType>),
    /// `name`
    Name,
    /// `json`: text, as written
    Json,
    /// `jsonb`: a decomposed value
    Jsonb,
    /// `jsonpath`: a query of `jsonb`
    JsonPath,
    /// `tid`, `xid`, `macaddr` and others: a number with its own text form
    Word(FixedWidthKind),
    /// `point` and the other geometric types
    Geometry(GeometryKind),
    /// `aclitem`: grantee, privileges and grantor
    AclItem,
    /// `refcursor`: the name of a cursor
    RefCursor,
    /// `pg_node_tree`: an expression, in columns of the catalog only
    NodeTree,
    /// `record`: a row
    Record,
    /// A user-defined composite type, or the row type of a table or view
    Composite(Arc<CompositeType>),
    /// An array of another type with any number of dimensions; always made by [`DataType::array`]
    Array(ElementType),
    /// `anyarray`: arrays of one type, in signatures only
    AnyArray,
    /// `anyelement`: the element type of the call's `anyarray`, in signatures only
    AnyElement,
    /// `anyenum`: the enum of the call, in signatures only
    AnyEnum,
    /// `anycompatiblearray`: arrays of the common type of the call's arguments, in signatures
    /// only
    CompatibleArray,
    /// `anynonarray`: as `anyelement`, but not an array
    AnyNonArray,
    /// `anycompatiblenonarray`: as `anycompatible`, but not an array
    CompatibleNonArray,
    /// `anycompatible`: the common type of the arguments, in signatures only
    Compatible,
    /// `cstring`: text, in signatures of input and output functions
    CString,
    /// `void`: the result type of functions without a result; its values are empty text
    Void,
    /// `trigger`: the result type of trigger functions, in signatures only
    Trigger,
    /// `unknown`: the type of a quoted literal or of NULL before the binder has resolved it
    Unknown,
}

const _: () = assert!(size_of::<DataType>() == 16);

/// The type of the elements of an array type.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ElementType {
    /// A built-in type.
    BuiltIn(&'static DataType),
    /// A user-defined type.
    UserDefined(Arc<DataType>),
}

impl fmt::Debug for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        DataType::fmt(self, f)
    }
}

impl Deref for ElementType {
    type Target = DataType;

    fn deref(&self) -> &DataType {
        match self {
            ElementType::BuiltIn(element) => element,
            ElementType::UserDefined(element) => element,
        }
    }
}

/// The kind of object of a `reg…` type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RegKind {
    /// `regproc`: a function, by name alone
    Proc,
    /// `regprocedure`: a function, by name and types of arguments
    Procedure,
    /// `regoper`: an operator, by symbol alone
    Oper,
    /// `regoperator`: an operator, by symbol and types of its sides
    Operator,
    /// `regcollation`: a collation
    Collation,
    /// `regconfig`: a text search configuration
    Config,
    /// `regdictionary`: a text search dictionary
    Dictionary,
    /// `regclass`: a table, index, view or sequence
    Class,
    /// `regtype`: a type
    Type,
    /// `regrole`: a role
    Role,
    /// `regnamespace`: a schema
    Namespace,
}

impl RegKind {
    /// Returns whether it names operators, one of which is `-`; for other kinds `-` stands for
    /// OID 0.
    pub fn is_of_operators(self) -> bool {
        matches!(self, RegKind::Oper | RegKind::Operator)
    }
}

/// A type with its modifier, as in a column definition or a cast.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SqlType {
    /// The type.
    pub base: DataType,
    /// PostgreSQL's `atttypmod`: -1 for none; for `varchar(n)` and `char(n)` n + 4; for
    /// `numeric(p, s)` ((p << 16) | s) + 4; for times the digits of the second; for bit strings
    /// the number of bits.
    pub modifier: i32,
    /// OID of the domain of the values, if any; `base` and `modifier` are then those of the
    /// domain's ultimate base type. An array of a domain is treated as a domain over arrays of
    /// that base type, with the OID of the domain's array type.
    pub domain: Option<u32>,
    /// OID of the domain array type of the values, or of the type that their domain is over.
    pub domain_array: Option<NonZeroU32>,
}

impl From<&DataType> for DataType {
    fn from(data_type: &DataType) -> DataType {
        data_type.clone()
    }
}

impl From<DataType> for SqlType {
    fn from(base: DataType) -> SqlType {
        SqlType::new(base, -1)
    }
}

impl From<&DataType> for SqlType {
    fn from(base: &DataType) -> SqlType {
        base.clone().into()
    }
}

impl From<&SqlType> for SqlType {
    fn from(sql_type: &SqlType) -> SqlType {
        sql_type.clone()
    }
}

impl SqlType {
    /// Returns a type with its modifier.
    pub const fn new(base: DataType, modifier: i32) -> SqlType {
        SqlType { base, modifier, domain: None, domain_array: None }
    }

    /// Returns the base type without the domain.
    #[must_use]
    pub fn base_type(&self) -> SqlType {
        SqlType { domain: None, domain_array: None, ..self.clone() }
    }

    /// Returns whether values are arrays of a domain, as opposed to a domain over such arrays.
    pub fn is_domain_array(&self) -> bool {
        self.domain.is_some() && self.domain == self.domain_array.map(NonZeroU32::get)
    }

    /// Returns the domain array type under a domain over it: subscripting ignores the outer
    /// domain.
    #[must_use]
    pub fn domain_array_type(&self) -> SqlType {
        SqlType { domain: self.domain_array.map(NonZeroU32::get), ..self.clone() }
    }

    /// Returns the OID that is sent to clients, which see the base type of a domain.
    pub fn wire_oid(&self) -> u32 {
        self.domain_array.map_or_else(|| self.base.oid(), NonZeroU32::get)
    }

    /// Returns the modifier that is sent to clients.
    pub fn wire_modifier(&self) -> i32 {
        if self.domain_array.is_some() { -1 } else { self.modifier }
    }

    /// Returns the OID: the domain's, if there is one.
    pub fn oid(&self) -> u32 {
        self.domain.unwrap_or_else(|| self.base.oid())
    }

    /// Returns the OID and the modifier that are stored for a column of the type: the modifier of
    /// a domain is in its own definition.
    pub fn stored_oid_and_modifier(&self) -> (u32, i32) {
        (self.oid(), if self.domain.is_some() { -1 } else { self.modifier })
    }

    /// Returns the name with the modifier, as `format_type` prints it.
    pub fn name(&self) -> String {
        let (base, modifier) = (&self.base, self.modifier);
        if let DataType::Array(element) = base {
            return format!("{}[]", SqlType::new(DataType::clone(element), modifier).name());
        }
        let name = base.sql_name();
        match base {
            _ if modifier < 0 => name.to_owned(),
            DataType::Varchar | DataType::Char => format!("{name}({})", modifier - 4),
            DataType::Bit | DataType::Varbit => format!("{name}({modifier})"),
            DataType::Numeric => {
                let packed = modifier - 4;
                // The scale is a signed 11-bit number.
                let scale = ((packed & 0x7ff) ^ 1_024) - 1_024;
                format!("numeric({},{scale})", (packed >> 16) & 0xffff)
            }
            DataType::Time | DataType::Timetz | DataType::Timestamp | DataType::Timestamptz => {
                let (word, zone) = name.split_once(' ').unwrap_or((name, ""));
                format!("{word}({modifier}) {zone}")
            }
            DataType::Interval => interval_name(modifier),
            _ => name.to_owned(),
        }
    }
}

/// One row of PostgreSQL's `pg_type`, with the columns that are used.
struct TypeRow {
    data_type: DataType,
    oid: u32,
    /// `typlen`: bytes of the binary form, -1 if it varies.
    length: i16,
    /// The output of `format_type`.
    sql_name: &'static str,
    /// `typname`, then the other accepted spellings.
    spellings: &'static [&'static str],
}

const TYPES: &[TypeRow] = &[
    row(DataType::Bool, 16, 1, "boolean", &["bool", "boolean"]),
    row(DataType::Bytea, 17, -1, "bytea", &["bytea", "varbinary"]),
    row(DataType::InternalChar, 18, 1, "\"char\"", &["char"]),
    row(DataType::Name, 19, 64, "name", &["name"]),
    row(DataType::Int8, 20, 8, "bigint", &["int8", "bigint"]),
    row(DataType::Int2, 21, 2, "smallint", &["int2", "smallint"]),
    row(DataType::Int4, 23, 4, "integer", &["int4", "integer", "int"]),
    row(DataType::Int2Vector, 22, -1, "int2vector", &["int2vector"]),
    row(DataType::Reg(RegKind::Proc), 24, 4, "regproc", &["regproc"]),
    // `refcursor` has the representation of text.
    row(DataType::Text, 25, -1, "text", &["text"]),
    row(DataType::Oid, 26, 4, "oid", &["oid"]),
    row(DataType::OidVector, 30, -1, "oidvector", &["oidvector"]),
    row(DataType::Float4, 700, 4, "real", &["float4", "real"]),
    row(DataType::Float8, 701, 8, "double precision", &["float8", "double precision", "double"]),
    row(DataType::Unknown, 705, -2, "unknown", &["unknown"]),
    row(DataType::Char, 1042, -1, "character", &["bpchar", "character"]),
    row(DataType::Varchar, 1043, -1, "character varying", &["varchar", "character varying"]),
    row(DataType::Date, 1082, 4, "date", &["date"]),
    row(DataType::Time, 1083, 8, "time without time zone", &["time"]),
    row(DataType::Timetz, 1266, 12, "time with time zone", &["timetz"]),
    row(DataType::Bit, 1560, -1, "bit", &["bit"]),
    row(DataType::Varbit, 1562, -1, "bit varying", &["varbit"]),
    row(DataType::Timestamp, 1114, 8, "timestamp without time zone", &["timestamp"]),
    row(DataType::Timestamptz, 1184, 8, "timestamp with time zone", &["timestamptz"]),
    row(DataType::Interval, 1186, 16, "interval", &["interval"]),
    row(DataType::Numeric, 1700, -1, "numeric", &["numeric", "decimal"]),
    row(DataType::Reg(RegKind::Procedure), 2202, 4, "regprocedure", &["regprocedure"]),
    row(DataType::Reg(RegKind::Oper), 2203, 4, "regoper", &["regoper"]),
    row(DataType::Reg(RegKind::Operator), 2204, 4, "regoperator", &["regoperator"]),
    row(DataType::Reg(RegKind::Collation), 4191, 4, "regcollation", &["regcollation"]),
    row(DataType::Reg(RegKind::Config), 3734, 4, "regconfig", &["regconfig"]),
    row(DataType::Reg(RegKind::Dictionary), 3769, 4, "regdictionary", &["regdictionary"]),
    row(DataType::Reg(RegKind::Class), 2205, 4, "regclass", &["regclass"]),
    row(DataType::Reg(RegKind::Type), 2206, 4, "regtype", &["regtype"]),
    row(DataType::Reg(RegKind::Namespace), 4089, 4, "regnamespace", &["regnamespace"]),
    row(DataType::Reg(RegKind::Role), 4096, 4, "regrole", &["regrole"]),
    row(DataType::Uuid, 2950, 16, "uuid", &["uuid"]),
    row(DataType::Json, 114, -1, "json", &["json"]),
    row(DataType::Jsonb, 3802, -1, "jsonb", &["jsonb"]),
    row(DataType::JsonPath, 4072, -1, "jsonpath", &["jsonpath"]),
    row(DataType::TID, 27, 6, "tid", &["tid"]),
    row(DataType::XID, 28, 4, "xid", &["xid"]),
    row(DataType::CID, 29, 4, "cid", &["cid"]),
    row(DataType::XID8, 5069, 8, "xid8", &["xid8"]),
    row(DataType::PG_LSN, 3220, 8, "pg_lsn", &["pg_lsn"]),
    row(DataType::MACADDR, 829, 6, "macaddr", &["macaddr"]),
    row(DataType::MACADDR8, 774, 8, "macaddr8", &["macaddr8"]),
    row(DataType::MONEY, 790, 8, "money", &["money"]),
    row(DataType::POINT, 600, 16, "point", &["point"]),
    row(DataType::LSEG, 601, 32, "lseg", &["lseg"]),
    row(DataType::PATH, 602, -1, "path", &["path"]),
    row(DataType::BOX, 603, 32, "box", &["box"]),
    row(DataType::POLYGON, 604, -1, "polygon", &["polygon"]),
    row(DataType::LINE, 628, 24, "line", &["line"]),
    row(DataType::CIRCLE, 718, 24, "circle", &["circle"]),
    row(DataType::AclItem, 1033, 12, "aclitem", &["aclitem"]),
    row(DataType::RefCursor, 1790, -1, "refcursor", &["refcursor"]),
    row(DataType::NodeTree, 194, -1, "pg_node_tree", &["pg_node_tree"]),
    row(DataType::Record, 2249, -1, "record", &["record"]),
    row(DataType::CString, 2275, -2, "cstring", &["cstring"]),
    row(DataType::Void, 2278, 4, "void", &["void"]),
    row(DataType::Trigger, 2279, 4, "trigger", &["trigger"]),
    row(DataType::AnyArray, 2277, -1, "anyarray", &["anyarray"]),
    row(DataType::AnyElement, 2283, 4, "anyelement", &["anyelement"]),
    row(DataType::AnyEnum, 3500, 4, "anyenum", &["anyenum"]),
    row(DataType::CompatibleArray, 5078, -1, "anycompatiblearray", &["anycompatiblearray"]),
    row(DataType::AnyNonArray, 2776, 4, "anynonarray", &["anynonarray"]),
    row(DataType::CompatibleNonArray, 5079, 4, "anycompatiblenonarray", &["anycompatiblenonarray"]),
    row(DataType::Compatible, 5077, 4, "anycompatible", &["anycompatible"]),
    array(&DataType::Bool, 1000, "boolean[]", &["_bool"]),
    array(&DataType::Bytea, 1001, "bytea[]", &["_bytea"]),
    array(&DataType::InternalChar, 1002, "\"char\"[]", &["_char"]),
    array(&DataType::Name, 1003, "name[]", &["_name"]),
    array(&DataType::Int2, 1005, "smallint[]", &["_int2"]),
    array(&DataType::Int4, 1007, "integer[]", &["_int4"]),
    array(&DataType::Text, 1009, "text[]", &["_text"]),
    array(&DataType::Char, 1014, "character[]", &["_bpchar"]),
    array(&DataType::Varchar, 1015, "character varying[]", &["_varchar"]),
    array(&DataType::Int8, 1016, "bigint[]", &["_int8"]),
    array(&DataType::Float4, 1021, "real[]", &["_float4"]),
    array(&DataType::Float8, 1022, "double precision[]", &["_float8"]),
    array(&DataType::Oid, 1028, "oid[]", &["_oid"]),
    array(&DataType::Int2Vector, 1006, "int2vector[]", &["_int2vector"]),
    array(&DataType::OidVector, 1013, "oidvector[]", &["_oidvector"]),
    array(&DataType::Reg(RegKind::Proc), 1008, "regproc[]", &["_regproc"]),
    array(&DataType::Reg(RegKind::Procedure), 2207, "regprocedure[]", &["_regprocedure"]),
    array(&DataType::Reg(RegKind::Oper), 2208, "regoper[]", &["_regoper"]),
    array(&DataType::Reg(RegKind::Operator), 2209, "regoperator[]", &["_regoperator"]),
    array(&DataType::Reg(RegKind::Collation), 4192, "regcollation[]", &["_regcollation"]),
    array(&DataType::Reg(RegKind::Config), 3735, "regconfig[]", &["_regconfig"]),
    array(&DataType::Reg(RegKind::Dictionary), 3770, "regdictionary[]", &["_regdictionary"]),
    array(&DataType::Reg(RegKind::Class), 2210, "regclass[]", &["_regclass"]),
    array(&DataType::Reg(RegKind::Type), 2211, "regtype[]", &["_regtype"]),
    array(&DataType::Reg(RegKind::Namespace), 4090, "regnamespace[]", &["_regnamespace"]),
    array(&DataType::Reg(RegKind::Role), 4097, "regrole[]", &["_regrole"]),
    array(&DataType::Timestamp, 1115, "timestamp without time zone[]", &["_timestamp"]),
    array(&DataType::Date, 1182, "date[]", &["_date"]),
    array(&DataType::Time, 1183, "time without time zone[]", &["_time"]),
    array(&DataType::Timetz, 1270, "time with time zone[]", &["_timetz"]),
    array(&DataType::Bit, 1561, "bit[]", &["_bit"]),
    array(&DataType::Varbit, 1563, "bit varying[]", &["_varbit"]),
    array(&DataType::Timestamptz, 1185, "timestamp with time zone[]", &["_timestamptz"]),
    array(&DataType::Interval, 1187, "interval[]", &["_interval"]),
    array(&DataType::Numeric, 1231, "numeric[]", &["_numeric"]),
    array(&DataType::Uuid, 2951, "uuid[]", &["_uuid"]),
    array(&DataType::Json, 199, "json[]", &["_json"]),
    array(&DataType::Jsonb, 3807, "jsonb[]", &["_jsonb"]),
    array(&DataType::JsonPath, 4073, "jsonpath[]", &["_jsonpath"]),
    array(&DataType::TID, 1010, "tid[]", &["_tid"]),
    array(&DataType::XID, 1011, "xid[]", &["_xid"]),
    array(&DataType::CID, 1012, "cid[]", &["_cid"]),
    array(&DataType::XID8, 271, "xid8[]", &["_xid8"]),
    array(&DataType::PG_LSN, 3221, "pg_lsn[]", &["_pg_lsn"]),
    array(&DataType::MACADDR, 1040, "macaddr[]", &["_macaddr"]),
    array(&DataType::MACADDR8, 775, "macaddr8[]", &["_macaddr8"]),
    array(&DataType::MONEY, 791, "money[]", &["_money"]),
    array(&DataType::POINT, 1017, "point[]", &["_point"]),
    array(&DataType::LSEG, 1018, "lseg[]", &["_lseg"]),
    array(&DataType::PATH, 1019, "path[]", &["_path"]),
    array(&DataType::BOX, 1020, "box[]", &["_box"]),
    array(&DataType::POLYGON, 1027, "polygon[]", &["_polygon"]),
    array(&DataType::LINE, 629, "line[]", &["_line"]),
    array(&DataType::CIRCLE, 719, "circle[]", &["_circle"]),
    array(&DataType::AclItem, 1034, "aclitem[]", &["_aclitem"]),
    array(&DataType::RefCursor, 2201, "refcursor[]", &["_refcursor"]),
    array(&DataType::Record, 2287, "record[]", &["_record"]),
];

const fn row(
    data_type: DataType,
    oid: u32,
    length: i16,
    sql_name: &'static str,
    spellings: &'static [&'static str],
) -> TypeRow {
    TypeRow { data_type, oid, length, sql_name, spellings }
}

const fn array(
    element: &'static DataType,
    oid: u32,
    sql_name: &'static str,
    spellings: &'static [&'static str],
) -> TypeRow {
    TypeRow { data_type: DataType::array_of(element), oid, length: -1, sql_name, spellings }
}

impl DataType {
    /// Returns the type of arrays of a built-in type.
    pub const fn array_of(element: &'static DataType) -> DataType {
        DataType::Array(ElementType::BuiltIn(element))
    }

    /// Returns the array type of this one; `None` for arrays, `unknown` and pseudo-types.
    pub fn array(&self) -> Option<DataType> {
        if matches!(self, DataType::Enum(_) | DataType::Composite(_)) {
            return Some(DataType::Array(ElementType::UserDefined(Arc::new(self.clone()))));
        }
        let of_this =
            |row: &&TypeRow| matches!(&row.data_type, DataType::Array(of) if **of == *self);
        TYPES.iter().find(of_this).map(|row| row.data_type.clone())
    }

    /// Returns the built-in type with the same storage: that of a dropped column, whose own type
    /// may be dropped.
    pub fn storage_type(&self) -> DataType {
        match self {
            DataType::Enum(_) => DataType::Int8,
            DataType::Array(element) if matches!(**element, DataType::Enum(_)) => {
                DataType::array_of(&DataType::Int8)
            }
            // Bytes that are no longer decoded.
            DataType::Composite(_) | DataType::Array(ElementType::UserDefined(_)) => {
                DataType::Bytea
            }
            other => other.clone(),
        }
    }

    /// Returns whether values are rows: `record` and composite types.
    pub fn is_row(&self) -> bool {
        matches!(self, DataType::Record | DataType::Composite(_))
    }

    /// Returns whether values are OIDs: `oid` and the `reg…` types.
    pub fn is_oid(&self) -> bool {
        matches!(self, DataType::Oid | DataType::Reg(_))
    }

    /// Returns the element type; `None` for types other than arrays.
    pub fn element(&self) -> Option<&DataType> {
        match self {
            DataType::Array(element) => Some(element),
            DataType::Int2Vector => Some(&DataType::Int2),
            DataType::OidVector => Some(&DataType::Oid),
            _ => None,
        }
    }

    /// Returns whether it is a polymorphic pseudo-type.
    pub fn is_polymorphic(&self) -> bool {
        matches!(
            self,
            DataType::AnyArray
                | DataType::AnyElement
                | DataType::AnyEnum
                | DataType::AnyNonArray
                | DataType::CompatibleArray
                | DataType::CompatibleNonArray
                | DataType::Compatible
        )
    }

    /// Returns whether values have an order, by which they can be sorted and used as keys.
    pub fn is_ordered(&self) -> bool {
        match self {
            DataType::Array(element) => element.is_ordered(),
            DataType::Composite(of) => of.fields().iter().all(|(_, field)| field.is_ordered()),
            DataType::Word(kind) => kind.is_ordered(),
            DataType::Json
            | DataType::JsonPath
            | DataType::Geometry(_)
            | DataType::AclItem
            | DataType::RefCursor
            | DataType::CString
            | DataType::NodeTree => false,
            _ => true,
        }
    }

    /// Returns whether values have equality, for groups and sets; some of these types have no
    /// order.
    pub fn has_equality(&self) -> bool {
        match self {
            DataType::Array(element) => element.has_equality(),
            DataType::Composite(of) => of.fields().iter().all(|(_, field)| field.has_equality()),
            DataType::Word(_) | DataType::AclItem | DataType::NodeTree => true,
            other => other.is_ordered(),
        }
    }

    /// Returns whether values are represented as numbers, but have another text form.
    pub fn is_written_number(&self) -> bool {
        matches!(self, DataType::Reg(_) | DataType::Enum(_) | DataType::Word(_))
    }

    /// Returns the delimiter of array elements, `pg_type.typdelim`.
    pub fn delimiter(&self) -> char {
        if *self == DataType::BOX { ';' } else { ',' }
    }

    /// Returns the names and OIDs of a user-defined type, and whether this is its array type.
    fn user_type(&self) -> Option<(&TypeIdentity, bool)> {
        match self {
            DataType::Enum(of) => Some((of.identity(), false)),
            DataType::Composite(of) => Some((of.identity(), false)),
            DataType::Array(ElementType::UserDefined(of)) => Some((of.user_type()?.0, true)),
            _ => None,
        }
    }

    fn row(&self) -> &'static TypeRow {
        TYPES.iter().find(|row| row.data_type == *self).expect("every type has a row in TYPES")
    }

    /// Returns all types, including arrays and pseudo-types.
    pub fn all() -> impl Iterator<Item = DataType> {
        TYPES.iter().map(|row| row.data_type.clone())
    }

    /// Returns PostgreSQL's OID of the type.
    pub fn oid(&self) -> u32 {
        match self.user_type() {
            Some((of, false)) => of.oid,
            Some((of, true)) => of.array_oid,
            None => self.row().oid,
        }
    }

    /// Returns the built-in type with this OID, if bennu has it.
    pub fn from_oid(oid: u32) -> Option<DataType> {
        TYPES.iter().find(|row| row.oid == oid).map(|row| row.data_type.clone())
    }

    /// Returns `typlen`: bytes of the binary form, or -1 if it varies.
    pub fn length(&self) -> i16 {
        match self {
            DataType::Enum(_) => 4,
            DataType::Array(_) | DataType::Composite(_) => -1,
            _ => self.row().length,
        }
    }

    /// Returns the name as `format_type` prints it, for example `double precision`.
    pub fn sql_name(&self) -> &str {
        match self.user_type() {
            Some((of, false)) => &of.shown,
            Some((of, true)) => &of.shown_array,
            None => self.row().sql_name,
        }
    }

    /// Returns PostgreSQL's internal name, `pg_type.typname`, for example `float8`.
    pub fn internal_name(&self) -> &str {
        match self.user_type() {
            Some((of, false)) => &of.name,
            Some((of, true)) => &of.array_name,
            None => self.row().spellings[0],
        }
    }

    /// Returns the type with this lower-case name, in any of its spellings.
    pub fn from_name(name: &str) -> Option<DataType> {
        TYPES.iter().find(|row| row.spellings.contains(&name)).map(|row| row.data_type.clone())
    }

    /// Returns whether values are UTF-8 text: `text`, `varchar`, `char`, `name`, `unknown`.
    pub fn is_text(&self) -> bool {
        matches!(
            self,
            DataType::Text
                | DataType::Varchar
                | DataType::Char
                | DataType::Name
                | DataType::Void
                | DataType::Unknown
        )
    }

    /// Returns whether arithmetic of numbers applies.
    pub fn is_number(&self) -> bool {
        matches!(
            self,
            DataType::Int2
                | DataType::Int4
                | DataType::Int8
                | DataType::Float4
                | DataType::Float8
                | DataType::Numeric
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn type_names_include_modifiers() {
        let of = |base, modifier| SqlType::new(base, modifier).name();
        assert_eq!(of(DataType::Varchar, 24), "character varying(20)");
        assert_eq!(of(DataType::Numeric, (5 << 16) + 2 + 4), "numeric(5,2)");
        assert_eq!(of(DataType::Numeric, ((5 << 16) | (-2 & 0x7ff)) + 4), "numeric(5,-2)");
        assert_eq!(of(DataType::Timestamptz, 3), "timestamp(3) with time zone");
        assert_eq!(of(DataType::Timetz, 3), "time(3) with time zone");
        assert_eq!(of(DataType::Varchar.array().unwrap(), 9), "character varying(5)[]");
        assert_eq!(of(DataType::Int4, -1), "integer");
    }
}
