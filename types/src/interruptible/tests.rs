//! Tests of long values: chunked results are equal to others, and the flag ends the work.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::*;
use crate::cast::cast;
use crate::context::EvalContext;
use crate::datatype::DataType;
use crate::datum::Datum;
use crate::function;
use crate::numeric::Numeric;
use crate::vector::Vector;

fn context(is_set: bool) -> EvalContext {
    let interrupt = Interrupt::new(Arc::new(AtomicBool::new(is_set)));
    EvalContext::with_interrupt(interrupt)
}

/// Returns a text with characters of one to four bytes, somewhat longer than three chunks.
fn long_text() -> String {
    "aä€😀 ".repeat(3 * CHUNK_BYTES / 11 + 7)
}

#[test]
fn text_chunks_are_complete_and_split_no_character() {
    let text = long_text();
    let forward: Vec<&str> = chunks(text.as_str()).collect();
    assert!(forward.len() > 3 && forward.iter().all(|piece| piece.len() <= CHUNK_BYTES));
    assert_eq!(forward.concat(), text);
    let mut backward: Vec<&str> = chunks_from_end(text.as_str()).collect();
    backward.reverse();
    assert_eq!(backward.concat(), text);
}

#[test]
fn chunked_operations_match_whole_value_operations() {
    let text = long_text();
    let pace = &mut InterruptPacer::without_interrupt();
    assert_eq!(pace.count(&text).unwrap(), text.chars().count());
    for index in [0, 1, CHUNK_BYTES / 3, CHUNK_BYTES, usize::MAX] {
        let at_once = text.char_indices().nth(index).map_or(text.len(), |(at, _)| at);
        assert_eq!(pace.byte_position(&text, index).unwrap(), at_once, "{index}");
    }
    assert_eq!(pace.decode(text.as_bytes()).unwrap(), text);
    let broken = [text.as_bytes(), b"\xf0\x9f", text.as_bytes()].concat();
    assert_eq!(pace.decode(&broken).unwrap(), text);
    for needle in ["b", "😀 aä", &text[CHUNK_BYTES - 1..2 * CHUNK_BYTES + 4], ""] {
        let found = pace.find(&Finder::new(needle), text.as_bytes()).unwrap();
        assert_eq!(found, text.find(needle), "{} bytes", needle.len());
    }
    let mut grown = String::new();
    text.split_inclusive(' ').for_each(|part| pace.append(&mut grown, part).unwrap());
    assert!(grown == text);
    let mut items = Vec::new();
    (0..CHUNK_BYTES).for_each(|item| pace.push(&mut items, item).unwrap());
    assert!(items.iter().copied().eq(0..CHUNK_BYTES));
    let shouted = pace.map_chars(&text, |c| Some(c.to_ascii_uppercase())).unwrap();
    assert!(shouted == text.to_ascii_uppercase());
}

/// Returns calls of functions with a long value made by `long`, `(name, types, arguments)`; each
/// must exceed a chunk.
fn long_calls() -> Vec<(&'static str, Vec<Datum>, DataType)> {
    let long = || Datum::text("a b'".repeat(CHUNK_BYTES));
    let bytes = || Datum::bytea(vec![200_u8; 4 * CHUNK_BYTES]);
    let (text, int) = (|text: &str| Datum::text(text), Datum::Int4);
    let t = DataType::Text;
    let b = DataType::Bytea;
    vec![
        ("repeat", vec![text("abc"), int(CHUNK_BYTES as i32)], t.clone()),
        ("lpad", vec![text("x"), int(4 * CHUNK_BYTES as i32), text("ab")], t.clone()),
        ("rpad", vec![text("x"), int(4 * CHUNK_BYTES as i32), text("ab")], t.clone()),
        ("translate", vec![long(), text("ab"), text("x")], t.clone()),
        ("replace", vec![long(), text("b"), text("xx")], t.clone()),
        ("upper", vec![long()], t.clone()),
        ("lower", vec![long()], t.clone()),
        ("initcap", vec![long()], t.clone()),
        ("reverse", vec![long()], t.clone()),
        ("md5", vec![long()], t.clone()),
        ("length", vec![long()], t.clone()),
        ("||", vec![long(), long()], t.clone()),
        ("concat", vec![long(), long()], t.clone()),
        ("concat_ws", vec![text(","), long(), long()], t.clone()),
        ("overlay", vec![long(), text("x"), int(2_000_000)], t.clone()),
        ("substr", vec![long(), int(100), int(3_000_000)], t.clone()),
        ("left", vec![long(), int(-5)], t.clone()),
        ("right", vec![long(), int(-5)], t.clone()),
        ("split_part", vec![long(), text("z"), int(1)], t.clone()),
        ("position", vec![long(), text("z")], t.clone()),
        ("btrim", vec![Datum::text(" ".repeat(4 * CHUNK_BYTES))], t.clone()),
        ("quote_literal", vec![long()], t.clone()),
        ("quote_ident", vec![long()], t.clone()),
        ("format", vec![text("%s"), long()], t.clone()),
        ("normalize", vec![long()], t.clone()),
        ("string_to_array", vec![long(), text(" ")], t.clone()),
        ("sha256", vec![bytes()], b.clone()),
        ("encode", vec![bytes(), text("hex")], b.clone()),
        ("encode", vec![bytes(), text("base64")], b.clone()),
        ("encode", vec![bytes(), text("escape")], b.clone()),
        ("decode", vec![Datum::text("ab".repeat(2 * CHUNK_BYTES)), text("hex")], t.clone()),
        ("decode", vec![Datum::text("abcd".repeat(CHUNK_BYTES)), text("base64")], t.clone()),
        ("decode", vec![Datum::text("abcd".repeat(CHUNK_BYTES)), text("escape")], t),
        ("set_byte", vec![bytes(), int(1), int(1)], b.clone()),
        ("bit_count", vec![bytes()], b.clone()),
        ("convert_from", vec![bytes(), text("LATIN1")], b),
        ("factorial", vec![Datum::Int8(20_000)], DataType::Int8),
        ("sqrt", vec![number(60_000)], DataType::Numeric),
        ("*", vec![number(60_000), number(60_000)], DataType::Numeric),
        ("/", vec![number(100_000), number(50_000)], DataType::Numeric),
        ("%", vec![number(100_000), number(50_000)], DataType::Numeric),
    ]
}

