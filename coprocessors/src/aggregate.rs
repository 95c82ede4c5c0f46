//! The aggregate endpoint: partial aggregates of one region.
