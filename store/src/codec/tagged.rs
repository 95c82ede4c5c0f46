//! Tagged records: fields by number, so that a later build can add some.
//!
//! ```text
//! field:  tag, length of the value, value
//! ```
//!
//! Tags, lengths and unsigned integers are LEB128. A field with an absent value (none, an empty
//! list, false) is not written; every other field of a record is required. A record keeps the
//! fields whose tags it does not know, and writes them again behind its own.
//!
//! | Value | Encoding |
//! |---|---|
//! | unsigned integer, character | LEB128 |
//! | signed integer | LEB128 of its zigzag form |
//! | boolean | 0 or 1, one byte |
//! | floating-point number | IEEE 754, little-endian |
//! | text, bytes | itself |
//! | option | the value, if there is one |
//! | list, tuple, duration (seconds, nanoseconds) | its elements, each with its length in front |
//! | enum | the number of the variant, then its values as in a tuple |
//! | record | its fields |
//!
//! Tags and numbers are declared by [`tagged_fields`](crate::tagged_fields) and
//! [`tagged_enum`](crate::tagged_enum); they never change, and are never used again.

use std::sync::Arc;
use std::time::Duration;

use crate::codec::input::{Input, push_varint};

/// A value of a field of a tagged record.
pub trait FieldValue: Sized {
    /// Appends its encoding.
    fn append(&self, out: &mut Vec<u8>);

    /// Decodes the value that takes all of the bytes.
    ///
    /// # Errors
    ///
    /// A description of the damage, with its position.
    fn read(input: FieldInput<'_>) -> Result<Self, String>;

    /// Returns the value of a field that is not written; `None` if the field is required.
    fn absent() -> Option<Self> {
        None
    }

    /// Returns whether it is the value of a field that is not written.
    fn is_absent(&self) -> bool {
        false
    }

    /// Appends a list of values.
    fn append_list(values: &[Self], out: &mut Vec<u8>) {
        for value in values {
            append_prefixed(value, out);
        }
    }

    /// Decodes a list of values that takes all of the bytes.
    ///
    /// # Errors
    ///
    /// As [`FieldValue::read`].
    fn read_list(mut input: FieldInput<'_>) -> Result<Vec<Self>, String> {
        let mut list = Vec::new();
        while !input.bytes.is_empty() {
            list.push(input.item("list")?);
        }
        Ok(list)
    }
}

/// Undecoded bytes of a value.
#[derive(Debug, Clone, Copy)]
pub struct FieldInput<'a> {
    bytes: &'a [u8],
    /// Their offset in the payload of the frame.
    offset: usize,
}

impl<'a> FieldInput<'a> {
    pub(crate) fn of_payload(payload: &'a [u8], offset: usize) -> FieldInput<'a> {
        FieldInput { bytes: &payload[offset..], offset }
    }

    /// Returns a description of damage at the first byte.
    pub fn damage(&self, what: &str) -> String {
        format!("{what} at byte {}", self.offset)
    }

    /// Decodes a number and moves past it.
    ///
    /// # Errors
    ///
    /// An incomplete number.
    pub fn number(&mut self) -> Result<u64, String> {
        let mut rest = Input { bytes: self.bytes };
        let number = rest.varint().ok_or_else(|| self.damage("incomplete number"))?;
        self.offset += self.bytes.len() - rest.bytes.len();
        self.bytes = rest.bytes;
        Ok(number)
    }

    /// Decodes a length, and returns the bytes of that length behind it.
    fn prefixed(&mut self) -> Result<FieldInput<'a>, String> {
        let length = self.number()?;
        let parts = usize::try_from(length).ok().and_then(|end| self.bytes.split_at_checked(end));
        let Some((bytes, rest)) = parts else {
            let (left, what) = (self.bytes.len(), "value");
            return Err(self.damage(&format!("{what} of {length} bytes is cut to {left}")));
        };
        let value = FieldInput { bytes, offset: self.offset };
        *self = FieldInput { bytes: rest, offset: self.offset + bytes.len() };
        Ok(value)
    }

