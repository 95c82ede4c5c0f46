//! Tests of startup packet parameters: settings that are the RESET values of the session.

use crate::harness::TestServer;
use crate::raw::{Raw, kinds, rows, startup};

fn shown(raw: &mut Raw, name: &str) -> String {
    rows(&raw.query(&format!("SHOW {name}")))[0][0].clone().unwrap()
}

#[test]
fn reset_restores_startup_values() {
    let server = TestServer::start();
    let mut raw = Raw::connect(server.address());
    raw.send(&startup(&[
        ("user", "bennu"),
        ("TimeZone", "America/Chicago"),
        ("application_name", "pool"),
        ("options", "-c statement_timeout=5min -csearch_path=a,b -c my.own=first"),
    ]));
    assert!(kinds(&raw.until_ready()).ends_with('Z'));
    let expected = [
        ("timezone", "America/Chicago"),
        ("application_name", "pool"),
        ("statement_timeout", "5min"),
        ("search_path", "a,b"),
        ("my.own", "first"),
        ("lock_timeout", "0"),
    ];
    let each: Vec<String> = expected.iter().map(|(name, _)| format!("RESET {name}")).collect();
    let default: Vec<String> =
        expected.iter().map(|(name, _)| format!("SET {name} TO DEFAULT")).collect();
    for reset in ["RESET ALL", "DISCARD ALL", &each.join(";"), &default.join(";")] {
        let changes = "SET timezone = 'Asia/Tokyo'; SET application_name = 'x'; \
                       SET statement_timeout = 0; SET search_path = c; SET my.own = 'second'; \
                       SET lock_timeout = 7";
        raw.query(changes);
        assert_eq!(shown(&mut raw, "timezone"), "Asia/Tokyo");
        let answer = raw.query(reset);
        assert!(answer.iter().all(|message| message.kind != b'E'), "{reset}: {answer:?}");
        // Drivers rely on ParameterStatus.
        let told = answer.iter().filter(|message| message.kind == b'S');
        let told: Vec<Vec<u8>> = told.map(|message| message.body.clone()).collect();
        assert!(told.contains(&b"TimeZone\0America/Chicago\0".to_vec()), "{reset}: {told:?}");
        for (name, value) in expected {
            assert_eq!(shown(&mut raw, name), value, "{reset}: {name}");
        }
    }
    // The entry in pg_settings.
    let query = "SELECT setting, reset_val, boot_val, source FROM pg_settings WHERE name = ";
    raw.query("SET TimeZone = 'Asia/Tokyo'");
    let row = rows(&raw.query(&format!("{query} 'TimeZone'"))).remove(0);
    let row: Vec<String> = row.into_iter().flatten().collect();
    assert_eq!(row, ["Asia/Tokyo", "America/Chicago", "UTC", "session"]);
    raw.query("RESET TimeZone");
    let row = rows(&raw.query(&format!("{query} 'TimeZone'"))).remove(0);
    assert_eq!(row[3].as_deref(), Some("client"));
}

#[test]
fn long_application_name_is_truncated_with_notice() {
    let server = TestServer::start();
    let mut raw = Raw::connect(server.address());
    let long = "x".repeat(65);
    raw.send(&startup(&[("user", "bennu"), ("application_name", &long)]));
    let greeting = raw.until_ready();
    let cut = "x".repeat(63);
    let notice = greeting.iter().find(|message| message.kind == b'N').expect("a notice");
    let message = format!("identifier \"{long}\" will be truncated to \"{cut}\"");
    assert_eq!(notice.field(b'M'), Some(message));
    assert_eq!(shown(&mut raw, "application_name"), cut);
    assert_eq!(kinds(&raw.query(&format!("SET application_name = '{long}'"))), "NCZ");
    // A setting of a finished transaction is reset and not reported.
    let local = "SELECT set_config('application_name', 'y', true)";
    assert_eq!(kinds(&raw.query(local)), "TDCZ");
    assert_eq!(shown(&mut raw, "application_name"), cut);
}

#[test]
fn invalid_startup_packet_gets_no_response() {
    let server = TestServer::start();
    let mut raw = Raw::connect(server.address());
    // Terminate: its type is read as the first byte of a length.
    raw.send(b"X\0\0\0\x04");
    assert!(raw.read().is_none());
    for database in ["postgres", "template1"] {
        let mut raw = Raw::connect(server.address());
        raw.send(&startup(&[("user", "ann"), ("database", database)]));
        assert!(kinds(&raw.until_ready()).ends_with('Z'), "{database}");
    }
}
