//! Rows that got other keys: how who waited for a row finds it.
//!
//! The store deletes a row and puts another one where a key changes; to PostgreSQL it is the same
//! row, and a statement that has waited for it goes on with it under its new key. So a commit notes
//! the keys that it has changed, before it gives the rows' locks back. Nobody asks for the moves
//! that every open snapshot shows: these are dropped when there are many.
//!
//! # Invariants
//!
//! 1. A move is here as long as a snapshot is open, or can be opened, that does not show it; or
//!    [`Moves::lost`] is not below it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use smallvec::SmallVec;

use crate::cell::Sequence;
use crate::descriptor::TableId;
use crate::lock::LockKey;

/// So many moves are kept without a look at which are needed.
const PRUNE_AT: usize = 1024;
/// So many moves are kept at most.
const MOVES_MAX: usize = 200_000;

/// A key that an open transaction has changed.
pub(crate) struct StagedMove {
    /// Edits staged when it was made.
    pub(crate) place: u64,
    /// The table of the row.
    pub(crate) table: TableId,
    /// The key that it had.
    pub(crate) from: Vec<u8>,
    /// The key that it has now.
    pub(crate) to: Vec<u8>,
    /// The row that others know by the old key was deleted before by the same transaction.
    pub(crate) is_new: bool,
}

/// A key that a transaction has changed, as others see it.
#[derive(Debug)]
pub(crate) struct NetMove {
    /// The table of the row.
    pub(crate) table: TableId,
    /// The key by which others know it.
    pub(crate) from: Vec<u8>,
    /// The key that it has now.
    pub(crate) to: Vec<u8>,
}

/// The keys that recent commits have changed.
#[derive(Default)]
pub(crate) struct Moves {
    /// Spares who looks for a move the lock, mostly.
    count: AtomicUsize,
    recent: Mutex<Recent>,
}

#[derive(Default)]
struct Recent {
    by_row: HashMap<LockKey, SmallVec<[Move; 1]>>,
    prune_at: usize,
    /// Moves up to here may be missing.
    lost: Sequence,
}

struct Move {
    at: Sequence,
    to: Box<[u8]>,
}

impl Moves {
    /// Returns whether no commit has changed a key lately.
    pub(crate) fn is_empty(&self) -> bool {
        self.count.load(Ordering::Acquire) == 0
    }

    /// Notes what a commit has changed. `horizon` returns the oldest snapshot that is open or can
    /// be opened.
    pub(crate) fn add(
        &self,
        moved: Vec<NetMove>,
        at: Sequence,
        horizon: impl FnOnce() -> Sequence,
    ) {
        let mut recent = self.recent.lock();
        let mut added = 0;
        for NetMove { table, from, to } in moved {
            let key = LockKey::new(table, &from);
            recent.by_row.entry(key).or_default().push(Move { at, to: to.into_boxed_slice() });
            added += 1;
        }
        let mut count = self.count.load(Ordering::Relaxed) + added;
        if count > recent.prune_at.max(PRUNE_AT) {
            let horizon = horizon();
            recent.by_row.retain(|_, moves| {
                moves.retain(|one| one.at > horizon);
                !moves.is_empty()
            });
            count = recent.by_row.values().map(SmallVec::len).sum();
            recent.prune_at = 2 * count;
        }
        if count > MOVES_MAX {
            recent.lost = at;
            recent.by_row = HashMap::new();
            // So that readers look.
            count = 1;
        }
        self.count.store(count, Ordering::Release);
    }

    /// Returns the key that a row got by the first commit after `after` that changed it.
    pub(crate) fn next(&self, row: LockKey, after: Sequence) -> Option<(Sequence, Vec<u8>)> {
        let recent = self.recent.lock();
        let moves = recent.by_row.get(&row)?.iter().filter(|one| one.at > after);
        moves.min_by_key(|one| one.at).map(|one| (one.at, one.to.to_vec()))
    }

