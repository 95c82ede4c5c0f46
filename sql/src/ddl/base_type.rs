//! CREATE TYPE of base types and shell types.
//!
//! The input and output functions determine how values are stored and written; both must be those
//! of one built-in type. Options for the in-memory representation may repeat that type's
//! properties; they have no effect.

use std::sync::Arc;

use types::{DataType, SqlType};

use crate::ast::{self, BaseTypeOption, Language, OptionValue, TableName};
use crate::binder::input_output::{Direction, input_or_output};
use crate::catalog::Catalog;
use crate::catalog::base_type::{BaseTypeDefinition, BaseTypeRecord};
use crate::catalog::function::Function;
use crate::catalog::user_type::UserType;
use crate::ddl::Ddl;
use crate::error::{Error, Result, sqlstate};

/// The options of a base type.
#[derive(Default)]
struct BaseTypeOptions<'a> {
    input: Option<&'a TableName>,
    output: Option<&'a TableName>,
    like: Option<SqlType>,
    delimiter: Option<char>,
    length: Option<String>,
}

impl Ddl<'_> {
    pub(super) fn create_base_type(&mut self, statement: &ast::CreateBaseType) -> Result<()> {
        let catalog = self.catalog();
        match &statement.options {
            None => self.create_shell(&catalog, &statement.name),
            Some(options) => self.define_base_type(&catalog, &statement.name, options),
        }
    }

    /// Creates a shell type.
    pub(super) fn create_shell(&mut self, catalog: &Catalog, name: &TableName) -> Result<()> {
        let schema = self.creation_schema(catalog, name)?;
        let name = name.name.value.clone();
        self.check_type_name(catalog, &schema, &name)?;
        // The next number is that of the array type.
        let number = self.take_ids(2)?;
        self.store_type(UserType::Base(BaseTypeRecord { number, schema, name, definition: None }))
    }

    fn define_base_type(
        &mut self,
        catalog: &Catalog,
        name: &TableName,
        options: &[BaseTypeOption],
    ) -> Result<()> {
        let schema = self.creation_schema(catalog, name)?;
        let record = match catalog.type_in(&schema, &name.name.value).map(AsRef::as_ref) {
            Some(UserType::Base(record)) if record.is_shell() => record.clone(),
            Some(_) => return self.check_type_name(catalog, &schema, &name.name.value),
            None => {
                let message = format!("type \"{}\" does not exist", name.name.value);
                return Err(Error::new(sqlstate::DUPLICATE_OBJECT, message).with_hint(
                    "Create the type as a shell type, then create its I/O functions, then do a \
                     full CREATE TYPE.",
                ));
            }
        };
        let options = self.base_type_options(catalog, options)?;
        let missing = |what: &str| {
            Error::new(
                sqlstate::INVALID_OBJECT_DEFINITION,
                format!("type {what} function must be specified"),
            )
        };
        let input = options.input.ok_or_else(|| missing("input"))?;
        let output = options.output.ok_or_else(|| missing("output"))?;
        let own = DataType::Base(record.base_type());
        let input = self.io_function(catalog, (input, Direction::Input), own)?;
        let output = self.io_function(catalog, (output, Direction::Output), own)?;
        let held = held_by(&input, &output)?;
        check_like(held, &options)?;
        let definition = BaseTypeDefinition {
            input: input.record.number,
            output: output.record.number,
            held: held.oid(),
            delimiter: options.delimiter.unwrap_or(','),
        };
        let record = BaseTypeRecord { definition: Some(definition), ..record };
        self.replace_type(UserType::Base(record))
    }

    /// Returns the options of a statement.
    fn base_type_options<'o>(
        &self,
        catalog: &Catalog,
        options: &'o [BaseTypeOption],
    ) -> Result<BaseTypeOptions<'o>> {
        let mut said = BaseTypeOptions::default();
        for option in options {
            match option {
                BaseTypeOption::Function { word, name } if word == "input" => {
                    set(&mut said.input, name)?;
                }
                BaseTypeOption::Function { word, name } if word == "output" => {
                    set(&mut said.output, name)?;
                }
                BaseTypeOption::Function { word, .. } => {
                    let what = format!("{} of a type", word.to_uppercase());
                    let hint = "Leave it out: the binary form, modifiers and statistics are those \
                                of the type whose functions for input and output it has.";
                    return Err(Error::not_supported(what, hint));
                }
                BaseTypeOption::Like(type_name) => {
                    let found = catalog.type_named(type_name, &self.path);
                    set(&mut said.like, found.map_err(|e| Error { position: None, ..e })?)?;
                }
                BaseTypeOption::Other { name, value } => {
                    self.other_option(&mut said, name, value.as_ref())?;
                }
            }
        }
        Ok(said)
    }

    /// Records an option whose value is neither a function nor a type.
    fn other_option(
        &self,
        said: &mut BaseTypeOptions<'_>,
        name: &str,
        value: Option<&OptionValue>,
    ) -> Result<()> {
        let text = value.map(OptionValue::text);
        let is_default = match (name, text.as_deref()) {
            ("internallength", Some(length)) => {
                return set(&mut said.length, length.to_lowercase());
            }
            ("delimiter", Some(text)) => {
                let delimiter = text.chars().next().filter(|_| text.len() == 1);
                let wrong = || {
                    let message = "type delimiter must be a single character";
                    Error::new(sqlstate::INVALID_PARAMETER_VALUE, message)
                };
                return set(&mut said.delimiter, delimiter.ok_or_else(wrong)?);
            }
            // The in-memory representation is that of the built-in type.
            ("passedbyvalue", _) | ("alignment" | "storage", Some(_)) => true,
            ("category", Some(category)) => category == "U",
            ("preferred" | "collatable", Some(value)) => value == "off",
            ("default" | "element" | "category" | "preferred" | "collatable", _) => false,
            _ => {
                let message = format!("type attribute \"{name}\" not recognized");
                return Err(Error::new(sqlstate::SYNTAX_ERROR, message));
            }
        };
        if is_default {
            return Ok(());
        }
        let what = format!("{} of a type", name.to_uppercase());
        Err(Error::not_supported(what, "Base types have none of their own: use a domain."))
    }

    /// Returns the input or output function of a type.
    fn io_function(
        &self,
        catalog: &Catalog,
        (name, direction): (&TableName, Direction),
        own: DataType,
    ) -> Result<Arc<Function>> {
        let schema = name.schema.as_ref().map(|schema| schema.value.as_str());
        let more = [DataType::Oid, DataType::Int4];
        let takes = |function: &Arc<Function>| {
            let bases: Vec<DataType> = function.parameters.iter().map(|one| one.base).collect();
            match (direction, bases.as_slice()) {
                (Direction::Input, [DataType::CString, rest @ ..]) => {
                    rest.is_empty() || rest == more
                }
                (Direction::Output, [one]) => *one == own,
                _ => false,
            }
        };
        let found = catalog.functions_named(schema, &name.name.value, &self.path);
        let written = super::written(name);
        let taken = match direction {
            Direction::Input => DataType::CString,
            Direction::Output => own,
        };
        let function = found.into_iter().find(takes).ok_or_else(|| {
            let message = format!("function {written}({}) does not exist", taken.sql_name());
            Error::new(sqlstate::UNDEFINED_FUNCTION, message)
        })?;
        let (word, to) = match direction {
            Direction::Input => ("input", own),
            Direction::Output => ("output", DataType::CString),
        };
        match function.columns.as_slice() {
            [(_, returned)] if returned.base == to => Ok(function),
            _ => {
                let message =
                    format!("type {word} function {written} must return type {}", to.sql_name());
                Err(Error::new(sqlstate::INVALID_OBJECT_DEFINITION, message))
            }
        }
    }
}

