//! Memory limit of incomplete messages of all connections.
//!
//! A client announces the length of a message and may send it slowly. Until it is complete, no
//! statement runs that the memory governor could cancel. So if incomplete messages take more than
//! half of the memory limit ([`store::memory`]), the connection with the largest one ends, and
//! the others continue. A message with an announced length above that bound ends its connection
//! at once.

use std::sync::{Arc, OnceLock};

use ahash::AHashMap;
use parking_lot::Mutex;
use sql::Error;

use crate::pgwire::cancel::ClientSocket;
use crate::pgwire::failure::{Failure, Result};

/// Minimum size of a message that is counted.
const LEAST_BYTES: usize = 1 << 20;
/// Change in size after which a message is counted again.
const STEP_BYTES: usize = 64 << 10;
/// Divisor of the memory limit that gives the bound of all messages.
const PART: usize = 2;

/// The incomplete messages of all connections.
#[derive(Default)]
pub(crate) struct IncomingMessages {
    held: Mutex<AHashMap<i32, HeldMessage>>,
}

/// The bytes of a message, and its connection.
struct HeldMessage {
    bytes: usize,
    connection: Arc<ClientSocket>,
    ending: Arc<OnceLock<String>>,
}

/// The incomplete message of one connection.
pub(crate) struct IncomingMessage {
    all: Arc<IncomingMessages>,
    process_id: i32,
    connection: Arc<ClientSocket>,
    counted: usize,
    /// The reason for which the connection was ended.
    ending: Arc<OnceLock<String>>,
}

impl IncomingMessages {
    /// Creates the empty message of a connection.
    pub(crate) fn of(
        self: &Arc<IncomingMessages>,
        process_id: i32,
        connection: Arc<ClientSocket>,
    ) -> IncomingMessage {
        let all = Arc::clone(self);
        IncomingMessage { all, process_id, connection, counted: 0, ending: Arc::default() }
    }
}

impl IncomingMessage {
    /// Records the bytes of the message and its announced length.
    ///
    /// # Errors
    ///
    /// `53200`, which ends the connection, if the announced length or the sum of all messages
    /// exceeds the bound and this message is the largest.
    pub(crate) fn record(&mut self, bytes: usize, announced: usize) -> Result<()> {
        self.note_within(store::memory::limit().map(|limit| limit / PART), (bytes, announced))
    }

    fn note_within(
        &mut self,
        bound: Option<usize>,
        (bytes, announced): (usize, usize),
    ) -> Result<()> {
        self.check()?;
        let Some(bound) = bound else { return Ok(()) };
        if announced > bound {
            return Err(refused(&format!(
                "The announced message size is {} MiB; the limit for all incoming messages is {} \
                 MiB.",
                announced >> 20,
                bound >> 20
            )));
        }
        let is_small = bytes < LEAST_BYTES && self.counted == 0;
        if is_small || bytes.abs_diff(self.counted) < STEP_BYTES {
            return Ok(());
        }
        self.count(bytes);
        if bytes >= LEAST_BYTES {
            self.all.end_largest(bound);
        }
        self.check()
    }

    /// Records that the message is complete.
    #[inline]
    pub(crate) fn end(&mut self) {
        if self.counted > 0 {
            self.count(0);
        }
    }

    /// Returns an error if the connection was ended because of its message.
    pub(crate) fn check(&self) -> Result<()> {
        self.ending.get().map_or(Ok(()), |detail| Err(refused(detail)))
    }

    fn count(&mut self, bytes: usize) {
        let mut held = self.all.held.lock();
        if bytes < LEAST_BYTES {
            self.counted = 0;
            held.remove(&self.process_id);
            return;
        }
        self.counted = bytes;
        let (connection, ending) = (Arc::clone(&self.connection), Arc::clone(&self.ending));
        held.insert(self.process_id, HeldMessage { bytes, connection, ending });
    }
}

impl IncomingMessages {
    /// Ends the connections of the largest messages while the sum exceeds `bound`.
    fn end_largest(&self, bound: usize) {
        let mut held = self.held.lock();
        loop {
            let all: usize = held.values().map(|held| held.bytes).sum();
            let largest = held.iter().max_by_key(|(_, held)| held.bytes);
            let Some((&process_id, _)) = largest.filter(|_| all > bound) else { return };
            let Some(largest) = held.remove(&process_id) else { return };
            let detail = format!(
                "Incomplete messages use {} MiB of the limit of {} MiB; this message is the \
                 largest, with {} MiB.",
                all >> 20,
                bound >> 20,
                largest.bytes >> 20
            );
            tracing::warn!(
                session = process_id,
                detail,
                "terminating connection because incoming messages exceed their memory limit"
            );
            // Only the first reason is recorded.
            let _ = largest.ending.set(detail);
            largest.connection.end();
        }
    }
}

impl Drop for IncomingMessage {
    fn drop(&mut self) {
        self.end();
    }
}

fn refused(detail: &str) -> Failure {
    let error = err!(OUT_OF_MEMORY: "out of memory"; detail detail;
        hint "Send smaller messages, or start the server with more --memory.");
    Failure::Fatal(Box::new(error))
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    const BOUND: Option<usize> = Some(100 << 20);

    #[test]
    fn largest_incoming_message_is_aborted_above_limit() {
        let all: Arc<IncomingMessages> = Arc::default();
        let message = |process_id| {
            let (socket, _) = UnixStream::pair().unwrap();
            all.of(process_id, Arc::new(ClientSocket::of(socket.into())))
        };
        let mut messages = [1, 2, 3].map(message);
        for (message, bytes) in messages.iter_mut().zip([30, 40, 20]) {
            message.note_within(BOUND, (bytes << 20, 90 << 20)).unwrap();
        }
        messages[2].note_within(BOUND, (35 << 20, 90 << 20)).unwrap();
        assert!(messages[1].connection.must_end());
        let Err(Failure::Fatal(error)) = messages[1].check() else { panic!("it goes on") };
        assert_eq!(error.sqlstate, "53200");
        assert!(error.detail.unwrap().contains("105 MiB of the limit of 100 MiB"));
        // A complete message does not count.
        messages[0].end();
        messages[2].note_within(BOUND, (80 << 20, 90 << 20)).unwrap();
        assert!(messages[2].note_within(BOUND, (101 << 20, 101 << 20)).is_err(), "announced");
        let mut alone = message(4);
        drop(messages);
        assert!(alone.note_within(BOUND, (101 << 20, 90 << 20)).is_err());
        assert!(all.held.lock().is_empty());
    }
}
