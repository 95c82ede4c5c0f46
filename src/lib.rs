//! The server: sessions, the Postgres protocol, COPY, the demo and the command line.

#![forbid(unsafe_code)]
