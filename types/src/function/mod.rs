//! Functions and operators: their signatures and implementations.
//!
//! Operators are functions with a symbol as their name. The binder resolves a name and argument
//! types to one [`FunctionId`] by PostgreSQL's rules, which depend only on the [`Signature`]s of
//! that name; evaluation calls the implementation of the id.
//!
//! The overloads are those of PostgreSQL's `pg_proc` and `pg_operator` for the types that bennu
//! has. There is one module for each family of functions, with a table of its functions and their
//! implementations. The tables are merged into one, sorted by name, at the first use.
//!
//! The binder calls polymorphic and keyword-like functions as follows:
//!
//! * `concat`, `concat_ws`, `format`: variadic over `text`; the binder casts the arguments.
//! * `greatest`, `least`: one overload for each type, variadic, NULLs skipped.
//! * `extract(field from x)` is `extract('field', x)`; `x at time zone z` is `timezone(z, x)`;
//!   `position(a in b)` is `position(b, a)`; `trim(…)` is `btrim`, `ltrim` or `rtrim`.
//! * The keywords `current_date`, `current_timestamp`, `localtime` and `localtimestamp` are
//!   functions of that name, with the precision as optional argument.
//! * `x like y escape e` is `x ~~ like_escape(y, e)`; `x similar to y` is
//!   `x ~ similar_to_escape(y)`.

mod argument;
mod arithmetic;
mod array;
mod array_change;
mod array_search;
mod array_text;
mod bit_strings;
mod bits;
mod bytes;
mod clock;
mod comparison;
mod conditional;
mod date_fields;
mod date_format;
mod date_parse;
mod date_template;
mod datetime;
mod digest;
mod encoding;
mod enumeration;
mod geometry;
mod identifiers;
mod interval_format;
pub(crate) mod json_access;
mod json_build;
mod json_change;
mod json_path_search;
mod json_path;
mod json_path_value;
mod json_populate;
mod json_subscript;
mod like;
mod mathematics;
mod money;
mod number_format;
mod number_parse;
mod number_template;
mod overlaps;
mod quoting;
mod recent_cache;
mod record_images;
mod records;
mod regular_expression;
mod regular_expression_functions;
mod sample;
mod sequence;
mod series;
pub mod sets;
mod sizes;
mod strings;
mod substrings;
mod system;
mod timetz;
mod to_ascii;
mod trigonometry;
mod unicode;
mod variadic;
mod fixed_width_types;

pub use array::gathered;

use std::sync::LazyLock;

use crate::context::EvalContext;
use crate::datatype::DataType;
use crate::datum::Datum;
use crate::error::Result;

pub use arithmetic::ArithmeticOp;
pub(crate) use bit_strings::combined;
pub use comparison::CompareOp;
pub(crate) use comparison::midnight;
pub(crate) use json_build::{json_key, json_of, jsonb_of};
pub use like::LikePattern;
pub use quoting::quote_ident;
pub(crate) use strings::lower_char;

/// Index of an implementation in the table of all functions. It differs between versions, so it
/// is never stored: the catalog stores SQL text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FunctionId(pub u16);

/// Volatility of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Volatility {
    /// The result never changes for the same arguments.
    Immutable,
    /// It does not change within a statement (`now()`, functions that use the time zone).
    Stable,
    /// It may change with each call (`random()`).
    Volatile,
}

/// One overload of a name.
#[derive(Debug, Clone)]
pub struct Signature {
    /// The implementation.
    pub id: FunctionId,
    /// The name in lower case, or the operator symbol. Prefix operators have one argument.
    pub name: &'static str,
    /// Types of the arguments.
    pub arguments: &'static [DataType],
    /// The last argument may be repeated any number of times, including zero.
    pub variadic: bool,
    /// Type of the result.
    pub result: DataType,
    /// Volatility.
    pub volatility: Volatility,
    /// If an argument is NULL the result is NULL, without a call.
    pub strict: bool,
    /// Names of the arguments, for named notation; empty if they have none.
    pub names: &'static [&'static str],
}

/// Implementation of a function. Arguments of strict functions are never NULL, and all have the
/// types of the signature.
type Implementation = fn(&[Datum], &EvalContext) -> Result<Datum>;

/// As [`Implementation`], with the type of the first argument, which values do not contain: for
/// example, elements of `char(n)[]` are compared as `char(n)`.
type TypedImplementation = fn(&[Datum], &DataType, &EvalContext) -> Result<Datum>;

/// As [`Implementation`], for a function that modifies its first argument in place. If it fails,
/// the value is unchanged.
type ChangeImplementation = fn(&mut Datum, &[Datum], &EvalContext) -> Result<()>;

