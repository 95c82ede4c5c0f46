//! Sample data of the demo, and its load with COPY.

use std::io::{Read, Write};

use flate2::read::GzDecoder;
use indicatif::{ProgressBar, ProgressStyle};
use sql::session::{Execution, Session};

use store::env::process::monotonic_now;

use crate::copy::decode::Decoder;
use crate::error::Result;
use crate::statement;

/// One table of the demo.
struct Sample {
    name: &'static str,
    rows: u64,
    /// Gzipped CSV with a header line; missing values are `NA`.
    data: &'static [u8],
    /// CREATE TABLE and CREATE INDEX.
    definition: &'static [&'static str],
}

const SAMPLES: &[Sample] = &[
    Sample {
        name: "airlines",
        rows: 16,
        data: include_bytes!("../../examples/flights/airlines.csv.gz"),
        definition: &["CREATE TABLE airlines (carrier text PRIMARY KEY, name text NOT NULL)"],
    },
    Sample {
        name: "airports",
        rows: 1_458,
        data: include_bytes!("../../examples/flights/airports.csv.gz"),
        definition: &["CREATE TABLE airports (faa text PRIMARY KEY, name text NOT NULL, \
             lat double precision, lon double precision, alt integer, tz integer, \
             dst text, tzone text)"],
    },
    Sample {
        name: "planes",
        rows: 3_322,
        data: include_bytes!("../../examples/flights/planes.csv.gz"),
        definition: &["CREATE TABLE planes (tailnum text PRIMARY KEY, year smallint, type text, \
             manufacturer text, model text, engines smallint, seats smallint, speed smallint, \
             engine text)"],
    },
    Sample {
        name: "weather",
        rows: 26_115,
        data: include_bytes!("../../examples/flights/weather.csv.gz"),
        definition: &["CREATE TABLE weather (origin text, year smallint, month smallint, \
             day smallint, hour smallint, temp double precision, dewp double precision, \
             humid double precision, wind_dir smallint, wind_speed double precision, \
             wind_gust double precision, precip double precision, pressure double precision, \
             visib double precision, time_hour timestamptz, PRIMARY KEY (origin, time_hour))"],
    },
    Sample {
        name: "flights",
        rows: 336_776,
        data: include_bytes!("../../examples/flights/flights.csv.gz"),
        definition: &[
            "CREATE TABLE flights (year smallint, month smallint, day smallint, \
             dep_time smallint, sched_dep_time smallint, dep_delay smallint, arr_time smallint, \
             sched_arr_time smallint, arr_delay smallint, carrier text, flight integer, \
             tailnum text, origin text NOT NULL, dest text NOT NULL, air_time smallint, \
             distance integer CHECK (distance > 0), hour smallint, minute smallint, \
             time_hour timestamptz, PRIMARY KEY (time_hour, carrier, flight)) \
             SALT_BUCKETS = 4, VERSIONS = 3",
            "CREATE INDEX flights_tailnum ON flights (tailnum)",
            "CREATE INDEX flights_dest ON flights (dest, dep_delay DESC) INCLUDE (origin)",
        ],
    },
];

/// Creates the tables and loads the data, with a progress bar on a terminal.
pub(super) fn load(session: &mut Session, out: &mut dyn Write) -> Result<()> {
    let total = SAMPLES.iter().map(|sample| sample.rows).sum();
    let bar = ProgressBar::new(total);
    let template = "{msg:>9} [{bar:40}] {human_pos}/{human_len} rows, {per_sec}";
    let style = ProgressStyle::with_template(template).expect("the template is well formed");
    bar.set_style(style.progress_chars("=> "));
    let began = monotonic_now();
    for sample in SAMPLES {
        bar.set_message(sample.name);
        for definition in sample.definition {
            statement::run(session, definition)?;
        }
        let began = monotonic_now();
        let rows = copy(session, sample, &bar)?;
        let seconds = began.elapsed().as_secs_f64();
        let rate = rows as f64 / seconds;
        let line =
            format!("{:>9}: {rows:>7} rows in {seconds:.2} s, {rate:.0} rows/s", sample.name);
        bar.suspend(|| writeln!(out, "{line}"))?;
    }
    bar.finish_and_clear();
    let seconds = began.elapsed().as_secs_f64();
    writeln!(out, "    total: {total:>7} rows in {seconds:.2} s, with all indexes")?;
    Ok(())
}

/// Loads a table's data with COPY. Returns the number of rows.
fn copy(session: &mut Session, sample: &Sample, bar: &ProgressBar) -> Result<u64> {
    let command = format!("COPY {} FROM STDIN (FORMAT csv, HEADER, NULL 'NA')", sample.name);
    let Execution::CopyIn(mut copy) = statement::start(session, &command)? else {
        unreachable!("COPY FROM STDIN asks for data");
    };
    let mut decoder = Decoder::new(copy.format.clone());
    let mut source = GzDecoder::new(sample.data);
    let mut buffer = vec![0; 64 * 1024];
    let mut rows = 0;
    loop {
        let length = source.read(&mut buffer)?;
        if length == 0 {
            break;
        }
        let before = rows;
        decoder.push(&buffer[..length], &mut |line, fields| {
            rows += 1;
            copy.push_row(line, fields)
        })?;
        bar.inc(rows - before);
    }
    decoder.finish(&mut |line, fields| {
        rows += 1;
        copy.push_row(line, fields)
    })?;
    session.finish_copy(*copy)?;
    statement::commit(session)?;
    Ok(rows)
}
