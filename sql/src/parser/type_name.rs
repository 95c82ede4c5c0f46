//! Parsing of type names to [`SqlType`].

use sqlparser::ast::{
    ArrayElemTypeDef, CharLengthUnits, CharacterLength, DataType as Parsed, ExactNumberInfo,
    ObjectName, ObjectNamePart, TimezoneInfo,
};
use sqlparser::tokenizer::Token;
use types::datatype::{DataType, IntervalFields, RegKind, SqlType, interval_modifier};
use types::key_words;

use super::cursor::TokenCursor;
use super::error::{ParseError, Result, sqlstate};
use super::name;
use crate::ast::{DATABASE, NamedType, TypeName};

/// The maximum length of `varchar(n)` and `char(n)`, as in PostgreSQL.
const MAX_CHARACTERS: u64 = 10_485_760;
/// The maximum precision of a declared `numeric`, as in PostgreSQL.
const MAX_PRECISION: u64 = 1_000;

impl TokenCursor<'_> {
    /// Reads a type name.
    pub(super) fn type_name(&mut self) -> Result<TypeName> {
        let position = self.position();
        if let "select" | "from" | "where" | "" = self.peek_word().as_str()
            && !matches!(self.peek(), Token::Word(word) if word.quote_style.is_some())
        {
            return Err(self.unexpected());
        }
        let parsed = self.parser.parse_data_type().map_err(|error| self.translate(error))?;
        // `integer ARRAY[4]`: the length has no effect.
        let bounded = self.is_word("array")
            && matches!(self.parser.peek_nth_token_ref(2).token, Token::Number(..));
        if !bounded {
            return lower_type(&parsed, position);
        }
        self.expect_words(&["array"])?;
        self.expect(&Token::LBracket)?;
        self.advance();
        self.expect(&Token::RBracket)?;
        array_of(&parsed, position)
    }
}

/// Lowers a type name.
pub(super) fn lower_type(parsed: &Parsed, position: usize) -> Result<TypeName> {
    let plain = |base: DataType| Ok(SqlType::from(base));
    let sql_type = match parsed {
        Parsed::Bool | Parsed::Boolean => plain(DataType::Bool),
        Parsed::Int2(None) | Parsed::SmallInt(None) => plain(DataType::Int2),
        Parsed::Int(None) | Parsed::Int4(None) | Parsed::Integer(None) => plain(DataType::Int4),
        Parsed::Int8(None) | Parsed::BigInt(None) => plain(DataType::Int8),
        Parsed::Float4 | Parsed::Real => plain(DataType::Float4),
        Parsed::Float8 | Parsed::DoublePrecision | Parsed::Double(ExactNumberInfo::None) => {
            plain(DataType::Float8)
        }
        Parsed::Table(_) => Err(ParseError::syntax("syntax error at or near \"table\"", position)),
        Parsed::Float(digits) => float(*digits, position),
        Parsed::Numeric(digits) | Parsed::Decimal(digits) | Parsed::Dec(digits) => {
            numeric(*digits, position)
        }
        Parsed::Text => plain(DataType::Text),
        Parsed::Varchar(length)
        | Parsed::CharacterVarying(length)
        | Parsed::CharVarying(length) => characters(&DataType::Varchar, *length, -1, position),
        Parsed::Char(length) | Parsed::Character(length) => {
            characters(&DataType::Char, *length, 5, position)
        }
        Parsed::Bytea | Parsed::Varbinary(None) => plain(DataType::Bytea),
        Parsed::Date => plain(DataType::Date),
        Parsed::Time(digits, TimezoneInfo::None | TimezoneInfo::WithoutTimeZone) => {
            seconds(&DataType::Time, *digits, position)
        }
        Parsed::Time(digits, TimezoneInfo::WithTimeZone | TimezoneInfo::Tz) => {
            seconds(&DataType::Timetz, *digits, position)
        }
        Parsed::Bit(length) => bits(&DataType::Bit, Some(length.unwrap_or(1)), position),
        Parsed::BitVarying(length) | Parsed::VarBit(length) => {
            bits(&DataType::Varbit, *length, position)
        }
        Parsed::Timestamp(digits, TimezoneInfo::None | TimezoneInfo::WithoutTimeZone) => {
            seconds(&DataType::Timestamp, *digits, position)
        }
        Parsed::Timestamp(digits, TimezoneInfo::WithTimeZone | TimezoneInfo::Tz) => {
            seconds(&DataType::Timestamptz, *digits, position)
        }
        Parsed::Interval { fields, precision } => {
            let words = fields.as_ref().map(|fields| fields.to_string().to_ascii_lowercase());
            let fields = words.as_deref().and_then(IntervalFields::from_words);
            interval(fields, *precision, position)
        }
        Parsed::Uuid => plain(DataType::Uuid),
        Parsed::Trigger => plain(DataType::Trigger),
        Parsed::GeometricType(kind) => DataType::from_name(&kind.to_string())
            .map(SqlType::from)
            .ok_or_else(|| foreign_type(&kind.to_string(), position)),
        Parsed::Regclass => plain(DataType::Reg(RegKind::Class)),
        Parsed::Custom(name, modifiers) => return custom(name, modifiers, position),
        Parsed::JSON => plain(DataType::Json),
        Parsed::JSONB => plain(DataType::Jsonb),
        Parsed::Array(
            ArrayElemTypeDef::SquareBracket(element, _)
            | ArrayElemTypeDef::AngleBracket(element)
            | ArrayElemTypeDef::Parenthesis(element)
            | ArrayElemTypeDef::Qualified(element, _),
        ) => return array_of(element, position),
        Parsed::Array(ArrayElemTypeDef::None) => {
            Err(ParseError::syntax("an array requires an element type", position))
        }
        Parsed::Unspecified => Err(ParseError::syntax("a type name is missing", position)),
        other => return phoenix_type(other, position),
    }?;
    Ok(TypeName { sql_type, named: None, collation: None, position })
}

