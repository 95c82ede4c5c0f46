//! Cancellation of functions and casts: computations over large arguments check the interrupt
//! flag often enough to end soon after it is set.
//!
//! Functions of the catalog and casts are called with large arguments: some in each run, all with
//! `cargo test -p bennu-types --test cancellation -- --ignored`. The interrupt calls a hook at
//! every check, which records the maximum CPU time of the thread between two checks and ends the
//! computation after [`RUN_MAX`]. CPU time does not depend on other load on the machine.

#![allow(clippy::disallowed_methods, reason = "tests use the system directly")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::slice::from_ref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use types::aggregate::{self, Aggregate, Groups, ResolvedAggregate};
use types::datatype::GeometryKind;
use types::expr::{EvalContext, Expr};
use types::function::{self, Signature, sets};
use types::interrupt::Interrupt;
use types::text::{self, TextStyle};
use types::{Batch, DataType, Datum, SqlType, Vector, cast};

/// Maximum time between two checks: a tenth of a second, and more in a debug build.
const GAP_MAX: Duration = Duration::from_millis(if cfg!(debug_assertions) { 1_000 } else { 100 });
/// Time after which a computation is cancelled.
const RUN_MAX: Duration = Duration::from_millis(if cfg!(debug_assertions) { 300 } else { 100 });
/// Time after which a computation counts as endless.
const HANG_MAX: Duration = Duration::from_secs(20);

/// Factor of the sizes of arguments.
const SCALE: usize = if cfg!(debug_assertions) { 1 } else { 4 };

/// Kinds of sample values of a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Profile {
    /// One element repeated.
    Uniform,
    /// Blanks, large objects.
    Blank,
    /// Different elements, deep nesting.
    Mixed,
    /// A short value.
    Short,
}

/// Lists of profiles for the arguments of a call; the last one applies to the remaining
/// arguments.
const PROFILES: &[&[Profile]] = &[
    &[Profile::Uniform],
    &[Profile::Blank],
    &[Profile::Mixed],
    &[Profile::Uniform, Profile::Short],
    &[Profile::Short, Profile::Uniform],
    &[Profile::Uniform, Profile::Blank],
    &[Profile::Mixed, Profile::Uniform],
    &[Profile::Uniform, Profile::Mixed],
    &[Profile::Blank, Profile::Short, Profile::Uniform],
];

thread_local! {
    static LAST_LOOK: Cell<Duration> = const { Cell::new(Duration::ZERO) };
    static LONGEST: Cell<Duration> = const { Cell::new(Duration::ZERO) };
    static START: Cell<Duration> = const { Cell::new(Duration::ZERO) };
    static FLAG: Cell<Option<&'static AtomicBool>> = const { Cell::new(None) };
}

/// Returns the CPU time of the thread.
fn thread_time() -> Duration {
    let statistics = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    let nanoseconds = statistics.split(' ').next().and_then(|field| field.parse().ok());
    Duration::from_nanos(nanoseconds.unwrap())
}

/// The hook of the interrupt.
fn look() {
    let now = thread_time();
    LONGEST.set(LONGEST.get().max(now.saturating_sub(LAST_LOOK.get())));
    LAST_LOOK.set(now);
    if now.saturating_sub(START.get()) > RUN_MAX {
        FLAG.get().unwrap().store(true, Ordering::Relaxed);
    }
}

/// Runs a computation; returns the maximum time between two checks, including start and end.
fn longest_gap(run: impl FnOnce(&EvalContext)) -> Duration {
    let flag = Arc::new(AtomicBool::new(false));
    // Each computation has its own flag, which is leaked.
    let leaked: &'static Arc<AtomicBool> = Box::leak(Box::new(Arc::clone(&flag)));
    FLAG.set(Some(leaked));
    let mut context = EvalContext::with_interrupt(Interrupt::new(flag).with_yield_hook(look));
    context.statement_timestamp = 1;
    let now = thread_time();
    START.set(now);
    LAST_LOOK.set(now);
    LONGEST.set(Duration::ZERO);
    run(&context);
    look();
    LONGEST.get()
}

/// Values by type and profile; `None` if a type has no such value.
#[derive(Default)]
struct Samples {
    values: BTreeMap<(String, Profile), Option<Datum>>,
}

impl Samples {
    fn value(&mut self, data_type: &DataType, profile: Profile) -> Option<Datum> {
        let key = (format!("{data_type:?}"), profile);
        let make = || sample_text(data_type, profile).and_then(|text| parse(&text, data_type));
        self.values.entry(key).or_insert_with(make).clone()
    }
}

