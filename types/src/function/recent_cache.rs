//! Cache of the results of parsing texts: compiled patterns and templates.
//!
//! The rows of a statement nearly always use the same few texts. Each thread has its own cache.

/// Capacity of the cache.
const KEPT: usize = 32;

/// Longer templates are not cached.
pub(super) const LONGEST_TEMPLATE: usize = 1000;

/// The most recent results, by text and other parameters; the last one is first.
pub(super) struct RecentCache<K, T>(Vec<(String, K, T)>);

impl<K: PartialEq, T> RecentCache<K, T> {
    /// Creates an empty cache.
    pub(super) const fn new() -> RecentCache<K, T> {
        RecentCache(Vec::new())
    }

    /// Returns the cached result of a text, or the result of `make`.
    ///
    /// # Errors
    ///
    /// Those of `make`, which are not cached.
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
