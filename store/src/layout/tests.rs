//! Tests of layouts: every divided value is assembled again; and a small layout for other tests.

use proptest::prelude::*;

use super::*;

/// A layout of three shapes that share sections.
pub(crate) fn small() -> ValueLayout {
    use SectionKind::{Fixed, Variable};
    let shape =
        |prefix: &[u8], pieces: Vec<ValuePiece>| ValueShape { prefix: prefix.to_vec(), pieces };
    let variable =
        |ends, sections: &[u16]| ValuePiece::Variable { ends, sections: sections.to_vec() };
    ValueLayout {
        sections: vec![Fixed(4), Variable, Fixed(1), Variable, Variable],
        shapes: vec![
            shape(
                &[7, 1],
                vec![ValuePiece::Fixed(0), variable(EndWidth::Two, &[1, 3]), ValuePiece::Rest(4)],
            ),
            shape(
                &[7, 2],
                vec![ValuePiece::Fixed(2), ValuePiece::Fixed(0), variable(EndWidth::Four, &[3])],
            ),
            shape(&[], vec![ValuePiece::Fixed(2)]),
        ],
    }
}

/// Values that match the shapes of [`small`], that nearly do, and that do not.
pub(crate) fn any_value() -> impl Strategy<Value = Vec<u8>> {
    let bytes = || prop::collection::vec(any::<u8>(), 0..12);
    let first =
        (any::<[u8; 4]>(), bytes(), bytes(), bytes()).prop_map(|(fixed, one, two, rest)| {
            let ends = [one.len() as u8, 0, (one.len() + two.len()) as u8, 0];
            [&[7, 1], &fixed[..], &ends, &one, &two, &rest].concat()
        });
    let second = (any::<[u8; 5]>(), bytes()).prop_map(|(fixed, only)| {
        [&[7, 2], &fixed[..], &[only.len() as u8, 0, 0, 0], &only].concat()
    });
    let nearly = (any::<[u8; 5]>(), bytes())
        .prop_map(|(fixed, bytes)| [&[7, 1], &fixed[..], &bytes].concat());
    prop_oneof![
        4 => first,
        2 => second,
        1 => any::<u8>().prop_map(|byte| vec![byte]),
        1 => nearly,
        1 => prop::collection::vec(any::<u8>(), 0..40),
    ]
}

fn encoded(layout: &ValueLayout) -> Vec<u8> {
    let mut bytes = Vec::new();
    layout.encode(&mut bytes);
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

    #[test]
    fn value_sections_round_trip(value in any_value()) {
        let layout = small();
        let mut parts = vec![0..0; layout.sections.len()];
        if let Some(shape) = layout.cut(&value, &mut parts) {
            let bytes = encoded(&layout);
            let mut joined = Vec::new();
            let section = |section: usize, _width: usize| value.get(parts[section].clone());
            let read = ReadLayout::decode(&bytes).unwrap();
            prop_assert_eq!(read.join(shape, section, &mut joined), Some(()));
            prop_assert_eq!(joined, value);
        }
    }

    #[test]
    fn truncated_layout_is_rejected(at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let layout = small();
        let mut bytes = encoded(&layout);
        let at = at.index(bytes.len());
        bytes[at] = byte;
        for layout in [ReadLayout::decode(&bytes), ReadLayout::decode(&bytes[..at])] {
            for shape in 0..4 {
                let mut joined = Vec::new();
                let _ = layout.as_ref().map(|layout| layout.join(shape, |_, _| Some(b"x"), &mut joined));
            }
        }
        prop_assert!(ReadLayout::decode(&encoded(&layout)[..at]).is_none());
    }
}

#[test]
fn value_uses_first_matching_shape() {
    let layout = small();
    let mut parts = vec![0..0; layout.sections.len()];
    let whole = [&[7, 1, 9, 9, 9, 9, 1, 0, 3, 0], &b"abcde"[..]].concat();
    assert_eq!(layout.cut(&whole, &mut parts), Some(0));
    assert_eq!((parts[0].clone(), parts[1].clone(), parts[3].clone()), (2..6, 10..11, 11..13));
    assert_eq!(parts[4], 13..15);
    // The second end is beyond the value, then before the first one.
    assert_eq!(layout.cut(&whole[..12], &mut parts), None);
    let mut turned = whole.clone();
    (turned[6], turned[8]) = (3, 1);
    assert_eq!(layout.cut(&turned, &mut parts), None);
    assert_eq!(layout.cut(&[7], &mut parts), Some(2));
    assert_eq!(layout.cut(&[], &mut parts), None);
    assert_eq!(layout.cut(&[7, 3], &mut parts), None);
}

#[test]
fn invalid_layouts_are_rejected() {
    let with = |change: fn(&mut ValueLayout)| {
        let mut layout = small();
        change(&mut layout);
        layout.check().unwrap_err()
    };
    assert_eq!(small().check(), Ok(()));
    assert_eq!(
        with(|layout| layout.shapes[0].pieces.push(ValuePiece::Fixed(2))),
        "a section follows the remainder section of a value"
    );
    assert_eq!(
        with(|layout| layout.shapes[1].pieces.push(ValuePiece::Fixed(2))),
        "section 2 occurs twice in a shape"
    );
    assert_eq!(
        with(|layout| layout.shapes[1].pieces.push(ValuePiece::Fixed(1))),
        "section 1 is of another kind"
    );
    assert_eq!(
        with(|layout| layout.shapes[1].pieces.push(ValuePiece::Rest(5))),
        "section 5 does not exist"
    );
    assert_eq!(
        with(|layout| layout.sections[0] = SectionKind::Fixed(0)),
        "a section is not from 1 to 4096 bytes wide"
    );
    assert_eq!(
        with(|layout| layout.shapes.resize(256, ValueShape::default())),
        "the layout of values has too many sections or shapes"
    );
    assert_eq!(
        with(|layout| layout.shapes[0].prefix = vec![0; 4097]),
        "a prefix is longer than 4096 bytes"
    );
}
