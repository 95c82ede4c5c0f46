//! Parsing of statements on roles: `CREATE ROLE`, `ALTER ROLE`, `DROP ROLE`, and the memberships of
//! `GRANT` and `REVOKE`.

use sqlparser::tokenizer::Token;
use types::key_words;

use crate::ast::{
    Ident, MembershipChange, Role, RoleAttribute, RoleOptions, RoleStatement, Statement,
};
use crate::parser::cursor::TokenCursor;
use crate::parser::error::{ParseError, Result};

/// The words for a role in statements that create, change and drop one.
const NOUNS: [&str; 3] = ["role", "user", "group"];

fn role_statement(statement: RoleStatement) -> Result<Statement> {
    Ok(Statement::Role(Box::new(statement)))
}

/// Stores an option that may be written once.
fn put_once<T>(option: &mut Option<T>, value: T, position: usize) -> Result<()> {
    match option.replace(value) {
        None => Ok(()),
        Some(_) => Err(ParseError::syntax("conflicting or redundant options", position)),
    }
}

impl TokenCursor<'_> {
    /// Reads ROLE, USER or GROUP.
    pub(in crate::parser) fn role_noun(&mut self) -> Option<&'static str> {
        NOUNS.into_iter().find(|word| self.take_word(word))
    }

    /// Reads a role that a statement names.
    pub(in crate::parser) fn role(&mut self) -> Result<Role> {
        let position = self.position();
        if self.take_word("current_user") || self.take_word("current_role") {
            return Ok(Role::Current(position));
        }
        if self.take_word("session_user") {
            return Ok(Role::Session(position));
        }
        self.role_name().map(Role::Named)
    }

    /// Reads the name of a role.
    fn role_name(&mut self) -> Result<Ident> {
        let position = self.position();
        let is_quoted = matches!(self.peek(), Token::Word(word) if word.quote_style.is_some());
        let name = self.identifier(key_words::is_not_reserved)?;
        match name.value.as_str() {
            "none" if !is_quoted => Err(reserved_name(&name.value, position)),
            "public" => Err(reserved_name(&name.value, position)),
            _ => Ok(name),
        }
    }

    /// Reads a statement from the name of the new role.
    pub(in crate::parser) fn create_role(&mut self, noun: &str) -> Result<Statement> {
        let name = self.role()?;
        self.take_word("with");
        let mut options = self.role_options(true)?;
        if noun == "user" && options.attribute(RoleAttribute::Login).is_none() {
            options.attributes.push((RoleAttribute::Login, true));
        }
        role_statement(RoleStatement::Create { name, options })
    }

    /// Reads the options of a role up to the end. `is_new`: those of a new role, too.
    fn role_options(&mut self, is_new: bool) -> Result<RoleOptions> {
        let mut options = RoleOptions::default();
        while !self.at_end() {
            self.role_option(&mut options, is_new)?;
        }
        Ok(options)
    }

    fn role_option(&mut self, options: &mut RoleOptions, is_new: bool) -> Result<()> {
        let position = self.position();
        let word = self.peek_word();
        let attribute = RoleAttribute::ALL.iter().find_map(|(name, attribute)| {
            let is_on = *name == word;
            (is_on || word.strip_prefix("no") == Some(name)).then_some((*attribute, is_on))
        });
        if let Some((attribute, is_on)) = attribute {
            self.advance();
            if options.attribute(attribute).is_some() {
                return Err(ParseError::syntax("conflicting or redundant options", position));
            }
            options.attributes.push((attribute, is_on));
            return Ok(());
        }
        if self.take_words(&["connection", "limit"]) {
            let limit = self.signed_integer()?;
            return put_once(&mut options.connection_limit, limit, position);
        }
        if self.take_words(&["valid", "until"]) {
            let until = self.string()?;
            return put_once(&mut options.valid_until, until, position);
        }
        if self.take_word("unencrypted") {
            self.expect_words(&["password"])?;
            let message = "UNENCRYPTED PASSWORD is no longer supported";
            let code = types::sqlstate::FEATURE_NOT_SUPPORTED;
            return Err(ParseError::new(code, message, position)
                .with_hint("Remove UNENCRYPTED to store the password in encrypted form instead."));
        }
        if self.take_words(&["encrypted", "password"]) || self.take_word("password") {
            let password = if self.take_word("null") { None } else { Some(self.string()?) };
            return put_once(&mut options.password, password, position);
        }
        if !is_new {
            let is_member_list = ["role", "user", "in", "admin", "sysid"].contains(&word.as_str());
            return Err(self.unknown_option(&word, is_member_list));
        }
        if self.take_words(&["in", "role"]) || self.take_words(&["in", "group"]) {
            options.in_roles.extend(self.list(Self::role)?);
        } else if self.take_word("admin") {
            options.administrators.extend(self.list(Self::role)?);
        } else if self.take_word("role") || self.take_word("user") {
            options.members.extend(self.list(Self::role)?);
        } else if self.take_word("sysid") {
            // PostgreSQL ignores it, with a notice.
            self.signed_integer()?;
        } else {
            return Err(self.unknown_option(&word, false));
        }
        Ok(())
    }

    fn unknown_option(&self, word: &str, is_known: bool) -> ParseError {
        match word.is_empty() || is_known || !key_words::is_column_name(word) {
            true => self.unexpected(),
            false => {
                let message = format!("unrecognized role option \"{word}\"");
                ParseError::syntax(message, self.position())
            }
        }
    }

    fn signed_integer(&mut self) -> Result<i64> {
        let position = self.position();
        let is_negative = self.take(&Token::Minus);
        let Token::Number(digits, _) = self.peek().clone() else { return Err(self.unexpected()) };
        let value = digits.parse::<i64>().map_err(|_| self.syntax_error_near(position))?;
        self.advance();
        Ok(if is_negative { -value } else { value })
    }

    /// Reads the rest of ALTER ROLE after the role, except settings; `None` for those.
    pub(in crate::parser) fn alter_role_options(
        &mut self,
        noun: &str,
        role: &Role,
    ) -> Result<Option<Statement>> {
        if let Role::Named(name) = role {
            if self.take_words(&["rename", "to"]) {
                let (from, to) = (name.clone(), self.role()?);
                return role_statement(RoleStatement::Rename { from, to }).map(Some);
            }
            let is_add = noun == "group" && self.take_words(&["add", "user"]);
            if is_add || noun == "group" && self.take_words(&["drop", "user"]) {
                let change = MembershipChange {
                    is_revoke: !is_add,
                    roles: vec![name.clone()],
                    members: self.list(Self::role)?,
                    admin_option: false,
                    granted_by: None,
                };
                let statement = RoleStatement::Membership { is_alter: true, change };
                return role_statement(statement).map(Some);
            }
        }
        if ["set", "reset"].iter().any(|word| self.is_word(word))
            || self.is_words(&["in", "database"])
        {
            return Ok(None);
        }
        if noun == "group" {
            return Err(self.unexpected());
        }
        self.take_word("with");
        let options = self.role_options(false)?;
        role_statement(RoleStatement::Alter { role: role.clone(), options }).map(Some)
    }

    /// Reads `[IN DATABASE name] { SET … | RESET … }` of ALTER ROLE.
    pub(in crate::parser) fn alter_role_setting(
        &mut self,
        role: Option<Role>,
    ) -> Result<Statement> {
        let in_database = self.take_words(&["in", "database"]);
        let database = if in_database { Some(self.name()?) } else { None };
        let clause = self.setting_clause()?;
        role_statement(RoleStatement::Setting { role, database, clause })
    }

    /// Reads the rest of DROP ROLE.
    pub(in crate::parser) fn drop_role(&mut self) -> Result<Statement> {
        let if_exists = self.take_words(&["if", "exists"]);
        role_statement(RoleStatement::Drop { if_exists, roles: self.list(Self::role)? })
    }

    /// Reads GRANT or REVOKE.
    pub(in crate::parser) fn grant(&mut self) -> Result<Statement> {
        let is_revoke = self.is_word("revoke");
        self.advance();
        let of_admin = is_revoke && self.take_words(&["admin", "option", "for"]);
        if !of_admin && self.is_before_on() {
            return self.grant_privileges(is_revoke);
        }
        let roles = self.list(|cursor| cursor.identifier(key_words::is_not_reserved))?;
        self.expect_words(&[if is_revoke { "from" } else { "to" }])?;
        let members = self.list(|cursor| {
            cursor.take_noise("group");
            cursor.role()
        })?;
        let with_admin = !is_revoke && self.take_words(&["with", "admin", "option"]);
        let granted_by = match self.take_words(&["granted", "by"]) {
            true => Some(self.role()?),
            false => None,
        };
        if is_revoke {
            // Memberships do not depend on one another.
            self.cascade();
        }
        let admin_option = with_admin || of_admin;
        let change = MembershipChange { is_revoke, roles, members, admin_option, granted_by };
        role_statement(RoleStatement::Membership { is_alter: false, change })
    }

    /// Returns whether the word ON follows before the end of the statement and before TO or FROM.
    fn is_before_on(&self) -> bool {
        for n in 0.. {
            match &self.parser.peek_nth_token_ref(n).token {
                Token::EOF | Token::SemiColon => return false,
                Token::Word(word) if word.quote_style.is_none() => {
                    match word.value.to_ascii_lowercase().as_str() {
                        "on" => return true,
                        "to" | "from" => return false,
                        _ => {}
                    }
                }
                _ => {}
            }
        }
        false
    }
}

fn reserved_name(name: &str, position: usize) -> ParseError {
    let message = format!("role name \"{name}\" is reserved");
    ParseError::new(types::sqlstate::RESERVED_NAME, message, position)
}
