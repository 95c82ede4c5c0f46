//! Quotas in the catalog: one row for each table, role and database that has one.
//!
//! The key is `qt` and the table's id, `qr` and the role's name, or `qd` and the database's number;
//! the only cell holds the limits
//! ([`QuotaLimits`](store::quota::QuotaLimits)) as tagged fields. A role is a name
//! that clients connect as; it need not have been created.

use store::TableId;

use crate::error::{Error, Result};

/// The key prefix of quotas.
pub const QUOTA_PREFIX: &[u8] = b"q";

/// The table, role or database of a quota.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum QuotaSubject {
    /// A table with its indexes.
    Table(TableId),
    /// A role.
    Role(String),
    /// A database, by its number.
    Database(u32),
}

impl QuotaSubject {
    /// Returns the key of its row.
    pub fn key(&self) -> Vec<u8> {
        match self {
            QuotaSubject::Table(table) => {
                [QUOTA_PREFIX, b"t", table.0.to_be_bytes().as_slice()].concat()
            }
            QuotaSubject::Role(name) => [QUOTA_PREFIX, b"r", name.as_bytes()].concat(),
            QuotaSubject::Database(number) => {
                [QUOTA_PREFIX, b"d", number.to_be_bytes().as_slice()].concat()
            }
        }
    }

    /// Returns the subject of a key without its prefix.
    ///
    /// # Errors
    ///
    /// XX001 if the key is damaged.
    pub fn of_key(key: &[u8]) -> Result<QuotaSubject> {
        let subject = match key.split_at_checked(1) {
            Some((b"t", id)) => {
                let id = id.try_into().ok().map(u32::from_be_bytes);
                id.map(|id| QuotaSubject::Table(TableId(id)))
            }
            Some((b"d", number)) => {
                let number = number.try_into().ok().map(u32::from_be_bytes);
                number.map(QuotaSubject::Database)
            }
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
        for subject in [QuotaSubject::Table(TableId(1_234)), role, QuotaSubject::Database(5)] {
            let key = subject.key();
            let rest = key.strip_prefix(QUOTA_PREFIX).unwrap();
            assert_eq!(QuotaSubject::of_key(rest).unwrap(), subject);
        }
        for bad in [&b""[..], b"t123", b"r\xff", b"x"] {
            assert_eq!(QuotaSubject::of_key(bad).unwrap_err().sqlstate, "XX001");
        }
    }
}