    /// Returns up to which commit moves may be missing.
    pub(crate) fn lost(&self) -> Sequence {
        self.recent.lock().lost
    }
}

/// Returns what of the moves of a transaction others see.
pub(crate) fn net(staged: Vec<StagedMove>) -> Vec<NetMove> {
    // By which key others know the row that has a key now.
    let mut known: HashMap<(TableId, Vec<u8>), Option<Vec<u8>>> = HashMap::new();
    for StagedMove { table, from, to, is_new, .. } in staged {
        let row = (table, from);
        let before = known.remove(&row);
        let origin = before.unwrap_or_else(|| (!is_new).then_some(row.1));
        known.insert((table, to), origin);
    }
    let moved = known
        .into_iter()
        .filter_map(|((table, to), from)| Some(NetMove { table, from: from?, to }));
    moved.filter(|one| one.from != one.to).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: TableId = TableId(1);

    fn staged(from: &str, to: &str, is_new: bool) -> StagedMove {
        StagedMove { place: 0, table: TABLE, from: from.into(), to: to.into(), is_new }
    }

    fn next(moves: &Moves, row: &str, after: u64) -> Option<(u64, String)> {
        let found = moves.next(LockKey::new(TABLE, row.as_bytes()), Sequence(after));
        found.map(|(at, to)| (at.0, String::from_utf8(to).unwrap()))
    }

    #[test]
    fn a_row_is_followed_from_commit_to_commit() {
        let moves = Moves::default();
        assert!(moves.is_empty());
        moves.add(net(vec![staged("a", "b", false)]), Sequence(5), || Sequence(0));
        moves.add(net(vec![staged("c", "a", false)]), Sequence(6), || Sequence(0));
        moves.add(net(vec![staged("a", "d", false)]), Sequence(7), || Sequence(0));
        assert_eq!(next(&moves, "a", 4), Some((5, "b".into())));
        // Another row had the key since.
        assert_eq!(next(&moves, "a", 5), Some((7, "d".into())));
        assert_eq!(next(&moves, "a", 7), None);
        assert_eq!(next(&moves, "b", 4), None);
    }

    #[test]
    fn of_one_transaction_the_outcome_counts() {
        let moves = Moves::default();
        let back = vec![staged("a", "b", false), staged("b", "a", true)];
        moves.add(net(back), Sequence(5), || Sequence(0));
        assert_eq!(next(&moves, "a", 0), None);
        let far = vec![staged("a", "b", false), staged("c", "a", false), staged("b", "c", false)];
        moves.add(net(far), Sequence(6), || Sequence(0));
        assert_eq!(next(&moves, "a", 0), Some((6, "c".into())));
        assert_eq!(next(&moves, "c", 0), Some((6, "a".into())));
        // Another row than the one that was there.
        moves.add(net(vec![staged("x", "y", true)]), Sequence(7), || Sequence(0));
        assert_eq!(next(&moves, "x", 0), None);
    }

    #[test]
    fn what_all_snapshots_show_is_dropped_and_what_is_too_much_is_known_to_be_lost() {
        let moves = Moves::default();
        let many = |count: usize, prefix: &str| -> Vec<NetMove> {
            let one = |row| staged(&format!("{prefix}{row}"), &format!("to {row}"), false);
            net((0..count).map(one).collect())
        };
        moves.add(many(PRUNE_AT, "old"), Sequence(5), || Sequence(0));
        moves.add(many(1, "new"), Sequence(6), || Sequence(5));
        assert_eq!(next(&moves, "old7", 0), None);
        assert_eq!(next(&moves, "new0", 5), Some((6, "to 0".into())));
        assert_eq!(moves.lost(), Sequence(0));
        moves.add(many(MOVES_MAX, "x"), Sequence(7), || Sequence(5));
        assert_eq!((moves.lost(), moves.is_empty()), (Sequence(7), false));
    }
}
