//! `bennu job`: work on a data directory or on a file of it, without a server.

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Subcommand;
use store::env::RealEnv;
use store::file::{DumpSpec, dump};

use crate::error::{Error, Result};

/// A job and what it works on.
#[derive(Debug, Subcommand)]
pub enum Job {
    /// Check a store file and show what is in it
    Storefile {
        /// The file
        file: PathBuf,
        /// Show each block
        #[arg(long)]
        blocks: bool,
        /// Show each cell
        #[arg(long)]
        cells: bool,
    },
}

/// Runs a job, which writes its findings to `out`.
///
/// # Errors
///
/// [`Error::Store`] if what it works on is corrupt or cannot be read.
pub fn run(job: Job, out: &mut dyn Write) -> Result<()> {
    match job {
        Job::Storefile { file, blocks, cells } => {
            let spec = DumpSpec { blocks, cells };
            dump(Arc::new(RealEnv::default()), &file, spec, out).map_err(Error::Store)
        }
    }
}
