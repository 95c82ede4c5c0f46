//! SQL text of expressions, in the format of PostgreSQL's EXPLAIN.

use std::fmt::Write;

use super::Expr;
use crate::datatype::DataType;
use crate::datum::Datum;
use crate::function::{self, FunctionId};
use crate::text::{self, TextStyle};

impl Expr {
    /// Returns the expression as SQL text, for example
    /// `(dep_delay > 10) AND (carrier = 'UA'::text)`. `column_name` names the columns of the input
    /// row; parameters are `$1` and so on.
    pub fn describe(&self, column_name: &dyn Fn(usize) -> String) -> String {
        let mut out = String::new();
        write_expr(self, column_name, &mut out);
        out
    }

    /// As [`Expr::describe`], in parentheses unless it is a single token or a call.
    pub fn describe_operand(&self, column_name: &dyn Fn(usize) -> String) -> String {
        let mut out = String::new();
        write_operand(self, column_name, &mut out);
        out
    }
}

type Names<'a> = &'a dyn Fn(usize) -> String;

fn write_expr(expr: &Expr, names: Names<'_>, out: &mut String) {
    match expr {
        Expr::Constant { value, data_type } => write_constant(value, data_type, out),
        Expr::Column { index, .. } => out.push_str(&names(*index)),
        Expr::Parameter { index, .. } => push(out, format_args!("${}", index + 1)),
        Expr::Call { function, arguments, .. } => {
            write_call(function::signature(*function).name, arguments, names, out);
        }
        Expr::Routine { routine, arguments } => {
            write_call(&routine.name, arguments, names, out);
        }
        Expr::Cast { operand, to, .. } => {
            out.push('(');
            write_expr(operand, names, out);
            out.push_str(")::");
            out.push_str(&to.name());
        }
        Expr::Domain { operand, checks, .. } if !checks.is_of_domain() => {
            write_expr(operand, names, out);
        }
        Expr::Domain { operand, checks, .. } => {
            out.push('(');
            write_expr(operand, names, out);
            out.push_str(")::");
            out.push_str(&checks.shown);
        }
        Expr::And(operands) => write_joined(operands, " AND ", names, out),
        Expr::Or(operands) => write_joined(operands, " OR ", names, out),
        Expr::Not(operand) => write_not(operand, names, out),
        Expr::IsNull(operand) => {
            write_operand(operand, names, out);
            out.push_str(" IS NULL");
        }
        Expr::IsDistinct { left, right, negated } if truth_test(right) => {
            write_operand(left, names, out);
            out.push_str(if *negated { " IS " } else { " IS NOT " });
            let is_true = matches!(**right, Expr::Constant { value: Datum::Bool(true), .. });
            out.push_str(if is_true { "TRUE" } else { "FALSE" });
        }
        Expr::IsDistinct { left, right, negated } => {
            write_operand(left, names, out);
            out.push_str(if *negated { " IS NOT DISTINCT FROM " } else { " IS DISTINCT FROM " });
            write_operand(right, names, out);
        }
        Expr::InList { operand, list } => {
            write_operand(operand, names, out);
            out.push_str(" IN (");
            write_list(list, names, out);
            out.push(')');
        }
        Expr::Case { branches, otherwise, .. } => write_case(branches, otherwise, names, out),
        Expr::Unreadable { .. } => out.push_str("unreadable"),
        Expr::Coalesce { operands, .. } => {
            out.push_str("COALESCE(");
            write_list(operands, names, out);
            out.push(')');
        }
    }
}

/// Returns whether it is a boolean constant.
fn truth_test(expr: &Expr) -> bool {
    matches!(expr, Expr::Constant { value: Datum::Bool(_), .. })
}

fn push(out: &mut String, arguments: std::fmt::Arguments<'_>) {
    out.write_fmt(arguments).expect("writing to a String cannot fail");
}

/// Writes an operand, in parentheses unless it is a single token or a call.
fn write_operand(expr: &Expr, names: Names<'_>, out: &mut String) {
    let simple = match expr {
        Expr::Constant { .. }
        | Expr::Column { .. }
        | Expr::Parameter { .. }
        | Expr::Cast { .. }
        | Expr::Domain { .. }
        | Expr::Case { .. }
        | Expr::Routine { .. }
        | Expr::Coalesce { .. }
        | Expr::Unreadable { .. } => true,
        Expr::Call { function, .. } => !function::is_operator(function::signature(*function).name),
        _ => false,
    };
    if simple {
        write_expr(expr, names, out);
    } else {
        out.push('(');
        write_expr(expr, names, out);
        out.push(')');
    }
}

