//! Lowering of expressions, from `sqlparser`'s tree to the syntax tree.
//!
//! Left-deep trees (`a + b + c …`) may be long, so the left spine is lowered in a loop; recursion
//! follows only parentheses and right operands, whose depth is limited.
//!
//! `sqlparser` does not store positions of operators and keywords. They are found by searching
//! backward from the operand that follows them.

use sqlparser::ast as parsed;
use sqlparser::ast::{ArrayElemTypeDef, CastKind, Expr as Parsed, Value, ValueWithSpan};
use sqlparser::tokenizer::Token;
use types::key_words;

use super::array::with_leading_names;
use super::call::interval_fields;
use super::constant_runs::run_of;
use super::cursor::TokenCursor;
use super::error::{ParseError, Result, sqlstate};
use super::limits;
use super::name;
use super::operator::{self, OperatorToken};
use super::tokens::sql_value_function;
use super::type_name::lower_type;
use crate::ast::{
    ArraySource, Expr, Ident, LikeKind, MAX_PARAMETER, Quantifier, QueryExpr, SourceExpr,
    Subscript, TruthTest, TypeName,
};

/// An expression with the position of its first character, parentheses included.
pub(super) struct PlacedExpr {
    pub(super) expr: Expr,
    pub(super) start: usize,
}

fn placed(expr: Expr, start: usize) -> Result<PlacedExpr> {
    Ok(PlacedExpr { expr, start })
}

