//! Privileges, and the kinds of objects that have them, each declared once.
//!
//! Parsing, checks, defaults and the texts of access control lists are derived from the tables
//! here. A set of privileges is bits in the order of [`PRIVILEGES`], which stored records and
//! `aclitem` share; it never changes.

pub use types::system::PRIVILEGES;

/// INSERT
pub const INSERT: u32 = 1;
/// SELECT
pub const SELECT: u32 = 1 << 1;
/// UPDATE
pub const UPDATE: u32 = 1 << 2;
/// DELETE
pub const DELETE: u32 = 1 << 3;
/// TRUNCATE
pub const TRUNCATE: u32 = 1 << 4;
/// REFERENCES
pub const REFERENCES: u32 = 1 << 5;
/// TRIGGER
pub const TRIGGER: u32 = 1 << 6;
/// EXECUTE
pub const EXECUTE: u32 = 1 << 7;
/// USAGE
pub const USAGE: u32 = 1 << 8;
/// CREATE
pub const CREATE: u32 = 1 << 9;
/// TEMPORARY
pub const TEMPORARY: u32 = 1 << 10;
/// CONNECT
pub const CONNECT: u32 = 1 << 11;

/// The properties that all objects of a kind have in common.
#[derive(Debug)]
pub struct PrivilegeKindDescriptor {
    /// The noun in messages.
    pub noun: &'static str,
    /// The letter in `acldefault` and `pg_default_acl`.
    pub letter: char,
    /// The letters of its privileges, which the owner has.
    pub all: &'static str,
    /// The letters of those that PUBLIC has by default.
    pub public: &'static str,
}

/// The kind of an object that has privileges.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PrivilegeKind {
    /// Tables, views and materialized views.
    Table,
    /// Columns of those.
    Column,
    /// Sequences.
    Sequence,
    /// The database.
    Database,
    /// Functions and procedures.
    Function,
    /// Schemas.
    Schema,
    /// Types and domains.
    Type,
    /// Languages of functions.
    Language,
}

impl PrivilegeKind {
    /// All kinds.
    pub const ALL: [PrivilegeKind; 8] = {
        use PrivilegeKind::{Column, Database, Function, Language, Schema, Sequence, Table, Type};
        [Table, Column, Sequence, Database, Function, Schema, Type, Language]
    };

    /// Returns what all objects of the kind have in common.
    pub const fn descriptor(self) -> &'static PrivilegeKindDescriptor {
        macro_rules! kind {
            ($noun:literal, $letter:literal, $all:literal, $public:literal) => {
                &PrivilegeKindDescriptor {
                    noun: $noun,
                    letter: $letter,
                    all: $all,
                    public: $public,
                }
            };
        }
        match self {
            PrivilegeKind::Table => kind!("table", 'r', "arwdDxt", ""),
            PrivilegeKind::Column => kind!("column", 'c', "arwx", ""),
            PrivilegeKind::Sequence => kind!("sequence", 's', "rwU", ""),
            PrivilegeKind::Database => kind!("database", 'd', "CTc", "Tc"),
            PrivilegeKind::Function => kind!("function", 'f', "X", "X"),
            PrivilegeKind::Schema => kind!("schema", 'n', "UC", ""),
            PrivilegeKind::Type => kind!("type", 'T', "U", "U"),
            PrivilegeKind::Language => kind!("language", 'l', "U", "U"),
        }
    }

    /// Returns the kind of a letter.
    pub fn of_letter(letter: char) -> Option<PrivilegeKind> {
        PrivilegeKind::ALL.into_iter().find(|kind| kind.descriptor().letter == letter)
    }

    /// Returns all privileges of the kind.
    pub fn all(self) -> u32 {
        bits(self.descriptor().all)
    }

    /// Returns the privileges that PUBLIC has by default.
    pub fn public(self) -> u32 {
        bits(self.descriptor().public)
    }
}

/// Returns the privileges of letters.
fn bits(letters: &str) -> u32 {
    let bit = |letter| PRIVILEGES.iter().position(|(known, _)| *known == letter);
    letters.chars().filter_map(bit).fold(0, |bits, at| bits | 1 << at)
}

