//! Key changes of recent commits, by which a waiter finds a row under its new key (update
//! chains).
//!
//! An update of a key deletes a row and puts another one; in PostgreSQL it is the same row, and a
//! statement that has waited for it continues with the new version. So a commit publishes its key
//! changes before it releases the row locks. Changes that every open snapshot shows are not
//! needed, and are dropped when there are many.
//!
//! # Invariants
//!
//! 1. A move is dropped only if every snapshot that is open or can be opened shows it, or together
//!    with all others, which sets [`KeyChanges::lost`] to the commit that is being added.
//!
//! `Recent::check` asserts the number of moves, in debug builds.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use smallvec::SmallVec;

use crate::cell::Sequence;
use crate::descriptor::TableId;
use crate::error::Result;
use crate::lock::LockKey;

/// Number of moves from which unneeded ones are dropped.
const PRUNE_AT: usize = 1024;
/// Maximal number of moves.
const MOVES_MAX: usize = 200_000;

/// A key change of an open transaction.
pub(crate) struct StagedKeyChange {
    /// Number of edits staged before it.
    pub(crate) before: u64,
    /// Number of edits staged when it was recorded.
    pub(crate) place: u64,
    /// The table of the row.
    pub(crate) table: TableId,
    /// The old key.
    pub(crate) from: Vec<u8>,
    /// The new key.
    pub(crate) to: Vec<u8>,
}

/// The net key change of a row by a transaction, as others see it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NetKeyChange {
    /// The table of the row.
    pub(crate) table: TableId,
    /// The key that is visible to others.
    pub(crate) from: Vec<u8>,
    /// The new key; `None` if the row was deleted under another key.
    pub(crate) to: Option<Vec<u8>>,
}

/// The key changes of recent commits.
#[derive(Default)]
pub(crate) struct KeyChanges {
    /// Number of rows with moves: zero lets look-ups skip the mutex.
    count: AtomicUsize,
    recent: Mutex<Recent>,
}

#[derive(Default)]
struct Recent {
    by_row: HashMap<LockKey, SmallVec<[Move; 1]>>,
    prune_at: usize,
    /// Moves up to here may have been dropped.
    lost: Sequence,
}

struct Move {
    at: Sequence,
    /// `None` if the row was deleted under the new key.
    to: Option<Box<[u8]>>,
}

/// The commit that changed a key, and the new key; `None` if the row was deleted there.
pub(crate) type NextMove = (Sequence, Option<Vec<u8>>);

impl KeyChanges {
    /// Returns whether no move is retained.
    pub(crate) fn is_empty(&self) -> bool {
        self.count.load(Ordering::Acquire) == 0
    }

    /// Adds the key changes of a commit. `horizon` returns the oldest snapshot that is open or
    /// can be opened.
    pub(crate) fn add(
        &self,
        moved: Vec<NetKeyChange>,
        at: Sequence,
        horizon: impl FnOnce() -> Sequence,
    ) {
        let mut recent = self.recent.lock();
        debug_assert!(!at.is_staged(), "moves are published with their commit");
        let mut added = 0;
        for NetKeyChange { table, from, to } in moved {
            let key = LockKey::new(table, &from);
            recent.by_row.entry(key).or_default().push(Move { at, to: to.map(Vec::into) });
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
            // Nonzero, so that look-ups check `lost`.
            count = 1;
        }
        recent.check(count);
        self.count.store(count, Ordering::Release);
    }

    /// Returns the new key of a row from the first commit after `after` that changed it.
    pub(crate) fn next(&self, row: LockKey, after: Sequence) -> Option<NextMove> {
        let recent = self.recent.lock();
        let moves = recent.by_row.get(&row)?.iter().filter(|one| one.at > after);
        moves.min_by_key(|one| one.at).map(|one| (one.at, one.to.as_deref().map(<[u8]>::to_vec)))
    }

    /// Returns the commit up to which moves may have been dropped.
    pub(crate) fn lost(&self) -> Sequence {
        self.recent.lock().lost
    }
}

impl Recent {
    /// Asserts, in debug builds, that `count` is the number of moves, or one more since all were
    /// dropped.
    fn check(&self, count: usize) {
        if cfg!(debug_assertions) && count <= PRUNE_AT {
            let held: usize = self.by_row.values().map(SmallVec::len).sum();
            let dropped = usize::from(self.lost > Sequence(0));
            assert!((held..=held + dropped).contains(&count), "{count} moves, {held} are held");
            assert!(self.by_row.values().all(|moves| !moves.is_empty()), "a row without moves");
        }
    }
}

/// The key of a row that is visible to others, if any, and the position of its last key change.
type KnownRow = (Option<Vec<u8>>, u64);

