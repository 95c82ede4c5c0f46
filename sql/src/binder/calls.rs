//! Binding of function calls: built-in functions, casts in function notation, and special syntax.
//!
//! [`expressions`](crate::binder::expressions) calls [`Binder::bind_call`] for each call.
//! User-defined functions are tried first ([`meant`](crate::binder::function_resolution)), then
//! aggregates, window functions, set-returning functions and plain functions of `types::function`.

use std::sync::Arc;

use types::aggregate::AggregateKind;
use types::cast::CastContext;
use types::datatype::RegKind;
use types::datum::{Array, Nested};
use types::expr::Expr;
use types::function::Signature;
use types::{DataType, Datum, SqlType};

use crate::ast::{FunctionCall, Ident, MinMax, SqlValueFunction, UNKNOWN_OPERATOR};
use crate::binder::aggregates::is_aggregate;
use crate::binder::arrays::{internal, no_array};
use crate::binder::json_records::JsonRows;
use crate::binder::level::{Binder, SET, SUBQUERY};
use crate::binder::overload_resolution::{Match, resolve_function};
use crate::binder::polymorphic::{is_exact, undetermined};
use crate::binder::set_functions::is_set_function;
use crate::binder::tree::for_each_column;
use crate::binder::typed::{Typed, null};
use crate::binder::window::is_window_function;
use crate::catalog::name::is_temporary;
use crate::error::{Error, Result};

