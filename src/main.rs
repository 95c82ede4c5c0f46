//! The `bennu` binary.

fn main() {}
