//! Bit sets of positions in a text.

/// A set of numbers up to a bound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CharacterBits(Vec<u64>);

impl CharacterBits {
    /// Creates an empty set of positions in a text of `length` characters.
    pub(super) fn new(length: usize) -> CharacterBits {
        CharacterBits(vec![0; length / 64 + 1])
    }

    pub(super) fn set(&mut self, at: usize) {
        self.0[at / 64] |= 1 << (at % 64);
    }

    pub(super) fn has(&self, at: usize) -> bool {
        self.0[at / 64] & 1 << (at % 64) != 0
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    /// Adds another set and returns its members that were new.
    pub(super) fn absorb(&mut self, other: &CharacterBits) -> CharacterBits {
        debug_assert_eq!(self.0.len(), other.0.len(), "sets of one text");
        let words = self.0.iter_mut().zip(&other.0);
        CharacterBits(
            words
                .map(|(word, other)| {
                    let new = other & !*word;
                    *word |= new;
                    new
                })
                .collect(),
        )
    }

    /// Returns the cost of iterating over the set.
    pub(super) fn cost(&self) -> usize {
        self.0.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.0.iter().enumerate().flat_map(|(index, word)| {
            let mut word = *word;
            std::iter::from_fn(move || {
                let bit = (word != 0).then(|| word.trailing_zeros() as usize)?;
                word &= word - 1;
                Some(index * 64 + bit)
            })
        })
    }

    /// Returns the largest member up to a bound.
    pub(super) fn last_within(&self, bound: usize) -> Option<usize> {
        (0..=bound / 64).rev().find_map(|index| {
            let mut word = self.0[index];
            if index == bound / 64 {
                word &= u64::MAX >> (63 - bound % 64);
            }
            (word != 0).then(|| index * 64 + 63 - word.leading_zeros() as usize)
        })
    }

    /// Returns the smallest member from a bound on.
    pub(super) fn first_from(&self, bound: usize) -> Option<usize> {
        (bound / 64..self.0.len()).find_map(|index| {
            let mut word = self.0[index];
            if index == bound / 64 {
                word &= u64::MAX << (bound % 64);
            }
            (word != 0).then(|| index * 64 + word.trailing_zeros() as usize)
        })
    }
}
