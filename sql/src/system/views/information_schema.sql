-- The views of information_schema, over the relations of pg_catalog.
--
-- A view returns the columns of relations.txt that it names; the others are NULL. A view that relations.txt
-- declares and that has no text here is empty. Relations whose names begin with an underscore are shared by several
-- views and hidden from pg_class.

-- Types with the names that the standard has for them. The columns base_ are those of the type below a domain.
create view information_schema._types as
select t.oid, t.typtype, t.nspname, t.typname, t.typowner, t.data_type, t.typnotnull, t.typelem, t.typsubscript,
    t.typcollation, t.typdefaultbin, t.typtypmod, b.oid as base_oid, b.data_type as base_data_type,
    b.nspname as base_nspname, b.typname as base_typname, b.typowner as base_owner
from information_schema._type_names t
    left join information_schema._type_names b on b.oid = case when t.typtype = 'd' then t.typbasetype else t.oid end;

create view information_schema._type_names as
select t.oid, t.typtype, n.nspname, t.typname, t.typowner, t.typnotnull, t.typelem, t.typsubscript::oid,
    t.typcollation, t.typdefaultbin, t.typtypmod, t.typbasetype,
    case
        when t.typtype = 'd' then 'USER-DEFINED'
        when t.typelem <> 0 and t.typlen = -1 and t.typarray = 0 and t.oid <> 2287 then 'ARRAY'
        when t.typtype in ('c', 'e') then 'USER-DEFINED'
        else format_type(t.oid, null)
    end as data_type
from pg_type t left join pg_namespace n on n.oid = t.typnamespace;

-- Attributes of tables, views and composite types, and domains, with what depends on the type and its modifier.
create view information_schema._typed as
select o.*,
    case
        when type_oid in (1042, 1043) and typmod >= 4 then typmod - 4
        when type_oid in (1560, 1562) and typmod >= 0 then typmod
    end as character_maximum_length,
    case
        when type_oid in (25, 1042, 1043) then case when typmod >= 4 then 4 * (typmod - 4) else 1073741824 end
    end as character_octet_length,
    case type_oid
        when 21 then 16 when 23 then 32 when 20 then 64 when 700 then 24 when 701 then 53
        when 1700 then case when typmod >= 4 then (typmod - 4) >> 16 & 65535 end
    end as numeric_precision,
    case when type_oid in (20, 21, 23, 700, 701) then 2 when type_oid = 1700 then 10 end as numeric_precision_radix,
    case
        when type_oid in (20, 21, 23) then 0
        when type_oid = 1700 and typmod >= 4 then typmod - 4 & 65535
    end as numeric_scale,
    case
        when type_oid = 1082 then 0
        when type_oid in (1083, 1266, 1114, 1184) then case when typmod < 0 then 6 else typmod end
        when type_oid = 1186 then case when typmod & 65535 = 65535 then 6 else typmod & 65535 end
    end as datetime_precision,
    case
        when type_oid = 1186 and typmod >= 0 then upper(substring(format_type(1186, typmod) from 'interval (.+)'))
    end as interval_type,
    case when co.oid is not null then current_database() end as collation_catalog,
    case when co.oid is not null then 'pg_catalog' end as collation_schema,
    co.collname as collation_name
from (
        select a.attrelid as objid, a.attnum as subid, r.relowner as owner, r.reltype as rowtype, r.nspname,
            r.relname, r.relkind, r.events, a.attname,
            a.attnotnull or t.typnotnull as is_not_null, a.attidentity, a.attgenerated,
            a.attcollation as collation_oid,
            case when t.typtype = 'd' then t.typtypmod else a.atttypmod end as typmod,
            t.base_oid as type_oid, t.base_data_type as data_type, t.base_nspname as udt_schema,
            t.base_typname as udt_name, t.base_owner as udt_owner,
            case when t.typtype = 'd' then t.nspname end as domain_schema,
            case when t.typtype = 'd' then t.typname end as domain_name,
            case when t.typtype = 'd' then t.typowner end as domain_owner, null as domain_default,
            a.atttypid as declared_oid
        from pg_attribute a
            left join information_schema._relations r on r.oid = a.attrelid
            left join information_schema._types t on t.oid = a.atttypid
        where a.attnum > 0 and not a.attisdropped and r.oid is not null
        union all
        select oid, 0::int2, typowner, oid, null, null, 'd', 0, null, typnotnull, '', '', typcollation, typtypmod,
            base_oid,
            case base_data_type when 'ARRAY' then format_type(base_oid, null) else base_data_type end,
            base_nspname, base_typname, base_owner, nspname, typname, typowner, typdefaultbin, oid
        from information_schema._types
        where typtype = 'd'
    ) o
    left join pg_collation co on co.oid = o.collation_oid and co.oid <> 100;

