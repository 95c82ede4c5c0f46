//! The mode of row-level security of a session.

/// The treatment of policies that apply to the role of a session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum RowSecurityMode {
    /// `row_security = on`: rows are filtered and checked.
    #[default]
    On,
    /// `row_security = off`: statements that policies apply to are rejected.
    Off,
    /// The session checks foreign keys as the owner of a table: FORCE has no effect.
    Integrity,
}
