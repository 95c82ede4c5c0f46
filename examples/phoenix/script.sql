-- The first hour of a Phoenix user: statements as they are typed in sqlline, here in psql.
-- psql -h 127.0.0.1 -p 5433 -U bennu -X -a -f script.sql
\pset footer off
SET TIME ZONE UTC;
SET phoenix_compatibility = on;

-- A table, a few rows, a query.
CREATE TABLE IF NOT EXISTS river (country CHAR(2) NOT NULL, name VARCHAR NOT NULL, length_km BIGINT CONSTRAINT pk PRIMARY KEY (country, name));
UPSERT INTO river VALUES ('BR', 'Amazon', 6400);
UPSERT INTO river VALUES ('EG', 'Nile', 6650);
UPSERT INTO river VALUES ('US', 'Missouri', 3767);
UPSERT INTO river VALUES ('US', 'Yukon', 3190);
UPSERT INTO river VALUES ('NO', 'Glomma', 621);
SELECT country AS "Country", count(name) AS "Rivers", sum(length_km) AS "Length" FROM river GROUP BY country ORDER BY sum(length_km) DESC;

-- Families, a composite key with the same constraint name, salt, options of HBase.
CREATE TABLE web_stat (
    host CHAR(2) NOT NULL, domain VARCHAR NOT NULL, feature VARCHAR NOT NULL, "date" DATE NOT NULL,
    usage.core BIGINT, usage.db BIGINT, stats.active_visitor INTEGER
    CONSTRAINT pk PRIMARY KEY (host, domain, feature, "date")
) SALT_BUCKETS = 4, VERSIONS = 3, DATA_BLOCK_ENCODING = 'FAST_DIFF', COMPRESSION = 'GZ';
UPSERT INTO web_stat VALUES ('EU', 'a.org', 'login', '2026-01-01', 35, 42, 10);
UPSERT INTO web_stat VALUES ('EU', 'b.org', 'reports', '2026-01-02', 12, 31, 8);
UPSERT INTO web_stat VALUES ('NA', 'a.org', 'login', '2026-01-02', 57, 12, 3);
UPSERT INTO web_stat (host, domain, feature, "date", usage.core) VALUES ('NA', 'b.org', 'dashboard', '2026-01-03', 40);
SELECT domain, avg(core) AS average_core, max(db) AS most_db FROM web_stat GROUP BY domain ORDER BY domain;
SELECT TRUNC("date", 'DAY') AS day, sum(core) AS core FROM web_stat GROUP BY TRUNC("date", 'DAY') ORDER BY day;
EXPLAIN SELECT count(*) FROM web_stat WHERE host = 'EU' AND domain = 'a.org';

-- Indexes: covering, local, functional; hints name them.
CREATE INDEX web_stat_core ON web_stat (usage.core) INCLUDE (usage.db);
CREATE LOCAL INDEX web_stat_feature ON web_stat (feature);
CREATE INDEX web_stat_upper ON web_stat (UPPER(domain));
SELECT /*+ INDEX(web_stat web_stat_core) */ core, db FROM web_stat WHERE core > 35 ORDER BY core;
SELECT /*+ NO_INDEX */ count(*) FROM web_stat WHERE feature = 'login';
ALTER INDEX web_stat_core ON web_stat REBUILD;

-- Counters and sequences.
CREATE TABLE counter (name VARCHAR PRIMARY KEY, hits BIGINT);
UPSERT INTO counter VALUES ('home', 0) ON DUPLICATE KEY UPDATE hits = hits + 1;
UPSERT INTO counter VALUES ('home', 0) ON DUPLICATE KEY UPDATE hits = hits + 1;
SELECT * FROM counter;
CREATE SEQUENCE ticket START WITH 100 INCREMENT BY 10 CACHE 5;
SELECT NEXT VALUE FOR ticket;
UPSERT INTO counter VALUES ('ticket', NEXT VALUE FOR ticket);
SELECT hits FROM counter WHERE name = 'ticket';

-- Views: a condition fills in its column.
CREATE VIEW eu_stat AS SELECT * FROM web_stat WHERE host = 'EU';
UPSERT INTO eu_stat (domain, feature, "date", core) VALUES ('c.org', 'login', '2026-01-04', 5);
SELECT host, domain, core FROM web_stat WHERE domain = 'c.org';

-- Arrays, row values, date arithmetic.
CREATE TABLE region_list (id BIGINT NOT NULL PRIMARY KEY, names VARCHAR ARRAY);
UPSERT INTO region_list VALUES (1, ARRAY['north', 'south']);
SELECT names[1], ARRAY_LENGTH(names) AS n FROM region_list WHERE 'south' = ANY(names);
SELECT name FROM river WHERE (country, name) > ('NO', 'A') ORDER BY country, name LIMIT 2;
SELECT TO_CHAR("date" + 1, 'yyyy-MM-dd') AS tomorrow FROM web_stat WHERE host = 'NA' AND domain = 'a.org';

-- Operations.
UPDATE STATISTICS web_stat;
ALTER TABLE web_stat ADD stats.errors INTEGER, stats.note VARCHAR;
UPSERT INTO river SELECT 'XX', name, length_km FROM river WHERE country = 'US';
DELETE FROM river WHERE country = 'XX';
SELECT table_name, column_name, column_family FROM SYSTEM.CATALOG WHERE table_name = 'RIVER' OR table_name = 'river' ORDER BY column_name NULLS FIRST;
SELECT * FROM river FOR SYSTEM_TIME AS OF CURRENT_TIMESTAMP WHERE country = 'EG';

DROP VIEW eu_stat;
DROP SEQUENCE ticket;
DROP TABLE river, web_stat, counter, region_list;