/// Implementation of a function, in one of three forms.
#[derive(Clone, Copy)]
enum FunctionBody {
    Plain(Implementation),
    Typed(TypedImplementation),
    Change(ChangeImplementation),
}

/// Kind of a function for which batch evaluation has a vectorized kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KernelKind {
    /// A comparison of two values.
    Compare(CompareOp),
    /// Arithmetic on two numbers.
    Arithmetic(ArithmeticOp),
    /// `LIKE` and related operators on text.
    Like {
        /// `NOT LIKE`
        negated: bool,
        /// `ILIKE`
        ignore_case: bool,
    },
    /// Concatenation of texts or bytes.
    Join,
    /// Access to a member of a `jsonb` by key or position.
    Member {
        /// The result is text, not `jsonb`.
        as_text: bool,
    },
    /// Anything else.
    Other,
}

/// One row of a function table.
#[derive(Clone)]
struct FunctionRow {
    name: &'static str,
    arguments: &'static [DataType],
    result: DataType,
    variadic: bool,
    volatility: Volatility,
    strict: bool,
    shape: KernelKind,
    names: &'static [&'static str],
    body: FunctionBody,
}

/// Returns the row of an immutable, strict function.
const fn row(
    name: &'static str,
    arguments: &'static [DataType],
    result: DataType,
    implementation: Implementation,
) -> FunctionRow {
    FunctionRow {
        name,
        arguments,
        result,
        variadic: false,
        volatility: Volatility::Immutable,
        strict: true,
        shape: KernelKind::Other,
        names: &[],
        body: FunctionBody::Plain(implementation),
    }
}

/// Returns the row of an immutable, strict function that needs the type of its first argument.
const fn typed_row(
    name: &'static str,
    arguments: &'static [DataType],
    result: DataType,
    implementation: TypedImplementation,
) -> FunctionRow {
    let nothing: Implementation = |_, _| Ok(Datum::Null);
    let mut row = row(name, arguments, result, nothing);
    row.body = FunctionBody::Typed(implementation);
    row
}

/// Returns the row of an immutable function that modifies its first argument and accepts NULLs.
const fn change_row(
    name: &'static str,
    arguments: &'static [DataType],
    result: DataType,
    implementation: ChangeImplementation,
) -> FunctionRow {
    let nothing: Implementation = |_, _| Ok(Datum::Null);
    let mut row = row(name, arguments, result, nothing).takes_null();
    row.body = FunctionBody::Change(implementation);
    row
}

impl FunctionRow {
    const fn stable(mut self) -> FunctionRow {
        self.volatility = Volatility::Stable;
        self
    }

    const fn volatile(mut self) -> FunctionRow {
        self.volatility = Volatility::Volatile;
        self
    }

    const fn variadic(mut self) -> FunctionRow {
        self.variadic = true;
        self
    }

    const fn takes_null(mut self) -> FunctionRow {
        self.strict = false;
        self
    }

    const fn named(mut self, names: &'static [&'static str]) -> FunctionRow {
        self.names = names;
        self
    }

    const fn shaped(mut self, shape: KernelKind) -> FunctionRow {
        self.shape = shape;
        self
    }
}

/// Group of functions: a page of the SQL reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FunctionChapter {
    /// Comparisons and conditional functions.
    Comparison,
    /// Arithmetic and mathematics.
    Mathematics,
    /// Text.
    Strings,
    /// Byte and bit strings.
    BytesAndBits,
    /// LIKE and regular expressions.
    PatternMatching,
    /// Conversions between values and formatted text.
    Formatting,
    /// Dates, times and intervals.
    DatesAndTimes,
    /// JSON and rows.
    Json,
    /// Arrays.
    Arrays,
    /// Geometry.
    Geometry,
    /// Enums, sequences, UUIDs, money, MAC addresses and system types.
    OtherTypes,
    /// System information and administration.
    System,
}

/// All functions, in the order of their ids, which is the order of their names.
struct Table {
    signatures: Vec<Signature>,
    rows: Vec<FunctionRow>,
    chapters: Vec<FunctionChapter>,
}

/// Aliases of functions: the first overload with this first argument type.
const ALIASES: &[(&str, &str, DataType)] = &[
    ("dexp", "exp", DataType::Float8),
    ("dlog1", "ln", DataType::Float8),
    ("dlog10", "log", DataType::Float8),
    ("dround", "round", DataType::Float8),
    ("dtrunc", "trunc", DataType::Float8),
    ("like", "~~", DataType::Bytea),
    ("notlike", "!~~", DataType::Bytea),
    ("numeric_exp", "exp", DataType::Numeric),
    ("numeric_ln", "ln", DataType::Numeric),
    ("numeric_sqrt", "sqrt", DataType::Numeric),
    ("numeric_div_trunc", "div", DataType::Numeric),
    ("textlen", "length", DataType::Text),
];