/// Computes the net key changes of a transaction. `deletion_after` returns the position of the
/// first deletion of a row that was staged after a position.
pub(crate) fn net(
    staged: Vec<StagedKeyChange>,
    deletion_after: impl Fn(TableId, &[u8], u64) -> Result<Option<u64>>,
) -> Result<Vec<NetKeyChange>> {
    let mut known: HashMap<(TableId, Vec<u8>), KnownRow> = HashMap::new();
    let mut deleted: Vec<(TableId, Vec<u8>)> = Vec::new();
    for StagedKeyChange { before, place, table, from, to } in staged {
        let row = (table, from);
        let (origin, since) = match known.remove(&row) {
            Some((origin, since)) => (origin, since),
            None => (Some(row.1.clone()), 0),
        };
        let gone = deletion_after(table, &row.1, since)?.is_some_and(|gone| gone <= before);
        // The row that had the key was deleted, so this one is new.
        let origin = match gone {
            true => {
                deleted.extend(origin.filter(|_| since > 0).map(|origin| (table, origin)));
                None
            }
            false => origin,
        };
        let other = known.insert((table, to), (origin, place));
        deleted.extend(other.and_then(|(origin, _)| Some((table, origin?))));
    }
    let mut moved = Vec::with_capacity(known.len());
    for ((table, to), (origin, since)) in known {
        match origin {
            Some(origin) if deletion_after(table, &to, since)?.is_some() => {
                deleted.push((table, origin));
            }
            Some(from) if from != to => moved.push(NetKeyChange { table, from, to: Some(to) }),
            _ => {}
        }
    }
    moved.extend(deleted.into_iter().map(|(table, from)| NetKeyChange { table, from, to: None }));
    Ok(moved)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: TableId = TableId(1);

    fn staged(from: &str, to: &str) -> StagedKeyChange {
        StagedKeyChange { before: 0, place: 1, table: TABLE, from: from.into(), to: to.into() }
    }

    /// Returns the net moves and deletions, in order: `a>b` and `-a`.
    fn outcome(steps: &[&str]) -> Vec<String> {
        let (mut moves, mut deletions) = (Vec::new(), Vec::new());
        for (at, step) in steps.iter().enumerate() {
            let before = 10 * at as u64;
            match step.split_once('>') {
                Some((from, to)) => {
                    deletions.push((from.as_bytes(), before + 1));
                    moves.push(StagedKeyChange { before, place: before + 2, ..staged(from, to) });
                }
                None => deletions.push((&step.as_bytes()[1..], before + 1)),
            }
        }
        let deletion_after = |_, row: &[u8], after| {
            let of_row = deletions.iter().filter(|(of, at)| *of == row && *at > after);
            Ok(of_row.map(|(_, at)| *at).min())
        };
        let shown = |one: NetKeyChange| {
            let to = one.to.map_or("gone".into(), |to| String::from_utf8(to).unwrap());
            format!("{}>{to}", String::from_utf8(one.from).unwrap())
        };
        let mut found: Vec<String> =
            net(moves, deletion_after).unwrap().into_iter().map(shown).collect();
        found.sort();
        found
    }

    fn plain(staged: Vec<StagedKeyChange>) -> Vec<NetKeyChange> {
        net(staged, |_, _, _| Ok(None)).unwrap()
    }

    fn next(moves: &KeyChanges, row: &str, after: u64) -> Option<(u64, String)> {
        let found = moves.next(LockKey::new(TABLE, row.as_bytes()), Sequence(after));
        let shown =
            |to: Option<Vec<u8>>| to.map_or("gone".into(), |to| String::from_utf8(to).unwrap());
        found.map(|(at, to)| (at.0, shown(to)))
    }

    #[test]
    fn row_key_changes_are_followed_across_commits() {
        let moves = KeyChanges::default();
        assert!(moves.is_empty());
        moves.add(plain(vec![staged("a", "b")]), Sequence(5), || Sequence(0));
        moves.add(plain(vec![staged("c", "a")]), Sequence(6), || Sequence(0));
        moves.add(plain(vec![staged("a", "d")]), Sequence(7), || Sequence(0));
        assert_eq!(next(&moves, "a", 4), Some((5, "b".into())));
        // Another row had the key since.
        assert_eq!(next(&moves, "a", 5), Some((7, "d".into())));
        assert_eq!(next(&moves, "a", 7), None);
        assert_eq!(next(&moves, "b", 4), None);
        let gone = NetKeyChange { table: TABLE, from: b"d".to_vec(), to: None };
        moves.add(vec![gone], Sequence(8), || Sequence(0));
        assert_eq!(next(&moves, "d", 7), Some((8, "gone".into())));
    }

    #[test]
    fn key_changes_of_transaction_are_reduced_to_net_change() {
        assert_eq!(outcome(&["a>b"]), ["a>b"]);
        assert!(outcome(&["a>b", "b>a"]).is_empty());
        assert_eq!(outcome(&["a>b", "c>a", "b>c"]), ["a>c", "c>a"]);
        assert_eq!(outcome(&["a>b", "b>c", "d>b"]), ["a>c", "d>b"]);
    }

    #[test]
    fn row_deleted_under_new_key_is_recorded_as_deleted() {
        assert_eq!(outcome(&["a>b", "-b"]), ["a>gone"]);
        assert_eq!(outcome(&["a>b", "b>a", "-a"]), ["a>gone"]);
        assert_eq!(outcome(&["a>b", "-b", "c>b"]), ["a>gone", "c>b"]);
        assert_eq!(outcome(&["a>b", "b>c", "-c"]), ["a>gone"]);
        // Another row has the key by then.
        assert_eq!(outcome(&["a>b", "-b", "b>c"]), ["a>gone"]);
    }

    #[test]
    fn row_inserted_under_reused_key_is_not_followed() {
        assert!(outcome(&["-a", "a>b"]).is_empty());
        assert!(outcome(&["-a", "a>b", "b>c", "-c"]).is_empty());
        // A row that moves to the key of a deleted one is known.
        assert_eq!(outcome(&["-a", "b>a", "a>c"]), ["b>c"]);
    }

    #[test]
    fn key_changes_are_pruned_by_snapshot_horizon_and_limit() {
        let moves = KeyChanges::default();
        let many = |count: usize, prefix: &str| -> Vec<NetKeyChange> {
            let one = |row| staged(&format!("{prefix}{row}"), &format!("to {row}"));
            plain((0..count).map(one).collect())
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