-- Tables, views and composite types.
create view information_schema._relations as
select c.oid, n.nspname, c.relname, c.relowner, c.reltype, c.relkind, c.relpersistence, c.reloptions,
    c.oid < 16384 as is_system,
    pg_relation_is_updatable(c.oid, false) as events
from pg_class c left join pg_namespace n on n.oid = c.relnamespace
where c.relkind in ('r', 'v', 'c');

-- The sequences of identity columns.
create view information_schema._identity_sequences as
select a.attrelid, a.attnum, s.seqrelid, s.seqstart, s.seqincrement, s.seqmax, s.seqmin, s.seqcycle
from pg_attribute a
    join pg_sequence s on s.seqrelid = pg_get_serial_sequence(a.attrelid::regclass::text, a.attname)::regclass
where a.attidentity <> '';

-- Constraints of tables and domains.
create view information_schema._constraints as
select con.oid, n.nspname, con.conname, con.contype, con.conrelid, c.relname, con.contypid, con.conindid,
    coalesce(c.relowner, t.typowner) as owner,
    con.conkey, con.confrelid, con.confkey, con.convalidated, con.confupdtype, con.confdeltype, con.confmatchtype,
    case when con.condeferrable then 'YES' else 'NO' end as is_deferrable,
    case when con.condeferred then 'YES' else 'NO' end as initially_deferred
from pg_constraint con
    left join pg_namespace n on n.oid = con.connamespace
    left join pg_class c on c.oid = con.conrelid
    left join pg_type t on t.oid = con.contypid;

-- NOT NULL of columns, which the standard has as CHECK constraints.
create view information_schema._not_null as
select r.oid, r.nspname, r.relname, r.relowner, a.attname,
    c.relnamespace || '_' || r.oid || '_' || a.attnum || '_not_null' as conname
from pg_attribute a
    left join information_schema._relations r on r.oid = a.attrelid
    left join pg_class c on c.oid = a.attrelid
where a.attnotnull and r.relkind = 'r';

-- What the role of the session may see of it: its own, and what it has a privilege on.
create view information_schema._visible_typed with (cached = off) as
select *
from information_schema._typed
where pg_has_role(owner, 'USAGE')
    or case
        when relkind in ('r', 'v') then has_column_privilege(objid, subid, 'SELECT, INSERT, UPDATE, REFERENCES')
        else has_type_privilege(rowtype, 'USAGE')
    end;

-- Relations on which the role has a privilege; is_writable: one other than SELECT.
create view information_schema._visible_relations with (cached = role) as
select oid, is_owner, is_writable
from (
        select oid, pg_has_role(relowner, 'USAGE') as is_owner,
            pg_has_role(relowner, 'USAGE')
            or has_table_privilege(oid, 'INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER')
            or has_any_column_privilege(oid, 'INSERT, UPDATE, REFERENCES') as is_writable
        from pg_class
        where relkind in ('r', 'v')
    ) r
where is_writable or has_table_privilege(oid, 'SELECT') or has_any_column_privilege(oid, 'SELECT');

create view information_schema._visible_routines with (cached = off) as
select * from information_schema._routines
where pg_has_role(proowner, 'USAGE') or has_function_privilege(oid, 'EXECUTE');

-- Objects that have a type: columns, attributes, domains, parameters and results of functions.
create view information_schema._objects with (cached = role) as
select coalesce(nspname, domain_schema) as object_schema, coalesce(relname, domain_name) as object_name,
    case relkind when 'c' then 'USER-DEFINED TYPE' when 'd' then 'DOMAIN' else 'TABLE' end as object_type,
    case relkind when 'd' then '1' else subid::text end as dtd_identifier,
    case relkind when 'd' then type_oid else declared_oid end as type_oid
from information_schema._visible_typed
union all
select nspname, specific_name, 'ROUTINE', number::text, type_oid from information_schema._parameters
union all
select nspname, specific_name, 'ROUTINE', case when prokind <> 'p' then '0' end, prorettype
from information_schema._visible_routines;

create view information_schema._routines as
select p.oid, n.nspname, p.proname, p.proname || '_' || p.oid as specific_name, p.prokind, p.prorettype, p.prosrc,
    p.prolang, p.provolatile, p.proisstrict, p.proallargtypes, p.proargtypes, p.proargmodes, p.proargnames,
    p.proowner, p.proacl, p.prosecdef
from pg_proc p left join pg_namespace n on n.oid = p.pronamespace
where p.prolang <> 12;

