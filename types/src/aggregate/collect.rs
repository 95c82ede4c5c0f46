//! Aggregates that collect all values into one: `array_agg`, `string_agg`, and the JSON
//! aggregates.

use std::sync::Arc;

use smallvec::smallvec;

use super::sum::expect_argument;
use super::{Accumulator, PartialState};
use crate::context::EvalContext;
use crate::datatype::DataType;
use crate::datum::{Array, Datum, Dimension, Json, MAX_DIMENSIONS, MAX_ELEMENTS, Nested};
use crate::error::{Error, Result};
use crate::function::{json_key, json_of, jsonb_of};
use crate::interrupt::Interrupt;
use crate::interruptible::InterruptPacer;
use crate::vector::Vector;

/// `array_agg`, of values or of arrays.
pub(super) struct ArrayAgg {
    /// The values are arrays, which become an array with one more dimension.
    of_arrays: bool,
    arrays: Vec<Array>,
    byte_count: usize,
    interrupt: Interrupt,
}

fn subscript_error(message: &str) -> Error {
    err!(ARRAY_SUBSCRIPT_ERROR: message)
}

fn too_large() -> Error {
    err!(PROGRAM_LIMIT_EXCEEDED: "array size exceeds the maximum allowed ({MAX_ELEMENTS})")
}

impl ArrayAgg {
    pub(super) fn new(argument: &DataType, interrupt: &Interrupt) -> ArrayAgg {
        ArrayAgg {
            of_arrays: argument.element().is_some(),
            arrays: Vec::new(),
            byte_count: 0,
            interrupt: interrupt.clone(),
        }
    }

    fn add(&mut self, group: usize, value: Datum) -> Result<()> {
        if !self.of_arrays {
            self.byte_count += size_of::<Datum>() + value.heap_bytes();
            return self.add_elements(group, &[Dimension { lower: 1, length: 1 }], [value]);
        }
        let Datum::Nested(Nested::Array(array)) = value else {
            bail!(NULL_VALUE_NOT_ALLOWED: "cannot accumulate null arrays");
        };
        if array.dimensions.is_empty() && self.arrays[group].dimensions.is_empty() {
            return Err(subscript_error("cannot accumulate empty arrays"));
        }
        if array.dimensions.len() == MAX_DIMENSIONS {
            bail!(PROGRAM_LIMIT_EXCEEDED: "number of array dimensions ({}) exceeds the maximum allowed ({MAX_DIMENSIONS})",
                MAX_DIMENSIONS + 1);
        }
        let mut dimensions = vec![Dimension { lower: 1, length: 1 }];
        dimensions.extend_from_slice(&array.dimensions);
        self.byte_count += array.elements.iter().map(Datum::heap_bytes).sum::<usize>()
            + array.elements.len() * size_of::<Datum>();
        self.add_elements(group, &dimensions, array.elements.iter().cloned())
    }

    /// Adds elements along the first dimension.
    fn add_elements(
        &mut self,
        group: usize,
        dimensions: &[Dimension],
        elements: impl IntoIterator<Item = Datum>,
    ) -> Result<()> {
        let array = &mut self.arrays[group];
        match array.dimensions.split_first_mut() {
            None => array.dimensions = dimensions.to_vec(),
            Some((first, inner)) => {
                if *inner != dimensions[1..] {
                    let message = "cannot accumulate arrays of different dimensionality";
                    return Err(subscript_error(message));
                }
                first.length += dimensions[0].length;
            }
        }
        let mut pace = InterruptPacer::new(&self.interrupt);
        for element in elements {
            if array.elements.len() == MAX_ELEMENTS {
                return Err(too_large());
            }
            pace.push(&mut array.elements, element)?;
        }
        Ok(())
    }

    fn value(&self, group: usize) -> Result<Datum> {
        let array = &self.arrays[group];
        if array.dimensions.is_empty() {
            return Ok(Datum::Null);
        }
        let elements = InterruptPacer::new(&self.interrupt).clone_items(&array.elements)?;
        let array = Array { dimensions: array.dimensions.clone(), elements };
        Ok(Datum::Nested(Nested::Array(Arc::new(array))))
    }
}

impl Accumulator for ArrayAgg {
    fn resize(&mut self, group_count: usize) {
        self.arrays.resize(group_count, Array::default());
    }

    fn update(&mut self, groups: &[u32], arguments: &[&Vector]) -> Result<()> {
        let argument = expect_argument(arguments);
        let mut rows = groups.iter().enumerate();
        rows.try_for_each(|(row, &group)| self.add(group as usize, argument.datum(row)))
    }

    fn partial(&self, group: usize) -> Result<PartialState> {
        Ok(smallvec![self.value(group)?])
    }

    fn merge(&mut self, group: usize, partial: &[Datum]) -> Result<()> {
        let Datum::Nested(Nested::Array(array)) = &partial[0] else { return Ok(()) };
        self.byte_count += partial[0].heap_bytes();
        self.add_elements(group, &array.dimensions, array.elements.iter().cloned())
    }

