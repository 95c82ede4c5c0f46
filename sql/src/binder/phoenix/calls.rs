//! Calls of Phoenix's functions that PostgreSQL does not have.
//!
//! A call is bound as one of a user's or PostgreSQL's function first. Only if that is an error, it
//! is resolved to a function of schema `bennu`
//! ([`standard_function`](crate::catalog::standard_function)) or rewritten into an expression.
//! Functions without an equivalent are rejected with a hint ([`REJECTED`]). So no call that
//! PostgreSQL accepts changes its meaning.
//!
//! `FIRST_VALUE(x) WITHIN GROUP (ORDER BY y)` and related aggregates are elements of
//! `array_agg(x ORDER BY y)` over the values that are not NULL, as in Phoenix; `LAST_VALUE`
//! reverses the order.

use types::DataType;

use crate::ast::{
    Expr, FunctionArgument, FunctionCall, FunctionName, Ident, NullsOrder, OrderItem, SortOrder,
    Subscript,
};
use crate::binder::function::takes_call;
use crate::binder::level::Binder;
use crate::binder::typed::Typed;
use crate::catalog::standard_function::PHOENIX_SCHEMA;
use crate::error::{Error, Result, sqlstate};

/// Aggregates and functions that are rewritten into an expression.
const REWRITTEN: &[&str] = &[
    "distinct_count",
    "first_value",
    "last_value",
    "nth_value",
    "first_values",
    "last_values",
    "phoenix_row_timestamp",
];

/// Functions of Phoenix that are rejected: the number of arguments, if others are not Phoenix's,
/// and the hint.
const REJECTED: &[(&str, Option<usize>, &str)] = &[
    (
        "bson_condition_expression",
        None,
        "Use jsonb operators, or jsonb_path_match(document, path).",
    ),
    ("bson_update_expression", None, "Use jsonb_set(document, path, value)."),
    ("bson_value", None, "Use jsonb_path_query_first(document, path) with a cast."),
    ("bson_value_type", None, "Use jsonb_typeof(value)."),
    ("collation_key", None, "Text is sorted by bytes. Use lower(text) to ignore case."),
    ("decode_view_index_id", None, "Views have no index numbers. Read bennu.indexes."),
    ("partition_id", None, "Read bennu.regions."),
    ("raw_row_size", None, "Use pg_column_size(table.*)."),
    ("row_size", None, "Use pg_column_size(table.*)."),
    ("rowkey_bytes_string", None, "Select the columns of the primary key."),
    ("scan_end_key", None, "Read bennu.regions."),
    ("scan_start_key", None, "Read bennu.regions."),
    ("total_segments", None, "Read bennu.regions."),
    ("upper", Some(2), "Omit the locale. Letters are changed as Unicode defines."),
    ("lower", Some(2), "Omit the locale. Letters are changed as Unicode defines."),
    ("rand", Some(1), "Use setseed(seed) before the statement, and rand() in it."),
];

impl Binder<'_> {
    /// Returns whether Phoenix has a function of this name that PostgreSQL does not have.
    pub(in crate::binder) fn is_phoenix_name(&self, name: &str) -> bool {
        let of_schema = || self.catalog.functions_in(PHOENIX_SCHEMA, name).next().is_some();
        !name.starts_with('_') && of_schema()
            || REWRITTEN.contains(&name)
            || rejection(name).is_some()
    }

    /// Binds a call of a function whose name is one of Phoenix's.
    pub(in crate::binder) fn bind_phoenix_call(&mut self, call: &FunctionCall) -> Result<Typed> {
        let before = self.marks();
        let error = match self.bind_known_call(call) {
            Ok(bound) => return Ok(bound),
            Err(error) => error,
        };
        self.restore_marks(&before);
        if let Some(rewritten) = rewritten(call) {
            return self.bind_expr(&rewritten);
        }
        let name = call.name.name.value.as_str();
        if let Some(bound) = self.bind_phoenix_function(call)? {
            return Ok(bound);
        }
        self.restore_marks(&before);
        match rejection(name).filter(|(count, _)| count.is_none_or(|n| n == call.arguments.len())) {
            Some((_, hint)) if error.sqlstate == sqlstate::UNDEFINED_FUNCTION => {
                let what = format!("function {name} of Phoenix");
                Err(Error::not_supported(what, hint).at(call.name.position()))
            }
            _ => Err(error),
        }
    }

    /// Binds a call as one of a function of schema `bennu`; `None` if none accepts it.
    fn bind_phoenix_function(&mut self, call: &FunctionCall) -> Result<Option<Typed>> {
        let has_clauses =
            call.over.is_some() || call.filter.is_some() || call.star || call.distinct;
        if has_clauses || !call.order_by.is_empty() {
            return Ok(None);
        }
        let name = &call.name.name.value;
        let named = self.catalog.functions_named(Some(PHOENIX_SCHEMA), name, self.search_path());
        let values = self.arguments_of(call)?;
        let types: Vec<DataType> = values.iter().map(Typed::base).cloned().collect();
        match named.iter().any(|one| takes_call(one, call, &types)) {
            true => self.bind_user_function(call, named, values).map(Some),
            false => Ok(None),
        }
    }
}

