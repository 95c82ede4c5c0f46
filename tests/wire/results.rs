//! Tests of large results: they are streamed, not buffered.

use crate::harness::{Process, connect};
use crate::raw::{Frames, Raw};

const ROWS: usize = 300_000;
/// Bytes of a row's text, so that the result far exceeds the allowed growth.
const PADDING: usize = 400;

/// Maximum growth of the server while it sends a result of 120 MB: buffers, decoded blocks, and
/// allocator caches of threads, up to 58 MB on a busy machine.
const GROWTH_BYTES_MAX: u64 = 80 << 20;

#[tokio::test]
async fn large_result_is_streamed() {
    let directory = tempfile::tempdir().unwrap();
    let server = Process::serve(directory.path());
    let client = connect(server.address()).await;
    client
        .batch_execute(
            "CREATE TABLE a (i int PRIMARY KEY); CREATE TABLE b (j int PRIMARY KEY, pad text)",
        )
        .await
        .unwrap();
    let values = |count: usize, pad: &str| {
        let rows = (0..count).map(|number| format!("({number}{pad})"));
        rows.collect::<Vec<_>>().join(",")
    };
    let pad = format!(",'{}'", "x".repeat(PADDING));
    client.batch_execute(&format!("INSERT INTO a VALUES {}", values(600, ""))).await.unwrap();
    client.batch_execute(&format!("INSERT INTO b VALUES {}", values(500, &pad))).await.unwrap();
    for extended in [false, true] {
        let mut raw = Raw::login(server.address());
        let before = server.resident_bytes();
        let sql = "SELECT a.i, b.j, b.pad FROM a, b";
        let batch = if extended {
            Frames::new().parse("", sql).bind("", "", &[]).execute("", 0).sync()
        } else {
            Frames::new().query(sql)
        };
        raw.send(&batch.0);
        let mut row_count = 0;
        let mut most = before;
        loop {
            let message = raw.read().unwrap();
            match message.kind {
                b'D' => row_count += 1,
                b'Z' => break,
                b'E' => panic!("{:?}", message.field(b'M')),
                _ => {}
            }
            // A slow reader: checks the server from time to time while the result waits.
            if row_count % 20_000 == 1 {
                most = most.max(server.resident_bytes());
            }
        }
        assert_eq!(row_count, ROWS);
        let growth = most - before;
        assert!(growth < GROWTH_BYTES_MAX, "grew by {growth} bytes; extended: {extended}");
    }
}
