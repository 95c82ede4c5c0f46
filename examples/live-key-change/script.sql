-- Changing the keys of a live table: more salt, a new index, a new key, while clients go on.
-- psql -h 127.0.0.1 -p 5433 -U bennu -X -a -f script.sql
\pset footer off
SET client_min_messages = warning;

-- A million events, keyed by time alone: every insert goes to the end.
CREATE TABLE happening (at timestamp, source int, kind text, PRIMARY KEY (at, source)) WITH (versions = 2);
INSERT INTO happening SELECT '2026-01-01'::timestamp + n * interval '1 s', n % 50, (ARRAY['in', 'out', 'in', 'move'])[1 + n % 4]
FROM generate_series(1, 1000000) AS n;
SELECT count(*) AS rows, count(DISTINCT source) AS sources FROM happening;

-- Salt: the statement copies the rows into eight buckets beside writers, with their history, and then exchanges the tables.
PREPARE by_key AS SELECT kind FROM happening WHERE at = $1 AND source = $2;
EXECUTE by_key ('2026-01-01 00:00:50', 0);
ALTER TABLE happening SET (salt_buckets = 8);
EXECUTE by_key ('2026-01-01 00:00:50', 0);
SELECT count(*) AS regions FROM bennu.regions WHERE table_name = 'happening';
INSERT INTO happening SELECT '2026-02-01'::timestamp + n * interval '1 ms', n % 50, 'in' FROM generate_series(1, 100000) AS n;
SELECT salt_bucket, round(rows_written, -3) AS rows_written FROM bennu.regions WHERE table_name = 'happening' ORDER BY salt_bucket;
EXPLAIN (COSTS OFF) SELECT at, source FROM happening WHERE at >= '2026-01-05' ORDER BY at, source LIMIT 2;
SELECT at, source FROM happening WHERE at >= '2026-01-05' ORDER BY at, source LIMIT 2;

-- A new index, built while writers go on; it is public when it has all rows.
CREATE INDEX CONCURRENTLY happening_source ON happening (source, at DESC) INCLUDE (kind) WITH (salt_buckets = 4);
CHECK INDEX happening_source ON happening;
ANALYZE happening;
EXPLAIN (COSTS OFF) SELECT at, kind FROM happening WHERE source = 7 ORDER BY at DESC LIMIT 2;
SELECT at, kind FROM happening WHERE source = 7 ORDER BY at DESC LIMIT 2;

-- A new column, filled in parts: each part is a transaction of its own, so no writer waits for long.
ALTER TABLE happening ADD COLUMN day date;
CREATE PROCEDURE fill() LANGUAGE plpgsql AS $$
DECLARE
    first timestamp := '2026-01-01';
BEGIN
    WHILE first < '2026-03-01' LOOP
        UPDATE happening SET day = at::date WHERE at >= first AND at < first + interval '1 day' AND day IS NULL;
        COMMIT;
        first := first + interval '1 day';
    END LOOP;
END
$$;
CALL fill();
SELECT count(*) FILTER (WHERE day IS NULL) AS missing, count(DISTINCT day) AS days FROM happening;
ALTER TABLE happening ALTER COLUMN day SET NOT NULL;

-- A new primary key: the rows are rewritten by one statement, and the indexes with them.
ALTER TABLE happening DROP CONSTRAINT happening_pkey, ADD PRIMARY KEY (source, day, at);
EXPLAIN (COSTS OFF) SELECT count(*) FROM happening WHERE source = 7 AND day = '2026-01-03';
SELECT count(*) FROM happening WHERE source = 7 AND day = '2026-01-03';
CHECK TABLE happening;

DROP PROCEDURE fill;
DROP TABLE happening;
