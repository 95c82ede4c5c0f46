//! Lock modes, of rows and of tables, and which of them conflict.
//!
//! Rows are locked in four modes, each stronger than those before it, and tables in eight, which
//! have no such order: somebody may hold several of them. A row and a table are never one lock, so
//! that no mode of one kind meets one of the other.
//!
//! Source: PostgreSQL's `LockTupleMode` and `LOCKMODE` (lockdefs.h, `LockConflicts`).

/// Modes in which a row or a table is locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LockMode {
    /// The row is not to be deleted, nor its key changed: `FOR KEY SHARE`.
    KeyShared,
    /// The row is not to be changed: `FOR SHARE`.
    Shared,
    /// Somebody changes the row, but not its key: `FOR NO KEY UPDATE`.
    NoKeyExclusive,
    /// Somebody deletes the row or changes its key: `FOR UPDATE`.
    Exclusive,
    /// A mode of tables.
    Table(TableLockMode),
}

/// Modes in which a table is locked, as `LOCK TABLE` names them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TableLockMode {
    /// Somebody reads.
    AccessShare,
    /// Somebody locks rows.
    RowShare,
    /// Somebody writes.
    RowExclusive,
    /// Somebody changes the table beside writers.
    ShareUpdateExclusive,
    /// Nobody writes.
    Share,
    /// Nobody else writes or has it so.
    ShareRowExclusive,
    /// Others only read.
    Exclusive,
    /// Nobody else has it in any mode.
    AccessExclusive,
}

const fn set(modes: &[LockMode]) -> u16 {
    let (mut bits, mut at) = (0, 0);
    while at < modes.len() {
        bits |= 1 << modes[at].index();
        at += 1;
    }
    bits
}

/// The modes that conflict with each one, by index.
const CONFLICTS: [u16; LockMode::COUNT] = {
    use LockMode::{Exclusive as Alone, KeyShared, NoKeyExclusive, Shared, Table};
    use TableLockMode::{
        AccessExclusive, AccessShare, Exclusive, RowExclusive, RowShare, Share, ShareRowExclusive,
        ShareUpdateExclusive,
    };
    let whole = set(&[Table(AccessExclusive)]);
    let lockers = whole | set(&[Table(Exclusive)]);
    let changers = lockers | set(&[Table(ShareRowExclusive)]);
    let writers = set(&[Table(RowExclusive)]);
    let beside = set(&[Table(ShareUpdateExclusive)]);
    let share = set(&[Table(Share)]);
    [
        set(&[Alone]),
        set(&[NoKeyExclusive, Alone]),
        set(&[Shared, NoKeyExclusive, Alone]),
        set(&[KeyShared, Shared, NoKeyExclusive, Alone]),
        whole,
        lockers,
        changers | share,
        changers | share | beside,
        changers | beside | writers,
        changers | share | beside | writers,
        changers | share | beside | writers | set(&[Table(RowShare)]),
        changers | share | beside | writers | set(&[Table(RowShare), Table(AccessShare)]),
    ]
};

impl LockMode {
    /// How many modes there are.
    pub const COUNT: usize = 12;
    /// All modes, by index: those of rows first, the weakest before the others.
    pub const ALL: [LockMode; LockMode::COUNT] = {
        use LockMode::Table;
        [
            LockMode::KeyShared,
            LockMode::Shared,
            LockMode::NoKeyExclusive,
            LockMode::Exclusive,
            Table(TableLockMode::AccessShare),
            Table(TableLockMode::RowShare),
            Table(TableLockMode::RowExclusive),
            Table(TableLockMode::ShareUpdateExclusive),
            Table(TableLockMode::Share),
            Table(TableLockMode::ShareRowExclusive),
            Table(TableLockMode::Exclusive),
            Table(TableLockMode::AccessExclusive),
        ]
    };