impl Binder<'_> {
    /// Binds an operator that PostgreSQL does not have for these operands; `None` if Phoenix does
    /// not have it either.
    ///
    /// `date + 0.5` and `1 || 2` are functions of schema `bennu`. A comparison converts the operand
    /// of the type that has the other's values only in another form.
    pub(in crate::binder) fn phoenix_operator(
        &mut self,
        symbol: &str,
        left: Typed,
        right: Typed,
        position: usize,
    ) -> Result<Option<Typed>> {
        // The text of a view retains the operator as it is written.
        let notes = self.notes.take();
        let bound = self.bind_phoenix_operator(symbol, left, right, position);
        self.notes = notes;
        bound
    }

    fn bind_phoenix_operator(
        &mut self,
        symbol: &str,
        left: Typed,
        right: Typed,
        position: usize,
    ) -> Result<Option<Typed>> {
        let is_comparison = ["=", "<>", "!=", "<", "<=", ">", ">="].contains(&symbol);
        if is_comparison {
            if let Some(to) = converted(left.base(), right.base()) {
                let left = self.bind_phoenix(to, vec![left], position)?;
                return left.map(|left| self.operator(symbol, left, right, position)).transpose();
            }
            let Some(to) = converted(right.base(), left.base()) else { return Ok(None) };
            let right = self.bind_phoenix(to, vec![right], position)?;
            return right.map(|right| self.operator(symbol, left, right, position)).transpose();
        }
        match symbol {
            "+" | "-" => self.bind_phoenix(symbol, vec![left, right], position),
            "||" if is_scalar(left.base()) && is_scalar(right.base()) => {
                let left = self.bind_phoenix(TEXT, vec![left], position)?;
                let right = self.bind_phoenix(TEXT, vec![right], position)?;
                let (Some(left), Some(right)) = (left, right) else { return Ok(None) };
                self.operator(symbol, left, right, position).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// Returns the value for a cast that Phoenix has and PostgreSQL rejects: times to points in
    /// time, and these from and to milliseconds since 1970. Other values are unchanged.
    pub(in crate::binder) fn phoenix_cast(&mut self, value: Typed, to: &DataType) -> Result<Typed> {
        let is_cast = match (value.base(), to) {
            (from, to) if is_instant(to) => *from == DataType::Time || is_number(from),
            (from, DataType::Int8 | DataType::Numeric) => is_instant(from),
            _ => false,
        };
        if !is_cast {
            return Ok(value);
        }
        let name = if is_instant(to) { TIMESTAMP } else { "to_number" };
        let position = value.position;
        let bound = self.bind_phoenix(name, vec![value.clone()], position)?;
        Ok(bound.unwrap_or(value))
    }

    /// Binds a call of a function of schema `bennu`; `None` if none accepts the values.
    fn bind_phoenix(
        &mut self,
        name: &str,
        values: Vec<Typed>,
        position: usize,
    ) -> Result<Option<Typed>> {
        let named = self.catalog.functions_named(Some(PHOENIX_SCHEMA), name, self.search_path());
        let null = FunctionArgument { name: None, value: Expr::Null { position } };
        let name = Ident { value: name.to_owned(), position };
        let call =
            FunctionCall::plain(FunctionName { schema: None, name }, vec![null; values.len()]);
        let types: Vec<DataType> = values.iter().map(Typed::base).cloned().collect();
        match named.iter().any(|one| takes_call(one, &call, &types)) {
            true => self.bind_user_function(&call, named, values).map(Some),
            false => Ok(None),
        }
    }
}

/// The functions that convert operands.
const TIMESTAMP: &str = "_to_instant";
const TEXT: &str = "_to_text";

/// Returns the function that converts an operand of a comparison to the type beside it.
fn converted(from: &DataType, beside: &DataType) -> Option<&'static str> {
    match (from, beside) {
        (DataType::Time, beside) if is_instant(beside) => Some(TIMESTAMP),
        (from, beside) if is_number(from) && is_instant(beside) => Some(TIMESTAMP),
        (DataType::Text | DataType::Varchar | DataType::Char, DataType::Bytea) => Some("_to_bytes"),
        (DataType::Array(_), DataType::Array(_)) => match (from.element()?, beside.element()?) {
            (DataType::Int2 | DataType::Int4, DataType::Int8) => Some("_to_wide_array"),
            (DataType::Int2, DataType::Int4) => Some("_to_wide_array"),
            _ => None,
        },
        _ => None,
    }
}

fn is_instant(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Date | DataType::Timestamp | DataType::Timestamptz)
}

