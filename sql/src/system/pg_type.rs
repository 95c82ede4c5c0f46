//! Properties of types for `pg_type` and `format_type`.

use std::sync::LazyLock;

use types::{DataType, FixedWidthKind, GeometryKind};

/// Columns of `pg_type` of a type that [`DataType`] does not have.
#[derive(Clone)]
pub(super) struct TypeFacts {
    pub(super) data_type: DataType,
    pub(super) by_value: bool,
    pub(super) kind: char,
    pub(super) category: char,
    pub(super) preferred: bool,
    pub(super) align: char,
    pub(super) storage: char,
    /// The prefix of the names of its I/O functions: `int4` of `int4in`.
    pub(super) functions: String,
    /// True if it has type modifiers.
    pub(super) modified: bool,
}

fn facts(
    data_type: DataType,
    (by_value, kind, category, preferred): (bool, char, char, bool),
    (align, storage): (char, char),
    functions: &str,
) -> TypeFacts {
    TypeFacts {
        data_type,
        by_value,
        kind,
        category,
        preferred,
        align,
        storage,
        functions: functions.to_owned(),
        modified: false,
    }
}

fn modified(facts: TypeFacts) -> TypeFacts {
    TypeFacts { modified: true, ..facts }
}

const INTEGER: (char, char) = ('i', 'p');
const LONG: (char, char) = ('d', 'p');
const VARIABLE: (char, char) = ('i', 'x');

/// All types that can be named, by OID.
static BASE: LazyLock<Vec<TypeFacts>> = LazyLock::new(|| {
    let mut all: Vec<TypeFacts> = DataType::all().filter_map(|one| of(&one)).collect();
    all.sort_by_key(|one| one.data_type.oid());
    all
});

/// Returns all types that can be named, arrays included, by OID.
pub(super) fn all() -> impl Iterator<Item = &'static TypeFacts> {
    BASE.iter()
}

/// Returns the properties of a type; `None` if it has no row in `pg_type`.
pub(super) fn of(data_type: &DataType) -> Option<TypeFacts> {
    use DataType as T;
    let number = (true, 'b', 'N', false);
    let preferred_number = (true, 'b', 'N', true);
    let string = (false, 'b', 'S', false);
    let user = (false, 'b', 'U', false);
    let time = (true, 'b', 'D', false);
    let f = facts;
    Some(match data_type {
        T::Bool => f(T::Bool, (true, 'b', 'B', true), ('c', 'p'), "bool"),
        T::Bytea => f(T::Bytea, user, VARIABLE, "bytea"),
        T::Name => f(T::Name, string, ('c', 'p'), "name"),
        T::Int8 => f(T::Int8, number, LONG, "int8"),
        T::Int2 => f(T::Int2, number, ('s', 'p'), "int2"),
        T::Int4 => f(T::Int4, number, INTEGER, "int4"),
        T::Text => f(T::Text, (false, 'b', 'S', true), VARIABLE, "text"),
        T::Oid => f(T::Oid, preferred_number, INTEGER, "oid"),
        T::Reg(_) => f(data_type.clone(), number, INTEGER, data_type.internal_name()),
        T::InternalChar => f(T::InternalChar, (true, 'b', 'Z', false), ('c', 'p'), "char"),
        T::Bit => modified(f(T::Bit, (false, 'b', 'V', false), VARIABLE, "bit_")),
        T::Varbit => modified(f(T::Varbit, (false, 'b', 'V', true), VARIABLE, "varbit_")),
        T::JsonPath => f(T::JsonPath, user, VARIABLE, "jsonpath_"),
        T::Record => f(T::Record, (false, 'p', 'P', false), ('d', 'x'), "record_"),
        T::Json => f(T::Json, user, VARIABLE, "json_"),
        T::Jsonb => f(T::Jsonb, user, VARIABLE, "jsonb_"),
        T::Float4 => f(T::Float4, number, INTEGER, "float4"),
        T::Float8 => f(T::Float8, preferred_number, LONG, "float8"),
        T::Unknown => f(T::Unknown, (false, 'p', 'X', false), ('c', 'p'), "unknown"),
        T::Char => modified(f(T::Char, string, VARIABLE, "bpchar")),
        T::Varchar => modified(f(T::Varchar, string, VARIABLE, "varchar")),
        T::Date => f(T::Date, time, INTEGER, "date_"),
        T::Time => modified(f(T::Time, time, LONG, "time_")),
        T::Timestamp => modified(f(T::Timestamp, time, LONG, "timestamp_")),
        T::Timestamptz => modified(f(T::Timestamptz, (true, 'b', 'D', true), LONG, "timestamptz_")),
        T::Timetz => modified(f(T::Timetz, (false, 'b', 'D', false), LONG, "timetz_")),
        T::Interval => modified(f(T::Interval, (false, 'b', 'T', true), LONG, "interval_")),
        T::Numeric => modified(f(T::Numeric, (false, 'b', 'N', false), ('i', 'm'), "numeric_")),
        T::Uuid => f(T::Uuid, user, ('c', 'p'), "uuid_"),
        T::Word(kind) => of_word(*kind),
        T::Geometry(kind) => of_geometry(*kind),
        T::AclItem => f(T::AclItem, user, INTEGER, "aclitem"),
        T::RefCursor => f(T::RefCursor, user, VARIABLE, "text"),
        T::NodeTree => f(T::NodeTree, (false, 'b', 'Z', false), VARIABLE, "pg_node_tree_"),
        T::Int2Vector => f(T::Int2Vector, (false, 'b', 'A', false), ('i', 'p'), "int2vector"),
        T::OidVector => f(T::OidVector, (false, 'b', 'A', false), ('i', 'p'), "oidvector"),
        T::Enum(_) => f(data_type.clone(), (true, 'e', 'E', false), INTEGER, "enum_"),
        T::Composite(_) => f(data_type.clone(), (false, 'c', 'C', false), ('d', 'x'), "record_"),
        T::Array(element) => {
            let align = if of(element)?.align == 'd' { 'd' } else { 'i' };
            let array = f(data_type.clone(), (false, 'b', 'A', false), (align, 'x'), "array_");
            TypeFacts { modified: of(element)?.modified, ..array }
        }
        _ => return of_signature(data_type),
    })
}

