//! Binding of operators: arithmetic, comparisons (of rows too), LIKE.

use types::expr::Expr;
use types::function::Signature;
use types::text::{TextStyle, parse};
use types::{DataType, Datum, SqlType};

use crate::ast::{self, BinaryOperator, Collation, LikeKind};
use crate::binder::level::Binder;
use crate::binder::overload_resolution::{Match, resolve_operator};
use crate::binder::polymorphic::{are_alike, instantiate_domains};
use crate::binder::typed::{Typed, check_elements, is_string, null};
use crate::catalog::collation;
use crate::error::{Error, Result};

impl Binder<'_> {
    /// Binds an infix operator.
    pub(super) fn bind_binary(
        &mut self,
        operator: BinaryOperator,
        sides: (&ast::Expr, &ast::Expr),
        position: usize,
    ) -> Result<Typed> {
        if let (ast::Expr::Row { fields: left, .. }, ast::Expr::Row { fields: right, .. }) = sides {
            let left = self.bind_list(left)?;
            let right = self.bind_list(right)?;
            return self.compare_rows(operator, left, right, position);
        }
        if let (ast::Expr::Row { fields, .. }, ast::Expr::Subquery(query)) = sides {
            let left = self.bind_list(fields)?;
            let right = self.bind_columns_subquery(query)?;
            if left.len() != right.len() {
                let many = if right.len() > left.len() { "many" } else { "few" };
                bail!(SYNTAX_ERROR: "subquery has too {many} columns"; at position);
            }
            return self.compare_rows(operator, left, right, position);
        }
        let left = self.bind_expr(sides.0)?;
        let right = self.bind_expr(sides.1)?;
        let is_text = |side: &Typed| side.is_unknown() || collation::of_type(side.base()).is_some();
        if is_text(&left) && is_text(&right) {
            check_explicit_collations(sides)?;
        }
        self.operator(operator.symbol(), left, right, position)
    }

    /// Applies an infix operator to values.
    pub(super) fn operator(
        &mut self,
        symbol: &str,
        left: Typed,
        right: Typed,
        position: usize,
    ) -> Result<Typed> {
        let (left, right) = match symbol {
            "||" => self.concatenated(left, right, position)?,
            _ => (self.beside_vector(left, &right.sql_type)?, right),
        };
        let right = self.beside_vector(right, &left.sql_type)?;
        let shown = [left.sql_type.clone(), right.sql_type.clone()];
        match resolve_operator(symbol, &shown.each_ref().map(|one| one.base.clone())) {
            Match::One(signature) if are_alike(self.catalog, signature, &shown) => {
                let start = left.position;
                self.note_call(position, signature, &shown);
                self.call(signature, vec![left, right], start)
            }
            Match::One(_) | Match::None => {
                match self.phoenix_operator(symbol, left, right, position)? {
                    Some(bound) => Ok(bound),
                    None => Err(no_operator(&self.operation(symbol, &shown)).at(position)),
                }
            }
            Match::Ambiguous => {
                Err(ambiguous_operator(&self.operation(symbol, &shown)).at(position))
            }
        }
    }

    /// Converts a value of unknown type to a vector if the other operand is one. Operators treat
    /// vectors as arrays, whose text format is different.
    fn beside_vector(&mut self, value: Typed, other: &SqlType) -> Result<Typed> {
        let is_vector = matches!(other.base, DataType::Int2Vector | DataType::OidVector);
        if !is_vector || !value.is_unknown() {
            return Ok(value);
        }
        let position = value.position;
        let expr = self.implicit(value, other)?;
        Ok(Typed { expr, sql_type: other.clone(), position })
    }

    /// Returns the error for an operator that bennu does not have.
    pub(super) fn unknown_operator(
        &mut self,
        call: &ast::FunctionCall,
        symbol: &str,
    ) -> Result<Error> {
        let position = call.name.position();
        let values: Vec<&ast::Expr> = call.arguments.iter().map(|one| &one.value).collect();
        if let [ast::Expr::Row { fields: left, .. }, ast::Expr::Row { fields: right, .. }] =
            values.as_slice()
        {
            let (left, right) = (self.bind_list(left)?, self.bind_list(right)?);
            if left.len() != right.len() {
                return Ok(
                    err!(SYNTAX_ERROR: "unequal number of entries in row expressions"; at position),
                );
            }
            let types: Vec<SqlType> = left
                .first()
                .into_iter()
                .chain(right.first())
                .map(|one| one.sql_type.clone())
                .collect();
            return Ok(no_operator(&self.operation(symbol, &types)).at(position));
        }
        let values = values.into_iter().map(|value| self.bind_expr(value));
        let values = values.collect::<Result<Vec<Typed>>>()?;
        let types: Vec<SqlType> = values.iter().map(|one| one.sql_type.clone()).collect();
        // A schema that does not exist is reported first.
        self.functions_named(call)?;
        let symbol = match &call.name.schema {
            Some(schema) => format!("{}.{symbol}", schema.value),
            None => symbol.to_owned(),
        };
        let error = no_operator(&self.operation(&symbol, &types));
        Ok(match types.len() {
            1 => error.with_hint(ONE_OPERAND).at(position),
            _ => error.at(position),
        })
    }

    /// Returns an operator with the types of its operands as it is in messages.
    fn operation(&self, symbol: &str, types: &[SqlType]) -> String {
        match types {
            [left, right] => {
                format!("{} {symbol} {}", self.type_name(left), self.type_name(right))
            }
            [only] => format!("{symbol} {}", self.type_name(only)),
            _ => symbol.to_owned(),
        }
    }

    /// Converts the other operand of `||` to text if one is text.
    fn concatenated(
        &mut self,
        left: Typed,
        right: Typed,
        position: usize,
    ) -> Result<(Typed, Typed)> {
        let other = |data_type: &DataType| !is_string(data_type) && *data_type != DataType::Unknown;
        let own =
            |data_type: &DataType| data_type.element().is_some() || *data_type == DataType::Jsonb;
        let bits = |data_type: &DataType| matches!(data_type, DataType::Bit | DataType::Varbit);
        // Arrays and jsonb have their own `||` operators.
        if own(left.base()) && (!is_string(right.base()) || left.base().element().is_some())
            || own(right.base()) && (!is_string(left.base()) || right.base().element().is_some())
        {
            return Ok((left, right));
        }
        // In PostgreSQL, `"char"` casts to string types, so that the operator is ambiguous.
        let is_char = |side: &Typed| *side.base() == DataType::InternalChar;
        let is_stringlike = |side: &Typed| is_string(side.base()) || side.is_unknown();
        if is_char(&left) && (is_char(&right) || is_stringlike(&right))
            || is_char(&right) && is_stringlike(&left)
        {
            let operation = self.operation("||", &[left.sql_type, right.sql_type]);
            return Err(ambiguous_operator(&operation).at(position));
        }
        let text = |binder: &mut Self, value: Typed| {
            let position = value.position;
            let expr = binder.explicit(value, DataType::Text, position)?;
            Ok::<Typed, Error>(Typed::new(expr, DataType::Text, position))
        };
        if is_char(&left) || is_char(&right) {
            Ok((text(self, left)?, text(self, right)?))
        } else if is_string(left.base()) && other(right.base()) {
            Ok((left, text(self, right)?))
        } else if other(left.base()) && is_string(right.base()) {
            Ok((text(self, left)?, right))
        } else if *left.base() == DataType::Bytea
            || *right.base() == DataType::Bytea
            || bits(left.base())
            || bits(right.base())
        {
            Ok((left, right))
        } else if left.is_unknown() && other(right.base()) {
            Ok((left, text(self, right)?))
        } else if other(left.base()) && right.is_unknown() {
            Ok((text(self, left)?, right))
        } else {
            Ok((left, right))
        }
    }

    /// Binds a prefix operator; the sign of a number is part of the number.
    pub(super) fn bind_unary(
        &mut self,
        operator: ast::UnaryOperator,
        operand: &ast::Expr,
        position: usize,
    ) -> Result<Typed> {
        if let (ast::UnaryOperator::Minus, Some(literal)) = (operator, signed_number(operand)) {
            let negated = literal.strip_prefix('-').map(str::to_owned);
            return number(&negated.unwrap_or_else(|| format!("-{literal}")), position);
        }
        let value = self.bind_expr(operand)?;
        let shown = [value.sql_type.clone()];
        let symbol = operator.symbol();
        match resolve_operator(symbol, std::slice::from_ref(value.base())) {
            Match::One(signature) => {
                self.note_call(position, signature, &shown);
                self.call(signature, vec![value], position)
            }
            Match::None => {
                let error = no_operator(&self.operation(symbol, &shown)).with_hint(ONE_OPERAND);
                Err(error.at(position))
            }
            Match::Ambiguous => {
                Err(ambiguous_operator(&self.operation(symbol, &shown)).at(position))
            }
        }
    }

    /// Calls the function that overload resolution has found.
    pub(super) fn call(
        &mut self,
        signature: &Signature,
        arguments: Vec<Typed>,
        position: usize,
    ) -> Result<Typed> {
        let types: Vec<SqlType> = arguments.iter().map(|one| one.sql_type.clone()).collect();
        let found = instantiate_domains(self.catalog, signature, &types);
        let Some((wanted, sql_type)) = found else {
            return Err(no_operator(&self.operation(signature.name, &types)).at(position));
        };
        check_elements(signature, types.iter().chain(&wanted))?;
        let coerce = |(value, to): (Typed, SqlType)| self.implicit(value, to);
        let arguments = arguments.into_iter().zip(wanted).map(coerce).collect::<Result<_>>()?;
        let data_type = sql_type.base.clone();
        let expr = Expr::Call { function: signature.id, arguments, data_type };
        Ok(Typed { expr, sql_type, position })
    }

    /// Compares rows field by field.
    ///
    /// `(a, b) < (c, d)` is `a <= c AND (a < c OR a = c AND b < d)`: the first condition is
    /// redundant, but gives a range of the first column.
    pub(super) fn compare_rows(
        &mut self,
        operator: BinaryOperator,
        left: Vec<Typed>,
        right: Vec<Typed>,
        position: usize,
    ) -> Result<Typed> {
        if left.len() != right.len() {
            bail!(SYNTAX_ERROR: "unequal number of entries in row expressions"; at position);
        }
        let start = left.first().map_or(position, |value| value.position);
        let fields: Vec<(Typed, Typed)> = left.into_iter().zip(right).collect();
        if fields.is_empty() {
            bail!(FEATURE_NOT_SUPPORTED: "cannot compare rows of zero length"; at position);
        }
        let expr = match operator {
            BinaryOperator::Equal => {
                all_of(self.each_field(operator.symbol(), fields, position)?)
            }
            BinaryOperator::NotEqual => {
                any_of(self.each_field(operator.symbol(), fields, position)?)
            }
            _ if operator.is_comparison() => self.order_rows(operator, fields, position)?,
            _ => {
                self.each_field(operator.symbol(), fields, position)?;
                bail!(FEATURE_NOT_SUPPORTED: "could not determine interpretation of row comparison operator {}",
                    operator.symbol(); at position);
            }
        };
        Ok(Typed::boolean(expr, start))
    }

    fn each_field(
        &mut self,
        symbol: &str,
        fields: Vec<(Typed, Typed)>,
        position: usize,
    ) -> Result<Vec<Expr>> {
        let compare = |(left, right)| Ok(self.operator(symbol, left, right, position)?.expr);
        fields.into_iter().map(compare).collect()
    }

    fn order_rows(
        &mut self,
        operator: BinaryOperator,
        mut fields: Vec<(Typed, Typed)>,
        position: usize,
    ) -> Result<Expr> {
        let (strict, loose) = match operator {
            BinaryOperator::Less | BinaryOperator::LessOrEqual => ("<", "<="),
            _ => (">", ">="),
        };
        let Some((left, right)) = fields.pop() else { return Ok(null(DataType::Bool)) };
        let mut expr = self.operator(operator.symbol(), left, right, position)?.expr;
        while let Some((left, right)) = fields.pop() {
            let less = self.operator(strict, left.clone(), right.clone(), position)?.expr;
            let equal = self.operator("=", left.clone(), right.clone(), position)?.expr;
            let bound = self.operator(loose, left, right, position)?.expr;
            expr = all_of(vec![bound, any_of(vec![less, all_of(vec![equal, expr])])]);
        }
        Ok(expr)
    }

    /// Binds LIKE, ILIKE and SIMILAR TO.
    pub(super) fn bind_like(
        &mut self,
        kind: LikeKind,
        operands: (&ast::Expr, &ast::Expr, Option<&ast::Expr>),
        negated: bool,
        position: usize,
    ) -> Result<Typed> {
        let value = self.bind_expr(operands.0)?;
        let pattern = self.bind_expr(operands.1)?;
        let pattern_position = pattern.position;
        let escape = operands.2.map(|escape| self.bind_expr(escape)).transpose()?;
        let pattern = match (kind, escape) {
            (LikeKind::SimilarTo, escape) => {
                let arguments = std::iter::once(pattern).chain(escape).collect();
                self.function("similar_to_escape", arguments, pattern_position)?
            }
            (_, Some(escape)) => {
                self.function("like_escape", vec![pattern, escape], pattern_position)?
            }
            (_, None) => pattern,
        };
        let symbol = match (kind, negated) {
            (LikeKind::Like, false) => "~~",
            (LikeKind::Like, true) => "!~~",
            (LikeKind::ILike, false) => "~~*",
            (LikeKind::ILike, true) => "!~~*",
            (LikeKind::SimilarTo, false) => "~",
            (LikeKind::SimilarTo, true) => "!~",
        };
        self.operator(symbol, value, pattern, position)
    }
}