    /// Decodes the tag of the next field, and returns it with the field's value; `None` at the end.
    ///
    /// # Errors
    ///
    /// An incomplete field.
    pub fn field(&mut self) -> Result<Option<(u64, FieldInput<'a>)>, String> {
        if self.bytes.is_empty() {
            return Ok(None);
        }
        Ok(Some((self.number()?, self.prefixed()?)))
    }

    /// Decodes a value with its length in front. The name is for errors.
    ///
    /// # Errors
    ///
    /// A description of the damage, with its position.
    pub fn item<T: FieldValue>(&mut self, name: &str) -> Result<T, String> {
        self.prefixed().and_then(T::read).map_err(|error| format!("{name}: {error}"))
    }

    /// Decodes the value of the field with a name.
    ///
    /// # Errors
    ///
    /// A second value of the field; as [`FieldInput::item`].
    pub fn read_into<T: FieldValue>(
        self,
        field: &str,
        value: &mut Option<T>,
    ) -> Result<(), String> {
        let new = T::read(self).map_err(|error| format!("{field}: {error}"))?;
        match value.replace(new) {
            None => Ok(()),
            Some(_) => Err(self.damage(&format!("second value of {field}"))),
        }
    }

    /// Returns the value of a field after all fields of its record were decoded.
    ///
    /// # Errors
    ///
    /// A required field without a value.
    pub fn value_of<T: FieldValue>(&self, field: &str, value: Option<T>) -> Result<T, String> {
        let value = value.or_else(T::absent);
        value.ok_or_else(|| self.damage(&format!("no value of {field} in the record")))
    }

    /// Checks that nothing follows.
    ///
    /// # Errors
    ///
    /// Trailing bytes.
    pub fn end(&self) -> Result<(), String> {
        match self.bytes {
            [] => Ok(()),
            rest => Err(self.damage(&format!("{} trailing bytes", rest.len()))),
        }
    }

    fn array<const N: usize>(&self) -> Result<[u8; N], String> {
        let bytes = self.bytes.try_into();
        bytes.map_err(|_| self.damage(&format!("{} bytes instead of {N}", self.bytes.len())))
    }
}

/// Fields of a record that this build does not know, encoded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UnknownFields(Vec<u8>);

impl UnknownFields {
    /// Appends the fields.
    pub fn append(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0);
    }
}

