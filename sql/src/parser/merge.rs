//! Parsing of MERGE.

use sqlparser::tokenizer::Token;

use super::cursor::TokenCursor;
use super::error::{ParseError, Result};
use crate::ast::{
    AssignedValue, MergeActionClause, MergeStatement, MergeWhenClause, Overriding, Statement,
};

impl TokenCursor<'_> {
    pub(super) fn merge(&mut self) -> Result<Statement> {
        self.expect_words(&["merge", "into"])?;
        let table = self.table_name()?;
        let alias = self.target_alias("using")?;
        self.expect_words(&["using"])?;
        let source = self.table_ref()?;
        self.expect_words(&["on"])?;
        let condition = self.expr()?;
        let mut clauses = Vec::new();
        while self.is_word("when") {
            clauses.push(self.merge_clause()?);
        }
        if clauses.is_empty() {
            return Err(self.unexpected());
        }
        for matched in [true, false] {
            let mut of_kind = clauses.iter().filter(|clause| clause.matched == matched).rev();
            of_kind.next();
            if of_kind.any(|clause| clause.condition.is_none()) {
                let message = "unreachable WHEN clause specified after unconditional WHEN clause";
                return Err(ParseError::syntax(message, None));
            }
        }
        let with = None;
        Ok(Statement::Merge(Box::new(MergeStatement {
            with,
            table,
            alias,
            source,
            condition,
            clauses,
        })))
    }

    fn merge_clause(&mut self) -> Result<MergeWhenClause> {
        self.expect_words(&["when"])?;
        let matched = !self.take_word("not");
        self.expect_words(&["matched"])?;
        let condition = if self.take_word("and") { Some(self.expr()?) } else { None };
        self.expect_words(&["then"])?;
        let action = if self.take_words(&["do", "nothing"]) {
            MergeActionClause::Nothing
        } else if matched && self.take_word("delete") {
            MergeActionClause::Delete
        } else if matched && self.take_words(&["update", "set"]) {
            MergeActionClause::Update(self.assignments()?)
        } else if !matched && self.take_word("insert") {
            self.merge_insert()?
        } else {
            return Err(self.unexpected());
        };
        Ok(MergeWhenClause { matched, condition, action })
    }

    fn merge_insert(&mut self) -> Result<MergeActionClause> {
        let columns = match self.peek() {
            Token::LParen => self.parenthesized(Self::target_column)?,
            _ => Vec::new(),
        };
        let overriding = if self.take_words(&["overriding", "system", "value"]) {
            Some(Overriding::System)
        } else if self.take_words(&["overriding", "user", "value"]) {
            Some(Overriding::User)
        } else {
            None
        };
        if columns.is_empty() && self.take_words(&["default", "values"]) {
            return Ok(MergeActionClause::Insert { columns, overriding, values: None });
        }
        self.expect_words(&["values"])?;
        let values: Vec<AssignedValue> = self.parenthesized(Self::assigned_value)?;
        Ok(MergeActionClause::Insert { columns, overriding, values: Some(values) })
    }
}
