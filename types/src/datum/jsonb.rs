//! A `jsonb`: as a tree, or as it is stored until somebody wants the tree.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use smallvec::SmallVec;

use super::json::Json;
use super::stored_json::{self, Stored};
use crate::error::Result;

/// A `jsonb`. Cheap to clone.
///
/// What a row holds is looked into as it lies there ([`Jsonb::stored`]); all that knows of trees
/// only gets one, made at the first use.
#[derive(Clone)]
pub struct Jsonb(Arc<Forms>);

/// Of the stored form, what is short lies here.
type Bytes = SmallVec<[u8; 64]>;

/// One of both is there at least.
struct Forms {
    stored: Option<Bytes>,
    tree: OnceLock<Json>,
}

impl Jsonb {
    /// Returns the value of its stored form.
    ///
    /// # Errors
    ///
    /// `XX001` if the bytes are no value.
    pub(crate) fn of_stored(bytes: &[u8]) -> Result<Jsonb> {
        stored_json::check(bytes)?;
        Ok(Jsonb::of_checked(bytes))
    }

    fn of_checked(bytes: &[u8]) -> Jsonb {
        Jsonb(Arc::new(Forms { stored: Some(Bytes::from_slice(bytes)), tree: OnceLock::new() }))
    }

    /// Returns the stored form if there is one.
    pub(crate) fn stored(&self) -> Option<Stored<'_>> {
        self.0.stored.as_deref().map(Stored::of_checked)
    }

    /// Returns the value, its tree at hand if nobody else holds it.
    pub fn into_json(self) -> Json {
        match Arc::try_unwrap(self.0) {
            Ok(Forms { stored, tree }) => tree.into_inner().unwrap_or_else(|| {
                Stored::of_checked(&stored.expect("a value has one form at least")).tree()
            }),
            Err(shared) => Jsonb(shared).deref().clone(),
        }
    }

    /// Returns the bytes held, about.
    pub(crate) fn heap_bytes(&self) -> usize {
        let spilled = self.0.stored.as_ref().filter(|bytes| bytes.spilled());
        let stored = spilled.map_or(0, SmallVec::capacity);
        stored + self.0.tree.get().map_or(0, Json::heap_bytes) + size_of::<Forms>()
    }
}

impl From<Stored<'_>> for Jsonb {
    fn from(stored: Stored<'_>) -> Jsonb {
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
            Stored::of_checked(stored).tree()
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