fn number(digits: usize) -> Datum {
    Datum::Numeric(Numeric::parse(&"7".repeat(digits)).unwrap())
}

/// Returns the overload with this first argument type and number of arguments.
fn overload(name: &str, first: &DataType, count: usize) -> function::FunctionId {
    let fits = |signature: &&function::Signature| {
        let arguments = signature.arguments;
        arguments.first() == Some(first)
            && (arguments.len() == count || signature.variadic && arguments.len() <= count + 1)
    };
    function::overloads(name).iter().find(fits).map(|s| s.id).expect(name)
}

#[test]
fn calls_on_long_values_are_interruptible() {
    for (name, arguments, first) in long_calls() {
        let id = overload(name, &first, arguments.len());
        let called = function::call(id, &arguments, &first, &context(true));
        assert_eq!(called.err().map(|error| error.sqlstate), Some("57014"), "{name}");
    }
}

#[test]
fn casts_of_long_values_are_interruptible() {
    let json = Datum::text(format!("[{}1]", "1,".repeat(CHUNK_BYTES)));
    let array = Datum::text(format!("{{{}1}}", "1,".repeat(CHUNK_BYTES)));
    let ints = DataType::array_of(&DataType::Int4);
    let bits = Datum::text("01".repeat(CHUNK_BYTES));
    let cases = [
        (json.clone(), DataType::Text, DataType::Jsonb),
        (json, DataType::Text, DataType::Json),
        (array, DataType::Text, ints),
        (bits, DataType::Text, DataType::Varbit),
        (
            Datum::text("\\x".to_owned() + &"ab".repeat(2 * CHUNK_BYTES)),
            DataType::Text,
            DataType::Bytea,
        ),
        (Datum::bytea(vec![7_u8; 4 * CHUNK_BYTES]), DataType::Bytea, DataType::Text),
    ];
    for (value, from, to) in cases {
        let cast_to = |set| cast(&value, &from, &(&to).into(), true, &context(set));
        let code = |cast: Result<Datum>| cast.err().map(|error| error.sqlstate);
        assert_eq!(code(cast_to(true)), Some("57014"), "{to:?}");
        let there = cast_to(false).unwrap();
        if to.is_text() {
            continue;
        }
        let back = cast(&there, &to, &DataType::Text.into(), true, &context(true));
        assert_eq!(code(back), Some("57014"), "from {to:?}");
    }
}

#[test]
fn short_values_skip_interrupt_checks() {
    let text = Datum::text("a b ".repeat(1000));
    for name in ["upper", "reverse", "length", "md5", "quote_literal"] {
        let id = overload(name, &DataType::Text, 1);
        assert!(
            function::call(id, std::slice::from_ref(&text), &DataType::Text, &context(true))
                .is_ok()
        );
    }
}

#[test]
fn late_interrupt_stops_work_at_next_check() {
    let flag = Arc::new(AtomicBool::new(false));
    let interrupt = Interrupt::new(Arc::clone(&flag));
    let mut pace = InterruptPacer::new(&interrupt);
    let mut steps = 0;
    let ended = loop {
        steps += 1;
        flag.store(steps == 5 * CHUNK_BYTES / 4, Ordering::Relaxed);
        if steps > 5 * CHUNK_BYTES / 4 {
            flag.store(true, Ordering::Relaxed);
        }
        if pace.count_steps(1).is_err() {
            break steps;
        }
    };
    assert!(ended <= 9 * CHUNK_BYTES / 4 + 2, "{ended}");
}

#[test]
fn oversized_buffers_are_out_of_memory_errors() {
    let refused = |result: Result<()>| {
        let error = result.unwrap_err();
        assert_eq!(error.sqlstate, "53200");
        assert!(error.detail.unwrap().contains("request of size"));
    };
    let pace = InterruptPacer::without_interrupt();
    refused(pace.buffer::<String>(isize::MAX as usize).map(drop));
    refused(pace.list::<u64>(usize::MAX / 4).map(drop));
    let interrupt = Interrupt::NEVER.with_allocation_hook(|bytes| bytes < 3 * CHUNK_BYTES);
    let mut pace = InterruptPacer::new(&interrupt);
    let mut text: String = pace.buffer(2 * CHUNK_BYTES).unwrap();
    pace.append(&mut text, &"x".repeat(2 * CHUNK_BYTES)).unwrap();
    refused(pace.append(&mut text, &"x".repeat(2 * CHUNK_BYTES)));
    assert_eq!(text.len(), 2 * CHUNK_BYTES);
    let mut column = Vector::new(&DataType::Text, 0);
    let value = Datum::text("x".repeat(CHUNK_BYTES - 1));
    (0..3).for_each(|_| column.push_at(&value, &mut pace).unwrap());
    refused(column.push_at(&value, &mut pace));
}
