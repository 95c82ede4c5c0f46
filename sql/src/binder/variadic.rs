//! Calls of built-in functions with `VARIADIC array`, whose elements are the arguments.

use types::{DataType, Datum};

use crate::ast::FunctionCall;
use crate::binder::calls::undefined_function;
use crate::binder::level::Binder;
use crate::binder::typed::Typed;
use crate::error::{Error, Result};

impl Binder<'_> {
    /// Binds a call whose last argument is an array of arguments; `None` if the function is not
    /// variadic, so that the keyword has no effect.
    pub(super) fn bind_variadic(&mut self, call: &FunctionCall) -> Result<Option<Typed>> {
        let (name, position) = (call.name.name.value.as_str(), call.name.position());
        let Some((function, before)) = function_of_array(name) else { return Ok(None) };
        let arguments = call.arguments.iter().map(|argument| self.bind_expr(&argument.value));
        let mut arguments = arguments.collect::<Result<Vec<Typed>>>()?;
        let named = call.arguments.iter().any(|argument| argument.name.is_some());
        let types: Vec<DataType> = arguments.iter().map(Typed::base).cloned().collect();
        let undefined = || undefined_function(&self.call_text(name, &types), position);
        if named || arguments.len() != before + 1 {
            return Err(undefined());
        }
        let array = arguments.remove(before);
        if function.starts_with('#') {
            let known = |from: DataType, to: DataType| from == DataType::Unknown || from == to;
            let json = if name.starts_with("jsonb") { DataType::Jsonb } else { DataType::Json };
            let path = DataType::array_of(&DataType::Text);
            if !known(types[0].clone(), json.clone()) || !known(types[1].clone(), path.clone()) {
                return Err(undefined());
            }
            let of = self.implicit(arguments.remove(0), &json)?;
            let of = Typed::new(of, json, position);
            let path = Typed::new(self.implicit(array, &path)?, path, position);
            return self.function(function, vec![of, path], position).map(Some);
        }
        if !matches!(array.base(), DataType::Array(_)) {
            bail!(DATATYPE_MISMATCH: "VARIADIC argument must be an array"; at array.position);
        }
        arguments.push(array);
        match name {
            "concat" => {
                arguments.push(Typed::constant(Datum::text(""), DataType::Text, position));
            }
            "concat_ws" => arguments.swap(0, 1),
            _ => {}
        }
        self.function(function, arguments, position).map(Some)
    }
}

/// Returns the variant of a variadic function that takes an array, and the number of arguments
/// before the array.
fn function_of_array(name: &str) -> Option<(&'static str, usize)> {
    Some(match name {
        "concat" => ("array_to_string", 0),
        "concat_ws" => ("array_to_string", 1),
        "format" => ("format variadic", 1),
        "json_build_array" => ("json_build_array variadic", 0),
        "json_build_object" => ("json_build_object variadic", 0),
        "jsonb_build_array" => ("jsonb_build_array variadic", 0),
        "jsonb_build_object" => ("jsonb_build_object variadic", 0),
        "num_nulls" => ("num_nulls variadic", 0),
        "num_nonnulls" => ("num_nonnulls variadic", 0),
        "json_extract_path" | "jsonb_extract_path" => ("#>", 1),
        "json_extract_path_text" | "jsonb_extract_path_text" => ("#>>", 1),
        _ => return None,
    })
}