/// Returns the conjunction.
pub(super) fn all_of(mut list: Vec<Expr>) -> Expr {
    if list.len() == 1 { list.remove(0) } else { Expr::And(list) }
}

/// Returns the disjunction.
pub(super) fn any_of(mut list: Vec<Expr>) -> Expr {
    if list.len() == 1 { list.remove(0) } else { Expr::Or(list) }
}

/// Returns the text of a number with the signs before it, which are part of it.
fn signed_number(operand: &ast::Expr) -> Option<String> {
    match operand {
        ast::Expr::Number { text, .. } => Some(text.clone()),
        ast::Expr::Unary { operator: ast::UnaryOperator::Minus, operand, .. } => {
            let text = signed_number(operand)?;
            Some(text.strip_prefix('-').map_or_else(|| format!("-{text}"), str::to_owned))
        }
        _ => None,
    }
}

/// Returns the value of a number with its sign.
pub(super) fn number(text: &str, position: usize) -> Result<Typed> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    if digits.bytes().all(|byte| byte.is_ascii_digit()) {
        if let Ok(value) = text.parse::<i32>() {
            return Ok(Typed::constant(Datum::Int4(value), DataType::Int4, position));
        }
        if let Ok(value) = text.parse::<i64>() {
            return Ok(Typed::constant(Datum::Int8(value), DataType::Int8, position));
        }
    }
    let value = parse(text, &DataType::Numeric, &TextStyle::default());
    let value = value.map_err(|error| Error::from(error).at(position))?;
    Ok(Typed::constant(value, DataType::Numeric, position))
}

