-- Lists of each user, page by page: a tall table and a wide one.
-- psql -h 127.0.0.1 -p 5433 -U bennu -X -a -f script.sql
\pset footer off
SET client_min_messages = warning;

-- Tall: a row for each entry of a list; the key is the user and the place in the list.
CREATE TABLE tall (person int, at timestamp, id bigint, title text NOT NULL, PRIMARY KEY (person, at DESC, id)) WITH (salt_buckets = 4);
-- A million entries of 10,000 people; a few lists have ten thousand entries.
INSERT INTO tall
SELECT floor(10000 * power(n::bigint * 2654435761 % 4294967296 / 4294967296.0, 3)), '2026-01-01'::timestamp + n * interval '10 s', n, 'title ' || n
FROM generate_series(1, 1000000) AS n;
ANALYZE tall;
SELECT max(entries) AS longest, percentile_disc(0.5) WITHIN GROUP (ORDER BY entries) AS median
FROM (SELECT count(*) AS entries FROM tall GROUP BY person) AS list;

-- The first page, and the page after its last entry: both read as many rows as they show.
SELECT at, id, title FROM tall WHERE person = 17 ORDER BY at DESC, id LIMIT 3;
EXPLAIN (COSTS OFF) SELECT at, id, title FROM tall WHERE person = 17 ORDER BY at DESC, id LIMIT 3;
-- The page after the last entry, whose time and id the client has.
SELECT at, id, title FROM tall WHERE person = 17 AND at <= '2026-04-26 14:56:00' AND (at, -id) < ('2026-04-26 14:56:00', -998976)
ORDER BY at DESC, id LIMIT 3;
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF)
SELECT at, id, title FROM tall WHERE person = 17 AND at <= '2026-04-26 14:56:00' AND (at, -id) < ('2026-04-26 14:56:00', -998976)
ORDER BY at DESC, id LIMIT 3;

-- OFFSET reads what it skips.
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF)
SELECT at, id, title FROM tall WHERE person = 17 ORDER BY at DESC, id LIMIT 3 OFFSET 2000;

-- A list in another order has an index; it is paged in the same way.
CREATE INDEX tall_title ON tall (person, title) WITH (salt_buckets = 4);
EXPLAIN (COSTS OFF) SELECT title FROM tall WHERE person = 17 AND title > 'title 5' ORDER BY title LIMIT 3;
SELECT title FROM tall WHERE person = 17 AND title > 'title 5' ORDER BY title LIMIT 3;

-- Wide: a row for each user, an entry is a cell of a column of its own. An entry is written without reading.
CREATE TABLE wide (person int PRIMARY KEY, name text NOT NULL) WITH (storage = 'cell');
UPSERT INTO wide VALUES (17, 'ann');
UPSERT INTO wide (person, e0001 text, e0002 text, e0003 text) VALUES (17, 'first', 'second', 'third');
UPSERT INTO wide (person, e0004 text) VALUES (17, 'fourth');
SELECT * FROM wide WHERE person = 17;
SELECT e0003, e0004 FROM wide (e0003 text, e0004 text) WHERE person = 17;
-- The columns by name, without knowing them.
SELECT columns FROM cells('wide') WHERE key->>'person' = '17';

-- The wide row is one unit of locks and of splits: it suits lists that stay short.
DROP TABLE tall, wide;