    fn finish(&self, group: usize) -> Result<Datum> {
        self.value(group)
    }

    fn byte_count(&self) -> usize {
        self.arrays.capacity() * size_of::<Array>() + self.byte_count
    }
}

/// State of `string_agg`: the joined values. The first value's delimiter is in front and counts
/// only when the state is appended to another.
#[derive(Debug, Clone, Default)]
struct StringAggState {
    bytes: Vec<u8>,
    /// Start of the first value; `None` if there is none.
    start: Option<usize>,
}

/// `string_agg` of text or bytea.
pub(super) struct StringAgg {
    is_text: bool,
    states: Vec<StringAggState>,
    byte_count: usize,
    interrupt: Interrupt,
}

impl StringAgg {
    pub(super) fn new(argument: &DataType, interrupt: &Interrupt) -> StringAgg {
        StringAgg {
            is_text: *argument != DataType::Bytea,
            states: Vec::new(),
            byte_count: 0,
            interrupt: interrupt.clone(),
        }
    }

    fn add(&mut self, group: usize, delimiter: &[u8], value: &[u8]) -> Result<()> {
        let state = &mut self.states[group];
        let mut pace = InterruptPacer::new(&self.interrupt);
        pace.enlarge(&mut state.bytes, delimiter)?;
        state.start.get_or_insert(delimiter.len());
        pace.enlarge(&mut state.bytes, value)?;
        self.byte_count += delimiter.len() + value.len();
        Ok(())
    }

    fn datum(&self, bytes: &[u8]) -> Result<Datum> {
        let mut pace = InterruptPacer::new(&self.interrupt);
        match self.is_text {
            true => pace.decode(bytes).map(Datum::text),
            false => pace.copy::<Vec<u8>>(bytes).map(Datum::bytea),
        }
    }
}

fn bytes_of(datum: &Datum) -> Option<&[u8]> {
    datum.as_str().map(str::as_bytes).or(datum.as_bytes())
}

impl Accumulator for StringAgg {
    fn resize(&mut self, group_count: usize) {
        self.states.resize(group_count, StringAggState::default());
    }

    fn update(&mut self, groups: &[u32], arguments: &[&Vector]) -> Result<()> {
        let [values, delimiters] = arguments else { panic!("string_agg has two arguments") };
        let (Some(all), Some(between)) = (values.as_bytes_vector(), delimiters.as_bytes_vector())
        else {
            panic!("string_agg is of text or bytea");
        };
        for (row, &group) in groups.iter().enumerate() {
            if !values.is_null(row) {
                let delimiter = if delimiters.is_null(row) { &[] } else { between.get(row) };
                self.add(group as usize, delimiter, all.get(row))?;
            }
        }
        Ok(())
    }

    fn partial(&self, group: usize) -> Result<PartialState> {
        let state = &self.states[group];
        Ok(match state.start {
            None => smallvec![Datum::Null, Datum::Null],
            Some(start) => {
                let (delimiter, rest) = state.bytes.split_at(start);
                smallvec![self.datum(delimiter)?, self.datum(rest)?]
            }
        })
    }

    fn merge(&mut self, group: usize, partial: &[Datum]) -> Result<()> {
        match (bytes_of(&partial[0]), bytes_of(&partial[1])) {
            (Some(delimiter), Some(rest)) => self.add(group, delimiter, rest),
            _ => Ok(()),
        }
    }

    fn finish(&self, group: usize) -> Result<Datum> {
        let state = &self.states[group];
        state.start.map_or(Ok(Datum::Null), |start| self.datum(&state.bytes[start..]))
    }

    fn byte_count(&self) -> usize {
        self.states.capacity() * size_of::<StringAggState>() + self.byte_count
    }
}

/// `json_agg` and `json_object_agg`: growing text.
pub(super) struct JsonTexts {
    /// Keys and values are fed, not only values.
    of_pairs: bool,
    /// Each value but the first starts a new line: for arrays and rows.
    by_line: bool,
    context: EvalContext,
    /// The text between the brackets; empty if no value was fed.
    states: Vec<String>,
    byte_count: usize,
}

impl JsonTexts {
    pub(super) fn new(argument: &DataType, of_pairs: bool, context: &EvalContext) -> JsonTexts {
        JsonTexts {
            of_pairs,
            by_line: !of_pairs && (argument.element().is_some() || argument.is_row()),
            context: zone_of(context),
            states: Vec::new(),
            byte_count: 0,
        }
    }

    fn add(&mut self, group: usize, part: &str, is_null: bool) -> Result<()> {
        let state = &mut self.states[group];
        let before = state.len();
        let mut pace = self.context.pace();
        if !state.is_empty() {
            pace.enlarge(state, if self.by_line && !is_null { ", \n " } else { ", " })?;
        }
        pace.enlarge(state, part)?;
        self.byte_count += state.len() - before;
        Ok(())
    }
}

/// Returns a context with only the text style and the interrupt flag.
fn zone_of(context: &EvalContext) -> EvalContext {
    EvalContext { style: context.style.clone(), ..EvalContext::default() }
}

