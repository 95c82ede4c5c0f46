//! Reference-counted text and bytes, as in [`Datum`](crate::Datum)s.

use std::borrow::{Borrow, Cow};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc;

use crate::pieces::PIECE;

/// A shared text.
pub type Text = Shared<str>;

/// Shared bytes.
pub type Bytes = Shared<[u8]>;

/// Shared text or bytes. Cheap to clone.
///
/// Most values are stored next to their reference count, with one indirection. Long values remain
/// in their original buffer: copying a gigabyte would take a second without an interrupt check
/// ([`pieces`](crate::pieces)).
pub enum Shared<B: ?Sized + ToOwned> {
    /// Stored next to the reference count.
    Beside(Arc<B>),
    /// Stored in a separate buffer.
    Apart(Arc<B::Owned>),
}

const _: () = assert!(size_of::<Text>() == 16);

impl<B: ?Sized + ToOwned> Clone for Shared<B> {
    fn clone(&self) -> Self {
        match self {
            Shared::Beside(value) => Shared::Beside(Arc::clone(value)),
            Shared::Apart(value) => Shared::Apart(Arc::clone(value)),
        }
    }
}

impl<B: ?Sized + ToOwned> Deref for Shared<B> {
    type Target = B;

    #[inline]
    fn deref(&self) -> &B {
        match self {
            Shared::Beside(value) => value,
            Shared::Apart(value) => value.as_ref().borrow(),
        }
    }
}

impl<B: ?Sized + ToOwned + PartialEq> PartialEq for Shared<B> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<B: ?Sized + ToOwned + Eq> Eq for Shared<B> {}

impl<B: ?Sized + ToOwned + Hash> Hash for Shared<B> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}

impl<B: ?Sized + ToOwned + fmt::Debug> fmt::Debug for Shared<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<B: ?Sized + ToOwned + fmt::Display> fmt::Display for Shared<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<'a, B: ?Sized + ToOwned> From<&'a B> for Shared<B>
where
    Arc<B>: From<&'a B>,
{
    fn from(value: &'a B) -> Self {
        Shared::Beside(value.into())
    }
}

impl<B: ?Sized + ToOwned> From<Arc<B>> for Shared<B> {
    fn from(value: Arc<B>) -> Self {
        Shared::Beside(value)
    }
}

impl From<String> for Text {
    fn from(value: String) -> Text {
        match value.len() {
            0..PIECE => Shared::Beside(value.into()),
            _ => Shared::Apart(Arc::new(value)),
        }
    }
}

impl From<Cow<'_, str>> for Text {
    fn from(value: Cow<'_, str>) -> Text {
        match value {
            Cow::Borrowed(value) => value.into(),
            Cow::Owned(value) => value.into(),
        }
    }
}

impl<const N: usize> From<[u8; N]> for Bytes {
    fn from(value: [u8; N]) -> Bytes {
        Shared::Beside(value.into())
    }
}

impl From<Vec<u8>> for Bytes {
    fn from(value: Vec<u8>) -> Bytes {
        match value.len() {
            0..PIECE => Shared::Beside(value.into()),
            _ => Shared::Apart(Arc::new(value)),
        }
    }
}

impl From<Text> for Arc<str> {
    fn from(value: Text) -> Arc<str> {
        match value {
            Shared::Beside(value) => value,
            Shared::Apart(value) => value.as_str().into(),
        }
    }
}
