//! LISTEN and NOTIFY: notifications from a transaction to the sessions of its database.
//!
//! ```text
//!   NOTIFY --> SessionNotifications (pending) -- commit --> NotificationQueue --> listeners
//! ```
//!
//! A session collects what its transaction asks for; the commit appends it to the queue of the
//! database, and wakes the sessions that listen on a channel of it. A session takes notifications
//! while no transaction is open.
//!
//! Source: PostgreSQL's async.c. The queue is in memory: no listener survives a restart.
//!
//! # Invariants
//!
//! 1. The order of the queue is that of the commits: [`Publication`] holds the queue's commit lock
//!    from before the commit until its notifications are appended.
//! 2. A notification is taken only after its commit is durable ([`NotificationQueue::take`]).
//! 3. The queue holds no entry that every listener has passed (`QueueState::check`).

mod queue;

pub(crate) use queue::{NotificationQueue, Publication, Wake};

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ahash::AHashSet;
use parking_lot::Mutex;
use store::wal::DurableTicket;

use crate::error::{Error, Result};

/// Maximum length of the name of a channel, in bytes.
const CHANNEL_BYTES_MAX: usize = 63;
/// Maximum length of a payload, in bytes.
const PAYLOAD_BYTES_MAX: usize = 7_999;

/// A notification.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Notification {
    /// The channel.
    pub channel: Arc<str>,
    /// The text that was sent with it; may be empty.
    pub payload: Arc<str>,
    /// Number of the session that sent it.
    pub sender: i32,
}

/// Action of a statement, which takes effect at the commit.
#[derive(Debug, Clone, PartialEq, Eq)]
enum PendingAction {
    /// LISTEN
    Listen(Arc<str>),
    /// UNLISTEN; `None` for `*`.
    Unlisten(Option<Arc<str>>),
    /// NOTIFY
    Notify(Notification),
}

/// The notifications of a session: those of its transaction, and its place in the queue.
pub struct SessionNotifications {
    queue: Arc<NotificationQueue>,
    session: i32,
    /// A copy of what the queue knows, for the check before each message of the client.
    is_listening: AtomicBool,
    pending: Mutex<PendingActions>,
}

/// The actions of a transaction, in order.
#[derive(Default)]
struct PendingActions {
    actions: Vec<PendingAction>,
    /// The notifications among them: equal ones of a transaction are sent once.
    sent: AHashSet<Notification>,
}

impl SessionNotifications {
    /// Creates the notifications of a session.
    pub(crate) fn new(queue: &Arc<NotificationQueue>, session: i32) -> SessionNotifications {
        SessionNotifications {
            queue: Arc::clone(queue),
            session,
            is_listening: AtomicBool::new(false),
            pending: Mutex::default(),
        }
    }

    /// NOTIFY
    ///
    /// # Errors
    ///
    /// 22023 for a channel without a name, and for a name or a payload that is too long.
    pub(crate) fn notify(&self, channel: &str, payload: &str) -> Result<()> {
        if channel.is_empty() {
            bail!(INVALID_PARAMETER_VALUE: "channel name cannot be empty");
        }
        if channel.len() > CHANNEL_BYTES_MAX {
            bail!(INVALID_PARAMETER_VALUE: "channel name too long");
        }
        if payload.len() > PAYLOAD_BYTES_MAX {
            bail!(INVALID_PARAMETER_VALUE: "payload string too long");
        }
        let (channel, payload) = (Arc::from(channel), Arc::from(payload));
        let notification = Notification { channel, payload, sender: self.session };
        let mut pending = self.pending.lock();
        if pending.sent.insert(notification.clone()) {
            pending.actions.push(PendingAction::Notify(notification));
        }
        Ok(())
    }

    /// LISTEN
    pub(crate) fn listen(&self, channel: &str) {
        self.pending.lock().actions.push(PendingAction::Listen(Arc::from(channel)));
    }

    /// UNLISTEN; `None` for `*`.
    pub(crate) fn unlisten(&self, channel: Option<&str>) {
        self.pending.lock().actions.push(PendingAction::Unlisten(channel.map(Arc::from)));
    }

    /// Returns the number of actions of the transaction.
    pub(crate) fn action_count(&self) -> usize {
        self.pending.lock().actions.len()
    }

    /// Discards the actions of the transaction after the first `count`.
    pub(crate) fn discard_after(&self, count: usize) {
        let PendingActions { actions, sent } = &mut *self.pending.lock();
        for action in actions.drain(count.min(actions.len())..) {
            if let PendingAction::Notify(notification) = action {
                sent.remove(&notification);
            }
        }
    }

    /// Takes the actions of the transaction for its commit; `None` if there is none. The caller
    /// commits and then calls [`SessionNotifications::publish`].
    ///
    /// # Errors
    ///
    /// 54000 if the queue is full. The actions are discarded.
    pub(crate) fn begin_commit(&self) -> Result<Option<Publication<'_>>> {
        let mut pending = self.pending.lock();
        if pending.actions.is_empty() {
            return Ok(None);
        }
        let PendingActions { actions, .. } = std::mem::take(&mut *pending);
        drop(pending);
        self.queue.begin_commit(self.session, actions).map(Some)
    }

    /// Applies the actions after the commit, with the durability of the commit.
    pub(crate) fn publish(&self, publication: Publication<'_>, durable: Option<&DurableTicket>) {
        self.is_listening.store(publication.publish(durable), Ordering::Relaxed);
    }

    /// Sets what is called when a notification for the session arrives.
    pub(crate) fn set_wake(&self, wake: Wake) {
        self.queue.set_wake(self.session, wake);
    }

    /// Returns whether the session listens; only its own commits change that.
    pub(crate) fn is_listening(&self) -> bool {
        self.is_listening.load(Ordering::Relaxed)
    }

    /// Returns the channels of the session, by name.
    pub(crate) fn channels(&self) -> Vec<Arc<str>> {
        self.queue.channels_of(self.session)
    }

    /// Returns the number behind the last notification of the queue.
    pub(crate) fn end_number(&self) -> u64 {
        self.queue.end_number()
    }

    /// Takes the next notifications of the session before `until`, up to about `bytes_max` bytes,
    /// as soon as they are durable or `ended` returns `true`.
    pub(crate) fn take(
        &self,
        limits: (u64, usize),
        ended: &dyn Fn() -> bool,
    ) -> Vec<Arc<Notification>> {
        self.queue.take(self.session, limits, ended)
    }

    /// Returns the share of the queue's limit that is in use, from 0 to 1.
    pub(crate) fn queue_usage(&self) -> f64 {
        self.queue.usage()
    }

    /// Stops to listen at once.
    pub(crate) fn unlisten_all(&self) {
        self.is_listening.store(false, Ordering::Relaxed);
        self.queue.unlisten_all(self.session);
    }

    /// Ends the session.
    pub(crate) fn end(&self) {
        self.queue.end(self.session);
    }
}