impl Binder<'_> {
    /// Binds a function call.
    pub(super) fn bind_call(&mut self, call: &FunctionCall) -> Result<Typed> {
        let name = call.name.name.value.as_str();
        if let Some(symbol) = name.strip_prefix(UNKNOWN_OPERATOR) {
            return Err(self.unknown_operator(call, symbol)?);
        }
        if call.name.schema.is_none() && self.is_phoenix_name(name) {
            return self.bind_phoenix_call(call);
        }
        self.bind_known_call(call)
    }

    /// Binds a call of a function of a user or of PostgreSQL.
    pub(super) fn bind_known_call(&mut self, call: &FunctionCall) -> Result<Typed> {
        let position = call.name.position();
        let name = call.name.name.value.as_str();
        if let Some(bound) = self.bind_user_call(call)? {
            return Ok(bound);
        }
        if let Some(schema) = call.name.schema.as_ref().filter(|one| one.value != "pg_catalog") {
            let cast = self.cast_to_type_in(&schema.value, call)?;
            return cast.map_or_else(|| Err(self.undefined_in_schema(call)), Ok);
        }
        if types::function::is_internal(name) {
            return Err(undefined_function(&self.call_text(name, &[]), position));
        }
        if call.variadic && call.over.is_none() {
            check_plain(call, name)?;
            if let Some(bound) = self.bind_variadic(call)? {
                return Ok(bound);
            }
        }
        if let Some(over) = &call.over {
            return self.bind_window_call(call, over, position);
        }
        if is_aggregate(call) {
            return self.bind_aggregate(name, call, position);
        }
        if is_window_function(name) {
            bail!(WRONG_OBJECT_TYPE: "window function {name} requires an OVER clause"; at position);
        }
        if name == "grouping" && call.name.schema.is_none() && !call.arguments.is_empty() {
            return self.bind_grouping(&call.arguments, position);
        }
        let nullary = |signature: &Signature| signature.arguments.is_empty();
        if call.star && !types::function::overloads(name).iter().any(nullary) {
            return self.function(name, Vec::new(), position);
        }
        check_plain(call, name)?;
        self.bind_plain_call(call)
    }

    /// Binds a call without DISTINCT, ORDER BY, FILTER or OVER.
    fn bind_plain_call(&mut self, call: &FunctionCall) -> Result<Typed> {
        let (name, position) = (call.name.name.value.as_str(), call.name.position());
        if let ("current_schema", []) = (name, call.arguments.as_slice()) {
            return self.current_schema(position);
        }
        if let Some(rows) = JsonRows::of(call) {
            return self.bind_json_rows(call, rows);
        }
        if is_set_function(name) {
            return self.bind_set_use(call, position);
        }
        if call.arguments.is_empty()
            && let Some(value) = self.constants.value(name)
        {
            if let Some(bound) = self.bind_user_instead(call, &[])? {
                return Ok(bound);
            }
            return Ok(session_constant(name, value, position));
        }
        if call.arguments.iter().any(|argument| argument.name.is_some()) {
            let arguments = self.placed_arguments(call, types::function::overloads(name))?;
            return self.function(name, arguments, position);
        }
        let arguments = call.arguments.iter().map(|argument| self.bind_expr(&argument.value));
        let mut arguments = arguments.collect::<Result<Vec<Typed>>>()?;
        // The JDBC driver sends parameters of type void for the results of a call.
        arguments.retain(|argument| {
            !matches!(argument.expr, Expr::Parameter { data_type: DataType::Void, .. })
        });
        if let Some(bound) = self.bind_user_instead(call, &arguments)? {
            return Ok(bound);
        }
        match (name, arguments.as_slice()) {
            ("enum_first" | "enum_last" | "enum_range", [_] | [_, _]) => {
                self.enum_function(name, arguments, position)
            }
            ("pg_typeof", [value]) => Ok(type_of(value, position)),
            ("num_nulls" | "num_nonnulls", [_, ..]) => {
                let is_null =
                    |value: Typed| Typed::boolean(Expr::IsNull(Box::new(value.expr)), position);
                self.function(name, arguments.into_iter().map(is_null).collect(), position)
            }
            ("nextval" | "currval" | "setval", [sequence, ..]) => {
                if let (true, Expr::Constant { value: Datum::Text(text), .. }) =
                    (sequence.is_unknown(), &sequence.expr)
                {
                    self.check_name(RegKind::Class, text, sequence.position)?;
                }
                self.function(name, arguments, position)
            }
            _ => self.function(name, arguments, position),
        }
    }

    /// Returns the error for a function that does not exist in its schema.
    fn undefined_in_schema(&mut self, call: &FunctionCall) -> Error {
        let values = call.arguments.iter().map(|argument| self.bind_expr(&argument.value));
        let types =
            values.map(|value| value.map(|value| value.sql_type.base)).collect::<Result<Vec<_>>>();
        let position = call.name.position();
        let schema = call.name.schema.as_ref().map_or("", |schema| &schema.value);
        match types {
            Ok(types) => {
                let name = format!("{schema}.{}", call.name.name.value);
                undefined_function(&self.call_text(&name, &types), position)
            }
            Err(error) => error,
        }
    }

    /// Binds `enum_first`, `enum_last` and `enum_range`: they depend on the type of the argument,
    /// not on its value alone.
    fn enum_function(
        &mut self,
        name: &str,
        arguments: Vec<Typed>,
        position: usize,
    ) -> Result<Typed> {
        let types: Vec<DataType> = arguments.iter().map(Typed::base).cloned().collect();
        let of = types.iter().find_map(|data_type| match data_type {
            DataType::Enum(of) => Some((of, data_type)),
            _ => None,
        });
        let fits = |data_type: &DataType| {
            *data_type == DataType::Unknown || of.is_some_and(|(_, known)| known == data_type)
        };
        let suits = types.iter().all(fits) && (name == "enum_range" || types.len() == 1);
        let Some((of, data_type)) = of.filter(|_| suits) else {
            if types.iter().all(|data_type| *data_type == DataType::Unknown) {
                return Err(undetermined());
            }
            return Err(undefined_function(&self.call_text(name, &types), position));
        };
        let ranks = of.labels().iter().map(|label| Datum::Int8(label.rank));
        let end = |rank: Option<Datum>| {
            rank.map(|rank| Typed::constant(rank, data_type, position)).ok_or_else(|| {
                let shown = data_type.sql_name();
                err!(OBJECT_NOT_IN_PREREQUISITE_STATE: "enum {shown} contains no values"; with_type_mention data_type;
                    at position)
            })
        };
        match name {
            "enum_first" => return end(ranks.clone().next()),
            "enum_last" => return end(ranks.clone().next_back()),
            _ => {}
        }
        let all = Datum::Nested(Nested::Array(Arc::new(Array::from_elements(ranks.collect()))));
        let array = data_type.array().ok_or_else(|| no_array(data_type, position))?;
        let all = Expr::constant(all, &array);
        let expr = match arguments.len() {
            1 => all,
            _ => {
                let bounds = arguments.into_iter().map(|bound| self.implicit(bound, data_type));
                let mut values = vec![all];
                for bound in bounds {
                    values.push(bound?);
                }
                internal("enum range", values, &array)
            }
        };
        Ok(Typed::new(expr, array, position))
    }

    /// Binds a call of a built-in function by name.
    pub(super) fn function(
        &mut self,
        name: &str,
        arguments: Vec<Typed>,
        position: usize,
    ) -> Result<Typed> {
        let arguments = self.stringed(name, arguments)?;
        let arguments = self.labelled(name, arguments)?;
        let types: Vec<DataType> = arguments.iter().map(Typed::base).cloned().collect();
        match resolve_function(name, &types) {
            Match::One(signature) => {
                let given: Vec<SqlType> =
                    arguments.iter().map(|one| one.sql_type.clone()).collect();
                self.note_call(position, signature, &given);
                self.call(signature, arguments, position)
            }
            Match::Ambiguous => {
                bail!(AMBIGUOUS_FUNCTION: "function {} is not unique", self.shown_call(name, &arguments);
                    hint "Could not choose a best candidate function. You might need to add explicit type casts."; at position)
            }
            Match::None => self.cast_call(name, arguments, position),
        }
    }

    /// Binds the arguments of a call in the order of the parameters: positional ones, then named
    /// ones (`name => value`), then defaults.
    pub(super) fn placed_arguments(
        &mut self,
        call: &FunctionCall,
        overloads: &[Signature],
    ) -> Result<Vec<Typed>> {
        let values = self.arguments_of(call)?;
        if call.arguments.iter().all(|argument| argument.name.is_none()) {
            return Ok(values);
        }
        let (name, position) = (call.name.name.value.as_str(), call.name.position());
        let names = call.arguments.iter().map(|argument| argument.name.as_ref());
        let values: Vec<(Option<&Ident>, Typed)> = names.zip(values).collect();
        let shown = || {
            let shown = values.iter().map(|(name, value)| match name {
                Some(name) => format!("{} => {}", name.value, self.type_name(&value.sql_type)),
                None => self.type_name(&value.sql_type),
            });
            format!("{name}({})", shown.collect::<Vec<_>>().join(", "))
        };
        let unknown = undefined_function(&shown(), position);
        // Overloads share their parameter names; the longest has all of them.
        let longest = overloads.iter().max_by_key(|one| one.names.len());
        let names = longest.map_or(&[][..], |signature| signature.names);
        let mut places: Vec<Option<Typed>> = Vec::new();
        for (index, (name, value)) in values.into_iter().enumerate() {
            let place = match name {
                None => index,
                Some(name) => match names.iter().position(|one| *one == name.value) {
                    Some(place) => place,
                    None => return Err(unknown),
                },
            };
            places.resize(places.len().max(place + 1), None);
            if places[place].replace(value).is_some() {
                bail!(SYNTAX_ERROR: "argument name \"{}\" used more than once", names[place]; at position);
            }
        }
        let defaulted = |(index, place): (usize, Option<Typed>)| {
            place.or_else(|| default_of(name, index, position)).ok_or_else(|| unknown.clone())
        };
        places.into_iter().enumerate().map(defaulted).collect()
    }

    /// Returns the cast that `schema.type(value)` stands for, if there is such a type.
    fn cast_to_type_in(&mut self, schema: &str, call: &FunctionCall) -> Result<Option<Typed>> {
        let name = &call.name.name.value;
        let found = self.catalog.find_type(Some(schema), name, self.search_path());
        let (Some(to), [argument]) = (found.map(|one| one.sql_type()), call.arguments.as_slice())
        else {
            return Ok(None);
        };
        let value = self.bind_expr(&argument.value)?;
        let cast = self.coerce(value, &to, CastContext::Explicit)?;
        Ok(cast.map(|expr| Typed { expr, sql_type: to, position: call.name.position() }))
    }

    /// Binds `type(value)` as a cast, in PostgreSQL's functional cast notation.
    fn cast_call(&mut self, name: &str, arguments: Vec<Typed>, position: usize) -> Result<Typed> {
        if let Some(bound) = self.input_output_call(name, &arguments, position)? {
            return Ok(bound);
        }
        let shown = self.shown_call(name, &arguments);
        let types: Vec<DataType> = arguments.iter().map(Typed::base).cloned().collect();
        // Temporary types and functions must be qualified in a call.
        let mut schemas = self.search_path().schemas().iter().filter(|one| !is_temporary(one));
        let mut of_users = || schemas.find_map(|schema| self.catalog.type_in(schema, name));
        let named = DataType::from_name(name).map(SqlType::from);
        let named = named.or_else(|| of_users().map(|one| one.sql_type()));
        // `text(row)` is a reference to the field `text`; the cast to text has to be written as
        // one.
        let is_text_of_row = |to: &SqlType| {
            let is_text = matches!(
                to.base,
                DataType::Text | DataType::Varchar | DataType::Char | DataType::Name
            );
            is_text && types.iter().all(|one| one.is_row())
        };
        if let ([_], Some(to)) = (types.as_slice(), named.filter(|to| !is_text_of_row(to))) {
            let value = arguments.first();
            let cast = value.cloned();
            let cast = cast.map(|value| self.coerce(value, &to, CastContext::Explicit));
            if let Some(expr) = cast.transpose()?.flatten() {
                return Ok(Typed { expr, sql_type: to, position });
            }
        }
        if let [value] = arguments.as_slice()
            && let Some(field) = self.field_named(value, name)
        {
            return Ok(field);
        }
        let is_polymorphic = types::function::overloads(name).iter().any(|signature| {
            let pairs = signature.arguments.iter().zip(&types);
            signature.arguments.len() == types.len()
                && pairs.clone().any(|(to, _)| is_exact(to))
                && pairs.clone().all(|(to, from)| !is_exact(to) || *from == DataType::Unknown)
        });
        if is_polymorphic {
            return Err(undetermined());
        }
        Err(undefined_function(&shown, position))
    }

    /// Returns a call as it is in messages.
    pub(super) fn shown_call(&self, name: &str, arguments: &[Typed]) -> String {
        let types: Vec<String> =
            arguments.iter().map(|one| self.type_name(&one.sql_type)).collect();
        format!("{name}({})", types.join(", "))
    }

    /// Returns a call with arguments of these types as it is in messages.
    pub(super) fn call_text(&self, name: &str, types: &[DataType]) -> String {
        let types: Vec<String> = types.iter().map(|one| self.type_name(&one.into())).collect();
        format!("{name}({})", types.join(", "))
    }

    /// Converts arguments of functions that write any type as text or JSON: enums to their labels,
    /// `reg…` types to names.
    pub(super) fn labelled(&mut self, name: &str, arguments: Vec<Typed>) -> Result<Vec<Typed>> {
        let writes =
            ["json", "to_json", "array_to_", "format "].iter().any(|word| name.starts_with(word));
        let label = |mut value: Typed| {
            if writes && *value.base() == DataType::OidVector {
                let (array, position) = (DataType::array_of(&DataType::Oid), value.position);
                value = Typed::new(self.explicit(value, &array, position)?, array, position);
            }
            let to = match value.base() {
                base if writes && is_written(base) => DataType::Text,
                base if writes && base.element().is_some_and(is_written) => {
                    DataType::array_of(&DataType::Text)
                }
                _ => return Ok(value),
            };
            let position = value.position;
            Ok(Typed::new(self.explicit(value, &to, position)?, to, position))
        };
        arguments.into_iter().map(label).collect()
    }

    /// Converts arguments of `concat` and related functions, which accept any type, to text.
    fn stringed(&mut self, name: &str, arguments: Vec<Typed>) -> Result<Vec<Typed>> {
        if let Some(to_json) = to_json(name) {
            let is_object = name.ends_with("_object") && arguments.len().is_multiple_of(2);
            let no_key = if to_json == "to_json" { " no json key" } else { " no jsonb key" };
            let value = |(index, value): (usize, Typed)| {
                let mut value = self.of_any_type(value)?;
                let position = value.position;
                let mut through = to_json;
                match value.base() {
                    _ if !is_object || index % 2 == 1 => {}
                    DataType::Json | DataType::Jsonb | DataType::Array(_) => through = no_key,
                    DataType::Record | DataType::Composite(_) => through = no_key,
                    // JSON has its own number format for floating point.
                    DataType::Float4 | DataType::Float8 => {
                        let text = self.explicit(value, DataType::Text, position)?;
                        value = Typed::new(text, DataType::Text, position);
                    }
                    _ => {}
                }
                self.function(through, vec![value], position)
            };
            return arguments.into_iter().enumerate().map(value).collect();
        }
        let first = match name {
            "concat" | "quote_literal" | "quote_nullable" => 0,
            "concat_ws" | "format" => 1,
            _ => return Ok(arguments),
        };
        let text = |(index, value): (usize, Typed)| {
            if index < first {
                return Ok(value);
            }
            let value = match name.starts_with("quote_") {
                true => value,
                false => self.of_any_type(value)?,
            };
            let position = value.position;
            let expr = match value.base() {
                DataType::Bool if !name.starts_with("quote_") => {
                    boolean_text(self.computed_once(value)?.expr)
                }
                // A cast to text would remove the trailing blanks, which these functions retain.
                DataType::Char if !name.starts_with("quote_") => value.expr,
                _ => self.explicit(value, DataType::Text, position)?,
            };
            Ok(Typed::new(expr, DataType::Text, position))
        };
        arguments.into_iter().enumerate().map(text).collect()
    }

    /// Binds GREATEST and LEAST.
    pub(super) fn bind_min_max(
        &mut self,
        kind: MinMax,
        operands: Vec<Typed>,
        position: usize,
    ) -> Result<Typed> {
        let (name, place) = match kind {
            MinMax::Greatest => ("greatest", "GREATEST"),
            MinMax::Least => ("least", "LEAST"),
        };
        let (operands, sql_type) = self.unify(operands, place)?;
        let mut overloads = types::function::overloads(name).iter();
        let wanted = match &sql_type.base {
            DataType::Array(_) => DataType::AnyArray,
            DataType::Enum(_) => DataType::AnyEnum,
            other => other.clone(),
        };
        let takes = |signature: &&Signature| signature.arguments.first() == Some(&wanted);
        let signature = overloads.find(takes).ok_or_else(|| {
            let what = format!("{place} of type {}", sql_type.base.sql_name());
            Error::not_supported(what, "Cast the values to a sortable type.").at(position)
        })?;
        let data_type = sql_type.base.clone();
        let expr = Expr::Call { function: signature.id, arguments: operands, data_type };
        Ok(Typed { expr, sql_type, position })
    }

    /// Returns the first schema of the search path. In stored expressions it is computed in each
    /// session.
    fn current_schema(&mut self, position: usize) -> Result<Typed> {
        if !self.constants.are_of_session() {
            return self.function("current_schema", Vec::new(), position);
        }
        let schema = self.catalog.current_schema(self.constants.search_path());
        let value = schema.map_or(Datum::Null, Datum::text);
        Ok(Typed::constant(value, DataType::Name, position))
    }

    /// Binds `current_date` and the other functions without parentheses.
    pub(super) fn bind_sql_value(
        &mut self,
        function: SqlValueFunction,
        precision: Option<u8>,
        position: usize,
    ) -> Result<Typed> {
        if function == SqlValueFunction::CurrentSchema {
            return self.current_schema(position);
        }
        let name = sql_value_name(function);
        if let Some(value) = self.constants.value(name) {
            return Ok(session_constant(name, value, position));
        }
        let precision = precision.map(|digits| {
            Typed::constant(Datum::Int4(i32::from(digits)), DataType::Int4, position)
        });
        self.function(name, precision.into_iter().collect(), position)
    }
}

