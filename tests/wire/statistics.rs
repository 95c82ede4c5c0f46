//! Tests of automatically maintained statistics.

use std::time::Duration;

use crate::harness::{Setup, TestServer, connect};

#[tokio::test]
async fn growing_table_is_auto_analyzed() {
    let analyze_period = Some(Duration::from_millis(5));
    let server = TestServer::start_with(Setup { analyze_period, ..Setup::default() });
    let client = connect(server.address()).await;
    client.batch_execute("CREATE TABLE t (a int PRIMARY KEY)").await.unwrap();
    for rows in [100_i64, 10_000] {
        let insert =
            "INSERT INTO t SELECT * FROM generate_series(1, $1::int) ON CONFLICT DO NOTHING";
        client.execute(insert, &[&i32::try_from(rows).unwrap()]).await.unwrap();
        let known = "SELECT rows FROM bennu.statistics WHERE table_name = 't'";
        while client.query(known, &[]).await.unwrap().first().map(|row| row.get(0)) != Some(rows) {
            tokio::task::yield_now().await;
        }
    }
}