create view information_schema._parameters with (cached = role) as
select p.oid, p.proowner, p.nspname, p.specific_name, a.number, a.type_oid,
    coalesce(p.proargmodes[a.number], 'i') as mode, nullif(p.proargnames[a.number], '') as name
from information_schema._visible_routines p
    cross join unnest(coalesce(p.proallargtypes, p.proargtypes::oid[])) with ordinality a (type_oid, number);

create view information_schema.information_schema_catalog_name as
select current_database() as catalog_name;

create view information_schema.schemata with (cached = role) as
select current_database() as catalog_name, nspname as schema_name, pg_get_userbyid(nspowner) as schema_owner
from (select oid, nspname, nspowner from pg_namespace union all select 13001, 'bennu', 10) n
where pg_has_role(nspowner, 'USAGE') or has_schema_privilege(oid, 'CREATE, USAGE')
order by oid;

create view information_schema.tables with (cached = role) as
select current_database() as table_catalog, nspname as table_schema, relname as table_name,
    case when relkind = 'v' then 'VIEW' when relpersistence = 't' then 'LOCAL TEMPORARY' else 'BASE TABLE' end
        as table_type,
    case when events & 8 = 8 then 'YES' else 'NO' end as is_insertable_into, 'NO' as is_typed
from information_schema._relations r join information_schema._visible_relations v on v.oid = r.oid;

create view information_schema.columns with (cached = role) as
select current_database() as table_catalog, a.nspname as table_schema, a.relname as table_name,
    a.attname as column_name, a.subid as ordinal_position,
    case when a.attgenerated = '' then pg_get_expr(d.adbin, d.adrelid) end as column_default,
    case when a.is_not_null then 'NO' else 'YES' end as is_nullable,
    a.data_type, a.character_maximum_length, a.character_octet_length, a.numeric_precision,
    a.numeric_precision_radix, a.numeric_scale, a.datetime_precision, a.interval_type,
    a.collation_catalog, a.collation_schema, a.collation_name,
    case when a.domain_name is not null then current_database() end as domain_catalog, a.domain_schema, a.domain_name,
    current_database() as udt_catalog, a.udt_schema, a.udt_name, a.subid::text as dtd_identifier,
    'NO' as is_self_referencing,
    case a.attidentity when '' then 'NO' else 'YES' end as is_identity,
    case a.attidentity when 'a' then 'ALWAYS' when 'd' then 'BY DEFAULT' end as identity_generation,
    s.seqstart::text as identity_start, s.seqincrement::text as identity_increment, s.seqmax::text as identity_maximum,
    s.seqmin::text as identity_minimum, case when s.seqcycle then 'YES' else 'NO' end as identity_cycle,
    case a.attgenerated when '' then 'NEVER' else 'ALWAYS' end as is_generated,
    case when a.attgenerated <> '' then pg_get_expr(d.adbin, d.adrelid) end as generation_expression,
    case
        when a.events = 0 then 'NO'
        when a.relkind = 'r' or pg_column_is_updatable(a.objid, a.subid, false) then 'YES'
        else 'NO'
    end as is_updatable
from information_schema._visible_typed a
    left join pg_attrdef d on d.adrelid = a.objid and d.adnum = a.subid
    left join information_schema._identity_sequences s on s.attrelid = a.objid and s.attnum = a.subid
where a.relkind in ('r', 'v');

create view information_schema.views with (cached = role) as
select current_database() as table_catalog, nspname as table_schema, relname as table_name,
    case when not r.is_system and v.is_owner then pg_get_viewdef(r.oid) end as view_definition,
    case
        when 'check_option=cascaded' = any (reloptions) then 'CASCADED'
        when 'check_option=local' = any (reloptions) then 'LOCAL'
        else 'NONE'
    end as check_option,
    case when events & 20 = 20 then 'YES' else 'NO' end as is_updatable,
    case when events & 8 = 8 then 'YES' else 'NO' end as is_insertable_into,
    case when exists (select 1 from pg_trigger where tgrelid = r.oid and tgtype & 81 = 81) then 'YES' else 'NO' end
        as is_trigger_updatable,
    case when exists (select 1 from pg_trigger where tgrelid = r.oid and tgtype & 73 = 73) then 'YES' else 'NO' end
        as is_trigger_deletable,
    case when exists (select 1 from pg_trigger where tgrelid = r.oid and tgtype & 69 = 69) then 'YES' else 'NO' end
        as is_trigger_insertable_into
from information_schema._relations r join information_schema._visible_relations v on v.oid = r.oid
where r.relkind = 'v';

create view information_schema.view_table_usage with (cached = role) as
select current_database() as view_catalog, vn.nspname as view_schema, v.relname as view_name,
    current_database() as table_catalog, tn.nspname as table_schema, t.relname as table_name
