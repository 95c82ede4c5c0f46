//! Tags of the fields of the catalog's records, and numbers of the enums in them.
//!
//! A tag or number never changes. A new field gets the next tag and a type with an absent value
//! (an option, a list or a boolean), so that this build reads the records of those before. Byte by
//! byte: `docs/formats/catalog.md`.

use store::{tagged_enum, tagged_fields};

use crate::ast::{
    CheckOption, Collation, Deferral, IndexRestriction, Language, OnCommit, Parallel,
    PolicyCommand, ReferentialAction, StorageKind, TriggerEvent, TriggerFiring, TriggerTiming,
    Volatility,
};
use crate::catalog::access::object_access::AccessRecord;
use crate::catalog::access::privilege::AclRecord;
use crate::catalog::access::role::{MembershipRecord, RoleRecord, RoleSettingsRecord};
use crate::catalog::comment::CommentRecord;
use crate::catalog::composite::{AttributeRecord, CompositeRecord};
use crate::catalog::database::DatabaseRecord;
use crate::catalog::domain::DomainRecord;
use crate::catalog::enumeration::{EnumRecord, LabelRecord};
use crate::catalog::foreign_key::ForeignKey;
use crate::catalog::function::{
    FunctionRecord, ParameterExtension, ParameterRecord, PlannerHints, ReturnRecord, RoutineKind,
};
use crate::catalog::ignored_attributes::{
    IgnoredColumnAttributes, IgnoredIndexAttributes, IgnoredTableAttributes, ReplicaIdentity,
};
use crate::catalog::record::{
    CheckRecord, ColumnRecord, CoprocessorKind, CoprocessorRecord, CoprocessorRecords,
    IdentityRecord, IndexKeyRecord, IndexRecord, KeyRecord, PolicyExpressionRecord, PolicyRecord,
    TableKind, TableRecord, ViewColumnRecord, ViewRecord, ViewRelation,
};
use crate::catalog::schema::SchemaRecord;
use crate::catalog::sequence::Sequence;
use crate::catalog::statistics::{ColumnStatistics, TableStatistics};
use crate::catalog::trigger::TriggerRecord;

tagged_fields!(DatabaseRecord {
    1 oid, 2 name, 3 catalog_table, 4 owner, 5 is_template, 6 rejects_connections,
    7 connection_limit, 8 settings, 9 acl,
} unknown);

tagged_fields!(SchemaRecord { 1 oid, 2 name } unknown);

tagged_fields!(TableRecord {
    1 oid, 2 schema, 3 name, 4 columns, 5 primary_key, 6 primary_key_name, 7 checks, 8 indexes,
    9 foreign_keys, 10 salt_buckets, 11 schema_version, 12 descriptor, 13 kind, 14 on_commit,
    15 retained, 16 without_triggers, 17 client_timestamps, 18 column_cells,
    19 cell_ttl, 20 triggers, 21 policies, 22 row_security, 23 forces_row_security,
} unknown);
tagged_enum!(TableKind { 0 Ordinary, 1 Materialized { populated }, 2 Maintained { populated } });
tagged_enum!(OnCommit { 0 PreserveRows, 1 DeleteRows, 2 Drop });
tagged_fields!(IgnoredTableAttributes {
    1 parameters, 2 unlogged, 3 replica_identity, 4 clustered_on, 5 key_parameters, 6 key_include,
} unknown);
tagged_enum!(ReplicaIdentity { 0 Default, 1 Full, 2 Nothing, 3 Index(number) });

tagged_fields!(ColumnRecord {
    1 name, 2 type_oid, 3 modifier, 4 not_null, 5 default, 6 generated, 7 family, 8 identity,
    9 missing, 10 dropped, 11 collation, 12 retained,
} unknown);
tagged_enum!(IdentityRecord { 0 Always, 1 ByDefault });
tagged_enum!(Collation { 0 Default, 1 C, 2 Posix, 3 UcsBasic, 4 CUtf8 });
tagged_fields!(IgnoredColumnAttributes { 1 statistics, 2 storage, 3 compression, 4 options } unknown);
tagged_enum!(StorageKind { 0 Plain, 1 External, 2 Extended, 3 Main });

tagged_fields!(KeyRecord { 1 column, 2 descending, 3 nulls_first } unknown);
tagged_fields!(CheckRecord { 1 name, 2 predicate, 3 valid } unknown);
tagged_fields!(IndexRecord {
    1 oid, 2 name, 3 unique, 4 constraint, 5 keys, 6 include, 7 salt_buckets, 8 descriptor,
    9 nulls_not_distinct, 10 predicate, 11 building, 12 deferral, 13 primary, 14 retained,
    15 inverted, 16 restriction, 17 eventual, 18 followed,
} unknown);
tagged_enum!(IndexRestriction { 0 Unusable, 1 Disabled });
tagged_fields!(IndexKeyRecord { 1 expression, 2 descending, 3 nulls_first } unknown);
tagged_enum!(Deferral { 0 Never, 1 Immediate, 2 Deferred });
tagged_fields!(IgnoredIndexAttributes { 1 parameters, 2 is_hash, 3 operator_classes } unknown);
tagged_fields!(ForeignKey {
    1 name, 2 columns, 3 table, 4 referenced, 5 index, 6 match_full, 7 on_delete, 8 on_update,
    9 valid, 10 deferral, 11 delete_columns,
} unknown);
tagged_enum!(ReferentialAction { 0 NoAction, 1 Restrict, 2 Cascade, 3 SetNull, 4 SetDefault });

