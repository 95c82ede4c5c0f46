//! Command line of the `bennu` binary: commands, options, and their help.

use std::path::PathBuf;

use clap::{Parser, Subcommand};

use crate::config::ConfigSource;

/// Returns the end of a command's help: an example, and the page of the manual.
macro_rules! help_end {
    ($example:literal, $page:literal) => {
        concat!(
            "Example:\n  ",
            $example,
            "\n\nManual: ",
            env!("CARGO_PKG_REPOSITORY"),
            "/blob/main/docs/",
            $page
        )
    };
}

/// Version of the package and the commit that it was built from.
const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " (commit ", env!("BENNU_COMMIT"), ")");

/// A PostgreSQL-compatible SQL database over a versioned, range-partitioned LSM store
#[derive(Debug, Parser)]
#[command(name = "bennu", version = VERSION, arg_required_else_help = true)]
#[command(after_help = help_end!("bennu demo", "README.md"))]
pub struct Arguments {
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// A command with its arguments.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Start a server on a data directory
    #[command(after_help = help_end!(
        "bennu serve --data ./bennu-data --memory 2GB",
        "operations/configuration.md"
    ))]
    Serve {
        /// Settings of the server.
        #[command(flatten)]
        source: Box<ConfigSource>,
        /// Configuration file (TOML); keys are the option names with underscores
        #[arg(long, value_name = "FILE", env = "BENNU_CONFIG")]
        config: Option<PathBuf>,
    },
    /// Load sample data into a temporary directory, print a tour, then start a server on it
    #[command(after_help = help_end!("bennu demo --once", "start/ten-minutes.md"))]
    Demo {
        /// Exit after the tour
        #[arg(long)]
        once: bool,
        /// Address to listen on after the tour [default: 127.0.0.1:5433]
        #[arg(long, value_name = "ADDR")]
        listen: Option<String>,
    },
    /// Run a maintenance job on a data directory or one of its files
    #[command(after_help = help_end!("bennu job --help", "operations/recovery.md"))]
    Job {
        /// The job.
        #[command(subcommand)]
        job: Job,
    },
    /// Run SQL statements on a data directory without a server
    #[command(after_help = help_end!(
        "bennu sql --data ./bennu-data -c 'SELECT 1'",
        "operations/running.md#shell-without-a-server"
    ))]
    Sql {
        /// Data directory [default: ./bennu-data]
        #[arg(long, value_name = "DIR", env = "BENNU_DATA")]
        data: Option<PathBuf>,
        /// Configuration file of the server, for its data directory and coprocessors
        #[arg(long, value_name = "FILE", env = "BENNU_CONFIG")]
        config: Option<PathBuf>,
        /// Database [default: bennu]
        #[arg(long, value_name = "NAME")]
        database: Option<String>,
        /// Statements to execute
        #[arg(short = 'c', value_name = "SQL", conflicts_with = "file")]
        command: Option<String>,
        /// File with statements to execute [default: standard input]
        #[arg(short = 'f', value_name = "FILE")]
        file: Option<PathBuf>,
    },
}

/// A job with its arguments.
#[derive(Debug, Subcommand)]
pub enum Job {
    /// Copy the readable data of a damaged data directory to a new one, and report losses
    #[command(after_help = help_end!(
        "bennu job salvage --data ./damaged --to ./salvaged",
        "operations/recovery.md"
    ))]
    Salvage {
        /// The damaged data directory; it is not modified
        #[arg(long, value_name = "DIR")]
        data: PathBuf,
        /// The new data directory
        #[arg(long, value_name = "NEWDIR")]
        to: PathBuf,
    },
    /// Verify a store file and print its properties
    #[command(after_help = help_end!(
        "bennu job storefile f000-0000000001.store --blocks",
        "formats/store-file.md"
    ))]
    Storefile {
        /// The store file
        file: PathBuf,
        /// Print each block
        #[arg(long)]
        blocks: bool,
        /// Print each cell
        #[arg(long)]
        cells: bool,
    },
}
