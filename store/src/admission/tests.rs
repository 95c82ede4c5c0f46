//! The queues as a model that a clock of our own drives, and turns of real threads.

use std::collections::VecDeque;
use std::sync::mpsc;

use proptest::prelude::*;

use super::queues::{QUANTUM_MICROS, QUIET_MICROS, Queues};
use super::*;
use crate::options::AdmissionOptions;

fn options(handlers: usize, read_ratio: f64, scan_ratio: f64) -> AdmissionOptions {
    AdmissionOptions { handlers, read_ratio, scan_ratio }
}

fn handlers(options: &AdmissionOptions) -> Vec<(Queue, usize)> {
    let queues = Queues::<u32>::new(options, 2);
    queues.status().iter().map(|status| (status.queue, status.handlers)).collect()
}

#[test]
fn handlers_are_dealt_out_as_in_hbase() {
    use Queue::{Read, Scan, Write};
    assert_eq!(handlers(&options(30, 0.0, 0.0)), [(Write, 30)]);
    assert_eq!(handlers(&options(30, 0.5, 0.0)), [(Write, 15), (Read, 15)]);
    assert_eq!(handlers(&options(30, 0.8, 0.5)), [(Write, 6), (Read, 12), (Scan, 12)]);
    assert_eq!(handlers(&options(8, 0.5, 0.25)), [(Write, 4), (Read, 3), (Scan, 1)]);
    assert_eq!(handlers(&options(10, 1.0, 1.0)), [(Write, 1), (Read, 1), (Scan, 9)]);
    assert_eq!(handlers(&options(1, 0.5, 0.5)), [(Write, 1), (Read, 1), (Scan, 1)]);
    assert_eq!(handlers(&options(30, 0.0, 0.9)), [(Write, 30)], "no reads of their own, no scans");
}

/// Four scans without end and a get now and then, on queues of two handlers of each kind at most.
/// Time is counted in steps of 100 µs, which is what a get takes and a scan works between looks.
#[test]
fn scans_cannot_starve_gets() {
    const STEP: i64 = 100;
    let mut queues = Queues::<usize>::new(&options(8, 0.5, 0.25), 2);
    let mut working: Vec<(usize, i64)> = Vec::new();
    let mut worked = [0; 4];
    let (mut most_scans, mut now, mut last_get) = (0, 1_000_000, i64::MIN);
    let mut turns = VecDeque::new();
    for scan in 0..4 {
        match queues.enter(Queue::Scan, now) {
            true => working.push((scan, now)),
            false => queues.join(Queue::Scan, scan, now),
        }
    }
    assert_eq!(working.len(), 2, "nothing else is there, so scans use what they can");
    for step in 0..40_000 {
        now += STEP;
        // A second of quiet in the middle.
        let gets = !(15_000..25_000).contains(&step) && step % 7 == 0;
        if gets {
            assert!(queues.enter(Queue::Read, now), "a get had to wait at step {step}");
        }
        let mut granted = Vec::new();
        if gets {
            queues.note_short(now);
            granted.extend(queues.leave(Queue::Read, now));
        }
        for (scan, began) in std::mem::take(&mut working) {
            worked[scan] += 1;
            if queues.is_due(Queue::Scan, began, now) {
                granted.extend(queues.leave(Queue::Scan, now));
                turns.push_back(scan);
                match queues.enter(Queue::Scan, now) {
                    true => working.push((scan, now)),
                    false => queues.join(Queue::Scan, scan, now),
                }
            } else {
                working.push((scan, began));
            }
        }
        working.extend(granted.into_iter().map(|scan| (scan, now)));
        if gets {
            last_get = now;
        }
        // Who works beyond the scans' own handler gives it back at its first look after a get.
        if now.saturating_sub(last_get) < QUIET_MICROS {
            assert!(working.len() <= 1, "{} scans beside gets at step {step}", working.len());
        } else {
            most_scans = most_scans.max(working.len());
        }
    }
    assert_eq!(most_scans, 2, "in the quiet second scans used both threads");
    let (least, most) = (worked.iter().min().unwrap(), worked.iter().max().unwrap());
    assert!(most - least <= 2 * (QUANTUM_MICROS / STEP) as i32, "scans share evenly: {worked:?}");
}

#[derive(Debug, Clone)]
enum Step {
    Enter(Queue),
    Leave(usize),
    GiveUp(usize),
    Outgrow(usize),
    Look(usize),
    Pass(i64),
}

