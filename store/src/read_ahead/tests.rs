//! Tests of read-ahead with counting producers, and a pool of simulated or real threads.

use std::sync::atomic::AtomicU64;
use std::sync::mpsc;

use proptest::prelude::*;

use super::*;
use crate::options::PlainWait;

/// Produces the numbers of a partition, and counts them.
struct Numbers {
    next: u64,
    end: u64,
    made: Arc<AtomicU64>,
    at_end: AtEnd,
}

#[derive(Clone, Copy)]
enum AtEnd {
    Stop,
    Fail,
    Panic,
}

impl Producer for Numbers {
    type Item = u64;
    type Error = &'static str;

    fn next(&mut self) -> Result<Option<u64>, &'static str> {
        if self.next == self.end {
            return match self.at_end {
                AtEnd::Stop => Ok(None),
                AtEnd::Fail => Err("failed"),
                AtEnd::Panic => panic!("panicked"),
            };
        }
        self.made.fetch_add(1, Ordering::SeqCst);
        self.next += 1;
        Ok(Some(self.next - 1))
    }

    fn byte_count(_: &u64) -> usize {
        10
    }
}

fn shared(
    ends: &[u64],
    bounds: Bounds,
    at_end: AtEnd,
) -> (ReadAheadQueue<Numbers>, Arc<AtomicU64>) {
    let made: Arc<AtomicU64> = Arc::default();
    let numbers = |&end| Numbers { next: 0, end, made: Arc::clone(&made), at_end };
    let gauge = Arc::new(ReadAheadBytes::new(usize::MAX));
    (ReadAheadQueue::new(ends.iter().map(numbers), bounds, Arc::default(), gauge), made)
}

const WIDE: Bounds = Bounds { items: 2, bytes: usize::MAX, parts: usize::MAX };

fn reject(part: usize) {
    panic!("part {part} was queued");
}

#[test]
fn serial_caller_reads_in_order_without_read_ahead() {
    let (parts, made) = shared(&[2, 0, 1], WIDE, AtEnd::Stop);
    let mut taken = Vec::new();
    while let Some(item) = parts.next(Take::Any, &PlainWait, &mut reject).unwrap() {
        taken.push(item);
        assert_eq!(made.load(Ordering::SeqCst), taken.len() as u64);
    }
    assert_eq!(taken, [(0, 0), (0, 1), (2, 0)]);
}

#[test]
fn read_ahead_stays_within_bounds() {
    let bounds = Bounds { parts: 2, ..WIDE };
    let (parts, made) = shared(&[9, 9, 9], bounds, AtEnd::Stop);
    assert!(parts.go_parallel());
    let mut queued = Vec::new();
    let first = parts.next(Take::InOrder, &PlainWait, &mut |part| queued.push(part)).unwrap();
    assert_eq!(first, Some((0, 0)));
    // Two partitions of three, each up to two items, regardless of the number of calls.
    let mut work = || {
        for part in queued.drain(..) {
            (0..3).for_each(|_| parts.work(part));
        }
        made.load(Ordering::SeqCst)
    };
    assert_eq!(work(), 5);
    assert_eq!(work(), 5);
    let second = parts.next(Take::InOrder, &PlainWait, &mut |part| queued.push(part)).unwrap();
    assert_eq!((second, queued.as_slice()), (Some((0, 1)), [0].as_slice()));
}

#[test]
fn read_ahead_byte_limit_spans_partitions() {
    let bounds = Bounds { bytes: 25, items: 100, parts: 3 };
    let (parts, made) = shared(&[9, 9, 9], bounds, AtEnd::Stop);
    parts.go_parallel();
    let mut queued = Vec::new();
    parts.next(Take::Of(2), &PlainWait, &mut |part| queued.push(part)).unwrap();
    queued.iter().for_each(|&part| parts.work(part));
    assert_eq!(made.load(Ordering::SeqCst), 1 + 3, "the third item makes 30 bytes");
    // The item that the caller waits for is produced all the same.
    let item = parts.next(Take::Of(2), &PlainWait, &mut reject).unwrap();
    assert_eq!(item, Some((2, 1)));
}