impl TokenCursor<'_> {
    /// Reads an expression.
    pub(super) fn expr(&mut self) -> Result<Expr> {
        let parsed = self.parser.parse_expr().map_err(|error| self.translate(error))?;
        self.lower(parsed)
    }

    /// Reads an expression with its text.
    pub(super) fn source_expr(&mut self) -> Result<SourceExpr> {
        let start = self.byte();
        let expr = self.expr()?;
        Ok(SourceExpr { expr, text: self.text_since(start) })
    }

    pub(super) fn lower(&mut self, parsed: Parsed) -> Result<Expr> {
        self.lower_placed(parsed).map(|placed| placed.expr)
    }

    pub(super) fn lower_list(&mut self, list: Vec<Parsed>) -> Result<Vec<Expr>> {
        list.into_iter().map(|expr| self.lower(expr)).collect()
    }

    fn lower_boxed(&mut self, parsed: Box<Parsed>) -> Result<Box<Expr>> {
        self.lower(*parsed).map(Box::new)
    }

    /// Lowers the leaf of the left spine, then the nodes above it.
    pub(super) fn lower_placed(&mut self, parsed: Parsed) -> Result<PlacedExpr> {
        limits::with_stack(|| self.lower_spine(parsed))
    }

    fn lower_spine(&mut self, mut parsed: Parsed) -> Result<PlacedExpr> {
        let mut spine = Vec::new();
        while let Some(left) = left_operand(&mut parsed) {
            let leaf = std::mem::replace(left, Parsed::Tuple(Vec::new()));
            let leaf = with_leading_names(&mut parsed, leaf);
            check_associativity(&parsed, &leaf).map_err(|()| self.not_associative(&mut parsed))?;
            self.check_accessed(&parsed, &leaf)?;
            spine.push(parsed);
            parsed = leaf;
        }
        let mut left = self.lower_leaf(parsed)?;
        for node in spine.into_iter().rev() {
            let start = left.start;
            left = PlacedExpr { expr: self.lower_onto(node, left)?, start };
        }
        Ok(left)
    }

    /// Returns the syntax error for a chained non-associative operator.
    fn not_associative(&mut self, node: &mut Parsed) -> ParseError {
        let right = match node {
            Parsed::BinaryOp { right, .. }
            | Parsed::AnyOp { right, .. }
            | Parsed::AllOp { right, .. } => right,
            Parsed::Between { low, .. } => low,
            Parsed::Like { pattern, .. } | Parsed::ILike { pattern, .. } => pattern,
            _ => {
                return ParseError::syntax(
                    "an operator cannot be repeated without parentheses",
                    None,
                );
            }
        };
        let right = std::mem::replace(&mut **right, Parsed::Tuple(Vec::new()));
        match self.lower_placed(right) {
            Ok(right) => {
                let position =
                    self.start_before(right.start, |token| !matches!(token, Token::LParen));
                self.syntax_error_near(position)
            }
            Err(error) => error,
        }
    }

    /// Lowers a node whose left operand is already lowered.
    fn lower_onto(&mut self, node: Parsed, left: PlacedExpr) -> Result<Expr> {
        let start = left.start;
        let operand = Box::new(left.expr);
        let truth = |test, negated, operand| Ok(Expr::IsTruth { operand, test, negated });
        match node {
            Parsed::BinaryOp { op, right, .. } => self.binary(*operand, op, *right),
            Parsed::IsNull(_) => Ok(Expr::IsNull { operand, negated: false }),
            Parsed::IsNotNull(_) => Ok(Expr::IsNull { operand, negated: true }),
            Parsed::IsTrue(_) => truth(TruthTest::True, false, operand),
            Parsed::IsNotTrue(_) => truth(TruthTest::True, true, operand),
            Parsed::IsFalse(_) => truth(TruthTest::False, false, operand),
            Parsed::IsNotFalse(_) => truth(TruthTest::False, true, operand),
            Parsed::IsUnknown(_) => truth(TruthTest::Unknown, false, operand),
            Parsed::IsNotUnknown(_) => truth(TruthTest::Unknown, true, operand),
            Parsed::IsDistinctFrom(_, right) => self.distinct_from(operand, *right, false),
            Parsed::IsNotDistinctFrom(_, right) => self.distinct_from(operand, *right, true),
            Parsed::InList { list, negated, .. } => {
                let list = self.lower_list(list)?;
                let first = list.first().map_or(start, Expr::position);
                let position = self.test_before(first, "in", negated);
                Ok(Expr::InList { operand, list, negated, position })
            }
            Parsed::InSubquery { subquery, negated, .. } => {
                let query = Box::new(self.lower_query(*subquery)?);
                let position = self.test_before(query.position, "in", negated);
                Ok(Expr::InSubquery { operand, query, negated, position })
            }
            Parsed::Between { negated, low, high, .. } => {
                let low = self.lower_placed(*low)?;
                let position = self.test_before(low.start, "between", negated);
                let (low, high) = (Box::new(low.expr), self.lower_boxed(high)?);
                Ok(Expr::Between { operand, low, high, negated, position })
            }
            Parsed::Cast { kind, data_type, format, .. } => {
                self.postfix_cast(operand, start, &kind, &data_type, format.is_some())
            }
            Parsed::AtTimeZone { time_zone, .. } => {
                let zone = self.lower_placed(*time_zone)?;
                let position = self.word_before(zone.start, "at");
                Ok(self.call_of("timezone", position, vec![zone.expr, *operand]))
            }
            other => self.lower_onto_pattern(other, operand, start),
        }
    }

    /// Continues [`TokenCursor::lower_onto`] with patterns, ANY and ALL, and unsupported syntax.
    fn lower_onto_pattern(
        &mut self,
        node: Parsed,
        operand: Box<Expr>,
        start: usize,
    ) -> Result<Expr> {
        match node {
            Parsed::Like { negated, any: false, pattern, escape_char, .. } => {
                self.like((LikeKind::Like, negated), operand, *pattern, escape_char)
            }
            Parsed::ILike { negated, any: false, pattern, escape_char, .. } => {
                self.like((LikeKind::ILike, negated), operand, *pattern, escape_char)
            }
            Parsed::SimilarTo { negated, pattern, escape_char, .. } => {
                self.like((LikeKind::SimilarTo, negated), operand, *pattern, escape_char)
            }
            Parsed::AnyOp { compare_op, right, is_some: _, .. } => {
                self.quantified(*operand, &compare_op, Quantifier::Any, *right)
            }
            Parsed::AllOp { compare_op, right, .. } => {
                self.quantified(*operand, &compare_op, Quantifier::All, *right)
            }
            Parsed::Collate { collation, .. } => {
                let collation = self.collation(&collation, start)?;
                Ok(Expr::Collate { operand, collation, position: start })
            }
            Parsed::CompoundFieldAccess { access_chain, .. } => {
                self.accesses(*operand, access_chain, start)
            }
            Parsed::JsonAccess { .. } => Err(ParseError::unsupported("access to JSON", start)),
            Parsed::IsJson { .. } => Err(ParseError::unsupported("IS JSON", start)),
            Parsed::IsNormalized { form, negated, .. } => {
                Ok(self.is_normalized(*operand, form, negated, start))
            }
            _ => Err(ParseError::unsupported("this operator", start)),
        }
    }

    /// Returns the internal call for an operator that bennu does not have.
    pub(super) fn unknown_operator(
        &self,
        name: &str,
        position: usize,
        operands: Vec<Expr>,
    ) -> Expr {
        let (schema, name) = operator::unknown(name);
        let mut call = self.call_of(&name, position, operands);
        if let Expr::Call(call) = &mut call {
            let ident = |schema: &str| Ident { value: schema.to_owned(), position };
            call.name.schema = schema.map(ident);
        }
        call
    }

    fn binary(&mut self, left: Expr, op: parsed::BinaryOperator, right: Parsed) -> Result<Expr> {
        let right = self.lower_placed(right)?;
        if op == parsed::BinaryOperator::Overlaps {
            return self.overlaps(left, right);
        }
        let conditions = |left: Expr, right: Expr, and: bool| {
            let mut operands = match left {
                Expr::And(operands) if and => operands,
                Expr::Or(operands) if !and => operands,
                other => vec![other],
            };
            operands.push(right);
            if and { Expr::And(operands) } else { Expr::Or(operands) }
        };
        match operator::lower(&op) {
            Some(OperatorToken::And) => Ok(conditions(left, right.expr, true)),
            Some(OperatorToken::Or) => Ok(conditions(left, right.expr, false)),
            Some(OperatorToken::Plain(operator)) => {
                let position = self.start_before(right.start, |token| {
                    !matches!(token, Token::LParen | Token::Whitespace(_))
                });
                Ok(Expr::Binary {
                    operator,
                    left: Box::new(left),
                    right: Box::new(right.expr),
                    position,
                })
            }
            None => {
                let position =
                    self.start_before(right.start, |token| !matches!(token, Token::LParen));
                match &op {
                    parsed::BinaryOperator::Custom(name) => {
                        Ok(self.unknown_operator(name, position, vec![left, right.expr]))
                    }
                    _ => Err(self.syntax_error_near(position)),
                }
            }
        }
    }

    fn like(
        &mut self,
        (kind, negated): (LikeKind, bool),
        operand: Box<Expr>,
        pattern: Parsed,
        escape: Option<Box<Parsed>>,
    ) -> Result<Expr> {
        let pattern = self.lower_placed(pattern)?;
        let word = match kind {
            LikeKind::Like => "like",
            LikeKind::ILike => "ilike",
            LikeKind::SimilarTo => "similar",
        };
        let position = self.test_before(pattern.start, word, negated);
        let pattern = Box::new(pattern.expr);
        let escape = escape.map(|escape| self.lower_boxed(escape)).transpose()?;
        Ok(Expr::Like { kind, operand, pattern, escape, negated, position })
    }

    fn distinct_from(&mut self, left: Box<Expr>, right: Parsed, negated: bool) -> Result<Expr> {
        let right = self.lower_placed(right)?;
        let position = self.word_before(right.start, "is");
        Ok(Expr::IsDistinct { left, right: Box::new(right.expr), negated, position })
    }

    /// Returns the position of a test with this keyword before `position`, including its NOT.
    fn test_before(&self, position: usize, word: &str, negated: bool) -> usize {
        let found = self.word_before(position, word);
        if negated { self.word_before(found, "not") } else { found }
    }

    fn quantified(
        &mut self,
        left: Expr,
        operator: &parsed::BinaryOperator,
        quantifier: Quantifier,
        right: Parsed,
    ) -> Result<Expr> {
        let right = match right {
            Parsed::Nested(inner) => *inner,
            other => other,
        };
        let (right, start) = match right {
            Parsed::Subquery(query) => {
                let query = self.lower_query(*query)?;
                let start = query.position;
                (ArraySource::Subquery(Box::new(query)), start)
            }
            Parsed::Array(parsed::Array { elem, named: true })
                if !elem.iter().any(|one| matches!(one, Parsed::Array(_))) =>
            {
                let first = elem
                    .into_iter()
                    .map(|expr| self.lower_placed(expr))
                    .collect::<Result<Vec<_>>>()?;
                let start = first.first().map_or(0, |placed| placed.start);
                (
                    ArraySource::Elements(first.into_iter().map(|placed| placed.expr).collect()),
                    start,
                )
            }
            other => {
                let value = self.lower_placed(other)?;
                (ArraySource::Value(Box::new(value.expr)), value.start)
            }
        };
        let word = self.start_before(start, |token| {
            matches!(token, Token::Word(word) if ["any", "some", "all"].iter().any(|w| word.value.eq_ignore_ascii_case(w)))
        });
        let position = self.start_before(word, |_| true);
        let operator = match (operator::lower(operator), operator) {
            (Some(OperatorToken::Plain(operator)), _) => operator,
            (None, parsed::BinaryOperator::Custom(name)) => {
                let element = element_of(right, position);
                return Ok(self.unknown_operator(name, position, vec![left, element]));
            }
            _ => return Err(self.syntax_error_near(position)),
        };
        Ok(Expr::Quantified { left: Box::new(left), operator, quantifier, right, position })
    }

    /// Returns `operand::type`. The `::` is the first one after the operand.
    fn postfix_cast(
        &self,
        operand: Box<Expr>,
        start: usize,
        kind: &CastKind,
        data_type: &parsed::DataType,
        format: bool,
    ) -> Result<Expr> {
        if *kind != CastKind::DoubleColon || format {
            return Err(ParseError::unsupported("this form of CAST", start));
        }
        let from = match &*operand {
            Expr::Cast { type_name, .. } => type_name.position,
            _ => start,
        };
        let (position, type_position) = self.double_colon_after(from);
        let type_name = lower_type(data_type, type_position)?;
        Ok(Expr::Cast { operand, type_name, position })
    }

    /// Returns the position of the next `::` outside of parentheses, and of the token after it.
    fn double_colon_after(&self, from: usize) -> (usize, usize) {
        let Some(first) = self.token_index(from) else { return (from, from) };
        let mut depth = 0_i32;
        for index in first..self.token_count {
            let token = self.parser.token_at(index);
            match token.token {
                Token::LParen | Token::LBracket => depth += 1,
                Token::RParen | Token::RBracket => depth -= 1,
                Token::DoubleColon if depth <= 0 => {
                    let behind = (index + 1..self.token_count)
                        .map(|index| self.parser.token_at(index))
                        .find(|token| !matches!(token.token, Token::Whitespace(_)));
                    let position = self.source.position(token.span.start);
                    return (position, behind.map_or(position, |token| self.position_of(token)));
                }
                _ => {}
            }
        }
        (from, from)
    }

    /// Lowers a node without a left operand.
    fn lower_leaf(&mut self, node: Parsed) -> Result<PlacedExpr> {
        match node {
            Parsed::Identifier(ident) => self.identifier_value(&ident),
            Parsed::CompoundIdentifier(parts) => {
                let parts = self.qualified(&parts)?;
                let start = parts.first().map_or(1, |part| part.position);
                placed(Expr::Column(parts), start)
            }
            Parsed::Value(value) => self.value(value),
            Parsed::Nested(inner) => {
                let inner = self.lower_placed(*inner)?;
                let start = self.start_before(inner.start, |token| *token == Token::LParen);
                // The inner expression remains a node of its own: `(a and b) and c` is not
                // flattened, and a row remains a row.
                placed(inner.expr, start)
            }
            Parsed::Tuple(fields) if fields.is_empty() => Err(self.unexpected()),
            Parsed::Tuple(fields) => self.row(fields),
            Parsed::UnaryOp { op, expr } => self.unary(&op, *expr),
            Parsed::Function(function) => self.function(function),
            Parsed::Cast { kind, expr, data_type, format } => {
                self.prefix_cast(&kind, *expr, &data_type, format.is_some())
            }
            Parsed::Case { case_token, end_token: _, operand, conditions, else_result } => {
                let position = self.position_of(&case_token.0);
                self.case(position, operand, conditions, else_result)
            }
            Parsed::Array(array) => self.array(array),
            Parsed::Exists { subquery, negated } => {
                let query = self.lower_query(*subquery)?;
                let start = self.word_before(query.position, "exists");
                let exists = Expr::Exists(Box::new(QueryExpr { position: start, ..query }));
                placed(if negated { Expr::Not(Box::new(exists)) } else { exists }, start)
            }
            Parsed::Subquery(query) => {
                let query = self.lower_query(*query)?;
                let start = self.start_before(query.position, |token| *token == Token::LParen);
                placed(Expr::Subquery(Box::new(QueryExpr { position: start, ..query })), start)
            }
            Parsed::QualifiedWildcard(relation, _) => {
                let relation = self.object_name(&relation)?;
                let start = relation.first().map_or(1, |part| part.position);
                placed(Expr::WholeRow(relation), start)
            }
            Parsed::TypedString(typed) => self.typed_string(typed),
            Parsed::Interval(interval) => self.interval(interval),
            other => self.special_call(other),
        }
    }

    fn row(&mut self, fields: Vec<Parsed>) -> Result<PlacedExpr> {
        let mut lowered = Vec::with_capacity(fields.len());
        let mut start = None;
        for field in fields {
            let field = self.lower_placed(field)?;
            start.get_or_insert(field.start);
            lowered.push(field.expr);
        }
        let start = start.unwrap_or_else(|| self.position());
        let position = self.start_before(start, |token| *token == Token::LParen);
        placed(Expr::Row { fields: lowered, position }, position)
    }

    fn prefix_cast(
        &mut self,
        kind: &CastKind,
        operand: Parsed,
        data_type: &parsed::DataType,
        format: bool,
    ) -> Result<PlacedExpr> {
        let operand = self.lower_placed(operand)?;
        let position = self.word_before(operand.start, "cast");
        if *kind != CastKind::Cast || format {
            return Err(ParseError::unsupported("this form of CAST", position));
        }
        let type_name = lower_type(data_type, self.type_position(data_type, position))?;
        let expr = Expr::Cast { operand: Box::new(operand.expr), type_name, position };
        placed(expr, position)
    }

    /// Returns the position of a type name, or `otherwise` for one whose keywords have no
    /// position.
    pub(super) fn type_position(&self, data_type: &parsed::DataType, otherwise: usize) -> usize {
        let mut data_type = data_type;
        while let parsed::DataType::Array(ArrayElemTypeDef::SquareBracket(element, _)) = data_type {
            data_type = element;
        }
        let first = match data_type {
            parsed::DataType::Custom(name, _) => name.0.first().and_then(|part| part.as_ident()),
            _ => None,
        };
        first.map_or(otherwise, |first| self.source.position(first.span.start))
    }

    fn case(
        &mut self,
        position: usize,
        operand: Option<Box<Parsed>>,
        conditions: Vec<parsed::CaseWhen>,
        otherwise: Option<Box<Parsed>>,
    ) -> Result<PlacedExpr> {
        let operand = operand.map(|operand| self.lower_boxed(operand)).transpose()?;
        let mut branches = Vec::with_capacity(conditions.len());
        for parsed::CaseWhen { condition, result } in conditions {
            branches.push((self.lower(condition)?, self.lower(result)?));
        }
        let otherwise = otherwise.map(|expr| self.lower_boxed(expr)).transpose()?;
        placed(Expr::Case { operand, branches, otherwise, position }, position)
    }

    fn unary(&mut self, op: &parsed::UnaryOperator, operand: Parsed) -> Result<PlacedExpr> {
        let operand = self.lower_placed(operand)?;
        if *op == parsed::UnaryOperator::Not {
            let start = self.word_before(operand.start, "not");
            return placed(Expr::Not(Box::new(operand.expr)), start);
        }
        let position = self.start_before(operand.start, |token| !matches!(token, Token::LParen));
        let Some(operator) = operator::lower_unary(op) else {
            return Err(ParseError::unsupported(format!("operator {op}"), position));
        };
        let operand = Box::new(operand.expr);
        placed(Expr::Unary { operator, operand, position }, position)
    }

    // ---- names and literals ----

    /// Folds a parsed identifier.
    pub(super) fn ident(&self, ident: &parsed::Ident) -> Ident {
        let value = name::fold(&ident.value, ident.quote_style.is_some());
        debug_assert!(value.len() <= name::IDENTIFIER_BYTES, "a name of {} bytes", value.len());
        let position = self.source.position(ident.span.start);
        Ident { value, position }
    }

    /// Folds the parts of a name; the first one must be allowed as a column name.
    pub(super) fn qualified(&self, parts: &[parsed::Ident]) -> Result<Vec<Ident>> {
        if let Some(first) = parts.first() {
            self.checked_alias(first)?;
        }
        let mut parts: Vec<Ident> = parts.iter().map(|part| self.ident(part)).collect();
        if parts.len() == 4 {
            // Database, schema, table and column.
            let written: Vec<String> = parts.iter().map(|part| part.value.clone()).collect();
            let written: Vec<&str> = written.iter().map(String::as_str).collect();
            self.source.note_database(name::database_of(&parts[..1], &written)?);
            parts.remove(0);
        }
        Ok(parts)
    }

    fn identifier_value(&self, parsed: &parsed::Ident) -> Result<PlacedExpr> {
        let ident = self.ident(parsed);
        let position = ident.position;
        if parsed.quote_style.is_some() {
            return placed(Expr::Column(vec![ident]), position);
        }
        if let Some(function) = sql_value_function(&ident.value) {
            return placed(Expr::SqlValue { function, precision: None, position }, position);
        }
        if ident.value == "default" {
            return Err(ParseError::syntax("DEFAULT is not allowed in this context", position));
        }
        if !key_words::is_column_name(&ident.value) {
            return Err(self.syntax_error_near(position));
        }
        placed(Expr::Column(vec![ident]), position)
    }

    fn value(&self, parsed: ValueWithSpan) -> Result<PlacedExpr> {
        let position = self.source.position(parsed.span.start);
        let expr = match parsed.value {
            Value::Null => Expr::Null { position },
            Value::Boolean(value) => Expr::Boolean { value, position },
            Value::Number(text, false) => Expr::Number { text: text.replace('_', ""), position },
            Value::SingleQuotedString(value)
            | Value::EscapedStringLiteral(value)
            | Value::UnicodeStringLiteral(value) => Expr::String { value, position },
            Value::DollarQuotedString(quoted) => Expr::String { value: quoted.value, position },
            Value::Placeholder(text) => {
                if let Some(run) = run_of(&text, self.source.text(), position) {
                    return placed(Expr::Constants(run), position);
                }
                parameter(&text, position).ok_or_else(|| self.bad_placeholder(&text, position))?
            }
            Value::SingleQuotedByteStringLiteral(digits) => bit_string('b', &digits, position),
            Value::HexStringLiteral(digits) => bit_string('x', &digits, position),
            Value::NationalStringLiteral(value) => {
                let sql_type = types::DataType::Char.into();
                let type_name = TypeName { sql_type, named: None, collation: None, position };
                Expr::TypedString { type_name, value, position: position + 1 }
            }
            _ => return Err(self.syntax_error_near(position)),
        };
        placed(expr, position)
    }

    fn bad_placeholder(&self, text: &str, position: usize) -> ParseError {
        if text.strip_prefix('$').is_some_and(|n| n.bytes().all(|b| b.is_ascii_digit())) {
            let message = format!("there is no parameter {text}");
            return ParseError::new(sqlstate::UNDEFINED_PARAMETER, message, position);
        }
        self.syntax_error_near(position).with_hint("Parameters are written $1, $2 and so on.")
    }

    fn typed_string(&mut self, typed: parsed::TypedString) -> Result<PlacedExpr> {
        let parsed::TypedString { data_type, value, uses_odbc_syntax } = typed;
        let value = self.value(value)?;
        let position = value.start;
        let start = self.start_before(position, |_| true);
        if uses_odbc_syntax {
            return Err(self.syntax_error_near(start));
        }
        let Expr::String { value, .. } = value.expr else {
            return Err(self.syntax_error_near(position));
        };
        let type_name = lower_type(&data_type, start)?;
        placed(Expr::TypedString { type_name, value, position }, start)
    }

    fn interval(&mut self, interval: parsed::Interval) -> Result<PlacedExpr> {
        let parsed::Interval {
            value,
            leading_field,
            leading_precision,
            last_field,
            fractional_seconds_precision,
        } = interval;
        let value = self.lower_placed(*value)?;
        let position = self.word_before(value.start, "interval");
        let Expr::String { value, position: at, .. } = value.expr else {
            return Err(self.syntax_error_near(value.start));
        };
        let fields = interval_fields(leading_field.as_ref(), last_field.as_ref())
            .map_err(|()| self.syntax_error_near(at))?;
        let precision = fractional_seconds_precision.or(leading_precision);
        let sql_type = super::type_name::interval(fields, precision, position)?;
        let type_name = TypeName { sql_type, named: None, collation: None, position };
        placed(Expr::TypedString { type_name, value, position: at }, position)
    }
}