fn is_number(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Int2 | DataType::Int4 | DataType::Int8 | DataType::Numeric)
}

fn is_scalar(data_type: &DataType) -> bool {
    is_number(data_type)
        || is_instant(data_type)
        || matches!(
            data_type,
            DataType::Float4 | DataType::Float8 | DataType::Bool | DataType::Time
        )
}

fn rejection(name: &str) -> Option<(Option<usize>, &'static str)> {
    let known = REJECTED.iter().find(|(known, ..)| *known == name);
    known.map(|(_, count, hint)| (*count, *hint))
}

/// Returns the expression of a call that is rewritten; `None` if it has another form.
fn rewritten(call: &FunctionCall) -> Option<Expr> {
    let position = call.name.position();
    let number = |text: &str| Expr::Number { text: text.to_owned(), position };
    let arguments = || call.arguments.iter().map(|argument| argument.value.clone());
    let mut values = arguments();
    match (call.name.name.value.as_str(), call.arguments.len()) {
        ("phoenix_row_timestamp", 0) => Some(Expr::Column(vec![Ident {
            value: "_timestamp".to_owned(),
            ..call.name.name.clone()
        }])),
        ("distinct_count", 1) if call.over.is_none() => {
            let name = named("count", call);
            Some(Expr::Call(Box::new(FunctionCall { name, distinct: true, ..call.clone() })))
        }
        _ if !call.within_group || call.order_by.len() != 1 => None,
        ("first_value", 1) => Some(element(call, false, Subscript::Index(number("1")))),
        ("last_value", 1) => Some(element(call, true, Subscript::Index(number("1")))),
        ("nth_value", 2) => values.nth(1).map(|n| element(call, false, Subscript::Index(n))),
        ("first_values", 2) | ("last_values", 2) => values.nth(1).map(|n| {
            let slice = Subscript::Slice { lower: Some(number("1")), upper: Some(n) };
            element(call, call.name.name.value == "last_values", slice)
        }),
        _ => None,
    }
}

/// Returns an element, or elements, of the ordered values that are not NULL.
fn element(call: &FunctionCall, reversed: bool, subscript: Subscript) -> Expr {
    let order = |item: &OrderItem| match reversed {
        false => item.clone(),
        true => reverse(item),
    };
    let value = call.arguments.first().map(|argument| argument.value.clone());
    let value = value.unwrap_or(Expr::Null { position: call.name.position() });
    let known = Expr::IsNull { operand: Box::new(value.clone()), negated: true };
    let aggregate = FunctionCall {
        order_by: call.order_by.iter().map(order).collect(),
        filter: Some(match &call.filter {
            Some(filter) => Expr::And(vec![filter.clone(), known]),
            None => known,
        }),
        ..FunctionCall::plain(
            named("array_agg", call),
            vec![FunctionArgument { name: None, value }],
        )
    };
    let operand = Box::new(Expr::Call(Box::new(aggregate)));
    Expr::Subscript { operand, subscripts: vec![subscript] }
}

fn named(name: &str, call: &FunctionCall) -> FunctionName {
    FunctionName { schema: None, name: Ident { value: name.to_owned(), ..call.name.name.clone() } }
}

/// Returns the opposite order, which places NULLs at the other end, too.
fn reverse(item: &OrderItem) -> OrderItem {
    let order = match item.order {
        SortOrder::Ascending => SortOrder::Descending,
        SortOrder::Descending => SortOrder::Ascending,
    };
    let nulls = item.nulls.map(|nulls| match nulls {
        NullsOrder::First => NullsOrder::Last,
        NullsOrder::Last => NullsOrder::First,
    });
    OrderItem { expr: item.expr.clone(), order, nulls }
}
