//! Tests of the key encoding: order, round trips, concatenation, and malformed bytes.

use std::cmp::Ordering;

use proptest::prelude::*;

use super::*;
use crate::datum::Json;
use crate::numeric::Numeric;

const TYPES: &[DataType] = &[
    DataType::Bool,
    DataType::Int2,
    DataType::Int4,
    DataType::Int8,
    DataType::Float4,
    DataType::Float8,
    DataType::Numeric,
    DataType::Text,
    DataType::Char,
    DataType::Bytea,
    DataType::Date,
    DataType::Time,
    DataType::Timestamp,
    DataType::Timestamptz,
    DataType::Interval,
    DataType::Uuid,
    DataType::Oid,
    DataType::InternalChar,
    DataType::Timetz,
    DataType::Varbit,
    DataType::Jsonb,
    DataType::MACADDR,
    DataType::XID8,
];

fn any_numeric() -> impl Strategy<Value = Datum> {
    let special = prop_oneof![
        Just(Numeric::NAN),
        Just(Numeric::INFINITY),
        Just(Numeric::NEGATIVE_INFINITY),
        Just(Numeric::ZERO),
    ];
    let number = prop_oneof![
        (-100i64..100, 0u32..4).prop_map(|(m, s)| Numeric::from_mantissa(i128::from(m), s)),
        (any::<i64>(), 0u32..30).prop_map(|(m, s)| Numeric::from_mantissa(i128::from(m), s)),
        (any::<i128>(), 0u32..50).prop_map(|(m, s)| Numeric::from_mantissa(m, s)),
        (-99i64..99, -400i32..400).prop_map(|(m, e)| Numeric::parse(&format!("{m}e{e}")).unwrap()),
    ];
    prop_oneof![1 => special, 8 => number].prop_map(Datum::Numeric)
}

fn any_text() -> impl Strategy<Value = Datum> {
    prop_oneof!["[ab\t ]{0,4}", "\\PC{0,8}"].prop_map(|text: String| Datum::text(text))
}

fn any_bytea() -> impl Strategy<Value = Datum> {
    let byte = prop_oneof![Just(0u8), Just(1), Just(0xFF), any::<u8>()];
    proptest::collection::vec(byte, 0..6).prop_map(Datum::bytea)
}

fn any_f64() -> impl Strategy<Value = f64> {
    prop_oneof![Just(0.0), Just(-0.0), Just(f64::NAN), Just(-f64::NAN), any::<f64>()]
}

fn any_interval() -> impl Strategy<Value = Datum> {
    prop_oneof![
        (-3i32..3, -40i32..40, -3i64..3).prop_map(|(m, d, h)| Interval::new(
            m,
            d,
            h * 43_200_000_000
        )),
        (any::<i32>(), any::<i32>(), any::<i64>()).prop_map(|(m, d, t)| Interval::new(m, d, t)),
    ]
    .prop_map(Datum::Interval)
}

fn any_json() -> impl Strategy<Value = Json> {
    let number = any_numeric().prop_filter_map("a number", |datum| match datum {
        Datum::Numeric(number) if number.is_finite() => Some(Json::Number(number)),
        _ => None,
    });
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::Bool),
        number,
        "[ab\0]{0,2}".prop_map(|text: String| Json::String(text.into())),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        let pair = ("[a-c]{0,2}", inner.clone()).prop_map(|(key, value)| (Arc::from(key), value));
        prop_oneof![
            proptest::collection::vec(inner, 0..3).prop_map(Json::Array),
            proptest::collection::vec(pair, 0..3).prop_map(Json::object),
        ]
    })
}

/// Returns a strategy for values of a type, including NULL.
pub(crate) fn any_value(data_type: &DataType) -> BoxedStrategy<Datum> {
    let small = -2i64..3;
    let value = match data_type {
        DataType::Bool => any::<bool>().prop_map(Datum::Bool).boxed(),
        DataType::Int2 => any::<i16>().prop_map(Datum::Int2).boxed(),
        DataType::Int4 => prop_oneof![any::<i32>(), -2..3].prop_map(Datum::Int4).boxed(),
        DataType::Int8 => prop_oneof![any::<i64>(), small].prop_map(Datum::Int8).boxed(),
        DataType::Oid => any::<u32>().prop_map(|oid| Datum::Int8(i64::from(oid))).boxed(),
        DataType::Float4 => any_f64().prop_map(|value| Datum::Float4(value as f32)).boxed(),
        DataType::Float8 => any_f64().prop_map(Datum::Float8).boxed(),
        DataType::Numeric => any_numeric().boxed(),
        DataType::Bytea => any_bytea().boxed(),
        DataType::Date => any::<i32>().prop_map(Datum::Date).boxed(),
        DataType::Time => (0i64..=86_400_000_000).prop_map(Datum::Time).boxed(),
        DataType::Timestamp => any::<i64>().prop_map(Datum::Timestamp).boxed(),
        DataType::Timestamptz => any::<i64>().prop_map(Datum::Timestamptz).boxed(),
        DataType::Interval => any_interval().boxed(),
        DataType::Uuid => any::<[u8; 16]>().prop_map(Datum::Uuid).boxed(),
        DataType::Timetz => (0i64..=86_400_000_000, -57_599..57_600)
            .prop_map(|(time, west)| Datum::Nested(Nested::Timetz { time, west }))
            .boxed(),
        DataType::Bit | DataType::Varbit => proptest::collection::vec(any::<bool>(), 0..20)
            .prop_map(|bits| Datum::Nested(Nested::Bits(Arc::new(Bits::from_bits(bits)))))
            .boxed(),
        DataType::Jsonb => {
            any_json().prop_map(|json| Datum::Nested(Nested::Jsonb(json.into()))).boxed()
        }
        &DataType::Word(kind) => {
            let bits = 8 * kind.byte_count() as u32;
            let number = any::<u64>().prop_map(move |number| number >> (64 - bits));
            number.prop_map(move |number| Datum::Int8(kind.of_unsigned(number))).boxed()
        }
        DataType::InternalChar => any::<u8>().prop_map(crate::text::char_of).boxed(),
        _ => any_text().boxed(),
    };
    prop_oneof![1 => Just(Datum::Null), 9 => value].boxed()
}

