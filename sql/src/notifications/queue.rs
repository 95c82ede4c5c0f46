//! The queue of notifications of a database, and the positions of its listeners.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use store::memory::{self, AccountId};
use store::wal::DurableTicket;

use crate::error::{Error, Result};
use crate::notifications::{Notification, PendingAction};

/// Callback for the arrival of a notification for a session.
pub(crate) type Wake = Arc<dyn Fn() + Send + Sync>;

/// Divisor of the memory limit of the process: the bytes that a queue may hold.
const MEMORY_PART: usize = 16;
/// Bytes that a queue may hold if the process has no memory limit.
const BYTES_MAX: usize = 64 << 20;
/// Bytes of an entry besides its texts.
const ENTRY_BYTES: usize = 128;

/// The notifications of a database that some listener has not taken yet.
#[derive(Default)]
pub(crate) struct NotificationQueue {
    /// Held from before a commit with notifications until they are in the queue.
    committing: Mutex<()>,
    state: Mutex<QueueState>,
}

#[derive(Default)]
struct QueueState {
    /// Number of the first entry.
    first: u64,
    entries: VecDeque<QueueEntry>,
    /// Bytes of the entries.
    bytes: usize,
    /// The sessions that listen or have set a wake function, by number.
    listeners: BTreeMap<i32, Listener>,
}

struct QueueEntry {
    notification: Arc<Notification>,
    /// The durability of its commit; `None` if it is durable.
    durable: Option<DurableTicket>,
}

#[derive(Default)]
struct Listener {
    channels: BTreeSet<Arc<str>>,
    /// Number of the first entry that it has not passed.
    next: u64,
    wake: Option<Wake>,
}

/// A commit with notifications or changes of channels.
pub(crate) struct Publication<'a> {
    queue: &'a NotificationQueue,
    session: i32,
    actions: Vec<PendingAction>,
    _committing: MutexGuard<'a, ()>,
}

impl QueueEntry {
    fn byte_count(notification: &Notification) -> usize {
        ENTRY_BYTES + notification.channel.len() + notification.payload.len()
    }
}

impl Listener {
    fn is_listening(&self) -> bool {
        !self.channels.is_empty()
    }

    fn wants(&self, notification: &Notification) -> bool {
        self.channels.contains(&notification.channel)
    }
}

impl QueueState {
    fn end(&self) -> u64 {
        self.first + self.entries.len() as u64
    }

    /// Returns the sessions that listen, by number.
    fn listening(&self) -> impl Iterator<Item = (&i32, &Listener)> {
        self.listeners.iter().filter(|(_, one)| one.is_listening())
    }

    /// Takes the notifications of a session up to the first whose commit is not durable. Returns
    /// the ticket of that one.
    fn take_durable(
        &mut self,
        session: i32,
        (until, bytes_max): (u64, usize),
        taken: &mut Vec<Arc<Notification>>,
    ) -> Option<DurableTicket> {
        let listener = self.listeners.get_mut(&session).filter(|one| one.is_listening())?;
        let mut bytes: usize = taken.iter().map(|one| QueueEntry::byte_count(one)).sum();
        let mut awaited = None;
        while bytes < bytes_max && listener.next < until {
            let at = usize::try_from(listener.next - self.first).unwrap_or(usize::MAX);
            let Some(entry) = self.entries.get(at) else { break };
            awaited = entry.durable.clone().filter(|ticket| !ticket.is_ready());
            if awaited.is_some() {
                break;
            }
            if listener.wants(&entry.notification) {
                bytes += QueueEntry::byte_count(&entry.notification);
                taken.push(Arc::clone(&entry.notification));
            }
            listener.next += 1;
        }
        self.trim();
        awaited
    }

    /// Removes the entries that every listener has passed.
    fn trim(&mut self) {
        let least = self.listening().map(|(_, one)| one.next).min().unwrap_or(u64::MAX);
        while self.first < least
            && let Some(entry) = self.entries.pop_front()
        {
            self.first += 1;
            self.bytes -= QueueEntry::byte_count(&entry.notification);
        }
        self.check();
    }

    /// Checks the invariants of the positions and of the byte count, in debug builds.
    fn check(&self) {
        if !cfg!(debug_assertions) {
            return;
        }
        let (first, end) = (self.first, self.end());
        let is_within = |(_, one): (_, &Listener)| (first..=end).contains(&one.next);
        assert!(self.listening().all(is_within), "a listener is outside of the queue");
        let has_listener = self.listening().next().is_some();
        assert!(has_listener || self.entries.is_empty(), "entries without a listener");
    }

