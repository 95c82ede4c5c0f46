//! Lowering of function calls, and of special syntax that stands for them.

use sqlparser::ast as parsed;
use sqlparser::ast::{DateTimeField, Expr as Parsed, TrimWhereField};
use types::datatype::IntervalFields;
use types::key_words;

use super::cursor::TokenCursor;
use super::dialect::{PREFIX, VARIADIC};
use super::error::{ParseError, Result};
use super::expr::PlacedExpr;
use super::tokens::sql_value_function;
use crate::ast::{
    Expr, FunctionArgument, FunctionCall, FunctionName, Ident, MinMax, OrderItem, Over, TableName,
    UnaryOperator,
};

/// The arguments of a call, lowered.
struct Arguments {
    list: Vec<FunctionArgument>,
    /// The position of the last argument, if it is preceded by VARIADIC.
    variadic: Option<usize>,
    star: bool,
    distinct: bool,
    order_by: Vec<OrderItem>,
    within_group: bool,
}

/// Built-in functions that PostgreSQL does not have and that can be called as `bennu.name`.
const OWN_FUNCTIONS: [&str; 4] =
    ["hold_primary", "hold_replicas", "release_holds", "wait_for_index"];

impl TokenCursor<'_> {
    /// Returns the call of a built-in function for its special syntax.
    pub(super) fn call_of(&self, name: &str, position: usize, arguments: Vec<Expr>) -> Expr {
        let arguments =
            arguments.into_iter().map(|value| FunctionArgument { name: None, value }).collect();
        let name = Ident { value: name.to_owned(), position };
        let name = FunctionName { schema: None, name };
        let call = FunctionCall::plain(name, arguments);
        Expr::Call(Box::new(FunctionCall { own_syntax: true, ..call }))
    }

    /// Returns a prefix operator, by its internal function name, with its operand.
    fn prefixed(
        &mut self,
        name: &str,
        args: parsed::FunctionArguments,
        position: usize,
    ) -> Result<PlacedExpr> {
        let parsed::FunctionArguments::List(list) = args else { return Err(self.unexpected()) };
        let Some(parsed::FunctionArg::Unnamed(parsed::FunctionArgExpr::Expr(operand))) =
            list.args.into_iter().next()
        else {
            return Err(self.unexpected());
        };
        let operand = self.lower(operand)?;
        let symbol = name.strip_prefix("pg_catalog.").unwrap_or(name);
        let expr = match UnaryOperator::named(symbol) {
            Some(operator) => Expr::Unary { operator, operand: Box::new(operand), position },
            None => self.unknown_operator(name, position, vec![operand]),
        };
        Ok(PlacedExpr { expr, start: position })
    }

    fn function_name(&self, parsed: &parsed::ObjectName) -> Result<FunctionName> {
        let mut parts = self.parts(parsed)?;
        if parts.len() > 2 {
            let TableName { schema, name } = self.without_database(parts)?;
            parts = schema.into_iter().chain([name]).collect();
        }
        let (Some(name), schema) = (parts.pop(), parts.pop()) else {
            return Err(self.unexpected());
        };
        let unquoted = parsed.0.first().and_then(|part| part.as_ident());
        if unquoted.is_some_and(|first| first.quote_style.is_none()) {
            let (first, allowed) = match &schema {
                Some(schema) => (schema, key_words::is_column_name(&schema.value)),
                None => (&name, is_callable(&name.value)),
            };
            if !allowed {
                return Err(self.syntax_error_near(first.position));
            }
        }
        Ok(FunctionName { schema, name })
    }

    /// Returns the parts of the name of a relation or column.
    pub(super) fn object_name(&self, parsed: &parsed::ObjectName) -> Result<Vec<Ident>> {
        if let Some(parsed::ObjectNamePart::Identifier(first)) = parsed.0.first() {
            self.checked_alias(first)?;
        }
        self.parts(parsed)
    }

    /// Returns the parts of a name.
    pub(super) fn parts(&self, parsed: &parsed::ObjectName) -> Result<Vec<Ident>> {
        parsed
            .0
            .iter()
            .map(|part| match part {
                parsed::ObjectNamePart::Identifier(ident) => Ok(self.ident(ident)),
                parsed::ObjectNamePart::Function(_) => Err(self.unexpected()),
            })
            .collect()
    }

    pub(super) fn function(&mut self, function: parsed::Function) -> Result<PlacedExpr> {
        let name = self.function_name(&function.name)?;
        let start = name.position();
        if name.name.value == VARIADIC {
            return Err(self.syntax_error_near(start));
        }
        if let Some(symbol) = name.name.value.strip_prefix(PREFIX) {
            return self.prefixed(symbol, function.args, start);
        }
        let quoted = function
            .name
            .0
            .iter()
            .any(|part| part.as_ident().is_some_and(|ident| ident.quote_style.is_some()));
        let parsed::Function {
            name: _,
            uses_odbc_syntax,
            parameters,
            args,
            within_group,
            filter,
            null_treatment,
            over,
        } = function;
        let refused = if uses_odbc_syntax {
            Some("ODBC call syntax")
        } else if !matches!(parameters, parsed::FunctionArguments::None) {
            Some("a call with parameters before its arguments")
        } else if null_treatment.is_some() {
            Some("IGNORE NULLS or RESPECT NULLS")
        } else {
            None
        };
        if let Some(construct) = refused {
            return Err(ParseError::unsupported(construct, start));
        }
        let list = match args {
            parsed::FunctionArguments::None => return self.bare_function(&name, start),
            parsed::FunctionArguments::Subquery(query) => {
                let query = Box::new(self.lower_query(*query)?);
                let expr = Expr::ArraySubquery { query, position: start };
                return Ok(PlacedExpr { expr, start });
            }
            parsed::FunctionArguments::List(list) => list,
        };
        let mut arguments = self.arguments(list, start)?;
        if !within_group.is_empty() {
            if arguments.distinct || !arguments.order_by.is_empty() {
                let other =
                    if arguments.distinct { "DISTINCT" } else { "multiple ORDER BY clauses" };
                let message = format!("cannot use {other} with WITHIN GROUP");
                return Err(ParseError::syntax(message, start));
            }
            arguments.order_by = self.order_items(within_group)?;
            arguments.within_group = true;
        }
        let filter = filter.map(|filter| self.lower(*filter)).transpose()?;
        let arguments = if name.name.value == "normalize" && !quoted {
            normal_form(arguments)
        } else {
            arguments
        };
        let over = over.map(|over| self.over(over, start)).transpose()?;
        let plain = filter.is_none() && over.is_none() && name.schema.is_none() && !quoted;
        let expr = if plain {
            self.special_function(name, arguments, start)?
        } else {
            call(name, arguments, filter, over)
        };
        Ok(PlacedExpr { expr, start })
    }

    /// Returns a keyword that is a call without parentheses.
    fn bare_function(&self, name: &FunctionName, start: usize) -> Result<PlacedExpr> {
        match sql_value_function(&name.name.value) {
            Some(function) => Ok(PlacedExpr {
                expr: Expr::SqlValue { function, precision: None, position: start },
                start,
            }),
            None => Err(self.syntax_error_near(start)),
        }
    }

    fn arguments(&mut self, list: parsed::FunctionArgumentList, start: usize) -> Result<Arguments> {
        let parsed::FunctionArgumentList { duplicate_treatment, args, clauses } = list;
        let mut order_by = Vec::new();
        for clause in clauses {
            let construct = match clause {
                parsed::FunctionArgumentClause::OrderBy(items) => {
                    order_by = self.order_items(items)?;
                    continue;
                }
                parsed::FunctionArgumentClause::Limit(_) => "LIMIT within a call",
                _ => "a clause within a call",
            };
            return Err(ParseError::unsupported(construct, start));
        }
        let distinct = matches!(duplicate_treatment, Some(parsed::DuplicateTreatment::Distinct));
        let list = Vec::with_capacity(args.len());
        let mut arguments = Arguments {
            list,
            variadic: None,
            star: false,
            distinct,
            order_by,
            within_group: false,
        };
        for argument in args {
            let (name, value) = match argument {
                parsed::FunctionArg::Unnamed(value) => (None, value),
                parsed::FunctionArg::Named { name, arg, operator } => {
                    self.check_named(&operator, start)?;
                    (Some(self.ident(&name)), arg)
                }
                parsed::FunctionArg::ExprNamed { .. } => {
                    return Err(ParseError::unsupported("an expression as argument name", start));
                }
            };
            match value {
                parsed::FunctionArgExpr::Expr(Parsed::Wildcard(_))
                | parsed::FunctionArgExpr::Wildcard
                    if name.is_none() && arguments.list.is_empty() && !arguments.star =>
                {
                    arguments.star = true;
                }
                parsed::FunctionArgExpr::Expr(value) if !arguments.star => {
                    if arguments.variadic.is_some() {
                        return Err(self.syntax_error_near(start));
                    }
                    let array = variadic(&value);
                    arguments.variadic = array.map(|(word, _)| self.ident(word).position);
                    let array = array.map(|(_, array)| array.clone());
                    let value = self.lower(array.unwrap_or(value))?;
                    arguments.list.push(FunctionArgument { name, value });
                }
                parsed::FunctionArgExpr::QualifiedWildcard(relation) => {
                    let value = Expr::WholeRow(self.object_name(&relation)?);
                    arguments.list.push(FunctionArgument { name, value });
                }
                _ => {
                    return Err(ParseError::syntax("* must be the only argument of a call", start));
                }
            }
        }
        Ok(arguments)
    }

    fn check_named(&self, operator: &parsed::FunctionArgOperator, start: usize) -> Result<()> {
        use parsed::FunctionArgOperator as Named;
        match operator {
            Named::RightArrow | Named::Assignment => Ok(()),
            Named::Equals | Named::Colon | Named::Value | Named::Space => {
                Err(ParseError::unsupported("this form of named argument", start)
                    .with_hint("Write name => value."))
            }
        }
    }

    /// Lowers calls whose name is a keyword with special rules.
    fn special_function(
        &self,
        name: FunctionName,
        arguments: Arguments,
        position: usize,
    ) -> Result<Expr> {
        let word = name.name.value.as_str();
        let special = matches!(word, "coalesce" | "nullif" | "greatest" | "least" | "row");
        let sql_value = sql_value_function(word).filter(|_| word != "current_schema");
        if !special && sql_value.is_none() {
            return Ok(call(name, arguments, None, None));
        }
        if let Some(word) = arguments.variadic {
            return Err(self.syntax_error_near(word));
        }
        let plain = !arguments.star
            && !arguments.distinct
            && arguments.order_by.is_empty()
            && arguments.list.iter().all(|argument| argument.name.is_none());
        let mut operands: Vec<Expr> =
            arguments.list.into_iter().map(|argument| argument.value).collect();
        if !plain || (special && word != "row" && operands.is_empty()) {
            return Err(self.syntax_error_near(position));
        }
        if let Some(function) = sql_value {
            let precision = match operands.as_slice() {
                [Expr::Number { .. }] if !word.contains("time") => None,
                [Expr::Number { text, .. }] => text.parse::<u8>().ok().map(|digits| digits.min(6)),
                _ => None,
            };
            if precision.is_none() {
                return Err(self.syntax_error_near(position));
            }
            return Ok(Expr::SqlValue { function, precision, position });
        }
        match word {
            "coalesce" => Ok(Expr::Coalesce { operands, position }),
            "greatest" => Ok(Expr::MinMax { kind: MinMax::Greatest, operands, position }),
            "least" => Ok(Expr::MinMax { kind: MinMax::Least, operands, position }),
            "row" => Ok(Expr::Row { fields: operands, position }),
            _ => match (operands.pop(), operands.pop(), operands.is_empty()) {
                (Some(right), Some(left), true) => {
                    Ok(Expr::NullIf { left: Box::new(left), right: Box::new(right), position })
                }
                _ => Err(self.syntax_error_near(position)),
            },
        }
    }

    /// Lowers `EXTRACT`, `SUBSTRING`, `TRIM`, `POSITION`, `OVERLAY`, and rejects unsupported
    /// syntax.
    pub(super) fn special_call(&mut self, node: Parsed) -> Result<PlacedExpr> {
        match node {
            Parsed::Extract { field, syntax: _, expr } => {
                let value = self.lower_placed(*expr)?;
                let start = self.word_before(value.start, "extract");
                let field = Expr::String { value: field_name(&field), position: start };
                Ok(self.placed_call("extract", start, vec![field, value.expr]))
            }
            Parsed::Substring { expr, substring_from, substring_for, special, shorthand } => {
                let word = if shorthand { "substr" } else { "substring" };
                let mut placed = self.substring(*expr, substring_from, substring_for, word)?;
                if let Expr::Call(call) = &mut placed.expr {
                    call.own_syntax = !special && !shorthand;
                }
                Ok(placed)
            }
            Parsed::Trim { trim_where, trim_what, expr, trim_characters } => {
                self.trim(trim_where, trim_what, *expr, trim_characters)
            }
            Parsed::Position { expr, r#in } => {
                let what = self.lower_placed(*expr)?;
                let start = self.word_before(what.start, "position");
                let within = self.lower(*r#in)?;
                Ok(self.placed_call("position", start, vec![within, what.expr]))
            }
            Parsed::Rollup(items) => self.group_call("rollup", items),
            Parsed::Cube(items) => self.group_call("cube", items),
            Parsed::Overlay { expr, overlay_what, overlay_from, overlay_for } => {
                let text = self.lower_placed(*expr)?;
                let start = self.word_before(text.start, "overlay");
                let mut arguments = vec![text.expr];
                arguments.push(self.lower(*overlay_what)?);
                arguments.push(self.lower(*overlay_from)?);
                if let Some(length) = overlay_for {
                    arguments.push(self.lower(*length)?);
                }
                Ok(self.placed_call("overlay", start, arguments))
            }
            other => Err(self.refuse(other)),
        }
    }

    /// Returns `text IS [NOT] [form] NORMALIZED`.
    pub(super) fn is_normalized(
        &self,
        text: Expr,
        form: Option<parsed::NormalizationForm>,
        negated: bool,
        position: usize,
    ) -> Expr {
        let form = form.map_or("NFC".to_owned(), |form| form.to_string());
        let form = Expr::String { value: form, position };
        let call = self.call_of("is_normalized", position, vec![text, form]);
        if negated { Expr::Not(Box::new(call)) } else { call }
    }

    /// Returns `(a, b) OVERLAPS (c, d)`.
    pub(super) fn overlaps(&self, left: Expr, right: PlacedExpr) -> Result<Expr> {
        let position = self.word_before(right.start, "overlaps");
        let mut arguments = Vec::with_capacity(4);
        for (side, operand) in [("left", left), ("right", right.expr)] {
            match operand {
                Expr::Row { fields, .. } if fields.len() == 2 => arguments.extend(fields),
                _ => {
                    let message =
                        format!("wrong number of parameters on {side} side of OVERLAPS expression");
                    return Err(ParseError::syntax(message, position));
                }
            }
        }
        Ok(self.call_of("overlaps", position, arguments))
    }

    /// Lowers `rollup(…)` and `cube(…)` outside of GROUP BY, where they are function calls.
    fn group_call(&mut self, name: &str, items: Vec<Vec<Parsed>>) -> Result<PlacedExpr> {
        let items = items.into_iter().flatten().map(|item| self.lower_placed(item));
        let items = items.collect::<Result<Vec<PlacedExpr>>>()?;
        let start = self.word_before(items.first().map_or(1, |first| first.start), name);
        Ok(self.placed_call(name, start, items.into_iter().map(|one| one.expr).collect()))
    }

    fn placed_call(&self, name: &str, start: usize, arguments: Vec<Expr>) -> PlacedExpr {
        PlacedExpr { expr: self.call_of(name, start, arguments), start }
    }

    fn substring(
        &mut self,
        expr: Parsed,
        from: Option<Box<Parsed>>,
        length: Option<Box<Parsed>>,
        word: &str,
    ) -> Result<PlacedExpr> {
        let text = self.lower_placed(expr)?;
        let start = self.word_before(text.start, word);
        let mut arguments = vec![text.expr];
        match (from, length) {
            (Some(from), length) => {
                arguments.push(self.lower(*from)?);
                if let Some(length) = length {
                    arguments.push(self.lower(*length)?);
                }
            }
            (None, Some(length)) => {
                arguments.push(Expr::Number { text: "1".to_owned(), position: start });
                arguments.push(self.lower(*length)?);
            }
            (None, None) => {}
        }
        Ok(self.placed_call(word, start, arguments))
    }

    fn trim(
        &mut self,
        side: Option<TrimWhereField>,
        what: Option<Box<Parsed>>,
        expr: Parsed,
        characters: Option<Vec<Parsed>>,
    ) -> Result<PlacedExpr> {
        let what = what.map(|what| self.lower_placed(*what)).transpose()?;
        let text = self.lower_placed(expr)?;
        let first = what.as_ref().map_or(text.start, |what| what.start.min(text.start));
        let start = self.word_before(first, "trim");
        let name = match side {
            None | Some(TrimWhereField::Both) => "btrim",
            Some(TrimWhereField::Leading) => "ltrim",
            Some(TrimWhereField::Trailing) => "rtrim",
        };
        let mut arguments = vec![text.expr];
        arguments.extend(what.map(|what| what.expr));
        arguments.extend(self.lower_list(characters.unwrap_or_default())?);
        Ok(self.placed_call(name, start, arguments))
    }

    fn refuse(&self, node: Parsed) -> ParseError {
        let construct = match node {
            Parsed::GroupingSets(_) => "GROUPING SETS",
            Parsed::Convert { .. } => "CONVERT",
            Parsed::InUnnest { .. } => "IN UNNEST",
            Parsed::Lambda(_) => "a lambda expression",
            Parsed::Wildcard(token) => return self.syntax_error_at(&token.0),
            Parsed::UnaryOp { .. } => "the factorial operator",
            _ => "this expression",
        };
        ParseError::unsupported(construct, None)
    }
}

