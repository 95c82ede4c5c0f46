//! Parsing of CREATE TABLE … AS, SELECT … INTO and CREATE MATERIALIZED VIEW, which are one
//! statement in the tree; REFRESH.

use sqlparser::ast as parsed;
use sqlparser::tokenizer::Token;

use super::cursor::TokenCursor;
use super::ddl::temporary as temporary_name;
use super::error::{ParseError, Result};
use crate::ast::{CreateAsKind, CreateTableAs, QueryExpr, Refresh, Statement, TableName};

/// The INTO clause of a SELECT: only the first SELECT of a statement may have one.
#[derive(Debug, Clone)]
pub(super) enum SelectIntoClause {
    /// It is not allowed.
    Refused,
    /// The SELECT at this position may have it.
    AllowedAt(usize),
    /// It was read.
    Found {
        /// The table.
        name: TableName,
        /// `INTO UNLOGGED`
        unlogged: bool,
    },
}

impl TokenCursor<'_> {
    /// Returns whether CREATE TABLE … AS follows after the name of a table.
    pub(super) fn begins_table_as(&self) -> bool {
        if self.is_word("as") || self.is_words(&["with"]) || self.is_words(&["on", "commit"]) {
            return true;
        }
        // A list of bare names.
        self.peek() == &Token::LParen
            && matches!(self.parser.peek_nth_token_ref(1).token, Token::Word(_))
            && matches!(self.parser.peek_nth_token_ref(2).token, Token::Comma | Token::RParen)
    }

    /// Reads CREATE TABLE … AS after the table's name.
    pub(super) fn create_table_as(
        &mut self,
        if_not_exists: bool,
        name: TableName,
    ) -> Result<Statement> {
        let columns = match self.peek() {
            Token::LParen => self.parenthesized(Self::name)?,
            _ => Vec::new(),
        };
        self.heap()?;
        let options = self.with_options()?;
        let on_commit = self.on_commit()?;
        self.default_tablespace()?;
        self.expect_words(&["as"])?;
        let query = match self.is_word("execute") {
            true => Box::new(self.statement()?),
            false => Box::new(Statement::Query(Box::new(self.source_query()?.query))),
        };
        let with_data = self.with_data()?;
        Ok(Statement::CreateTableAs(Box::new(CreateTableAs {
            if_not_exists,
            name,
            columns,
            options,
            query,
            with_data,
            made: CreateAsKind::Table,
            on_commit,
            unlogged: false,
        })))
    }

    /// Reads CREATE MATERIALIZED VIEW from the word MATERIALIZED.
    pub(super) fn create_materialized_view(&mut self) -> Result<Statement> {
        self.expect_words(&["materialized", "view"])?;
        let if_not_exists = self.take_words(&["if", "not", "exists"]);
        let name = self.table_name()?;
        let columns = match self.peek() {
            Token::LParen => self.parenthesized(Self::name)?,
            _ => Vec::new(),
        };
        self.heap()?;
        let options = self.with_options()?;
        self.default_tablespace()?;
        self.expect_words(&["as"])?;
        let source = self.source_query()?;
        let with_data = self.with_data()?;
        Ok(Statement::CreateTableAs(Box::new(CreateTableAs {
            if_not_exists,
            name,
            columns,
            options,
            query: Box::new(Statement::Query(Box::new(source.query.clone()))),
            with_data,
            made: CreateAsKind::MaterializedView(Box::new(source)),
            on_commit: None,
            unlogged: false,
        })))
    }

    /// Reads REFRESH MATERIALIZED VIEW.
    pub(super) fn refresh(&mut self) -> Result<Statement> {
        self.expect_words(&["refresh", "materialized", "view"])?;
        let concurrently = self.take_word("concurrently");
        let name = self.table_name()?;
        let with_data = self.with_data()?;
        Ok(Statement::Refresh(Refresh { concurrently, name, with_data }))
    }

    /// Reads `[WITH [NO] DATA]`.
    pub(super) fn with_data(&mut self) -> Result<bool> {
        if self.take_words(&["with", "no", "data"]) {
            return Ok(false);
        }
        if self.take_word("with") {
            self.expect_words(&["data"])?;
        }
        Ok(true)
    }

    /// Reads a query whose first SELECT may have an INTO clause.
    pub(super) fn query_or_into(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<QueryExpr>,
    ) -> Result<Statement> {
        self.into = self.first_select();
        let query = read(self)?;
        let query = Statement::Query(Box::new(query));
        let SelectIntoClause::Found { name, unlogged } =
            std::mem::replace(&mut self.into, SelectIntoClause::Refused)
        else {
            return Ok(query);
        };
        Ok(Statement::CreateTableAs(Box::new(CreateTableAs {
            if_not_exists: false,
            name,
            columns: Vec::new(),
            options: Vec::new(),
            query: Box::new(query),
            with_data: true,
            made: CreateAsKind::Into,
            on_commit: None,
            unlogged,
        })))
    }

    /// Returns the position of the next SELECT, after opening parentheses.
    fn first_select(&self) -> SelectIntoClause {
        let mut ahead = 0;
        while self.parser.peek_nth_token_ref(ahead).token == Token::LParen {
            ahead += 1;
        }
        let token = self.parser.peek_nth_token_ref(ahead);
        match &token.token {
            Token::Word(word) if word.value.eq_ignore_ascii_case("select") => {
                SelectIntoClause::AllowedAt(self.position_of(token))
            }
            _ => SelectIntoClause::Refused,
        }
    }

    /// Records the target table of SELECT … INTO.
    pub(super) fn take_into(&mut self, into: &parsed::SelectInto, select: usize) -> Result<()> {
        let parsed::SelectInto { temporary, unlogged, table: _, targets } = into;
        let parts = match targets.as_slice() {
            [parsed::Expr::Identifier(name)] => std::slice::from_ref(name),
            [parsed::Expr::CompoundIdentifier(parts)] => parts,
            _ => return Err(self.syntax_error_near(select)),
        };
        let parts =
            parts.iter().map(|part| self.checked_alias(part)).collect::<Result<Vec<_>>>()?;
        let position = parts.first().map_or(select, |part| part.position);
        if !matches!(self.into, SelectIntoClause::AllowedAt(at) if at == select) {
            return Err(ParseError::syntax("SELECT ... INTO is not allowed here", position));
        }
        let name = self.without_database(parts)?;
        let name = if *temporary { temporary_name(name)? } else { name };
        self.into = SelectIntoClause::Found { name, unlogged: *unlogged };
        Ok(())
    }
}
