//! The extended query protocol: Parse, Bind, Describe, Execute, Close, Flush, Sync.

use std::sync::Arc;

use pgwire::messages::PgWireFrontendMessage as Message;
use pgwire::messages::data::NoData;
use pgwire::messages::extendedquery::{
    Bind, BindComplete, Close, CloseComplete, Describe, Execute, Parse, ParseComplete,
    PortalSuspended, TARGET_TYPE_BYTE_STATEMENT,
};
use pgwire::messages::response::EmptyQueryResponse;
use sql::Error;
use sql::logical::OutputColumn;
use sql::session::portals::{Portal, PortalState};
use sql::session::rows::Completion;
use sql::session::{Execution, PreparedStatement, TransactionStatus};
use types::text::TextStyle;
use types::{Datum, SqlType, binary, text};

use crate::pgwire::connection::Connection;
use crate::pgwire::failure::{Result, run};
use crate::pgwire::row::{Format, Formats, RowEncoder};

/// The OID of `unknown`, which counts as no type.
const UNKNOWN_OID: u32 = 705;

/// The unnamed statement of the last Parse.
#[derive(Clone)]
pub(super) enum UnnamedStatement {
    /// Its text is empty.
    Empty,
    /// It can be executed.
    Prepared(Arc<PreparedStatement>),
}

impl Connection {
    /// Answers a message of the extended protocol, except Sync.
    pub(super) fn extended(&mut self, message: Message) -> Result<()> {
        match message {
            Message::Parse(parse) => self.parse(&parse),
            Message::Bind(bind) => self.bind(&bind),
            Message::Describe(describe) => self.describe(&describe),
            Message::Execute(execute) => self.execute(&execute),
            Message::Close(close) => {
                self.close(&close);
                Ok(())
            }
            Message::Flush(_) => {
                self.wait_seen_commits_durable()?;
                Ok(self.channel.flush()?)
            }
            _ => Err(err!(PROTOCOL_VIOLATION: "unexpected message").into()),
        }
    }

    /// Ends the implicit transaction of the messages since the last Sync, unless in a block.
    pub(super) fn sync(&mut self) -> Result<()> {
        self.end_implicit()
    }

    fn parse(&mut self, parse: &Parse) -> Result<()> {
        let name = parse.name.as_deref();
        if name.is_none() {
            self.unnamed = None;
        }
        let text = self.session.conforming(&parse.query)?;
        let parsed = run(|| self.session.parse(&text))?;
        let statement = match parsed.as_slice() {
            [] => UnnamedStatement::Empty,
            [one] => {
                let types =
                    parameter_types(&parse.type_oids, |oid| self.session.type_with_oid(oid))?;
                let session = &mut self.session;
                let prepared = run(|| session.prepare(one, &types))?;
                UnnamedStatement::Prepared(prepared)
            }
            _ => {
                return Err(
                    err!(SYNTAX_ERROR: "cannot insert multiple commands into a prepared statement")
                        .into(),
                );
            }
        };
        match (name, statement) {
            (None, statement) => self.unnamed = Some(statement),
            (Some(name), statement) => self.keep(name, statement)?,
        }
        self.channel.output().put(&ParseComplete::new());
        Ok(())
    }

    fn keep(&mut self, name: &str, statement: UnnamedStatement) -> sql::Result<()> {
        match statement {
            UnnamedStatement::Prepared(prepared) => self.session.store_statement(name, prepared),
            UnnamedStatement::Empty => self.session.keep_empty_statement(name),
        }
    }

