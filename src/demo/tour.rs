//! Tour of the demo: statements that show bennu's features, with plans, first rows and times.

use std::io::Write;

use sql::session::Session;

use store::env::process::monotonic_now;

use crate::error::Result;
use crate::statement;

/// Rows shown of each result.
const ROWS_SHOWN: usize = 5;

/// One stop of the tour.
struct Stop {
    title: &'static str,
    statement: &'static str,
}

const STOPS: &[Stop] = &[
    Stop {
        title: "All flights, counted in the regions",
        statement: "SELECT count(*) FROM flights",
    },
    Stop {
        title: "A condition, checked in the regions: cancelled flights",
        statement: "SELECT count(*) FROM flights WHERE dep_time IS NULL",
    },
    Stop {
        title: "A point get: the whole key is known, so is the salt bucket",
        statement: "SELECT origin, dest, dep_time, tailnum FROM flights \
                    WHERE time_hour = '2013-01-01T10:00:00Z' AND carrier = 'UA' AND flight = 1545",
    },
    Stop {
        title: "A range scan on the key, merged from four buckets",
        statement: "SELECT time_hour, carrier, flight, dest FROM flights \
                    WHERE time_hour >= '2013-07-04T12:00:00Z' \
                    AND time_hour < '2013-07-04T14:00:00Z' ORDER BY time_hour, carrier, flight",
    },
    Stop {
        title: "An index look-up: all flights of one plane",
        statement: "SELECT time_hour, carrier, flight, origin, dest FROM flights \
                    WHERE tailnum = 'N14228' ORDER BY time_hour",
    },
    Stop {
        title: "A covered index scan: the index alone answers",
        statement: "SELECT dest, dep_delay, origin FROM flights \
                    WHERE dest = 'IAH' AND dep_delay > 300 ORDER BY dep_delay DESC",
    },
    Stop {
        title: "An aggregate, computed in the regions and merged here",
        statement: "SELECT carrier, count(*) AS flights, avg(dep_delay) AS delay FROM flights \
                    GROUP BY carrier ORDER BY delay DESC",
    },
    Stop {
        title: "A join",
        statement: "SELECT a.name, count(*) AS flights FROM flights f \
                    JOIN airlines a ON a.carrier = f.carrier WHERE f.dest = 'HNL' \
                    GROUP BY a.name ORDER BY flights DESC",
    },
    Stop {
        title: "A counter, created",
        statement: "CREATE TABLE visits (page text PRIMARY KEY, n bigint NOT NULL) VERSIONS = 10",
    },
    Stop {
        title: "A counter, initialized and incremented by the same statement",
        statement: "UPSERT INTO visits VALUES ('/home', 1) ON DUPLICATE KEY UPDATE n = n + 1; \
                    UPSERT INTO visits VALUES ('/home', 1) ON DUPLICATE KEY UPDATE n = n + 1",
    },
    Stop {
        title: "The counter now, and when it was written",
        statement: "SELECT page, n, _timestamp FROM visits WHERE page = '/home'",
    },
];

/// Runs the tour on the loaded data.
pub(super) fn run(session: &mut Session, out: &mut dyn Write) -> Result<()> {
    for stop in STOPS {
        show(session, stop.title, stop.statement, out)?;
    }
    time_travel(session, out)
}

/// Shows an older version of a row, read as of a time between two updates.
fn time_travel(session: &mut Session, out: &mut dyn Write) -> Result<()> {
    let before = statement::run(session, "SELECT now()")?;
    let before = before.rows.and_then(|rows| rows.cell(0, 0).map(str::to_owned));
    let before = before.unwrap_or_default();
    show(
        session,
        "A row gets a second version",
        "UPDATE visits SET n = n + 100 WHERE page = '/home'",
        out,
    )?;
    show(session, "The row now", "SELECT n FROM visits WHERE page = '/home'", out)?;
    show(
        session,
        "The row as it was before",
        &format!("SELECT n FROM visits FOR SYSTEM_TIME AS OF '{before}' WHERE page = '/home'"),
        out,
    )
}

fn show(session: &mut Session, title: &str, text: &str, out: &mut dyn Write) -> Result<()> {
    let began = monotonic_now();
    let outcome = statement::run(session, text)?;
    let millis = began.elapsed().as_secs_f64() * 1e3;
    writeln!(out, "\n-- {title}")?;
    writeln!(out, "{};", text.split_whitespace().collect::<Vec<_>>().join(" "))?;
    if let Some(plan) = &outcome.plan {
        writeln!(out, "-- plan: {plan}")?;
    }
    match &outcome.rows {
        Some(rows) => write!(out, "{}", rows.render(ROWS_SHOWN))?,
        None => writeln!(out, "{}", outcome.completion.tag)?,
    }
    writeln!(out, "-- {millis:.3} ms")?;
    Ok(())
}