fn parse(text: &str, data_type: &DataType) -> Option<Datum> {
    text::parse(text, data_type, &TextStyle::default()).ok()
}

/// Returns the concrete type of a polymorphic argument.
fn concrete(data_type: &DataType) -> DataType {
    match data_type {
        DataType::AnyArray | DataType::CompatibleArray => DataType::Text.array().unwrap(),
        DataType::AnyElement
        | DataType::AnyNonArray
        | DataType::Compatible
        | DataType::CompatibleNonArray => DataType::Text,
        other => other.clone(),
    }
}

#[expect(clippy::too_many_lines, reason = "one arm for each type")]
fn sample_text(data_type: &DataType, profile: Profile) -> Option<String> {
    let bytes = 2_000_000 * SCALE;
    let items = 100_000 * SCALE;
    let list = |open: &str, item: &dyn Fn(usize) -> String, close: &str| {
        let items: Vec<String> = (0..items).map(item).collect();
        format!("{open}{}{close}", items.join(","))
    };
    let number = match profile {
        Profile::Uniform => "1000000",
        Profile::Blank => "2",
        Profile::Mixed => "-1",
        Profile::Short => "0",
    };
    Some(match data_type {
        DataType::Bool => "true".to_owned(),
        DataType::Int2 => number.replace("1000000", "30000"),
        DataType::Int4 | DataType::Int8 | DataType::Float4 | DataType::Float8 | DataType::Oid => {
            number.to_owned()
        }
        DataType::Numeric => match profile {
            Profile::Uniform => "7".repeat(100_000),
            Profile::Blank => format!("0.{}1", "0".repeat(16_000)),
            Profile::Mixed => format!("{}.{}", "12".repeat(50_000), "34".repeat(8_000)),
            Profile::Short => "3".to_owned(),
        },
        DataType::Text | DataType::Varchar | DataType::Char | DataType::CString => match profile {
            Profile::Uniform => "a".repeat(bytes),
            Profile::Blank => " ".repeat(bytes),
            Profile::Mixed => "(ab.*)1,é_%\\ 9YY\n".repeat(bytes / 17),
            Profile::Short => "a".to_owned(),
        },
        DataType::Bytea => match profile {
            Profile::Short => "\\x61".to_owned(),
            _ => format!("\\x{}", "61".repeat(bytes)),
        },
        DataType::Bit | DataType::Varbit => match profile {
            Profile::Short => "1".to_owned(),
            Profile::Mixed => "01".repeat(bytes / 2),
            _ => "0".repeat(bytes),
        },
        DataType::Date => "2024-02-29".to_owned(),
        DataType::Timestamp | DataType::Timestamptz => "2024-02-29 12:00:00".to_owned(),
        DataType::Time | DataType::Timetz => "12:00:00".to_owned(),
        DataType::Interval => "1 mon 2 days 03:00:00".to_owned(),
        DataType::Uuid => "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11".to_owned(),
        DataType::Name => "a".to_owned(),
        DataType::Json | DataType::Jsonb => match profile {
            Profile::Uniform => list("[", &|item| item.to_string(), "]"),
            Profile::Blank => list("{", &|item| format!("\"k{item}\": {{\"a\": {item}}}"), "}"),
            Profile::Mixed => list("[", &|item| format!("[\"{item}\", {{\"a\": null}}]"), "]"),
            Profile::Short => "{\"a\": 1}".to_owned(),
        },
        DataType::JsonPath => match profile {
            Profile::Uniform => "$[*] ? (@ > 5 && @ < 1000000000)".to_owned(),
            Profile::Blank => "$.** ? (@.a == 7 || @ like_regex \"^x.*y$\")".to_owned(),
            Profile::Mixed => "$[*] ? (exists (@[*] ? (@ == $[*])))".to_owned(),
            Profile::Short => "$.a".to_owned(),
        },
        DataType::Geometry(_) => match profile {
            Profile::Short => "(1,2),(3,4)".to_owned(),
            _ => list("", &|item| format!("({item},{})", item * 7 % 13), ""),
        },
        DataType::Array(element) => match profile {
            Profile::Short => format!("{{{}}}", element_text(element, 1)?),
            Profile::Uniform => {
                let text = element_text(element, 7)?;
                list("{", &|_| text.clone(), "}")
            }
            _ => {
                element_text(element, 1)?;
                list("{", &|item| element_text(element, item).unwrap_or_default(), "}")
            }
        },
        _ => return None,
    })
}