from pg_class v
    left join pg_namespace vn on vn.oid = v.relnamespace
    join pg_rewrite r on r.ev_class = v.oid
    join pg_depend d on d.classid = 2618 and d.objid = r.oid
    join pg_class t on t.oid = d.refobjid
    left join pg_namespace tn on tn.oid = t.relnamespace
where d.refclassid = 1259 and d.refobjsubid = 0 and d.deptype = 'n' and t.relkind <> 'S'
    and pg_has_role(t.relowner, 'USAGE')
order by v.oid, t.oid;

create view information_schema.sequences with (cached = role) as
select current_database() as sequence_catalog, n.nspname as sequence_schema, c.relname as sequence_name,
    format_type(s.seqtypid, null) as data_type,
    case s.seqtypid when 21 then 16 when 23 then 32 else 64 end as numeric_precision, 2 as numeric_precision_radix,
    0 as numeric_scale, s.seqstart::text as start_value, s.seqmin::text as minimum_value,
    s.seqmax::text as maximum_value, s.seqincrement::text as increment,
    case when s.seqcycle then 'YES' else 'NO' end as cycle_option
from pg_sequence s
    left join pg_class c on c.oid = s.seqrelid
    left join pg_namespace n on n.oid = c.relnamespace
where s.seqrelid not in (select seqrelid from information_schema._identity_sequences)
    and (pg_has_role(c.relowner, 'USAGE') or has_sequence_privilege(c.oid, 'SELECT, UPDATE, USAGE'));

create view information_schema.table_constraints with (cached = role) as
select current_database() as constraint_catalog, c.nspname as constraint_schema, c.conname as constraint_name,
    current_database() as table_catalog, c.nspname as table_schema, c.relname as table_name,
    case c.contype when 'c' then 'CHECK' when 'p' then 'PRIMARY KEY' when 'u' then 'UNIQUE' else 'FOREIGN KEY' end
        as constraint_type,
    c.is_deferrable, c.initially_deferred, 'YES' as enforced,
    case when c.contype = 'u' then case when i.indnullsnotdistinct then 'NO' else 'YES' end end as nulls_distinct
from information_schema._constraints c
    join information_schema._visible_relations v on v.oid = c.conrelid and v.is_writable
    left join pg_index i on i.indexrelid = c.conindid
union all
select current_database(), nspname, conname, current_database(), nspname, relname, 'CHECK', 'NO', 'NO', 'YES', null
from information_schema._not_null n
    join information_schema._visible_relations v on v.oid = n.oid and v.is_writable;

create view information_schema.key_column_usage with (cached = role) as
select current_database() as constraint_catalog, c.nspname as constraint_schema, c.conname as constraint_name,
    current_database() as table_catalog, c.nspname as table_schema, c.relname as table_name, a.attname as column_name,
    c.position::int as ordinal_position,
    case when c.contype = 'f' then array_position(u.conkey, c.confkey[c.position]) end as position_in_unique_constraint
from (
        select *, generate_subscripts(conkey, 1) as position from information_schema._constraints
        where contype in ('p', 'u', 'f')
    ) c
    left join pg_attribute a on a.attrelid = c.conrelid and a.attnum = c.conkey[c.position]
    left join pg_constraint u on u.conindid = c.conindid and c.contype = 'f' and u.contype in ('p', 'u')
where a.attname is not null
    and (
        pg_has_role(c.owner, 'USAGE')
        or has_column_privilege(c.conrelid, a.attnum, 'SELECT, INSERT, UPDATE, REFERENCES')
    );

create view information_schema.constraint_column_usage with (cached = role) as
select current_database() as table_catalog, n.nspname as table_schema, t.relname as table_name,
    a.attname as column_name, current_database() as constraint_catalog, c.nspname as constraint_schema,
    c.conname as constraint_name
from (
        select nspname, conname, case contype when 'f' then confrelid else conrelid end as relid,
            unnest(case contype when 'f' then confkey else conkey end) as attnum
        from information_schema._constraints
    ) c
    left join pg_class t on t.oid = c.relid
    left join pg_namespace n on n.oid = t.relnamespace
    left join pg_attribute a on a.attrelid = c.relid and a.attnum = c.attnum
where a.attname is not null and pg_has_role(t.relowner, 'USAGE');

create view information_schema.constraint_table_usage with (cached = role) as
select current_database() as table_catalog, n.nspname as table_schema, t.relname as table_name,
    current_database() as constraint_catalog, c.nspname as constraint_schema, c.conname as constraint_name
from information_schema._constraints c
    left join pg_class t on t.oid = case c.contype when 'f' then c.confrelid else c.conrelid end
    left join pg_namespace n on n.oid = t.relnamespace