/// Returns the privilege of a name in any case; `TEMP` is TEMPORARY.
pub fn privilege_named(name: &str) -> Option<u32> {
    let name = if name.eq_ignore_ascii_case("temp") { "TEMPORARY" } else { name };
    let found = PRIVILEGES.iter().position(|(_, known)| known.eq_ignore_ascii_case(name));
    found.map(|at| 1 << at)
}

/// Returns the names of privileges.
pub fn names_of(privileges: u32) -> impl Iterator<Item = &'static str> {
    let has = move |at: &usize| privileges & 1 << at != 0;
    (0..PRIVILEGES.len()).filter(has).map(|at| PRIVILEGES[at].1)
}

/// The privileges that a role has granted to a role.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AclRecord {
    /// The number of the role that has them; 0 for PUBLIC.
    pub grantee: u32,
    /// The number of the role that granted them.
    pub grantor: u32,
    /// The privileges.
    pub privileges: u32,
    /// Those WITH GRANT OPTION.
    pub grantable: u32,
}

/// The list of the privileges on an object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Acl(pub Vec<AclRecord>);

/// A REVOKE that would leave privileges without a grantor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DependentPrivileges;

impl Acl {
    /// Returns the list that an object of a kind has by default.
    pub fn default_of(kind: PrivilegeKind, owner: u32) -> Acl {
        let item =
            |grantee, privileges| AclRecord { grantee, grantor: owner, privileges, grantable: 0 };
        let lists = [item(0, kind.public()), item(owner, kind.all())];
        Acl(lists.into_iter().filter(|item| item.privileges != 0).collect())
    }

    /// Returns the privileges and grant options of some roles, without those of the owner.
    pub fn held_by(&self, is_held: impl Fn(u32) -> bool) -> (u32, u32) {
        let items = self.0.iter().filter(|item| item.grantee == 0 || is_held(item.grantee));
        items.fold((0, 0), |(held, options), item| {
            // PUBLIC has no grant options.
            let grantable = if item.grantee == 0 { 0 } else { item.grantable };
            (held | item.privileges, options | grantable)
        })
    }

    /// Adds privileges.
    pub fn grant(&mut self, new: AclRecord) {
        let same = |one: &&mut AclRecord| (one.grantee, one.grantor) == (new.grantee, new.grantor);
        match self.0.iter_mut().find(same) {
            Some(known) => {
                known.privileges |= new.privileges;
                known.grantable |= new.grantable;
            }
            None => self.0.push(new),
        }
    }

    /// Removes privileges, or their grant options only, and with CASCADE those that the grantee has
    /// granted with them.
    ///
    /// # Errors
    ///
    /// If there are such privileges, without CASCADE.
    pub fn revoke(
        &mut self,
        removed: &AclRecord,
        (owner, cascade): (u32, bool),
    ) -> Result<(), DependentPrivileges> {
        let mut lost = 0;
        for item in &mut self.0 {
            if (item.grantee, item.grantor) == (removed.grantee, removed.grantor) {
                let options = removed.privileges | removed.grantable;
                lost |= item.grantable & options;
                item.grantable &= !options;
                item.privileges &= !removed.privileges;
            }
        }
        self.0.retain(|item| item.privileges != 0 || item.grantable != 0);
        // What the grantee may still grant by others does not end.
        let (_, left) = self.held_by(|role| role == removed.grantee);
        self.end_grants_of(removed.grantee, lost & !left, (owner, cascade))
    }

    /// Removes the privileges that a role has granted without a grant option any more.
    fn end_grants_of(
        &mut self,
        grantor: u32,
        lost: u32,
        (owner, cascade): (u32, bool),
    ) -> Result<(), DependentPrivileges> {
        if lost == 0 || grantor == owner {
            return Ok(());
        }
        let dependent = |item: &&AclRecord| item.grantor == grantor && item.privileges & lost != 0;
        while let Some(item) = self.0.iter().find(dependent) {
            if !cascade {
                return Err(DependentPrivileges);
            }
            let privileges = item.privileges & lost;
            let removed = AclRecord { grantee: item.grantee, grantor, privileges, grantable: 0 };
            self.revoke(&removed, (owner, cascade))?;
        }
        Ok(())
    }

