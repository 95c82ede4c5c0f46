//! Parsing of transaction control, settings, prepared statements, cursors and maintenance
//! commands.

use sqlparser::tokenizer::Token;
use types::datatype::RegKind;
use types::function::quote_ident;
use types::{DataType, key_words};

use super::cursor::TokenCursor;
use super::error::{ParseError, Result, sqlstate};
use crate::ast::{
    DeclareCursor as CursorDeclaration, Expr, FetchDirection, Ident, IsolationLevel, OptionValue,
    Prepare, QueryBody, QueryExpr, Select, SelectItem, SetConstraints, SetScope, SetVariable,
    SettingClause, Statement, TableName, TransactionModes, TypeName,
};

impl TokenCursor<'_> {
    // ---- transactions ----

    pub(super) fn begin(&mut self) -> Result<Statement> {
        let start = self.take_words(&["start"]);
        if start {
            self.expect_words(&["transaction"])?;
        } else {
            self.expect_words(&["begin"])?;
            self.transaction_word();
        }
        Ok(Statement::Begin { start, modes: self.transaction_modes()? })
    }

    fn transaction_word(&mut self) {
        if !self.take_word("work") {
            self.take_word("transaction");
        }
    }

    /// Reads the constant after INTERVAL: the offset of a time zone, as text for the setting.
    fn zone_interval(&mut self) -> Result<OptionValue> {
        let offset = self.string()?.replace('\'', "''");
        for words in [&["hour", "to", "minute"][..], &["hour"]] {
            if self.take_words(words) {
                break;
            }
        }
        Ok(OptionValue::String(format!("INTERVAL '{offset}'")))
    }

    fn transaction_modes(&mut self) -> Result<TransactionModes> {
        let mut modes = TransactionModes::default();
        loop {
            if self.take_words(&["isolation", "level"]) {
                modes.isolation = Some(self.isolation_level()?);
            } else if self.take_words(&["read", "only"]) {
                modes.read_only = Some(true);
            } else if self.take_words(&["read", "write"]) {
                modes.read_only = Some(false);
            } else if self.take_words(&["not", "deferrable"]) {
                modes.deferrable = Some(false);
            } else if self.take_word("deferrable") {
                modes.deferrable = Some(true);
            } else {
                return if self.at_end() { Ok(modes) } else { Err(self.unexpected()) };
            }
            self.take(&Token::Comma);
        }
    }

    fn isolation_level(&mut self) -> Result<IsolationLevel> {
        if self.take_words(&["read", "uncommitted"]) {
            Ok(IsolationLevel::ReadUncommitted)
        } else if self.take_words(&["read", "committed"]) {
            Ok(IsolationLevel::ReadCommitted)
        } else if self.take_words(&["repeatable", "read"]) {
            Ok(IsolationLevel::RepeatableRead)
        } else if self.take_word("serializable") {
            Ok(IsolationLevel::Serializable)
        } else {
            Err(self.unexpected())
        }
    }

    /// Reads `COMMIT`, `END`, `ROLLBACK [TO]`, `ABORT`.
    pub(super) fn finish(&mut self) -> Result<Statement> {
        let (commit_word, rollback_word) = (self.is_word("commit"), self.is_word("rollback"));
        let commit = commit_word || self.is_word("end");
        self.advance();
        if (commit_word || rollback_word) && self.take_word("prepared") {
            let gid = self.string()?;
            return Ok(match commit_word {
                true => Statement::CommitPrepared(gid),
                false => Statement::RollbackPrepared(gid),
            });
        }
        self.transaction_word();
        if !commit && self.take_word("to") {
            self.take_noise("savepoint");
            return Ok(Statement::RollbackTo(self.name()?));
        }
        let chain = !self.take_words(&["and", "no", "chain"]) && self.take_words(&["and", "chain"]);
        Ok(if commit { Statement::Commit { chain } } else { Statement::Rollback { chain } })
    }

    pub(super) fn savepoint(&mut self) -> Result<Statement> {
        self.expect_words(&["savepoint"])?;
        Ok(Statement::Savepoint(self.name()?))
    }

    pub(super) fn release(&mut self) -> Result<Statement> {
        self.expect_words(&["release"])?;
        self.take_noise("savepoint");
        Ok(Statement::Release(self.name()?))
    }

    // ---- settings ----

    pub(super) fn set(&mut self) -> Result<Statement> {
        self.expect_words(&["set"])?;
        if self.take_words(&["session", "characteristics", "as", "transaction"]) {
            return Ok(Statement::SetSessionCharacteristics(self.transaction_modes()?));
        }
        if self.is_word("constraints") {
            self.expect_words(&["constraints"])?;
            let names = match self.take_word("all") {
                true => None,
                false => Some(self.list(Self::table_name)?),
            };
            let deferred = self.take_word("deferred");
            if !deferred {
                self.expect_words(&["immediate"])?;
            }
            return Ok(Statement::SetConstraints(SetConstraints { names, deferred }));
        }
        let scope = if self.take_word("local") {
            SetScope::Local
        } else {
            self.take_word("session");
            SetScope::Session
        };
        if let Some(set) = self.set_role(scope)? {
            return Ok(set);
        }
        if self.take_word("transaction") {
            if self.take_word("snapshot") {
                return Ok(Statement::SetSnapshot(self.string()?));
            }
            return Ok(Statement::SetTransaction(self.transaction_modes()?));
        }
        match self.setting(scope)? {
            SettingClause::Set(set) => Ok(Statement::Set(set)),
            SettingClause::Current(_) | SettingClause::Reset(_) => Err(self.unexpected()),
        }
    }

    /// Reads a `SET …` or `RESET …` clause of a function, a role or a database.
    pub(in crate::parser) fn setting_clause(&mut self) -> Result<SettingClause> {
        if self.take_word("reset") {
            return Ok(SettingClause::Reset(self.shown_name()?));
        }
        self.expect_words(&["set"])?;
        match self.set_role(SetScope::Local)? {
            Some(Statement::Set(set)) => Ok(SettingClause::Set(set)),
            _ => self.setting(SetScope::Local),
        }
    }

    /// Reads a setting and its value.
    fn setting(&mut self, scope: SetScope) -> Result<SettingClause> {
        let position = self.position();
        let named = |value: &str| Ident { value: value.to_owned(), position };
        let set = |name: Ident, value| Ok(SettingClause::Set(SetVariable { scope, name, value }));
        if self.take_words(&["time", "zone"]) {
            let value = if self.take_word("default") || self.take_word("local") {
                None
            } else if self.take_word("interval") {
                Some(vec![self.zone_interval()?])
            } else {
                Some(vec![self.option_value()?])
            };
            return set(named("timezone"), value);
        }
        if self.take_word("names") {
            let value = if self.at_end() || self.take_word("default") {
                None
            } else {
                Some(vec![self.option_value()?])
            };
            return set(named("client_encoding"), value);
        }
        let name = self.setting_name()?;
        if scope == SetScope::Local && self.take_words(&["from", "current"]) {
            return Ok(SettingClause::Current(name));
        }
        if !self.take_word("to") {
            self.expect(&Token::Eq)?;
        }
        let value =
            if self.take_word("default") { None } else { Some(self.list(Self::setting_value)?) };
        set(name, value)
    }

    /// Reads `ROLE name` and `AUTHORIZATION name`; `None` for anything else.
    fn set_role(&mut self, scope: SetScope) -> Result<Option<Statement>> {
        let position = self.position();
        let name = match () {
            () if self.take_word("role") => "role",
            () if self.take_words(&["session", "authorization"]) => "session_authorization",
            () if self.take_word("authorization") => "session_authorization",
            () => return Ok(None),
        };
        let is_assigned = name == "role" && (self.take_word("to") || self.take(&Token::Eq));
        let may_be_default = name != "role" || is_assigned;
        let is_default = may_be_default && self.take_word("default");
        let value = match self.peek() {
            _ if is_default => None,
            Token::Word(_) => {
                let role = self.identifier(key_words::is_not_reserved)?;
                Some(vec![OptionValue::String(role.value)])
            }
            _ => Some(vec![OptionValue::String(self.string()?)]),
        };
        let name = Ident { value: name.to_owned(), position };
        Ok(Some(Statement::Set(SetVariable { scope, name, value })))
    }

    /// Reads a value of a setting: not a reserved keyword, except a boolean.
    fn setting_value(&mut self) -> Result<OptionValue> {
        let word = self.peek_word();
        if !key_words::is_not_reserved(&word) && !["true", "false", "on"].contains(&word.as_str()) {
            return Err(self.unexpected());
        }
        self.option_value()
    }

    fn setting_name(&mut self) -> Result<Ident> {
        let mut name = self.name()?;
        while self.take(&Token::Period) {
            name.value.push('.');
            // A part after a period may not be just any keyword here.
            let is_quoted = self.source.text()[self.byte()..].starts_with('"');
            let part = self.name()?;
            if !is_quoted && !key_words::is_column_name(&part.value) {
                return Err(self.syntax_error_near(part.position));
            }
            name.value.push_str(&part.value);
        }
        Ok(name)
    }

    /// Reads the name after SHOW or RESET; None for ALL.
    fn shown_name(&mut self) -> Result<Option<Ident>> {
        let position = self.position();
        let named = |value: &str| Ok(Some(Ident { value: value.to_owned(), position }));
        if self.take_word("all") {
            Ok(None)
        } else if self.take_words(&["time", "zone"]) {
            named("timezone")
        } else if self.take_words(&["transaction", "isolation", "level"]) {
            named("transaction_isolation")
        } else if self.take_words(&["session", "authorization"]) {
            named("session_authorization")
        } else {
            self.setting_name().map(Some)
        }
    }

    pub(super) fn show(&mut self) -> Result<Statement> {
        self.expect_words(&["show"])?;
        if self.take_words(&["create", "table"]) {
            return self.show_create_table();
        }
        if self.take_word("tables") {
            return self.show_tables();
        }
        if self.take_word("schemas") {
            return self.show_schemas();
        }
        Ok(Statement::Show(self.shown_name()?))
    }

    /// Reads `SHOW SCHEMAS [LIKE 'p']` of Phoenix, a query of its system tables.
    fn show_schemas(&mut self) -> Result<Statement> {
        let mut text = "SELECT DISTINCT table_schem, NULL::varchar AS table_catalog \
                        FROM bennu.system_catalog WHERE table_schem IS NOT NULL"
            .to_owned();
        self.shown_pattern("table_schem", &mut text)?;
        text.push_str(" ORDER BY 1");
        Ok(Statement::Query(Box::new(super::parse_query(&text)?)))
    }

    /// Reads `SHOW TABLES [IN s] [LIKE 'p']` of Phoenix, a query of its system tables, in which
    /// schema public is NULL.
    fn show_tables(&mut self) -> Result<Statement> {
        let mut text = "SELECT NULL::varchar AS table_cat, table_schem, table_name, \
             CASE table_type WHEN 'u' THEN 'TABLE' WHEN 'v' THEN 'VIEW' ELSE 'INDEX' END AS table_type, \
             remarks, index_state, immutable_rows, salt_buckets, view_statement, transactional \
             FROM bennu.system_catalog WHERE column_name IS NULL AND link_type IS NULL"
            .to_owned();
        if self.take_word("in") || self.take_word("from") {
            let schema = literal(&self.name()?.value);
            let condition =
                format!(" AND lower(coalesce(table_schem, 'public')) = lower({schema})");
            text.push_str(&condition);
        }
        self.shown_pattern("table_name", &mut text)?;
        text.push_str(" ORDER BY 4, 2, 3");
        Ok(Statement::Query(Box::new(super::parse_query(&text)?)))
    }

    /// Reads `[LIKE 'p']` and appends the condition on a column.
    fn shown_pattern(&mut self, column: &str, text: &mut String) -> Result<()> {
        if self.take_word("like") {
            let pattern = literal(&self.string()?);
            text.push_str(&format!(" AND {column} ILIKE {pattern}"));
        }
        Ok(())
    }

    /// Reads `SHOW CREATE TABLE t`, a query of the function of that name.
    fn show_create_table(&mut self) -> Result<Statement> {
        let position = self.position();
        let name = self.table_name()?;
        let parts = name.schema.iter().chain([&name.name]);
        let value = parts.map(|part| quote_ident(&part.value)).collect::<Vec<_>>().join(".");
        let of_type = |data_type: DataType| TypeName {
            sql_type: data_type.into(),
            named: None,
            collation: None,
            position,
        };
        let type_name = of_type(DataType::Reg(RegKind::Class));
        let table = Expr::TypedString { type_name, value, position };
        let shown = Expr::Cast {
            operand: Box::new(table.clone()),
            type_name: of_type(DataType::Text),
            position,
        };
        let definition = self.call_of("show_create_table", position, vec![table]);
        let item = |expr, alias: &str| SelectItem::Expr {
            expr,
            alias: Some(Ident { value: alias.to_owned(), position }),
        };
        let items = vec![item(shown, "table_name"), item(definition, "create_statement")];
        let select = Select::of_items(items, position);
        let query = QueryExpr::bare(QueryBody::Select(Box::new(select)), position);
        Ok(Statement::Query(Box::new(query)))
    }

    pub(super) fn reset(&mut self) -> Result<Statement> {
        self.expect_words(&["reset"])?;
        Ok(Statement::Reset(self.shown_name()?))
    }

    pub(super) fn discard(&mut self) -> Result<Statement> {
        self.expect_words(&["discard"])?;
        if self.take_word("all") {
            return Ok(Statement::DiscardAll);
        }
        match self.peek_word().as_str() {
            "plans" => {
                self.advance();
                Ok(Statement::DiscardPlans)
            }
            "sequences" => {
                self.advance();
                Ok(Statement::DiscardSequences)
            }
            "temp" | "temporary" => {
                self.advance();
                Ok(Statement::DiscardTemp)
            }
            _ => Err(self.unexpected()),
        }
    }

    // ---- prepared statements and cursors ----

    pub(super) fn prepare(&mut self) -> Result<Statement> {
        self.expect_words(&["prepare"])?;
        if self.is_word("transaction") && self.second_is_string() {
            self.advance();
            return Ok(Statement::PrepareTransaction(self.string()?));
        }
        let name = self.name()?;
        let types = if self.peek() == &Token::LParen {
            self.parenthesized(Self::type_name)?
        } else {
            Vec::new()
        };
        self.expect_words(&["as"])?;
        let position = self.position();
        if self.is_word("explain") || self.is_word("prepare") {
            return Err(self.unexpected());
        }
        let statement = self.statement()?;
        match statement {
            Statement::Query(_)
            | Statement::Insert(_)
            | Statement::Upsert(_)
            | Statement::Update(_)
            | Statement::Delete(_)
            | Statement::Merge(_) => {
                Ok(Statement::Prepare(Box::new(Prepare { name, types, statement })))
            }
            _ => Err(self.syntax_error_near(position)),
        }
    }

    pub(super) fn execute(&mut self) -> Result<Statement> {
        self.expect_words(&["execute"])?;
        let name = self.name()?;
        let arguments = if self.peek() == &Token::LParen {
            self.parenthesized(Self::expr)?
        } else {
            Vec::new()
        };
        Ok(Statement::Execute { name, arguments })
    }

    pub(super) fn deallocate(&mut self) -> Result<Statement> {
        self.expect_words(&["deallocate"])?;
        self.take_noise("prepare");
        if self.take_word("all") {
            return Ok(Statement::Deallocate(None));
        }
        Ok(Statement::Deallocate(Some(self.name()?)))
    }

    pub(super) fn declare(&mut self) -> Result<Statement> {
        self.expect_words(&["declare"])?;
        let name = self.name()?;
        let (mut scroll, mut sensitive, mut binary) = (None, None, false);
        loop {
            if self.take_word("binary") {
                binary = true;
            } else if self.take_words(&["no", "scroll"]) {
                declare_once(&mut scroll, false, "SCROLL and NO SCROLL")?;
            } else if self.take_word("scroll") {
                declare_once(&mut scroll, true, "SCROLL and NO SCROLL")?;
            } else if self.take_word("asensitive") {
                declare_once(&mut sensitive, true, "ASENSITIVE and INSENSITIVE")?;
            } else if self.take_word("insensitive") {
                declare_once(&mut sensitive, false, "ASENSITIVE and INSENSITIVE")?;
            } else {
                break;
            }
        }
        self.expect_words(&["cursor"])?;
        let hold = match self.take_words(&["with", "hold"]) {
            true => Some(true),
            false => self.take_words(&["without", "hold"]).then_some(false),
        };
        self.expect_words(&["for"])?;
        if ["insert", "update", "delete", "merge", "upsert"].iter().any(|word| self.is_word(word)) {
            return Err(self.unexpected());
        }
        let query = self.query()?;
        let declaration = CursorDeclaration {
            name,
            scroll,
            insensitive: sensitive == Some(false),
            binary,
            hold,
            query,
        };
        Ok(Statement::DeclareCursor(Box::new(declaration)))
    }

    pub(super) fn fetch(&mut self) -> Result<Statement> {
        let moves = self.take_word("move");
        if !moves {
            self.expect_words(&["fetch"])?;
        }
        let direction = self.fetch_direction()?;
        if !self.take_word("from") {
            self.take_word("in");
        }
        Ok(Statement::Fetch { direction, moves, cursor: self.name()? })
    }

    fn fetch_direction(&mut self) -> Result<FetchDirection> {
        if self.take_noise("next") {
            Ok(FetchDirection::Forward(1))
        } else if self.take_noise("prior") {
            Ok(FetchDirection::Forward(-1))
        } else if self.take_noise("first") {
            Ok(FetchDirection::Absolute(1))
        } else if self.take_noise("last") {
            Ok(FetchDirection::Absolute(-1))
        } else if self.take_noise("absolute") {
            Ok(FetchDirection::Absolute(self.count()?.ok_or_else(|| self.unexpected())?))
        } else if self.take_noise("relative") {
            Ok(FetchDirection::Relative(self.count()?.ok_or_else(|| self.unexpected())?))
        } else if self.take_word("all") {
            Ok(FetchDirection::ForwardAll)
        } else if self.take_noise("forward") {
            if self.take_word("all") {
                return Ok(FetchDirection::ForwardAll);
            }
            Ok(FetchDirection::Forward(self.count()?.unwrap_or(1)))
        } else if self.take_noise("backward") {
            if self.take_word("all") {
                return Ok(FetchDirection::BackwardAll);
            }
            let count = self.count()?.unwrap_or(1);
            Ok(FetchDirection::Forward(count.checked_neg().ok_or_else(|| self.unexpected())?))
        } else {
            Ok(FetchDirection::Forward(self.count()?.unwrap_or(1)))
        }
    }

    fn count(&mut self) -> Result<Option<i64>> {
        let position = self.position();
        if !matches!(self.peek(), Token::Minus | Token::Plus | Token::Number(..)) {
            return Ok(None);
        }
        let OptionValue::Number(text) = self.option_value()? else {
            return Err(self.syntax_error_near(position));
        };
        text.parse().map(Some).map_err(|_| self.syntax_error_near(position))
    }

    pub(super) fn close(&mut self) -> Result<Statement> {
        self.expect_words(&["close"])?;
        if self.take_word("all") {
            return Ok(Statement::Close(None));
        }
        Ok(Statement::Close(Some(self.name()?)))
    }

    pub(super) fn listen(&mut self) -> Result<Statement> {
        self.expect_words(&["listen"])?;
        Ok(Statement::Listen(self.name()?))
    }

    pub(super) fn unlisten(&mut self) -> Result<Statement> {
        self.expect_words(&["unlisten"])?;
        let channel = if self.take(&Token::Mul) { None } else { Some(self.name()?) };
        Ok(Statement::Unlisten(channel))
    }

    pub(super) fn notify(&mut self) -> Result<Statement> {
        self.expect_words(&["notify"])?;
        let channel = self.name()?;
        let payload = if self.take(&Token::Comma) { self.string()? } else { String::new() };
        Ok(Statement::Notify { channel, payload })
    }

    // ---- maintenance ----

    pub(super) fn flush(&mut self) -> Result<Statement> {
        self.expect_words(&["flush"])?;
        self.take_word("table");
        Ok(Statement::Flush(self.table_name()?))
    }

    pub(super) fn compact(&mut self) -> Result<Statement> {
        let major = self.take_word("major");
        self.expect_words(&["compact"])?;
        self.take_word("table");
        Ok(Statement::Compact { table: self.table_name()?, major })
    }

    pub(super) fn analyze(&mut self) -> Result<Statement> {
        self.advance();
        if self.take(&Token::LParen) {
            loop {
                let position = self.position();
                let name = self.label()?.value.to_ascii_lowercase();
                if !["verbose", "skip_locked"].contains(&name.as_str()) {
                    let message = format!("unrecognized ANALYZE option \"{name}\"");
                    return Err(ParseError::syntax(message, position));
                }
                self.ignored_value()?;
                if !self.take(&Token::Comma) {
                    break;
                }
            }
            self.expect(&Token::RParen)?;
        } else {
            self.take_word("verbose");
        }
        Ok(Statement::Analyze(self.maintained()?))
    }

    pub(super) fn vacuum(&mut self) -> Result<Statement> {
        self.expect_words(&["vacuum"])?;
        let (mut full, mut analyze) = (false, false);
        if self.take(&Token::LParen) {
            loop {
                let position = self.position();
                let name = self.label()?.value.to_ascii_lowercase();
                match name.as_str() {
                    "full" => full = self.boolean_option(&name)?,
                    "analyze" => analyze = self.boolean_option(&name)?,
                    _ if WITHOUT_EFFECT.contains(&name.as_str()) => self.ignored_value()?,
                    _ => {
                        let message = format!("unrecognized VACUUM option \"{name}\"");
                        return Err(ParseError::syntax(message, position));
                    }
                }
                if !self.take(&Token::Comma) {
                    break;
                }
            }
            self.expect(&Token::RParen)?;
        } else {
            full = self.take_word("full");
            self.take_word("freeze");
            self.take_word("verbose");
            analyze = self.take_word("analyze");
        }
        Ok(Statement::Vacuum { tables: self.maintained()?, full, analyze })
    }

    /// Reads the value of an option, if it has one.
    fn ignored_value(&mut self) -> Result<()> {
        if !matches!(self.peek(), Token::Comma | Token::RParen) {
            self.option_value()?;
        }
        Ok(())
    }

    fn maintained(&mut self) -> Result<Vec<TableName>> {
        if self.at_end() {
            return Ok(Vec::new());
        }
        self.list(|cursor| {
            let table = cursor.table_name()?;
            if cursor.peek() == &Token::LParen {
                return Err(ParseError::unsupported("a list of columns here", cursor.position()));
            }
            Ok(table)
        })
    }
}

/// Options of VACUUM that have no effect: nothing is frozen, and no table is truncated or locked.
const WITHOUT_EFFECT: &[&str] = &[
    "freeze",
    "verbose",
    "disable_page_skipping",
    "skip_locked",
    "index_cleanup",
    "process_toast",
    "truncate",
    "parallel",
];

/// Stores an option of DECLARE, which may be repeated but not contradicted.
fn declare_once(option: &mut Option<bool>, value: bool, both: &str) -> Result<()> {
    if option.is_some_and(|said| said != value) {
        let message = format!("cannot specify both {both}");
        return Err(ParseError::new(sqlstate::INVALID_CURSOR_DEFINITION, message, None));
    }
    *option = Some(value);
    Ok(())
}

/// Returns a string constant.
fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
