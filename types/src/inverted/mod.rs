//! Terms of inverted indexes: what an operator class extracts from a value, and which terms a
//! condition needs.
//!
//! ```text
//!   row        value     --terms-->  entries: one for each term
//!   condition  operand   --query-->  terms, joined by AND and OR, that the rows have
//! ```
//!
//! A query admits every row that satisfies the condition, and possibly others: the condition is
//! evaluated again on each row. A NULL has no terms, and satisfies no condition of a class.
//!
//! A term is the bytes of a key of the index, in the order of no type. One that would be longer
//! than [`TERM_BYTES_MAX`] is replaced by its hash. Byte by byte: `docs/formats/index-entry.md`.
//!
//! Source: PostgreSQL's GIN (`ginarrayproc.c`, `jsonb_gin.c`).

mod array;
mod json;
mod json_path;
mod trigram;

use xxhash_rust::xxh3::xxh3_128;

use crate::datatype::DataType;
use crate::datum::Datum;
use crate::error::Result;

/// Maximum length of a term, in bytes.
pub const TERM_BYTES_MAX: usize = 128;

/// First byte of a hashed term.
const HASHED: u8 = 0xff;

/// An operator class of inverted indexes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InvertedClass {
    /// `array_ops`: the elements of an array.
    Array,
    /// `jsonb_ops`: the keys, elements and values of a `jsonb`.
    Jsonb,
    /// `jsonb_path_ops`: the scalars of a `jsonb` with the keys above them.
    JsonbPath,
    /// `gin_trgm_ops`: the trigrams of a text.
    Trigram,
}

/// An operator that a class supports, with the indexed value on the left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TermOperator {
    /// `@>`
    Contains,
    /// `<@`
    ContainedBy,
    /// `&&`
    Overlaps,
    /// `=`
    Equals,
    /// `operand = ANY (value)`
    Element,
    /// `?`
    HasKey,
    /// `?|`
    HasAnyKey,
    /// `?&`
    HasAllKeys,
    /// `@?`
    PathExists,
    /// `@@`
    PathMatches,
    /// `~~` and `~~*`, which are LIKE and ILIKE
    Like,
}

/// The terms that rows need in order to satisfy a condition.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum TermQuery {
    /// All rows, including those without terms.
    All,
    /// No row.
    None,
    /// Rows with a term.
    Term(Vec<u8>),
    /// Rows that satisfy all of these.
    And(Vec<TermQuery>),
    /// Rows that satisfy one of these.
    Or(Vec<TermQuery>),
}

impl InvertedClass {
    /// All of them.
    pub const ALL: [InvertedClass; 4] = [
        InvertedClass::Array,
        InvertedClass::Jsonb,
        InvertedClass::JsonbPath,
        InvertedClass::Trigram,
    ];

