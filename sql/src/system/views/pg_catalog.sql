-- The views of pg_catalog that are queries of other relations; see information_schema.sql for the form.

create view pg_catalog.pg_tables as
select n.nspname as schemaname, c.relname as tablename, 'bennu' as tableowner, c.relhasindex as hasindexes,
    false as hasrules, false as hastriggers, false as rowsecurity
from pg_class c left join pg_namespace n on n.oid = c.relnamespace
where c.relkind = 'r';

create view pg_catalog.pg_views as
select n.nspname as schemaname, c.relname as viewname, 'bennu' as viewowner,
    case when c.oid >= 16384 then pg_get_viewdef(c.oid) end as definition
from pg_class c left join pg_namespace n on n.oid = c.relnamespace
where c.relkind = 'v';

create view pg_catalog.pg_matviews as
select n.nspname as schemaname, c.relname as matviewname, 'bennu' as matviewowner, c.relhasindex as hasindexes,
    c.relispopulated as ispopulated, pg_get_viewdef(c.oid) as definition
from pg_class c left join pg_namespace n on n.oid = c.relnamespace
where c.relkind = 'm';

create view pg_catalog.pg_indexes as
select n.nspname as schemaname, t.relname as tablename, c.relname as indexname, pg_get_indexdef(c.oid) as indexdef
from pg_index i
    left join pg_class c on c.oid = i.indexrelid
    left join pg_class t on t.oid = i.indrelid
    left join pg_namespace n on n.oid = c.relnamespace;

create view pg_catalog.pg_roles with (cached = off) as
select rolname, rolsuper, rolinherit, rolcreaterole, rolcreatedb, rolcanlogin, rolreplication, rolconnlimit,
    '********' as rolpassword, rolvaliduntil, rolbypassrls, oid
from pg_authid;

create view pg_catalog.pg_user with (cached = off) as
select usename, usesysid, usecreatedb, usesuper, userepl, usebypassrls, '********' as passwd from pg_shadow;

create view pg_catalog.pg_shadow with (cached = off) as
select rolname as usename, oid as usesysid, rolcreatedb as usecreatedb, rolsuper as usesuper,
    rolreplication as userepl, rolbypassrls as usebypassrls
from pg_authid
where rolcanlogin;
