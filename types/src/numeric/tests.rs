//! Results of PostgreSQL 15; small against big arithmetic; order and hash.

use std::hash::{BuildHasher, RandomState};

use proptest::prelude::*;

use super::*;
use crate::interruptible::InterruptPacer;

fn number(text: &str) -> Numeric {
    Numeric::parse(text).unwrap()
}

fn calculate(operation: &str, a: &Numeric, b: &str) -> Result<Numeric> {
    let pace = &mut InterruptPacer::without_interrupt();
    let other = || number(b);
    let places = || b.parse().unwrap();
    match operation {
        "+" => a.checked_add(&other()),
        "-" => a.checked_sub(&other()),
        "*" => a.checked_mul(&other(), pace),
        "/" => a.checked_div(&other(), pace),
        "%" => a.checked_rem(&other(), pace),
        "^" => a.pow(&other(), pace),
        "log" => other().log(a, pace),
        "sqrt" => a.sqrt(pace),
        "exp" => a.exp(pace),
        "ln" => a.ln(pace),
        "ceil" => Ok(a.ceil()),
        "floor" => Ok(a.floor()),
        "abs" => Ok(a.abs()),
        "neg" => Ok(a.neg()),
        "sign" => Ok(a.signum()),
        "round" => Ok(a.round(places())),
        "trunc" => Ok(a.trunc(places())),
        modifier => {
            let inner = modifier.trim_start_matches("numeric(").trim_end_matches(')');
            let (precision, scale) = inner.split_once(',').unwrap();
            let (precision, scale): (i32, i32) =
                (precision.parse().unwrap(), scale.parse().unwrap());
            a.apply_modifier((precision << 16 | scale) + 4)
        }
    }
}

#[test]
fn numeric_arithmetic_matches_postgresql() {
    let mut wrong = Vec::new();
    for line in include_str!("golden.txt").lines().filter(|line| !line.starts_with('#')) {
        let [operation, a, b, answer] = line.splitn(4, '|').collect::<Vec<_>>()[..] else {
            panic!("bad line {line:?}");
        };
        let got = match calculate(operation, &number(a), b) {
            Ok(value) => value.to_string(),
            Err(error) => format!("{} {}", error.sqlstate, error.message),
        };
        if got != answer {
            wrong.push(format!("{a} {operation} {b}\n  PostgreSQL {answer}\n  here       {got}"));
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn floats_convert_to_numeric_with_15_or_6_digits() {
    for (value, text) in [
        (0.1, "0.1"),
        (1e20, "100000000000000000000"),
        (1.0 / 3.0, "0.333333333333333"),
        (-2.5e-7, "-0.00000025"),
        (f64::NAN, "NaN"),
    ] {
        assert_eq!(Numeric::try_from_f64(value).unwrap().to_string(), text);
    }
    assert_eq!(Numeric::try_from_f32(0.1).unwrap().to_string(), "0.1");
    assert_eq!(Numeric::try_from_f32(1_234_567.0).unwrap().to_string(), "1234570");
    assert_eq!(number("1e30").to_f64(), 1e30);
    assert_eq!(number("0.3").to_f64(), 0.3);
}

#[test]
fn integers_are_rounded_half_away_from_zero() {
    assert_eq!(number("2.5").to_i64(), Some(3));
    assert_eq!(number("-2.5").to_i64(), Some(-3));
    assert_eq!(number("9223372036854775807.4").to_i64(), Some(i64::MAX));
    assert_eq!(number("9223372036854775807.5").to_i64(), None);
    assert_eq!(Numeric::NAN.to_i64(), None);
}

fn any_numeric() -> impl Strategy<Value = Numeric> {
    prop_oneof![
        (any::<i64>(), 0u32..20).prop_map(|(m, s)| Numeric::from_mantissa(i128::from(m), s)),
        (-1000i64..1000, 0u32..5).prop_map(|(m, s)| Numeric::from_mantissa(i128::from(m), s)),
        (any::<i128>(), 0u32..40).prop_map(|(m, s)| Numeric::from_mantissa(m, s)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn inline_and_digit_representations_agree(a in any_numeric(), b in any_numeric()) {
        let (big_a, big_b) = (a.as_digits(), b.as_digits());
        for operation in ["+", "-", "*", "/", "%"] {
            let calculate = |a: &Numeric, b: &Numeric| match operation {
                "+" => a.checked_add(b),
                "-" => a.checked_sub(b),
                "*" => a.checked_mul(b, &mut InterruptPacer::without_interrupt()),
                "/" => a.checked_div(b, &mut InterruptPacer::without_interrupt()),
                _ => a.checked_rem(b, &mut InterruptPacer::without_interrupt()),
            };
            let small = calculate(&a, &b).map(|value| value.to_string());
            let big = calculate(&big_a, &big_b).map(|value| value.to_string());
            prop_assert_eq!(small, big, "{} {} {}", a, operation, b);
        }
        prop_assert_eq!(a.cmp(&b), big_a.cmp(&big_b));
        let sum = a.checked_add(&b).unwrap();
        prop_assert_eq!(sum.checked_sub(&b).unwrap(), a);
    }

    #[test]
    fn square_root_is_accurate(digits in prop::collection::vec(0u8..10, 1..400)) {
        let digits: String = digits.iter().map(u8::to_string).collect();
        let value = number(&digits);
        let (root, one) = (value.sqrt(&mut InterruptPacer::without_interrupt()).unwrap().trunc(0), number("1"));
        let square = |root: &Numeric| root.checked_mul(root, &mut InterruptPacer::without_interrupt()).unwrap();
        // Rounded to an integer, if the scale is 0.
        let (below, above) = (root.checked_sub(&one).unwrap(), root.checked_add(&one).unwrap());
        prop_assert!(root < one || square(&below) <= value, "{digits}");
        prop_assert!(square(&above) > value, "{digits}");
    }

    #[test]
    fn equal_numbers_hash_alike(a in any_numeric(), more in 0u32..30) {
        let hasher = RandomState::new();
        let wider = a.with_scale(a.scale() + more);
        prop_assert_eq!(&wider, &a);
        prop_assert_eq!(hasher.hash_one(&wider), hasher.hash_one(&a));
        prop_assert_eq!(hasher.hash_one(a.as_digits()), hasher.hash_one(&a));
    }

    #[test]
    fn numeric_text_round_trips(a in any_numeric()) {
        let back = number(&a.to_string());
        prop_assert_eq!(back.scale(), a.scale());
        prop_assert_eq!(back, a);
    }
}