    /// Returns the name.
    pub fn name(self) -> &'static str {
        match self {
            InvertedClass::Array => "array_ops",
            InvertedClass::Jsonb => "jsonb_ops",
            InvertedClass::JsonbPath => "jsonb_path_ops",
            InvertedClass::Trigram => "gin_trgm_ops",
        }
    }

    /// Returns the class with a name.
    pub fn named(name: &str) -> Option<InvertedClass> {
        InvertedClass::ALL.into_iter().find(|class| class.name() == name)
    }

    /// Returns whether values of a type can be indexed.
    pub fn accepts(self, data_type: &DataType) -> bool {
        match self {
            InvertedClass::Array => data_type.element().is_some(),
            InvertedClass::Jsonb | InvertedClass::JsonbPath => *data_type == DataType::Jsonb,
            InvertedClass::Trigram => matches!(data_type, DataType::Text | DataType::Varchar),
        }
    }

    /// Returns the default class of a type.
    pub fn default_of(data_type: &DataType) -> Option<InvertedClass> {
        let mut defaults = InvertedClass::ALL.into_iter().filter(|class| class.is_default());
        defaults.find(|class| class.accepts(data_type))
    }

    /// Returns whether it is the default of the types that it accepts.
    pub fn is_default(self) -> bool {
        matches!(self, InvertedClass::Array | InvertedClass::Jsonb)
    }

    /// Returns the operator with a symbol, the indexed value of the type `data_type` on its left.
    pub fn operator(self, symbol: &str) -> Option<TermOperator> {
        match (self, symbol) {
            (InvertedClass::Array, "@>") => Some(TermOperator::Contains),
            (InvertedClass::Array, "<@") => Some(TermOperator::ContainedBy),
            (InvertedClass::Array, "&&") => Some(TermOperator::Overlaps),
            (InvertedClass::Array, "=") => Some(TermOperator::Equals),
            (InvertedClass::Jsonb | InvertedClass::JsonbPath, "@>") => Some(TermOperator::Contains),
            (InvertedClass::Jsonb | InvertedClass::JsonbPath, "@?") => {
                Some(TermOperator::PathExists)
            }
            (InvertedClass::Jsonb | InvertedClass::JsonbPath, "@@") => {
                Some(TermOperator::PathMatches)
            }
            (InvertedClass::Jsonb, "?") => Some(TermOperator::HasKey),
            (InvertedClass::Jsonb, "?|") => Some(TermOperator::HasAnyKey),
            (InvertedClass::Jsonb, "?&") => Some(TermOperator::HasAllKeys),
            (InvertedClass::Trigram, "~~" | "~~*") => Some(TermOperator::Like),
            (InvertedClass::Trigram, "=") => Some(TermOperator::Equals),
            _ => None,
        }
    }

    /// Returns the terms of a value, ascending, each once.
    ///
    /// # Errors
    ///
    /// `42804` if the value is not of the type.
    pub fn terms(self, value: &Datum, data_type: &DataType) -> Result<Vec<Vec<u8>>> {
        let mut terms = match self {
            InvertedClass::Array => array::terms(value, data_type)?,
            InvertedClass::Jsonb | InvertedClass::JsonbPath => json::terms(self, value)?,
            InvertedClass::Trigram => trigram::terms(value)?,
        };
        terms.sort_unstable();
        terms.dedup();
        Ok(terms)
    }

    /// Returns the terms that a condition needs, whose operand is of the type that the operator
    /// takes. `data_type` is that of the indexed value.
    ///
    /// # Errors
    ///
    /// `42804` if the operand is not of that type.
    pub fn query(
        self,
        operator: TermOperator,
        operand: &Datum,
        data_type: &DataType,
    ) -> Result<TermQuery> {
        if operand.is_null() {
            return Ok(TermQuery::None);
        }
        match self {
            InvertedClass::Array => array::query(operator, operand, data_type),
            InvertedClass::Jsonb | InvertedClass::JsonbPath => json::query(self, operator, operand),
            InvertedClass::Trigram => trigram::query(operator, operand),
        }
    }
}

impl TermOperator {
    /// Returns whether an operand of a type has the terms of indexed values of the type `of`, or
    /// of their elements.
    pub fn takes(self, operand: &DataType, of: &DataType) -> bool {
        let is_text = |data_type: &DataType| {
            matches!(data_type.element(), Some(DataType::Text | DataType::Varchar))
        };
        match self {
            TermOperator::Contains
            | TermOperator::ContainedBy
            | TermOperator::Overlaps
            | TermOperator::Equals => {
                let is_varying =
                    |data_type| matches!(data_type, &DataType::Text | &DataType::Varchar);
                operand == of
                    || (is_text(operand) && is_text(of))
                    || (is_varying(operand) && is_varying(of))
            }
            TermOperator::Element => false,
            TermOperator::HasKey | TermOperator::Like => *operand == DataType::Text,
            TermOperator::HasAnyKey | TermOperator::HasAllKeys => is_text(operand),
            TermOperator::PathExists | TermOperator::PathMatches => *operand == DataType::JsonPath,
        }
    }

    /// Returns the operator with exchanged operands, if there is one.
    pub fn of_flipped(symbol: &str) -> Option<&str> {
        match symbol {
            "@>" => Some("<@"),
            "<@" => Some("@>"),
            "&&" | "=" => Some(symbol),
            _ => None,
        }
    }
}