    fn unlisten(&mut self, session: i32, channel: Option<&Arc<str>>) {
        if let Some(listener) = self.listeners.get_mut(&session) {
            match channel {
                Some(channel) => drop(listener.channels.remove(channel)),
                None => listener.channels.clear(),
            }
        }
        self.trim();
    }
}

impl NotificationQueue {
    /// Starts a commit.
    ///
    /// # Errors
    ///
    /// 54000 if its notifications do not fit.
    pub(super) fn begin_commit(
        &self,
        session: i32,
        actions: Vec<PendingAction>,
    ) -> Result<Publication<'_>> {
        let committing = self.committing.lock();
        let bytes: usize = actions.iter().map(PendingAction::byte_count).sum();
        let state = self.state.lock();
        let (used, max) = (state.bytes, bytes_max());
        let slowest = state.listening().min_by_key(|(_, one)| one.next).map(|(id, _)| *id);
        if let Some(slowest) = slowest.filter(|_| used + bytes > max) {
            bail!(PROGRAM_LIMIT_EXCEEDED: "too many notifications in the NOTIFY queue";
                detail "The queue has {used} of {max} bytes, and the transaction {bytes}.";
                hint "End session {slowest}, the slowest listener, or its transaction.");
        }
        drop(state);
        Ok(Publication { queue: self, session, actions, _committing: committing })
    }

    /// Sets what is called when a notification for a session arrives.
    pub(super) fn set_wake(&self, session: i32, wake: Wake) {
        self.state.lock().listeners.entry(session).or_default().wake = Some(wake);
    }

    /// Returns the channels of a session, by name.
    pub(super) fn channels_of(&self, session: i32) -> Vec<Arc<str>> {
        let state = self.state.lock();
        let channels = state.listeners.get(&session).map(|one| &one.channels);
        channels.into_iter().flatten().cloned().collect()
    }

    /// Returns the number behind the last entry.
    pub(super) fn end_number(&self) -> u64 {
        self.state.lock().end()
    }

    /// Takes the next notifications of a session before the entry `until`, up to about `bytes_max`
    /// bytes, in the order of the commits. Waits until the commits are durable, or `ended` returns
    /// `true`; one whose log write failed remains.
    pub(super) fn take(
        &self,
        session: i32,
        (until, bytes_max): (u64, usize),
        ended: &dyn Fn() -> bool,
    ) -> Vec<Arc<Notification>> {
        let mut taken = Vec::new();
        loop {
            let awaited = self.state.lock().take_durable(session, (until, bytes_max), &mut taken);
            let is_durable = awaited.is_some_and(|ticket| ticket.wait_unless(ended).is_ok());
            if !is_durable {
                return taken;
            }
        }
    }

    /// Returns the share of the limit that is in use, from 0 to 1.
    pub(super) fn usage(&self) -> f64 {
        self.state.lock().bytes as f64 / bytes_max() as f64
    }

    /// Lets a session listen no more.
    pub(super) fn unlisten_all(&self, session: i32) {
        self.state.lock().unlisten(session, None);
    }

    /// Removes a session.
    pub(super) fn end(&self, session: i32) {
        let mut state = self.state.lock();
        state.listeners.remove(&session);
        state.trim();
    }
}

/// Returns the bytes that a queue may hold.
fn bytes_max() -> usize {
    memory::limit().map_or(BYTES_MAX, |limit| limit / MEMORY_PART)
}

impl PendingAction {
    /// Returns the bytes of the entry that it becomes.
    fn byte_count(&self) -> usize {
        match self {
            PendingAction::Notify(notification) => QueueEntry::byte_count(notification),
            PendingAction::Listen(_) | PendingAction::Unlisten(_) => 0,
        }
    }
}

