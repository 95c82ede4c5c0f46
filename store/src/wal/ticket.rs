//! Ticket of a commit, for waiting until the commit is durable.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::Duration;

use crate::cell::Sequence;
use crate::error::{Error, Result};
use crate::wal::log::Log;

/// Interval at which a cancellable wait checks for cancellation.
const CANCEL_POLL: Duration = Duration::from_millis(50);

/// Handle that becomes ready when a commit has its requested durability. A `Future`, and
/// [`DurableTicket::wait`] for plain threads.
///
/// Fails with [`Error::LogFailed`] if the log could not be written. The outcome of the commit is
/// then unknown until the log can be written again or the store is opened again.
pub struct DurableTicket {
    log: Arc<Log>,
    sequence: Sequence,
    /// Distinguishes waiters for one sequence; 0 while it does not wait.
    ticket: u64,
}

impl DurableTicket {
    pub(super) fn new(log: Arc<Log>, sequence: Sequence) -> DurableTicket {
        DurableTicket { log, sequence, ticket: 0 }
    }

    /// Blocks until the commit is durable. The calling thread may become the leader that writes
    /// and syncs the log for itself and others.
    pub fn wait(self) -> Result<()> {
        self.log.wait_durable(self.sequence)
    }

    /// Blocks until the commit is durable or `cancelled` returns `true`.
    ///
    /// # Errors
    ///
    /// [`Error::Cancelled`]; the errors of [`DurableTicket::wait`].
    pub fn wait_unless(mut self, cancelled: &dyn Fn() -> bool) -> Result<()> {
        let waker = Waker::from(Arc::new(ThreadWaker(std::thread::current())));
        let mut context = Context::from_waker(&waker);
        loop {
            match Pin::new(&mut self).poll(&mut context) {
                Poll::Ready(result) => return result,
                Poll::Pending if cancelled() => return Err(Error::Cancelled),
                Poll::Pending => std::thread::park_timeout(CANCEL_POLL),
            }
        }
    }

    /// Returns the sequence of the commit.
    pub fn sequence(&self) -> Sequence {
        self.sequence
    }

    /// Returns whether the commit is durable already.
    pub fn is_ready(&self) -> bool {
        self.log.durable() >= self.sequence
    }
}

impl Clone for DurableTicket {
    /// Returns another ticket for the same commit.
    fn clone(&self) -> DurableTicket {
        DurableTicket::new(Arc::clone(&self.log), self.sequence)
    }
}

/// Wakes a thread that waits for a ticket.
struct ThreadWaker(Thread);

impl Wake for ThreadWaker {
    fn wake(self: Arc<ThreadWaker>) {
        self.0.unpark();
    }
}

impl Future for DurableTicket {
    type Output = Result<()>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        if self.is_ready() {
            return Poll::Ready(Ok(()));
        }
        let ticket = &mut *self;
        ticket.log.poll_durable(ticket.sequence, &mut ticket.ticket, context.waker())
    }
}

impl Drop for DurableTicket {
    fn drop(&mut self) {
        if self.ticket != 0 && !self.is_ready() {
            self.log.state.lock().waiters.remove(&(self.sequence.0, self.ticket));
        }
    }
}
