//! Type conversion: literals to values, casts, and the common type of several expressions.
//!
//! Source: PostgreSQL's `coerce_type`, `select_common_type` (parse_coerce.c), documentation
//! sections 10.4 and 10.5.
//!
//! A literal becomes a constant in the binder, unless its value depends on settings of the session
//! or on the current time; then a cast remains, which the executor evaluates.

use std::sync::Arc;

use types::cast::{CastContext, cast, cast_context, has_leaf, is_foldable};
use types::datatype::RegKind;
use types::datetime::{DateOrder, IntervalStyle, TimeZone};
use types::datum::Text;
use types::expr::{EvalContext, Expr};
use types::text::{TextStyle, parse, parse_as, write};
use types::{DataType, Datum, SqlType};

use crate::binder::level::Binder;
use crate::binder::parameters::{Parameters, undetermined};
use crate::binder::typed::{Typed, can_coerce, category, is_preferred, null};
use crate::error::{Error, Result};

impl Binder<'_> {
    /// Converts a value if a cast exists in the context; `None` if not.
    pub(super) fn coerce(
        &mut self,
        value: Typed,
        to: &SqlType,
        context: CastContext,
    ) -> Result<Option<Expr>> {
        let explicit = context == CastContext::Explicit;
        if let Some(oid) = to.domain
            && value.sql_type.domain != to.domain
        {
            return self.coerce_to_domain(value, to, oid, context);
        }
        if value.is_unknown() {
            let settled = self.settle(value, to, explicit)?;
            return Ok(Some(self.with_checked_parts(settled)));
        }
        if let (DataType::Record, DataType::Composite(of)) = (value.base(), &to.base) {
            return self.row_as(&value, of, context);
        }
        if value.sql_type.base_type() == to.base_type()
            || (*value.base() == to.base && to.modifier == -1)
        {
            return Ok(Some(value.expr));
        }
        match cast_context(value.base(), &to.base) {
            Some(needed) if needed <= context => {
                let cast = cast_expression(value.expr, &value.sql_type.base, to, explicit);
                Ok(Some(self.with_checked_parts(cast)))
            }
            _ => Ok(None),
        }
    }

    fn coerce_to_domain(
        &mut self,
        value: Typed,
        to: &SqlType,
        oid: u32,
        context: CastContext,
    ) -> Result<Option<Expr>> {
        let Some(domain) = self.catalog.domain(oid) else {
            return self.coerce(value, &to.base_type(), context);
        };
        let (domain, position) = (Arc::clone(domain), value.position);
        if let Some(index) = Parameters::open_index(&value) {
            self.parameters.settle(index, to, position)?;
        }
        // A literal is parsed element by element as the domain, so that no element is truncated.
        let is_read = value.is_unknown() && domain.checks.elements.is_some();
        let below = if is_read { CastContext::Assignment } else { context };
        let Some(below) = self.coerce(value, &to.base_type(), below)? else { return Ok(None) };
        if let (true, Expr::Constant { value, .. }) = (is_read, &below)
            && domain.checks.is_foldable()
        {
            let checked = domain.checks.check_parts(value, &EvalContext::default());
            checked.map_err(|error| Error::from(error).at(position))?;
        }
        Ok(Some(domain.checked(below, context == CastContext::Explicit)))
    }

    /// Returns the name of a type as it is in messages.
    pub(super) fn type_name(&self, sql_type: &SqlType) -> String {
        self.catalog.shown_type_of(sql_type, self.search_path())
    }

    /// Converts a value to a type that overload resolution has found to fit.
    pub(super) fn implicit(&mut self, value: Typed, to: impl Into<SqlType>) -> Result<Expr> {
        let (from, to, position) = (value.sql_type.clone(), to.into(), value.position);
        self.coerce(value, &to, CastContext::Implicit)?
            .ok_or_else(|| self.cannot_cast(&from, &to).at(position))
    }

    /// Converts a value with an explicit cast.
    pub(super) fn explicit(
        &mut self,
        value: Typed,
        to: impl Into<SqlType>,
        position: usize,
    ) -> Result<Expr> {
        let (from, to) = (value.sql_type.clone(), to.into());
        self.coerce(value, &to, CastContext::Explicit)?
            .ok_or_else(|| self.cannot_cast(&from, &to).at(position))
    }

    fn cannot_cast(&self, from: &SqlType, to: &SqlType) -> Error {
        err!(CANNOT_COERCE: "cannot cast type {} to {}", self.type_name(from), self.type_name(to))
    }

    /// Converts a value of unknown type to text; other values are unchanged.
    pub(super) fn resolve_unknown(&mut self, value: Typed) -> Result<Typed> {
        if !value.is_unknown() {
            return Ok(value);
        }
        let position = value.position;
        let expr = self.settle(value, &DataType::Text.into(), false)?;
        Ok(Typed::new(expr, DataType::Text, position))
    }

    /// Converts an argument for a parameter of any type: a literal becomes text.
    ///
    /// # Errors
    ///
    /// 42P18 for a parameter whose type is not determined.
    pub(super) fn of_any_type(&mut self, value: Typed) -> Result<Typed> {
        match Parameters::open_index(&value) {
            Some(index) => Err(undetermined(index)),
            None => self.resolve_unknown(value),
        }
    }

    fn settle(&mut self, value: Typed, to: &SqlType, explicit: bool) -> Result<Expr> {
        let position = value.position;
        self.note_literal(position, to);
        let parameter = Parameters::open_index(&value);
        match value.expr {
            Expr::Constant { value: Datum::Text(text), .. } => {
                if let DataType::Reg(kind) = to.base
                    && names_object(&text, &to.base)
                {
                    self.check_name(kind, &text, position)?;
                }
                let settled = self.settled_literal(&text, to, position)?;
                let text = settled.map_or(text, Text::from);
                literal(&text, to, explicit).map_err(|error| {
                    // PostgreSQL applies the length coercion later, where the error has no
                    // position.
                    let plain = SqlType { modifier: -1, ..to.clone() };
                    let too_long = to.modifier >= 0 && to.base != DataType::Interval;
                    let is_read = too_long && literal(&text, &plain, explicit).is_ok();
                    if is_read { error } else { error.at(position) }
                })
            }
            Expr::Constant { .. } => Ok(null(&to.base)),
            value => {
                let Some(index) = parameter else {
                    // A field of a row that was a literal.
                    return Ok(cast_expression(value, &DataType::Text, to, true));
                };
                let parameter = self.parameters.settle(index, &(&to.base).into(), position)?;
                let plain = to.modifier == -1;
                let cast = |operand| cast_expression(operand, &to.base, to, explicit);
                Ok(if plain { parameter } else { cast(parameter) })
            }
        }
    }

    /// Checks that the object that a literal names exists. Literals in the query of a view are not
    /// checked.
    pub(super) fn check_name(&self, kind: RegKind, text: &str, position: usize) -> Result<()> {
        if self.view.is_some() {
            return Ok(());
        }
        let checked = self.system.check_name(self.catalog, kind, text);
        checked.map_err(|error| error.at(position))
    }

    /// Converts a value to boolean, as the condition of a clause.
    pub(super) fn condition(&mut self, value: Typed, place: &str) -> Result<Expr> {
        let (from, position) = (value.sql_type.clone(), value.position);
        let to = DataType::Bool.into();
        self.coerce(value, &to, CastContext::Assignment)?.ok_or_else(|| {
            err!(DATATYPE_MISMATCH: "argument of {place} must be type boolean, not type {}", self.type_name(&from); at position)
        })
    }

    /// Converts values to their common type.
    pub(super) fn unify(
        &mut self,
        values: Vec<Typed>,
        place: &str,
    ) -> Result<(Vec<Expr>, SqlType)> {
        let base = common_type(&values, place)?;
        let same = values.windows(2).all(|pair| pair[0].sql_type == pair[1].sql_type);
        let first = values.iter().find(|value| !value.is_unknown()).map(|first| &first.sql_type);
        let sql_type = match first {
            Some(first) if first.base == base && (same || first.is_domain_array()) => first.clone(),
            _ => base.into(),
        };
        let to = SqlType { modifier: -1, ..sql_type.clone() };
        let unified = values.into_iter().map(|value| self.implicit(value, &to));
        Ok((unified.collect::<Result<_>>()?, sql_type))
    }
}