/// Keeps a field whose tag is not known.
///
/// # Errors
///
/// A record that has no place for it.
pub fn keep_unknown(
    unknown: Option<&mut UnknownFields>,
    record: &str,
    (tag, value): (u64, FieldInput<'_>),
) -> Result<(), String> {
    let Some(UnknownFields(bytes)) = unknown else {
        return Err(value.damage(&format!("unknown field {tag} of {record}")));
    };
    push_varint(bytes, tag);
    push_varint(bytes, value.bytes.len() as u64);
    bytes.extend_from_slice(value.bytes);
    Ok(())
}

/// Appends a field, unless its value is absent.
pub fn append_field<T: FieldValue>(tag: u64, value: &T, out: &mut Vec<u8>) {
    if !value.is_absent() {
        push_varint(out, tag);
        append_prefixed(value, out);
    }
}

/// Appends a value with its length in front.
pub fn append_prefixed<T: FieldValue>(value: &T, out: &mut Vec<u8>) {
    let mut bytes = Vec::new();
    value.append(&mut bytes);
    push_varint(out, bytes.len() as u64);
    out.append(&mut bytes);
}

/// Declares the tags of a record's fields. An unknown tag is kept in the field that is named
/// behind them, and damage if none is. A field behind that one is derived from the others, and not
/// stored.
#[macro_export]
macro_rules! tagged_fields {
    ($name:ident { $($tag:literal $field:ident),* $(,)? } $($unknown:ident $(, $derived:ident)?)?) => {
        impl $crate::codec::tagged::FieldValue for $name {
            fn append(&self, out: &mut Vec<u8>) {
                $($crate::codec::tagged::append_field($tag, &self.$field, out);)*
                $(self.$unknown.append(out);)?
            }

            fn read(input: $crate::codec::tagged::FieldInput<'_>) -> std::result::Result<$name, String> {
                let mut rest = input;
                $(let mut $field = None;)*
                $(let mut $unknown = $crate::codec::tagged::UnknownFields::default();)?
                while let Some((tag, value)) = rest.field()? {
                    match tag {
                        $($tag => value.read_into(
                            concat!(stringify!($name), ".", stringify!($field)),
                            &mut $field,
                        )?,)*
                        _ => $crate::codec::tagged::keep_unknown(
                            None$(.or(Some(&mut $unknown)))?,
                            stringify!($name),
                            (tag, value),
                        )?,
                    }
                }
                Ok($name {
                    $($field: input.value_of(
                        concat!(stringify!($name), ".", stringify!($field)),
                        $field,
                    )?,)*
                    $($unknown, $($derived: Default::default(),)?)?
                })
            }
        }
    };
}

/// Declares the numbers of an enum's variants, whose values are named in parentheses or braces.
#[macro_export]
macro_rules! tagged_enum {
    ($name:ident {
        $($number:literal $variant:ident $(($($value:ident),+))? $({$($field:ident),+})?),* $(,)?
    }) => {
        impl $crate::codec::tagged::FieldValue for $name {
            fn append(&self, out: &mut Vec<u8>) {
                match self {
                    $($name::$variant $(($($value),+))? $({$($field),+})? => {
                        $crate::codec::tagged::FieldValue::append(&($number as u32), out);
                        $($($crate::codec::tagged::append_prefixed($value, out);)+)?
                        $($($crate::codec::tagged::append_prefixed($field, out);)+)?
                    })*
                }
            }

            fn read(input: $crate::codec::tagged::FieldInput<'_>) -> std::result::Result<$name, String> {
                let mut rest = input;
                let value = match rest.number()? {
                    $($number => $name::$variant
                        $(($(rest.item(stringify!($value))?),+))?
                        $({$($field: rest.item(stringify!($field))?),+})?,)*
                    other => {
                        return Err(input.damage(&format!("unknown {} {other}", stringify!($name))));
                    }
                };
                rest.end()?;
                Ok(value)
            }
        }
    };
}

macro_rules! number_values {
    ($($number:ty: $widest:ty, $to:expr, $from:expr;)*) => {$(
        impl FieldValue for $number {
            fn append(&self, out: &mut Vec<u8>) {
                push_varint(out, $to(*self as $widest));
            }

            fn read(input: FieldInput<'_>) -> Result<$number, String> {
                let mut rest = input;
                let number: $widest = $from(rest.number()?);
                rest.end()?;
                let out_of_range = |_| input.damage(&format!("number {number} is out of range"));
                <$number>::try_from(number).map_err(out_of_range)
            }
        }
    )*};
}

number_values! {
    u16: u64, std::convert::identity, std::convert::identity;
    u32: u64, std::convert::identity, std::convert::identity;
    u64: u64, std::convert::identity, std::convert::identity;
    i32: i64, zigzag, unzigzag;
    i64: i64, zigzag, unzigzag;
}

fn zigzag(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)) as u64
}