fn any_step() -> impl Strategy<Value = Step> {
    let queue = prop_oneof![Just(Queue::Write), Just(Queue::Read), Just(Queue::Scan)];
    prop_oneof![
        4 => queue.prop_map(Step::Enter),
        3 => any::<usize>().prop_map(Step::Leave),
        1 => any::<usize>().prop_map(Step::GiveUp),
        1 => any::<usize>().prop_map(Step::Outgrow),
        2 => any::<usize>().prop_map(Step::Look),
        1 => (0..2 * QUIET_MICROS).prop_map(Step::Pass),
    ]
}

/// What a caller of the queues knows.
struct Callers {
    options: AdmissionOptions,
    working: Vec<(usize, Queue, i64)>,
    waiting: Vec<(usize, Queue)>,
}

impl Callers {
    fn enter(&mut self, queues: &mut Queues<usize>, (name, queue): (usize, Queue), now: i64) {
        if queues.enter(queue, now) {
            self.working.push((name, queue, now));
        } else {
            queues.join(queue, name, now);
            self.waiting.push((name, queue));
        }
    }

    fn grant(&mut self, granted: impl IntoIterator<Item = usize>, now: i64) {
        for name in granted {
            let place = self.waiting.iter().position(|(waiting, _)| *waiting == name);
            let (_, queue) = self.waiting.remove(place.expect("who is granted has waited"));
            let before = &self.waiting[..place.unwrap_or(0)];
            assert!(
                before.iter().all(|(_, other)| self.line(*other) != self.line(queue)),
                "{name} came before those who had waited longer: {before:?}"
            );
            self.working.push((name, queue, now));
        }
    }

    fn line(&self, queue: Queue) -> Queue {
        match queue {
            _ if self.options.read_ratio == 0.0 => Queue::Write,
            Queue::Scan if self.options.scan_ratio == 0.0 => Queue::Read,
            queue => queue,
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Whoever joins a queue is let in once those before have left; slots are neither lost nor
    /// made.
    #[test]
    fn nobody_is_forgotten(
        steps in prop::collection::vec(any_step(), 1..200),
        ratios in (1usize..12, 0usize..4, 0usize..4),
    ) {
        let (count, read, scan) = ratios;
        let options = options(count, read as f64 / 4.0, scan as f64 / 4.0);
        let mut queues = Queues::<usize>::new(&options, 2);
        let mut callers = Callers { options, working: Vec::new(), waiting: Vec::new() };
        let mut now = 0;
        for (name, step) in steps.into_iter().enumerate() {
            match step {
                Step::Enter(queue) => callers.enter(&mut queues, (name, queue), now),
                Step::Pass(micros) => now += micros,
                Step::GiveUp(pick) if !callers.waiting.is_empty() => {
                    let (other, queue) = callers.waiting.remove(pick % callers.waiting.len());
                    prop_assert!(queues.give_up(queue, |name| *name == other));
                }
                Step::Leave(pick) if !callers.working.is_empty() => {
                    let (_, queue, _) = callers.working.remove(pick % callers.working.len());
                    if queue != Queue::Scan {
                        queues.note_short(now);
                    }
                    callers.grant(queues.leave(queue, now), now);
                }
                Step::Outgrow(pick) if !callers.working.is_empty() => {
                    let pick = pick % callers.working.len();
                    if callers.working[pick].1 != Queue::Scan && queues.has_scan_line() {
                        let (_, queue, _) = callers.working.remove(pick);
                        callers.grant(queues.leave(queue, now), now);
                        callers.enter(&mut queues, (name, Queue::Scan), now);
                    }
                }
                Step::Look(pick) if !callers.working.is_empty() => {
                    let pick = pick % callers.working.len();
                    let (_, queue, began) = callers.working[pick];
                    if queues.is_due(queue, began, now) {
                        callers.working.remove(pick);
                        callers.grant(queues.leave(queue, now), now);
                        callers.enter(&mut queues, (name, queue), now);
                    }
                }
                _ => {}
            }
            let status = queues.status();
            let active: usize = status.iter().map(|status| status.active).sum();
            let queued: usize = status.iter().map(|status| status.queued).sum();
            prop_assert_eq!((active, queued), (callers.working.len(), callers.waiting.len()));
        }
        while let Some((_, queue, _)) = callers.working.pop() {
            callers.grant(queues.leave(queue, now), now);
        }
        prop_assert!(callers.waiting.is_empty(), "{:?} were forgotten", callers.waiting);
    }
}

fn admission(handlers: usize) -> Arc<Admission> {
    let options =
        Options { admission: options(handlers, 0.0, 0.0), region_threads: 1, ..Options::default() };
    Admission::new(options).0
}

fn queued(admission: &Admission) -> usize {
    admission.status().iter().map(|status| status.queued).sum()
}

fn until_queued(admission: &Admission, count: usize) {
    while queued(admission) != count {
        std::thread::yield_now();
    }
}

fn take(admission: &Arc<Admission>) -> Result<Turn> {
    take_for(admission, &Arc::default())
}

fn take_for(admission: &Arc<Admission>, statement: &Arc<StatementWork>) -> Result<Turn> {
    admission.turn(Work::Read, statement, StopFlags::new())
}

#[test]
fn a_turn_within_a_turn_is_none() {
    let admission = admission(1);
    let outer = take(&admission).unwrap();
    let inner = take(&admission).unwrap();
    drop(inner);
    assert_eq!(admission.status()[0].active, 1);
    drop(outer);
    assert_eq!(admission.status()[0].active, 0);
}

#[test]
fn a_wait_gives_the_slot_to_others_and_goes_on_beyond_the_limit() {
    let (admission, options) = Admission::new(Options {
        admission: options(1, 0.0, 0.0),
        region_threads: 1,
        ..Options::default()
    });
    let turn = take(&admission).unwrap();
    let (entered, inside) = mpsc::channel();
    let (release, released) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        let other = Arc::clone(&admission);
        scope.spawn(move || {
            let _turn = take(&other).unwrap();
            entered.send(()).unwrap();
            let _ = released.recv();
        });
        until_queued(&admission, 1);
        // As if for a row lock that the other one will hold.
        options.blocking.run(&mut || inside.recv().unwrap());
        assert_eq!(admission.status()[0].active, 2, "both work: one may hold what the other wants");
        drop(release);
    });
    drop(turn);
    assert_eq!(admission.status()[0].active, 0);
}