/// Returns the rows of [`ALIASES`].
fn aliases(rows: &[(FunctionChapter, FunctionRow)]) -> Vec<(FunctionChapter, FunctionRow)> {
    let alias = |(alias, name, first): &(&'static str, &str, DataType)| {
        let is_meant =
            |row: &FunctionRow| row.name == *name && row.arguments.first() == Some(first);
        let meant = rows.iter().find(|(_, row)| is_meant(row));
        meant.map(|(chapter, row)| (*chapter, FunctionRow { name: alias, ..row.clone() }))
    };
    ALIASES.iter().filter_map(alias).collect()
}

/// The function tables with their chapters.
const FAMILIES: [(FunctionChapter, &[FunctionRow]); 45] = [
    (FunctionChapter::OtherTypes, enumeration::FUNCTIONS),
    (FunctionChapter::Json, json_access::FUNCTIONS),
    (FunctionChapter::Json, json_build::FUNCTIONS),
    (FunctionChapter::Json, json_change::FUNCTIONS),
    (FunctionChapter::Json, json_populate::FUNCTIONS),
    (FunctionChapter::Json, json_subscript::FUNCTIONS),
    (FunctionChapter::Arrays, array::FUNCTIONS),
    (FunctionChapter::Arrays, array_change::FUNCTIONS),
    (FunctionChapter::Arrays, array_search::FUNCTIONS),
    (FunctionChapter::Arrays, array_text::FUNCTIONS),
    (FunctionChapter::BytesAndBits, bit_strings::FUNCTIONS),
    (FunctionChapter::BytesAndBits, bits::FUNCTIONS),
    (FunctionChapter::BytesAndBits, bytes::FUNCTIONS),
    (FunctionChapter::DatesAndTimes, clock::FUNCTIONS),
    (FunctionChapter::Formatting, date_format::FUNCTIONS),
    (FunctionChapter::Formatting, date_parse::FUNCTIONS),
    (FunctionChapter::DatesAndTimes, datetime::FUNCTIONS),
    (FunctionChapter::BytesAndBits, digest::FUNCTIONS),
    (FunctionChapter::BytesAndBits, encoding::FUNCTIONS),
    (FunctionChapter::OtherTypes, identifiers::FUNCTIONS),
    (FunctionChapter::PatternMatching, like::FUNCTIONS),
    (FunctionChapter::Mathematics, mathematics::FUNCTIONS),
    (FunctionChapter::OtherTypes, money::FUNCTIONS),
    (FunctionChapter::Formatting, number_format::FUNCTIONS),
    (FunctionChapter::Formatting, number_parse::FUNCTIONS),
    (FunctionChapter::DatesAndTimes, overlaps::FUNCTIONS),
    (FunctionChapter::Strings, quoting::FUNCTIONS),
    (FunctionChapter::PatternMatching, regular_expression::FUNCTIONS),
    (FunctionChapter::PatternMatching, regular_expression_functions::FUNCTIONS),
    (FunctionChapter::Mathematics, sample::FUNCTIONS),
    (FunctionChapter::OtherTypes, sequence::FUNCTIONS),
    (FunctionChapter::Formatting, sizes::FUNCTIONS),
    (FunctionChapter::Strings, strings::FUNCTIONS),
    (FunctionChapter::Strings, substrings::FUNCTIONS),
    (FunctionChapter::System, system::FOUND),
    (FunctionChapter::System, system::FUNCTIONS),
    (FunctionChapter::System, system::LOCKS),
    (FunctionChapter::System, system::PRIVILEGES),
    (FunctionChapter::System, system::VISIBLE),
    (FunctionChapter::DatesAndTimes, timetz::FUNCTIONS),
    (FunctionChapter::Strings, to_ascii::FUNCTIONS),
    (FunctionChapter::Mathematics, trigonometry::FUNCTIONS),
    (FunctionChapter::Strings, unicode::FUNCTIONS),
    (FunctionChapter::Strings, variadic::FUNCTIONS),
    (FunctionChapter::OtherTypes, fixed_width_types::FUNCTIONS),
];

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    let computed = [
        (FunctionChapter::Mathematics, arithmetic::functions()),
        (FunctionChapter::Comparison, comparison::functions()),
        (FunctionChapter::Comparison, conditional::functions()),
        (FunctionChapter::Geometry, geometry::functions()),
        (FunctionChapter::Json, json_path::functions()),
        (FunctionChapter::Json, records::functions()),
        (FunctionChapter::Comparison, record_images::functions()),
    ];
    let tables = FAMILIES.map(|(chapter, rows)| (chapter, rows.to_vec()));
    let with_chapter = |(chapter, rows): (FunctionChapter, Vec<FunctionRow>)| {
        rows.into_iter().map(move |row| (chapter, row))
    };
    let mut all: Vec<(FunctionChapter, FunctionRow)> =
        tables.into_iter().chain(computed).flat_map(with_chapter).collect();
    all.extend(aliases(&all));
    all.sort_by_key(|(_, row)| row.name);
    let (chapters, rows): (Vec<_>, Vec<_>) = all.into_iter().unzip();
    let signatures = rows.iter().enumerate().map(|(index, row)| signature_of(index, row)).collect();
    Table { signatures, rows, chapters }
});

