//! Tour of the demo: statements that show what bennu has, with plans, first rows and times.
//!
//! A [`Stop`] is a sentence and its steps. Steps are run by one session, apart from those that a
//! second session or several threads run.

use std::io::Write;
use std::time::Duration;

use sql::session::Session;
use store::env::process::monotonic_now;

use crate::database::{DEFAULT_USER, Database};
use crate::error::Result;
use crate::statement;

/// Rows shown of each result.
const ROWS_SHOWN: usize = 5;

/// Name by which a statement refers to the time of [`Step::Remember`].
const MOMENT: &str = "{moment}";

/// One stop of the tour.
struct Stop {
    title: &'static str,
    about: &'static str,
    steps: &'static [Step],
}

/// One step of a stop.
enum Step {
    /// Shows a statement with its first rows and time.
    Show(&'static str),
    /// Shows a statement also with its plan.
    Plan(&'static str),
    /// Shows a statement that fails, with its error.
    Rejected(&'static str),
    /// Shows a query that a second session executes.
    Other(&'static str),
    /// Keeps the present time for later statements.
    Remember,
    /// Executes a statement again and again in several sessions, and shows the rate.
    Sessions(SessionLoad),
}

/// Statements of several sessions.
struct SessionLoad {
    sessions: usize,
    /// The statement; `{session}` and `{time}` are the numbers of the session and the execution.
    statement: &'static str,
    /// Executions by each session.
    times: usize,
    /// Statement that is shown while they run.
    meanwhile: Option<&'static str>,
}

const STOPS: &[Stop] = &[
    Stop {
        title: "Rows",
        about: "Filters and aggregates run in the regions, in parallel.",
        steps: &[
            Step::Plan("SELECT count(*) FROM flights"),
            Step::Plan("SELECT count(*) FROM flights WHERE dep_time IS NULL"),
            Step::Plan(
                "SELECT a.name, count(*) AS flights FROM flights f \
                 JOIN airlines a ON a.carrier = f.carrier WHERE f.dest = 'HNL' \
                 GROUP BY a.name ORDER BY flights DESC",
            ),
        ],
    },
    Stop {
        title: "Point get and range scan",
        about: "A whole key names its salt bucket; a range is read from all four and merged.",
        steps: &[
            Step::Plan(
                "SELECT origin, dest, dep_time, tailnum FROM flights \
                 WHERE time_hour = '2013-01-01T10:00:00Z' AND carrier = 'UA' AND flight = 1545",
            ),
            Step::Plan(
                "SELECT time_hour, carrier, flight, dest FROM flights \
                 WHERE time_hour >= '2013-07-04T12:00:00Z' \
                 AND time_hour < '2013-07-04T14:00:00Z' ORDER BY time_hour, carrier, flight",
            ),
        ],
    },
    Stop {
        title: "Indexes",
        about: "A covering index answers alone; another one names the rows, which are fetched.",
        steps: &[
            Step::Plan(
                "SELECT dest, dep_delay, origin FROM flights \
                 WHERE dest = 'IAH' AND dep_delay > 300 ORDER BY dep_delay DESC",
            ),
            Step::Plan(
                "SELECT time_hour, carrier, flight, origin, dest FROM flights \
                 WHERE tailnum = 'N14228' ORDER BY time_hour",
            ),
        ],
    },
    Stop {
        title: "A split under load",
        about: "A split links the files of a region and copies nothing; writers wait for milliseconds.",
        steps: &[
            Step::Show(
                "CREATE TABLE reading (at bigint, sensor int, celsius real, PRIMARY KEY (at, sensor))",
            ),
            Step::Sessions(SessionLoad {
                sessions: 4,
                statement: "INSERT INTO reading \
                            SELECT {time} * 100 + n, {session}, 20 FROM generate_series(0, 99) AS n",
                times: 50,
                meanwhile: Some("ALTER TABLE reading SPLIT AT (2500)"),
            }),
            Step::Show(
                "SELECT start_values, end_values, rows_written, memstore_bytes, store_files \
                 FROM bennu.regions WHERE table_name = 'reading'",
            ),
        ],
    },
    Stop {
        title: "A hot key and its salting",
        about: "Keys that rise write to the last region only, until the table is salted.",
        steps: &[
            Step::Show(
                "INSERT INTO reading SELECT 5000 + n, 1, 20 FROM generate_series(0, 19999) AS n",
            ),
            Step::Show(
                "SELECT start_values, rows_written FROM bennu.regions WHERE table_name = 'reading'",
            ),
            Step::Show("ALTER TABLE reading SET (salt_buckets = 4)"),
            Step::Show(
                "INSERT INTO reading SELECT 25000 + n, 1, 20 FROM generate_series(0, 19999) AS n",
            ),
            Step::Show(
                "SELECT salt_bucket, rows_written FROM bennu.regions \
                 WHERE table_name = 'reading' ORDER BY salt_bucket",
            ),
        ],
    },
    Stop {
        title: "Versions",
        about: "The table keeps three versions of a row; a query reads the past.",
        steps: &[
            Step::Remember,
            Step::Show(
                "UPDATE flights SET dep_delay = 99 \
                 WHERE time_hour = '2013-01-01T10:00:00Z' AND carrier = 'UA' AND flight = 1545",
            ),
            Step::Plan(
                "SELECT dep_delay FROM flights FOR SYSTEM_TIME AS OF '{moment}' \
                 WHERE time_hour = '2013-01-01T10:00:00Z' AND carrier = 'UA' AND flight = 1545",
            ),
            Step::Show(
                "SELECT dep_delay, _timestamp FROM flights FOR SYSTEM_TIME ALL \
                 WHERE time_hour = '2013-01-01T10:00:00Z' AND carrier = 'UA' AND flight = 1545",
            ),
        ],
    },
    Stop {
        title: "Cells",
        about: "Below SQL, a row is cells with timestamps, as in HBase; delete markers too.",
        steps: &[
            Step::Show(
                "CREATE TABLE visits (page text PRIMARY KEY, n bigint NOT NULL) WITH (versions = 3)",
            ),
            Step::Show("INSERT INTO visits VALUES ('/home', 1), ('/help', 1)"),
            Step::Show("DELETE FROM visits WHERE page = '/help'"),
            Step::Show("SELECT key, family, type, columns FROM cells('visits', raw => true)"),
        ],
    },
    Stop {
        title: "A TIMELINE read while the primary does not answer",
        about: "A replica of the region answers in its place, and the plan says how stale it is.",
        steps: &[
            Step::Show("ALTER TABLE visits SET (region_replication = 2)"),
            Step::Show(
                "SELECT hold_primary(region, '10s') FROM bennu.regions WHERE table_name = 'visits'",
            ),
            Step::Other("SET consistency = 'TIMELINE'"),
            Step::Other("SET primary_call_timeout = '20ms'"),
            Step::Other("EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) SELECT * FROM visits"),
            Step::Show("SELECT release_holds()"),
        ],
    },
    Stop {
        title: "A coprocessor that vetoes",
        about: "An observer runs in the region, inside the writing transaction.",
        steps: &[
            Step::Show("ALTER TABLE visits ATTACH COPROCESSOR append_only"),
            Step::Rejected("UPDATE visits SET n = 0 WHERE page = '/home'"),
            Step::Show("ALTER TABLE visits DETACH COPROCESSOR append_only"),
        ],
    },
    Stop {
        title: "A maintained summary",
        about: "The view is exact in each snapshot, and queries of the table read it.",
        steps: &[
            Step::Show(
                "CREATE MATERIALIZED VIEW by_carrier WITH (maintained = true) AS \
                 SELECT carrier, count(*), sum(distance), max(dep_delay) FROM flights GROUP BY carrier",
            ),
            Step::Show("DELETE FROM flights WHERE carrier = 'OO'"),
            Step::Show(
                "EXPLAIN (COSTS OFF) SELECT carrier, count(*) FROM flights GROUP BY carrier",
            ),
            Step::Show(
                "SELECT carrier, count(*) AS flights, max(dep_delay) AS delay FROM flights \
                 GROUP BY carrier ORDER BY flights LIMIT 3",
            ),
        ],
    },
    Stop {
        title: "A counter of 32 clients",
        about: "A hot row is locked for microseconds, and all clients share a sync of the log.",
        steps: &[
            Step::Sessions(SessionLoad {
                sessions: 32,
                statement: "UPSERT INTO visits VALUES ('/home', 1) ON DUPLICATE KEY UPDATE n = n + 1",
                times: 25,
                meanwhile: None,
            }),
            Step::Show("SELECT n FROM visits WHERE page = '/home'"),
        ],
    },
    Stop {
        title: "Work of each region",
        about: "The plan with BUFFERS shows what each region returned and how long it took.",
        steps: &[Step::Show(
            "EXPLAIN (ANALYZE, BUFFERS, COSTS OFF) SELECT dest, count(*) FROM flights \
             WHERE distance > 2000 GROUP BY dest",
        )],
    },
];

/// The tour on the loaded data.
pub(super) struct Tour<'a> {
    database: &'a Database,
    session: Session,
    other: Session,
    out: &'a mut dyn Write,
    moment: String,
}

impl<'a> Tour<'a> {
    /// Creates the tour.
    pub(super) fn new(database: &'a Database, out: &'a mut dyn Write) -> Tour<'a> {
        let (session, other) = (database.session(DEFAULT_USER), database.session(DEFAULT_USER));
        Tour { database, session, other, out, moment: String::new() }
    }

    /// Runs all stops.
    ///
    /// # Errors
    ///
    /// If a statement fails that should not, or the other way round, or `out` is closed.
    pub(super) fn run(mut self) -> Result<()> {
        for (number, Stop { title, about, steps }) in (1..).zip(STOPS) {
            writeln!(self.out, "\n== {number}. {title}\n-- {about}")?;
            for step in *steps {
                self.step(step)?;
            }
        }
        Ok(())
    }

    fn step(&mut self, step: &Step) -> Result<()> {
        match step {
            Step::Show(text) => show(&mut self.session, text, false, self.out),
            Step::Plan(text) => {
                let text = text.replace(MOMENT, &self.moment);
                show(&mut self.session, &text, true, self.out)
            }
            Step::Other(text) => {
                writeln!(self.out, "-- in another session:")?;
                show(&mut self.other, text, false, self.out)
            }
            Step::Rejected(text) => match statement::run(&mut self.session, text) {
                Ok(_) => Err(sql::Error::new(
                    sql::error::sqlstate::INTERNAL_ERROR,
                    format!("the statement should be rejected: {text}"),
                ))?,
                Err(error) => {
                    writeln!(self.out, "{text};\nERROR:  {error}")?;
                    Ok(())
                }
            },
            Step::Remember => {
                let rows = statement::run(&mut self.session, "SELECT clock_timestamp()")?.rows;
                let moment = rows.and_then(|rows| rows.cell(0, 0).map(str::to_owned));
                self.moment = moment.unwrap_or_default();
                Ok(())
            }
            Step::Sessions(load) => self.run_sessions(load),
        }
    }

    fn run_sessions(&mut self, load: &SessionLoad) -> Result<()> {
        let SessionLoad { sessions, statement, times, meanwhile } = load;
        writeln!(self.out, "-- {sessions} sessions, each {times} times:\n{statement};")?;
        let began = monotonic_now();
        let database = self.database;
        let (this, out) = (&mut self.session, &mut *self.out);
        let longest = std::thread::scope(|scope| -> Result<Duration> {
            let threads: Vec<_> = (0..*sessions)
                .map(|number| scope.spawn(move || repeat(database, load, number)))
                .collect();
            if let Some(text) = meanwhile {
                show(this, text, false, out)?;
            }
            let mut longest = Duration::ZERO;
            for thread in threads {
                match thread.join() {
                    Ok(slowest) => longest = longest.max(slowest?),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            Ok(longest)
        })?;
        let seconds = began.elapsed().as_secs_f64();
        let rate = (sessions * times) as f64 / seconds;
        let slowest = longest.as_secs_f64() * 1e3;
        writeln!(self.out, "-- {rate:.0} statements/s, the slowest took {slowest:.1} ms")?;
        Ok(())
    }
}

/// Executes the statement of one session of several. Returns the time of its slowest execution.
fn repeat(database: &Database, load: &SessionLoad, number: usize) -> Result<Duration> {
    let mut session = database.session(DEFAULT_USER);
    let mut slowest = Duration::ZERO;
    for time in 0..load.times {
        let text = load.statement.replace("{session}", &number.to_string());
        let text = text.replace("{time}", &time.to_string());
        let began = monotonic_now();
        statement::run(&mut session, &text)?;
        slowest = slowest.max(began.elapsed());
    }
    Ok(slowest)
}

/// Runs a statement and shows it with its first rows and time, and with its plan if `has_plan`.
fn show(session: &mut Session, text: &str, has_plan: bool, out: &mut dyn Write) -> Result<()> {
    let began = monotonic_now();
    let outcome = statement::run(session, text)?;
    let millis = began.elapsed().as_secs_f64() * 1e3;
    writeln!(out, "{text};")?;
    if let Some(plan) = outcome.plan.as_ref().filter(|_| has_plan) {
        writeln!(out, "-- plan: {plan}")?;
    }
    let rows_shown = if text.starts_with("EXPLAIN") { usize::MAX } else { ROWS_SHOWN };
    match &outcome.rows {
        Some(rows) => write!(out, "{}", rows.render(rows_shown))?,
        None => writeln!(out, "{}", outcome.completion.tag)?,
    }
    writeln!(out, "-- {millis:.3} ms")?;
    Ok(())
}
