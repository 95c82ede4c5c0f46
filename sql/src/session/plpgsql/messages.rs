//! PL/pgSQL RAISE, ASSERT and GET DIAGNOSTICS.

use types::{DataType, Datum};

use crate::binder::BodyTarget;
use crate::error::{Error, Result, SourceLocation, sqlstate};
use crate::plpgsql::body_tree::{
    AssignmentTarget, Diagnostic, Raise, RaiseLevel, RaiseOption, SqlFragment,
};
use crate::session::plpgsql::BodyExecution;

impl BodyExecution<'_> {
    pub(super) fn raise(&mut self, raise: &Raise) -> Result<()> {
        if raise.is_reraise() {
            let Some(error) = self.caught.last().cloned() else {
                bail!(STACKED_DIAGNOSTICS_ACCESSED_WITHOUT_ACTIVE_HANDLER: "RAISE without parameters cannot be used outside an \
                    exception handler");
            };
            self.is_placed = true;
            return Err(error);
        }
        let mut error = Error::default();
        let mut code = raise.condition.as_ref().map(|(_, code)| code.clone());
        let mut message = match &raise.format {
            Some(format) => Some(self.formatted(format, &raise.arguments)?),
            None => None,
        };
        for (option, value) in &raise.options {
            let text = self.option(*option, value)?;
            let again = match option {
                RaiseOption::Code => {
                    let given = code_of(&text)?;
                    code.replace(given).is_some()
                }
                RaiseOption::Message => message.replace(text).is_some(),
                RaiseOption::Detail => error.detail.replace(text).is_some(),
                RaiseOption::Hint => error.hint.replace(text).is_some(),
                RaiseOption::Column => error.column.replace(text).is_some(),
                RaiseOption::Constraint => error.constraint.replace(text).is_some(),
                RaiseOption::DataType => {
                    let named = (String::new(), text);
                    error.data_type.replace(Box::new(named)).is_some()
                }
                RaiseOption::Table => error.table.replace(text).is_some(),
                RaiseOption::Schema => error.schema.replace(text).is_some(),
            };
            if again {
                let word = option.word();
                bail!(SYNTAX_ERROR: "RAISE option already specified: {word}");
            }
        }
        let condition = raise.condition.as_ref().map(|(name, _)| name.clone());
        error.message = message.or(condition).or_else(|| code.clone()).unwrap_or_default();
        error.raised_at = Some(&RAISED_AT);
        let (severity, default) = match raise.level {
            RaiseLevel::Exception => {
                error.sqlstate =
                    code.unwrap_or_else(|| sqlstate::RAISE_EXCEPTION.to_owned()).into();
                return Err(error);
            }
            RaiseLevel::Warning => ("WARNING", "01000"),
            RaiseLevel::Notice => ("NOTICE", "00000"),
            RaiseLevel::Info => ("INFO", "00000"),
            RaiseLevel::Log => ("LOG", "00000"),
            RaiseLevel::Debug => ("DEBUG", "00000"),
        };
        error.sqlstate = code.unwrap_or_else(|| default.to_owned()).into();
        error.context = Some(self.context_here());
        self.session.raise_notice(severity, error)
    }

    fn option(&mut self, option: RaiseOption, value: &SqlFragment) -> Result<String> {
        let (value, sql_type) = self.value(value, BodyTarget::Any)?;
        if value.is_null() {
            let _ = option;
            bail!(NULL_VALUE_NOT_ALLOWED: "RAISE statement option cannot be null");
        }
        self.written(&value, &sql_type)
    }

    /// Formats a RAISE message: each percent sign is replaced by an argument.
    fn formatted(&mut self, format: &str, arguments: &[SqlFragment]) -> Result<String> {
        let mut arguments = arguments.iter();
        let mut text = String::new();
        let mut rest = format.chars().peekable();
        while let Some(next) = rest.next() {
            if next != '%' {
                text.push(next);
                continue;
            }
            if rest.next_if_eq(&'%').is_some() {
                text.push('%');
                continue;
            }
            let Some(argument) = arguments.next() else {
                bail!(SYNTAX_ERROR: "too few parameters specified for RAISE");
            };
            let (value, sql_type) = self.value(argument, BodyTarget::Any)?;
            match value.is_null() {
                true => text.push_str("<NULL>"),
                false => text.push_str(&self.written(&value, &sql_type)?),
            }
        }
        Ok(text)
    }

    pub(super) fn assert(
        &mut self,
        condition: &SqlFragment,
        message: Option<&SqlFragment>,
    ) -> Result<()> {
        let shown = self.session.settings.show("plpgsql.check_asserts");
        if shown.is_ok_and(|(_, value)| value == "off") || self.is_true(condition)? {
            return Ok(());
        }
        let text = match message {
            Some(message) => match self.value_as(message, &DataType::Text)? {
                Datum::Text(text) => text.to_string(),
                _ => "assertion failed".to_owned(),
            },
            None => "assertion failed".to_owned(),
        };
        bail!(ASSERT_FAILURE: text)
    }

    pub(super) fn diagnostics(
        &mut self,
        stacked: bool,
        items: &[(AssignmentTarget, Diagnostic)],
    ) -> Result<()> {
        let error = self.caught.last().cloned();
        let Some(error) = error.or_else(|| (!stacked).then(Error::default)) else {
            bail!(STACKED_DIAGNOSTICS_ACCESSED_WITHOUT_ACTIVE_HANDLER: "GET STACKED DIAGNOSTICS cannot be used outside an \
                exception handler");
        };
        for (target, item) in items {
            if *item == Diagnostic::RowCount {
                let count = Datum::Int8(i64::try_from(self.row_count).unwrap_or(i64::MAX));
                self.assign(target, count, &DataType::Int8.into())?;
                continue;
            }
            let domain = error.data_type.as_deref();
            let text = match item {
                Diagnostic::RowCount => None,
                Diagnostic::Context => Some(self.context_here()),
                Diagnostic::Code => Some(error.sqlstate.to_string()),
                Diagnostic::Message => Some(error.message.clone()),
                Diagnostic::Detail => error.detail.clone(),
                Diagnostic::Hint => error.hint.clone(),
                Diagnostic::ErrorContext => error.context.clone(),
                Diagnostic::Column => error.column.clone(),
                Diagnostic::Constraint => error.constraint.clone(),
                Diagnostic::DataType => domain.map(|(_, name)| name.clone()),
                Diagnostic::Table => error.table.clone(),
                Diagnostic::Schema => {
                    error.schema.clone().or_else(|| domain.map(|(schema, _)| schema.clone()))
                }
            };
            let text = Datum::text(text.unwrap_or_default());
            self.assign(target, text, &DataType::Text.into())?;
        }
        Ok(())
    }
}

/// Source location of RAISE errors.
static RAISED_AT: SourceLocation =
    SourceLocation { file: file!(), line: line!(), routine: "exec_stmt_raise" };

/// Returns the SQLSTATE of a condition name or code.
fn code_of(text: &str) -> Result<String> {
    let of_code = |byte: u8| byte.is_ascii_digit() || byte.is_ascii_uppercase();
    if text.len() == 5 && text.bytes().all(of_code) {
        return Ok(text.to_owned());
    }
    sqlstate::codes_of_condition(text)
        .first()
        .map(|code| (*code).to_owned())
        .ok_or_else(|| err!(UNDEFINED_OBJECT: "unrecognized exception condition \"{text}\""))
}
