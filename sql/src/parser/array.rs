//! Lowering of `ARRAY[…]`, subscripts, and fields of rows.

use sqlparser::ast as parsed;
use sqlparser::ast::{AccessExpr, Expr as Parsed};
use sqlparser::tokenizer::Token;

use super::cursor::TokenCursor;
use super::error::{ParseError, Result};
use super::expr::PlacedExpr;
use crate::ast::{Expr, Subscript};

/// Moves the names before the first subscript into the operand: in `t.a[1]` the operand of the
/// subscript is `t.a`, and `t` is the name of a relation. After parentheses they are fields.
pub(super) fn with_leading_names(node: &mut Parsed, root: Parsed) -> Parsed {
    let Parsed::CompoundFieldAccess { access_chain, .. } = node else { return root };
    let mut names = match root {
        Parsed::Identifier(name) => vec![name],
        Parsed::CompoundIdentifier(names) => names,
        root => return root,
    };
    let is_name = |access: &AccessExpr| matches!(access, AccessExpr::Dot(Parsed::Identifier(_)));
    let count = access_chain.iter().take_while(|access| is_name(access)).count();
    names.extend(access_chain.drain(..count).filter_map(|access| match access {
        AccessExpr::Dot(Parsed::Identifier(name)) => Some(name),
        _ => None,
    }));
    match names.len() {
        1 => Parsed::Identifier(names.remove(0)),
        _ => Parsed::CompoundIdentifier(names),
    }
}

impl TokenCursor<'_> {
    /// Lowers `ARRAY[…]`, including nested brackets.
    pub(super) fn array(&mut self, array: parsed::Array) -> Result<PlacedExpr> {
        let mut elements = Vec::with_capacity(array.elem.len());
        let mut first = None;
        for element in array.elem {
            let element = match element {
                Parsed::Array(inner) => self.array(parsed::Array { named: false, ..inner })?,
                other => self.lower_placed(other)?,
            };
            first.get_or_insert(element.start);
            elements.push(element.expr);
        }
        let Some(first) = first else {
            return Ok(PlacedExpr { expr: Expr::Array { elements, position: 1 }, start: 1 });
        };
        let bracket = self.start_before(first, |token| *token == Token::LBracket);
        let position = if array.named { self.word_before(bracket, "array") } else { bracket };
        Ok(PlacedExpr { expr: Expr::Array { elements, position }, start: position })
    }

    /// Lowers `[1][2:3].name`.
    pub(super) fn accesses(
        &mut self,
        operand: Expr,
        chain: Vec<AccessExpr>,
        start: usize,
    ) -> Result<Expr> {
        let mut value = operand;
        let mut subscripts = Vec::new();
        for access in chain {
            let AccessExpr::Dot(field) = access else {
                subscripts.push(access);
                continue;
            };
            value = self.subscripted(value, std::mem::take(&mut subscripts), start)?;
            let name = match field {
                Parsed::Identifier(name) => self.ident(&name),
                _ => return Err(ParseError::unsupported("this field of a row value", start)),
            };
            value = Expr::Field { operand: Box::new(value), name };
        }
        self.subscripted(value, subscripts, start)
    }

    /// Rejects `f(x)[1]` and `row(1).f1`: PostgreSQL requires parentheses around everything except
    /// names, parameters and subqueries.
    pub(super) fn check_accessed(&mut self, node: &Parsed, root: &Parsed) -> Result<()> {
        let Parsed::CompoundFieldAccess { access_chain, .. } = node else { return Ok(()) };
        let is_parameter =
            |value: &parsed::ValueWithSpan| matches!(value.value, parsed::Value::Placeholder(_));
        match root {
            Parsed::Identifier(_)
            | Parsed::CompoundIdentifier(_)
            | Parsed::Nested(_)
            | Parsed::Subquery(_)
            | Parsed::CompoundFieldAccess { .. } => return Ok(()),
            Parsed::Value(value) if is_parameter(value) => return Ok(()),
            _ => {}
        }
        let position = match access_chain.first() {
            Some(AccessExpr::Subscript(parsed::Subscript::Index { index: first }))
            | Some(AccessExpr::Subscript(parsed::Subscript::Slice {
                lower_bound: Some(first),
                ..
            })) => {
                let first = self.lower_placed(first.clone())?.start;
                self.start_before(first, |token| *token == Token::LBracket)
            }
            Some(AccessExpr::Dot(field)) => {
                let first = self.lower_placed(field.clone())?.start;
                self.start_before(first, |token| *token == Token::Period)
            }
            _ => return Ok(()),
        };
        Err(self.syntax_error_near(position))
    }

    fn subscripted(&mut self, operand: Expr, chain: Vec<AccessExpr>, start: usize) -> Result<Expr> {
        if chain.is_empty() {
            return Ok(operand);
        }
        let subscripts = self.subscripts(chain, start)?;
        Ok(Expr::Subscript { operand: Box::new(operand), subscripts })
    }

    /// Lowers `[1][2:3]`.
    fn subscripts(&mut self, chain: Vec<AccessExpr>, start: usize) -> Result<Vec<Subscript>> {
        let mut subscripts = Vec::with_capacity(chain.len());
        for access in chain {
            subscripts.push(match access {
                AccessExpr::Subscript(parsed::Subscript::Index { index }) => {
                    Subscript::Index(self.lower(index)?)
                }
                AccessExpr::Subscript(parsed::Subscript::Slice {
                    lower_bound,
                    upper_bound,
                    stride: None,
                }) => Subscript::Slice {
                    lower: lower_bound.map(|bound| self.lower(bound)).transpose()?,
                    upper: upper_bound.map(|bound| self.lower(bound)).transpose()?,
                },
                _ => return Err(self.syntax_error_near(start)),
            });
        }
        Ok(subscripts)
    }
}
