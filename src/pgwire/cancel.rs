//! Who may cancel what: the sessions that are open, by number, with their secrets. And whose client
//! is gone: a statement that runs does not read from its socket, so somebody else looks.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use ahash::AHashMap;
use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use sql::session::CancelHandle;

/// The open sessions.
#[derive(Default)]
pub(crate) struct CancelRegistry {
    sessions: Mutex<AHashMap<i32, Entry>>,
}

struct Entry {
    secret: i32,
    handle: CancelHandle,
    /// The client's socket, to ask whether the other end is there.
    socket: OwnedFd,
}

/// What the system says of a socket whose other end was closed, or sends no more.
#[cfg(target_os = "linux")]
const GONE: PollFlags = PollFlags::RDHUP.union(PollFlags::HUP).union(PollFlags::ERR);
#[cfg(not(target_os = "linux"))]
const GONE: PollFlags = PollFlags::HUP.union(PollFlags::ERR);

/// Keeps a session in the registry until it is dropped.
pub(crate) struct Registration {
    registry: Arc<CancelRegistry>,
    process_id: i32,
    /// What a cancel request must show.
    pub(crate) secret: i32,
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
        self.sessions.lock().insert(process_id, Entry { secret, handle, socket });
        Registration { registry: Arc::clone(self), process_id, secret }
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
            sessions.values().map(|entry| PollFd::new(&entry.socket, GONE)).collect();
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
