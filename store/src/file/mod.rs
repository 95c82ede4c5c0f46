//! Store files: immutable, sorted, checksummed.