tagged_fields!(TriggerRecord {
    1 number, 2 name, 3 function, 4 timing, 5 events, 6 is_row, 7 columns, 8 condition,
    9 arguments, 10 firing, 11 old_table, 12 new_table, 13 is_constraint, 14 deferral,
    15 referenced,
} unknown);
tagged_enum!(TriggerTiming { 0 Before, 1 After, 2 InsteadOf });
tagged_enum!(TriggerEvent { 0 Insert, 1 Delete, 2 Update, 3 Truncate });
tagged_enum!(TriggerFiring { 0 Origin, 1 Disabled, 2 Replica, 3 Always });

tagged_fields!(PolicyRecord {
    1 number, 2 name, 3 is_restrictive, 4 command, 5 roles, 6 using, 7 check,
} unknown);
tagged_enum!(PolicyCommand { 0 All, 1 Select, 2 Insert, 3 Update, 4 Delete });
tagged_fields!(PolicyExpressionRecord { 1 text, 2 relations, 3 search_path } unknown);

tagged_fields!(CoprocessorRecords { 1 attached } unknown);
tagged_fields!(CoprocessorRecord { 1 name, 2 coprocessor, 3 kind, 4 priority, 5 arguments } unknown);
tagged_enum!(CoprocessorKind { 0 Observer, 1 Endpoint });

tagged_fields!(ViewRecord {
    1 oid, 2 schema, 3 name, 4 columns, 5 text, 6 relations, 7 search_path, 8 check_option,
    9 security_invoker, 10 triggers, 11 security_barrier,
} unknown);
tagged_fields!(ViewColumnRecord { 1 name, 2 type_oid, 3 modifier, 4 default } unknown);
tagged_fields!(ViewRelation { 1 schema, 2 name, 3 oid, 4 columns, 5 used } unknown);
tagged_enum!(CheckOption { 0 Local, 1 Cascaded });

tagged_fields!(Sequence {
    1 oid, 2 schema, 3 name, 4 id, 5 type_oid, 6 start, 7 first, 8 increment, 9 min, 10 max,
    11 cache, 12 cycle, 13 owned_by,
} unknown);

tagged_fields!(EnumRecord { 1 number, 2 schema, 3 name, 4 labels } unknown);
tagged_fields!(LabelRecord { 1 rank, 2 number, 3 name } unknown);
tagged_fields!(CompositeRecord { 1 number, 2 schema, 3 name, 4 attributes } unknown);
tagged_fields!(AttributeRecord { 1 name, 2 type_oid, 3 modifier, 4 dropped, 5 collation } unknown);
tagged_fields!(DomainRecord {
    1 number, 2 schema, 3 name, 4 type_oid, 5 modifier, 6 not_null, 7 default, 8 checks,
    9 collation,
} unknown);

tagged_fields!(FunctionRecord {
    1 number, 2 schema, 3 name, 4 parameters, 5 returns, 6 volatility, 7 strict, 8 body,
    9 search_path, 10 kind, 11 more, 12 is_expression, 13 hints, 14 language, 15 settings,
    16 security_definer,
} unknown);
tagged_fields!(ParameterRecord { 1 name, 2 type_oid, 3 default } unknown);
tagged_enum!(ReturnRecord { 0 Value(type_oid), 1 Set(type_oid), 2 Table(columns) });
tagged_enum!(Volatility { 0 Immutable, 1 Stable, 2 Volatile });
tagged_enum!(RoutineKind { 0 Function, 1 Procedure });
tagged_enum!(ParameterExtension { 0 InOut(position), 1 Variadic, 2 Out(position, name, type_oid) });
tagged_fields!(PlannerHints { 1 cost, 2 rows, 3 parallel, 4 is_leakproof } unknown);
tagged_enum!(Parallel { 0 Unsafe, 1 Restricted, 2 Safe });
tagged_enum!(Language { 0 Sql, 1 PlPgSql });

tagged_fields!(RoleRecord {
    1 number, 2 name, 3 attributes, 4 connection_limit, 5 verifier, 6 valid_until, 7 member_of,
    8 settings,
} unknown);
tagged_fields!(RoleSettingsRecord { 1 database, 2 settings } unknown);
tagged_fields!(MembershipRecord { 1 role, 2 grantor, 3 admin_option } unknown);

tagged_fields!(AccessRecord { 1 owner, 2 acl, 3 columns } unknown);
tagged_fields!(AclRecord { 1 grantee, 2 grantor, 3 privileges, 4 grantable });

tagged_fields!(CommentRecord { 1 text } unknown);
tagged_fields!(TableStatistics { 1 rows, 2 estimate, 3 columns, 4 partial_indexes } unknown);
tagged_fields!(ColumnStatistics {
    1 name, 2 type_oid, 3 null_fraction, 4 distinct, 5 common, 6 bounds,
} unknown, decoded);

#[cfg(test)]
mod tests;
