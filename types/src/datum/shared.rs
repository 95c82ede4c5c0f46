//! Reference-counted text and bytes, as in [`Datum`](crate::Datum)s.

use std::borrow::{Borrow, Cow};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc;

use crate::interruptible::CHUNK_BYTES;

/// A shared text.
pub type Text = SharedBuffer<str>;

/// Shared bytes.
pub type Bytes = SharedBuffer<[u8]>;

/// Shared text or bytes. Cheap to clone.
///
/// Most values are stored next to their reference count, with one indirection. Long values remain
/// in their original buffer: copying a gigabyte would take a second without an interrupt check
/// ([`interruptible`](crate::interruptible)).
pub enum SharedBuffer<B: ?Sized + ToOwned> {
    /// Stored next to the reference count.
    Beside(Arc<B>),
    /// Stored in a separate buffer.
    Apart(Arc<B::Owned>),
}

const _: () = assert!(size_of::<Text>() == 16);

impl<B: ?Sized + ToOwned> Clone for SharedBuffer<B> {
    fn clone(&self) -> Self {
        match self {
            SharedBuffer::Beside(value) => SharedBuffer::Beside(Arc::clone(value)),
            SharedBuffer::Apart(value) => SharedBuffer::Apart(Arc::clone(value)),
        }
    }
}

impl<B: ?Sized + ToOwned> Deref for SharedBuffer<B> {
    type Target = B;

    #[inline]
    fn deref(&self) -> &B {
        match self {
            SharedBuffer::Beside(value) => value,
            SharedBuffer::Apart(value) => value.as_ref().borrow(),
        }
    }
}

impl<B: ?Sized + ToOwned + PartialEq> PartialEq for SharedBuffer<B> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<B: ?Sized + ToOwned + Eq> Eq for SharedBuffer<B> {}

impl<B: ?Sized + ToOwned + Hash> Hash for SharedBuffer<B> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}

impl<B: ?Sized + ToOwned + fmt::Debug> fmt::Debug for SharedBuffer<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<B: ?Sized + ToOwned + fmt::Display> fmt::Display for SharedBuffer<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<'a, B: ?Sized + ToOwned> From<&'a B> for SharedBuffer<B>
where
    Arc<B>: From<&'a B>,
{
    fn from(value: &'a B) -> Self {
        SharedBuffer::Beside(value.into())
    }
}

impl<B: ?Sized + ToOwned> From<Arc<B>> for SharedBuffer<B> {
    fn from(value: Arc<B>) -> Self {
        SharedBuffer::Beside(value)
    }
}

impl From<String> for Text {
    fn from(value: String) -> Text {
        match value.len() {
            0..CHUNK_BYTES => SharedBuffer::Beside(value.into()),
            _ => SharedBuffer::Apart(Arc::new(value)),
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
        SharedBuffer::Beside(value.into())
    }
}

impl From<Vec<u8>> for Bytes {
    fn from(value: Vec<u8>) -> Bytes {
        match value.len() {
            0..CHUNK_BYTES => SharedBuffer::Beside(value.into()),
            _ => SharedBuffer::Apart(Arc::new(value)),
        }
    }
}

impl From<Text> for Arc<str> {
    fn from(value: Text) -> Arc<str> {
        match value {
            SharedBuffer::Beside(value) => value,
            SharedBuffer::Apart(value) => value.as_str().into(),
        }
    }
}