/// Returns the text of an element of an array.
fn element_text(element: &DataType, number: usize) -> Option<String> {
    Some(match element {
        DataType::Int2 => (number % 30_000).to_string(),
        DataType::Int4
        | DataType::Int8
        | DataType::Oid
        | DataType::Float4
        | DataType::Float8
        | DataType::Numeric => number.to_string(),
        DataType::Text | DataType::Varchar | DataType::Char | DataType::Name => {
            format!("k{number}")
        }
        DataType::Jsonb | DataType::Json => number.to_string(),
        _ => return sample_text(element, Profile::Short).filter(|text| !text.contains(',')),
    })
}

/// Calls functions with each list of profiles and reports the calls with long gaps.
struct Caller {
    samples: Samples,
    called: usize,
    failures: String,
}

impl Caller {
    fn new() -> Caller {
        Caller { samples: Samples::default(), called: 0, failures: String::new() }
    }

    fn call(
        &mut self,
        name: &str,
        types: &[DataType],
        run: impl Fn(&[Datum], &[DataType], &EvalContext) + Send + Sync + 'static,
    ) {
        let run = Arc::new(run);
        let types: Vec<DataType> = types.iter().map(concrete).collect();
        let mut tried: Vec<Vec<Profile>> = Vec::new();
        for profiles in PROFILES {
            let profiles: Vec<Profile> =
                (0..types.len()).map(|index| profiles[index.min(profiles.len() - 1)]).collect();
            if tried.contains(&profiles) {
                continue;
            }
            let arguments: Option<Vec<Datum>> = (types.iter().zip(&profiles))
                .map(|(data_type, profile)| self.samples.value(data_type, *profile))
                .collect();
            let Some(arguments) = arguments else { continue };
            let call = format!("{name}({types:?}) with {profiles:?}");
            self.called += 1;
            tried.push(profiles);
            let (run, types) = (Arc::clone(&run), types.clone());
            match on_thread(move || longest_gap(|context| run(&arguments, &types, context))) {
                Some(gap) if gap <= GAP_MAX => {}
                Some(gap) => {
                    writeln!(self.failures, "{} ms: {call}", gap.as_millis()).unwrap();
                    break;
                }
                None => {
                    writeln!(self.failures, "no end: {call}").unwrap();
                    break;
                }
            }
        }
    }
}

/// Runs a computation with the stack size of a session; returns `None` if it does not end.
fn on_thread(run: impl FnOnce() -> Duration + Send + 'static) -> Option<Duration> {
    let (sender, receiver) = mpsc::channel();
    let thread = std::thread::Builder::new().stack_size(256 << 20);
    thread
        .spawn(move || {
            let _ = sender.send(run());
        })
        .unwrap();
    receiver.recv_timeout(HANG_MAX).ok()
}

/// Functions that are called in each run of the tests.
const NAMED: &[&str] = &["ltrim", "rtrim", "btrim", "-", "?|", "?&", "@@", "@?", "<->", "@>", "~"];

fn check(functions: &'static [Signature], is_called: impl Fn(&str) -> bool) {
    let mut caller = Caller::new();
    for signature in functions.iter().filter(|one| is_called(one.name)) {
        caller.call(signature.name, signature.arguments, move |arguments, types, context| {
            let first = types.first().cloned().unwrap_or(DataType::Text);
            let _ = function::call(signature.id, arguments, &first, context);
        });
    }
    assert!(caller.called > 100, "{}", caller.called);
    assert!(caller.failures.is_empty(), "long times without a look:\n{}", caller.failures);
}

#[test]
fn selected_functions_check_interrupts_often() {
    check(function::all(), |name| NAMED.contains(&name));
}

#[test]
#[ignore = "takes minutes"]
fn all_functions_check_interrupts_often() {
    check(function::all(), |name| !function::is_internal(name));
}

#[test]
#[ignore = "takes minutes"]
fn set_returning_functions_check_interrupts_often() {
    let mut caller = Caller::new();
    for signature in sets::all().iter() {
        caller.call(signature.name, signature.arguments, move |arguments, _, context| {
            let columns = sets::columns(signature.id);
            let mut columns: Vec<Vector> =
                columns.iter().map(|(_, of)| Vector::new(&concrete(of), 1_000)).collect();
            let Ok(mut rows) = sets::open(signature.id, arguments, context) else { return };
            while rows.append(&mut columns, 1_000, context).is_ok_and(|count| count > 0) {
                if context.style.interrupt.check().is_err() {
                    break;
                }
            }
        });
    }
    assert!(caller.failures.is_empty(), "long times without a look:\n{}", caller.failures);
}