    /// Returns whether a role may grant privileges if another role gets the grant option: otherwise
    /// its right would depend on that of the other.
    pub fn stays_grantable(&self, new: &AclRecord, owner: u32) -> bool {
        if new.grantor == owner || new.grantable == 0 {
            return true;
        }
        let mut without = self.clone();
        let granted: Vec<AclRecord> =
            self.0.iter().filter(|item| item.grantee == new.grantee).cloned().collect();
        for item in granted {
            let removed = AclRecord { privileges: 0, grantable: new.grantable, ..item };
            if without.revoke(&removed, (owner, true)).is_err() {
                return false;
            }
        }
        let (_, left) = without.held_by(|role| role == new.grantor);
        left & new.grantable == new.grantable
    }

    /// Gives what the owner has and has granted to a new owner.
    pub fn change_owner(&mut self, from: u32, to: u32) {
        let items = std::mem::take(&mut self.0);
        for mut item in items {
            for role in [&mut item.grantee, &mut item.grantor] {
                if *role == from {
                    *role = to;
                }
            }
            self.grant(item);
        }
    }

    /// Returns the list in the order of grantees and grantors.
    #[must_use]
    pub fn sorted(mut self) -> Acl {
        self.0.sort_by_key(|item| (item.grantee, item.grantor));
        self
    }
}

/// The number of PUBLIC in lists of privileges.
pub const PUBLIC_ROLE: u32 = 0;

#[cfg(test)]
mod tests {
    use super::*;

    fn item(grantee: u32, grantor: u32, privileges: u32, grantable: u32) -> AclRecord {
        AclRecord { grantee, grantor, privileges, grantable }
    }

    #[test]
    fn privileges_of_a_kind_are_known_letters() {
        for kind in PrivilegeKind::ALL {
            let descriptor = kind.descriptor();
            assert_eq!(kind.all().count_ones() as usize, descriptor.all.len(), "{kind:?}");
            assert_eq!(kind.public() & !kind.all(), 0, "{kind:?}");
        }
        assert_eq!((SELECT, EXECUTE), (bits("r"), bits("X")));
        assert_eq!((TEMPORARY, CONNECT), (bits("T"), bits("c")));
        assert_eq!(privilege_named("temp"), Some(TEMPORARY));
    }

    #[test]
    fn revoke_ends_grants_that_depend_on_it() {
        let mut acl = Acl::default_of(PrivilegeKind::Table, 1);
        acl.grant(item(2, 1, SELECT, SELECT));
        acl.grant(item(3, 2, SELECT, SELECT));
        acl.grant(item(4, 3, SELECT, 0));
        let removed = item(2, 1, SELECT, 0);
        assert_eq!(acl.clone().revoke(&removed, (1, false)), Err(DependentPrivileges));
        let mut of_others = acl.clone();
        of_others.grant(item(2, 5, SELECT, SELECT));
        assert_eq!(of_others.revoke(&removed, (1, false)), Ok(()));
        assert_eq!(acl.revoke(&removed, (1, true)), Ok(()));
        assert_eq!(acl, Acl::default_of(PrivilegeKind::Table, 1));
    }

    #[test]
    fn grant_option_is_not_granted_back() {
        let mut acl = Acl::default_of(PrivilegeKind::Table, 1);
        acl.grant(item(2, 1, SELECT, SELECT));
        acl.grant(item(3, 2, SELECT, SELECT));
        assert!(!acl.stays_grantable(&item(2, 3, SELECT, SELECT), 1));
        assert!(acl.stays_grantable(&item(4, 3, SELECT, SELECT), 1));
        acl.change_owner(1, 7);
        assert_eq!(acl.0[0].grantee, 7);
    }
}
