-- Metrics in the way of OpenTSDB: numbers for names, a row for each series and hour, packed when the hour is over.
-- psql -h 127.0.0.1 -p 5433 -U bennu -X -a -f script.sql
\pset footer off
SET client_min_messages = warning;

-- Names have numbers, so keys are short. A counter gives the next one.
CREATE TABLE counter (kind text PRIMARY KEY, last int NOT NULL);
CREATE TABLE series (id int PRIMARY KEY, metric text NOT NULL, tags jsonb NOT NULL, UNIQUE (metric, tags));
CREATE FUNCTION series_id(metric_name text, tag_values jsonb) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
    found int;
BEGIN
    SELECT id INTO found FROM series WHERE metric = metric_name AND tags = tag_values;
    IF found IS NULL THEN
        UPSERT INTO counter VALUES ('series', 1) ON DUPLICATE KEY UPDATE last = last + 1 RETURNING last INTO found;
        INSERT INTO series VALUES (found, metric_name, tag_values);
    END IF;
    RETURN found;
END
$$;
SELECT count(series_id('cpu', jsonb_build_object('host', 'h' || n, 'rack', 'r' || n % 100))) AS created FROM generate_series(1, 400) AS n;
SELECT series_id('cpu', '{"host": "h7", "rack": "r7"}') AS known;
CREATE INDEX series_tags ON series USING gin (tags jsonb_path_ops);

-- Samples of the present: a row for each. The series is first in the key, so all series write at the same time to all regions.
CREATE TABLE sample (series int, at timestamp, value real NOT NULL, PRIMARY KEY (series, at)) SPLIT ON ((101), (201), (301));
-- Hours that are over: the samples of an hour are one row, their seconds and values are arrays.
CREATE TABLE hour (series int, hour timestamp, seconds smallint[] NOT NULL, samples real[] NOT NULL, PRIMARY KEY (series, hour));
CREATE VIEW point AS
SELECT series, at, value FROM sample
UNION ALL
SELECT h.series, h.hour + s.second * interval '1 second', s.value FROM hour h, unnest(h.seconds, h.samples) AS s (second, value);

-- A million samples: four hundred series, one in ten seconds, for almost seven hours.
INSERT INTO sample SELECT s.id, '2026-01-01'::timestamp + n * interval '10 s', (n * 7 + s.id * 13) % 100
FROM generate_series(0, 2249) AS n, series s;
CREATE TEMPORARY TABLE earlier AS SELECT region, rows_written FROM bennu.regions WHERE table_name = 'sample';
INSERT INTO sample SELECT s.id, '2026-01-01'::timestamp + n * interval '10 s', (n * 7 + s.id * 13) % 100
FROM generate_series(2250, 2499) AS n, series s;
SELECT start_values, round(100.0 * (r.rows_written - e.rows_written) / sum(r.rows_written - e.rows_written) OVER ()) AS percent
FROM bennu.regions r JOIN earlier e USING (region) ORDER BY region;

-- Packing: an hour of a series in a transaction, so that a reader sees each sample once.
CREATE PROCEDURE pack(first timestamp) LANGUAGE plpgsql AS $$
DECLARE
    number int;
BEGIN
    FOR number IN SELECT id FROM series LOOP
        INSERT INTO hour
        SELECT series, first, array_agg(extract(epoch FROM at - first)::smallint ORDER BY at), array_agg(value ORDER BY at)
        FROM sample WHERE series = number AND at >= first AND at < first + interval '1 hour' GROUP BY series;
        DELETE FROM sample WHERE series = number AND at >= first AND at < first + interval '1 hour';
        COMMIT;
    END LOOP;
END
$$;
SELECT count(*), sum(value::bigint) FROM point;
CALL pack('2026-01-01 00:00');
CALL pack('2026-01-01 01:00');
CALL pack('2026-01-01 02:00');
SELECT count(*), sum(value::bigint) FROM point;
SELECT (SELECT count(*) FROM hour) AS hours, (SELECT count(*) FROM sample) AS samples;
FLUSH sample;
FLUSH hour;
MAJOR COMPACT sample;
MAJOR COMPACT hour;
SELECT round((SELECT sum(store_file_bytes) FROM bennu.regions WHERE table_name = 'hour') / 432000) AS bytes_per_packed_sample,
       round((SELECT sum(store_file_bytes) FROM bennu.regions WHERE table_name = 'sample') / 568000) AS bytes_per_sample;
ANALYZE;

-- A query by tags: the series of a rack, then a range of hours of each.
EXPLAIN (COSTS OFF) SELECT id FROM series WHERE metric = 'cpu' AND tags @> '{"rack": "r3"}';
EXPLAIN (COSTS OFF)
SELECT h.hour, avg(v) FROM series s JOIN hour h ON h.series = s.id, unnest(h.samples) AS v
WHERE s.metric = 'cpu' AND s.tags @> '{"rack": "r3"}' AND h.hour >= '2026-01-01 01:00' AND h.hour < '2026-01-01 03:00' GROUP BY h.hour;
SELECT h.hour, round(avg(v)::numeric, 2) AS average FROM series s JOIN hour h ON h.series = s.id, unnest(h.samples) AS v
WHERE s.metric = 'cpu' AND s.tags @> '{"rack": "r3"}' AND h.hour >= '2026-01-01 01:00' AND h.hour < '2026-01-01 03:00'
GROUP BY h.hour ORDER BY h.hour;
SELECT s.tags->>'host' AS host, max(value) FROM series s JOIN point p ON p.series = s.id
WHERE s.tags @> '{"rack": "r3"}' AND at >= '2026-01-01 02:59' AND at < '2026-01-01 03:01' GROUP BY 1 ORDER BY 1 LIMIT 3;

DROP VIEW point;
DROP PROCEDURE pack;
DROP FUNCTION series_id;
DROP TABLE counter, series, sample, hour;