fn set<T>(place: &mut Option<T>, value: T) -> Result<()> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(Error::new(sqlstate::SYNTAX_ERROR, "conflicting or redundant options")),
    }
}

/// Returns the built-in type whose values two functions read and write.
fn held_by(input: &Function, output: &Function) -> Result<DataType> {
    let of = |function: &Function, direction: Direction| {
        let found = input_or_output(&function.record.body);
        let is_internal = *function.record.language == Language::Internal;
        let found = found.filter(|(_, of)| is_internal && *of == direction);
        found.map(|(data_type, _)| data_type)
    };
    match (of(input, Direction::Input), of(output, Direction::Output)) {
        (Some(read), Some(written)) if read == written => Ok(read),
        _ => {
            let what = "a base type whose functions are not those of one built-in type";
            let hint = "Write them in LANGUAGE internal: AS 'textin' and AS 'textout'.";
            Err(Error::not_supported(what, hint))
        }
    }
}

/// Checks that the options for the representation match the built-in type.
fn check_like(held: DataType, options: &BaseTypeOptions<'_>) -> Result<()> {
    let is_length = |text: &str| match held.length() {
        -1 => text == "variable",
        length => text == length.to_string(),
    };
    let looks = options.like.is_none_or(|like| like.base.representation() == held.representation())
        && options.length.as_deref().is_none_or(is_length);
    if looks {
        return Ok(());
    }
    let what = "a base type that is stored in another way than its functions read it";
    Err(Error::not_supported(what, format!("Write LIKE = {}.", held.internal_name())))
}
