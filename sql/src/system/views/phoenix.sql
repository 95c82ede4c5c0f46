-- The views of Phoenix's system tables; see information_schema.sql for the form. Names that need no quotes are
-- in upper case, and schema public is NULL, as in Phoenix. The first rows of SYSTEM.CATALOG are those of tables,
-- views and indexes, then columns, then links from tables to their indexes.

create view bennu._phoenix_relation with (cached = off) as
select c.oid, c.relname, c.relkind, c.relnatts, c.reloptions,
    case when n.nspname = 'public' then null when n.nspname = lower(n.nspname) then upper(n.nspname) else n.nspname end as schem,
    case when c.relname = lower(c.relname) then upper(c.relname) else c.relname end as name,
    case when t.relname = lower(t.relname) then upper(t.relname) else t.relname end as table_name,
    case when n.nspname = 'public' then '' else n.nspname || '.' end || c.relname as full_name
from pg_class c
    join pg_namespace n on n.oid = c.relnamespace
    left join pg_index i on i.indexrelid = c.oid
    left join pg_class t on t.oid = i.indrelid
where c.relkind in ('r', 'v', 'm', 'i') and c.oid >= 16384 and n.nspname not in ('pg_catalog', 'information_schema', 'bennu')
    and not coalesce(i.indisprimary, false);

create view bennu.system_catalog with (cached = off) as
select r.schem as table_schem, r.name as table_name, null as column_name, null as column_family, 0 as table_seq_num,
    case r.relkind when 'r' then 'u' when 'i' then 'i' else 'v' end as table_type, p.conname as pk_name,
    r.relnatts as column_count,
    (select nullif(split_part(o, '=', 2), '')::int4 from unnest(r.reloptions) as o where o like 'salt_buckets=%') as salt_buckets,
    r.table_name as data_table_name,
    case b.state when 'active' then 'a' when 'building' then 'b' when 'unusable' then 'd' when 'disabled' then 'x'
        when 'inactive' then 'i' else case when r.relkind = 'i' then 'a' end end as index_state,
    false as immutable_rows, case when r.relkind in ('v', 'm') then pg_get_viewdef(r.oid) end as view_statement,
    false as disable_wal, false as multi_tenant, case when r.relkind in ('v', 'm') then 2 end as view_type,
    null as data_type, null as column_size, null as decimal_digits, null as nullable, null as ordinal_position,
    null as sort_order, null as key_seq, null::int2 as link_type, null as column_def, null as is_nullable,
    case when r.relkind = 'i' then 1 end as index_type, true as transactional,
    (select split_part(o, '=', 2) from unnest(r.reloptions) as o where o like 'ttl=%') as ttl
from bennu._phoenix_relation r
    left join pg_constraint p on p.conrelid = r.oid and p.contype = 'p' and p.conname <> r.relname || '_pkey'
    left join bennu.indexes b on b.index_name = r.full_name
union all
select r.schem, r.name, case when a.attname = lower(a.attname) then upper(a.attname) else a.attname end,
    case when r.relkind <> 'r' or a.attnum = any(k.conkey) then null
        else coalesce((select case when f[1] = lower(f[1]) then upper(f[1]) else f[1] end
            from unnest(r.reloptions) as o, regexp_matches(o, '([^ =(),]+)\(([^)]*)\)', 'g') as f
            where o like 'column_families=%' and a.attname::text = any(regexp_split_to_array(f[2], ', '))), '0') end,
    null, null, null, null, null, null, null, null, null, null, null, null,
    case when t.typcategory = 'A' then 3000 else 0 end + case coalesce(e.typname, t.typname) when 'int4' then 4 when 'int8' then -5
        when 'int2' then 5 when 'varchar' then 12 when 'text' then 12 when 'bpchar' then 1 when 'numeric' then 3
        when 'float4' then 6 when 'float8' then 8 when 'bool' then 16 when 'date' then 91 when 'time' then 92
        when 'timestamp' then 93 when 'timestamptz' then 93 when 'bytea' then -3 else 1111 end,
    case when a.atttypmod < 4 then null when t.typname in ('varchar', 'bpchar') then a.atttypmod - 4
        when t.typname = 'numeric' then ((a.atttypmod - 4) >> 16) & 65535 end,
    case when t.typname = 'numeric' and a.atttypmod >= 4 then (a.atttypmod - 4) & 65535 end,
    case when a.attnotnull then 0 else 1 end, a.attnum, 2,
    case when r.relkind = 'i' then a.attnum else array_position(k.conkey, a.attnum) end, null,
    pg_get_expr(d.adbin, d.adrelid), case when a.attnotnull then 'NO' else 'YES' end, null, null, null