fn any_type() -> impl Strategy<Value = DataType> {
    proptest::sample::select(TYPES)
}

fn key(value: &Datum, data_type: &DataType, descending: bool, nulls_first: bool) -> Vec<u8> {
    let mut out = Vec::new();
    encode(value, data_type, descending, nulls_first, &mut out).unwrap();
    out
}

/// Returns the expected order of keys.
fn wanted(a: &Datum, b: &Datum, kind: &DataType, descending: bool, nulls_first: bool) -> Ordering {
    match (a.is_null(), b.is_null()) {
        (true, true) => Ordering::Equal,
        (true, false) if nulls_first => Ordering::Less,
        (true, false) => Ordering::Greater,
        (false, true) => wanted(b, a, kind, descending, nulls_first).reverse(),
        (false, false) if descending => b.compare_typed(a, kind),
        (false, false) => a.compare_typed(b, kind),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn key_order_matches_value_order(
        (kind, a, b) in any_type().prop_flat_map(|kind| (Just(kind.clone()), any_value(&kind), any_value(&kind))),
        descending: bool,
        nulls_first: bool,
    ) {
        let a_key = key(&a, &kind, descending, nulls_first);
        let b_key = key(&b, &kind, descending, nulls_first);
        prop_assert_eq!(a_key.cmp(&b_key), wanted(&a, &b, &kind, descending, nulls_first));
        if a_key != b_key {
            prop_assert!(!a_key.starts_with(&b_key) && !b_key.starts_with(&a_key));
        }
    }

    #[test]
    fn decoded_key_equals_original_value(
        (kind, value) in any_type().prop_flat_map(|kind| (Just(kind.clone()), any_value(&kind))),
        descending: bool,
        nulls_first: bool,
        tail: Vec<u8>,
    ) {
        let mut bytes = key(&value, &kind, descending, nulls_first);
        let length = bytes.len();
        bytes.extend(tail);
        let (decoded, taken) = decode(&bytes, &kind, descending, nulls_first).unwrap();
        prop_assert_eq!(taken, length);
        prop_assert_eq!(decoded.compare_typed(&value, &kind), Ordering::Equal);
        prop_assert_eq!(key(&decoded, &kind, descending, nulls_first), &bytes[..length]);
    }

    #[test]
    fn composite_keys_compare_column_by_column(
        (kinds, a, b) in proptest::collection::vec(any_type(), 2).prop_flat_map(|kinds| {
            let row = || kinds.iter().map(any_value).collect::<Vec<_>>();
            let (a, b) = (row(), row());
            (Just(kinds), a, b)
        }),
        descending: [bool; 2],
    ) {
        let whole = |row: &[Datum]| {
            let mut out = Vec::new();
            for i in 0..2 {
                encode(&row[i], &kinds[i], descending[i], false, &mut out).unwrap();
            }
            out
        };
        let order = (0..2)
            .map(|i| wanted(&a[i], &b[i], &kinds[i], descending[i], false))
            .find(|order| *order != Ordering::Equal)
            .unwrap_or(Ordering::Equal);
        prop_assert_eq!(whole(&a).cmp(&whole(&b)), order);
        let first = key(&a[0], &kinds[0], descending[0], false);
        let end = prefix_end(&first).unwrap();
        prop_assert!(whole(&a) >= first && whole(&a) < end);
    }

    #[test]
    fn key_decoder_does_not_panic(
        kind in any_type(),
        mut bytes in proptest::collection::vec(any::<u8>(), 0..40),
        descending: bool,
        value: bool,
    ) {
        if value && !bytes.is_empty() {
            bytes[0] = VALUE;
        }
        if let Ok((datum, taken)) = decode(&bytes, &kind, descending, false) {
            prop_assert!(taken <= bytes.len());
            let mut again = Vec::new();
            encode(&datum, &kind, descending, false, &mut again).unwrap();
        }
    }
}

#[test]
fn documented_key_examples_match_encoder() {
    let hex = |value: Datum, kind, descending| {
        key(&value, kind, descending, false).iter().map(|b| format!("{b:02x}")).collect::<String>()
    };
    assert_eq!(hex(Datum::Int4(-1), &DataType::Int4, false), "027fffffff");
    assert_eq!(hex(Datum::Int4(-1), &DataType::Int4, true), "0280000000");
    assert_eq!(hex(Datum::text("ab"), &DataType::Text, false), "0261620001");
    assert_eq!(hex(Datum::bytea(vec![0x61, 0]), &DataType::Bytea, false), "026100ff0001");
    let number = |text| Datum::Numeric(Numeric::parse(text).unwrap());
    assert_eq!(hex(number("123.450"), &DataType::Numeric, false), "02408202182e00");
    assert_eq!(hex(number("-1"), &DataType::Numeric, false), "02207efdff");
    assert_eq!(hex(Datum::Null, &DataType::Numeric, false), "03");
    assert_eq!(hex(Datum::Float8(1.0), &DataType::Float8, false), "02bff0000000000000");
}