/// Returns whether a built-in function has this name.
pub fn is_built_in(name: &str) -> bool {
    !types::function::overloads(name).is_empty()
        || is_set_function(name)
        || is_window_function(name)
        || AggregateKind::from_name(name).is_some()
}

/// Returns the default of a parameter that a call with named arguments omits; `None` if it has
/// none.
fn default_of(name: &str, index: usize, position: usize) -> Option<Typed> {
    match index {
        _ if name == "make_interval" => {
            Some(Typed::constant(Datum::Int4(0), DataType::Int4, position))
        }
        1 if name == "parse_ident" => {
            Some(Typed::constant(Datum::Bool(true), DataType::Bool, position))
        }
        3 if matches!(name, "jsonb_set" | "jsonb_set_lax") => {
            Some(Typed::constant(Datum::Bool(true), DataType::Bool, position))
        }
        3 if name == "jsonb_insert" => {
            Some(Typed::constant(Datum::Bool(false), DataType::Bool, position))
        }
        // The `vars` argument: no variables.
        2 if name.starts_with("jsonb_path_") => {
            Some(Typed::constant(Datum::text("{}"), DataType::Unknown, position))
        }
        _ => None,
    }
}

/// Rejects aggregate syntax (`*`, DISTINCT, ORDER BY, FILTER) in a call of another function.
pub(super) fn check_plain(call: &FunctionCall, name: &str) -> Result<()> {
    let what = match call {
        FunctionCall { star: true, .. } => format!("{name}(*) specified"),
        FunctionCall { distinct: true, .. } => "DISTINCT specified".to_owned(),
        FunctionCall { within_group: true, order_by, .. } if !order_by.is_empty() => {
            "WITHIN GROUP specified".to_owned()
        }
        _ if !call.order_by.is_empty() => "ORDER BY specified".to_owned(),
        _ if call.filter.is_some() => "FILTER specified".to_owned(),
        _ => return Ok(()),
    };
    bail!(WRONG_OBJECT_TYPE: "{what}, but {name} is not an aggregate function"; at call.name.position())
}

