//! Who may cancel what: the sessions that are open, by number, with their secrets. And whose client
//! is gone: a statement that runs does not read from its socket, so somebody else looks.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ahash::AHashMap;
use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{Shutdown, shutdown};
use sql::session::CancelHandle;

/// The open sessions.
#[derive(Default)]
pub(crate) struct CancelRegistry {
    sessions: Mutex<AHashMap<i32, Entry>>,
}

struct Entry {
    secret: i32,
    handle: CancelHandle,
    connection: Arc<Endable>,
}

/// What the system says of a socket whose other end was closed, or sends no more.
#[cfg(target_os = "linux")]
const GONE: PollFlags = PollFlags::RDHUP.union(PollFlags::HUP).union(PollFlags::ERR);
#[cfg(not(target_os = "linux"))]
const GONE: PollFlags = PollFlags::HUP.union(PollFlags::ERR);

/// A client's socket, to ask whether the other end is there, and to wake who waits for it.
pub(crate) struct Endable {
    socket: OwnedFd,
    is_ended: AtomicBool,
}

impl Endable {
    /// Returns a socket that is not to end.
    pub(crate) fn of(socket: OwnedFd) -> Endable {
        Endable { socket, is_ended: AtomicBool::new(false) }
    }

    /// Returns whether the connection is to end: its client is not waited for any more.
    pub(crate) fn is_ended(&self) -> bool {
        self.is_ended.load(Ordering::Relaxed)
    }

    /// Has every read end as if the client had closed the connection, and writes give up that the
    /// client does not take; what it takes still arrives.
    pub(crate) fn end(&self) {
        self.is_ended.store(true, Ordering::Relaxed);
        if let Err(error) = shutdown(&self.socket, Shutdown::Read) {
            tracing::debug!(%error, "a client is gone");
        }
    }
}

/// Keeps a session in the registry until it is dropped.
pub(crate) struct Registration {
    registry: Arc<CancelRegistry>,
    process_id: i32,
    /// What a cancel request must show.
    pub(crate) secret: i32,
    connection: Arc<Endable>,
}

impl Registration {
    /// Returns what ends the connection.
    pub(crate) fn connection(&self) -> Arc<Endable> {
        Arc::clone(&self.connection)
    }
}

impl CancelRegistry {
    /// Adds a session, with a secret of its own.
    pub(crate) fn register(
        self: &Arc<CancelRegistry>,
        process_id: i32,
        handle: CancelHandle,
        socket: OwnedFd,
    ) -> Registration {
        // The first four bytes of a random UUID are all random.
        let [a, b, c, d, ..] = *uuid::Uuid::new_v4().as_bytes();
        let secret = i32::from_be_bytes([a, b, c, d]);
        let connection = Arc::new(Endable::of(socket));
        let entry = Entry { secret, handle, connection: Arc::clone(&connection) };
        self.sessions.lock().insert(process_id, entry);
        Registration { registry: Arc::clone(self), process_id, secret, connection }
    }

    /// Returns how many sessions there are.
    pub(crate) fn session_count(&self) -> usize {
        self.sessions.lock().len()
    }

    /// Stops the running statement of a session, if the secret is right.
    pub(crate) fn cancel(&self, process_id: i32, secret: i32) {
        if let Some(entry) = self.sessions.lock().get(&process_id)
            && entry.secret == secret
        {
            entry.handle.cancel();
        }
    }

    /// Stops the running statements of those whose client is gone.
    pub(crate) fn cancel_gone(&self) {
        let sessions = self.sessions.lock();
        let mut sockets: Vec<PollFd<'_>> =
            sessions.values().map(|entry| PollFd::new(&entry.connection.socket, GONE)).collect();
        if let Err(error) = poll(&mut sockets, Some(&Timespec::default())) {
            tracing::debug!(%error, "could not ask which clients are gone");
            return;
        }
        for (entry, socket) in sessions.values().zip(&sockets) {
            if socket.revents().intersects(GONE) {
                entry.handle.cancel();
            }
        }
    }

    /// Wakes all sessions that wait for their clients: the server stops.
    pub(crate) fn wake_all(&self) {
        self.sessions.lock().values().for_each(|entry| entry.connection.end());
    }

    /// Ends the connections of all sessions, also of those whose clients do not read.
    pub(crate) fn cut_off_all(&self) {
        for entry in self.sessions.lock().values() {
            let _ = shutdown(&entry.connection.socket, Shutdown::Both);
        }
    }

    /// Stops the running statements of all sessions.
    pub(crate) fn cancel_all(&self) {
        for entry in self.sessions.lock().values() {
            entry.handle.cancel();
        }
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.registry.sessions.lock().remove(&self.process_id);
    }
}