impl TermQuery {
    /// Returns the conjunction.
    pub fn all_of(queries: impl IntoIterator<Item = TermQuery>) -> TermQuery {
        let mut needed = Vec::new();
        for query in queries {
            match query {
                TermQuery::None => return TermQuery::None,
                TermQuery::All => {}
                TermQuery::And(more) => needed.extend(more),
                query => needed.push(query),
            }
        }
        needed.sort_unstable();
        needed.dedup();
        match needed.len() {
            0 => TermQuery::All,
            1 => needed.remove(0),
            _ => TermQuery::And(needed),
        }
    }

    /// Returns the disjunction.
    pub fn any_of(queries: impl IntoIterator<Item = TermQuery>) -> TermQuery {
        let mut admitted = Vec::new();
        for query in queries {
            match query {
                TermQuery::All => return TermQuery::All,
                TermQuery::None => {}
                TermQuery::Or(more) => admitted.extend(more),
                query => admitted.push(query),
            }
        }
        admitted.sort_unstable();
        admitted.dedup();
        match admitted.len() {
            0 => TermQuery::None,
            1 => admitted.remove(0),
            _ => TermQuery::Or(admitted),
        }
    }

    /// Returns the number of terms.
    pub fn term_count(&self) -> usize {
        match self {
            TermQuery::All | TermQuery::None => 0,
            TermQuery::Term(_) => 1,
            TermQuery::And(queries) | TermQuery::Or(queries) => {
                queries.iter().map(TermQuery::term_count).sum()
            }
        }
    }
}