fn null_field() -> Error {
    err!(INVALID_PARAMETER_VALUE: "field name must not be null")
}

impl Accumulator for JsonTexts {
    fn resize(&mut self, group_count: usize) {
        self.states.resize(group_count, String::new());
    }

    fn update(&mut self, groups: &[u32], arguments: &[&Vector]) -> Result<()> {
        for (row, &group) in groups.iter().enumerate() {
            let value = arguments[usize::from(self.of_pairs)].datum(row);
            let mut part = json_of(&value, &self.context)?;
            if self.of_pairs {
                let key = arguments[0].datum(row);
                if key.is_null() {
                    return Err(null_field());
                }
                let key = json_of(&json_key(&key, &self.context)?, &self.context)?;
                part = format!("{key} : {part}");
            }
            self.add(group as usize, &part, value.is_null())?;
        }
        Ok(())
    }

    fn partial(&self, group: usize) -> Result<PartialState> {
        let state = &self.states[group];
        if state.is_empty() {
            return Ok(smallvec![Datum::Null]);
        }
        Ok(smallvec![Datum::text(self.context.pace().copy::<String>(state)?)])
    }

    fn merge(&mut self, group: usize, partial: &[Datum]) -> Result<()> {
        if let Some(part) = partial[0].as_str() {
            self.add(group, part, part.starts_with("null"))?;
        }
        Ok(())
    }

    fn finish(&self, group: usize) -> Result<Datum> {
        let state = &self.states[group];
        let (opening, closing) = match self.of_pairs {
            _ if state.is_empty() => return Ok(Datum::Null),
            true => ("{ ", " }"),
            false => ("[", "]"),
        };
        let mut pace = self.context.pace();
        let mut text: String = pace.buffer(state.len() + 4)?;
        text.push_str(opening);
        pace.append(&mut text, state)?;
        text.push_str(closing);
        Ok(Datum::Nested(Nested::Json(Arc::new(text))))
    }

    fn byte_count(&self) -> usize {
        self.states.capacity() * size_of::<String>() + self.byte_count
    }
}

/// `jsonb_agg` and `jsonb_object_agg`.
pub(super) struct JsonValues {
    of_pairs: bool,
    context: EvalContext,
    /// Keys (empty for arrays) and values.
    states: Vec<Vec<(Arc<str>, Json)>>,
    byte_count: usize,
}

impl JsonValues {
    pub(super) fn new(of_pairs: bool, context: &EvalContext) -> JsonValues {
        JsonValues { of_pairs, context: zone_of(context), states: Vec::new(), byte_count: 0 }
    }

    fn add(&mut self, group: usize, key: Arc<str>, value: Json) -> Result<()> {
        let value = (key, value);
        self.byte_count += size_of::<(Arc<str>, Json)>() + value.0.len() + value.1.heap_bytes();
        self.context.pace().push(&mut self.states[group], value)
    }

    fn value(&self, group: usize) -> Result<Datum> {
        let state = &self.states[group];
        let mut pace = self.context.pace();
        let json = match self.of_pairs {
            _ if state.is_empty() => return Ok(Datum::Null),
            true => Json::object_at(pace.clone_items(state)?, &mut pace)?,
            false => {
                let values = state.iter().map(|(_, value)| value.copy(&mut pace));
                Json::Array(values.collect::<Result<_>>()?)
            }
        };
        Ok(Datum::Nested(Nested::Jsonb(json.into())))
    }
}

impl Accumulator for JsonValues {
    fn resize(&mut self, group_count: usize) {
        self.states.resize(group_count, Vec::new());
    }

    fn update(&mut self, groups: &[u32], arguments: &[&Vector]) -> Result<()> {
        let none: Arc<str> = "".into();
        for (row, &group) in groups.iter().enumerate() {
            let value = jsonb_of(&arguments[usize::from(self.of_pairs)].datum(row), &self.context)?;
            let mut name = Arc::clone(&none);
            if self.of_pairs {
                match json_key(&arguments[0].datum(row), &self.context)? {
                    Datum::Text(key) => name = key.into(),
                    _ => return Err(null_field()),
                }
            }
            self.add(group as usize, name, value)?;
        }
        Ok(())
    }

    fn partial(&self, group: usize) -> Result<PartialState> {
        Ok(smallvec![self.value(group)?])
    }

    fn merge(&mut self, group: usize, partial: &[Datum]) -> Result<()> {
        let Datum::Nested(Nested::Jsonb(json)) = &partial[0] else { return Ok(()) };
        match &**json {
            Json::Array(values) => {
                values.iter().try_for_each(|value| self.add(group, "".into(), value.clone()))
            }
            Json::Object(pairs) => {
                let mut pairs = pairs.iter();
                pairs.try_for_each(|(key, value)| self.add(group, Arc::clone(key), value.clone()))
            }
            _ => Ok(()),
        }
    }

    fn finish(&self, group: usize) -> Result<Datum> {
        self.value(group)
    }

    fn byte_count(&self) -> usize {
        self.states.capacity() * size_of::<Vec<(Arc<str>, Json)>>() + self.byte_count
    }
}
