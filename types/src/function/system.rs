//! System information and administration functions (PostgreSQL's chapters 9.26 and 9.27), which
//! need a catalog or a session. A [`CatalogAccess`](crate::system::CatalogAccess) implements them.

use super::{FunctionRow, row};
use crate::datatype::DataType::{
    self, Bool, Float8, Int2, Int4, Int8, Interval, Name, Oid, Text, Timestamptz, Void,
};
use crate::datatype::ElementType;
use crate::datatype::RegKind;

const NAMES: DataType = DataType::Array(ElementType::BuiltIn(&Name));
/// Process ids of sessions.
const PIDS: DataType = DataType::Array(ElementType::BuiltIn(&Int4));
const CLASS: DataType = DataType::Reg(RegKind::Class);

/// A stable function that the source implements.
macro_rules! ask {
    ($name:literal, $arguments:expr, $result:expr) => {
        row($name, $arguments, $result, |arguments, context| {
            context.style.system.source()?.call($name, arguments)
        })
        .stable()
    };
}

/// A volatile function that the source implements.
macro_rules! act {
    ($name:literal, $arguments:expr, $result:expr) => {
        ask!($name, $arguments, $result).volatile()
    };
}

/// Privilege inquiry functions of one kind of object: for a role by name or OID, or the current
/// one; for an object by name or OID.
macro_rules! privileges {
    ($($name:literal),*) => {
        &[$(
            ask!($name, &[Name, Text, Text], Bool),
            ask!($name, &[Name, Oid, Text], Bool),
            ask!($name, &[Oid, Text, Text], Bool),
            ask!($name, &[Oid, Oid, Text], Bool),
            ask!($name, &[Text, Text], Bool),
            ask!($name, &[Oid, Text], Bool)
        ),*]
    };
}

/// Visibility inquiry functions of the OID of an object.
macro_rules! visible {
    ($($name:literal),*) => {
        &[$(ask!($name, &[Oid], Bool)),*]
    };
}

/// Functions that convert a name to an OID.
macro_rules! found {
    ($($name:literal, $kind:ident);*) => {
        &[$(ask!($name, &[Text], DataType::Reg(RegKind::$kind))),*]
    };
}

/// Advisory lock functions of one or two keys.
macro_rules! locks {
    ($($name:literal, $result:expr);*) => {
        &[$(
            act!($name, &[Int8], $result),
            act!($name, &[Int4, Int4], $result)
        ),*]
    };
}

/// Privilege inquiry functions.
pub(super) const PRIVILEGES: &[FunctionRow] = privileges![
    "has_any_column_privilege",
    "has_database_privilege",
    "has_function_privilege",
    "has_language_privilege",
    "has_schema_privilege",
    "has_sequence_privilege",
    "has_table_privilege",
    "has_tablespace_privilege",
    "has_type_privilege",
    "pg_has_role"
];

/// Visibility inquiry functions.
pub(super) const VISIBLE: &[FunctionRow] = visible![
    "pg_collation_is_visible",
    "pg_conversion_is_visible",
    "pg_function_is_visible",
    "pg_opclass_is_visible",
    "pg_operator_is_visible",
    "pg_opfamily_is_visible",
    "pg_statistics_obj_is_visible",
    "pg_table_is_visible",
    "pg_ts_config_is_visible",
    "pg_ts_dict_is_visible",
    "pg_ts_parser_is_visible",
    "pg_ts_template_is_visible",
    "pg_type_is_visible"
];

/// Object look-ups by name; NULL where a cast would raise an error.
pub(super) const FOUND: &[FunctionRow] = found![
    "to_regclass", Class;
    "to_regcollation", Collation;
    "to_regnamespace", Namespace;
    "to_regoper", Oper;
    "to_regoperator", Operator;
    "to_regproc", Proc;
    "to_regprocedure", Procedure;
    "to_regrole", Role;
    "to_regtype", Type
];

/// Advisory lock functions.
pub(super) const LOCKS: &[FunctionRow] = locks![
    "pg_advisory_lock", Void;
    "pg_advisory_lock_shared", Void;
    "pg_advisory_unlock", Bool;
    "pg_advisory_unlock_shared", Bool;
    "pg_advisory_xact_lock", Void;
    "pg_advisory_xact_lock_shared", Void;
    "pg_try_advisory_lock", Bool;
    "pg_try_advisory_lock_shared", Bool;
    "pg_try_advisory_xact_lock", Bool;
    "pg_try_advisory_xact_lock_shared", Bool
];

