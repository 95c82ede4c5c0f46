//! Binary format of the values of every type, as results and as parameters.

use crate::raw::{Frames, Message, Raw};
use crate::signatures::Pair;
use crate::signatures::samples::{CASTABLE, literals};

/// Types whose binary format contains OIDs that differ between servers.
const NUMBERED: &[&str] = &[
    "mood[]",
    "pair",
    "pair[]",
    "regproc",
    "regproc[]",
    "regprocedure",
    "regprocedure[]",
    "regoper",
    "regoper[]",
    "regoperator",
    "regoperator[]",
];

/// The first value of a statement, or its SQLSTATE and message.
type Value = Result<Option<Vec<u8>>, String>;

fn ask(raw: &mut Raw, sql: &str, parameters: &[Option<Vec<u8>>], binary: bool) -> Value {
    let frames = Frames::new().parse("", sql).bind_binary(parameters, binary);
    raw.send(&frames.execute("", 0).sync().0);
    let messages = raw.until_ready();
    if let Some(error) = messages.iter().find(|message| message.kind == b'E') {
        let field = |code| error.field(code).unwrap_or_default();
        return Err(format!("{}: {}", field(b'C'), field(b'M')));
    }
    let row = messages.iter().find(|message| message.kind == b'D').map(Message::bytes);
    Ok(row.and_then(|row| row.into_iter().next()).flatten())
}

fn shown(value: &Value) -> String {
    match value {
        Ok(Some(bytes)) => format!("{bytes:02x?} {}", String::from_utf8_lossy(bytes)),
        other => format!("{other:?}"),
    }
}

/// Returns the differences, and the number of compared values.
pub(super) fn differences(pair: &mut Pair) -> (Vec<String>, usize) {
    let arrays = CASTABLE.iter().map(|of| format!("{of}[]"));
    let types = CASTABLE.iter().map(|of| (*of).to_owned()).chain(arrays);
    // An array of a domain contains the domain's OID, which differs between servers; PostgreSQL
    // has no binary form of aclitem.
    let types = types.filter(|of| !["positive[]", "aclitem", "aclitem[]"].contains(&of.as_str()));
    let types: Vec<String> = types.filter(|of| !of.contains('(') && !of.contains("[][]")).collect();
    let (mut found, mut count) = (Vec::new(), 0);
    for of in &types {
        for literal in literals(of) {
            count += 1;
            let sql = format!("SELECT {literal}");
            let [ours, theirs] =
                [&mut pair.ours, &mut pair.theirs].map(|raw| ask(raw, &sql, &[], true));
            let numbered = NUMBERED.contains(&of.as_str());
            if ours != theirs && !numbered {
                found.push(format!(
                    "{sql}\n  ours   {}\n  theirs {}",
                    shown(&ours),
                    shown(&theirs)
                ));
            }
            // A server must accept its own binary output.
            let sql = format!("SELECT $1::{of}");
            let back = |raw: &mut Raw, sent: &Value| match sent {
                Ok(value) => ask(raw, &sql, std::slice::from_ref(value), false),
                Err(error) => Err(error.clone()),
            };
            let sent = if numbered { &ours } else { &theirs };
            let (again, theirs) = (back(&mut pair.ours, sent), back(&mut pair.theirs, &theirs));
            if again != theirs {
                let text = format!(
                    "{sql}: {literal}\n  ours   {}\n  theirs {}",
                    shown(&again),
                    shown(&theirs)
                );
                found.push(text);
            }
        }
    }
    (found, count)
}
