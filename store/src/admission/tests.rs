//! Tests of the slots as a model with a simulated clock, and of turns of real threads.

use std::collections::VecDeque;

use proptest::prelude::*;

use super::slots::Slots;
use super::*;
use crate::options::AdmissionOptions;

#[derive(Debug, Clone)]
enum Step {
    Enter,
    Leave,
    GiveUp(usize),
    Insist(usize),
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => Just(Step::Enter),
        3 => Just(Step::Leave),
        1 => any::<usize>().prop_map(Step::GiveUp),
        1 => any::<usize>().prop_map(Step::Insist),
    ]
}

proptest! {
    #[test]
    fn slots_are_granted_in_fifo_order(
        handlers in 1_usize..4,
        steps in prop::collection::vec(any_step(), 1..200),
    ) {
        let mut slots = Slots::<usize>::new(handlers);
        let (mut working, mut waiting) = (0, VecDeque::new());
        for (name, step) in steps.into_iter().enumerate() {
            match step {
                Step::Enter => {
                    let free = working < handlers && waiting.is_empty();
                    prop_assert_eq!(slots.enter(), free);
                    match free {
                        true => working += 1,
                        false => {
                            slots.join(name, 0);
                            waiting.push_back(name);
                        }
                    }
                }
                Step::Leave if working == 0 => {}
                Step::Leave => {
                    working -= 1;
                    for granted in slots.leave(7) {
                        prop_assert_eq!(Some(granted), waiting.pop_front());
                        working += 1;
                    }
                }
                Step::GiveUp(place) | Step::Insist(place) if !waiting.is_empty() => {
                    let name = waiting.remove(place % waiting.len()).unwrap();
                    prop_assert!(slots.remove_waiter(|other| *other == name));
                    prop_assert!(!slots.remove_waiter(|other| *other == name));
                    if matches!(step, Step::Insist(_)) {
                        slots.enter_beyond_limit(0, 7);
                        working += 1;
                    }
                }
                Step::GiveUp(_) | Step::Insist(_) => {}
            }
            let status = slots.status();
            prop_assert_eq!((status.active, status.queued), (working, waiting.len()));
            prop_assert!(working >= handlers || waiting.is_empty(), "a slot is free");
            prop_assert_eq!(status.waited_micros, 7 * status.waited);
        }
    }
}

fn admission(handlers: usize) -> (Arc<Admission>, Options) {
    let admission = AdmissionOptions { handlers };
    Admission::new(Options { admission, ..Options::default() })
}

/// Returns a statement that has used enough CPU time to be long.
fn long_statement() -> Arc<StatementWork> {
    Arc::new(StatementWork { micros: AtomicU64::new(LONG_MICROS), ..Default::default() })
}

/// Forces a check, regardless of the steps so far.
fn look() -> Result<()> {
    count_rows(u64::from(STRIDE_MAX) + 1)
}

fn slot_counts(admission: &Admission) -> (usize, usize) {
    let status = admission.status();
    (status.active, status.queued)
}

fn until(admission: &Admission, expected: (usize, usize)) {
    while slot_counts(admission) != expected {
        std::thread::yield_now();
    }
}

#[test]
fn statement_takes_slot_after_long_cpu_time() {
    let (admission, _) = admission(1);
    let statement = Arc::default();
    let turn = admission.turn(&statement, StopFlags::new());
    look().unwrap();
    assert_eq!(slot_counts(&admission), (0, 0));
    while slot_counts(&admission).0 == 0 {
        yield_slot();
    }
    assert!(statement.micros.load(Ordering::Relaxed) >= LONG_MICROS);
    let inner = admission.turn(&Arc::default(), StopFlags::new());
    drop(inner);
    assert_eq!(slot_counts(&admission), (1, 0), "a turn within a turn is none");
    drop(turn);
    assert_eq!(slot_counts(&admission), (0, 0));
    // The next turn of the statement is long from its first check, the next statement is not.
    let turn = admission.turn(&statement, StopFlags::new());
    assert_eq!(slot_counts(&admission), (0, 0));
    look().unwrap();
    assert_eq!(slot_counts(&admission), (1, 0));
    drop(turn);
    statement.end_statement();
    let turn = admission.turn(&statement, StopFlags::new());
    look().unwrap();
    assert_eq!(slot_counts(&admission), (0, 0));
    drop(turn);
    look().unwrap();
}

#[test]
fn cpu_time_accumulates_over_many_short_turns() {
    let (admission, _) = admission(1);
    let statement = Arc::<StatementWork>::default();
    while statement.micros.load(Ordering::Relaxed) < LONG_MICROS {
        let turn = admission.turn(&statement, StopFlags::new());
        yield_slot();
        drop(turn);
    }
}

#[test]
fn blocking_wait_releases_slot_to_other_statements() {
    let (admission, options) = admission(1);
    let turn = admission.turn(&long_statement(), StopFlags::new());
    look().unwrap();
    std::thread::scope(|scope| {
        let other = scope.spawn(|| {
            let turn = admission.turn(&long_statement(), StopFlags::new());
            look().unwrap();
            assert_eq!(slot_counts(&admission).0, 1);
            drop(turn);
        });
        until(&admission, (1, 1));
        // Returns only after the other thread had the slot, not after a time slice.
        while admission.status().waited == 0 {
            look().unwrap();
        }
        other.join().unwrap();
    });
    look().unwrap();
    assert_eq!(slot_counts(&admission), (1, 0));
    options.blocking.run(&mut || assert_eq!(slot_counts(&admission), (0, 0)));
    assert_eq!(slot_counts(&admission), (0, 0), "the next look takes one");
    look().unwrap();
    assert_eq!(slot_counts(&admission), (1, 0));
    drop(turn);
}

#[test]
fn slot_wait_is_cancellable_and_times_out() {
    let (admission, _) = admission(1);
    let turn = admission.turn(&long_statement(), StopFlags::new());
    look().unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            let flags = [Arc::clone(&stop)].into_iter().collect();
            let _turn = admission.turn(&long_statement(), flags);
            look()
        });
        until(&admission, (1, 1));
        stop.store(true, Ordering::Relaxed);
        assert!(matches!(waiter.join().unwrap(), Err(Error::Cancelled)));
        assert_eq!(slot_counts(&admission), (1, 0));
        // The slot holder makes no checks, because it waits for a mutex.
        let patient = scope.spawn(|| {
            let _turn = admission.turn(&long_statement(), StopFlags::new());
            look().unwrap();
            assert_eq!(slot_counts(&admission), (2, 0));
        });
        patient.join().unwrap();
    });
    assert_eq!(slot_counts(&admission), (1, 0));
    drop(turn);
    assert_eq!(slot_counts(&admission), (0, 0));
}

#[test]
fn check_stride_adapts_to_elapsed_time() {
    let (admission, _) = admission(1);
    let turn = admission.turn(&Arc::default(), StopFlags::new());
    let stride = || HELD.with_borrow(|held| held.as_ref().unwrap().stride);
    look().unwrap();
    for _ in 0..20 {
        look().unwrap();
    }
    assert!(stride() > FIRST_STRIDE);
    let slow = |held: &mut Option<ThreadTurn>| {
        let held = held.as_mut().unwrap();
        held.set_stride(held.looked_at.unwrap() + INTERVAL_MICROS.end);
    };
    for _ in 0..20 {
        HELD.with_borrow_mut(slow);
    }
    assert_eq!(stride(), 1);
    drop(turn);
}