/// All other functions.
pub(super) const FUNCTIONS: &[FunctionRow] = &[
    ask!("has_column_privilege", &[Name, Text, Text, Text], Bool),
    ask!("has_column_privilege", &[Name, Oid, Text, Text], Bool),
    ask!("has_column_privilege", &[Name, Oid, Int2, Text], Bool),
    ask!("has_column_privilege", &[Text, Text, Text], Bool),
    ask!("has_column_privilege", &[Text, Int2, Text], Bool),
    ask!("has_column_privilege", &[Oid, Text, Text], Bool),
    ask!("has_column_privilege", &[Oid, Int2, Text], Bool),
    ask!("format_type", &[Oid, Int4], Text).takes_null(),
    ask!("acldefault", &[DataType::InternalChar, Oid], DataType::array_of(&DataType::AclItem)),
    ask!("pg_get_constraintdef", &[Oid], Text),
    ask!("pg_get_constraintdef", &[Oid, Bool], Text),
    ask!("pg_get_expr", &[Text, Oid], Text),
    ask!("pg_get_expr", &[Text, Oid, Bool], Text),
    ask!("pg_get_function_arg_default", &[Oid, Int4], Text),
    ask!("pg_get_function_arguments", &[Oid], Text),
    ask!("pg_get_function_identity_arguments", &[Oid], Text),
    ask!("pg_get_function_result", &[Oid], Text),
    ask!("pg_get_function_sqlbody", &[Oid], Text),
    ask!("pg_get_functiondef", &[Oid], Text),
    ask!("pg_get_indexdef", &[Oid], Text),
    ask!("pg_get_indexdef", &[Oid, Int4, Bool], Text),
    ask!("pg_get_partkeydef", &[Oid], Text),
    ask!("pg_get_ruledef", &[Oid], Text),
    ask!("pg_get_ruledef", &[Oid, Bool], Text),
    ask!("pg_get_serial_sequence", &[Text, Text], Text),
    ask!("pg_get_statisticsobjdef_columns", &[Oid], Text),
    ask!("pg_get_triggerdef", &[Oid], Text),
    ask!("pg_get_triggerdef", &[Oid, Bool], Text),
    ask!("pg_get_userbyid", &[Oid], Name),
    ask!("pg_trigger_depth", &[], Int4),
    ask!("pg_get_viewdef", &[Oid], Text),
    ask!("pg_get_viewdef", &[Oid, Bool], Text),
    ask!("pg_get_viewdef", &[Oid, Int4], Text),
    ask!("pg_get_viewdef", &[Text], Text),
    ask!("pg_get_viewdef", &[Text, Bool], Text),
    // bennu's own: the text of SHOW CREATE TABLE.
    ask!("show_create_table", &[Oid], Text),
    ask!("obj_description", &[Oid, Name], Text),
    ask!("obj_description", &[Oid], Text),
    ask!("shobj_description", &[Oid, Name], Text),
    ask!("col_description", &[Oid, Int4], Text),
    ask!("pg_tablespace_location", &[Oid], Text),
    ask!("pg_relation_is_updatable", &[CLASS, Bool], Int4),
    ask!("pg_column_is_updatable", &[CLASS, Int2, Bool], Bool),
    act!("pg_relation_size", &[CLASS], Int8),
    act!("pg_relation_size", &[CLASS, Text], Int8),
    act!("pg_table_size", &[CLASS], Int8),
    act!("pg_indexes_size", &[CLASS], Int8),
    act!("pg_total_relation_size", &[CLASS], Int8),
    act!("pg_database_size", &[Name], Int8),
    act!("pg_database_size", &[Oid], Int8),
    ask!("current_user", &[], Name),
    ask!("session_user", &[], Name),
    ask!("current_database", &[], Name),
    ask!("current catalog", &[], Name),
    ask!("current_schema", &[], Name),
    ask!("version", &[], Text),
    ask!("pg_backend_pid", &[], Int4),
    ask!("current_setting", &[Text], Text),
    ask!("current_setting", &[Text, Bool], Text),
    act!("set_config", &[Text, Text, Bool], Text).takes_null(),
    ask!("current_schemas", &[Bool], NAMES),
    ask!("getdatabaseencoding", &[], Name),
    ask!("pg_client_encoding", &[], Name),
    ask!("pg_char_to_encoding", &[Name], Int4),
    ask!("pg_encoding_to_char", &[Int4], Name),
    act!("pg_is_in_recovery", &[], Bool),
    ask!("pg_postmaster_start_time", &[], Timestamptz),
    ask!("pg_conf_load_time", &[], Timestamptz),
    ask!("pg_my_temp_schema", &[], Oid),
    ask!("pg_is_other_temp_schema", &[Oid], Bool),
    ask!("pg_relation_is_publishable", &[CLASS], Bool),
    ask!("row_security_active", &[Oid], Bool),
    ask!("row_security_active", &[Text], Bool),
    ask!("txid_current", &[], Int8),
    ask!("txid_current_if_assigned", &[], Int8),
    ask!("age", &[DataType::XID], Int4),
    ask!("pg_current_xact_id", &[], DataType::XID8),
    ask!("pg_current_xact_id_if_assigned", &[], DataType::XID8),
    ask!("inet_client_addr", &[], Text),
    ask!("inet_client_port", &[], Int4),
    ask!("inet_server_addr", &[], Text),
    ask!("inet_server_port", &[], Int4),
    act!("pg_cancel_backend", &[Int4], Bool),
    act!("pg_terminate_backend", &[Int4], Bool),
    act!("pg_terminate_backend", &[Int4, Int8], Bool),
    act!("pg_export_snapshot", &[], Text),
    act!("pg_blocking_pids", &[Int4], PIDS),
    act!("pg_safe_snapshot_blocking_pids", &[Int4], PIDS),
    act!("pg_isolation_test_session_is_blocked", &[Int4, PIDS], Bool),
    act!("hold_primary", &[Int8, Interval], Void),
    act!("hold_replicas", &[Interval], Void),
    act!("release_holds", &[], Void),
    act!("wait_for_index", &[CLASS], Bool),
    act!("wait_for_index", &[CLASS, Interval], Bool),
    act!("pg_sleep", &[Float8], Void),
    act!("pg_sleep_for", &[Interval], Void),
    act!("pg_sleep_until", &[Timestamptz], Void),
    act!("pg_advisory_unlock_all", &[], Void),
    act!("pg_notify", &[Text, Text], Void).takes_null(),
    act!("pg_notification_queue_usage", &[], Float8),
];
