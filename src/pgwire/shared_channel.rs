//! Shared channel: lets a running statement send notices at once.
//!
//! A statement runs on the thread of its connection, which sends nothing in the meantime. So the
//! channel is moved to the session's notice sink while the statement runs, and moved back
//! afterwards. Notices never block on a client that does not read: bytes that the socket does not
//! accept stay in the output, and beyond [`OUTPUT_BYTES`] in the session.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use parking_lot::Mutex;
use sql::session::NoticeSink;

use crate::pgwire::channel::{Channel, OUTPUT_BYTES};

/// The channel of a connection, which is accessible to the notice sink while a statement runs.
pub(super) struct SharedChannel {
    /// The channel, except while a statement runs.
    channel: Option<Channel>,
    lent: Arc<Mutex<Option<Channel>>>,
}

impl SharedChannel {
    /// Creates it with a channel.
    pub(super) fn new(channel: Channel) -> SharedChannel {
        SharedChannel { channel: Some(channel), lent: Arc::default() }
    }

    /// Returns the sink that sends notices while a statement runs.
    pub(super) fn sink(&self) -> NoticeSink {
        let lent = Arc::clone(&self.lent);
        Arc::new(move |notices| {
            let mut lent = lent.lock();
            let Some(channel) = lent.as_mut() else { return false };
            if channel.output().bytes.len() > OUTPUT_BYTES {
                channel.send_some();
            }
            if channel.output().bytes.len() > OUTPUT_BYTES {
                return false;
            }
            notices.iter().for_each(|notice| channel.output().put_notice(notice));
            channel.send_some();
            true
        })
    }

    /// Lends the channel to the sink while `work` runs.
    pub(super) fn lend<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let lent = self.lent.lock().replace(self.channel.take().expect("it is not lent already"));
        debug_assert!(lent.is_none(), "a channel was not given back");
        let done = work();
        self.channel = self.lent.lock().take();
        debug_assert!(self.channel.is_some(), "the sink took the channel");
        done
    }

    /// Returns the channel.
    pub(super) fn into_channel(self) -> Channel {
        self.channel.expect("it was given back")
    }
}

impl Deref for SharedChannel {
    type Target = Channel;

    fn deref(&self) -> &Channel {
        self.channel.as_ref().expect("it is used between statements")
    }
}

impl DerefMut for SharedChannel {
    fn deref_mut(&mut self) -> &mut Channel {
        self.channel.as_mut().expect("it is used between statements")
    }
}
