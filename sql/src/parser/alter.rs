//! Parsing of ALTER statements.

use sqlparser::tokenizer::Token;

use super::cursor::TokenCursor;
use super::error::{ParseError, Result, sqlstate};
use crate::ast::{
    AlterCoprocessor, AlterIndex, AlterIndexAction, AlterOptions, AlterTable, AlterTableAction,
    AttachCoprocessor, Ident, IndexRestriction, NameSpace, ObjectKind, OptionValue, OptionsChange,
    OptionsOwner, RegionAction, SplitPoints, Statement, TableName,
};

impl TokenCursor<'_> {
    pub(super) fn alter(&mut self) -> Result<Statement> {
        let position = self.position();
        self.expect_words(&["alter"])?;
        if self.take_word("session") {
            return self.alter_session();
        }
        if !self.nth_word_is(1, "mapping")
            && let Some(noun) = self.role_noun()
        {
            return self.alter_role(noun);
        }
        if self.take_word("trigger") {
            return self.alter_trigger();
        }
        if self.take_words(&["default", "privileges"]) {
            return self.alter_default_privileges();
        }
        if self.take_word("policy") {
            return self.alter_policy();
        }
        if let Some(kind) = self.object_kind() {
            return self.alter_object(kind, position);
        }
        if self.take_word("database") {
            return self.alter_database();
        }
        if self.is_word("family") {
            return Err(ParseError::unsupported("ALTER FAMILY without a table", position)
                .with_hint("Use ALTER TABLE t ALTER FAMILY f SET (…)."));
        }
        let construct = match self.peek_word().to_uppercase() {
            word if word.is_empty() => return Err(self.unexpected()),
            word => format!("ALTER {word}"),
        };
        Err(unsupported(construct, position))
    }

    /// Reads the rest of ALTER for an object of a kind.
    fn alter_object(&mut self, kind: ObjectKind, position: usize) -> Result<Statement> {
        let is_relation = kind.descriptor().name_space == NameSpace::Relation;
        let if_exists = is_relation && self.take_words(&["if", "exists"]);
        if kind == ObjectKind::Table {
            // ONLY has no effect, because there is no table inheritance.
            self.take_word("only");
        }
        let object = self.object(kind)?;
        let is_fixed =
            kind == ObjectKind::Extension || kind == ObjectKind::Schema && self.is_word("set");
        if !is_fixed && let Some(rename) = self.rename(&object, if_exists)? {
            return Ok(rename);
        }
        let name = object.name.clone();
        match kind {
            ObjectKind::Table => self.alter_table(name, if_exists, position),
            ObjectKind::View | ObjectKind::MaterializedView => {
                self.alter_view((kind, name), if_exists, position)
            }
            ObjectKind::Sequence => self.alter_sequence(name, if_exists),
            ObjectKind::Index => self.alter_index(name, if_exists, position),
            ObjectKind::Type => self.alter_type(name),
            ObjectKind::Domain => self.alter_domain(name),
            ObjectKind::Function | ObjectKind::Procedure | ObjectKind::Routine => {
                self.alter_function(object)
            }
            ObjectKind::Extension => self.alter_extension(name.name, position),
            ObjectKind::Role => Err(self.unexpected()),
            ObjectKind::Schema if self.at_end() => Err(self.unexpected()),
            ObjectKind::Schema if self.begins_options(0) => {
                self.alter_options(OptionsOwner::Schema(name.name), false)
            }
            ObjectKind::Schema => {
                let construct = format!("ALTER SCHEMA … {}", self.peek_word().to_uppercase());
                Err(ParseError::unsupported(construct, self.position()))
            }
        }
    }

    fn alter_session(&mut self) -> Result<Statement> {
        self.expect_words(&["set"])?;
        let mut name = self.name()?;
        name.value = name.value.to_ascii_lowercase();
        self.expect(&Token::Eq)?;
        let at = self.position();
        let value = self.option_value()?;
        if name.value != "consistency" {
            return Err(ParseError::unsupported(
                format!("ALTER SESSION SET {}", name.value),
                name.position,
            )
            .with_hint("The only setting is CONSISTENCY; use SET for the others."));
        }
        let known = match &value {
            OptionValue::String(word) | OptionValue::Word(word) => {
                ["timeline", "strong"].iter().any(|known| known.eq_ignore_ascii_case(word))
            }
            OptionValue::Number(_) | OptionValue::Boolean(_) => false,
        };
        if !known {
            let message = "invalid value for parameter \"consistency\"";
            return Err(ParseError::new(sqlstate::INVALID_PARAMETER_VALUE, message, at)
                .with_hint("Available values: strong, timeline."));
        }
        Ok(Statement::AlterSession { name, value })
    }

    fn alter_table(
        &mut self,
        name: TableName,
        if_exists: bool,
        position: usize,
    ) -> Result<Statement> {
        let action = match self.peek_word().as_str() {
            "set" | "reset" if self.begins_options(0) => {
                return self.alter_options(OptionsOwner::Table(name), if_exists);
            }
            "alter" if self.nth_word_is(1, "family") && self.begins_options(3) => {
                return self.alter_family(name, if_exists);
            }
            "add" | "alter" | "drop" | "rename" | "validate" | "cluster" | "replica" | "enable"
            | "disable" => AlterTableAction::Changes(self.table_changes(&name)?),
            "set" | "force" => AlterTableAction::Changes(self.table_changes(&name)?),
            "no" if self.nth_word_is(1, "force") => {
                AlterTableAction::Changes(self.table_changes(&name)?)
            }
            "split" => AlterTableAction::Regions(self.split_regions()?),
            "merge" => AlterTableAction::Regions(self.merge_regions()?),
            "normalize" => AlterTableAction::Regions(self.normalize()?),
            "attach" if self.is_words(&["attach", "coprocessor"]) => {
                AlterTableAction::Coprocessor(AlterCoprocessor::Attach(self.attach_coprocessor()?))
            }
            "resume" if self.take_words(&["resume", "coprocessor"]) => {
                AlterTableAction::Coprocessor(AlterCoprocessor::Resume(self.name()?))
            }
            "detach" if self.take_words(&["detach", "coprocessor"]) => {
                AlterTableAction::Coprocessor(AlterCoprocessor::Detach(self.name()?))
            }
            "" => return Err(self.unexpected()),
            word => {
                let construct = format!("ALTER TABLE … {}", word.to_uppercase());
                return Err(unsupported(construct, position));
            }
        };
        let kind = ObjectKind::Table;
        Ok(Statement::AlterTable(Box::new(AlterTable { kind, if_exists, name, action })))
    }

    /// Returns whether the token at `at` begins `SET (…)`, `RESET (…)`, or Phoenix's
    /// `SET name = value` and `SET family.name = value`.
    fn begins_options(&self, at: usize) -> bool {
        let token = |n: usize| &self.parser.peek_nth_token_ref(at + n).token;
        match token(1) {
            Token::LParen => self.nth_word_is(at, "set") || self.nth_word_is(at, "reset"),
            Token::Word(_) if self.nth_word_is(at, "set") => {
                matches!(token(2), Token::Eq | Token::Period)
            }
            _ => false,
        }
    }

    /// Reads `SET (…)`, `RESET (…)`, and Phoenix's `SET name = value, …`.
    fn alter_options(&mut self, of: OptionsOwner, if_exists: bool) -> Result<Statement> {
        let change = self.options_change()?;
        Ok(Statement::AlterOptions(Box::new(AlterOptions { of, if_exists, change })))
    }

    fn options_change(&mut self) -> Result<OptionsChange> {
        if !self.take_word("set") {
            self.expect_words(&["reset"])?;
            return self.parenthesized(Self::qualified_option_name).map(OptionsChange::Reset);
        }
        let options = match self.peek() == &Token::LParen {
            true => self.parenthesized(Self::option)?,
            false => self.list(Self::option)?,
        };
        Ok(OptionsChange::Set(options))
    }

    /// Reads `ALTER FAMILY f` with `SET …` or `RESET (…)`: the options of the family.
    fn alter_family(&mut self, table: TableName, if_exists: bool) -> Result<Statement> {
        self.expect_words(&["alter", "family"])?;
        let family = self.label()?;
        let mut change = self.options_change()?;
        let owners: Vec<&mut Option<Ident>> = match &mut change {
            OptionsChange::Set(options) => options.iter_mut().map(|one| &mut one.family).collect(),
            OptionsChange::Reset(names) => names.iter_mut().map(|one| &mut one.family).collect(),
            OptionsChange::ResetAll => Vec::new(),
        };
        for owner in owners {
            if let Some(other) = owner.replace(family.clone()) {
                return Err(self.syntax_error_near(other.position));
            }
        }
        let of = OptionsOwner::Table(table);
        Ok(Statement::AlterOptions(Box::new(AlterOptions { of, if_exists, change })))
    }

    /// Reads the rest of ALTER VIEW and ALTER MATERIALIZED VIEW.
    fn alter_view(
        &mut self,
        (kind, name): (ObjectKind, TableName),
        if_exists: bool,
        position: usize,
    ) -> Result<Statement> {
        let alters = kind == ObjectKind::View && self.is_word("alter");
        if alters || self.is_word("rename") {
            let action = AlterTableAction::Changes(self.table_changes(&name)?);
            return Ok(Statement::AlterTable(Box::new(AlterTable {
                kind,
                if_exists,
                name,
                action,
            })));
        }
        if kind == ObjectKind::MaterializedView {
            if self.nth_token_is_paren() {
                return self.alter_options(OptionsOwner::Table(name), if_exists);
            }
            if ["alter", "cluster", "set"].iter().any(|word| self.is_word(word)) {
                let action = AlterTableAction::Changes(self.table_changes(&name)?);
                let alter = AlterTable { kind, if_exists, name, action };
                return Ok(Statement::AlterTable(Box::new(alter)));
            }
        }
        if kind == ObjectKind::View && self.nth_token_is_paren() {
            let options = match self.take_word("set") {
                true => self.view_options()?,
                false => {
                    self.expect_words(&["reset"])?;
                    let names = self.parenthesized(Self::name)?;
                    let unset = names.iter().map(|name| self.unset_view_option(name));
                    unset.collect::<Result<_>>()?
                }
            };
            let action = AlterTableAction::ViewOptions(options);
            let alter = AlterTable { kind, if_exists, name, action };
            return Ok(Statement::AlterTable(Box::new(alter)));
        }
        match self.peek_word().to_uppercase() {
            word if word.is_empty() => Err(self.unexpected()),
            word => {
                let construct = format!("ALTER {} … {word}", kind.noun().to_uppercase());
                let error = unsupported(construct, position);
                Err(match kind {
                    ObjectKind::View => error.with_hint("Use CREATE OR REPLACE VIEW."),
                    _ => error,
                })
            }
        }
    }

    /// Returns whether SET or RESET is next, followed by a list.
    fn nth_token_is_paren(&self) -> bool {
        ["set", "reset"].iter().any(|word| self.is_word(word))
            && self.parser.peek_nth_token_ref(1).token == Token::LParen
    }

    /// Reads the rest of ALTER INDEX.
    fn alter_index(
        &mut self,
        name: TableName,
        if_exists: bool,
        position: usize,
    ) -> Result<Statement> {
        if self.nth_token_is_paren() {
            return self.alter_options(OptionsOwner::Index(name), if_exists);
        }
        if if_exists {
            return Err(self.unexpected());
        }
        let table = if self.take_word("on") { Some(self.table_name()?) } else { None };
        let restrict = AlterIndexAction::Restrict;
        let action = match self.peek_word().as_str() {
            "split" => AlterIndexAction::Regions(self.split_regions()?),
            "merge" => AlterIndexAction::Regions(self.merge_regions()?),
            "normalize" => AlterIndexAction::Regions(self.normalize()?),
            "usable" | "active" => self.after_word(restrict(None)),
            "unusable" => self.after_word(restrict(Some(IndexRestriction::Unusable))),
            "disable" => self.after_word(restrict(Some(IndexRestriction::Disabled))),
            "consistency" => {
                self.advance();
                self.take(&Token::Eq);
                let eventual = self.take_word("eventual");
                if !eventual {
                    self.expect_words(&["strong"])?;
                }
                AlterIndexAction::SetConsistency { eventual }
            }
            "rebuild" => {
                self.advance();
                AlterIndexAction::Rebuild { is_async: self.take_word("async") }
            }
            "" => return Err(self.unexpected()),
            word => {
                let construct = format!("ALTER INDEX … {}", word.to_uppercase());
                return Err(unsupported(construct, position));
            }
        };
        Ok(Statement::AlterIndex(Box::new(AlterIndex { name, table, action })))
    }

    /// Skips a word, and returns its meaning.
    fn after_word<T>(&mut self, meaning: T) -> T {
        self.advance();
        meaning
    }

    /// Reads `SPLIT [REGION n] [AT (…), …]`.
    fn split_regions(&mut self) -> Result<RegionAction> {
        self.expect_words(&["split"])?;
        let region = if self.take_word("region") { Some(self.region_id()?) } else { None };
        let points = match self.take_word("at") {
            true => Some(self.split_points()?),
            false => None,
        };
        Ok(RegionAction::Split { region, points })
    }

    fn split_points(&mut self) -> Result<SplitPoints> {
        if self.peek() != &Token::LParen || !self.query_word_follows() {
            return Ok(SplitPoints::List(self.list(Self::split_point)?));
        }
        self.expect(&Token::LParen)?;
        let query = self.query()?;
        self.expect(&Token::RParen)?;
        Ok(SplitPoints::Query(Box::new(query)))
    }

    /// Reads the rest of ALTER ROLE.
    fn alter_role(&mut self, noun: &str) -> Result<Statement> {
        let role = match noun != "group" && self.take_word("all") {
            true => None,
            false => Some(self.role()?),
        };
        if let Some(role) = &role
            && let Some(statement) = self.alter_role_options(noun, role)?
        {
            return Ok(statement);
        }
        self.alter_role_setting(role)
    }

    pub(super) fn option_name(&mut self) -> Result<Ident> {
        let mut name = self.label()?;
        name.value = name.value.to_ascii_lowercase();
        Ok(name)
    }

    /// Reads `MERGE REGIONS n, m, …`.
    fn merge_regions(&mut self) -> Result<RegionAction> {
        self.expect_words(&["merge", "regions"])?;
        Ok(RegionAction::MergeRegions(self.list(Self::region_id)?))
    }

    /// Reads `NORMALIZE`.
    fn normalize(&mut self) -> Result<RegionAction> {
        self.expect_words(&["normalize"])?;
        Ok(RegionAction::Normalize)
    }

    /// Reads `ATTACH COPROCESSOR name [AS alias] [PRIORITY n] [WITH (…)]`.
    fn attach_coprocessor(&mut self) -> Result<AttachCoprocessor> {
        self.expect_words(&["attach", "coprocessor"])?;
        let coprocessor = self.name()?;
        let alias = if self.take_word("as") { Some(self.label()?) } else { None };
        let priority = if self.take_word("priority") { Some(self.priority()?) } else { None };
        let arguments =
            if self.take_word("with") { self.parenthesized(Self::option)? } else { Vec::new() };
        if let Some(family) = arguments.iter().find_map(|argument| argument.family.as_ref()) {
            return Err(self.syntax_error_near(family.position));
        }
        Ok(AttachCoprocessor { coprocessor, alias, priority, arguments })
    }

    fn priority(&mut self) -> Result<i32> {
        let at = self.position();
        let number = match self.option_value()? {
            OptionValue::Number(text) => text.parse().ok(),
            _ => None,
        };
        number.filter(|number: &i32| *number >= 0).ok_or_else(|| {
            let message = "coprocessor priority must be an integer from 0 to 2147483647";
            ParseError::new(sqlstate::INVALID_PARAMETER_VALUE, message, at)
        })
    }

    fn region_id(&mut self) -> Result<u64> {
        let position = self.position();
        match self.option_value()? {
            OptionValue::Number(text) => text.parse().map_err(|_| self.syntax_error_near(position)),
            _ => Err(self.syntax_error_near(position)),
        }
    }
}

fn unsupported(construct: String, position: usize) -> ParseError {
    ParseError::unsupported(construct, position)
        .with_hint("Create a new object and copy the contents.")
}