/// Returns the left operand of a node that has one.
fn left_operand(node: &mut Parsed) -> Option<&mut Parsed> {
    match node {
        Parsed::BinaryOp { left, .. }
        | Parsed::AnyOp { left, .. }
        | Parsed::AllOp { left, .. }
        | Parsed::IsDistinctFrom(left, _)
        | Parsed::IsNotDistinctFrom(left, _)
        | Parsed::IsNull(left)
        | Parsed::IsNotNull(left)
        | Parsed::IsTrue(left)
        | Parsed::IsNotTrue(left)
        | Parsed::IsFalse(left)
        | Parsed::IsNotFalse(left)
        | Parsed::IsUnknown(left)
        | Parsed::IsNotUnknown(left)
        | Parsed::IsJson { expr: left, .. }
        | Parsed::IsNormalized { expr: left, .. }
        | Parsed::InList { expr: left, .. }
        | Parsed::InSubquery { expr: left, .. }
        | Parsed::InUnnest { expr: left, .. }
        | Parsed::Between { expr: left, .. }
        | Parsed::Like { expr: left, .. }
        | Parsed::ILike { expr: left, .. }
        | Parsed::SimilarTo { expr: left, .. }
        | Parsed::RLike { expr: left, .. }
        | Parsed::Cast { kind: CastKind::DoubleColon, expr: left, .. }
        | Parsed::AtTimeZone { timestamp: left, .. }
        | Parsed::Collate { expr: left, .. }
        | Parsed::JsonAccess { value: left, .. }
        | Parsed::CompoundFieldAccess { root: left, .. }
        | Parsed::UnaryOp { op: parsed::UnaryOperator::PGPostfixFactorial, expr: left } => {
            Some(left)
        }
        _ => None,
    }
}

