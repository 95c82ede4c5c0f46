-- Customers and their orders in five ways, and the status of orders.
-- psql -h 127.0.0.1 -p 5433 -U bennu -X -a -f script.sql
\pset footer off
SET client_min_messages = warning;

-- A million orders of 100,000 customers; a few customers have thousands.
CREATE VIEW sample AS
SELECT n AS id, floor(100000 * power(n * 2654435761 % 4294967296 / 4294967296.0, 2))::int AS customer,
       '2026-01-01'::timestamp + n * interval '30 seconds' AS at, (n * 37 % 9973)::int AS cents
FROM generate_series(1::bigint, 1000000) AS n;
CREATE TABLE customer (id int PRIMARY KEY, name text NOT NULL, city text NOT NULL);
INSERT INTO customer SELECT n, 'customer ' || n, (ARRAY['Oslo', 'Lima', 'Rome'])[1 + n % 3] FROM generate_series(0, 99999) AS n;

-- 1. Orders by id, with an index on the customer: a row of the index names an order, which is fetched.
CREATE TABLE order_1 (id bigint PRIMARY KEY, customer int NOT NULL REFERENCES customer, at timestamp, cents int);
CREATE INDEX order_1_customer ON order_1 (customer, at DESC);
INSERT INTO order_1 SELECT id, customer, at, cents FROM sample;

-- 2. The same with a covering index: nothing is fetched, the index is larger.
CREATE TABLE order_2 (id bigint PRIMARY KEY, customer int NOT NULL, at timestamp, cents int);
CREATE INDEX order_2_customer ON order_2 (customer, at DESC) INCLUDE (cents);
INSERT INTO order_2 SELECT id, customer, at, cents FROM sample;

-- 3. The customer first in the key: the orders of a customer lie together, an order is found by both.
CREATE TABLE order_3 (customer int, at timestamp, id bigint, cents int, PRIMARY KEY (customer, at DESC, id));
INSERT INTO order_3 SELECT customer, at, id, cents FROM sample;

-- 4. Customer and orders in one table: a row of kind 0 is the customer, the others are the orders.
CREATE TABLE entity (customer int, kind smallint, id bigint, name text, city text, at timestamp, cents int, PRIMARY KEY (customer, kind, id));
INSERT INTO entity SELECT id, 0, 0, name, city FROM customer;
INSERT INTO entity SELECT customer, 1, id, NULL, NULL, at, cents FROM sample;

-- 5. Orders within the row of the customer: one get reads all, every order rewrites the value.
CREATE TABLE customer_5 (id int PRIMARY KEY, name text NOT NULL, city text NOT NULL, orders jsonb NOT NULL);
INSERT INTO customer_5
SELECT c.id, c.name, c.city, coalesce(o.orders, '[]') FROM customer c LEFT JOIN
       (SELECT customer, jsonb_agg(jsonb_build_object('id', id, 'cents', cents) ORDER BY id) AS orders FROM sample GROUP BY customer) AS o
       ON o.customer = c.id;
ANALYZE;

-- A customer with the newest orders.
EXPLAIN (COSTS OFF) SELECT id, at, cents FROM order_1 WHERE customer = 4711 ORDER BY at DESC LIMIT 3;
EXPLAIN (COSTS OFF) SELECT id, at, cents FROM order_2 WHERE customer = 4711 ORDER BY at DESC LIMIT 3;
EXPLAIN (COSTS OFF) SELECT id, at, cents FROM order_3 WHERE customer = 4711 ORDER BY at DESC LIMIT 3;
EXPLAIN (COSTS OFF) SELECT kind, id, name, cents FROM entity WHERE customer = 4711;
EXPLAIN (COSTS OFF) SELECT name, orders FROM customer_5 WHERE id = 4711;
SELECT id, at, cents FROM order_3 WHERE customer = 4711 ORDER BY at DESC LIMIT 3;
SELECT kind, id, name, cents FROM entity WHERE customer = 4711 ORDER BY kind, id DESC LIMIT 2;

-- An order by its id alone: only the tables whose key is the id find it.
EXPLAIN (COSTS OFF) SELECT cents FROM order_1 WHERE id = 12345;
EXPLAIN (COSTS OFF) SELECT cents FROM order_3 WHERE id = 12345;

-- A new order of the largest customer: what is written?
SELECT customer, count(*) AS orders FROM order_3 GROUP BY customer ORDER BY orders DESC, customer LIMIT 1;
SELECT length(orders::text) / 1000 AS kilobytes_rewritten FROM customer_5 WHERE id = 0;
SELECT (SELECT sum(cents) FROM order_1 WHERE customer = 0) = (SELECT sum(cents) FROM entity WHERE customer = 0 AND kind = 1) AS agree;

-- The status of orders: ids rise, so the key is the id with its digits reversed; a condition on the id finds it.
CREATE TABLE order_status (
    id bigint, spread text GENERATED ALWAYS AS (reverse(id::text)) STORED, status text NOT NULL, PRIMARY KEY (spread)
) SPLIT ON (('25'), ('5'), ('75'));
INSERT INTO order_status (id, status) SELECT id, 'placed' FROM sample WHERE id <= 100000;
SELECT start_values, round(100.0 * rows_written / sum(rows_written) OVER ()) AS percent FROM bennu.regions WHERE table_name = 'order_status';
EXPLAIN (COSTS OFF) UPDATE order_status SET status = 'paid' WHERE id = 12345;

-- Events by ten minutes: a number of ten minutes, in four parts, so that readers take whole buckets.
CREATE TABLE status_event (
    bucket bigint GENERATED ALWAYS AS (extract(epoch FROM at)::bigint / 600) STORED, part int GENERATED ALWAYS AS ((id % 4)::int) STORED,
    at timestamp, id bigint, status text NOT NULL, PRIMARY KEY (part, bucket, at, id)
);
INSERT INTO status_event (at, id, status) SELECT at + interval '1 hour', id, 'paid' FROM sample;
EXPLAIN (COSTS OFF) SELECT count(*) FROM status_event WHERE at >= '2026-03-01 12:00' AND at < '2026-03-01 12:10';
SELECT part, count(*) FROM status_event WHERE at >= '2026-03-01 12:00' AND at < '2026-03-01 12:10' GROUP BY part ORDER BY part;

DROP VIEW sample;
DROP TABLE order_1, order_2, order_3, entity, customer_5, customer, order_status, status_event;
