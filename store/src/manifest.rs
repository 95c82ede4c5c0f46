//! The manifest: which tables, regions and files are alive.