/// Returns the properties of a type that occurs in signatures only.
fn of_signature(data_type: &DataType) -> Option<TypeFacts> {
    use DataType as T;
    let arrays = ((false, 'p', 'P', false), ('d', 'x'));
    let others = ((true, 'p', 'P', false), INTEGER);
    let ((flags, storage), functions) = match data_type {
        T::CString => (((false, 'p', 'P', false), ('c', 'p')), "cstring_"),
        T::Void => (others, "void_"),
        T::Trigger => (others, "trigger_"),
        T::AnyArray => (arrays, "anyarray_"),
        T::AnyEnum => (others, "anyenum_"),
        T::AnyElement => (others, "anyelement_"),
        T::CompatibleArray => (arrays, "anycompatiblearray_"),
        T::AnyNonArray => (others, "anynonarray_"),
        T::CompatibleNonArray => (others, "anycompatiblenonarray_"),
        T::Compatible => (others, "anycompatible_"),
        _ => return None,
    };
    Some(facts(data_type.clone(), flags, storage, functions))
}

fn of_word(kind: FixedWidthKind) -> TypeFacts {
    let own = DataType::Word(kind);
    let (user, by_reference) = ((true, 'b', 'U', false), (false, 'b', 'U', false));
    match kind {
        FixedWidthKind::Tid => facts(own, by_reference, ('s', 'p'), "tid"),
        FixedWidthKind::Xid => facts(own, user, INTEGER, "xid"),
        FixedWidthKind::Xid8 => facts(own, user, LONG, "xid8"),
        FixedWidthKind::Cid => facts(own, user, INTEGER, "cid"),
        FixedWidthKind::PgLsn => facts(own, user, LONG, "pg_lsn_"),
        FixedWidthKind::MacAddr => facts(own, by_reference, INTEGER, "macaddr_"),
        FixedWidthKind::MacAddr8 => facts(own, by_reference, INTEGER, "macaddr8_"),
        FixedWidthKind::Money => facts(own, (true, 'b', 'N', false), LONG, "cash_"),
    }
}

fn of_geometry(kind: GeometryKind) -> TypeFacts {
    let (storage, functions) = match kind {
        GeometryKind::Point => ('p', "point_"),
        GeometryKind::Lseg => ('p', "lseg_"),
        GeometryKind::Path => ('x', "path_"),
        GeometryKind::Box => ('p', "box_"),
        GeometryKind::Polygon => ('x', "poly_"),
        GeometryKind::Line => ('p', "line_"),
        GeometryKind::Circle => ('p', "circle_"),
    };
    facts(DataType::Geometry(kind), (false, 'b', 'G', false), ('d', storage), functions)
}

impl TypeFacts {
    /// Returns the names of its I/O functions: input, output, receive, send; empty if missing.
    pub(super) fn io_functions(&self) -> [String; 4] {
        ["in", "out", "recv", "send"].map(|suffix| match (&self.data_type, suffix) {
            // They have no binary format.
            (DataType::AclItem | DataType::Trigger, "recv" | "send") => String::new(),
            _ => format!("{}{suffix}", self.functions),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pg_type_lists_every_type() {
        for data_type in DataType::all() {
            assert!(of(&data_type).is_some(), "{data_type:?}");
        }
        assert_eq!(
            of(&DataType::Int4).unwrap().io_functions(),
            ["int4in", "int4out", "int4recv", "int4send"]
        );
    }
}
