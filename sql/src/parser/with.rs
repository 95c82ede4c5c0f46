//! Parsing of WITH: at the head of a statement by tokens, inside of expressions by lowering.
//!
//! A query of WITH RECURSIVE is recursive if the names of tables that were recorded while it was
//! parsed ([`TokenCursor::table_names`]) contain its own; names that refer to a nested WITH are
//! removed again.

use sqlparser::ast as parsed;
use sqlparser::tokenizer::Token;

use super::cursor::TokenCursor;
use super::error::{ParseError, Result};
use crate::ast::{Cycle, Ident, NamedQuery, NamedQueryBody, Search, Statement, WithClause};

/// The names that a WITH clause has declared so far.
#[derive(Default)]
struct DeclaredNames {
    /// Each name with the number of tables that were recorded before it became visible.
    names: Vec<(String, usize)>,
}

impl TokenCursor<'_> {
    /// Reads `WITH …` and the statement after it.
    pub(super) fn with<T>(
        &mut self,
        body: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<(WithClause, T)> {
        let position = self.position();
        self.expect_words(&["with"])?;
        // It may be the name of the first query.
        let names = matches!(self.parser.peek_nth_token_ref(1).token, Token::LParen)
            || self.is_words(&["recursive", "as"]);
        let recursive = !names && self.take_word("recursive");
        let mut declared = DeclaredNames::default();
        let queries = self.list(|cursor| cursor.named_query(recursive, &mut declared))?;
        let body = body(self)?;
        self.forget(&declared);
        Ok((WithClause { queries, recursive, position }, body))
    }

    fn named_query(&mut self, recursive: bool, declared: &mut DeclaredNames) -> Result<NamedQuery> {
        let name = self.name()?;
        let columns = match self.peek() {
            Token::LParen => self.parenthesized(Self::name)?,
            _ => Vec::new(),
        };
        self.expect_words(&["as"])?;
        let materialized = if self.take_word("materialized") {
            Some(true)
        } else if self.take_words(&["not", "materialized"]) {
            Some(false)
        } else {
            None
        };
        self.expect(&Token::LParen)?;
        let before = self.table_names.len();
        let body = match self.peek_word().as_str() {
            "merge" => {
                let message = "MERGE not supported in WITH query";
                return Err(ParseError::new("0A000", message, name.position));
            }
            "insert" | "update" | "delete" => {
                NamedQueryBody::Change(Box::new(self.change_statement()?))
            }
            _ => NamedQueryBody::Query(Box::new(self.query()?)),
        };
        self.expect(&Token::RParen)?;
        let search = self.search()?;
        let cycle = self.cycle()?;
        let is_recursive = self.note_name(recursive, &name, before, declared);
        Ok(NamedQuery { name, columns, materialized, body, is_recursive, search, cycle })
    }

    /// Reads `SEARCH …`, if it follows.
    fn search(&mut self) -> Result<Option<Search>> {
        let position = self.position();
        if !self.take_word("search") {
            return Ok(None);
        }
        let depth_first = self.take_word("depth");
        if !depth_first {
            self.expect_words(&["breadth"])?;
        }
        self.expect_words(&["first", "by"])?;
        let columns = self.list(Self::name)?;
        self.expect_words(&["set"])?;
        let sequence = self.name()?;
        Ok(Some(Search { depth_first, columns, sequence, position }))
    }

    /// Reads `CYCLE …`, if it follows.
    fn cycle(&mut self) -> Result<Option<Cycle>> {
        let position = self.position();
        if !self.take_word("cycle") {
            return Ok(None);
        }
        let columns = self.list(Self::name)?;
        self.expect_words(&["set"])?;
        let mark = self.name()?;
        let mut values = None;
        if self.take_word("to") {
            let found = self.expr()?;
            self.expect_words(&["default"])?;
            values = Some((found, self.expr()?));
        }
        self.expect_words(&["using"])?;
        let path = self.name()?;
        Ok(Some(Cycle { columns, mark, values, path, position }))
    }

    fn change_statement(&mut self) -> Result<Statement> {
        match self.peek_word().as_str() {
            "insert" => self.insert(),
            "update" => self.update(),
            _ => self.delete(),
        }
    }

    /// Lowers a WITH clause, then its query.
    pub(super) fn lower_with<T>(
        &mut self,
        with: parsed::With,
        body: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<(WithClause, T)> {
        let parsed::With { with_token, recursive, cte_tables } = with;
        let position = self.position_of(&with_token.0);
        let mut declared = DeclaredNames::default();
        let mut queries = Vec::with_capacity(cte_tables.len());
        for cte in cte_tables {
            queries.push(self.lower_named_query(cte, recursive, &mut declared)?);
        }
        let body = body(self)?;
        self.forget(&declared);
        Ok((WithClause { queries, recursive, position }, body))
    }

    fn lower_named_query(
        &mut self,
        cte: parsed::Cte,
        recursive: bool,
        declared: &mut DeclaredNames,
    ) -> Result<NamedQuery> {
        let parsed::Cte { alias, query, from, materialized, closing_paren_token: _ } = cte;
        let parsed::TableAlias { explicit: _, name, columns, at } = alias;
        let name = self.checked_alias(&name)?;
        if from.is_some() || at.is_some() {
            return Err(self.syntax_error_near(name.position));
        }
        let mut names = Vec::with_capacity(columns.len());
        for parsed::TableAliasColumnDef { name, data_type } in columns {
            let column = self.checked_alias(&name)?;
            if data_type.is_some() {
                return Err(self.syntax_error_near(column.position));
            }
            names.push(column);
        }
        let materialized = materialized.map(|word| match word {
            parsed::CteAsMaterialized::Materialized => true,
            parsed::CteAsMaterialized::NotMaterialized => false,
        });
        let before = self.table_names.len();
        let body = NamedQueryBody::Query(Box::new(self.lower_query(*query)?));
        let is_recursive = self.note_name(recursive, &name, before, declared);
        // `sqlparser` parses neither SEARCH nor CYCLE inside of expressions.
        let (search, cycle) = (None, None);
        let columns = names;
        Ok(NamedQuery { name, columns, materialized, body, is_recursive, search, cycle })
    }

    /// Records that a named query was read whose tables are those after the first `before`.
    /// Returns whether it is recursive.
    fn note_name(
        &mut self,
        recursive: bool,
        name: &Ident,
        before: usize,
        declared: &mut DeclaredNames,
    ) -> bool {
        let from = if recursive { before } else { self.table_names.len() };
        let reads_itself = self.table_names[from..].contains(&name.value);
        declared.names.push((name.value.clone(), from));
        reads_itself
    }

    /// Removes the tables that are queries of a completed WITH clause.
    fn forget(&mut self, declared: &DeclaredNames) {
        for (name, from) in declared.names.iter().rev() {
            let later = self.table_names.split_off(*from);
            self.table_names.extend(later.into_iter().filter(|table| table != name));
        }
    }
}