#[test]
#[ignore = "takes minutes"]
fn aggregates_check_interrupts_often() {
    let types = [
        DataType::Text,
        DataType::Bytea,
        DataType::Varbit,
        DataType::Numeric,
        DataType::Float8,
        DataType::Int8,
        DataType::Bool,
        DataType::Json,
        DataType::Jsonb,
        DataType::Interval,
        DataType::Text.array().unwrap(),
    ];
    let mut caller = Caller::new();
    for name in AGGREGATES {
        for first in &types {
            let lists: [&[DataType]; 2] = [from_ref(first), &[first.clone(), DataType::Text]];
            for list in lists {
                let Some(resolved) = aggregate::resolve(name, list) else { continue };
                let list: Vec<DataType> = list.to_vec();
                for distinct in [false, true] {
                    let called = if distinct { format!("{name} distinct") } else { (*name).into() };
                    let resolved = resolved.clone();
                    caller.call(&called, &list, move |values, types, context| {
                        gather(&resolved, distinct, (values, types), context);
                    });
                }
            }
        }
    }
    assert!(caller.called > 100, "{}", caller.called);
    assert!(caller.failures.is_empty(), "long times without a look:\n{}", caller.failures);
}

/// Aggregates by name.
const AGGREGATES: &[&str] = &[
    "count",
    "sum",
    "min",
    "max",
    "avg",
    "bool_and",
    "stddev_pop",
    "var_samp",
    "approx_count_distinct",
    "bit_and",
    "bit_xor",
    "any_value",
    "corr",
    "array_agg",
    "string_agg",
    "json_agg",
    "jsonb_agg",
    "json_object_agg",
    "jsonb_object_agg",
];

/// Aggregates the same values many times, in batches, until it is cancelled.
fn gather(
    resolved: &ResolvedAggregate,
    distinct: bool,
    (values, types): (&[Datum], &[DataType]),
    context: &EvalContext,
) {
    const ROWS: usize = 4;
    let columns = || values.iter().zip(types).enumerate();
    let arguments = columns()
        .map(|(index, (_, data_type))| Expr::Column { index, data_type: data_type.clone() });
    let aggregate = Aggregate {
        kind: resolved.kind,
        arguments: arguments.collect(),
        distinct,
        order_by: Vec::new(),
        filter: None,
        data_type: resolved.data_type.clone(),
    };
    let rows: Vec<Vec<Datum>> = (0..ROWS).map(|_| values.to_vec()).collect();
    let batch = Batch::from_rows(types, &rows);
    let mut groups = Groups::new(&[], &[aggregate], context);
    while context.style.interrupt.check().is_ok() {
        if groups.feed(&batch, context).is_err() || groups.byte_count() > (512 << 20) {
            break;
        }
    }
    let _ = groups.finish(0..1);
}

#[test]
#[ignore = "takes minutes"]
fn casts_check_interrupts_often() {
    let arrays = [DataType::Int4, DataType::Text, DataType::Numeric, DataType::Jsonb];
    let mut types = vec![
        DataType::Text,
        DataType::Varchar,
        DataType::Char,
        DataType::Bytea,
        DataType::Varbit,
        DataType::Numeric,
        DataType::Float8,
        DataType::Json,
        DataType::Jsonb,
        DataType::JsonPath,
        DataType::Geometry(GeometryKind::Path),
        DataType::Geometry(GeometryKind::Polygon),
        DataType::Interval,
    ];
    types.extend(arrays.iter().filter_map(|element| element.array()));
    let mut caller = Caller::new();
    for from in &types {
        for to in types.iter().filter(|to| cast::cast_context(from, to).is_some()) {
            let what = format!("cast to {to:?} of ");
            let (value, to) = (from.clone(), SqlType::from(to));
            caller.call(&what, from_ref(from), move |values, _, context| {
                let _ = cast::cast(&values[0], &value, &to, true, context);
            });
        }
    }
    assert!(caller.called > 100, "{}", caller.called);
    assert!(caller.failures.is_empty(), "long times without a look:\n{}", caller.failures);
}