/// Rejects `a < b < c` and `a like b like c`, which PostgreSQL's grammar does not allow.
fn check_associativity(node: &Parsed, left: &Parsed) -> std::result::Result<(), ()> {
    let class = |node: &Parsed| match node {
        Parsed::BinaryOp { op, .. } if operator::is_comparison(op) => 1,
        Parsed::AnyOp { compare_op, .. } | Parsed::AllOp { compare_op, .. }
            if operator::is_comparison(compare_op) =>
        {
            1
        }
        Parsed::Between { .. }
        | Parsed::Like { .. }
        | Parsed::ILike { .. }
        | Parsed::SimilarTo { .. } => 2,
        _ => 0,
    };
    // The parenthesis after ANY ends the operand.
    let ends = matches!(left, Parsed::AnyOp { .. } | Parsed::AllOp { .. });
    match (class(node), class(left)) {
        _ if ends => Ok(()),
        (1, 1) | (2, 2) => Err(()),
        _ => Ok(()),
    }
}

/// Returns an element of an array, or the only column of a query, for its type.
fn element_of(array: ArraySource, position: usize) -> Expr {
    match array {
        ArraySource::Subquery(query) => Expr::Subquery(query),
        ArraySource::Elements(elements) => match elements.into_iter().next() {
            Some(first) => first,
            None => Expr::Array { elements: Vec::new(), position },
        },
        ArraySource::Value(operand) => {
            let first = Expr::Number { text: "1".to_owned(), position };
            Expr::Subscript { operand, subscripts: vec![Subscript::Index(first)] }
        }
    }
}

/// Returns the parameter of `$n`.
fn parameter(text: &str, position: usize) -> Option<Expr> {
    let digits = text.strip_prefix('$')?;
    let number: u32 = digits.parse().ok()?;
    (1..=MAX_PARAMETER).contains(&number).then_some(Expr::Parameter { number, position })
}

/// Returns the constant of `B'…'` or `X'…'`.
fn bit_string(form: char, digits: &str, position: usize) -> Expr {
    let sql_type = types::DataType::Bit.into();
    let type_name = TypeName { sql_type, named: None, collation: None, position };
    Expr::TypedString { type_name, value: format!("{form}{digits}"), position }
}