where c.contype in ('p', 'u', 'f') and pg_has_role(t.relowner, 'USAGE');

create view information_schema.referential_constraints with (cached = role) as
select current_database() as constraint_catalog, c.nspname as constraint_schema, c.conname as constraint_name,
    case when u.oid is not null then current_database() end as unique_constraint_catalog,
    n.nspname as unique_constraint_schema, u.conname as unique_constraint_name,
    case c.confmatchtype when 'f' then 'FULL' else 'NONE' end as match_option,
    case c.confupdtype when 'a' then 'NO ACTION' when 'r' then 'RESTRICT' when 'c' then 'CASCADE'
        when 'n' then 'SET NULL' else 'SET DEFAULT' end as update_rule,
    case c.confdeltype when 'a' then 'NO ACTION' when 'r' then 'RESTRICT' when 'c' then 'CASCADE'
        when 'n' then 'SET NULL' else 'SET DEFAULT' end as delete_rule
from information_schema._constraints c
    join information_schema._visible_relations v on v.oid = c.conrelid and v.is_writable
    left join pg_constraint u on u.conindid = c.conindid and u.contype in ('p', 'u')
    left join pg_namespace n on n.oid = u.connamespace
where c.contype = 'f';

create view information_schema.check_constraints with (cached = role) as
select current_database() as constraint_catalog, nspname as constraint_schema, conname as constraint_name,
    case
        when convalidated then substr(pg_get_constraintdef(oid), 7)
        else left(substr(pg_get_constraintdef(oid), 7), -length(' NOT VALID'))
    end as check_clause
from information_schema._constraints
where contype = 'c' and pg_has_role(owner, 'USAGE')
union all
select current_database(), nspname, conname, attname || ' IS NOT NULL' from information_schema._not_null
where pg_has_role(relowner, 'USAGE');

create view information_schema.routines with (cached = role) as
select current_database() as specific_catalog, p.nspname as specific_schema, p.specific_name,
    current_database() as routine_catalog, p.nspname as routine_schema, p.proname as routine_name,
    case p.prokind when 'p' then 'PROCEDURE' else 'FUNCTION' end as routine_type,
    case when p.prokind <> 'p' then t.data_type end as data_type,
    case when p.prokind <> 'p' then current_database() end as type_udt_catalog,
    case when p.prokind <> 'p' then t.nspname end as type_udt_schema,
    case when p.prokind <> 'p' then t.typname end as type_udt_name,
    case when p.prokind <> 'p' then '0' end as dtd_identifier,
    case l.lanname when 'sql' then 'SQL' else 'EXTERNAL' end as routine_body,
    case when pg_get_function_sqlbody(p.oid) is null and pg_has_role(p.proowner, 'USAGE') then p.prosrc end
        as routine_definition,
    upper(l.lanname) as external_language, 'GENERAL' as parameter_style,
    case p.provolatile when 'i' then 'YES' else 'NO' end as is_deterministic, 'MODIFIES' as sql_data_access,
    case when p.prokind <> 'p' then case when p.proisstrict then 'YES' else 'NO' end end as is_null_call,
    'YES' as schema_level_routine, 0 as max_dynamic_result_sets,
    case when p.prosecdef then 'DEFINER' else 'INVOKER' end as security_type, 'NO' as as_locator,
    'NO' as is_udt_dependent
from information_schema._visible_routines p
    left join pg_language l on l.oid = p.prolang
    left join information_schema._types t on t.oid = p.prorettype;

create view information_schema.parameters with (cached = role) as
select current_database() as specific_catalog, p.nspname as specific_schema, p.specific_name,
    p.number::int as ordinal_position,
    case when p.mode in ('o', 't') then 'OUT' when p.mode = 'b' then 'INOUT' else 'IN' end as parameter_mode,
    'NO' as is_result, 'NO' as as_locator, p.name as parameter_name, t.data_type,
    current_database() as udt_catalog, t.nspname as udt_schema, t.typname as udt_name,
    p.number::text as dtd_identifier,
    case when pg_has_role(p.proowner, 'USAGE') then pg_get_function_arg_default(p.oid, p.number::int) end
        as parameter_default
from information_schema._parameters p
    left join information_schema._types t on t.oid = p.type_oid;

create view information_schema.enabled_roles with (cached = role) as
select rolname as role_name from pg_roles where pg_has_role(oid, 'USAGE');

create view information_schema.character_sets as
select 'UTF8' as character_set_name, 'UCS' as character_repertoire, 'UTF8' as form_of_use,
    current_database() as default_collate_catalog;