const ONE_OPERAND: &str = "No operator matches the given name and argument type. \
                           You might need to add an explicit type cast.";

fn no_operator(shown: &str) -> Error {
    err!(UNDEFINED_FUNCTION: "operator does not exist: {shown}";
        hint "No operator matches the given name and argument types. You might need to add explicit type casts.")
}

fn ambiguous_operator(shown: &str) -> Error {
    err!(AMBIGUOUS_FUNCTION: "operator is not unique: {shown}";
        hint "Could not choose a best candidate operator. You might need to add explicit type casts.")
}

/// Checks that the operands of an operator have no conflicting explicit collations.
fn check_explicit_collations((left, right): (&ast::Expr, &ast::Expr)) -> Result<()> {
    let (Some((one, _)), Some((other, position))) = (collated(left), collated(right)) else {
        return Ok(());
    };
    if one == other {
        return Ok(());
    }
    let (one, other) = (one.name(), other.name());
    bail!(COLLATION_MISMATCH: "collation mismatch between explicit collations \"{one}\" and \"{other}\""; at position)
}

/// Returns the explicit collation of an expression or of its operands, with its position.
fn collated(expr: &ast::Expr) -> Option<(Collation, usize)> {
    match expr {
        ast::Expr::Collate { collation, position, .. } => Some((*collation, *position)),
        ast::Expr::Binary { operator: BinaryOperator::Concat, left, right, .. } => {
            collated(left).or_else(|| collated(right))
        }
        ast::Expr::Cast { operand, .. } => collated(operand),
        ast::Expr::Coalesce { operands, .. } => operands.iter().find_map(collated),
        _ => None,
    }
}