    /// Returns its place in [`LockMode::ALL`].
    pub const fn index(self) -> usize {
        match self {
            LockMode::KeyShared => 0,
            LockMode::Shared => 1,
            LockMode::NoKeyExclusive => 2,
            LockMode::Exclusive => 3,
            LockMode::Table(mode) => 4 + mode as usize,
        }
    }

    /// Returns whether two transactions cannot hold a lock in these modes at the same time.
    pub fn conflicts_with(self, other: LockMode) -> bool {
        ModeSet::of(other).conflicts_with(self)
    }

    /// Returns whether it keeps out every other mode of its kind.
    pub(crate) fn is_alone(self) -> bool {
        matches!(self, LockMode::Exclusive | LockMode::Table(TableLockMode::AccessExclusive))
    }

    /// Returns the modes that conflict with it.
    pub(crate) fn conflicting(self) -> impl Iterator<Item = LockMode> {
        ModeSet(CONFLICTS[self.index()]).iter()
    }
}

/// Modes in which somebody has one lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ModeSet(u16);

impl ModeSet {
    /// Returns a set of one.
    pub(crate) fn of(mode: LockMode) -> ModeSet {
        ModeSet(1 << mode.index())
    }

    /// Returns it as a number.
    pub(crate) fn bits(self) -> u16 {
        self.0
    }

    /// Returns the set of a number.
    pub(crate) fn from_bits(bits: u16) -> ModeSet {
        ModeSet(bits)
    }

    /// Returns whether there are modes of rows only.
    pub(crate) fn is_of_row(self) -> bool {
        self.0 <= 0b1111
    }

    /// Adds a mode.
    pub(crate) fn add(&mut self, mode: LockMode) {
        self.0 |= 1 << mode.index();
    }

    /// Takes a mode away.
    pub(crate) fn remove(&mut self, mode: LockMode) {
        self.0 &= !(1 << mode.index());
    }

    /// Returns whether there is none.
    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns whether whoever has these has this mode, too: by itself, or a row in a stronger one.
    pub(crate) fn covers(self, mode: LockMode) -> bool {
        let at = mode.index();
        match mode {
            LockMode::Table(_) => self.0 & 1 << at != 0,
            _ => self.0 >> at != 0,
        }
    }

    /// Returns whether one of them conflicts with a mode.
    pub(crate) fn conflicts_with(self, mode: LockMode) -> bool {
        self.0 & CONFLICTS[mode.index()] != 0
    }

    /// Returns the modes, the weakest of a row first.
    pub(crate) fn iter(self) -> impl Iterator<Item = LockMode> {
        LockMode::ALL.into_iter().filter(move |mode| self.0 & 1 << mode.index() != 0)
    }

    /// Returns the modes that count: of a row the strongest, of a table all.
    pub(crate) fn shown(self) -> impl Iterator<Item = LockMode> {
        let strongest = self.iter().last();
        self.iter()
            .filter(move |mode| matches!(mode, LockMode::Table(_)) || Some(*mode) == strongest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conflicts_are_mutual_and_stay_within_a_kind() {
        for one in LockMode::ALL {
            assert_eq!(LockMode::ALL[one.index()], one);
            for other in LockMode::ALL {
                assert_eq!(
                    one.conflicts_with(other),
                    other.conflicts_with(one),
                    "{one:?} {other:?}"
                );
                let is_table = |mode| matches!(mode, LockMode::Table(_));
                assert!(!one.conflicts_with(other) || is_table(one) == is_table(other));
            }
        }
    }

    #[test]
    fn a_stronger_mode_of_a_row_covers_the_weaker_ones() {
        let shared = ModeSet::of(LockMode::Shared);
        assert!(shared.covers(LockMode::KeyShared) && !shared.covers(LockMode::NoKeyExclusive));
        let table = ModeSet::of(LockMode::Table(TableLockMode::Share));
        assert!(!table.covers(LockMode::Table(TableLockMode::AccessShare)));
    }
}
