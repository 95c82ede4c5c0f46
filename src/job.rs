//! `bennu job`: offline tools for a data directory or a store file.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use store::Options;
use store::env::{Env, RealEnv};
use store::file::{DumpSpec, dump};
use store::salvage::{Salvaged, salvage};

use crate::command_line::Job;
use crate::database::Database;
use crate::error::{Error, Result};
use crate::machine_memory::MemoryBudget;

/// Runs a job, which prints its results to `out`.
///
/// # Errors
///
/// [`Error::Store`] if the directory or file is corrupt or cannot be read.
pub fn run(job: Job, out: &mut dyn Write) -> Result<()> {
    match job {
        Job::Storefile { file, blocks, cells } => {
            let spec = DumpSpec { blocks, cells };
            dump(Arc::new(RealEnv::default()), &file, spec, out).map_err(Error::Store)
        }
        Job::Salvage { data, to } => salvage_to(&data, &to, out),
    }
}

/// Salvages a directory, opens the copy, and prints the losses.
fn salvage_to(data: &Path, to: &Path, out: &mut dyn Write) -> Result<()> {
    let env: Arc<dyn Env> = Arc::new(RealEnv::default());
    let salvaged = salvage(&env, data, to)?;
    for loss in &salvaged.losses {
        writeln!(out, "lost: {loss}")?;
    }
    let Salvaged { tables, regions, files, cells, commits, losses } = &salvaged;
    writeln!(
        out,
        "copied: {tables} tables, {regions} regions, {cells} cells of {files} store files, \
         {commits} commits of the write-ahead log"
    )?;
    let options = Options { memory_bytes: MemoryBudget::of_machine().bytes, ..Options::default() };
    Database::open(to, options)?.shut_down()?;
    writeln!(out, "the copy can be opened: {}", to.display())?;
    if !losses.is_empty() {
        writeln!(out, "correct the indexes of tables that lost data: CHECK TABLE … REPAIR")?;
    }
    Ok(())
}
