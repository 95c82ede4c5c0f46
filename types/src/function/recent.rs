//! What was made of texts last: compiled patterns, templates that were read.
//!
//! Nearly always the same few stand in all rows of a statement. Each thread keeps its own.

/// How many are kept.
const KEPT: usize = 32;

/// Longer templates are read each time rather than kept.
pub(super) const LONGEST_TEMPLATE: usize = 1000;

/// What was made last, the last one first, by its text and whatever else it was made with.
pub(super) struct Recent<K, T>(Vec<(String, K, T)>);

impl<K: PartialEq, T> Recent<K, T> {
    /// Returns one that holds nothing.
    pub(super) const fn new() -> Recent<K, T> {
        Recent(Vec::new())
    }

    /// Returns what `make` makes of a text, or has made before.
    ///
    /// # Errors
    ///
    /// Those of `make`; what fails is not kept.
    pub(super) fn get<E>(
        &mut self,
        text: &str,
        key: K,
        make: impl FnOnce(&str) -> Result<T, E>,
    ) -> Result<&T, E> {
        match self.0.iter().position(|entry| entry.1 == key && entry.0 == text) {
            Some(0) => {}
            Some(index) => self.0[..=index].rotate_right(1),
            None => {
                let made = make(text)?;
                self.0.truncate(KEPT - 1);
                self.0.insert(0, (text.to_owned(), key, made));
            }
        }
        Ok(&self.0[0].2)
    }
}