create view information_schema.domains with (cached = role) as
select current_database() as domain_catalog, domain_schema, domain_name, data_type, character_maximum_length,
    character_octet_length, collation_catalog, collation_schema, collation_name, numeric_precision,
    numeric_precision_radix, numeric_scale, datetime_precision, interval_type,
    pg_get_expr(domain_default, 0) as domain_default, current_database() as udt_catalog, udt_schema, udt_name,
    '1' as dtd_identifier
from information_schema._visible_typed
where relkind = 'd';

create view information_schema.domain_constraints with (cached = role) as
select current_database() as constraint_catalog, c.nspname as constraint_schema, c.conname as constraint_name,
    current_database() as domain_catalog, d.nspname as domain_schema, d.typname as domain_name,
    'NO' as is_deferrable, 'NO' as initially_deferred
from information_schema._constraints c left join information_schema._types d on d.oid = c.contypid
where c.contypid <> 0 and (pg_has_role(d.typowner, 'USAGE') or has_type_privilege(d.oid, 'USAGE'));

create view information_schema.attributes with (cached = role) as
select current_database() as udt_catalog, nspname as udt_schema, relname as udt_name,
    attname as attribute_name, subid as ordinal_position, 'YES' as is_nullable,
    data_type, character_maximum_length, character_octet_length, collation_catalog, collation_schema,
    collation_name, numeric_precision, numeric_precision_radix, numeric_scale, datetime_precision,
    interval_type, current_database() as attribute_udt_catalog, udt_schema as attribute_udt_schema,
    udt_name as attribute_udt_name, subid::text as dtd_identifier, 'NO' as is_derived_reference_attribute
from information_schema._visible_typed
where relkind = 'c';

create view information_schema.user_defined_types with (cached = role) as
select current_database() as user_defined_type_catalog, nspname as user_defined_type_schema,
    relname as user_defined_type_name, 'STRUCTURED' as user_defined_type_category, 'YES' as is_instantiable
from information_schema._relations
where relkind = 'c' and (pg_has_role(relowner, 'USAGE') or has_type_privilege(reltype, 'USAGE'));

create view information_schema.column_domain_usage with (cached = role) as
select current_database() as domain_catalog, domain_schema, domain_name, current_database() as table_catalog,
    nspname as table_schema, relname as table_name, attname as column_name
from information_schema._typed
where relkind in ('r', 'v') and domain_name is not null and pg_has_role(domain_owner, 'USAGE');

create view information_schema.column_udt_usage with (cached = role) as
select current_database() as udt_catalog, udt_schema, udt_name, current_database() as table_catalog,
    nspname as table_schema, relname as table_name, attname as column_name
from information_schema._typed
where relkind in ('r', 'v') and pg_has_role(udt_owner, 'USAGE');

create view information_schema.domain_udt_usage with (cached = role) as
select current_database() as udt_catalog, udt_schema, udt_name, current_database() as domain_catalog, domain_schema,
    domain_name
from information_schema._typed
where relkind = 'd' and pg_has_role(udt_owner, 'USAGE');

create view information_schema.data_type_privileges with (cached = role) as
select current_database() as object_catalog, object_schema, object_name, object_type, dtd_identifier
from information_schema._objects;

create view information_schema.element_types with (cached = role) as
select current_database() as object_catalog, o.object_schema, o.object_name, o.object_type,
    o.dtd_identifier as collection_type_identifier, e.data_type, current_database() as udt_catalog,
    e.nspname as udt_schema, e.typname as udt_name, 'a' || o.dtd_identifier as dtd_identifier
from information_schema._objects o
    left join information_schema._types t on t.oid = o.type_oid
    left join information_schema._types e on e.oid = t.typelem
where o.dtd_identifier is not null and t.typsubscript <> 0 and e.typtype <> 'd';

create view information_schema.collations as
select current_database() as collation_catalog, n.nspname as collation_schema, c.collname as collation_name,
    'NO PAD' as pad_attribute
from pg_collation c left join pg_namespace n on n.oid = c.collnamespace;

create view information_schema.collation_character_set_applicability as
select collation_catalog, collation_schema, collation_name, 'UTF8' as character_set_name
from information_schema.collations;

-- Privileges of relations, of their columns, of functions and of types, with OIDs of roles; 0 is PUBLIC. All roles may
-- read system relations.
create view information_schema._relation_grants as
select c.oid, n.nspname, c.relname, c.relkind, c.relowner, x.grantor, x.grantee, x.privilege_type,
    x.is_grantable or pg_has_role(x.grantee, c.relowner, 'USAGE') as is_grantable
from pg_class c
    left join pg_namespace n on n.oid = c.relnamespace
    cross join lateral aclexplode(
        coalesce(c.relacl, acldefault(case c.relkind when 'S' then 's' else 'r' end::"char", c.relowner))
    ) x
