//! Collations. All of them order text by its bytes, as `C` does.

/// A collation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Collation {
    /// `default`, the collation of the database.
    Default,
    /// `C`
    C,
    /// `POSIX`
    Posix,
    /// `ucs_basic`, from the SQL standard.
    UcsBasic,
    /// `C.utf8`, which is the default of the database.
    CUtf8,
}

impl Collation {
    /// All of them, in the order of their OIDs.
    pub const ALL: [Collation; 5] =
        [Collation::Default, Collation::C, Collation::Posix, Collation::UcsBasic, Collation::CUtf8];

    /// Returns its name, in schema `pg_catalog`.
    pub fn name(self) -> &'static str {
        match self {
            Collation::Default => "default",
            Collation::C => "C",
            Collation::Posix => "POSIX",
            Collation::UcsBasic => "ucs_basic",
            Collation::CUtf8 => "C.utf8",
        }
    }

    /// Returns its OID, which is PostgreSQL's.
    pub fn oid(self) -> u32 {
        match self {
            Collation::Default => 100,
            Collation::C => 950,
            Collation::Posix => 951,
            Collation::UcsBasic => 12_340,
            Collation::CUtf8 => 12_341,
        }
    }
}