/// Lowers a type that Phoenix has and PostgreSQL has not.
fn phoenix_type(parsed: &Parsed, position: usize) -> Result<TypeName> {
    match parsed {
        Parsed::TinyInt(None) => Ok(user_type(None, "tinyint", position)),
        Parsed::Varbinary(_) | Parsed::Binary(_) => {
            Err(ParseError::unsupported("binary or varbinary with a length here", position)
                .with_hint("Use bytea; a CHECK on octet_length() can limit it."))
        }
        other => Err(foreign_type(&other.to_string().to_ascii_lowercase(), position)),
    }
}

/// Returns an array type. As in PostgreSQL, the number of dimensions is not part of the type.
fn array_of(element: &Parsed, position: usize) -> Result<TypeName> {
    let mut element = element;
    while let Parsed::Array(ArrayElemTypeDef::SquareBracket(inner, _)) = element {
        element = inner;
    }
    let TypeName { sql_type, named, position, .. } = lower_type(element, position)?;
    if let Some(named) = named {
        let named = Some(NamedType { is_array: true, ..named });
        return Ok(TypeName { sql_type, named, collation: None, position });
    }
    match sql_type.base.array() {
        Some(base) => Ok(TypeName {
            sql_type: SqlType { base, ..sql_type },
            named: None,
            collation: None,
            position,
        }),
        None => {
            let what = format!("an array of {}", sql_type.base.sql_name());
            Err(ParseError::unsupported(what, position))
        }
    }
}

/// Lowers a name for which `sqlparser` has no variant.
fn custom(name: &ObjectName, modifiers: &[String], position: usize) -> Result<TypeName> {
    let mut parts = Vec::with_capacity(name.0.len());
    for part in &name.0 {
        match part {
            ObjectNamePart::Identifier(ident) => {
                parts.push((
                    name::fold(&ident.value, ident.quote_style.is_some()),
                    ident.quote_style,
                ));
            }
            ObjectNamePart::Function(_) => {
                return Err(ParseError::syntax("a type name is expected", position));
            }
        }
    }
    if parts.len() == 3 && parts[0].0 == DATABASE {
        parts.remove(0);
    }
    let (spelling, quoted) = match parts.as_slice() {
        [(spelling, quote)] => (spelling.as_str(), quote.is_some()),
        [(schema, _), (spelling, quote)] if schema == "pg_catalog" => {
            (spelling.as_str(), quote.is_some())
        }
        [(schema, _), (spelling, _)] => {
            return Ok(user_type(Some(schema.as_str()), spelling, position));
        }
        _ => {
            let full: Vec<&str> = parts.iter().map(|(part, _)| part.as_str()).collect();
            return Err(undefined_type(&full.join("."), position));
        }
    };
    let is_alone = parts.len() == 1 && !quoted;
    let base = match spelling {
        "nchar" if is_alone => Some(DataType::Char),
        _ => DataType::from_name(spelling),
    };
    if is_alone && base.is_none() && !key_words::is_type_or_function(spelling) {
        let message = format!("syntax error at or near \"{spelling}\"");
        return Err(ParseError::syntax(message, position));
    }
    let Some(base) = base else {
        if parts.len() == 2 {
            return Ok(user_type(Some("pg_catalog"), spelling, position));
        }
        if parts.len() == 1 && modifiers.is_empty() && (quoted || !is_foreign(spelling)) {
            return Ok(user_type(None, spelling, position));
        }
        return Err(foreign_type(spelling, position));
    };
    let sql_type = modified(&base, modifiers, spelling, position)?;
    Ok(TypeName { sql_type, named: None, collation: None, position })
}

