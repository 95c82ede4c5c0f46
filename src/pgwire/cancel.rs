//! Cancel registry: the open sessions by number, with the secrets of cancel requests and their
//! sockets.
//!
//! The registry also finds disconnected clients: a running statement does not read from its
//! socket, so the server polls the sockets of all sessions.

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
    sessions: Mutex<AHashMap<i32, RegisteredSession>>,
}

struct RegisteredSession {
    secret: i32,
    handle: CancelHandle,
    connection: Arc<ClientSocket>,
}

/// Poll events of a socket whose peer has closed it or its sending side.
#[cfg(target_os = "linux")]
const DISCONNECT_EVENTS: PollFlags = PollFlags::RDHUP.union(PollFlags::HUP).union(PollFlags::ERR);
#[cfg(not(target_os = "linux"))]
const GONE: PollFlags = PollFlags::HUP.union(PollFlags::ERR);

/// A client's socket, for polling its peer and for ending the connection.
pub(crate) struct ClientSocket {
    socket: OwnedFd,
    is_ended: AtomicBool,
}

impl ClientSocket {
    /// Creates the entry of a connection.
    pub(crate) fn of(socket: OwnedFd) -> ClientSocket {
        ClientSocket { socket, is_ended: AtomicBool::new(false) }
    }

    /// Returns whether the connection is to end without waiting for its client.
    pub(crate) fn must_end(&self) -> bool {
        self.is_ended.load(Ordering::Relaxed)
    }

    /// Ends the connection: reads see the end of the stream, and writes fail if the client does
    /// not read. Data that the client reads still arrives.
    pub(crate) fn end(&self) {
        self.is_ended.store(true, Ordering::Relaxed);
        if let Err(error) = shutdown(&self.socket, Shutdown::Read) {
            tracing::debug!(%error, "client disconnected");
        }
    }
}

/// Registration of a session, until it is dropped.
pub(crate) struct Registration {
    registry: Arc<CancelRegistry>,
    process_id: i32,
    /// The secret of cancel requests.
    pub(crate) secret: i32,
    connection: Arc<ClientSocket>,
}

impl Registration {
    /// Returns the connection, for ending it.
    pub(crate) fn connection(&self) -> Arc<ClientSocket> {
        Arc::clone(&self.connection)
    }
}

impl CancelRegistry {
    /// Adds a session and chooses its secret.
    pub(crate) fn register(
        self: &Arc<CancelRegistry>,
        process_id: i32,
        handle: CancelHandle,
        socket: OwnedFd,
    ) -> Registration {
        // The first four bytes of a random UUID are all random.
        let [a, b, c, d, ..] = *uuid::Uuid::new_v4().as_bytes();
        let secret = i32::from_be_bytes([a, b, c, d]);
        let connection = Arc::new(ClientSocket::of(socket));
        let entry = RegisteredSession { secret, handle, connection: Arc::clone(&connection) };
        self.sessions.lock().insert(process_id, entry);
        Registration { registry: Arc::clone(self), process_id, secret, connection }
    }

    /// Returns the number of sessions.
    pub(crate) fn session_count(&self) -> usize {
        self.sessions.lock().len()
    }

    /// Cancels the running statement of a session, if the secret is correct.
    pub(crate) fn cancel(&self, process_id: i32, secret: i32) {
        if let Some(entry) = self.sessions.lock().get(&process_id)
            && entry.secret == secret
        {
            entry.handle.cancel();
        }
    }

    /// Cancels the running statements of disconnected clients.
    pub(crate) fn cancel_disconnected(&self) {
        let sessions = self.sessions.lock();
        let mut sockets: Vec<PollFd<'_>> = sessions
            .values()
            .map(|entry| PollFd::new(&entry.connection.socket, DISCONNECT_EVENTS))
            .collect();
        if let Err(error) = poll(&mut sockets, Some(&Timespec::default())) {
            tracing::debug!(%error, "could not poll client sockets");
            return;
        }
        for (entry, socket) in sessions.values().zip(&sockets) {
            if socket.revents().intersects(DISCONNECT_EVENTS) {
                entry.handle.cancel();
            }
        }
    }

    /// Ends the connections of all sessions for shutdown; waiting ones wake up.
    pub(crate) fn wake_all(&self) {
        self.sessions.lock().values().for_each(|entry| entry.connection.end());
    }

    /// Closes the sockets of all sessions, even if their clients do not read.
    pub(crate) fn close_all_sockets(&self) {
        for entry in self.sessions.lock().values() {
            let _ = shutdown(&entry.connection.socket, Shutdown::Both);
        }
    }

    /// Cancels the running statements of all sessions.
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
