//! Tests of LISTEN and NOTIFY between sessions.

use std::thread;
use std::time::Duration;

use crate::harness::TestServer;
use crate::raw::{Message, Raw};

/// Returns the channel and the payload of a notification.
fn text(message: &Message) -> String {
    let mut parts = message.body[4..].split(|byte| *byte == 0);
    let mut part = || String::from_utf8_lossy(parts.next().unwrap_or_default()).into_owned();
    format!("{} {}", part(), part())
}

fn notifications(messages: &[Message]) -> Vec<String> {
    messages.iter().filter(|message| message.kind == b'A').map(text).collect()
}

/// Runs statements of which none may fail, and returns the notifications that came with them.
fn run(session: &mut Raw, sql: &str) -> Vec<String> {
    let messages = session.query(sql);
    assert!(messages.iter().all(|message| message.kind != b'E'), "{sql}: {messages:?}");
    notifications(&messages)
}

/// Waits for the next message of an idle session, which must be a notification.
fn next(session: &mut Raw) -> String {
    let message = session.read().expect("the session is open");
    assert_eq!(message.kind, b'A', "{message:?}");
    text(&message)
}

/// Checks that nothing has arrived: notifications come before the answer to a statement.
fn none(session: &mut Raw) {
    assert!(run(session, "SELECT 1").is_empty());
}

#[test]
fn idle_listeners_get_committed_notifications_in_order() {
    let server = TestServer::start();
    let [mut a, mut b, mut sender] = [(); 3].map(|()| Raw::login(server.address()));
    run(&mut a, "LISTEN x");
    run(&mut b, "LISTEN y; LISTEN x");
    run(&mut sender, "NOTIFY x, '1'");
    assert_eq!(next(&mut a), "x 1");
    assert_eq!(next(&mut b), "x 1");
    run(&mut sender, "BEGIN; NOTIFY x, '2'; NOTIFY y, '3'; NOTIFY x, '2'; NOTIFY x, '4'");
    none(&mut a);
    run(&mut sender, "COMMIT");
    assert_eq!([next(&mut a), next(&mut a)], ["x 2", "x 4"]);
    assert_eq!([next(&mut b), next(&mut b), next(&mut b)], ["x 2", "y 3", "x 4"]);
    // An own notification comes before the session is ready again.
    assert_eq!(run(&mut b, "NOTIFY y, 'own'"), ["y own"]);
    run(&mut a, "UNLISTEN x");
    run(&mut sender, "NOTIFY x, '5'");
    assert_eq!(next(&mut b), "x 5");
    none(&mut a);
}

#[test]
fn notifications_wait_for_the_end_of_the_listeners_transaction() {
    let server = TestServer::start();
    let [mut listener, mut sender] = [(); 2].map(|()| Raw::login(server.address()));
    run(&mut listener, "LISTEN x");
    run(&mut listener, "BEGIN");
    run(&mut sender, "NOTIFY x, '1'");
    none(&mut listener);
    assert_eq!(run(&mut listener, "COMMIT"), ["x 1"]);
    // LISTEN takes effect at the commit: what is committed before is not seen.
    run(&mut listener, "BEGIN; LISTEN y");
    run(&mut sender, "NOTIFY y, 'before'");
    assert!(run(&mut listener, "COMMIT").is_empty());
    run(&mut sender, "NOTIFY y, 'after'");
    assert_eq!(next(&mut listener), "y after");
}

#[test]
fn rolled_back_notifications_are_not_sent() {
    let server = TestServer::start();
    let [mut listener, mut sender] = [(); 2].map(|()| Raw::login(server.address()));
    run(&mut listener, "LISTEN x");
    run(&mut sender, "BEGIN; NOTIFY x, '1'; ROLLBACK");
    run(
        &mut sender,
        "BEGIN; NOTIFY x, '2'; SAVEPOINT s; NOTIFY x, '3'; ROLLBACK TO s; NOTIFY x, '4'; COMMIT",
    );
    assert_eq!([next(&mut listener), next(&mut listener)], ["x 2", "x 4"]);
    run(
        &mut sender,
        "DO $$ BEGIN
             NOTIFY x, '5';
             BEGIN PERFORM pg_notify('x', '6'); PERFORM 1 / 0;
             EXCEPTION WHEN division_by_zero THEN NOTIFY x, '7'; END;
         END $$",
    );
    assert_eq!([next(&mut listener), next(&mut listener)], ["x 5", "x 7"]);
    sender.query("NOTIFY x, '8'; SELECT 1 / 0");
    run(&mut sender, "CREATE TABLE t (a int PRIMARY KEY); NOTIFY x, '9'");
    assert_eq!(next(&mut listener), "x 9");
}

#[test]
fn databases_do_not_see_notifications_of_others() {
    let server = TestServer::start();
    let mut sender = Raw::login(server.address());
    let mut other =
        Raw::login_with(server.address(), &[("user", "bennu"), ("database", "postgres")]);
    run(&mut other, "LISTEN x");
    run(&mut sender, "LISTEN x");
    assert_eq!(run(&mut sender, "NOTIFY x, 'here'"), ["x here"]);
    none(&mut other);
    drop(sender);
    assert_eq!(run(&mut other, "NOTIFY x, 'there'"), ["x there"]);
}

#[test]
fn senders_and_listeners_run_concurrently() {
    const EACH: usize = 200;
    let server = TestServer::start();
    let mut listener = Raw::login(server.address());
    listener.set_patience(Duration::from_secs(60));
    run(&mut listener, "CREATE TABLE n (sender int, number int, PRIMARY KEY (sender, number))");
    run(&mut listener, "LISTEN x");
    thread::scope(|scope| {
        for sender in 0..4 {
            let address = server.address();
            scope.spawn(move || {
                let mut session = Raw::login(address);
                for number in 0..EACH {
                    run(
                        &mut session,
                        &format!(
                            "BEGIN; INSERT INTO n VALUES ({sender}, {number});
                             NOTIFY x, '{sender} {number}'; COMMIT"
                        ),
                    );
                }
            });
        }
        let mut next_of = [0; 4];
        for _ in 0..4 * EACH {
            let text = next(&mut listener);
            let numbers: Vec<usize> =
                text.split(' ').skip(1).map(|word| word.parse().unwrap()).collect();
            assert_eq!(next_of[numbers[0]], numbers[1], "a notification was lost or moved");
            next_of[numbers[0]] += 1;
        }
    });
    none(&mut listener);
}

#[test]
fn statements_are_answered_shortly_before_the_idle_timeout() {
    let server = TestServer::start();
    let mut session = Raw::login(server.address());
    run(&mut session, "SET idle_session_timeout = '190ms'");
    for _ in 0..5 {
        run(&mut session, "SELECT 1");
    }
}
