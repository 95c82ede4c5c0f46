//! Merge joins return the same rows as hash joins, over many batches with duplicate keys.

use crate::queries::database::Database;

const SCRIPT: &str = "
    create table a (k int, n int, v int, primary key (k, n));
    create table b (k int, m int, w int, primary key (k, m));
    create table c (k int primary key, x int);
    insert into a select i / 3 * 2, i, i % 7 from generate_series(0, 8999) as s (i);
    insert into a select 1000, i + 10000, i % 5 from generate_series(1, 1500) as s (i);
    insert into b select i / 2 * 3, i, i % 11 from generate_series(0, 5999) as s (i);
    insert into b select 1002, i + 10000, i % 3 from generate_series(1, 2600) as s (i);
    insert into c select i * 4, i from generate_series(0, 2500) as s (i)";

fn sorted(database: &mut Database, sql: &str) -> Vec<String> {
    let mut rows = database.query(sql).unwrap();
    rows.sort();
    rows
}

#[test]
fn merge_join_matches_hash_join() {
    let mut database = Database::default();
    let answer = database.script(SCRIPT);
    assert!(!answer.contains("error"), "{answer}");
    let queries = [
        "select a.k, a.n, b.m from a join b on a.k = b.k",
        "select a.k, a.n, b.m from a join b on a.k = b.k and a.v < b.w",
        "select a.k, a.n, c.x from a join c on a.k = c.k where c.x % 3 = 1",
        "select a.k, a.n, b.m from a left join b on a.k = b.k and b.w > 4",
        "select a.n, b.m from a join b on a.n = b.m and a.k = b.k",
        "select a.k, a.n from a where exists (select 1 from b where b.k = a.k and b.w <> a.v)",
        "select a.k, a.n from a where not exists (select 1 from b where b.k = a.k)",
        "select a.k, b.m from a join b on a.k = b.k where a.k > 900 and b.k < 1100",
        "select count(*) from a join (select * from b where k < 0) e on a.k = e.k",
        "select count(*) from (select * from a where k < 0) e join b on e.k = b.k",
    ];
    for sql in queries {
        for table in ["a", "b", "c"] {
            database.note_rows(&format!("# rows: {table} 10000"));
        }
        let plan = database.explain(sql).join("\n");
        assert!(!plan.contains("Merge join"), "{sql}\n{plan}");
        let hashed = sorted(&mut database, sql);
        for table in ["a", "b", "c"] {
            database.note_rows(&format!("# rows: {table} 1000000000"));
        }
        let plan = database.explain(sql).join("\n");
        assert!(plan.contains("Merge join"), "{sql}\n{plan}");
        assert_eq!(sorted(&mut database, sql), hashed, "{sql}\n{plan}");
    }
}
