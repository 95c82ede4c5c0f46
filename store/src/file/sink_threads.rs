//! Thread pool of sinks, reused from one file to the next.
//!
//! A new thread for each file would cost little time, but memory: the allocator arena of a
//! terminated thread stays with the process until another thread reuses it. The pool has about as
//! many threads as files were ever written concurrently; idle ones hold almost no memory.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use parking_lot::Mutex;

use crate::env::process::spawn_thread;

type Job = Box<dyn FnOnce() + Send>;

/// Idle threads.
static IDLE: Mutex<Vec<SyncSender<Job>>> = Mutex::new(Vec::new());

/// Result of work on another thread.
pub(crate) struct PendingJob<T> {
    result: Receiver<std::thread::Result<T>>,
}

impl<T> PendingJob<T> {
    /// Waits for the end of the work. A panic there is resumed here.
    pub(super) fn join(self) -> T {
        let result = self.result.recv().expect("work sends its result, or its panic");
        result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

/// Runs work on an idle thread, or on a new one.
///
/// # Errors
///
/// The system has no more threads; the work is dropped.
pub(super) fn run<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> std::io::Result<PendingJob<T>> {
    let (sender, result) = sync_channel(1);
    let job: Job = Box::new(move || {
        // A caller that does not wait ignores the result.
        let _ = sender.send(catch_unwind(AssertUnwindSafe(work)));
    });
    let idle = IDLE.lock().pop();
    let thread = match idle {
        Some(thread) => thread,
        None => begin_thread()?,
    };
    thread.send(job).expect("the thread waits for work");
    Ok(PendingJob { result })
}

fn begin_thread() -> std::io::Result<SyncSender<Job>> {
    let (sender, jobs) = sync_channel::<Job>(1);
    let own = sender.clone();
    spawn_thread("store file", move || {
        for job in jobs {
            job();
            IDLE.lock().push(own.clone());
        }
    })?;
    Ok(sender)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sink_threads_run_jobs_and_propagate_panics() {
        let doubled: Vec<PendingJob<u32>> =
            (0..4).map(|number| run(move || number * 2).unwrap()).collect();
        assert_eq!(doubled.into_iter().map(PendingJob::join).collect::<Vec<_>>(), [0, 2, 4, 6]);
        let failed = run(|| -> u32 { panic!("as wanted") }).unwrap();
        assert!(catch_unwind(AssertUnwindSafe(|| failed.join())).is_err());
        assert_eq!(run(|| 7).unwrap().join(), 7);
    }
}