/// Returns a type with the modifiers in parentheses after its name.
fn modified(
    base: &DataType,
    modifiers: &[String],
    spelling: &str,
    position: usize,
) -> Result<SqlType> {
    let number = |text: &String| text.trim().parse::<u64>().ok();
    let bad = || {
        ParseError::syntax(
            format!("type modifier is not allowed for type \"{spelling}\""),
            position,
        )
    };
    Ok(match (base, modifiers) {
        (_, []) => SqlType::from(base),
        (DataType::Char | DataType::Varchar, [length]) => {
            let length = number(length).ok_or_else(bad)?;
            characters(
                base,
                Some(CharacterLength::IntegerLength { length, unit: None }),
                -1,
                position,
            )?
        }
        (DataType::Numeric, [precision]) => {
            numeric(ExactNumberInfo::Precision(number(precision).ok_or_else(bad)?), position)?
        }
        (DataType::Interval, [digits]) => {
            interval(None, Some(number(digits).ok_or_else(bad)?), position)?
        }
        (
            DataType::Time | DataType::Timetz | DataType::Timestamp | DataType::Timestamptz,
            [digits],
        ) => seconds(base, Some(number(digits).ok_or_else(bad)?), position)?,
        (DataType::Bit | DataType::Varbit, [length]) => {
            bits(base, Some(number(length).ok_or_else(bad)?), position)?
        }
        _ => return Err(bad()),
    })
}

/// Returns a type name that only the catalog can resolve.
fn user_type(schema: Option<&str>, name: &str, position: usize) -> TypeName {
    let schema = schema.map(str::to_owned);
    let named = NamedType { schema, name: name.to_owned(), of_column: None, is_array: false };
    let named = Some(named);
    TypeName { sql_type: DataType::Unknown.into(), named, collation: None, position }
}

/// Returns whether a name is of a type of PostgreSQL or Phoenix that bennu does not have.
fn is_foreign(name: &str) -> bool {
    foreign_type(name, 0).sqlstate == sqlstate::FEATURE_NOT_SUPPORTED
}

fn float(digits: ExactNumberInfo, position: usize) -> Result<SqlType> {
    match digits {
        ExactNumberInfo::None | ExactNumberInfo::Precision(25..=53) => {
            Ok(SqlType::from(DataType::Float8))
        }
        ExactNumberInfo::Precision(1..=24) => Ok(SqlType::from(DataType::Float4)),
        ExactNumberInfo::Precision(0) => {
            Err(invalid("precision for type float must be at least 1 bit".to_owned(), position))
        }
        ExactNumberInfo::Precision(_) => {
            Err(invalid("precision for type float must be less than 54 bits".to_owned(), position))
        }
        ExactNumberInfo::PrecisionAndScale(..) => {
            Err(ParseError::syntax("type float has no scale", position))
        }
    }
}

fn numeric(digits: ExactNumberInfo, position: usize) -> Result<SqlType> {
    let (precision, scale) = match digits {
        ExactNumberInfo::None => return Ok(SqlType::from(DataType::Numeric)),
        ExactNumberInfo::Precision(precision) => (precision, 0),
        ExactNumberInfo::PrecisionAndScale(precision, scale) => (precision, scale),
    };
    if !(1..=MAX_PRECISION).contains(&precision) {
        return Err(invalid(
            format!("NUMERIC precision {precision} must be between 1 and {MAX_PRECISION}"),
            position,
        ));
    }
    if !(-1000..=1000).contains(&scale) {
        return Err(invalid(
            format!("NUMERIC scale {scale} must be between -1000 and 1000"),
            position,
        ));
    }
    let precision = i32::try_from(precision).expect("at most 1000");
    let scale = i32::try_from(scale).expect("at most 1000");
    Ok(SqlType::new(DataType::Numeric, ((precision << 16) | (scale & 0x7ff)) + 4))
}

