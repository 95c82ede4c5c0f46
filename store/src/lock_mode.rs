//! Lock modes of rows and tables, and their conflict table.
//!
//! Rows have four modes, each stronger than the ones before it. Tables have eight, which have no
//! such order: a transaction may hold several of them. A lock is either of a row or of a table,
//! so modes of the two kinds never meet.
//!
//! Source: PostgreSQL's `LockTupleMode` and `LOCKMODE` (lockdefs.h, `LockConflicts`).

/// Modes in which a row or a table is locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LockMode {
    /// The row must not be deleted, nor its key changed: `FOR KEY SHARE`.
    KeyShared,
    /// The row must not be changed: `FOR SHARE`.
    Shared,
    /// The holder changes the row, but not its key: `FOR NO KEY UPDATE`.
    NoKeyExclusive,
    /// The holder deletes the row or changes its key: `FOR UPDATE`.
    Exclusive,
    /// A mode of tables.
    Table(TableLockMode),
}

/// Modes of table locks, named as in `LOCK TABLE`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TableLockMode {
    /// The holder reads.
    AccessShare,
    /// The holder locks rows.
    RowShare,
    /// The holder writes.
    RowExclusive,
    /// The holder changes the table concurrently with writers.
    ShareUpdateExclusive,
    /// No transaction may write.
    Share,
    /// No other transaction may write or hold this mode.
    ShareRowExclusive,
    /// Others may only read.
    Exclusive,
    /// No other transaction may hold any mode.
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
    /// Number of modes.
    pub const COUNT: usize = 12;
    /// All modes, by index: those of rows first, in ascending strength.
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

    /// Returns its index in [`LockMode::ALL`].
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

    /// Returns whether it conflicts with every other mode of its kind.
    pub(crate) fn is_alone(self) -> bool {
        matches!(self, LockMode::Exclusive | LockMode::Table(TableLockMode::AccessExclusive))
    }

    /// Returns the modes that conflict with it.
    pub(crate) fn conflicting(self) -> impl Iterator<Item = LockMode> {
        ModeSet(CONFLICTS[self.index()]).iter()
    }
}

const _: () = {
    let (mut one, rows) = (0, 0b1111);
    while one < LockMode::COUNT {
        assert!(LockMode::ALL[one].index() == one, "the modes are in the order of their indexes");
        let is_of_row = 1 << one & rows != 0;
        let allowed = if is_of_row { rows } else { !rows };
        assert!(CONFLICTS[one] & !allowed == 0, "modes of rows and tables never meet");
        let mut other = 0;
        while other < LockMode::COUNT {
            let conflicts = CONFLICTS[one] >> other & 1;
            assert!(conflicts == CONFLICTS[other] >> one & 1, "conflicts are mutual");
            other += 1;
        }
        one += 1;
    }
};

/// Set of modes in which one owner holds a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ModeSet(u16);

impl ModeSet {
    /// Returns a set with one mode.
    pub(crate) fn of(mode: LockMode) -> ModeSet {
        ModeSet(1 << mode.index())
    }

    /// Returns the set as a bit mask.
    pub(crate) fn bits(self) -> u16 {
        self.0
    }

    /// Returns the set of a bit mask.
    pub(crate) fn from_bits(bits: u16) -> ModeSet {
        ModeSet(bits)
    }

    /// Returns whether all modes are of rows.
    pub(crate) fn is_of_row(self) -> bool {
        self.0 <= 0b1111
    }

    /// Adds a mode.
    pub(crate) fn add(&mut self, mode: LockMode) {
        self.0 |= 1 << mode.index();
    }

    /// Removes a mode.
    pub(crate) fn remove(&mut self, mode: LockMode) {
        self.0 &= !(1 << mode.index());
    }

    /// Returns whether the set is empty.
    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns whether the set includes a mode, or a stronger one of a row.
    pub(crate) fn covers(self, mode: LockMode) -> bool {
        let at = mode.index();
        match mode {
            LockMode::Table(_) => self.0 & 1 << at != 0,
            _ => self.0 >> at != 0,
        }
    }

    /// Returns whether a mode in the set conflicts with `mode`.
    pub(crate) fn conflicts_with(self, mode: LockMode) -> bool {
        self.0 & CONFLICTS[mode.index()] != 0
    }

    /// Returns the modes, those of a row in ascending strength.
    pub(crate) fn iter(self) -> impl Iterator<Item = LockMode> {
        LockMode::ALL.into_iter().filter(move |mode| self.0 & 1 << mode.index() != 0)
    }

    /// Returns the effective modes: of a row the strongest, of a table all.
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
    fn lock_conflicts_are_symmetric_within_kind() {
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
    fn stronger_row_lock_covers_weaker_modes() {
        let shared = ModeSet::of(LockMode::Shared);
        assert!(shared.covers(LockMode::KeyShared) && !shared.covers(LockMode::NoKeyExclusive));
        let table = ModeSet::of(LockMode::Table(TableLockMode::Share));
        assert!(!table.covers(LockMode::Table(TableLockMode::AccessShare)));
    }
}