where c.relkind in ('r', 'v', 'S') and c.oid >= 16384
union all
select r.oid, r.nspname, r.relname, r.relkind, 10, 10, 0, 'SELECT', false
from information_schema._relations r
where r.is_system and r.relkind <> 'c';

create view information_schema._column_grants as
select r.nspname, r.relname, a.attname, r.grantor, r.grantee, r.privilege_type, r.is_grantable
from information_schema._relation_grants r
    join pg_attribute a on a.attrelid = r.oid and a.attnum > 0 and not a.attisdropped
where r.relkind in ('r', 'v') and r.privilege_type in ('INSERT', 'SELECT', 'UPDATE', 'REFERENCES')
union
select n.nspname, c.relname, a.attname, x.grantor, x.grantee, x.privilege_type,
    x.is_grantable or pg_has_role(x.grantee, c.relowner, 'USAGE')
from pg_attribute a
    join pg_class c on c.oid = a.attrelid
    left join pg_namespace n on n.oid = c.relnamespace
    cross join lateral aclexplode(a.attacl) x
where c.relkind in ('r', 'v') and a.attnum > 0 and not a.attisdropped;

create view information_schema._routine_grants as
select r.nspname, r.specific_name, r.proname, x.grantor, x.grantee,
    x.is_grantable or pg_has_role(x.grantee, r.proowner, 'USAGE') as is_grantable
from information_schema._routines r
    cross join lateral aclexplode(coalesce(r.proacl, acldefault('f', r.proowner))) x;

create view information_schema._type_grants as
select n.nspname, t.typname, t.typtype, x.grantor, x.grantee,
    x.is_grantable or pg_has_role(x.grantee, t.typowner, 'USAGE') as is_grantable
from pg_type t
    left join pg_namespace n on n.oid = t.typnamespace
    cross join lateral aclexplode(coalesce(t.typacl, acldefault('T', t.typowner))) x
where t.typtype in ('c', 'd');

create view information_schema.table_privileges with (cached = role) as
select pg_get_userbyid(grantor) as grantor, case grantee when 0 then 'PUBLIC' else pg_get_userbyid(grantee) end as grantee,
    current_database() as table_catalog, nspname as table_schema, relname as table_name, privilege_type,
    case when is_grantable then 'YES' else 'NO' end as is_grantable,
    case privilege_type when 'SELECT' then 'YES' else 'NO' end as with_hierarchy
from information_schema._relation_grants
where relkind in ('r', 'v') and (grantee = 0 or pg_has_role(grantor, 'USAGE') or pg_has_role(grantee, 'USAGE'));

create view information_schema.column_privileges with (cached = role) as
select pg_get_userbyid(grantor) as grantor, case grantee when 0 then 'PUBLIC' else pg_get_userbyid(grantee) end as grantee,
    current_database() as table_catalog, nspname as table_schema, relname as table_name, attname as column_name,
    privilege_type, case when is_grantable then 'YES' else 'NO' end as is_grantable
from information_schema._column_grants
where grantee = 0 or pg_has_role(grantor, 'USAGE') or pg_has_role(grantee, 'USAGE');

create view information_schema.routine_privileges with (cached = role) as
select pg_get_userbyid(grantor) as grantor, case grantee when 0 then 'PUBLIC' else pg_get_userbyid(grantee) end as grantee,
    current_database() as specific_catalog, nspname as specific_schema, specific_name,
    current_database() as routine_catalog, nspname as routine_schema, proname as routine_name,
    'EXECUTE' as privilege_type, case when is_grantable then 'YES' else 'NO' end as is_grantable
from information_schema._routine_grants
where grantee = 0 or pg_has_role(grantor, 'USAGE') or pg_has_role(grantee, 'USAGE');

create view information_schema.udt_privileges with (cached = role) as
select pg_get_userbyid(grantor) as grantor, case grantee when 0 then 'PUBLIC' else pg_get_userbyid(grantee) end as grantee,
    current_database() as udt_catalog, nspname as udt_schema, typname as udt_name, 'TYPE USAGE' as privilege_type,
    case when is_grantable then 'YES' else 'NO' end as is_grantable
from information_schema._type_grants
where typtype = 'c' and (grantee = 0 or pg_has_role(grantor, 'USAGE') or pg_has_role(grantee, 'USAGE'));

create view information_schema.usage_privileges with (cached = role) as
select pg_get_userbyid(grantor) as grantor, case grantee when 0 then 'PUBLIC' else pg_get_userbyid(grantee) end as grantee,
    current_database() as object_catalog, nspname as object_schema, object_name, object_type,
    'USAGE' as privilege_type, case when is_grantable then 'YES' else 'NO' end as is_grantable