fn sql_value_name(function: SqlValueFunction) -> &'static str {
    match function {
        SqlValueFunction::CurrentDate => "current_date",
        SqlValueFunction::CurrentTime => "current_time",
        SqlValueFunction::CurrentTimestamp => "current_timestamp",
        SqlValueFunction::LocalTime => "localtime",
        SqlValueFunction::LocalTimestamp => "localtimestamp",
        SqlValueFunction::CurrentUser | SqlValueFunction::CurrentRole | SqlValueFunction::User => {
            "current_user"
        }
        SqlValueFunction::SessionUser => "session_user",
        SqlValueFunction::CurrentCatalog => "current catalog",
        SqlValueFunction::CurrentSchema => "current_schema",
    }
}

fn session_constant(name: &str, value: &Datum, position: usize) -> Typed {
    let data_type = match value {
        Datum::Bool(_) => DataType::Bool,
        Datum::Int4(_) => DataType::Int4,
        Datum::Int8(_) => DataType::Int8,
        _ if name.starts_with("current") || name.ends_with("user") => DataType::Name,
        _ => DataType::Text,
    };
    Typed::constant(value.clone(), data_type, position)
}

/// Returns the text of a boolean in output: `t` or `f`.
fn boolean_text(value: Expr) -> Expr {
    let text =
        |text: &str| Expr::Constant { value: Datum::Text(text.into()), data_type: DataType::Text };
    let negative = Expr::Not(Box::new(value.clone()));
    Expr::Case {
        branches: vec![(value, text("t")), (negative, text("f"))],
        otherwise: Box::new(null(DataType::Text)),
        data_type: DataType::Text,
    }
}