fn characters(
    base: &DataType,
    length: Option<CharacterLength>,
    unlimited: i32,
    position: usize,
) -> Result<SqlType> {
    let length = match length {
        None => return Ok(SqlType::new(base.clone(), unlimited)),
        Some(CharacterLength::IntegerLength {
            length,
            unit: None | Some(CharLengthUnits::Characters),
        }) => length,
        Some(CharacterLength::IntegerLength { unit: Some(CharLengthUnits::Octets), .. }) => {
            return Err(ParseError::unsupported("a length in octets", position));
        }
        Some(CharacterLength::Max) => {
            return Err(ParseError::syntax("syntax error at or near \"max\"", position));
        }
    };
    let name = if *base == DataType::Char { "char" } else { "varchar" };
    if length < 1 {
        return Err(invalid(format!("length for type {name} must be at least 1"), position));
    }
    if length > MAX_CHARACTERS {
        return Err(invalid(
            format!("length for type {name} cannot exceed {MAX_CHARACTERS}"),
            position,
        ));
    }
    let modifier = i32::try_from(length).expect("at most MAX_CHARACTERS") + 4;
    Ok(SqlType::new(base.clone(), modifier))
}

/// Returns a bit string type; without a length it is unlimited.
fn bits(base: &DataType, length: Option<u64>, position: usize) -> Result<SqlType> {
    /// PostgreSQL's `MaxAttrSize` in bits.
    const BITS_MAX: u64 = 83_886_080;
    let Some(length) = length else { return Ok(SqlType::from(base)) };
    let name = base.internal_name();
    if length < 1 {
        return Err(invalid(format!("length for type {name} must be at least 1"), position));
    }
    if length > BITS_MAX {
        let message = format!("length for type {name} cannot exceed {BITS_MAX}");
        return Err(invalid(message, position));
    }
    let modifier = i32::try_from(length).expect("at most BITS_MAX");
    Ok(SqlType::new(base.clone(), modifier))
}

/// Returns a type with a precision of seconds; more than 6 digits mean 6, as in PostgreSQL.
fn seconds(base: &DataType, digits: Option<u64>, position: usize) -> Result<SqlType> {
    let Some(digits) = digits else { return Ok(SqlType::from(base)) };
    if i32::try_from(digits).is_err() {
        return Err(invalid(format!("precision {digits} is out of range"), position));
    }
    let modifier = i32::try_from(digits.min(6)).expect("at most 6");
    Ok(SqlType::new(base.clone(), modifier))
}

/// Returns the interval type with these fields and this precision of seconds.
pub(super) fn interval(
    fields: Option<IntervalFields>,
    digits: Option<u64>,
    position: usize,
) -> Result<SqlType> {
    let digits = digits.map(|digits| seconds(&DataType::Interval, Some(digits), position));
    let digits = digits.transpose()?.map(|of_seconds| of_seconds.modifier);
    Ok(SqlType::new(DataType::Interval, interval_modifier(fields, digits)))
}

fn invalid(message: String, position: usize) -> ParseError {
    ParseError::new(sqlstate::INVALID_PARAMETER_VALUE, message, position)
}

fn undefined_type(name: &str, position: usize) -> ParseError {
    ParseError::new(sqlstate::UNDEFINED_OBJECT, format!("type \"{name}\" does not exist"), position)
}

/// Returns the error for an unknown type, with a hint for types of PostgreSQL and Phoenix.
fn foreign_type(name: &str, position: usize) -> ParseError {
    let bare = name.split('(').next().unwrap_or(name).trim();
    let hint = match bare {
        "serial" | "serial4" | "bigserial" | "serial8" | "smallserial" | "serial2" => {
            "Use bigint, or uuid with DEFAULT gen_random_uuid(), and supply the values explicitly."
        }
        "blob" => "Use bytea.",
        _ if bare.ends_with(" unsigned") => "Use a wider type with CHECK (column >= 0).",
        "cidr" | "inet" | "xml" => "Use text.",
        "citext" => "Use text, with an index on lower(column).",
        "hstore" => "Use jsonb.",
        "int4range" => "Use two columns with CHECK (low <= high).",
        "tsquery" | "tsvector" => "Use text with LIKE or a regular expression.",
        _ => return undefined_type(name, position),
    };
    ParseError::unsupported(format!("type {name}"), position).with_hint(hint)
}