from bennu._phoenix_relation r
    join pg_attribute a on a.attrelid = r.oid and a.attnum > 0 and not a.attisdropped
    join pg_type o on o.oid = a.atttypid
    join pg_type t on t.oid = case when o.typtype = 'd' then o.typbasetype else o.oid end
    left join pg_type e on e.oid = t.typelem and t.typcategory = 'A'
    left join pg_constraint k on k.conrelid = r.oid and k.contype = 'p'
    left join pg_attrdef d on d.adrelid = r.oid and d.adnum = a.attnum
union all
select schem, table_name, null, name, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null,
    null, null, null, null, 1, null, null, null, null, null
from bennu._phoenix_relation where relkind = 'i';

create view bennu.system_sequence with (cached = off) as
select case when n.nspname = 'public' then null when n.nspname = lower(n.nspname) then upper(n.nspname) else n.nspname end as sequence_schema,
    case when c.relname = lower(c.relname) then upper(c.relname) else c.relname end as sequence_name,
    s.start_value as start_with, coalesce(s.last_value + s.increment_by, s.start_value) as current_value, s.increment_by,
    s.cache_size, s.min_value, s.max_value, s.cycle as cycle_flag,
    not s.cycle and coalesce(case when s.increment_by > 0 then s.last_value > s.max_value - s.increment_by
        else s.last_value < s.min_value - s.increment_by end, false) as limit_reached_flag
from pg_class c
    join pg_namespace n on n.oid = c.relnamespace
    join bennu.sequences s on s.sequence_name = case when n.nspname = 'public' then '' else n.nspname || '.' end || c.relname
where c.relkind = 'S';

-- A region is a guide post; its rows are those that ANALYZE has counted, in equal parts.
create view bennu.system_stats with (cached = off) as
select r.name as physical_name, case when f.family = lower(f.family) then upper(f.family) else f.family end as column_family,
    g.start_key as guide_post_key, g.store_file_bytes + g.memstore_bytes as guide_posts_width,
    (c.reltuples / count(*) over (partition by r.oid, f.family))::int8 as guide_posts_row_count
from bennu._phoenix_relation r
    join pg_class c on c.oid = r.oid
    join bennu.regions g on g.table_name = r.full_name
    join bennu.families f on f.table_name = r.full_name
where r.relkind = 'r' and c.reltuples >= 0;

create view bennu.system_function with (cached = off) as
select case when p.proname = lower(p.proname) then upper(p.proname) else p.proname end as function_name,
    p.pronargs as num_args, null as type, null as arg_position, l.lanname as class_name,
    format_type(p.prorettype, null) as return_type, null as is_array
from pg_proc p join pg_language l on l.oid = p.prolang
where p.oid >= 16384 and p.prokind = 'f' and p.pronamespace not in (select oid from pg_namespace where nspname in ('pg_catalog', 'information_schema', 'bennu'))
union all
select case when p.proname = lower(p.proname) then upper(p.proname) else p.proname end, null, format_type(a.type, null), a.position - 1,
    null, null, format_type(a.type, null) like '%[]'
from pg_proc p, unnest(p.proargtypes::oid[]) with ordinality as a(type, position)
where p.oid >= 16384 and p.prokind = 'f' and p.pronamespace not in (select oid from pg_namespace where nspname in ('pg_catalog', 'information_schema', 'bennu'));

-- Tasks are builds of indexes; 2 is Phoenix's number for them.
create view bennu.system_task with (cached = off) as
select 2 as task_type, r.schem as table_schem, r.table_name, case when b.error is null then 'STARTED' else 'FAILED' end as task_status,
    b.error as task_data
from bennu._phoenix_relation r join bennu.indexes b on b.index_name = r.full_name
where b.state = 'building' or b.error is not null;
