//! Randomised schedules of commits, flushes, compactions, DDL, failures and crashes: a reopened
//! store has a prefix of its history with every acknowledged commit in it.
//!
//! A schedule is generated from a seed. The default run uses the same seeds each time;
//! `BENNU_SCHEDULES=20000 BENNU_SEED=5000` runs 20,000 from 5000 on, `BENNU_SCHEDULES=1` one. A
//! failure is printed with its seed, and again with a minimal number of steps. The log's thread
//! runs concurrently, so not every schedule is reproducible; most are.

mod plan;
mod schedule_run;

use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Once, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;

use crate::cases::schedules::plan::{Plan, Step};
use crate::cases::schedules::schedule_run::ScheduleRun;

/// Schedules of the default run.
const SCHEDULES: u64 = 2000;
/// Runs that a failing schedule may take to shrink.
const SHRINKING_RUNS: usize = 400;

#[test]
fn random_schedules_recover_to_consistent_prefix() {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    let first = number("BENNU_SEED").unwrap_or(0);
    let count = number("BENNU_SCHEDULES").unwrap_or(SCHEDULES);
    count_background_panics();
    let next = AtomicU64::new(first);
    let failed: Mutex<Option<(u64, String)>> = Mutex::default();
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(8);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while failed.lock().is_none() {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= first + count {
                        return;
                    }
                    if let Err(why) = run(&Plan::of_seed(seed)) {
                        failed.lock().get_or_insert((seed, why));
                    }
                }
            });
        }
    });
    let failed = failed.into_inner();
    if let Some((seed, why)) = failed {
        panic!("seed {seed}: {why}\n{}", shrink(Plan::of_seed(seed)));
    }
}

/// Runs a schedule; returns the failure.
fn run(plan: &Plan) -> Result<(), String> {
    let panics = BACKGROUND_PANICS.load(Ordering::SeqCst);
    let watch = Watch::begin(plan.seed);
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let mut world = ScheduleRun::new(plan);
        for step in &plan.steps {
            if !world.run(step)? {
                return Ok(());
            }
        }
        world.finish()
    }));
    drop(watch);
    if BACKGROUND_PANICS.load(Ordering::SeqCst) != panics {
        return Err("a thread of the store panicked".to_owned());
    }
    match outcome {
        Ok(outcome) => outcome,
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
            Err(format!("panicked: {}", text.unwrap_or_default()))
        }
    }
}

/// Removes steps while the rest still fails, and returns the rest as text.
fn shrink(mut plan: Plan) -> String {
    let mut runs = 0;
    let mut why = String::from("(passed when it was run again)");
    let mut still_fails = |plan: &Plan| {
        runs += 1;
        // A schedule that depends on threads gets more than one attempt.
        let failure = (0..2).find_map(|_| run(plan).err());
        (runs <= SHRINKING_RUNS).then_some(failure).flatten()
    };
    let mut length = plan.steps.len();
    while length > 0 {
        let mut start = 0;
        while start < plan.steps.len() {
            let mut shorter = plan.clone();
            shorter.steps.drain(start..(start + length).min(plan.steps.len()));
            match still_fails(&shorter) {
                Some(failure) => (plan, why) = (shorter, failure),
                None => start += length,
            }
        }
        length /= 2;
    }
    let mut text = format!("shrunk to {} steps: {why}\n{:?}\n", plan.steps.len(), plan.settings);
    for step in &plan.steps {
        writeln!(text, "  {step:?}").unwrap();
    }
    text
}

/// Panics of the store's internal threads, which the test cannot join.
static BACKGROUND_PANICS: AtomicU64 = AtomicU64::new(0);

fn count_background_panics() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            let thread = std::thread::current();
            let name = thread.name().unwrap_or_default();
            // Region threads run the coprocessors of other tests, which may panic.
            if name.starts_with("bennu-") && !name.starts_with("bennu-region") {
                BACKGROUND_PANICS.fetch_add(1, Ordering::SeqCst);
            }
            before(panic);
        }));
    });
}

/// Ends the process with the seed's number if a schedule hangs.
struct Watch {
    ended: Arc<(Mutex<bool>, parking_lot::Condvar)>,
}

/// Far above the duration of a schedule, even on a busy machine.
const STANDSTILL: Duration = Duration::from_secs(120);

type Ended = Arc<(Mutex<bool>, parking_lot::Condvar)>;

impl Watch {
    /// One thread monitors all schedules.
    fn begin(seed: u64) -> Watch {
        static WATCHED: OnceLock<std::sync::mpsc::Sender<(u64, Ended)>> = OnceLock::new();
        let watched = WATCHED.get_or_init(|| {
            let (sender, begun) = std::sync::mpsc::channel::<(u64, Ended)>();
            std::thread::spawn(move || {
                for (seed, ended) in begun {
                    let (flag, signal) = &*ended;
                    let mut flag = flag.lock();
                    let standstill = |ended: &mut bool| !*ended;
                    if signal.wait_while_for(&mut flag, standstill, STANDSTILL).timed_out() {
                        let text = format!("seed {seed} stands still\n");
                        let _ = std::io::Write::write_all(&mut std::io::stderr(), text.as_bytes());
                        std::process::abort();
                    }
                }
            });
            sender
        });
        let ended: Ended = Arc::default();
        watched.send((seed, Arc::clone(&ended))).unwrap();
        Watch { ended }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        *self.ended.0.lock() = true;
        self.ended.1.notify_all();
    }
}

#[test]
fn shrinking_preserves_failing_step() {
    // A schedule without steps cannot fail; a check that always fails must shrink to no steps.
    let plan = Plan { steps: Vec::new(), ..Plan::of_seed(1) };
    assert_eq!(run(&plan), Ok(()));
    let text = shrink(Plan { steps: vec![Step::Impossible, Step::Read], ..plan });
    assert!(text.contains("shrunk to 1 steps: an impossible step"), "{text}");
}