/// Returns the error for a function that does not exist.
pub(super) fn undefined_function(call: &str, position: usize) -> Error {
    err!(UNDEFINED_FUNCTION: "function {call} does not exist";
        hint "No function matches the given name and argument types. You might need to add explicit type casts."; at position)
}

/// Returns whether the text of a value depends on its type, so that it is made before the value is
/// converted.
fn is_written(data_type: &DataType) -> bool {
    data_type.is_written_number() || data_type.is_oid()
}

/// Returns the conversion function that each argument of a JSON builder goes through.
fn to_json(name: &str) -> Option<&'static str> {
    match name {
        "json_build_array" | "json_build_object" => Some("to_json"),
        "jsonb_build_array" | "jsonb_build_object" => Some("to_jsonb"),
        _ => None,
    }
}

/// Binds `pg_typeof` as a constant. A volatile or set-returning argument is still evaluated.
fn type_of(value: &Typed, position: usize) -> Typed {
    let oid = Datum::Int8(value.sql_type.oid().into());
    let mut known = Typed::constant(oid, DataType::Reg(RegKind::Type), position);
    let mut is_computed = value.expr.is_volatile();
    for_each_column(&value.expr, &mut |index| is_computed |= (SET..SUBQUERY).contains(&index));
    if is_computed {
        known.expr = Expr::Case {
            branches: vec![(Expr::IsNull(Box::new(value.expr.clone())), known.expr.clone())],
            data_type: known.expr.data_type().clone(),
            otherwise: Box::new(known.expr),
        };
    }
    known
}
