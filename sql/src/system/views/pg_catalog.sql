-- The views of pg_catalog that are queries of other relations; see information_schema.sql for the form.

create view pg_catalog.pg_tables as
select n.nspname as schemaname, c.relname as tablename, pg_get_userbyid(c.relowner) as tableowner, c.relhasindex as hasindexes,
    false as hasrules, false as hastriggers, c.relrowsecurity as rowsecurity
from pg_class c left join pg_namespace n on n.oid = c.relnamespace
where c.relkind = 'r';

create view pg_catalog.pg_views as
select n.nspname as schemaname, c.relname as viewname, pg_get_userbyid(c.relowner) as viewowner,
    case when c.oid >= 16384 then pg_get_viewdef(c.oid) end as definition
from pg_class c left join pg_namespace n on n.oid = c.relnamespace
where c.relkind = 'v';

create view pg_catalog.pg_matviews as
select n.nspname as schemaname, c.relname as matviewname, pg_get_userbyid(c.relowner) as matviewowner, c.relhasindex as hasindexes,
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
    '********' as rolpassword, rolvaliduntil, rolbypassrls, s.setconfig as rolconfig, oid
from pg_authid r left join pg_db_role_setting s on s.setrole = r.oid and s.setdatabase = 0;

create view pg_catalog.pg_user with (cached = off) as
select usename, usesysid, usecreatedb, usesuper, userepl, usebypassrls, '********' as passwd, valuntil, useconfig
from pg_shadow;

create view pg_catalog.pg_shadow with (cached = off) as
select rolname as usename, oid as usesysid, rolcreatedb as usecreatedb, rolsuper as usesuper,
    rolreplication as userepl, rolbypassrls as usebypassrls, rolpassword as passwd, rolvaliduntil as valuntil,
    s.setconfig as useconfig
from pg_authid r left join pg_db_role_setting s on s.setrole = r.oid and s.setdatabase = 0
where rolcanlogin;

create view pg_catalog.pg_group with (cached = off) as
select r.rolname as groname, r.oid as grosysid, array(select m.member from pg_auth_members m where m.roleid = r.oid) as grolist
from pg_authid r
where not r.rolcanlogin;

create view pg_catalog.pg_policies with (cached = off) as
select n.nspname as schemaname, c.relname as tablename, p.polname as policyname,
    case when p.polpermissive then 'PERMISSIVE' else 'RESTRICTIVE' end as permissive,
    case when p.polroles = '{0}' then '{public}'::name[]
        else array(select rolname from pg_authid where oid = any (p.polroles) order by 1) end as roles,
    case p.polcmd when 'r' then 'SELECT' when 'a' then 'INSERT' when 'w' then 'UPDATE' when 'd' then 'DELETE'
        when '*' then 'ALL' end as cmd,
    pg_get_expr(p.polqual, p.polrelid) as qual, pg_get_expr(p.polwithcheck, p.polrelid) as with_check
from pg_policy p
    join pg_class c on c.oid = p.polrelid
    left join pg_namespace n on n.oid = c.relnamespace;

-- Statistics. Columns that the server does not count are NULL.

create view pg_catalog.pg_stat_all_tables as
select c.oid as relid, n.nspname as schemaname, c.relname, case when c.reltuples >= 0 then c.reltuples::int8 end as n_live_tup
from pg_class c left join pg_namespace n on n.oid = c.relnamespace
where c.relkind in ('r', 'm');

create view pg_catalog.pg_stat_user_tables as
select * from pg_stat_all_tables where relid >= 16384;

create view pg_catalog.pg_stat_sys_tables as
select * from pg_stat_all_tables where relid < 16384;

create view pg_catalog.pg_stat_xact_all_tables as
select relid, schemaname, relname from pg_stat_all_tables;

create view pg_catalog.pg_stat_xact_user_tables as
select relid, schemaname, relname from pg_stat_user_tables;

create view pg_catalog.pg_stat_xact_sys_tables as
select relid, schemaname, relname from pg_stat_sys_tables;

create view pg_catalog.pg_statio_all_tables as
select relid, schemaname, relname from pg_stat_all_tables;

create view pg_catalog.pg_statio_user_tables as
select relid, schemaname, relname from pg_stat_user_tables;

create view pg_catalog.pg_statio_sys_tables as
select relid, schemaname, relname from pg_stat_sys_tables;

create view pg_catalog.pg_stat_all_indexes as
select i.indrelid as relid, i.indexrelid, n.nspname as schemaname, t.relname, c.relname as indexrelname
from pg_index i
    left join pg_class c on c.oid = i.indexrelid
    left join pg_class t on t.oid = i.indrelid
    left join pg_namespace n on n.oid = t.relnamespace;

-- Relations of the system have no indexes.
create view pg_catalog.pg_stat_user_indexes as
select * from pg_stat_all_indexes;

create view pg_catalog.pg_statio_all_indexes as
select relid, indexrelid, schemaname, relname, indexrelname from pg_stat_all_indexes;

create view pg_catalog.pg_statio_user_indexes as
select * from pg_statio_all_indexes;

create view pg_catalog.pg_statio_all_sequences as
select c.oid as relid, n.nspname as schemaname, c.relname
from pg_class c left join pg_namespace n on n.oid = c.relnamespace
where c.relkind = 'S';

create view pg_catalog.pg_statio_user_sequences as
select * from pg_statio_all_sequences;

create view pg_catalog.pg_stat_database with (cached = off) as
select d.oid as datid, d.datname, (select count(*) from pg_stat_activity a where a.datid = d.oid)::int4 as numbackends
from pg_database d;

-- There is no standby, so that nothing conflicts with recovery.
create view pg_catalog.pg_stat_database_conflicts as
select oid as datid, datname, 0 as confl_tablespace, 0 as confl_lock, 0 as confl_snapshot, 0 as confl_bufferpin,
    0 as confl_deadlock
from pg_database;

create view pg_catalog.pg_stat_archiver as
select 0 as archived_count, 0 as failed_count;

create view pg_catalog.pg_stat_bgwriter as
select null::timestamptz as stats_reset;

create view pg_catalog.pg_stat_wal as
select null::timestamptz as stats_reset;

create view pg_catalog.pg_stat_ssl with (cached = off) as
select pid from pg_stat_activity;

create view pg_catalog.pg_stat_gssapi with (cached = off) as
select pid, false as gss_authenticated, false as encrypted from pg_stat_activity;
