//! Parsing of ALTER TABLE for columns and constraints.

use sqlparser::tokenizer::Token;

use super::cursor::TokenCursor;
use super::error::{ParseError, Result};
use crate::ast::{
    ColumnAttribute, CreateTable, Ident, OptionValue, StorageKind, TableAttribute, TableChange,
    TableName, TriggerFiring, TriggerSelection,
};

/// Pseudo-types of CREATE TABLE that are not types.
const SERIALS: [&str; 6] = ["serial", "serial4", "bigserial", "serial8", "smallserial", "serial2"];

/// The largest statistics target; larger values are reduced to it, as in PostgreSQL.
const STATISTICS_MAX: i32 = 10_000;

/// The action that further columns of a list belong to.
#[derive(Debug, Clone, Copy)]
enum ColumnList {
    Add { if_not_exists: bool },
    Drop { if_exists: bool },
}

impl TokenCursor<'_> {
    /// Reads the changes of a table, separated by commas. A rename must be the only change.
    pub(super) fn table_changes(&mut self, table: &TableName) -> Result<Vec<TableChange>> {
        if self.take_word("rename") {
            return Ok(vec![self.rename_part()?]);
        }
        let mut previous = None;
        let mut changes = self.list(|cursor| {
            let change = match previous.filter(|_| !cursor.begins_action()) {
                Some(ColumnList::Add { if_not_exists }) => {
                    cursor.added_column(table, if_not_exists)?
                }
                Some(ColumnList::Drop { if_exists }) => cursor.dropped_column(if_exists)?,
                None => cursor.table_change(table)?,
            };
            previous = match &change {
                TableChange::AddColumn { if_not_exists, .. } => {
                    Some(ColumnList::Add { if_not_exists: *if_not_exists })
                }
                TableChange::DropColumn { if_exists, .. } => {
                    Some(ColumnList::Drop { if_exists: *if_exists })
                }
                _ => None,
            };
            Ok(change)
        })?;
        if self.is_words(&["cascade", "index"]) && matches!(previous, Some(ColumnList::Add { .. }))
        {
            return Err(ParseError::unsupported("ADD … CASCADE INDEX", self.position())
                .with_hint("Create the index again, with the column in INCLUDE."));
        }
        if matches!(previous, Some(ColumnList::Add { .. })) && self.begins_option() {
            changes.push(TableChange::SetOptions(self.list(Self::option)?));
        }
        Ok(changes)
    }

    /// Returns whether an action of ALTER TABLE is next, and not another column of Phoenix's `ADD a
    /// int, b int` or `DROP a, b`.
    fn begins_action(&self) -> bool {
        const ACTIONS: [&str; 10] = [
            "add", "alter", "cluster", "disable", "drop", "enable", "rename", "replica", "set",
            "validate",
        ];
        ACTIONS.iter().any(|word| self.is_word(word))
    }

    /// Returns whether `name =` or `family.name =` is next.
    pub(super) fn begins_option(&self) -> bool {
        let token = |at: usize| &self.parser.peek_nth_token_ref(at).token;
        let at = if token(1) == &Token::Period { 2 } else { 0 };
        matches!(token(at), Token::Word(_)) && token(at + 1) == &Token::Eq
    }

    fn rename_part(&mut self) -> Result<TableChange> {
        let of_constraint = self.take_word("constraint");
        if !of_constraint {
            self.take_word("column");
        }
        if of_constraint {
            let constraint = self.name()?;
            self.expect_words(&["to"])?;
            return Ok(TableChange::RenameConstraint { constraint, to: self.name()? });
        }
        let column = self.column_name()?;
        self.expect_words(&["to"])?;
        Ok(TableChange::RenameColumn { column, to: self.name()? })
    }

    fn table_change(&mut self, table: &TableName) -> Result<TableChange> {
        let position = self.position();
        if self.take_word("add") {
            if let Some(change) = self.constraint_of_index()? {
                return Ok(change);
            }
            if self.begins_family() {
                return self.add_family();
            }
            if self.begins_constraint() {
                return Ok(TableChange::AddConstraint(self.table_constraint()?));
            }
            return self.add_column(table);
        }
        if self.take_words(&["validate", "constraint"]) {
            return Ok(TableChange::ValidateConstraint(self.name()?));
        }
        if self.is_word("drop") && self.drops_family() {
            self.expect_words(&["drop", "family"])?;
            let if_exists = self.take_words(&["if", "exists"]);
            let family = self.label()?;
            let cascade = self.cascade();
            return Ok(TableChange::DropFamily { if_exists, family, cascade });
        }
        if self.take_word("drop") {
            let of_constraint = self.take_word("constraint");
            if !of_constraint {
                self.take_word("column");
            }
            let if_exists = self.take_words(&["if", "exists"]);
            if of_constraint {
                let (constraint, cascade) = (self.name()?, self.cascade());
                return Ok(TableChange::DropConstraint { if_exists, constraint, cascade });
            }
            return self.dropped_column(if_exists);
        }
        if self.take_word("alter") {
            return self.alter_column();
        }
        if let Some(attribute) = self.table_attribute()? {
            return Ok(TableChange::TableAttribute(attribute));
        }
        match self.peek_word().to_uppercase() {
            word if word.is_empty() => Err(self.unexpected()),
            word => {
                let construct = format!("{word} combined with other actions of ALTER TABLE");
                Err(ParseError::unsupported(construct, position)
                    .with_hint("Use a separate statement."))
            }
        }
    }

    /// Reads `[CONSTRAINT name] {UNIQUE | PRIMARY KEY} USING INDEX index`; `None` for anything
    /// else.
    fn constraint_of_index(&mut self) -> Result<Option<TableChange>> {
        let at = if self.is_word("constraint") { 2 } else { 0 };
        let is_primary = self.nth_word_is(at, "primary") && self.nth_word_is(at + 1, "key");
        let behind = at + if is_primary { 2 } else { 1 };
        let is_key = is_primary || self.nth_word_is(at, "unique");
        if !is_key || !self.nth_word_is(behind, "using") {
            return Ok(None);
        }
        // As in PostgreSQL, errors of the index have the position of the constraint.
        let start = self.position();
        let name = if self.take_word("constraint") { Some(self.name()?) } else { None };
        for _ in at..behind {
            self.advance();
        }
        self.expect_words(&["using", "index"])?;
        let index = Ident { position: start, ..self.name()? };
        let of = if is_primary { "PRIMARY KEY" } else { "UNIQUE" };
        let (deferral, _) = self.table_attributes(of, None)?;
        Ok(Some(TableChange::AddIndexConstraint { name, index, is_primary, deferral }))
    }

    /// Returns whether `FAMILY f (` is next with a list of options, and not a column of that name.
    fn begins_family(&self) -> bool {
        let token = |at: usize| &self.parser.peek_nth_token_ref(at).token;
        let lists_options = |at: usize| {
            let is_option = matches!(token(at + 1), Token::Word(_))
                && matches!(token(at + 2), Token::Eq | Token::Period);
            token(at) == &Token::LParen && (is_option || token(at + 1) == &Token::RParen)
        };
        self.is_word("family")
            && match self.nth_word_is(1, "if") && self.nth_word_is(2, "not") {
                true => self.nth_word_is(3, "exists"),
                false => lists_options(2),
            }
    }

    /// Reads `FAMILY [IF NOT EXISTS] f (option = value, …)`; the list may be empty.
    fn add_family(&mut self) -> Result<TableChange> {
        self.expect_words(&["family"])?;
        let if_not_exists = self.take_words(&["if", "not", "exists"]);
        let family = self.label()?;
        let is_empty = self.parser.peek_nth_token_ref(1).token == Token::RParen;
        let options = match self.peek() == &Token::LParen && is_empty {
            true => {
                self.expect(&Token::LParen)?;
                self.expect(&Token::RParen)?;
                Vec::new()
            }
            false => self.parenthesized(Self::option)?,
        };
        Ok(TableChange::AddFamily { if_not_exists, family, options })
    }

    /// Returns whether `DROP FAMILY f` is next, and not the drop of a column of that name.
    fn drops_family(&self) -> bool {
        self.nth_word_is(1, "family")
            && matches!(self.parser.peek_nth_token_ref(2).token, Token::Word(_))
            && !["cascade", "restrict"].iter().any(|word| self.nth_word_is(2, word))
    }

    /// Reads `[COLUMN] [IF NOT EXISTS] column`.
    fn add_column(&mut self, table: &TableName) -> Result<TableChange> {
        if self.begins_family_clause() {
            return Err(ParseError::unsupported("ADD FAMILY with columns", self.position())
                .with_hint("Use ADD FAMILY f (option = value, …), ADD COLUMN f.column type."));
        }
        self.take_word("column");
        let if_not_exists = self.take_words(&["if", "not", "exists"]);
        self.added_column(table, if_not_exists)
    }

    /// Reads a column of DROP.
    fn dropped_column(&mut self, if_exists: bool) -> Result<TableChange> {
        let (column, cascade) = (self.column_name()?, self.cascade());
        Ok(TableChange::DropColumn { if_exists, column, cascade })
    }

    /// Reads the definition of a column of ADD.
    fn added_column(&mut self, table: &TableName, if_not_exists: bool) -> Result<TableChange> {
        let mut holder = CreateTable::new(table.clone());
        self.table_element(&mut holder, None)?;
        let column = holder.columns.pop().ok_or_else(|| self.unexpected())?;
        let (column, constraints) = (Box::new(column), holder.constraints);
        Ok(TableChange::AddColumn { if_not_exists, column, constraints })
    }

    /// Reads `[COLUMN] c` and its change.
    fn alter_column(&mut self) -> Result<TableChange> {
        let unsupported = |construct: &str, position| {
            ParseError::unsupported(construct, position)
                .with_hint("Create a new object and copy the contents.")
        };
        if self.take_word("constraint") {
            let constraint = self.name()?;
            let (deferral, _) = self.table_attributes("ALTER CONSTRAINT", None)?;
            return Ok(TableChange::AlterConstraint { constraint, deferral });
        }
        self.take_word("column");
        let column = self.column_name()?;
        let position = self.position();
        Ok(if self.take_words(&["set", "default"]) {
            let default = Some(self.default_expr()?);
            TableChange::ColumnDefault { column, default }
        } else if self.take_words(&["drop", "default"]) {
            TableChange::ColumnDefault { column, default: None }
        } else if self.take_words(&["drop", "expression"]) {
            let if_exists = self.take_words(&["if", "exists"]);
            TableChange::DropExpression { if_exists, column }
        } else if self.take_words(&["add", "generated"]) {
            TableChange::AddIdentity { column, identity: self.identity()? }
        } else if self.take_words(&["drop", "identity"]) {
            let if_exists = self.take_words(&["if", "exists"]);
            TableChange::DropIdentity { if_exists, column }
        } else if self.alters_identity() {
            let (kind, options) = self.identity_changes()?;
            TableChange::AlterIdentity { column, kind, options }
        } else if self.take_words(&["set", "not", "null"]) {
            TableChange::SetNotNull(column)
        } else if self.take_words(&["drop", "not", "null"]) {
            TableChange::DropNotNull(column)
        } else if self.take_words(&["set", "data", "type"]) || self.take_word("type") {
            if let Some(word) = SERIALS.iter().find(|word| self.is_word(word)) {
                let message = format!("type \"{word}\" does not exist");
                return Err(ParseError::new("42704", message, None));
            }
            let type_name = self.collated_type()?;
            let using = match self.take_word("using") {
                true => Some(self.source_expr()?),
                false => None,
            };
            TableChange::ColumnType { column, type_name, using }
        } else if self.at_end() || self.peek() == &Token::Comma {
            return Err(self.unexpected());
        } else if let Some(attribute) = self.column_attribute()? {
            TableChange::ColumnAttribute { column, attribute }
        } else {
            return Err(unsupported("this ALTER COLUMN action", position));
        })
    }

    /// Reads an attribute of a column that has no effect; `None` for anything else.
    fn column_attribute(&mut self) -> Result<Option<ColumnAttribute>> {
        let position = self.position();
        if self.take_words(&["set", "statistics"]) {
            let OptionValue::Number(text) = self.option_value()? else {
                return Err(self.syntax_error_near(position));
            };
            let target = text.parse::<i32>().map_err(|_| self.syntax_error_near(position))?;
            if target < -1 {
                let message = format!("statistics target {target} is too low");
                return Err(ParseError::new("22023", message, None));
            }
            return Ok(Some(ColumnAttribute::Statistics(target.min(STATISTICS_MAX))));
        }
        if self.take_words(&["set", "storage"]) {
            let word = self.name()?.value;
            let kind = match word.to_ascii_lowercase().as_str() {
                "plain" => StorageKind::Plain,
                "external" => StorageKind::External,
                "extended" => StorageKind::Extended,
                "main" => StorageKind::Main,
                _ => {
                    let message = format!("invalid storage type \"{word}\"");
                    return Err(ParseError::new("22023", message, None));
                }
            };
            return Ok(Some(ColumnAttribute::Storage(kind)));
        }
        if self.take_words(&["set", "compression"]) {
            return Ok(Some(ColumnAttribute::Compression(self.compression()?)));
        }
        let lists = self.parser.peek_nth_token_ref(1).token == Token::LParen;
        if lists && self.take_word("set") {
            return Ok(Some(ColumnAttribute::Set(self.parenthesized(Self::option)?)));
        }
        if lists && self.take_word("reset") {
            return Ok(Some(ColumnAttribute::Reset(self.parenthesized(Self::option_name)?)));
        }
        Ok(None)
    }

    /// Reads a compression method of PostgreSQL.
    pub(super) fn compression(&mut self) -> Result<Option<char>> {
        if self.take_word("default") {
            return Ok(None);
        }
        let name = self.name()?.value;
        match name.as_str() {
            "default" => Ok(None),
            "pglz" => Ok(Some('p')),
            "lz4" => Ok(Some('l')),
            _ => {
                let message = format!("invalid compression method \"{name}\"");
                Err(ParseError::new("22023", message, None))
            }
        }
    }

    /// Reads `{ENABLE [REPLICA | ALWAYS] | DISABLE} TRIGGER {ALL | USER | name}`.
    fn triggers(&mut self) -> Result<TableAttribute> {
        let enabled = self.take_word("enable");
        if !enabled {
            self.expect_words(&["disable"])?;
        }
        let firing = match enabled {
            false => TriggerFiring::Disabled,
            true if self.take_word("replica") => TriggerFiring::Replica,
            true if self.take_word("always") => TriggerFiring::Always,
            true => TriggerFiring::Origin,
        };
        self.expect_words(&["trigger"])?;
        let is_named = matches!(firing, TriggerFiring::Replica | TriggerFiring::Always);
        let selection = match is_named {
            false if self.take_word("all") => TriggerSelection::All,
            false if self.take_word("user") => TriggerSelection::User,
            _ => TriggerSelection::Named(self.name()?),
        };
        Ok(TableAttribute::Triggers(selection, firing))
    }

    /// Reads an attribute of a table that has no effect; `None` for anything else.
    fn table_attribute(&mut self) -> Result<Option<TableAttribute>> {
        Ok(Some(if self.take_words(&["cluster", "on"]) {
            TableAttribute::Cluster(Some(self.name()?))
        } else if self.take_words(&["set", "without", "cluster"]) {
            TableAttribute::Cluster(None)
        } else if self.take_words(&["set", "without", "oids"]) {
            TableAttribute::Unchanged
        } else if self.take_words(&["set", "logged"]) {
            TableAttribute::Unlogged(false)
        } else if self.take_words(&["set", "unlogged"]) {
            TableAttribute::Unlogged(true)
        } else if self.is_words(&["set", "tablespace"]) {
            self.expect_words(&["set"])?;
            self.default_tablespace()?;
            TableAttribute::Unchanged
        } else if self.take_words(&["set", "access", "method", "heap"]) {
            TableAttribute::Unchanged
        } else if let Some(change) = self.row_security_change() {
            TableAttribute::RowSecurity(change)
        } else if self.is_word("enable") || self.is_word("disable") {
            self.triggers()?
        } else if self.take_words(&["replica", "identity"]) {
            if self.take_word("default") {
                TableAttribute::ReplicaDefault
            } else if self.take_word("full") {
                TableAttribute::ReplicaFull
            } else if self.take_word("nothing") {
                TableAttribute::ReplicaNothing
            } else {
                self.expect_words(&["using", "index"])?;
                TableAttribute::ReplicaIndex(self.name()?)
            }
        } else {
            return Ok(None);
        }))
    }
}
