//! Tests of vectors and batches.

use super::*;

fn sample() -> Vector {
    let mut vector = Vector::new(&DataType::Text, 4);
    vector.push_text("heron");
    vector.push_null();
    vector.push(&Datum::text(""));
    vector.push_text("phoenix");
    vector
}

#[test]
fn take_and_append_preserve_nulls() {
    let vector = sample();
    let mut taken = vector.take(&[3, 1, 0]);
    assert_eq!(
        (0..3).map(|i| taken.datum(i)).collect::<Vec<_>>(),
        [Datum::text("phoenix"), Datum::Null, Datum::text("heron")]
    );
    assert_eq!(vector.take(&[0, 2]).validity, None);
    taken.append(&vector);
    assert_eq!(taken.len(), 7);
    assert_eq!(taken.null_count(), 2);
    assert_eq!(taken.datum(6), Datum::text("phoenix"));
    let mut plain = Vector::new(&DataType::Text, 0);
    plain.push_text("a");
    plain.append(&vector);
    assert!(plain.is_null(2) && !plain.is_null(0));
}

#[test]
fn batch_round_trips_rows() {
    let rows = vec![
        vec![Datum::Int4(1), Datum::text("a"), Datum::Null],
        vec![Datum::Null, Datum::text("b"), Datum::Numeric(Numeric::from(7))],
    ];
    let types = [DataType::Int4, DataType::Varchar, DataType::Numeric];
    let batch = Batch::from_rows(&types, &rows);
    assert_eq!(batch.row(0), rows[0]);
    assert_eq!(batch.take(&[1]).row(0), rows[1]);
}

#[test]
fn comparison_puts_null_last() {
    let vector = sample();
    assert_eq!(vector.compare(1, &vector, 3), Ordering::Greater);
    assert_eq!(vector.compare(1, &vector, 1), Ordering::Equal);
    assert_eq!(vector.compare(0, &vector, 3), Ordering::Less);
}

#[test]
#[should_panic(expected = "push_i32 on a vector of text")]
fn push_of_wrong_type_panics() {
    sample().push_i32(1);
}

#[test]
fn concatenated_texts_are_appended_or_rejected() {
    let mut texts = BytesVector::default();
    texts.push(b"a");
    assert!(texts.append_texts("b\u{e9}c", &[1, 3, 3, 4]));
    let all: Vec<&[u8]> = texts.iter().collect();
    assert_eq!(all, [b"a", b"b", "\u{e9}".as_bytes(), b"", b"c"]);
    for ends in [[2, 3], [3, 1], [3, 5]] {
        assert!(!texts.append_texts("b\u{e9}c", &ends), "{ends:?}");
        assert_eq!(texts.len(), 5);
    }
    texts.push(b"d");
    assert_eq!(texts.get(5), b"d");
}
