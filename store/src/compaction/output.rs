//! Output of a compaction: runs, divided into files of a bounded size at row boundaries.

use std::path::PathBuf;
use std::sync::Arc;

use crate::cell::{KeyParts, Sequence};
use crate::compaction::rewrite::Sink;
use crate::descriptor::{FamilyDescriptor, FileId, FileIdentity};
use crate::env::Env;
use crate::error::Result;
use crate::file::FileWriter;

/// Division of the output.
#[derive(Debug, Clone)]
pub struct OutputSpec {
    /// A run has the cells up to and including each of these sequences; the last one the rest.
    /// Ascending.
    pub cuts: Vec<Sequence>,
    /// Size at which a file is closed once its row is complete.
    pub file_bytes: u64,
}

/// A file that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputFile {
    /// Its id.
    pub id: FileId,
    /// Its path.
    pub path: PathBuf,
    /// The index of its run, oldest first.
    pub run: usize,
}

/// Writer of the runs.
pub struct RunWriter<'a> {
    env: Arc<dyn Env>,
    family: &'a FamilyDescriptor,
    name_file: &'a dyn Fn() -> (FileIdentity, PathBuf),
    spec: OutputSpec,
    /// The open file of each run.
    open: Vec<Option<(OutputFile, FileWriter)>>,
    finished: Vec<OutputFile>,
    cell_count: u64,
}

impl<'a> RunWriter<'a> {
    /// Returns a writer without files; `name_file` returns an unused id and path for each.
    pub fn new(
        env: Arc<dyn Env>,
        family: &'a FamilyDescriptor,
        spec: OutputSpec,
        name_file: &'a dyn Fn() -> (FileIdentity, PathBuf),
    ) -> RunWriter<'a> {
        debug_assert!(spec.cuts.is_sorted(), "cuts ascend");
        let open = (0..=spec.cuts.len()).map(|_| None).collect();
        RunWriter { env, family, name_file, spec, open, finished: Vec::new(), cell_count: 0 }
    }

    /// Returns the number of cells added.
    pub fn cell_count(&self) -> u64 {
        self.cell_count
    }

    fn close(&mut self, run: usize) -> Result<()> {
        if let Some((file, writer)) = self.open[run].take() {
            // Recorded before it is complete, so that it is removed if it never is.
            self.finished.push(file);
            writer.finish()?;
        }
        Ok(())
    }

    /// Finishes the open files and returns all files, in the order in which they were closed.
    pub fn finish(&mut self) -> Result<Vec<OutputFile>> {
        for run in 0..self.open.len() {
            self.close(run)?;
        }
        Ok(std::mem::take(&mut self.finished))
    }

    /// Removes the files written.
    pub fn abandon(self) {
        let unfinished = self.open.into_iter().flatten().map(|(file, _)| file);
        for file in self.finished.into_iter().chain(unfinished) {
            // It may not exist yet. If the removal fails, the next opening removes it.
            let _ = self.env.remove(&file.path);
        }
    }
}

impl Sink for RunWriter<'_> {
    fn start_row(&mut self) -> Result<()> {
        for run in 0..self.open.len() {
            let full = |(_, writer): &(OutputFile, FileWriter)| {
                writer.byte_count() >= self.spec.file_bytes
            };
            if self.open[run].as_ref().is_some_and(full) {
                self.close(run)?;
            }
        }
        Ok(())
    }

    fn add(&mut self, key: &[u8], parts: &KeyParts<'_>, value: &[u8]) -> Result<()> {
        let run = self.spec.cuts.partition_point(|cut| *cut < parts.sequence);
        let slot = &mut self.open[run];
        let (_, writer) = match slot {
            Some(open) => open,
            None => {
                let (identity, path) = (self.name_file)();
                let writer = FileWriter::new(self.env.clone(), &path, self.family);
                let file = OutputFile { id: identity.file, path, run };
                slot.insert((file, writer.identified(identity)))
            }
        };
        writer.add(key, value)?;
        self.cell_count += 1;
        Ok(())
    }
}