/// Returns the common type of the values of CASE, UNION and similar constructs.
pub(super) fn common_type(values: &[Typed], place: &str) -> Result<DataType> {
    let mut common = &DataType::Unknown;
    for value in values.iter().filter(|value| !value.is_unknown()) {
        let next = value.base();
        if *common == DataType::Unknown || common == next {
            common = next;
        } else if category(common) != category(next) {
            bail!(DATATYPE_MISMATCH: "{place} types {} and {} cannot be matched", common.sql_name(), next.sql_name();
                with_type_mention common; with_type_mention next; at value.position);
        } else if !is_preferred(common) && can_coerce(common, next) && !can_coerce(next, common) {
            common = next;
        }
    }
    Ok(if *common == DataType::Unknown { DataType::Text } else { common.clone() })
}

/// Returns a cast; a constant is folded if the result is the same in every session.
pub(super) fn cast_expression(expr: Expr, from: &DataType, to: &SqlType, explicit: bool) -> Expr {
    if let Expr::Constant { value, .. } = &expr {
        if matches!(value, Datum::Null) {
            return null(&to.base);
        }
        if is_foldable(from, &to.base)
            && let Ok(value) = cast(value, from, to, explicit, &EvalContext::planning())
        {
            return Expr::constant(value, &to.base);
        }
    }
    Expr::Cast { operand: Box::new(expr), from: from.clone(), to: to.clone(), explicit }
}

