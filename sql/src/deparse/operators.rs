//! Deparsing of operators, including comparisons of rows, and with lists, arrays and queries.

use types::{DataType, SqlType};

use crate::ast::{self, ArraySource, Expr, LikeKind};
use crate::binder::resolution_notes::common_type;
use crate::deparse::SqlWriter;
use crate::deparse::convert::{has_mixed_operator, implicit_conversion};
use crate::deparse::node::DeparseNode;

impl<'a> SqlWriter<'a> {
    pub(super) fn binary(
        &mut self,
        symbol: &str,
        (left, right): (&'a Expr, &'a Expr),
        position: usize,
    ) -> DeparseNode<'a> {
        match (left, right) {
            (Expr::Row { fields: left, .. }, Expr::Row { fields: right, .. }) => {
                self.compare_rows(symbol, left, right, position)
            }
            (Expr::Row { .. }, Expr::Subquery(query)) => {
                self.compared(left, (symbol, symbol), query, position)
            }
            _ => self.operation(symbol, (left, right), (position, 0)),
        }
    }

    /// Returns an operator, the nth one of this name at a position.
    pub(super) fn operation(
        &mut self,
        symbol: &str,
        sides: (&'a Expr, &'a Expr),
        place: (usize, usize),
    ) -> DeparseNode<'a> {
        let (left, right) = self.sides(symbol, sides, place);
        DeparseNode::Operator { symbol: symbol.to_owned(), operands: vec![left, right] }
    }

    /// Returns both operands of an operator, converted to its argument types.
    pub(super) fn sides(
        &mut self,
        symbol: &str,
        (left, right): (&'a Expr, &'a Expr),
        place: (usize, usize),
    ) -> (DeparseNode<'a>, DeparseNode<'a>) {
        let own = [self.type_of(left), self.type_of(right)];
        let wanted = self.wanted(symbol, own, place);
        (self.value(left, wanted[0].clone()), self.value(right, wanted[1].clone()))
    }

    /// Returns the argument types of an operator, where the operands need a conversion.
    fn wanted(
        &self,
        symbol: &str,
        own: [SqlType; 2],
        (position, nth): (usize, usize),
    ) -> [Option<SqlType>; 2] {
        let noted = self.notes.operands(position, symbol, nth);
        let noted = noted.or_else(|| self.notes.operands(position, symbol, 0));
        let Some([left, right]) = noted else { return [None, None] };
        if has_mixed_operator(symbol, &own[0].base, &own[1].base) {
            // For domains, the operator is that of the base types.
            return own.map(|own| Some(own.base_type()));
        }
        // A literal next to a `"char"` is one, too.
        let has = |data_type| own.iter().any(|one| one.base == data_type);
        if has(DataType::InternalChar) && has(DataType::Unknown) {
            return [(); 2].map(|()| Some(DataType::InternalChar.into()));
        }
        [(&own[0], left), (&own[1], right)].map(|(own, to)| {
            // `||` accepts any type next to a text.
            let is_text = matches!(
                own.base,
                DataType::Varchar | DataType::Char | DataType::Name | DataType::Unknown
            );
            let is_kept = symbol == "||" && to.base == DataType::Text && !is_text;
            (!is_kept).then(|| to.clone())
        })
    }

    pub(super) fn compare_rows(
        &mut self,
        symbol: &str,
        left: &'a [Expr],
        right: &'a [Expr],
        position: usize,
    ) -> DeparseNode<'a> {
        if matches!(symbol, "=" | "<>") {
            let pairs = left.iter().zip(right).enumerate();
            let mut tests: Vec<DeparseNode<'a>> = Vec::with_capacity(left.len());
            for (nth, pair) in pairs {
                tests.push(self.operation(symbol, pair, (position, nth)));
            }
            return match (tests.len(), symbol) {
                (1, _) => tests.remove(0),
                (_, "=") => DeparseNode::And(tests),
                _ => DeparseNode::Or(tests),
            };
        }
        if let ([left], [right]) = (left, right) {
            return self.operation(symbol, (left, right), (position, 0));
        }
        let (mut lefts, mut rights) = (Vec::new(), Vec::new());
        for pair in left.iter().zip(right) {
            let own = [self.type_of(pair.0), self.type_of(pair.1)];
            let common = common_type(&own.clone().map(|one| one.base)).map(SqlType::from);
            let wanted = match has_mixed_operator(symbol, &own[0].base, &own[1].base) {
                true => None,
                false => common,
            };
            lefts.push(self.value(pair.0, wanted.clone()));
            rights.push(self.value(pair.1, wanted));
        }
        DeparseNode::CompareRows { symbol: symbol.to_owned(), left: lefts, right: rights }
    }

    pub(super) fn distinct(
        &mut self,
        sides: (&'a Expr, &'a Expr),
        position: usize,
    ) -> DeparseNode<'a> {
        if let (Expr::Row { fields: left, .. }, Expr::Row { fields: right, .. }) = sides {
            let mut tests = Vec::with_capacity(left.len());
            for (nth, pair) in left.iter().zip(right).enumerate() {
                let (left, right) = self.sides("=", pair, (position, nth));
                tests.push(DeparseNode::Distinct(Box::new(left), Box::new(right)));
            }
            return if tests.len() == 1 { tests.remove(0) } else { DeparseNode::Or(tests) };
        }
        let is_null = |expr: &Expr| matches!(expr, Expr::Null { .. });
        if is_null(sides.0) || is_null(sides.1) {
            let operand = if is_null(sides.1) { sides.0 } else { sides.1 };
            let operand = self.boxed(operand);
            return DeparseNode::Test { operand, words: "IS NOT NULL", of_null: true };
        }
        let (left, right) = self.sides("=", sides, (position, 0));
        DeparseNode::Distinct(Box::new(left), Box::new(right))
    }

    /// Source: PostgreSQL's `transformAExprIn`.
    pub(super) fn in_list(
        &mut self,
        operand: &'a Expr,
        list: &'a [Expr],
        negated: bool,
        position: usize,
    ) -> DeparseNode<'a> {
        let (symbol, word) = if negated { ("<>", "ALL") } else { ("=", "ANY") };
        let mut tests = Vec::new();
        if let Expr::Row { fields, .. } = operand {
            for row in list {
                let Expr::Row { fields: right, .. } = row else { continue };
                tests.push(self.compare_rows(symbol, fields, right, position));
            }
            return match (tests.len(), negated) {
                (1, _) => tests.remove(0),
                (_, true) => DeparseNode::And(tests),
                (_, false) => DeparseNode::Or(tests),
            };
        }
        let own = self.type_of(operand);
        let (fixed, varying): (Vec<&'a Expr>, Vec<&'a Expr>) =
            list.iter().partition(|one| is_fixed(one));
        let types: Vec<DataType> = std::iter::once(own.base.clone())
            .chain(fixed.iter().map(|one| self.type_of(one).base))
            .collect();
        let common = common_type(&types).filter(|common| {
            fixed.len() > 1 && common.array().is_some() && common.element().is_none()
        });
        let mut rest: Vec<&'a Expr> = list.iter().collect();
        if let Some(common) = common {
            let element = match own.base == common {
                true => SqlType { modifier: -1, ..own.clone() },
                false => common.clone().into(),
            };
            let element = element.base_type();
            let elements =
                fixed.into_iter().map(|one| self.value(one, Some(element.clone()))).collect();
            let array: SqlType = common.array().unwrap_or(common).into();
            let right = DeparseNode::Array { elements, sql_type: array.clone() };
            let sides = (self.value(operand, None), right);
            tests.push(self.of_array(sides, (&own, &array), (symbol, word)));
            rest = varying;
        }
        for one in rest {
            let value = self.type_of(one);
            let wanted = match has_mixed_operator("=", &own.base, &value.base) {
                true => [None, None],
                false => {
                    let to = common_type(&[own.base.clone(), value.base.clone()]);
                    let to = to.map(|to| if to == DataType::Varchar { DataType::Text } else { to });
                    [to.clone().map(SqlType::from), to.map(SqlType::from)]
                }
            };
            let operands =
                vec![self.value(operand, wanted[0].clone()), self.value(one, wanted[1].clone())];
            tests.push(DeparseNode::Operator { symbol: symbol.to_owned(), operands });
        }
        match (tests.len(), negated) {
            (1, _) => tests.remove(0),
            (_, true) => DeparseNode::And(tests),
            (_, false) => DeparseNode::Or(tests),
        }
    }

    /// Returns a comparison with an array, both sides converted to the operator's argument types.
    fn of_array(
        &self,
        (left, right): (DeparseNode<'a>, DeparseNode<'a>),
        (own, array): (&SqlType, &SqlType),
        (symbol, word): (&str, &'static str),
    ) -> DeparseNode<'a> {
        let element = array.base.element().unwrap_or(&array.base);
        let (mut left, mut right) = (left, right);
        let written = SqlType { modifier: -1, ..array.clone() };
        if !has_mixed_operator(symbol, &own.base, element) {
            let common = common_type(&[own.base.clone(), element.clone()]);
            let common = common.unwrap_or_else(|| element.clone());
            let common = if common == DataType::Varchar { DataType::Text } else { common };
            left = implicit_conversion(left, own, &(&common).into());
            if let Some(of_common) = common.array() {
                right = implicit_conversion(right, array, &of_common.into());
            }
        }
        let symbol = symbol.to_owned();
        let array = Some(written).filter(|one| one.base.element().is_some());
        DeparseNode::OfArray { left: Box::new(left), symbol, word, right: Box::new(right), array }
    }

    pub(super) fn quantified(
        &mut self,
        left: &'a Expr,
        (symbol, word): (&str, &'static str),
        right: &'a ArraySource,
        position: usize,
    ) -> DeparseNode<'a> {
        let own = self.type_of(left);
        match right {
            ArraySource::Subquery(query) => {
                let words = match (symbol, word) {
                    ("=", "ANY") => "IN".to_owned(),
                    _ => format!("{symbol} {word}"),
                };
                self.compared(left, (symbol, &words), query, position)
            }
            ArraySource::Value(value) => {
                let (array, right) = match (&**value, own.base.array()) {
                    (Expr::String { value, .. }, array) => {
                        let array = array.unwrap_or(DataType::array_of(&DataType::Text));
                        let array = SqlType::from(array);
                        let right = self.literal(value, &array);
                        (array, right)
                    }
                    (value, _) => (self.type_of(value), self.value(value, None)),
                };
                let left = self.value(left, None);
                self.of_array((left, right), (&own, &array), (symbol, word))
            }
            ArraySource::Elements(elements) => {
                let types: Vec<DataType> =
                    elements.iter().map(|one| self.type_of(one).base).collect();
                let unknown = types.iter().all(|one| *one == DataType::Unknown);
                let common = if unknown {
                    DataType::Text
                } else {
                    common_type(&types).unwrap_or(DataType::Text)
                };
                let array: SqlType = common.array().unwrap_or_else(|| common.clone()).into();
                let elements = self.values(elements, Some(common.into()));
                let left = self.value(left, None);
                let right = DeparseNode::Array { elements, sql_type: array.clone() };
                self.of_array((left, right), (&own, &array), (symbol, word))
            }
        }
    }

    /// Returns a comparison with the rows of a query.
    pub(super) fn compared(
        &mut self,
        left: &'a Expr,
        (symbol, words): (&str, &str),
        query: &'a ast::QueryExpr,
        position: usize,
    ) -> DeparseNode<'a> {
        let mut written = Vec::new();
        let fields: &'a [Expr] = match left {
            Expr::Row { fields, .. } => fields,
            other => std::slice::from_ref(other),
        };
        for (nth, field) in fields.iter().enumerate() {
            let noted = self.notes.operands(position, symbol, nth);
            let own = self.type_of(field);
            let wanted = noted.and_then(|noted| noted.first().cloned());
            let mixes = noted.is_some_and(|noted| {
                matches!(noted, [left, _] if has_mixed_operator(symbol, &own.base, &left.base))
            });
            written.push(self.value(field, wanted.filter(|_| !mixes)));
        }
        let is_row = matches!(left, Expr::Row { .. }) && written.len() > 1;
        DeparseNode::Compared { left: written, is_row, words: words.to_owned(), query }
    }

    pub(super) fn like(
        &mut self,
        (kind, negated): (LikeKind, bool),
        (operand, pattern, escape): (&'a Expr, &'a Expr, Option<&'a Expr>),
        position: usize,
    ) -> DeparseNode<'a> {
        let symbol = match (kind, negated) {
            (LikeKind::Like, false) => "~~",
            (LikeKind::Like, true) => "!~~",
            (LikeKind::ILike, false) => "~~*",
            (LikeKind::ILike, true) => "!~~*",
            (LikeKind::SimilarTo, false) => "~",
            (LikeKind::SimilarTo, true) => "!~",
        };
        let wanted = self.notes.operands(position, symbol, 0).map(<[SqlType]>::to_vec);
        let at = |index: usize| wanted.as_ref().and_then(|wanted| wanted.get(index)).cloned();
        let left = self.value(operand, at(0));
        let text = Some(SqlType::from(DataType::Text));
        let function = match (kind, escape) {
            (LikeKind::SimilarTo, _) => Some("similar_to_escape"),
            (_, Some(_)) => Some("like_escape"),
            _ => None,
        };
        let right = match function {
            None => self.value(pattern, at(1)),
            Some(name) => {
                let mut arguments = vec![self.value(pattern, text.clone())];
                arguments.extend(escape.map(|escape| self.value(escape, text)));
                self.plain_call(name, arguments)
            }
        };
        DeparseNode::Operator { symbol: symbol.to_owned(), operands: vec![left, right] }
    }
}

/// Returns whether an expression references no columns and needs no look-up.
fn is_fixed(expr: &Expr) -> bool {
    match expr {
        Expr::Null { .. }
        | Expr::Boolean { .. }
        | Expr::Number { .. }
        | Expr::String { .. }
        | Expr::TypedString { .. }
        | Expr::Parameter { .. }
        | Expr::SqlValue { .. }
        | Expr::Subquery(_) => true,
        Expr::Unary { operand, .. } | Expr::Cast { operand, .. } => is_fixed(operand),
        Expr::Binary { left, right, .. } => is_fixed(left) && is_fixed(right),
        Expr::Call(call) => call.arguments.iter().all(|argument| is_fixed(&argument.value)),
        _ => false,
    }
}
