//! The channel of a connection, lent to the statement that runs: what it raises is sent at once.
//!
//! A statement runs in the thread of its connection, which sends nothing meanwhile. So the channel
//! is put where the session's sink of notices finds it, and taken back when the statement ends.
//! Nobody waits for a client that does not read: what its socket does not take stays in the output,
//! and past [`OUTPUT_BYTES`] in the session.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use parking_lot::Mutex;
use sql::session::NoticeSink;

use crate::pgwire::channel::{Channel, OUTPUT_BYTES};

/// See the module.
pub(super) struct LentChannel {
    /// It is here but while a statement runs.
    channel: Option<Channel>,
    lent: Arc<Mutex<Option<Channel>>>,
}

impl LentChannel {
    /// Returns a channel that is here.
    pub(super) fn new(channel: Channel) -> LentChannel {
        LentChannel { channel: Some(channel), lent: Arc::default() }
    }

    /// Returns what sends notices while the channel is lent.
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

    /// Lends the channel while `work` is done.
    pub(super) fn lend<T>(&mut self, work: impl FnOnce() -> T) -> T {
        *self.lent.lock() = self.channel.take();
        let done = work();
        self.channel = self.lent.lock().take();
        done
    }

    /// Returns the channel.
    pub(super) fn into_channel(self) -> Channel {
        self.channel.expect("it was given back")
    }
}

impl Deref for LentChannel {
    type Target = Channel;

    fn deref(&self) -> &Channel {
        self.channel.as_ref().expect("it is used between statements")
    }
}

impl DerefMut for LentChannel {
    fn deref_mut(&mut self) -> &mut Channel {
        self.channel.as_mut().expect("it is used between statements")
    }
}