#[test]
fn who_waits_can_be_cancelled() {
    let admission = admission(1);
    let turn = take(&admission).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    std::thread::scope(|scope| {
        let waiter = {
            let (admission, stop) = (Arc::clone(&admission), Arc::clone(&stop));
            scope.spawn(move || {
                let flags = [stop].into_iter().collect();
                admission.turn(Work::Write, &Arc::default(), flags).map(drop)
            })
        };
        until_queued(&admission, 1);
        stop.store(true, Ordering::Relaxed);
        assert!(matches!(waiter.join().unwrap(), Err(Error::Cancelled)));
    });
    drop(turn);
    let [status] = admission.status()[..] else { panic!("there is one queue") };
    assert_eq!((status.active, status.queued, status.waited), (0, 0, 0));
    take(&admission).map(drop).unwrap();
}

#[test]
fn a_statement_that_reads_much_is_a_scan_from_then_on() {
    let options = Options { admission: options(8, 0.5, 0.25), ..Options::default() };
    let (admission, _) = Admission::new(options);
    let statement = Arc::default();
    let turn = || take_for(&admission, &statement).unwrap();
    let active = || -> Vec<usize> { admission.status().iter().map(|s| s.active).collect() };
    let short = turn();
    worked(SHORT_ROWS - 1).unwrap();
    assert_eq!(active(), [0, 1, 0]);
    worked(LOOK_ROWS).unwrap();
    assert_eq!(active(), [0, 0, 1]);
    drop(short);
    let long = turn();
    assert_eq!(active(), [0, 0, 1]);
    drop(long);
    assert_eq!(active(), [0, 0, 0]);
    worked(1_000_000).unwrap();
}

#[test]
fn the_beginning_of_a_scan_does_not_make_scans_modest() {
    let (admission, options) = Admission::new(Options {
        admission: options(8, 0.5, 0.25),
        region_threads: 2,
        ..Options::default()
    });
    let statement = Arc::default();
    let session = take_for(&admission, &statement).unwrap();
    // The session waits for its region threads, which read.
    options.blocking.run(&mut || {
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                let page = take_for(&admission, &statement).unwrap();
                worked(SHORT_ROWS).unwrap();
                drop(page);
            });
            thread.join().unwrap();
        });
    });
    drop(session);
    let now = || options.env.now_micros();
    let scans = || {
        let mut queues = admission.queues.lock();
        let entered = [(); 2].map(|()| queues.enter(Queue::Scan, now()));
        entered.iter().filter(|entered| **entered).for_each(|_| {
            queues.leave(Queue::Scan, now());
        });
        entered
    };
    admission.end_statement(&statement);
    assert_eq!(scans(), [true, true]);
    take_for(&admission, &statement).map(drop).unwrap();
    assert_eq!(scans(), [true, true], "it is not known yet whether that was all");
    admission.end_statement(&statement);
    assert_eq!(scans(), [true, false], "there was a short read just now");
}