/// Returns a term of these bytes, hashed if they are too long.
fn term(bytes: Vec<u8>) -> Vec<u8> {
    if bytes.len() <= TERM_BYTES_MAX {
        return bytes;
    }
    let mut hashed = vec![HASHED];
    hashed.extend_from_slice(&xxh3_128(&bytes).to_be_bytes());
    hashed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::EvalContext;
    use crate::function::LikePattern;
    use crate::text::{self, TextStyle};

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    fn value(text: &str, data_type: &DataType) -> Datum {
        text::parse(text, data_type, &TextStyle::default()).unwrap()
    }

    fn terms(class: InvertedClass, text: &str, data_type: &DataType) -> Vec<String> {
        let terms = class.terms(&value(text, data_type), data_type).unwrap();
        terms.iter().map(|term| hex(term)).collect()
    }

    /// The terms in `docs/formats/index-entry.md`.
    #[test]
    fn terms_of_arrays_are_keys_of_elements() {
        let integers = DataType::array_of(&DataType::Int4);
        let of = |text| terms(InvertedClass::Array, text, &integers);
        assert_eq!(of("{7,NULL}"), ["0280000007"]);
        assert_eq!(of("{{8,7},{7,-1}}"), ["027fffffff", "0280000007", "0280000008"]);
        assert_eq!(of("{}"), ["00"]);
        assert_eq!(of("{NULL}"), [""; 0]);
        assert_eq!(InvertedClass::Array.terms(&Datum::Null, &integers).unwrap(), [[]; 0]);
        let texts = DataType::array_of(&DataType::Text);
        let long = "x".repeat(TERM_BYTES_MAX - 3);
        let all = terms(InvertedClass::Array, &format!("{{{long},{long}x}}"), &texts);
        assert_eq!(all[0].len(), 2 * TERM_BYTES_MAX);
        assert_eq!(all[1], "ff5ce54342b1d1712c1c95e3bd5c8eb1b7");
        let numbers = DataType::array_of(&DataType::Numeric);
        assert_eq!(terms(InvertedClass::Array, "{1,1.0,1e0}", &numbers).len(), 1);
    }

    #[test]
    fn terms_of_jsonb_are_parts_or_paths() {
        let of = |class, text| terms(class, text, &DataType::Jsonb);
        let text = r#"{"a": ["b", null, {"c": "d"}], "e": 1.50}"#;
        let parts = of(InvertedClass::Jsonb, text);
        assert_eq!(parts, ["0161", "0162", "0163", "0165", "02", "05024081023300", "0664"]);
        assert_eq!(of(InvertedClass::Jsonb, r#""b""#), ["0162"]);
        assert_eq!(of(InvertedClass::Jsonb, "[[], {}]"), [""; 0]);
        let paths = of(InvertedClass::JsonbPath, text);
        assert_eq!(paths.len(), 4);
        assert!(paths.contains(&of(InvertedClass::JsonbPath, r#"{"a": [["b"]]}"#)[0]));
        assert_eq!(of(InvertedClass::JsonbPath, r#"{"e": 15e-1}"#), ["f73f76b68de6343e"]);
        assert_eq!(of(InvertedClass::JsonbPath, r#"{"a": {"b": null}}"#).len(), 1);
    }

    #[test]
    fn terms_of_text_are_trigrams() {
        let of = |text| terms(InvertedClass::Trigram, text, &DataType::Text);
        assert_eq!(of("aBAb Ä"), ["616220", "616261", "6220c3a4", "626162"]);
        assert_eq!(of("ab"), [""; 0]);
    }

    /// Returns whether a query admits a row with these terms.
    fn admits(query: &TermQuery, terms: &[Vec<u8>]) -> bool {
        match query {
            TermQuery::All => true,
            TermQuery::None => false,
            TermQuery::Term(term) => terms.contains(term),
            TermQuery::And(queries) => queries.iter().all(|query| admits(query, terms)),
            TermQuery::Or(queries) => queries.iter().any(|query| admits(query, terms)),
        }
    }

    proptest::proptest! {
        /// A row that satisfies LIKE or ILIKE has the trigrams of the pattern.
        #[test]
        fn trigrams_admit_matching_rows(
            start in "[aäBb% ]{0,4}", middle in "[aÄbB% ]{0,24}", end in "[abB ]{0,3}",
            (escaped, ignore_case, whole) in (0..3, proptest::bool::ANY, proptest::bool::ANY),
        ) {
            let row = Datum::text(format!("{start}{middle}{end}"));
            let middle = match ignore_case {
                true => middle.to_uppercase(),
                false => middle,
            };
            let (open, close) = if whole { (start.as_str(), end.as_str()) } else { ("%", "_%") };
            let middle = if escaped > 0 { middle.replace('%', "\\%") } else { middle };
            let pattern = format!("{open}{middle}{close}");
            let text = row.as_str().unwrap();
            let matches = LikePattern::new(&pattern, ignore_case)
                .matches(text.as_bytes(), &mut EvalContext::default().pace())
                .unwrap();
            let terms = InvertedClass::Trigram.terms(&row, &DataType::Text).unwrap();
            let operand = Datum::text(pattern);
            let query = InvertedClass::Trigram.query(TermOperator::Like, &operand, &DataType::Text);
            proptest::prop_assert!(!matches || admits(&query.unwrap(), &terms));
        }
    }

    #[test]
    fn queries_combine_terms() {
        let integers = DataType::array_of(&DataType::Int4);
        let of = |operator, text| {
            let operand = value(text, &integers);
            InvertedClass::Array.query(operator, &operand, &integers).unwrap()
        };
        let term = |number: u8| TermQuery::Term(vec![2, 0x80, 0, 0, number]);
        let empty = TermQuery::Term(vec![0]);
        let query = of(TermOperator::Contains, "{2,1,2}");
        assert_eq!(query, TermQuery::And(vec![term(1), term(2)]));
        assert_eq!(of(TermOperator::Contains, "{1}"), term(1));
        assert_eq!(of(TermOperator::Contains, "{}"), TermQuery::All);
        assert_eq!(of(TermOperator::Contains, "{1,NULL}"), TermQuery::None);
        let query = of(TermOperator::Overlaps, "{1,2,NULL}");
        assert_eq!(query, TermQuery::Or(vec![term(1), term(2)]));
        assert_eq!(of(TermOperator::Overlaps, "{}"), TermQuery::None);
        assert_eq!(of(TermOperator::Overlaps, "{NULL}"), TermQuery::None);
        let query = of(TermOperator::ContainedBy, "{1,NULL}");
        assert_eq!(query, TermQuery::Or(vec![empty.clone(), term(1)]));
        assert_eq!(of(TermOperator::ContainedBy, "{}"), empty);
        assert_eq!(of(TermOperator::Equals, "{}"), empty);
        assert_eq!(of(TermOperator::Equals, "{NULL}"), TermQuery::All);
        let nothing = InvertedClass::Array.query(TermOperator::Equals, &Datum::Null, &integers);
        assert_eq!(nothing.unwrap(), TermQuery::None);
    }
}
