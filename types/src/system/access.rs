//! Items of access control lists: `aclitem`.

use super::CatalogHandle;
use crate::datatype::RegKind;

/// The privileges of a role, and their grantor. Privileges are bits, in the order of
/// [`PRIVILEGES`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct AclItem {
    /// OID of the grantee, 0 for PUBLIC.
    pub(crate) grantee: u32,
    /// OID of the grantor.
    pub(crate) grantor: u32,
    pub(crate) privileges: u32,
    /// The privileges with grant option.
    pub(crate) grantable: u32,
}

/// The privileges: letters and names. Bits of stored sets are in this order, so new ones are
/// appended.
pub const PRIVILEGES: [(char, &str); 14] = [
    ('a', "INSERT"),
    ('r', "SELECT"),
    ('w', "UPDATE"),
    ('d', "DELETE"),
    ('D', "TRUNCATE"),
    ('x', "REFERENCES"),
    ('t', "TRIGGER"),
    ('X', "EXECUTE"),
    ('U', "USAGE"),
    ('C', "CREATE"),
    ('T', "TEMPORARY"),
    ('c', "CONNECT"),
    ('s', "SET"),
    ('A', "ALTER SYSTEM"),
];

impl AclItem {
    /// Returns the letters of all privileges.
    pub(crate) fn letters() -> impl Iterator<Item = char> {
        PRIVILEGES.iter().map(|(letter, _)| *letter)
    }

    /// Returns the bit of a letter.
    pub(crate) fn privilege(letter: char) -> Option<u32> {
        PRIVILEGES.iter().position(|(known, _)| *known == letter).map(|index| 1 << index)
    }

    /// Returns the bit of a name.
    pub(crate) fn privilege_named(name: &str) -> Option<u32> {
        let name = if name.eq_ignore_ascii_case("TEMP") { "TEMPORARY" } else { name };
        let found = PRIVILEGES.iter().position(|(_, known)| known.eq_ignore_ascii_case(name));
        found.map(|index| 1 << index)
    }

    /// Returns the names of the privileges, each with its grant option.
    pub(crate) fn names(self) -> impl Iterator<Item = (&'static str, bool)> {
        let held = PRIVILEGES.iter().enumerate().filter(move |(index, _)| self.has(*index));
        held.map(move |(index, (_, name))| (*name, self.grantable & 1 << index != 0))
    }

    fn has(self, index: usize) -> bool {
        self.privileges & 1 << index != 0
    }

    /// Returns the text form.
    pub(crate) fn text(self, system: &CatalogHandle) -> String {
        let name = |oid: u32| {
            let known = system.0.as_deref().and_then(|one| one.reg_name(RegKind::Role, oid));
            known.unwrap_or_else(|| oid.to_string())
        };
        let mut text = if self.grantee == 0 { String::new() } else { name(self.grantee) };
        text.push('=');
        for (index, (letter, _)) in PRIVILEGES.iter().enumerate() {
            if self.has(index) {
                text.push(*letter);
                text.push_str(if self.grantable & 1 << index != 0 { "*" } else { "" });
            }
        }
        text.push('/');
        text.push_str(&name(self.grantor));
        text
    }
}
