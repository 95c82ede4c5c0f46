//! Output of `jsonpath` in PostgreSQL's format.

use std::io::Write;

use crate::datum::JsonPath;
use crate::datum::json_path::{Arithmetic, Item, Kind};
use crate::interruptible::InterruptPacer;
use crate::text::json;

/// Appends a path in PostgreSQL's format.
pub(in crate::text) fn write(path: &JsonPath, out: &mut Vec<u8>) {
    if !path.lax {
        out.extend_from_slice(b"strict ");
    }
    put(&path.root, false, true, out);
}

/// Returns the precedence of an item.
fn priority(kind: &Kind) -> u8 {
    match kind {
        Kind::Or(..) => 0,
        Kind::And(..) => 1,
        Kind::Compare(..) | Kind::StartsWith(..) => 2,
        Kind::Arithmetic(Arithmetic::Add | Arithmetic::Subtract, ..) => 3,
        Kind::Arithmetic(..) => 4,
        Kind::Sign { .. } => 5,
        _ => 6,
    }
}

fn put_text(text: &str, out: &mut Vec<u8>) {
    json::write_string(text, &mut InterruptPacer::without_interrupt(), out)
        .expect("there is no flag to be set");
}

/// Appends the output of `within`, in parentheses if `bracketed`.
fn put_bracketed(bracketed: bool, out: &mut Vec<u8>, within: impl FnOnce(&mut Vec<u8>)) {
    if bracketed {
        out.push(b'(');
    }
    within(out);
    if bracketed {
        out.push(b')');
    }
}

#[expect(clippy::too_many_lines, reason = "one arm for each kind of item")]
fn put(item: &Item, in_key: bool, bracketed: bool, out: &mut Vec<u8>) {
    let operand = |operand: &Item, out: &mut Vec<u8>| {
        put(operand, false, priority(&operand.kind) <= priority(&item.kind), out);
    };
    let infix = |left: &Item, sign: &str, right: &Item, out: &mut Vec<u8>| {
        put_bracketed(bracketed, out, |out| {
            operand(left, out);
            let _ = write!(out, " {sign} ");
            operand(right, out);
        });
    };
    match &item.kind {
        Kind::Null => out.extend_from_slice(b"null"),
        Kind::Bool(value) => {
            let _ = write!(out, "{value}");
        }
        Kind::Number(number) => put_bracketed(item.next.is_some(), out, |out| number.write(out)),
        Kind::String(text) => put_text(text, out),
        Kind::Variable(name) => {
            out.push(b'$');
            put_text(name, out);
        }
        Kind::Root => out.push(b'$'),
        Kind::Current => out.push(b'@'),
        Kind::Last => out.extend_from_slice(b"last"),
        Kind::Key(_)
        | Kind::AnyKey
        | Kind::AnyLevel { .. }
        | Kind::Subscripts(_)
        | Kind::AnyArray => {
            put_accessor(&item.kind, in_key, out);
        }
        Kind::Method(method) => {
            let _ = write!(out, ".{}()", method.name());
        }
        Kind::Datetime(template) => {
            out.extend_from_slice(b".datetime(");
            template.iter().for_each(|template| put_text(template, out));
            out.push(b')');
        }
        Kind::Filter(within) => {
            out.extend_from_slice(b"?(");
            put(within, false, false, out);
            out.push(b')');
        }
        Kind::Sign { negative, operand: within } => put_bracketed(bracketed, out, |out| {
            out.push(if *negative { b'-' } else { b'+' });
            operand(within, out);
        }),
        Kind::Arithmetic(operator, left, right) => infix(left, operator.symbol(), right, out),
        Kind::Compare(operator, left, right) => infix(left, operator.symbol(), right, out),
        Kind::And(left, right) => infix(left, "&&", right, out),
        Kind::Or(left, right) => infix(left, "||", right, out),
        Kind::StartsWith(left, right) => infix(left, "starts with", right, out),
        Kind::Not(within) => {
            out.extend_from_slice(b"!(");
            put(within, false, false, out);
            out.push(b')');
        }
        Kind::IsUnknown(within) => {
            out.push(b'(');
            put(within, false, false, out);
            out.extend_from_slice(b") is unknown");
        }
        Kind::Exists(within) => {
            out.extend_from_slice(b"exists (");
            put(within, false, false, out);
            out.push(b')');
        }
        Kind::LikeRegex { operand: within, pattern, flags } => {
            put_bracketed(bracketed, out, |out| {
                operand(within, out);
                out.extend_from_slice(b" like_regex ");
                put_text(pattern, out);
                if !flags.is_empty() {
                    let _ = write!(out, " flag \"{flags}\"");
                }
            });
        }
    }
    if let Some(next) = &item.next {
        put(next, true, true, out);
    }
}

fn put_accessor(kind: &Kind, in_key: bool, out: &mut Vec<u8>) {
    if in_key && !matches!(kind, Kind::Subscripts(_) | Kind::AnyArray) {
        out.push(b'.');
    }
    match kind {
        Kind::Key(key) => put_text(key, out),
        Kind::AnyKey => out.push(b'*'),
        Kind::AnyArray => out.extend_from_slice(b"[*]"),
        Kind::AnyLevel { first, last } => {
            let level = |level: u32| match level {
                u32::MAX => "last".to_owned(),
                level => level.to_string(),
            };
            let _ = match (*first, *last) {
                (0, u32::MAX) => write!(out, "**"),
                (first, last) if first == last => write!(out, "**{{{}}}", level(first)),
                (first, last) => write!(out, "**{{{} to {}}}", level(first), level(last)),
            };
        }
        Kind::Subscripts(list) => {
            out.push(b'[');
            for (index, (from, to)) in list.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                put(from, false, false, out);
                if let Some(to) = to {
                    out.extend_from_slice(b" to ");
                    put(to, false, false, out);
                }
            }
            out.push(b']');
        }
        _ => {}
    }
}
