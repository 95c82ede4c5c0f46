//! Parsing of CREATE, ALTER and DROP POLICY, and of the changes of row-level security in ALTER
//! TABLE.

use crate::ast::{
    AlterPolicy, CreatePolicy, Grantee, Ident, PolicyCommand, PolicyStatement, RowSecurityChange,
    SourceExpr, Statement, TableName,
};
use crate::parser::cursor::TokenCursor;
use crate::parser::error::{ParseError, Result};

fn policy_statement(statement: PolicyStatement) -> Result<Statement> {
    Ok(Statement::Policy(Box::new(statement)))
}

impl TokenCursor<'_> {
    /// Reads CREATE POLICY from `POLICY`.
    pub(in crate::parser) fn create_policy(&mut self) -> Result<Statement> {
        self.expect_words(&["policy"])?;
        let (name, table) = self.policy_of_table()?;
        let is_restrictive = match self.take_word("as") {
            true => self.policy_kind()?,
            false => false,
        };
        let command = match self.take_word("for") {
            true => self.policy_command()?,
            false => PolicyCommand::All,
        };
        let roles = self.policy_roles()?.unwrap_or_else(|| vec![Grantee::Public]);
        let (using, check) = self.policy_expressions()?;
        policy_statement(PolicyStatement::Create(CreatePolicy {
            name,
            table,
            is_restrictive,
            command,
            roles,
            using,
            check,
        }))
    }

    /// Reads ALTER POLICY after its words.
    pub(in crate::parser) fn alter_policy(&mut self) -> Result<Statement> {
        let if_exists = self.take_words(&["if", "exists"]);
        let (name, table) = self.policy_of_table()?;
        if if_exists || self.is_word("rename") {
            self.expect_words(&["rename", "to"])?;
            let to = self.name()?;
            return policy_statement(PolicyStatement::Rename { name, if_exists, table, to });
        }
        let roles = self.policy_roles()?;
        let (using, check) = self.policy_expressions()?;
        policy_statement(PolicyStatement::Alter(AlterPolicy { name, table, roles, using, check }))
    }

    /// Reads DROP POLICY after its words.
    pub(in crate::parser) fn drop_policy(&mut self) -> Result<Statement> {
        let if_exists = self.take_words(&["if", "exists"]);
        let (name, table) = self.policy_of_table()?;
        // Nothing depends on a policy.
        self.cascade();
        policy_statement(PolicyStatement::Drop { name, if_exists, table })
    }

    fn policy_of_table(&mut self) -> Result<(Ident, TableName)> {
        let name = self.name()?;
        self.expect_words(&["on"])?;
        Ok((name, self.table_name()?))
    }

    /// Reads PERMISSIVE or RESTRICTIVE; returns whether it is the latter.
    fn policy_kind(&mut self) -> Result<bool> {
        let position = self.position();
        let word = self.identifier(|_| true)?.value;
        match word.as_str() {
            "permissive" => Ok(false),
            "restrictive" => Ok(true),
            _ => {
                let message = format!("unrecognized row security option \"{word}\"");
                let hint = "Only PERMISSIVE or RESTRICTIVE policies are supported currently.";
                Err(ParseError::syntax(message, position).with_hint(hint))
            }
        }
    }

    fn policy_command(&mut self) -> Result<PolicyCommand> {
        let found = PolicyCommand::ALL.into_iter().find(|(_, word, _)| self.take_word(word));
        found.map(|(command, ..)| command).ok_or_else(|| self.unexpected())
    }

    fn policy_roles(&mut self) -> Result<Option<Vec<Grantee>>> {
        match self.take_word("to") {
            true => self.list(Self::grantee).map(Some),
            false => Ok(None),
        }
    }

    fn policy_expressions(&mut self) -> Result<(Option<SourceExpr>, Option<SourceExpr>)> {
        let using = match self.take_word("using") {
            true => Some(self.check_expr()?),
            false => None,
        };
        let check = match self.take_words(&["with", "check"]) {
            true => Some(self.check_expr()?),
            false => None,
        };
        Ok((using, check))
    }

    /// Reads `{ENABLE | DISABLE | [NO] FORCE} ROW LEVEL SECURITY`; `None` for anything else.
    pub(in crate::parser) fn row_security_change(&mut self) -> Option<RowSecurityChange> {
        let changes: [(&[&str], RowSecurityChange); 4] = [
            (&["enable"], RowSecurityChange::Enable(true)),
            (&["disable"], RowSecurityChange::Enable(false)),
            (&["force"], RowSecurityChange::Force(true)),
            (&["no", "force"], RowSecurityChange::Force(false)),
        ];
        let words = |first: &[&'static str]| [first, &["row", "level", "security"]].concat();
        let found = changes.into_iter().find(|(first, _)| self.take_words(&words(first)));
        found.map(|(_, change)| change)
    }
}
