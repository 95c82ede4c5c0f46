//! Text of expressions, for EXPLAIN.

use types::expr::Expr;
use types::function::{FunctionId, signature};
use types::text::TextStyle;
use types::{DataType, Datum};

/// Returns an expression as SQL text, with the names of columns.
pub(super) fn text(expression: &Expr, names: &[String]) -> String {
    write(expression, names, false)
}

/// Returns the name of column `index`.
fn name(names: &[String], index: usize) -> String {
    names.get(index).cloned().unwrap_or_else(|| format!("#{}", index + 1))
}

fn list(expressions: &[Expr], names: &[String], separator: &str, nested: bool) -> String {
    let parts: Vec<String> =
        expressions.iter().map(|expression| write(expression, names, nested)).collect();
    parts.join(separator)
}

fn call(
    function: FunctionId,
    arguments: &[Expr],
    names: &[String],
    wrap: &dyn Fn(String) -> String,
) -> String {
    let function = signature(function).name;
    let is_operator = !function.starts_with(|c: char| c.is_alphabetic() || c == '_');
    match arguments {
        [left, right] if is_operator => {
            let symbol = match function {
                "~~" => "LIKE",
                "!~~" => "NOT LIKE",
                "~~*" => "ILIKE",
                "!~~*" => "NOT ILIKE",
                symbol => symbol,
            };
            let (left, right) = (write(left, names, true), write(right, names, true));
            wrap(format!("{left} {symbol} {right}"))
        }
        [operand] if is_operator => wrap(format!("{function}{}", write(operand, names, true))),
        [Expr::Constant { value: Datum::Int4(comparison), .. }, left, array]
            if matches!(function, "any of" | "all of") =>
        {
            let comparison = u16::try_from(*comparison).map(FunctionId);
            let symbol = comparison.map_or("?", |comparison| signature(comparison).name);
            let word = if function == "any of" { "ANY" } else { "ALL" };
            let (left, array) = (write(left, names, true), write(array, names, false));
            wrap(format!("{left} {symbol} {word} ({array})"))
        }
        arguments => format!("{function}({})", list(arguments, names, ", ", false)),
    }
}

/// Returns the text of an expression. `nested`: operators are put into parentheses.
fn write(expression: &Expr, names: &[String], nested: bool) -> String {
    let wrap = |text: String| if nested { format!("({text})") } else { text };
    match expression {
        Expr::Constant { value, data_type } => constant(value, data_type),
        Expr::Column { index, .. } => name(names, *index),
        Expr::Parameter { index, .. } => format!("${}", index + 1),
        Expr::Call { function, arguments, .. } => call(*function, arguments, names, &wrap),
        Expr::Routine { routine, arguments } => {
            format!("{}({})", routine.name, list(arguments, names, ", ", false))
        }
        Expr::Cast { operand, to, .. } => {
            format!("{}::{}", write(operand, names, true), to.base.sql_name())
        }
        Expr::Domain { operand, checks, .. } if !checks.is_of_domain() => {
            write(operand, names, nested)
        }
        Expr::Domain { operand, checks, .. } => {
            format!("{}::{}", write(operand, names, true), checks.shown)
        }
        Expr::And(operands) => wrap(list(operands, names, " AND ", true)),
        Expr::Or(operands) => wrap(list(operands, names, " OR ", true)),
        Expr::Not(operand) => match operand.as_ref() {
            Expr::IsNull(operand) => wrap(format!("{} IS NOT NULL", write(operand, names, true))),
            Expr::InList { operand, list: values } => wrap(format!(
                "{} NOT IN ({})",
                write(operand, names, true),
                list(values, names, ", ", false)
            )),
            operand => format!("NOT {}", write(operand, names, true)),
        },
        Expr::IsNull(operand) => wrap(format!("{} IS NULL", write(operand, names, true))),
        Expr::IsDistinct { left, right, negated } => wrap(format!(
            "{} IS {}DISTINCT FROM {}",
            write(left, names, true),
            if *negated { "NOT " } else { "" },
            write(right, names, true)
        )),
        Expr::InList { operand, list: values } => wrap(format!(
            "{} IN ({})",
            write(operand, names, true),
            list(values, names, ", ", false)
        )),
        Expr::Case { branches, otherwise, .. } => {
            let branch = |(when, then): &(Expr, Expr)| {
                format!(" WHEN {} THEN {}", write(when, names, false), write(then, names, false))
            };
            let branches: String = branches.iter().map(branch).collect();
            format!("CASE{branches} ELSE {} END", write(otherwise, names, false))
        }
        Expr::Unreadable { .. } => "unreadable".to_owned(),
        Expr::Coalesce { operands, .. } => {
            format!("COALESCE({})", list(operands, names, ", ", false))
        }
    }
}

/// Returns a value as an SQL literal.
pub(crate) fn constant(value: &Datum, data_type: &DataType) -> String {
    match value {
        Datum::Null => "NULL".to_owned(),
        Datum::Bool(value) => value.to_string(),
        Datum::Int2(_)
        | Datum::Int4(_)
        | Datum::Int8(_)
        | Datum::Numeric(_)
        | Datum::Float4(_)
        | Datum::Float8(_) => plain(value, data_type),
        Datum::Text(_) => format!("'{}'", plain(value, data_type).replace('\'', "''")),
        _ => format!("'{}'::{}", plain(value, data_type), data_type.sql_name()),
    }
}

fn plain(value: &Datum, data_type: &DataType) -> String {
    let mut bytes = Vec::new();
    types::text::write_short(value, data_type, &TextStyle::default(), &mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}
