//! Results of PostgreSQL 15 by type: texts that are parsed and written again.

use proptest::prelude::*;

use super::*;
use crate::datetime::TimeZone;

fn style() -> TextStyle {
    TextStyle {
        time_zone: TimeZone::parse_setting("Europe/Berlin").unwrap(),
        now: Some(0),
        ..TextStyle::default()
    }
}

/// Parses and writes a value; returns an error as its SQLSTATE and message.
fn again(text: &str, data_type: &DataType) -> String {
    let style = style();
    match parse(text, data_type, &style) {
        Ok(value) => {
            let mut out = Vec::new();
            write(&value, data_type, &style, &mut out).unwrap();
            let mut vector = Vector::new(data_type, 1);
            vector.push(&value);
            let mut row = Vec::new();
            write_row(&vector, 0, data_type, &style, &mut row).unwrap();
            assert_eq!(row, out, "write and write_row of {text:?}");
            String::from_utf8(out).unwrap()
        }
        Err(error) => format!("{} {}", error.sqlstate, error.message),
    }
}

#[test]
fn text_input_and_output_match_postgresql() {
    let golden = include_str!("golden.txt");
    let mut wrong = Vec::new();
    for line in golden.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let mut parts = line.splitn(3, '|');
        let (Some(name), Some(text), Some(answer)) = (parts.next(), parts.next(), parts.next())
        else {
            panic!("bad line {line:?}");
        };
        let data_type = DataType::from_name(name).expect("a type name");
        let got = again(text, &data_type);
        if got != answer {
            wrong.push(format!("{name} {text:?}\n  PostgreSQL {answer}\n  here       {got}"));
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn relative_dates_require_clock() {
    assert_eq!(again("now", &DataType::Timestamptz), "2000-01-01 01:00:00+01");
    assert_eq!(again("tomorrow", &DataType::Date), "2000-01-02");
    assert_eq!(again("yesterday 04:05", &DataType::Timestamp), "1999-12-31 04:05:00");
    let refused = parse("today", &DataType::Date, &TextStyle::default()).unwrap_err();
    assert_eq!(refused.sqlstate, crate::sqlstate::FEATURE_NOT_SUPPORTED);
}

#[test]
fn names_are_truncated_at_character_boundary() {
    let long = "é".repeat(40);
    assert_eq!(again(&long, &DataType::Name).len(), 62);
}

#[test]
fn escaped_bytea_round_trips() {
    let formats = Formats { escape_bytea: true, ..Formats::default() };
    let style = TextStyle { formats, ..TextStyle::default() };
    let value = Datum::bytea(vec![0, b'\\', b'a', 0xFF]);
    let mut out = Vec::new();
    write(&value, &DataType::Bytea, &style, &mut out).unwrap();
    assert_eq!(out, b"\\000\\\\a\\377");
    assert_eq!(parse("\\000\\\\a\\377", &DataType::Bytea, &style).unwrap(), value);
}

const KINDS: &[DataType] = &[
    DataType::Bool,
    DataType::Int2,
    DataType::Oid,
    DataType::Float4,
    DataType::Float8,
    DataType::Numeric,
    DataType::Bytea,
    DataType::Date,
    DataType::Time,
    DataType::Timestamp,
    DataType::Timestamptz,
    DataType::Interval,
    DataType::Uuid,
    DataType::InternalChar,
    DataType::Timetz,
    DataType::Varbit,
];

fn likely_text() -> impl Strategy<Value = String> {
    let piece = proptest::sample::select(vec![
        "1",
        "99",
        "2013",
        "-",
        ":",
        "+",
        ".",
        " ",
        "/",
        "T",
        "Z",
        "jan",
        "P",
        "Y",
        "M",
        "days",
        "BC",
        "e",
        "infinity",
        "EST",
        "J",
        "123456789012345678901",
        "04:05",
        "ago",
        "é",
        "\\x",
        "NaN",
        "epoch",
        "dst",
        "am",
        "1999-01-08",
        "year",
        "mons",
        "294276",
    ]);
    proptest::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn text_parser_does_not_panic(kind in proptest::sample::select(KINDS), text in prop_oneof![likely_text(), ".{0,20}"]) {
        let style = style();
        if let Ok(value) = parse(&text, &kind, &style) {
            let mut out = Vec::new();
            write(&value, &kind, &style, &mut out).unwrap();
            let shown = String::from_utf8(out).unwrap();
            let back = match parse(&shown, &kind, &style) {
                // A zone name may have an offset that numbers cannot have.
                Err(error) if error.sqlstate == "22009" => return Ok(()),
                back => back.unwrap(),
            };
            prop_assert!(back.compare(&value).is_eq(), "{text:?} is {value:?}, shown {shown:?}, read {back:?}");
        }
    }

    #[test]
    fn text_output_round_trips(
        (kind, value) in proptest::sample::select(KINDS)
            .prop_flat_map(|kind| (Just(kind.clone()), crate::keycode::any_value(&kind))),
    ) {
        let in_range = match &value {
            Datum::Date(date) => (-2_400_000..2_000_000_000).contains(date),
            Datum::Timestamp(at) | Datum::Timestamptz(at) => {
                (-200_000_000_000_000_000..9_200_000_000_000_000_000).contains(at)
            }
            _ => true,
        };
        if !in_range || value.is_null() {
            return Ok(());
        }
        let style = style();
        let mut out = Vec::new();
        write(&value, &kind, &style, &mut out).unwrap();
        let shown = String::from_utf8(out).unwrap();
        let back = parse(&shown, &kind, &style).unwrap();
        // An ambiguous hour is parsed as the later one.
        let folded = kind == DataType::Timestamptz;
        prop_assert!(folded || back.compare(&value).is_eq(), "{value:?} {shown:?} {back:?}");
    }
}

/// As shown by PostgreSQL 15.
#[test]
fn json_errors_report_position() {
    let cases = [
        ("{\"a\":1,\"b\":[1,2,}", "line 1: {\"a\":1,\"b\":[1,2,}"),
        ("{\"a\":1 \"b\":[1,2]}", "line 1: {\"a\":1 \"b\"..."),
        ("{\"a\":1,\n \"b\":[1,2,],\n \"c\": 1}", "line 2:  \"b\":[1,2,]..."),
        ("{\"a\":1,\n\n \"b\":\"a\tb\"}", "line 3:  \"b\":\"a..."),
        ("[\"\\ud800\\n\"]", "line 1: [\"\\ud800\\n..."),
        ("{\"b\":\"a\\u12qbc\"}", "line 1: {\"b\":\"a\\u12q..."),
        ("[1,2", "line 1: [1,2"),
        ("", "line 1: "),
    ];
    for (text, shown) in cases {
        let error = parse(text, &DataType::Jsonb, &TextStyle::default()).unwrap_err();
        let context = error.subject.and_then(|subject| subject.context);
        assert_eq!(context, Some(format!("JSON data, {shown}")), "{text}");
    }
    let long = format!("{{\"{}\":1,}}", "a".repeat(60));
    let error = parse(&long, &DataType::Json, &TextStyle::default()).unwrap_err();
    let context = error.subject.and_then(|subject| subject.context).unwrap_or_default();
    assert_eq!(context, format!("JSON data, line 1: ...{}\":1,}}", "a".repeat(44)));
}
