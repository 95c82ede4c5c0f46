//! Quotas in the catalog: one row for each table, schema, role and database that has one.
//!
//! The key is `qt` and the table's id, `qs` and the schema's number, `qr` and the role's name, or
//! `qd` and the database's number; the only cell holds the limits
//! ([`QuotaLimits`](store::quota::QuotaLimits)) as tagged fields.

use store::TableId;

use crate::error::{Error, Result};

/// The key prefix of quotas.
pub const QUOTA_PREFIX: &[u8] = b"q";

/// The table, schema, role or database of a quota.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum QuotaSubject {
    /// A table with its indexes.
    Table(TableId),
    /// The tables of a schema, by its number.
    Schema(u32),
    /// A role.
    Role(String),
    /// A database, by its number.
    Database(u32),
}

impl QuotaSubject {
    /// Returns the key of its row.
    pub fn key(&self) -> Vec<u8> {
        let numbered = |letter: &[u8], number: u32| {
            [QUOTA_PREFIX, letter, number.to_be_bytes().as_slice()].concat()
        };
        match self {
            QuotaSubject::Table(table) => numbered(b"t", table.0),
            QuotaSubject::Schema(number) => numbered(b"s", *number),
            QuotaSubject::Role(name) => [QUOTA_PREFIX, b"r", name.as_bytes()].concat(),
            QuotaSubject::Database(number) => numbered(b"d", *number),
        }
    }

    /// Returns the subject of a key without its prefix.
    ///
    /// # Errors
    ///
    /// XX001 if the key is damaged.
    pub fn of_key(key: &[u8]) -> Result<QuotaSubject> {
        let number = |bytes: &[u8]| bytes.try_into().ok().map(u32::from_be_bytes);
        let subject = match key.split_at_checked(1) {
            Some((b"t", id)) => number(id).map(|id| QuotaSubject::Table(TableId(id))),
            Some((b"s", schema)) => number(schema).map(QuotaSubject::Schema),
            Some((b"d", database)) => number(database).map(QuotaSubject::Database),
            Some((b"r", name)) => {
                let name = std::str::from_utf8(name).ok();
                name.map(|name| QuotaSubject::Role(name.to_owned()))
            }
            _ => None,
        };
        subject.ok_or_else(|| err!(DATA_CORRUPTED: "damaged key of a quota in the catalog"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quota_subjects_round_trip() {
        let role = QuotaSubject::Role("ré".to_owned());
        let numbered = [QuotaSubject::Schema(7), QuotaSubject::Database(5)];
        let table = QuotaSubject::Table(TableId(1_234));
        for subject in [table, role].into_iter().chain(numbered) {
            let key = subject.key();
            let rest = key.strip_prefix(QUOTA_PREFIX).unwrap();
            assert_eq!(QuotaSubject::of_key(rest).unwrap(), subject);
        }
        for bad in [&b""[..], b"t123", b"r\xff", b"x"] {
            assert_eq!(QuotaSubject::of_key(bad).unwrap_err().sqlstate, "XX001");
        }
    }
}
