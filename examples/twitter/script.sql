-- A small Twitter in five tables: users, both directions of follows, posts, and the feed of each user.
-- psql -h 127.0.0.1 -p 5433 -U bennu -X -a -f script.sql
\pset footer off

-- Counters are columns of the user: an increment locks the row for microseconds.
CREATE TABLE person (id int PRIMARY KEY, name text NOT NULL UNIQUE, followers int NOT NULL DEFAULT 0, posts int NOT NULL DEFAULT 0);
-- Each direction of "who follows whom" is a table, so each is one range of keys.
CREATE TABLE follows (follower int, followed int, since timestamp NOT NULL, PRIMARY KEY (follower, followed));
CREATE TABLE followed_by (followed int, follower int, PRIMARY KEY (followed, follower));
-- Posts of a person, the newest first.
CREATE TABLE post (author int, at timestamp, id bigint, text text NOT NULL, PRIMARY KEY (author, at DESC, id));
-- The feed: a row for each follower of a post, written with the post. It is read as one short range; old rows expire.
CREATE TABLE feed (reader int, at timestamp, id bigint, author int NOT NULL, PRIMARY KEY (reader, at DESC, id))
WITH (ttl = '30 days');

-- 20,000 people; the popular ones are followed by thousands.
INSERT INTO person SELECT n, 'person ' || n FROM generate_series(0, 19999) AS n;
INSERT INTO follows
SELECT n % 20000, floor(20000 * power(n::bigint * 2654435761 % 4294967296 / 4294967296.0, 4)), '2026-01-01'
FROM generate_series(1, 200000) AS n ON CONFLICT DO NOTHING;
DELETE FROM follows WHERE follower = followed;
INSERT INTO followed_by SELECT followed, follower FROM follows;
UPDATE person SET followers = n FROM (SELECT followed, count(*) AS n FROM followed_by GROUP BY followed) AS f WHERE id = followed;
SELECT max(followers) AS most, percentile_disc(0.5) WITHIN GROUP (ORDER BY followers) AS median FROM person;

-- A post and its copies in the feeds of the followers, in one transaction.
CREATE PROCEDURE write_post(author_id int, post_id bigint, moment timestamp, words text) LANGUAGE sql BEGIN ATOMIC
    INSERT INTO post VALUES (author_id, moment, post_id, words);
    INSERT INTO feed SELECT follower, moment, post_id, author_id FROM followed_by WHERE followed = author_id;
    UPDATE person SET posts = posts + 1 WHERE id = author_id;
END;
CALL write_post(3, 1, '2026-02-01 10:00', 'the first post');
CALL write_post(7, 2, '2026-02-01 10:01', 'another one');
SELECT name, followers, posts FROM person WHERE id IN (3, 7) ORDER BY id;
SELECT author, count(*) AS copies FROM feed GROUP BY author ORDER BY author;

-- More posts, written in bulk: a million rows of feeds.
INSERT INTO post
SELECT n % 2000 * 10, '2026-02-02'::timestamp + n * interval '1 second', n + 10, 'post ' || n FROM generate_series(1, 80000) AS n;
INSERT INTO feed SELECT follower, at, id, author FROM post JOIN followed_by ON followed = author WHERE id > 10;
SELECT count(*) > 1000000 AS is_large FROM feed;
ANALYZE;

-- The feed of a reader: rows from the start of a range, and the posts by their keys.
EXPLAIN (COSTS OFF) SELECT at, author, id FROM feed WHERE reader = 4711 ORDER BY at DESC, id LIMIT 3;
EXPLAIN (COSTS OFF)
SELECT p.name, t.text FROM feed f JOIN post t USING (author, at, id) JOIN person p ON p.id = f.author
WHERE f.reader = 4711 ORDER BY f.at DESC, f.id LIMIT 3;
SELECT p.name, t.text FROM feed f JOIN post t USING (author, at, id) JOIN person p ON p.id = f.author
WHERE f.reader = 4711 ORDER BY f.at DESC, f.id LIMIT 3;

-- Who follows whom, in both directions: a point get and a range.
EXPLAIN (COSTS OFF) SELECT FROM follows WHERE follower = 4711 AND followed = 3;
EXPLAIN (COSTS OFF) SELECT count(*) FROM followed_by WHERE followed = 3;

-- Follow and unfollow keep both directions and the counter in one transaction.
BEGIN;
INSERT INTO follows VALUES (4711, 19999, '2026-03-01') ON CONFLICT DO NOTHING;
INSERT INTO followed_by VALUES (19999, 4711) ON CONFLICT DO NOTHING;
UPDATE person SET followers = followers + 1 WHERE id = 19999;
COMMIT;
SELECT followers = (SELECT count(*) FROM followed_by WHERE followed = 19999) AS agrees FROM person WHERE id = 19999;

DROP PROCEDURE write_post;
DROP TABLE person, follows, followed_by, post, feed;