/// Returns whether an unquoted word may be the name of a called function.
fn is_callable(word: &str) -> bool {
    const SPECIAL: &[&str] = &[
        "array",
        "coalesce",
        "greatest",
        "grouping",
        "least",
        "normalize",
        "nullif",
        "overlay",
        "row",
        "substring",
        "trim",
    ];
    key_words::is_type_or_function(word)
        || SPECIAL.contains(&word)
        || sql_value_function(word).is_some()
}

/// Converts the second argument of `normalize`, which is a keyword, to a string.
fn normal_form(mut arguments: Arguments) -> Arguments {
    if let [_, FunctionArgument { name: None, value }] = arguments.list.as_mut_slice()
        && let Expr::Column(parts) = value
        && let [only] = parts.as_slice()
        && ["nfc", "nfd", "nfkc", "nfkd"].contains(&only.value.as_str())
    {
        *value = Expr::String { value: only.value.to_uppercase(), position: only.position };
    }
    arguments
}

fn call(
    mut name: FunctionName,
    arguments: Arguments,
    filter: Option<Expr>,
    over: Option<Over>,
) -> Expr {
    let is_of_server = name.schema.as_ref().is_some_and(|schema| schema.value == "bennu");
    if is_of_server && OWN_FUNCTIONS.contains(&name.name.value.as_str()) {
        name.schema = None;
    }
    let Arguments { list, variadic, star, distinct, order_by, within_group } = arguments;
    Expr::Call(Box::new(FunctionCall {
        name,
        arguments: list,
        variadic: variadic.is_some(),
        star,
        distinct,
        own_syntax: false,
        order_by,
        within_group,
        filter,
        over,
    }))
}