impl Publication<'_> {
    /// Applies the actions after the commit, with the durability of the commit. Returns whether the
    /// session listens.
    pub(super) fn publish(self, durable: Option<&DurableTicket>) -> bool {
        let _account = AccountId::SERVER.enter();
        let (mut sent, mut wanted, mut woken) = (Vec::new(), Vec::new(), Vec::new());
        let mut state = self.queue.state.lock();
        let before = state.end();
        for action in self.actions {
            match action {
                PendingAction::Listen(channel) => {
                    let listener = state.listeners.entry(self.session).or_default();
                    if !listener.is_listening() {
                        listener.next = before;
                    }
                    listener.channels.insert(Arc::from(&*channel));
                }
                PendingAction::Unlisten(channel) => {
                    state.unlisten(self.session, channel.as_ref());
                }
                PendingAction::Notify(notification) => sent.push(notification),
            }
        }
        // Copies, which are charged to the server, of those that a session wants.
        for one in sent.iter().filter(|one| state.listening().any(|(_, by)| by.wants(one))) {
            let (channel, payload) = (Arc::from(&*one.channel), Arc::from(&*one.payload));
            let notification = Arc::new(Notification { channel, payload, sender: one.sender });
            wanted.push(QueueEntry { notification, durable: durable.cloned() });
        }
        state.bytes +=
            wanted.iter().map(|one| QueueEntry::byte_count(&one.notification)).sum::<usize>();
        let is_wanted =
            |listener: &Listener| wanted.iter().any(|entry| listener.wants(&entry.notification));
        let end = before + wanted.len() as u64;
        for listener in state.listeners.values_mut().filter(|one| one.is_listening()) {
            match is_wanted(listener) {
                true => woken.extend(listener.wake.clone()),
                // It has nothing to take.
                false if listener.next == before => listener.next = end,
                false => {}
            }
        }
        state.entries.extend(wanted);
        let listens = state.listeners.get(&self.session).is_some_and(Listener::is_listening);
        state.trim();
        drop(state);
        woken.iter().for_each(|wake| wake());
        listens
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notifications::SessionNotifications;

    fn commit(session: &SessionNotifications) {
        if let Some(publication) = session.begin_commit().unwrap() {
            session.publish(publication, None);
        }
    }

    fn payloads(session: &SessionNotifications) -> Vec<String> {
        let taken = session.take((u64::MAX, 1 << 20), &|| false);
        taken.iter().map(|one| one.payload.to_string()).collect()
    }

    #[test]
    fn notifications_reach_listeners_in_order_of_commits() {
        let queue = Arc::<NotificationQueue>::default();
        let [a, b, c] = [1, 2, 3].map(|session| SessionNotifications::new(&queue, session));
        a.listen("x");
        assert!(!a.is_listening());
        commit(&a);
        b.listen("y");
        commit(&b);
        c.notify("x", "1").unwrap();
        c.notify("x", "1").unwrap();
        let mark = c.action_count();
        c.notify("y", "2").unwrap();
        c.discard_after(mark);
        c.notify("x", "3").unwrap();
        assert!(payloads(&a).is_empty());
        commit(&c);
        b.notify("y", "own").unwrap();
        commit(&b);
        assert_eq!(payloads(&a), ["1", "3"]);
        assert_eq!(payloads(&b), ["own"]);
        assert_eq!(queue.usage(), 0.0);
        c.notify("x", "gone").unwrap();
        commit(&c);
        a.end();
        assert_eq!(queue.usage(), 0.0);
    }

    #[test]
    fn full_queue_refuses_commits() {
        let queue = Arc::<NotificationQueue>::default();
        let [a, b] = [1, 2].map(|session| SessionNotifications::new(&queue, session));
        a.listen("x");
        commit(&a);
        let payload = "p".repeat(7_000);
        let error = (0..1_000_000).find_map(|number| {
            b.notify("x", &format!("{payload}{number}")).unwrap();
            match b.begin_commit() {
                Ok(publication) => {
                    publication.into_iter().for_each(|one| b.publish(one, None));
                    None
                }
                Err(error) => Some(error),
            }
        });
        assert_eq!(error.unwrap().sqlstate, "54000");
        assert_eq!(b.action_count(), 0);
        // What is added later is left for the next call.
        let end = a.end_number();
        assert!(!a.take((end, 1 << 20), &|| false).is_empty());
        b.notify("x", "fits").unwrap();
        commit(&b);
        while !a.take((end, 1 << 20), &|| false).is_empty() {}
        assert_eq!(payloads(&a), ["fits"]);
        assert_eq!(queue.usage(), 0.0);
        // A transaction larger than the queue does not fit either, unless no session listens.
        let send_all = || {
            (0..10_000).for_each(|number| b.notify("x", &format!("{payload}{number}")).unwrap());
            b.begin_commit()
                .map(|publication| publication.into_iter().for_each(|one| b.publish(one, None)))
        };
        assert_eq!(send_all().unwrap_err().sqlstate, "54000");
        a.end();
        send_all().unwrap();
        assert_eq!(queue.usage(), 0.0);
    }
}