    /// Returns a prepared statement; `None` for an empty one.
    fn statement(&self, name: Option<&str>) -> sql::Result<Option<Arc<PreparedStatement>>> {
        let Some(name) = name else {
            return match &self.unnamed {
                Some(UnnamedStatement::Prepared(prepared)) => Ok(Some(Arc::clone(prepared))),
                Some(UnnamedStatement::Empty) => Ok(None),
                None => Err(
                    err!(INVALID_SQL_STATEMENT_NAME: "unnamed prepared statement does not exist"),
                ),
            };
        };
        match self.session.statement(name) {
            Ok(prepared) => Ok(Some(Arc::clone(prepared))),
            Err(_) if self.session.is_empty_statement(name) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn bind(&mut self, bind: &Bind) -> Result<()> {
        let name = bind.portal_name.as_deref().unwrap_or_default();
        let prepared = self.statement(bind.statement_name.as_deref())?;
        let parameters = {
            let style = self.session.text_style();
            let values = parameters(bind, prepared.as_deref(), &style)?;
            match &prepared {
                Some(prepared) => self.session.checked_parameters(prepared, values)?,
                None => values,
            }
        };
        let formats = Formats::read(&bind.result_column_format_codes)?;
        let columns = prepared.as_ref().and_then(|prepared| prepared.columns.as_ref());
        if let Some(columns) = columns
            && !formats.suit(columns.len())
        {
            return Err(violation(format!(
                "bind message has {} result formats but query has {} columns",
                formats.count(),
                columns.len()
            ))
            .into());
        }
        self.session.check_bindable(prepared.as_deref())?;
        self.session.bind_portal(name, prepared, parameters, formats.codes())?;
        self.channel.output().put(&BindComplete::new());
        Ok(())
    }

    fn describe(&mut self, describe: &Describe) -> Result<()> {
        let name = describe.name.as_deref();
        if describe.target_type != TARGET_TYPE_BYTE_STATEMENT {
            let name = name.unwrap_or_default();
            // A cursor of DECLARE is a portal, too; Execute returns its values as text.
            let (columns, formats) = match self.session.portal(name) {
                Some(portal) => (portal.columns().cloned(), Formats::read(&portal.formats)?),
                None => match self.session.cursor_columns(name) {
                    Some(columns) => (Some(columns), Formats::default()),
                    None => return Err(missing(name).into()),
                },
            };
            if columns.is_some() {
                self.session.check_describable()?;
            }
            return Ok(self.put_columns(columns.as_deref(), &formats)?);
        }
        let prepared = self.statement(name)?;
        if prepared.as_ref().is_some_and(|prepared| prepared.columns.is_some()) {
            self.session.check_describable()?;
        }
        self.channel.output().put_parameter_description(prepared.as_deref());
        let columns = prepared.as_ref().and_then(|prepared| prepared.columns.as_deref());
        Ok(self.put_columns(columns, &Formats::default())?)
    }

    fn put_columns(
        &mut self,
        columns: Option<&[OutputColumn]>,
        formats: &Formats,
    ) -> sql::Result<()> {
        match columns {
            Some(columns) => self.put_row_description(columns, formats)?,
            None => self.channel.output().put(&NoData::new()),
        }
        Ok(())
    }

    fn close(&mut self, close: &Close) {
        let name = close.name.as_deref();
        if close.target_type == TARGET_TYPE_BYTE_STATEMENT {
            match name {
                None => self.unnamed = None,
                Some(name) => {
                    self.session.forget_statement(name);
                }
            }
        } else {
            self.session.close_portal(name.unwrap_or_default());
        }
        self.channel.output().put(&CloseComplete::new());
    }

    fn execute(&mut self, execute: &Execute) -> Result<()> {
        let name = execute.name.as_deref().unwrap_or_default();
        let row_limit = match usize::try_from(execute.max_rows) {
            Ok(0) | Err(_) => usize::MAX,
            Ok(limit) => limit,
        };
        let Some(mut portal) = self.session.take_portal(name) else {
            return self.execute_cursor(name, row_limit);
        };
        if let Err(error) = self.session.check_bindable(portal.prepared.as_deref()) {
            self.session.put_portal_back(name, portal);
            return Err(error.into());
        }
        let before = self.session.transaction_status();
        let outcome = match self.run_portal(name, &mut portal, row_limit) {
            Ok(outcome) => outcome,
            Err(failure) => {
                // A failed portal remains, but cannot be executed.
                self.session.put_portal_back(name, portal);
                return Err(failure);
            }
        };
        self.put_notices();
        self.wait_statement_durable()?;
        let now = self.session.transaction_status();
        // All portals ended with the transaction.
        if before == TransactionStatus::Idle || now != TransactionStatus::Idle {
            self.session.put_portal_back(name, portal);
        }
        self.put_outcome(outcome);
        Ok(())
    }

    fn put_outcome(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Complete(completion) => self.put_completion(completion),
            Outcome::Suspended => self.channel.output().put(&PortalSuspended::new()),
            Outcome::Empty => self.channel.output().put(&EmptyQueryResponse::new()),
        }
    }

    /// Sends rows of a cursor of DECLARE.
    fn execute_cursor(&mut self, name: &str, mut row_limit: usize) -> Result<()> {
        if self.session.cursor_columns(name).is_none() {
            return Err(missing(name).into());
        }
        let mut sent: u64 = 0;
        loop {
            let wanted = row_limit.min(CURSOR_ROWS);
            let session = &mut self.session;
            let mut rows = run(|| session.execute_cursor(name, wanted))?;
            let encoder = RowEncoder::new(rows.columns(), &Formats::default());
            self.send_rows(&mut rows, &encoder, usize::MAX)?;
            sent += rows.returned_total();
            row_limit -= wanted;
            if rows.returned_total() < wanted as u64 {
                self.put_outcome(Outcome::Complete(Completion::new(format!("SELECT {sent}"))));
                return Ok(());
            }
            if row_limit == 0 {
                self.put_outcome(Outcome::Suspended);
                return Ok(());
            }
        }
    }

    fn run_portal(&mut self, name: &str, portal: &mut Portal, row_limit: usize) -> Result<Outcome> {
        let Some(prepared) = &portal.prepared else { return Ok(Outcome::Empty) };
        let formats = Formats::read(&portal.formats)?;
        let mut rows = match std::mem::replace(&mut portal.state, PortalState::Done) {
            PortalState::Bound(parameters) => {
                if self.session.is_prepared_logged(prepared) {
                    self.client.log_statement(prepared.text(), Some(name));
                }
                match self.start_statement(prepared, parameters)? {
                    Execution::Done(completion) => return Ok(Outcome::Complete(completion)),
                    Execution::CopyIn(copy) => {
                        return self.copy_in(copy).map(Outcome::Complete);
                    }
                    Execution::CopyOut(rows, format) => {
                        return self.copy_out(rows, &format).map(Outcome::Complete);
                    }
                    Execution::Rows(rows) => rows,
                }
            }
            PortalState::Open(rows) => {
                let mut rows = rows.into_inner();
                rows.restart_count();
                rows
            }
            PortalState::Exhausted => {
                portal.state = PortalState::Exhausted;
                return Ok(Outcome::Complete(Completion::new("SELECT 0")));
            }
            PortalState::Done => {
                return Err(
                    err!(OBJECT_NOT_IN_PREREQUISITE_STATE: "portal \"{name}\" cannot be run")
                        .into(),
                );
            }
        };
        let encoder = RowEncoder::new(rows.columns(), &formats);
        if self.send_rows(&mut rows, &encoder, row_limit)? {
            portal.state = PortalState::Exhausted;
            return Ok(Outcome::Complete(rows.completion()));
        }
        portal.state = PortalState::open(rows);
        Ok(Outcome::Suspended)
    }
}

/// Rows of a cursor that are read at a time.
const CURSOR_ROWS: usize = 1_024;

fn missing(name: &str) -> Error {
    err!(INVALID_CURSOR_NAME: "portal \"{name}\" does not exist")
}

/// Outcome of an Execute.
enum Outcome {
    Complete(Completion),
    Suspended,
    Empty,
}

fn violation(message: String) -> Error {
    err!(PROTOCOL_VIOLATION: message)
}

/// Converts the parameter types of a Parse message; 0 leaves a type open.
fn parameter_types(
    oids: &[u32],
    type_with_oid: impl Fn(u32) -> Option<SqlType>,
) -> sql::Result<Vec<Option<SqlType>>> {
    let read = |oid: &u32| match *oid {
        0 | UNKNOWN_OID => Ok(None),
        oid => type_with_oid(oid).map(Some).ok_or_else(|| {
            Error::not_supported(
                format!("a parameter of the type with OID {oid}"),
                "Leave the type unspecified, or cast the parameter to one of the supported types.",
            )
        }),
    };
    oids.iter().map(read).collect()
}

/// Decodes the parameters of a Bind message.
fn parameters(
    bind: &Bind,
    prepared: Option<&PreparedStatement>,
    style: &TextStyle,
) -> sql::Result<Vec<Datum>> {
    let types = prepared.map_or(&[][..], |prepared| &prepared.parameter_types);
    let formats = Formats::read(&bind.parameter_format_codes)?;
    let count = bind.parameters.len();
    if !formats.suit(count) {
        return Err(violation(format!(
            "bind message has {} parameter formats but {count} parameters",
            formats.count()
        )));
    }
    if count != types.len() {
        return Err(violation(format!(
            "bind message supplies {count} parameters, but prepared statement \"{}\" requires {}",
            bind.statement_name.as_deref().unwrap_or_default(),
            types.len()
        )));
    }
    let mut parameters = Vec::with_capacity(count);
    for (position, (value, sql_type)) in bind.parameters.iter().zip(types).enumerate() {
        parameters.push(match (value, formats.at(position)) {
            (None, _) => Datum::Null,
            (Some(bytes), Format::Text) => {
                text::parse(&style.encoding.decode_text(bytes)?, &sql_type.base, style)?
            }
            (Some(bytes), Format::Binary) => binary::parse_as(bytes, sql_type, style.encoding)?,
        });
    }
    Ok(parameters)
}

#[cfg(test)]
mod tests {
    use types::DataType;

    use super::*;

    #[test]
    fn parameter_types_may_be_left_open() {
        let of_oid = |oid| DataType::from_oid(oid).map(SqlType::from);
        let types = parameter_types(&[0, 23, 705], of_oid).unwrap();
        assert_eq!(types, [None, Some(DataType::Int4.into()), None]);
        assert_eq!(parameter_types(&[3904], of_oid).unwrap_err().sqlstate, "0A000");
    }
}