fn is_date_or_time(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Date
            | DataType::Time
            | DataType::Timetz
            | DataType::Timestamp
            | DataType::Timestamptz
            | DataType::Interval
    )
}

/// Returns the constant of a quoted literal, or a cast if the value depends on the session.
fn literal(text: &Text, to: &SqlType, explicit: bool) -> Result<Expr> {
    let of_session = needs_session(text, to);
    let value = match &to.base {
        DataType::Text | DataType::Varchar | DataType::Char | DataType::Unknown => {
            Datum::Text(text.clone())
        }
        base if names_clock(text, base) || names_object(text, base) => Datum::Null,
        base if is_made_of_times(base) => match same_in_all_sessions(text, base) {
            Err(_) if has_leaf(base, &is_of_catalog) => Datum::Null,
            read => read?.unwrap_or(Datum::Null),
        },
        _ if depends_on_style(text, to) => Datum::Null,
        _ => match parse_as(text, to, &TextStyle::default()) {
            // The meaning of a time zone abbreviation may depend on the current date.
            Err(error) if error.sqlstate == "0A000" && of_session => Datum::Null,
            read => read?,
        },
    };
    if of_session {
        let operand = Box::new(Expr::constant(Datum::Text(text.clone()), DataType::Text));
        return Ok(Expr::Cast { operand, from: DataType::Text, to: to.clone(), explicit: true });
    }
    if to.modifier == -1 {
        return Ok(Expr::constant(value, &to.base));
    }
    let value = cast(&value, &to.base, to, explicit, &EvalContext::default())?;
    Ok(Expr::constant(value, &to.base))
}

/// Returns whether the value of a literal depends on the session or the time of evaluation.
pub(super) fn needs_session(text: &str, sql_type: &SqlType) -> bool {
    let to = &sql_type.base;
    if names_clock(text, to) || names_object(text, to) {
        return true;
    }
    if is_made_of_times(to) {
        return !matches!(same_in_all_sessions(text, to), Ok(Some(_)));
    }
    let zoned = matches!(to, DataType::Timestamptz | DataType::Timetz) && {
        let text = text.trim().to_ascii_lowercase();
        !names_offset(&text) && !text.ends_with("infinity")
    };
    zoned || depends_on_style(text, sql_type)
}

/// Returns whether a type is an array or row with elements that depend on session settings.
fn is_made_of_times(to: &DataType) -> bool {
    let of_session = |leaf: &DataType| is_date_or_time(leaf) || is_of_catalog(leaf);
    (to.element().is_some() || to.is_row()) && has_leaf(to, &of_session)
}

/// Returns the value of a literal if it is the same under all session settings.
///
/// # Errors
///
/// The error of the literal, if it is invalid under all settings.
fn same_in_all_sessions(text: &str, to: &DataType) -> Result<Option<Datum>> {
    const HOUR: i32 = 3600;
    let read = |order, interval, hours: i32| {
        let mut style =
            TextStyle { time_zone: TimeZone::fixed(hours * HOUR), ..TextStyle::default() };
        (style.formats.style.order, style.formats.style.interval) = (order, interval);
        let value = parse(text, to, &style)?;
        let mut bytes = Vec::new();
        write(&value, to, &TextStyle::default(), &mut bytes)?;
        Ok::<_, types::Error>((value, bytes))
    };
    let first = read(DateOrder::Mdy, IntervalStyle::Postgres, 0);
    let second = read(DateOrder::Dmy, IntervalStyle::SqlStandard, 14);
    let third = read(DateOrder::Ymd, IntervalStyle::Postgres, -12);
    match (first, second, third) {
        (Ok((value, first)), Ok((_, second)), Ok((_, third))) => {
            Ok((first == second && second == third).then_some(value))
        }
        (Err(error), Err(_), Err(_)) if error.sqlstate != "0A000" => Err(error.into()),
        _ => Ok(None),
    }
}