fn unzigzag(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

/// A list of these is bytes.
impl FieldValue for u8 {
    fn append(&self, out: &mut Vec<u8>) {
        u32::from(*self).append(out);
    }

    fn read(input: FieldInput<'_>) -> Result<u8, String> {
        let number = u32::read(input)?;
        number.try_into().map_err(|_| input.damage(&format!("number {number} is out of range")))
    }

    fn append_list(values: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(values);
    }

    fn read_list(input: FieldInput<'_>) -> Result<Vec<u8>, String> {
        Ok(input.bytes.to_vec())
    }
}

impl FieldValue for bool {
    fn append(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }

    fn read(input: FieldInput<'_>) -> Result<bool, String> {
        match input.bytes {
            [value @ 0..=1] => Ok(*value == 1),
            _ => Err(input.damage("invalid boolean")),
        }
    }

    fn absent() -> Option<bool> {
        Some(false)
    }

    fn is_absent(&self) -> bool {
        !self
    }
}

impl FieldValue for f32 {
    fn append(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.to_le_bytes());
    }

    fn read(input: FieldInput<'_>) -> Result<f32, String> {
        Ok(f32::from_le_bytes(input.array()?))
    }
}

impl FieldValue for f64 {
    fn append(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.to_le_bytes());
    }

    fn read(input: FieldInput<'_>) -> Result<f64, String> {
        Ok(f64::from_le_bytes(input.array()?))
    }
}

impl FieldValue for char {
    fn append(&self, out: &mut Vec<u8>) {
        u32::from(*self).append(out);
    }

    fn read(input: FieldInput<'_>) -> Result<char, String> {
        char::from_u32(u32::read(input)?).ok_or_else(|| input.damage("invalid character"))
    }
}

impl FieldValue for String {
    fn append(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.as_bytes());
    }

    fn read(input: FieldInput<'_>) -> Result<String, String> {
        let text = String::from_utf8(input.bytes.to_vec());
        text.map_err(|_| input.damage("text that is not UTF-8"))
    }
}

impl FieldValue for Duration {
    fn append(&self, out: &mut Vec<u8>) {
        (self.as_secs(), self.subsec_nanos()).append(out);
    }

    fn read(input: FieldInput<'_>) -> Result<Duration, String> {
        match FieldValue::read(input)? {
            (seconds, nanos @ 0..1_000_000_000) => Ok(Duration::new(seconds, nanos)),
            _ => Err(input.damage("invalid duration")),
        }
    }
}

impl<T: FieldValue> FieldValue for Option<T> {
    fn append(&self, out: &mut Vec<u8>) {
        self.iter().for_each(|value| value.append(out));
    }

    fn read(input: FieldInput<'_>) -> Result<Option<T>, String> {
        T::read(input).map(Some)
    }

    fn absent() -> Option<Option<T>> {
        Some(None)
    }

    fn is_absent(&self) -> bool {
        self.is_none()
    }
}

impl<T: FieldValue> FieldValue for Vec<T> {
    fn append(&self, out: &mut Vec<u8>) {
        T::append_list(self, out);
    }

    fn read(input: FieldInput<'_>) -> Result<Vec<T>, String> {
        T::read_list(input)
    }

    fn absent() -> Option<Vec<T>> {
        Some(Vec::new())
    }

    fn is_absent(&self) -> bool {
        self.is_empty()
    }
}

/// As the value itself.
impl<T: FieldValue> FieldValue for Arc<T> {
    fn append(&self, out: &mut Vec<u8>) {
        T::append(self, out);
    }

    fn read(input: FieldInput<'_>) -> Result<Arc<T>, String> {
        T::read(input).map(Arc::new)
    }

    fn absent() -> Option<Arc<T>> {
        T::absent().map(Arc::new)
    }

    fn is_absent(&self) -> bool {
        T::is_absent(self)
    }
}

impl<A: FieldValue, B: FieldValue> FieldValue for (A, B) {
    fn append(&self, out: &mut Vec<u8>) {
        append_prefixed(&self.0, out);
        append_prefixed(&self.1, out);
    }

    fn read(mut input: FieldInput<'_>) -> Result<(A, B), String> {
        let value = (input.item("first")?, input.item("second")?);
        input.end()?;
        Ok(value)
    }
}