#[test]
fn statements_share_read_ahead_limit() {
    let gauge = Arc::new(ReadAheadBytes::new(15));
    let made: Arc<AtomicU64> = Arc::default();
    let numbers = || Numbers { next: 0, end: 9, made: Arc::clone(&made), at_end: AtEnd::Stop };
    let parts = || ReadAheadQueue::new([numbers()], WIDE, Arc::default(), Arc::clone(&gauge));
    let (one, other) = (parts(), parts());
    one.go_parallel();
    other.go_parallel();
    one.work(0);
    other.work(0);
    assert_eq!((gauge.used(), made.load(Ordering::SeqCst)), (20, 2));
    assert_eq!(other.next(Take::Any, &PlainWait, &mut reject), Ok(Some((0, 0))), "by itself");
    drop(one);
    assert_eq!(gauge.used(), 0);
    other.work(0);
    assert_eq!(gauge.used(), 20);
    other.stop();
    assert_eq!(gauge.used(), 0);
}

#[test]
fn first_failure_stops_all_partitions() {
    for at_end in [AtEnd::Fail, AtEnd::Panic] {
        let (parts, made) = shared(&[1, 9], WIDE, at_end);
        parts.go_parallel();
        let mut queued = Vec::new();
        let mut queue = |part| queued.push(part);
        assert_eq!(parts.next(Take::InOrder, &PlainWait, &mut queue), Ok(Some((0, 0))));
        parts.work(0);
        let outcome =
            catch_unwind(AssertUnwindSafe(|| parts.next(Take::InOrder, &PlainWait, &mut |_| ())));
        match at_end {
            AtEnd::Fail => assert_eq!(outcome.unwrap(), Err("failed")),
            _ => assert_eq!(*outcome.unwrap_err().downcast::<&str>().unwrap(), "panicked"),
        }
        parts.work(1);
        assert_eq!(made.load(Ordering::SeqCst), 1, "the other part was not begun");
    }
}

#[test]
fn no_items_are_produced_after_stop() {
    let (parts, made) = shared(&[9, 9], WIDE, AtEnd::Stop);
    parts.go_parallel();
    let mut queued = Vec::new();
    parts.next(Take::Any, &PlainWait, &mut |part| queued.push(part)).unwrap();
    parts.stop();
    queued.iter().for_each(|&part| parts.work(part));
    assert_eq!(made.load(Ordering::SeqCst), 1);
    assert_eq!(parts.next(Take::Any, &PlainWait, &mut reject), Ok(None));
}

proptest! {
    #[test]
    fn items_are_delivered_once_in_partition_order(
        ends in prop::collection::vec(0..12_u64, 0..6),
        (items, bytes, window, threads) in (1..4_usize, 5..60_usize, 1..5_usize, 0..4_usize),
        in_order in any::<bool>(),
        parallel_after in 0..10_usize,
    ) {
        let bounds = Bounds { items, bytes, parts: window };
        let (parts, _) = shared(&ends, bounds, AtEnd::Stop);
        let (sender, receiver) = mpsc::channel::<usize>();
        let receiver = Mutex::new(receiver);
        let mut taken = Vec::new();
        std::thread::scope(|scope| {
            for _ in 0..threads {
                let (parts, receiver) = (&parts, &receiver);
                scope.spawn(move || {
                    loop {
                        let next = receiver.lock().recv();
                        let Ok(part) = next else { return };
                        parts.work(part);
                    }
                });
            }
            let take = if in_order { Take::InOrder } else { Take::Any };
            let mut queue = |part| sender.send(part).unwrap();
            while let Some(item) = parts.next(take, &PlainWait, &mut queue).unwrap() {
                taken.push(item);
                if taken.len() >= parallel_after {
                    parts.go_parallel();
                }
            }
            drop(sender);
        });
        if in_order {
            prop_assert!(taken.is_sorted());
        }
        // Stable: a partition's items stay in order.
        taken.sort_by_key(|(part, _)| *part);
        let all = ends.iter().enumerate();
        let expected: Vec<(usize, u64)> =
            all.flat_map(|(part, end)| (0..*end).map(move |number| (part, number))).collect();
        prop_assert_eq!(taken, expected);
    }
}
