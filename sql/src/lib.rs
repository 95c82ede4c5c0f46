//! SQL text in, rows out: parser, catalog, binder, planner, executor.

#![forbid(unsafe_code)]
