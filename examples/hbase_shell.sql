-- The session of an HBase shell tutorial, in SQL. The command of the shell is above each statement.
-- psql -h 127.0.0.1 -p 5433 -U bennu -X -a -f examples/hbase_shell.sql
SET TIME ZONE UTC;

-- create 'temperature', {NAME => 'f', VERSIONS => 3}
CREATE TABLE temperature (room text PRIMARY KEY, f.celsius numeric, f.source text)
WITH (versions = 3, timestamps = 'client');

-- put 'temperature', 'hall', 'f:celsius', '19.5', 1767225600000
UPSERT INTO temperature VALUES ('hall', 19.5, 'a') WITH TIMESTAMP '2026-01-01';
-- put 'temperature', 'hall', 'f:celsius', '99', 1767312000000
UPSERT INTO temperature VALUES ('hall', 99, 'b') WITH TIMESTAMP '2026-01-02';
UPSERT INTO temperature VALUES ('attic', 24, 'a') WITH TIMESTAMP '2026-01-02';

-- get 'temperature', 'hall'
SELECT * FROM temperature WHERE room = 'hall';

-- get 'temperature', 'hall', {COLUMN => 'f:celsius', VERSIONS => 3}
SELECT celsius, _timestamp FROM temperature FOR SYSTEM_TIME ALL WHERE room = 'hall' ORDER BY _timestamp DESC;

-- get 'temperature', 'hall', {TIMERANGE => [0, 1767312000000]}
SELECT celsius FROM temperature FOR SYSTEM_TIME AS OF '2026-01-01 12:00' WHERE room = 'hall';

-- scan 'temperature', {STARTROW => 'b', VERSIONS => 3}
SELECT family, timestamp, type, key, columns FROM cells('temperature', versions => 3, start => 'b');

-- delete 'temperature', 'hall', 'f:celsius', 1767312000000
DELETE FROM temperature WHERE room = 'hall' WITH VERSION '2026-01-02';
SELECT celsius, source FROM temperature WHERE room = 'hall';

-- scan 'temperature', {RAW => true, VERSIONS => 3}
SELECT family, timestamp, type, key, columns FROM cells('temperature', raw => true, versions => 3);

-- alter 'temperature', {NAME => 'f', VERSIONS => 5, COMPRESSION => 'ZSTD'}
ALTER TABLE temperature ALTER FAMILY f SET (versions = 5, compression = 'zstd');
SELECT family, versions, compression FROM bennu.families WHERE table_name = 'temperature';

-- create 'session', {NAME => 'f', TTL => 86400}; put …, {TTL => 500}
CREATE TABLE login (token text PRIMARY KEY, person text) WITH (ttl = '1 day', cell_ttl = true);
UPSERT INTO login VALUES ('t1', 'ann');
UPSERT INTO login VALUES ('t2', 'ben') WITH TTL '0.5 seconds';
SELECT count(*) FROM login;
SELECT FROM pg_sleep(0.6);
SELECT token, person FROM login;

-- incr 'page', 'home', 'f:hits', 1
CREATE TABLE page (name text PRIMARY KEY, hits bigint NOT NULL);
UPSERT INTO page VALUES ('home', 1) ON DUPLICATE KEY UPDATE hits = hits + 1;
UPSERT INTO page VALUES ('home', 1) ON DUPLICATE KEY UPDATE hits = hits + 1 RETURNING hits;

-- deleteall 'temperature', 'attic'; count 'temperature'
DELETE FROM temperature WHERE room = 'attic';
SELECT count(*) FROM temperature;

-- flush, major_compact, truncate, drop
FLUSH temperature;
MAJOR COMPACT temperature;
TRUNCATE temperature;
DROP TABLE temperature, login, page;