/// Returns whether the value of a date or interval literal depends on `DateStyle` or
/// `IntervalStyle`.
fn depends_on_style(text: &str, to: &SqlType) -> bool {
    let base = &to.base;
    let begins_with_year = |text: &str| {
        let digits = text.trim_start().bytes().take_while(u8::is_ascii_digit).count();
        digits > 2 && text.trim_start()[digits..].starts_with('-')
    };
    match base {
        _ if names_clock(text, base) => false,
        DataType::Date | DataType::Timestamp | DataType::Timestamptz if begins_with_year(text) => {
            false
        }
        DataType::Date | DataType::Timestamp | DataType::Timestamptz | DataType::Timetz => {
            let read = |order| {
                let mut style = TextStyle::default();
                style.formats.style.order = order;
                parse(text, base, &style).ok()
            };
            let [first, others @ ..] = [DateOrder::Mdy, DateOrder::Dmy, DateOrder::Ymd].map(read);
            others.iter().any(|other| *other != first)
        }
        // A modifier that restricts the fields applies to the literal; it cannot be applied to a
        // text later.
        DataType::Interval if text.contains('-') && to.modifier < 0 => {
            let mut style = TextStyle::default();
            style.formats.style.interval = IntervalStyle::SqlStandard;
            match (parse(text, base, &TextStyle::default()), parse(text, base, &style)) {
                (Ok(Datum::Interval(one)), Ok(Datum::Interval(other))) => !one.is_identical(&other),
                (one, other) => one.ok() != other.ok(),
            }
        }
        _ => false,
    }
}

/// Returns whether a literal is the name of a catalog object.
fn names_object(text: &str, to: &DataType) -> bool {
    let none = text == "-" && matches!(to, DataType::Reg(kind) if !kind.is_of_operators());
    is_of_catalog(to.element().unwrap_or(to))
        && (text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()))
        && !none
}

/// Returns whether the text form of a type contains names of catalog objects.
fn is_of_catalog(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Reg(_) | DataType::AclItem)
}

/// Returns whether a date or time literal contains a word for the present, such as `now`.
fn names_clock(text: &str, to: &DataType) -> bool {
    const WORDS: [&str; 4] = ["now", "today", "tomorrow", "yesterday"];
    has_leaf(to, &is_date_or_time) && {
        let text = text.to_ascii_lowercase();
        WORDS.iter().any(|word| text.contains(word))
    }
}

/// Returns whether a timestamp in lower case ends in `z` or in an offset such as `+02` or `-03:30`.
fn names_offset(text: &str) -> bool {
    let Some(colon) = text.find(':') else { return false };
    if let Some(clock) = text.strip_suffix('z') {
        return clock.ends_with(|last: char| last.is_ascii_digit());
    }
    text[colon..].rfind(['+', '-']).is_some_and(|sign| {
        text[colon + sign + 1..].bytes().all(|byte| byte.is_ascii_digit() || byte == b':')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_with_offset_are_session_independent() {
        assert!(!needs_session("2024-01-01 00:00:00+00", &DataType::Timestamptz.into()));
        assert!(!needs_session("2024-01-01T00:00:00Z", &DataType::Timestamptz.into()));
        assert!(!needs_session("2024-01-01 00:00:00-03:30", &DataType::Timestamptz.into()));
        assert!(needs_session("2024-01-01", &DataType::Timestamptz.into()));
        assert!(needs_session("2024-01-01 10:00", &DataType::Timestamptz.into()));
        assert!(needs_session("2024-01-01 10:00 Europe/Oslo", &DataType::Timestamptz.into()));
        assert!(needs_session("today", &DataType::Date.into()));
        assert!(!needs_session("2024-01-01", &DataType::Date.into()));
    }
}