fn write_call(name: &str, arguments: &[Expr], names: Names<'_>, out: &mut String) {
    match arguments {
        [Expr::Constant { value: Datum::Int4(id), .. }, left, right]
            if matches!(name, "any of" | "all of") =>
        {
            let id = FunctionId(u16::try_from(*id).expect("the binder passes a function's id"));
            write_operand(left, names, out);
            let word = if name == "any of" { "ANY" } else { "ALL" };
            push(out, format_args!(" {} {word} (", function::signature(id).name));
            write_expr(right, names, out);
            out.push(')');
        }
        _ if matches!(name, "array of" | "array of arrays" | "int2vector of" | "oidvector of") => {
            out.push_str("ARRAY[");
            write_list(arguments, names, out);
            out.push(']');
        }
        [array, subscripts @ ..] if matches!(name, "array element" | "array slice") => {
            write_operand(array, names, out);
            let width = if name == "array slice" { 2 } else { 1 };
            for subscript in subscripts.chunks(width) {
                out.push('[');
                for (index, bound) in subscript.iter().enumerate() {
                    out.push_str(if index > 0 { ":" } else { "" });
                    let open = matches!(
                        bound,
                        Expr::Constant { value: Datum::Int4(i32::MIN | i32::MAX), .. }
                    );
                    if !open {
                        write_expr(bound, names, out);
                    }
                }
                out.push(']');
            }
        }
        [left, right] if function::is_operator(name) => {
            write_operand(left, names, out);
            push(out, format_args!(" {} ", if name == "!=" { "<>" } else { name }));
            write_operand(right, names, out);
        }
        [operand] if function::is_operator(name) => {
            push(out, format_args!("{name} "));
            write_operand(operand, names, out);
        }
        [] if is_keyword(name) => {
            out.push_str(&name.to_uppercase().replace(' ', "_"));
        }
        _ => {
            push(out, format_args!("{name}("));
            write_list(arguments, names, out);
            out.push(')');
        }
    }
}

/// Returns whether a call is written as a keyword without parentheses.
fn is_keyword(name: &str) -> bool {
    let is_current = name.starts_with("current") && name != "current_database";
    is_current || name.starts_with("local") || name == "session_user"
}

fn write_list(items: &[Expr], names: Names<'_>, out: &mut String) {
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.push_str(", ");
        }
        write_expr(item, names, out);
    }
}

fn write_joined(operands: &[Expr], word: &str, names: Names<'_>, out: &mut String) {
    for (index, operand) in operands.iter().enumerate() {
        if index > 0 {
            out.push_str(word);
        }
        write_operand(operand, names, out);
    }
}

fn write_not(operand: &Expr, names: Names<'_>, out: &mut String) {
    match operand {
        Expr::IsNull(inner) => {
            write_operand(inner, names, out);
            out.push_str(" IS NOT NULL");
        }
        Expr::InList { operand, list } => {
            write_operand(operand, names, out);
            out.push_str(" NOT IN (");
            write_list(list, names, out);
            out.push(')');
        }
        other => {
            out.push_str("NOT ");
            write_operand(other, names, out);
        }
    }
}

fn write_case(branches: &[(Expr, Expr)], otherwise: &Expr, names: Names<'_>, out: &mut String) {
    out.push_str("CASE");
    for (condition, result) in branches {
        out.push_str(" WHEN ");
        write_operand(condition, names, out);
        out.push_str(" THEN ");
        write_expr(result, names, out);
    }
    out.push_str(" ELSE ");
    write_expr(otherwise, names, out);
    out.push_str(" END");
}

/// Returns the type name in a constant's cast. `character` without a length would mean length 1.
fn constant_type(data_type: &DataType) -> &str {
    match data_type {
        DataType::Char => "bpchar",
        DataType::Array(element) if **element == DataType::Char => "bpchar[]",
        other => other.sql_name(),
    }
}

/// Writes a constant: numbers and booleans bare, others quoted with a cast.
fn write_constant(value: &Datum, data_type: &DataType, out: &mut String) {
    let mut bytes = Vec::new();
    match value {
        Datum::Null => return push(out, format_args!("NULL::{}", constant_type(data_type))),
        Datum::Bool(value) => return push(out, format_args!("{value}")),
        Datum::Int4(value) if *value >= 0 => return push(out, format_args!("{value}")),
        other => text::write_short(other, data_type, &TextStyle::default(), &mut bytes),
    }
    let written = String::from_utf8_lossy(&bytes);
    let decimal = *data_type == DataType::Numeric
        && written.contains('.')
        && written.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    if decimal {
        out.push_str(&written);
    } else {
        push(out, format_args!("'{}'::{}", written.replace('\'', "''"), constant_type(data_type)));
    }
}
