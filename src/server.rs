//! Placeholder for the seam: see the brief of the wire.