/// Returns the word VARIADIC and the array after it.
fn variadic(value: &Parsed) -> Option<(&parsed::Ident, &Parsed)> {
    let Parsed::Function(function) = value else { return None };
    let [part] = function.name.0.as_slice() else { return None };
    let word = part.as_ident().filter(|ident| ident.value == VARIADIC)?;
    let parsed::FunctionArguments::List(list) = &function.args else { return None };
    match list.args.as_slice() {
        [parsed::FunctionArg::Unnamed(parsed::FunctionArgExpr::Expr(array))] => Some((word, array)),
        _ => None,
    }
}

/// Returns the name of a field in lower case.
fn field_name(field: &DateTimeField) -> String {
    match field {
        DateTimeField::Custom(ident) => ident.value.to_ascii_lowercase(),
        other => other.to_string().to_ascii_lowercase(),
    }
}

/// Returns the fields of an interval constant.
pub(super) fn interval_fields(
    first: Option<&DateTimeField>,
    last: Option<&DateTimeField>,
) -> std::result::Result<Option<IntervalFields>, ()> {
    let Some(first) = first else { return Ok(None) };
    let last = last.map(field_name);
    let mut words = field_name(first);
    if let Some(last) = last {
        words = format!("{words} to {last}");
    }
    IntervalFields::from_words(&words).map(Some).ok_or(())
}
