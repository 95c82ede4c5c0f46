//! Optimizer hints without effect: a notice of each execution.

use crate::harness::TestServer;
use crate::raw::{Message, Raw};

fn notices(messages: &[Message]) -> Vec<String> {
    let notices = messages.iter().filter(|message| message.kind == b'N');
    notices.filter_map(|notice| notice.field(b'M')).collect()
}

#[test]
fn unknown_hint_sends_notice() {
    let server = TestServer::start();
    let mut client = Raw::login(server.address());
    client.query("CREATE TABLE t (a int PRIMARY KEY, b int); CREATE INDEX t_b ON t (b)");
    let no_effect = "hint SKIP_SCAN has no effect";
    let unknown = "hint NO_SUCH is unknown and has no effect";
    let both = "SELECT /*+ SKIP_SCAN, NO_SUCH(x) */ a FROM t";
    assert_eq!(notices(&client.query(both)), [no_effect, unknown]);
    assert_eq!(notices(&client.query(both)), [no_effect, unknown], "of a plan of the cache");
    for change in [
        "UPSERT /*+ SKIP_SCAN */ INTO t VALUES (1, 1)",
        "UPDATE /*+ SKIP_SCAN */ t SET b = 2",
        "DELETE /*+ SKIP_SCAN */ FROM t",
        "SELECT a FROM (SELECT /*+ SKIP_SCAN */ a FROM t) AS q",
    ] {
        assert_eq!(notices(&client.query(change)), [no_effect], "{change}");
    }
    let missing = client.query("SELECT /*+ INDEX(t nosuch t_b) INDEX(u i) */ a FROM t WHERE b = 1");
    let wanted = [
        "index \"nosuch\" in hint does not exist",
        "relation \"u\" in hint not found in FROM clause",
    ];
    assert_eq!(notices(&missing), wanted);
    let known = "SELECT /*+ INDEX(t t_b) NO_INDEX USE_DATA_OVER_INDEX_TABLE */ a FROM t";
    assert!(notices(&client.query(known)).is_empty());
    assert!(notices(&client.query("SELECT /* SKIP_SCAN */ a FROM t")).is_empty());
    client.query("SET client_min_messages = warning");
    assert!(notices(&client.query(both)).is_empty());
}