from (
        select grantor, grantee, nspname, typname as object_name, 'DOMAIN' as object_type, is_grantable
        from information_schema._type_grants
        where typtype = 'd'
        union all
        select grantor, grantee, nspname, relname, 'SEQUENCE', is_grantable
        from information_schema._relation_grants
        where relkind = 'S' and privilege_type = 'USAGE'
        union all
        select c.collowner, 0, n.nspname, c.collname, 'COLLATION', false
        from pg_collation c left join pg_namespace n on n.oid = c.collnamespace
    ) g
where grantee = 0 or pg_has_role(grantor, 'USAGE') or pg_has_role(grantee, 'USAGE');

-- The privileges that the enabled roles have or have granted.
create view information_schema.role_table_grants with (cached = role) as
select * from information_schema.table_privileges
where grantor in (select role_name from information_schema.enabled_roles)
    or grantee in (select role_name from information_schema.enabled_roles);

create view information_schema.role_column_grants with (cached = role) as
select * from information_schema.column_privileges
where grantor in (select role_name from information_schema.enabled_roles)
    or grantee in (select role_name from information_schema.enabled_roles);

create view information_schema.role_routine_grants with (cached = role) as
select * from information_schema.routine_privileges
where grantor in (select role_name from information_schema.enabled_roles)
    or grantee in (select role_name from information_schema.enabled_roles);

create view information_schema.role_udt_grants with (cached = role) as
select * from information_schema.udt_privileges
where grantor in (select role_name from information_schema.enabled_roles)
    or grantee in (select role_name from information_schema.enabled_roles);

create view information_schema.role_usage_grants with (cached = role) as
select * from information_schema.usage_privileges
where grantor in (select role_name from information_schema.enabled_roles)
    or grantee in (select role_name from information_schema.enabled_roles);

create view information_schema.applicable_roles with (cached = role) as
select pg_get_userbyid(m.member) as grantee, pg_get_userbyid(m.roleid) as role_name,
    case when m.admin_option then 'YES' else 'NO' end as is_grantable
from (
        select member, roleid, admin_option from pg_auth_members
        union
        select datdba, 'pg_database_owner'::regrole::oid, false from pg_database where datname = current_database()
    ) m
where pg_has_role(m.member, 'USAGE');

create view information_schema.administrable_role_authorizations with (cached = role) as
select * from information_schema.applicable_roles where is_grantable = 'YES';

create view information_schema.triggers with (cached = role) as
select current_database() as trigger_catalog, n.nspname as trigger_schema, t.tgname as trigger_name,
    em.text as event_manipulation, current_database() as event_object_catalog,
    n.nspname as event_object_schema, c.relname as event_object_table,
    rank() over (partition by n.nspname, c.relname, em.num, t.tgtype & 1, t.tgtype & 66 order by t.tgname)
        as action_order,
    case when v.is_owner then
        (regexp_match(pg_get_triggerdef(t.oid), E'.{35,} WHEN \\((.+)\\) EXECUTE FUNCTION'))[1]
    end as action_condition,
    substring(
        pg_get_triggerdef(t.oid)
        from position('EXECUTE FUNCTION' in substring(pg_get_triggerdef(t.oid) from 48)) + 47) as action_statement,
    case t.tgtype & 1 when 1 then 'ROW' else 'STATEMENT' end as action_orientation,
    case t.tgtype & 66 when 2 then 'BEFORE' when 64 then 'INSTEAD OF' else 'AFTER' end as action_timing,
    t.tgoldtable as action_reference_old_table, t.tgnewtable as action_reference_new_table
from pg_namespace n
join pg_class c on n.oid = c.relnamespace
join information_schema._visible_relations v on v.oid = c.oid and v.is_writable
join pg_trigger t on c.oid = t.tgrelid
join (values (4, 'INSERT'), (8, 'DELETE'), (16, 'UPDATE')) em (num, text) on (t.tgtype & em.num) <> 0
where not t.tgisinternal;

create view information_schema.triggered_update_columns with (cached = role) as
select current_database() as trigger_catalog, n.nspname as trigger_schema, t.tgname as trigger_name,
    current_database() as event_object_catalog, n.nspname as event_object_schema,
    c.relname as event_object_table, a.attname as event_object_column
from pg_namespace n
join pg_class c on n.oid = c.relnamespace
join pg_trigger t on c.oid = t.tgrelid
join pg_attribute a on a.attrelid = c.oid and a.attnum = any (t.tgattr)
where not t.tgisinternal
    and (pg_has_role(c.relowner, 'USAGE') or has_column_privilege(c.oid, a.attnum, 'INSERT, UPDATE, REFERENCES'));
