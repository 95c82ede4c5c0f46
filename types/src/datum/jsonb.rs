//! A `jsonb` in its stored form, as a tree, or both.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use smallvec::SmallVec;

use super::json::Json;
use super::stored_json::{self, StoredJson};
use crate::error::Result;

/// A `jsonb`. Cheap to clone.
///
/// Values of rows are searched in their stored form ([`Jsonb::stored`]); the tree is built at the
/// first use by a function that needs it.
#[derive(Clone)]
pub struct Jsonb(Arc<Forms>);

/// The stored form; short values are inline.
type Bytes = SmallVec<[u8; 64]>;

/// At least one of both forms is present.
struct Forms {
    stored: Option<Bytes>,
    tree: OnceLock<Json>,
}

impl Jsonb {
    /// Returns the value of a stored form.
    ///
    /// # Errors
    ///
    /// `XX001` if the bytes are malformed.
    pub(crate) fn of_stored(bytes: &[u8]) -> Result<Jsonb> {
        stored_json::check(bytes)?;
        Ok(Jsonb::of_checked(bytes))
    }

    fn of_checked(bytes: &[u8]) -> Jsonb {
        Jsonb(Arc::new(Forms { stored: Some(Bytes::from_slice(bytes)), tree: OnceLock::new() }))
    }

    /// Returns the stored form, if it is present.
    pub(crate) fn stored(&self) -> Option<StoredJson<'_>> {
        self.0.stored.as_deref().map(StoredJson::of_checked)
    }

    /// Returns the tree, without a copy if it is present and not shared.
    pub fn into_json(self) -> Json {
        match Arc::try_unwrap(self.0) {
            Ok(Forms { stored, tree }) => tree.into_inner().unwrap_or_else(|| {
                StoredJson::of_checked(&stored.expect("a value has one form at least")).tree()
            }),
            Err(shared) => Jsonb(shared).deref().clone(),
        }
    }

    /// Returns the approximate bytes held.
    pub(crate) fn heap_bytes(&self) -> usize {
        let spilled = self.0.stored.as_ref().filter(|bytes| bytes.spilled());
        let stored = spilled.map_or(0, SmallVec::capacity);
        stored + self.0.tree.get().map_or(0, Json::heap_bytes) + size_of::<Forms>()
    }
}

impl From<StoredJson<'_>> for Jsonb {
    fn from(stored: StoredJson<'_>) -> Jsonb {
        debug_assert!(stored_json::check(stored.bytes()).is_ok(), "a part is a whole value");
        Jsonb::of_checked(stored.bytes())
    }
}

impl From<Json> for Jsonb {
    fn from(json: Json) -> Jsonb {
        Jsonb(Arc::new(Forms { stored: None, tree: json.into() }))
    }
}

impl Deref for Jsonb {
    type Target = Json;

    fn deref(&self) -> &Json {
        let Forms { stored, tree } = &*self.0;
        tree.get_or_init(|| {
            let stored = stored.as_deref().expect("a value has one form at least");
            StoredJson::of_checked(stored).tree()
        })
    }
}

impl PartialEq for Jsonb {
    fn eq(&self, other: &Jsonb) -> bool {
        **self == **other
    }
}

impl fmt::Debug for Jsonb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
