-- Functions that are defined by SQL text: functions of information_schema that drivers call, and
-- functions of pg_catalog over system views. Their numbers follow this order: append new ones.

CREATE FUNCTION information_schema._pg_expandarray(anyarray, OUT x anyelement, OUT n integer)
RETURNS SETOF record LANGUAGE sql IMMUTABLE STRICT AS
'SELECT $1[s], s - pg_catalog.array_lower($1, 1) + 1 FROM pg_catalog.generate_series(pg_catalog.array_lower($1, 1), pg_catalog.array_upper($1, 1), 1) AS g(s)';

CREATE FUNCTION information_schema._pg_index_position(oid, smallint) RETURNS integer
LANGUAGE sql STABLE STRICT AS
'SELECT (a).n FROM (SELECT information_schema._pg_expandarray(indkey) AS a FROM pg_catalog.pg_index WHERE indexrelid = $1) AS keys WHERE (a).x = $2';

CREATE FUNCTION information_schema._pg_interval_type(typid oid, mod integer) RETURNS text
LANGUAGE sql IMMUTABLE STRICT AS
$$SELECT CASE WHEN $1 = 1186 THEN upper(substring(pg_catalog.format_type($1, $2) SIMILAR 'interval[()0-9]* #"%#"' ESCAPE '#')) END$$;

-- Modifiers of varchar and numeric are four higher than the length or precision.
CREATE FUNCTION information_schema._pg_char_max_length(typid oid, typmod integer) RETURNS integer
LANGUAGE sql IMMUTABLE STRICT AS
'SELECT CASE WHEN $2 = -1 THEN NULL WHEN $1 IN (1042, 1043) THEN $2 - 4 WHEN $1 IN (1560, 1562) THEN $2 END';

CREATE FUNCTION information_schema._pg_char_octet_length(typid oid, typmod integer) RETURNS integer
LANGUAGE sql IMMUTABLE STRICT AS
'SELECT CASE WHEN $1 IN (25, 1042, 1043) THEN CASE WHEN $2 = -1 THEN 1 << 30 ELSE least((($2 - 4)::bigint * 4), 2147483647)::integer END END';

CREATE FUNCTION information_schema._pg_numeric_precision(typid oid, typmod integer) RETURNS integer
LANGUAGE sql IMMUTABLE STRICT AS
'SELECT CASE $1 WHEN 21 THEN 16 WHEN 23 THEN 32 WHEN 20 THEN 64 WHEN 1700 THEN CASE WHEN $2 = -1 THEN NULL ELSE (($2 - 4) >> 16) & 65535 END WHEN 700 THEN 24 WHEN 701 THEN 53 END';

CREATE FUNCTION information_schema._pg_numeric_precision_radix(typid oid, typmod integer) RETURNS integer
LANGUAGE sql IMMUTABLE STRICT AS
'SELECT CASE WHEN $1 IN (21, 23, 20, 700, 701) THEN 2 WHEN $1 = 1700 THEN 10 END';

CREATE FUNCTION information_schema._pg_numeric_scale(typid oid, typmod integer) RETURNS integer
LANGUAGE sql IMMUTABLE STRICT AS
'SELECT CASE WHEN $1 IN (21, 23, 20) THEN 0 WHEN $1 = 1700 THEN CASE WHEN $2 = -1 THEN NULL ELSE ($2 - 4) & 65535 END END';

CREATE FUNCTION information_schema._pg_datetime_precision(typid oid, typmod integer) RETURNS integer
LANGUAGE sql IMMUTABLE STRICT AS
'SELECT CASE WHEN $1 = 1082 THEN 0 WHEN $1 IN (1083, 1114, 1184, 1266) THEN CASE WHEN $2 < 0 THEN 6 ELSE $2 END WHEN $1 = 1186 THEN CASE WHEN $2 < 0 OR $2 & 65535 = 65535 THEN 6 ELSE $2 & 65535 END END';

-- Rows of system views as functions.
CREATE FUNCTION pg_catalog.pg_show_all_settings(OUT name text, OUT setting text, OUT unit text,
    OUT category text, OUT short_desc text, OUT extra_desc text, OUT context text, OUT vartype text,
    OUT source text, OUT min_val text, OUT max_val text, OUT enumvals text[], OUT boot_val text,
    OUT reset_val text, OUT sourcefile text, OUT sourceline integer, OUT pending_restart boolean)
RETURNS SETOF record LANGUAGE sql STABLE STRICT AS
'SELECT * FROM pg_catalog.pg_settings';

CREATE FUNCTION pg_catalog.pg_available_extensions(OUT name name, OUT default_version text, OUT comment text)
RETURNS SETOF record LANGUAGE sql STABLE STRICT AS
'SELECT name, default_version, comment FROM pg_catalog.pg_available_extensions';

-- No command reports its progress.
CREATE FUNCTION pg_catalog.pg_stat_get_progress_info(cmdtype text, OUT pid integer, OUT datid oid,
    OUT relid oid, OUT param1 bigint, OUT param2 bigint, OUT param3 bigint, OUT param4 bigint,
    OUT param5 bigint, OUT param6 bigint, OUT param7 bigint, OUT param8 bigint, OUT param9 bigint,
    OUT param10 bigint, OUT param11 bigint, OUT param12 bigint, OUT param13 bigint,
    OUT param14 bigint, OUT param15 bigint, OUT param16 bigint, OUT param17 bigint,
    OUT param18 bigint, OUT param19 bigint, OUT param20 bigint)
RETURNS SETOF record LANGUAGE sql STABLE STRICT AS
'SELECT 0, 0::oid, 0::oid, 0::bigint, 0::bigint, 0::bigint, 0::bigint, 0::bigint, 0::bigint, 0::bigint, 0::bigint, 0::bigint, 0::bigint, 0::bigint, 0::bigint, 0::bigint, 0::bigint, 0::bigint, 0::bigint, 0::bigint, 0::bigint, 0::bigint, 0::bigint WHERE false';

CREATE FUNCTION pg_catalog.pg_tablespace_size(oid) RETURNS bigint LANGUAGE sql VOLATILE STRICT AS
'SELECT sum(pg_catalog.pg_database_size(oid))::bigint FROM pg_catalog.pg_database WHERE dattablespace = $1';

CREATE FUNCTION pg_catalog.pg_tablespace_size(name) RETURNS bigint LANGUAGE sql VOLATILE STRICT AS
'SELECT pg_catalog.pg_tablespace_size(oid) FROM pg_catalog.pg_tablespace WHERE spcname = $1';

-- A server that receives no log from another one has not received anything.
CREATE FUNCTION pg_catalog.pg_last_wal_receive_lsn() RETURNS pg_lsn LANGUAGE sql VOLATILE STRICT AS
'SELECT NULL::pg_lsn';

CREATE FUNCTION pg_catalog.pg_last_wal_replay_lsn() RETURNS pg_lsn LANGUAGE sql VOLATILE STRICT AS
'SELECT NULL::pg_lsn';

CREATE FUNCTION pg_catalog.pg_last_xact_replay_timestamp() RETURNS timestamp with time zone
LANGUAGE sql VOLATILE STRICT AS
'SELECT NULL::timestamptz';

CREATE FUNCTION pg_catalog.pg_is_wal_replay_paused() RETURNS boolean LANGUAGE plpgsql VOLATILE STRICT AS
$$BEGIN
    RAISE object_not_in_prerequisite_state USING MESSAGE = 'recovery is not in progress',
        HINT = 'Recovery control functions can only be executed during recovery.';
END$$;
