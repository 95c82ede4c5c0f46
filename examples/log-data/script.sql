-- Log data in six keys: who writes where, and what a query reads.
-- psql -h 127.0.0.1 -p 5433 -U bennu -X -a -f script.sql
\pset footer off
SET client_min_messages = warning;

-- A day of a hundred hosts, a million lines. Host 0 writes a fifth of them, the busiest ten more than half.
CREATE VIEW line AS
SELECT n, '2026-01-01'::timestamp + n * interval '86 ms' AS at,
       'h' || lpad(floor(100 * power(n * 2654435761 % 4294967296 / 4294967296.0, 3))::text, 2, '0') AS host,
       (ARRAY['info', 'info', 'info', 'warn', 'error'])[1 + n % 5] AS level,
       'request ' || n AS message
FROM generate_series(1::bigint, 1000000) AS n;

-- Time first. One region takes all lines of the present.
CREATE TABLE by_time (at timestamp, host text, n bigint, level text, message text, PRIMARY KEY (at, host, n))
SPLIT ON (('2026-01-01 06:00'), ('2026-01-01 12:00'), ('2026-01-01 18:00'));

-- Host first. A region takes the lines of its hosts; a busy host is still one region.
CREATE TABLE by_host (at timestamp, host text, n bigint, level text, message text, PRIMARY KEY (host, at, n))
SPLIT ON (('h25'), ('h50'), ('h75'));

-- Host first, the newest line first: "the last lines of a host" is the start of its range.
CREATE TABLE by_host_newest (at timestamp, host text, n bigint, level text, message text, PRIMARY KEY (host, at DESC, n))
SPLIT ON (('h25'), ('h50'), ('h75'));

-- A hash before the host: hosts are spread, the lines of a host stay together.
CREATE TABLE by_hash (spread text GENERATED ALWAYS AS (substr(md5(host), 1, 2)) STORED,
                      at timestamp, host text, n bigint, level text, message text, PRIMARY KEY (spread, host, at, n))
SPLIT ON (('40'), ('80'), ('c0'));

-- A number for each host, from a table of its own: keys are short, and reversed digits spread new numbers.
CREATE TABLE host_number (host text PRIMARY KEY, id int NOT NULL);
INSERT INTO host_number SELECT host, row_number() OVER (ORDER BY min(n)) FROM line GROUP BY host;
CREATE TABLE by_number (at timestamp, host int, n bigint, level text, message text, PRIMARY KEY (host, at, n))
SPLIT ON ((25), (50), (75));

-- Time first in buckets: each region takes a part of the present, a range of time reads every bucket.
CREATE TABLE by_bucket (at timestamp, host text, n bigint, level text, message text, PRIMARY KEY (at, host, n))
WITH (salt_buckets = 4);

-- The first nine tenths of the day.
INSERT INTO by_time SELECT at, host, n, level, message FROM line WHERE n <= 900000;
INSERT INTO by_host SELECT at, host, n, level, message FROM line WHERE n <= 900000;
INSERT INTO by_host_newest SELECT at, host, n, level, message FROM line WHERE n <= 900000;
INSERT INTO by_hash (at, host, n, level, message) SELECT at, host, n, level, message FROM line WHERE n <= 900000;
INSERT INTO by_number SELECT at, id, n, level, message FROM line JOIN host_number USING (host) WHERE n <= 900000;
INSERT INTO by_bucket SELECT at, host, n, level, message FROM line WHERE n <= 900000;
ANALYZE;

-- The rest of the day: what part of it went to the region that took the most?
CREATE TABLE earlier AS SELECT table_name, region, rows_written FROM bennu.regions WHERE table_name LIKE 'by\_%';
INSERT INTO by_time SELECT at, host, n, level, message FROM line WHERE n > 900000;
INSERT INTO by_host SELECT at, host, n, level, message FROM line WHERE n > 900000;
INSERT INTO by_host_newest SELECT at, host, n, level, message FROM line WHERE n > 900000;
INSERT INTO by_hash (at, host, n, level, message) SELECT at, host, n, level, message FROM line WHERE n > 900000;
INSERT INTO by_number SELECT at, id, n, level, message FROM line JOIN host_number USING (host) WHERE n > 900000;
INSERT INTO by_bucket SELECT at, host, n, level, message FROM line WHERE n > 900000;
SELECT table_name, count(*) AS regions,
       round(100.0 * max(r.rows_written - e.rows_written) / sum(r.rows_written - e.rows_written)) AS busiest_percent
FROM bennu.regions r JOIN earlier e USING (table_name, region)
GROUP BY table_name ORDER BY busiest_percent DESC, table_name;

-- A minute of all hosts: one range if time is first, a range in each bucket, else a scan of all.
EXPLAIN (COSTS OFF) SELECT count(*) FROM by_time WHERE at >= '2026-01-01 10:00' AND at < '2026-01-01 10:01';
EXPLAIN (COSTS OFF) SELECT count(*) FROM by_bucket WHERE at >= '2026-01-01 10:00' AND at < '2026-01-01 10:01';
EXPLAIN (COSTS OFF) SELECT count(*) FROM by_host WHERE at >= '2026-01-01 10:00' AND at < '2026-01-01 10:01';

-- An hour of one host: one range if the host is first.
EXPLAIN (COSTS OFF) SELECT count(*) FROM by_host WHERE host = 'h07' AND at >= '2026-01-01 10:00' AND at < '2026-01-01 11:00';
EXPLAIN (COSTS OFF) SELECT count(*) FROM by_hash WHERE host = 'h07' AND at >= '2026-01-01 10:00' AND at < '2026-01-01 11:00';
EXPLAIN (COSTS OFF) SELECT count(*) FROM by_number
WHERE host = (SELECT id FROM host_number WHERE host = 'h07') AND at >= '2026-01-01 10:00' AND at < '2026-01-01 11:00';
EXPLAIN (COSTS OFF) SELECT count(*) FROM by_time WHERE host = 'h07' AND at >= '2026-01-01 10:00' AND at < '2026-01-01 11:00';

-- The last three lines of a host: the start of its range, or the end of it, read in reverse.
EXPLAIN (COSTS OFF) SELECT at, level FROM by_host_newest WHERE host = 'h07' ORDER BY at DESC LIMIT 3;
SELECT at, level, message FROM by_host_newest WHERE host = 'h07' ORDER BY at DESC LIMIT 3;
EXPLAIN (COSTS OFF) SELECT at, level FROM by_host WHERE host = 'h07' ORDER BY at DESC LIMIT 3;

-- All keys answer alike.
SELECT (SELECT count(*) FROM by_time WHERE host = 'h07' AND level = 'error') AS by_time,
       (SELECT count(*) FROM by_host WHERE host = 'h07' AND level = 'error') AS by_host,
       (SELECT count(*) FROM by_hash WHERE host = 'h07' AND level = 'error') AS by_hash,
       (SELECT count(*) FROM by_bucket WHERE host = 'h07' AND level = 'error') AS by_bucket;

DROP VIEW line;
DROP TABLE earlier, host_number, by_time, by_host, by_host_newest, by_hash, by_number, by_bucket;