fn signature_of(index: usize, row: &FunctionRow) -> Signature {
    Signature {
        id: FunctionId(u16::try_from(index).expect("there are fewer than 65,536 functions")),
        name: row.name,
        arguments: row.arguments,
        variadic: row.variadic,
        result: row.result.clone(),
        volatility: row.volatility,
        strict: row.strict,
        names: row.names,
    }
}

/// Returns the overloads of a function name or operator symbol; empty if there is none.
pub fn overloads(name: &str) -> &'static [Signature] {
    let all = &TABLE.signatures;
    let start = all.partition_point(|signature| signature.name < name);
    let end = all.partition_point(|signature| signature.name <= name);
    &all[start..end]
}

/// Returns the name of an operator with this symbol and number of arguments.
pub fn operator(symbol: &str, argument_count: usize) -> Option<&'static str> {
    let takes = |one: &&Signature| one.arguments.len() == argument_count;
    let found = overloads(symbol).iter().find(takes)?;
    is_operator(found.name).then_some(found.name)
}

/// Returns the signature of an implementation.
pub fn signature(id: FunctionId) -> &'static Signature {
    &TABLE.signatures[usize::from(id.0)]
}

/// Returns all functions and operators, sorted by name.
pub fn all() -> &'static [Signature] {
    &TABLE.signatures
}

/// Returns the chapter of a function.
pub fn chapter(id: FunctionId) -> FunctionChapter {
    TABLE.chapters[usize::from(id.0)]
}

/// Returns the overload of `name` with exactly these types.
pub fn find(name: &str, arguments: &[DataType]) -> Option<FunctionId> {
    overloads(name)
        .iter()
        .find(|signature| signature.arguments == arguments)
        .map(|signature| signature.id)
}

/// Returns the kind of a function.
pub fn shape(id: FunctionId) -> KernelKind {
    TABLE.rows[usize::from(id.0)].shape
}

/// Calls a function with a first argument of type `first`. A strict function with a NULL argument
/// returns NULL.
///
/// # Errors
///
/// As PostgreSQL for the same arguments.
pub fn call(
    id: FunctionId,
    arguments: &[Datum],
    first: &DataType,
    context: &EvalContext,
) -> Result<Datum> {
    let row = &TABLE.rows[usize::from(id.0)];
    if row.strict && arguments.iter().any(|argument| matches!(argument, Datum::Null)) {
        return Ok(Datum::Null);
    }
    match row.body {
        FunctionBody::Plain(implementation) => implementation(arguments, context),
        FunctionBody::Typed(implementation) => implementation(arguments, first, context),
        FunctionBody::Change(implementation) => {
            let mut value = arguments[0].clone();
            implementation(&mut value, &arguments[1..], context)?;
            Ok(value)
        }
    }
}

/// Returns whether a function modifies its first argument: see [`change`].
pub fn is_change(id: FunctionId) -> bool {
    matches!(TABLE.rows[usize::from(id.0)].body, FunctionBody::Change(_))
}

/// Replaces a value by the result of a function of it and other arguments, in place if it is not
/// shared. The value is unchanged if the function fails or does not support this.
///
/// # Errors
///
/// As for [`call`].
pub fn change(
    id: FunctionId,
    value: &mut Datum,
    others: &[Datum],
    context: &EvalContext,
) -> Result<()> {
    match TABLE.rows[usize::from(id.0)].body {
        FunctionBody::Change(implementation) => implementation(value, others, context),
        FunctionBody::Plain(_) | FunctionBody::Typed(_) => Ok(()),
    }
}

/// Returns whether a function is only called by the binder, for special syntax.
pub fn is_internal(name: &str) -> bool {
    name.contains(' ')
}

/// Returns whether a name is made of operator characters.
pub fn is_operator(name: &str) -> bool {
    name.bytes().all(|byte| b"+-*/<>=~!@#%^&|?".contains(&byte))
}
