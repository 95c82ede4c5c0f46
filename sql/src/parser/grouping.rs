//! Parsing of GROUP BY: expressions, lists of them, ROLLUP, CUBE and GROUPING SETS.
//!
//! `sqlparser` knows only grouping sets of expressions; PostgreSQL nests them. So they are parsed
//! where an expression may begin ([`parse_sets`]), as nested tuples. GROUP BY DISTINCT is an
//! internal marker token before the first entry ([`rewrite`](super::rewrite)).

use sqlparser::ast as parsed;
use sqlparser::ast::Expr as Parsed;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

use super::cursor::TokenCursor;
use super::error::{ParseError, Result};
use super::limits;
use super::rewrite::DISTINCT_GROUPS;
use crate::ast::{Expr, GroupItem};

/// Reads syntax specific to GROUP BY, if it is next: `()`, `ROLLUP (…)`, `CUBE (…)`, `GROUPING
/// SETS (…)` and the marker of DISTINCT.
pub(super) fn parse_sets(parser: &mut Parser) -> Option<std::result::Result<Parsed, ParserError>> {
    let is = |n: usize, token: &Token| parser.peek_nth_token_ref(n).token == *token;
    let word = |n: usize| match &parser.peek_nth_token_ref(n).token {
        Token::Word(word) if word.quote_style.is_none() => word.value.to_ascii_lowercase(),
        _ => String::new(),
    };
    let before = &parser.token_at(parser.get_current_index()).token;
    let may_be_empty = match before {
        Token::Word(word) => word.value == DISTINCT_GROUPS || word.value.eq_ignore_ascii_case("by"),
        before => matches!(before, Token::LParen | Token::Comma),
    };
    if may_be_empty && is(0, &Token::LParen) && is(1, &Token::RParen) {
        (0..2).for_each(|_| parser.advance_token());
        return Some(Ok(Parsed::Tuple(Vec::new())));
    }
    let words = match word(0).as_str() {
        "rollup" | "cube" if is(1, &Token::LParen) => 1,
        "grouping" if word(1) == "sets" && is(2, &Token::LParen) => 2,
        DISTINCT_GROUPS => {
            let prefix = parsed::Ident::with_span(parser.peek_token_ref().span, DISTINCT_GROUPS);
            parser.advance_token();
            let value = parser.parse_expr();
            return Some(value.map(|value| Parsed::Prefixed { prefix, value: Box::new(value) }));
        }
        _ => return None,
    };
    let name = word(0);
    (0..words).for_each(|_| parser.advance_token());
    Some(parse_list(parser).map(|items| match name.as_str() {
        "rollup" => Parsed::Rollup(items),
        "cube" => Parsed::Cube(items),
        _ => Parsed::GroupingSets(items),
    }))
}

fn parse_list(parser: &mut Parser) -> std::result::Result<Vec<Vec<Parsed>>, ParserError> {
    parser.expect_token(&Token::LParen)?;
    let items = parser.parse_comma_separated(|parser| Ok(vec![parser.parse_expr()?]))?;
    parser.expect_token(&Token::RParen)?;
    Ok(items)
}

impl TokenCursor<'_> {
    /// Lowers GROUP BY; returns its entries, and whether it is GROUP BY DISTINCT.
    pub(super) fn group_by(
        &mut self,
        group_by: parsed::GroupByExpr,
        position: usize,
    ) -> Result<(Vec<GroupItem>, bool)> {
        let mut list = match group_by {
            parsed::GroupByExpr::Expressions(list, modifiers) if modifiers.is_empty() => list,
            parsed::GroupByExpr::Expressions(..) => {
                return Err(ParseError::unsupported("this form of GROUP BY", position));
            }
            parsed::GroupByExpr::All(_) => {
                return Err(ParseError::unsupported("GROUP BY ALL", position));
            }
        };
        let mut distinct = false;
        if let Some(first) = list.first_mut()
            && let Parsed::Prefixed { prefix, value } = first
            && prefix.value == DISTINCT_GROUPS
        {
            distinct = true;
            *first = std::mem::replace(&mut **value, Parsed::Tuple(Vec::new()));
        }
        let items = list.into_iter().map(|item| self.group_item(item)).collect::<Result<_>>()?;
        Ok((items, distinct))
    }

    fn group_item(&mut self, item: Parsed) -> Result<GroupItem> {
        limits::with_stack(|| match item {
            Parsed::Tuple(list) => Ok(GroupItem::List(self.lower_list(list)?)),
            Parsed::Rollup(items) => Ok(GroupItem::Rollup(self.group_units(items)?)),
            Parsed::Cube(items) => {
                let units = self.group_units(items)?;
                let position = self.word_before(units[0][0].position(), "cube");
                Ok(GroupItem::Cube { units, position })
            }
            Parsed::GroupingSets(items) => {
                let items = items.into_iter().flatten().map(|item| self.group_item(item));
                Ok(GroupItem::Sets(items.collect::<Result<_>>()?))
            }
            other => Ok(GroupItem::Expr(self.lower(other)?)),
        })
    }

    /// Lowers the elements of ROLLUP and CUBE: expressions, and lists of them.
    fn group_units(&mut self, items: Vec<Vec<Parsed>>) -> Result<Vec<Vec<Expr>>> {
        let unit = |item| match item {
            Parsed::Tuple(list) if !list.is_empty() => self.lower_list(list),
            other => Ok(vec![self.lower(other)?]),
        };
        items.into_iter().flatten().map(unit).collect()
    }
}
