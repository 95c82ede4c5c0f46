//! Tests of compaction policies with recorded answers in `tests/policies`.
//!
//! A block is a policy, the runs of a store, oldest first, and a question; after `---` the
//! answer. `BENNU_REGOLD=1` records the answers again. A file is `id:first..last:bytes`, then its
//! other properties. `simulate` fills a store with random keys instead, and prints the cost.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use store::compaction::{
    Action, CompactionRequest, FileFacts, Layout, RunFacts, SelectionInputs, select,
};
use store::descriptor::{
    CompactionOptions, CompactionPolicy, DateTieredOptions, ExploringOptions, FileId,
    LeveledOptions,
};
use store::{Sequence, Timestamp};

#[test]
fn compaction_policies_match_recorded_choices() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/policies");
    let mut names: Vec<_> =
        std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.sort();
    assert!(names.len() >= 5, "{names:?}");
    for name in names {
        let text = std::fs::read_to_string(&name).unwrap();
        let answered = answer(&text);
        if answered == text {
            continue;
        }
        assert!(std::env::var_os("BENNU_REGOLD").is_some(), "{}\n{answered}", name.display());
        std::fs::write(&name, answered).unwrap();
    }
}

fn answer(text: &str) -> String {
    let mut out = String::new();
    let mut case = Case::default();
    let mut answered: Option<String> = None;
    let mut in_answer = false;
    for line in text.lines() {
        if in_answer && !line.is_empty() {
            continue;
        }
        in_answer = false;
        out.push_str(line);
        out.push('\n');
        match line {
            "---" => {
                out.push_str(&answered.take().unwrap());
                in_answer = true;
            }
            "" => case.runs.clear(),
            line if line.starts_with('#') => {}
            line => answered.get_or_insert_default().push_str(&case.run(line)),
        }
    }
    out
}

struct Case {
    options: CompactionOptions,
    occasion: SelectionInputs,
    runs: Vec<OwnedRun>,
}

#[derive(Clone)]
struct OwnedRun {
    level: u8,
    files: Vec<OwnedFile>,
}

#[derive(Clone)]
struct OwnedFile {
    id: u64,
    first: Vec<u8>,
    last: Vec<u8>,
    bytes: u64,
    times: (i64, i64),
    sequence: u64,
    markers: u64,
    made: i64,
    /// The last moment at which one of its cells is visible.
    seen: i64,
    busy: bool,
    /// Draws of each bucket of keys, for simulations.
    draws: Vec<f64>,
}

impl Default for Case {
    fn default() -> Case {
        Case {
            options: CompactionOptions::default(),
            occasion: SelectionInputs {
                now_micros: 0,
                read_micros: 0,
                expiry: Timestamp(i64::MIN),
                flush_bytes: 10,
                off_peak: false,
            },
            runs: Vec::new(),
        }
    }
}

fn number<T: std::str::FromStr>(text: &str) -> T {
    text.parse().unwrap_or_else(|_| panic!("{text} is not a number"))
}

impl Case {
    fn run(&mut self, line: &str) -> String {
        let mut words = line.split_whitespace();
        match words.next().unwrap() {
            "policy" => self.set_policy(words.next().unwrap()),
            "set" => words.for_each(|word| self.set(word)),
            "run" => {
                let level = number(words.next().unwrap());
                let sequence = self.runs.len() as u64 + 1;
                let files = words.map(|word| file(word, sequence)).collect();
                self.runs.push(OwnedRun { level, files });
            }
            "minor" => return self.choose(CompactionRequest::Minor),
            "major" => return self.choose(CompactionRequest::Major),
            "simulate" => {
                let entries = number(words.next().unwrap());
                return Simulation::new(self, entries).run(self);
            }
            other => panic!("what is {other}"),
        }
        String::new()
    }

    fn set_policy(&mut self, name: &str) {
        let policy = CompactionPolicy::by_name(name).unwrap();
        assert_eq!(policy.name(), name);
        *self = Case { options: CompactionOptions::of(policy), ..Case::default() };
    }

    fn set(&mut self, word: &str) {
        let (name, value) = word.split_once('=').unwrap();
        match (name, &mut self.options.policy) {
            ("now", _) => {
                self.occasion.now_micros = number(value);
                self.occasion.read_micros = number(value);
            }
            ("read", _) => self.occasion.read_micros = number(value),
            ("expiry", _) => self.occasion.expiry = Timestamp(number(value)),
            ("flush", _) => self.occasion.flush_bytes = number(value),
            ("off_peak", _) => self.occasion.off_peak = number(value),
            ("file_bytes", _) => self.options.file_bytes = number(value),
            ("blocking", _) => self.options.blocking_files = number(value),
            ("period", _) => {
                self.options.major_period = Some(Duration::from_micros(number(value)));
            }
            ("jitter", _) => self.options.major_jitter_percent = number(value),
            ("max_bytes", CompactionPolicy::Exploring(options)) => {
                options.max_bytes = Some(number(value));
            }
            ("min_files", CompactionPolicy::Exploring(ExploringOptions { min_files, .. }))
            | (
                "min_files",
                CompactionPolicy::DateTiered(DateTieredOptions {
                    within: ExploringOptions { min_files, .. },
                    ..
                }),
            ) => *min_files = number(value),
            ("window", CompactionPolicy::DateTiered(options)) => {
                options.base_window = Duration::from_micros(number(value));
            }
            ("incoming", CompactionPolicy::DateTiered(options)) => {
                options.incoming_files = number(value);
            }
            ("max_age", CompactionPolicy::DateTiered(options)) => {
                options.max_age = Some(Duration::from_micros(number(value)));
            }
            ("base", CompactionPolicy::Leveled(LeveledOptions { base_bytes, .. })) => {
                *base_bytes = number(value);
            }
            ("level0", CompactionPolicy::Leveled(LeveledOptions { level0_files, .. })) => {
                *level0_files = number(value);
            }
            _ => panic!("what is {word}"),
        }
    }

    fn choose(&self, request: CompactionRequest) -> String {
        let layout = layout(&self.runs);
        let Some(selection) = select(&layout, &self.options, request, &self.occasion) else {
            return "nothing\n".to_owned();
        };
        let mut ids: Vec<u64> = selection.inputs.iter().map(|id| id.0).collect();
        ids.sort_unstable();
        let mut out = match &selection.action {
            Action::Drop => format!("drop {ids:?}"),
            Action::Move { level } => format!("move {ids:?} to level {level}"),
            Action::Merge { level, cuts } => {
                let cuts: Vec<u64> = cuts.iter().map(|cut| cut.0).collect();
                let cut = if cuts.is_empty() { String::new() } else { format!(" cut at {cuts:?}") };
                format!("merge {ids:?} into level {level}{cut}")
            }
        };
        if selection.action != Action::Drop {
            assert!(layout.keeps_order(&selection.inputs), "{out}");
            if layout.sees_oldest(&selection.inputs) {
                out.push_str(", with the oldest");
            }
        }
        writeln!(out, " ({:?})", selection.reason).unwrap();
        out
    }
}

fn file(word: &str, sequence: u64) -> OwnedFile {
    let mut parts = word.split(':');
    let id = number(parts.next().unwrap());
    let (first, last) = parts.next().unwrap().split_once("..").unwrap();
    let bytes = number(parts.next().unwrap());
    let (first, last) = (first.as_bytes().to_vec(), last.as_bytes().to_vec());
    let mut file = OwnedFile {
        id,
        first,
        last,
        bytes,
        times: (0, 0),
        sequence,
        markers: 0,
        made: 0,
        seen: i64::MAX,
        busy: false,
        draws: Vec::new(),
    };
    for part in parts {
        match part.split_once('=') {
            None if part == "busy" => file.busy = true,
            Some(("at", times)) => {
                let (low, high) = times.split_once("..").unwrap();
                file.times = (number(low), number(high));
            }
            Some(("markers", count)) => file.markers = number(count),
            Some(("made", time)) => file.made = number(time),
            Some(("seen", time)) => file.seen = number(time),
            _ => panic!("what is {part}"),
        }
    }
    file
}

fn layout(runs: &[OwnedRun]) -> Layout<'_> {
    let mut layout = Layout::default();
    for run in runs {
        let files = run.files.iter().map(|file| FileFacts {
            is_part: false,
            id: FileId(file.id),
            byte_count: file.bytes,
            first_row: &file.first,
            last_row: &file.last,
            min_timestamp: Timestamp(file.times.0),
            max_timestamp: Timestamp(file.times.1),
            last_seen: Timestamp(file.seen),
            max_sequence: Sequence(file.sequence),
            marker_count: file.markers,
            created_micros: file.made,
            busy: file.busy,
        });
        layout.runs.push(RunFacts { level: run.level, files: files.collect() });
    }
    layout
}

/// Bytes of a cell on disk without compression: key, value, and what the block adds.
const CELL_BYTES: f64 = 116.0;
/// Cells of a memstore of 64 MiB.
const FLUSH_CELLS: f64 = 64.0 * 1048576.0 / CELL_BYTES;
/// Number of buckets of the key space.
const BUCKETS: usize = 2000;

/// Fills a store with keys drawn evenly from as many as there are entries. Computes expected
/// values, so nothing is random: of `n` draws from `k` keys `k * (1 - exp(-n / k))` are
/// different.
struct Simulation {
    entries: f64,
    next_id: u64,
    sequence: u64,
    flushed: f64,
    written: f64,
    merges: u32,
    most_runs: usize,
    most_bytes: u64,
}

fn key(bucket: usize) -> Vec<u8> {
    format!("{bucket:05}").into_bytes()
}

impl Simulation {
    fn new(case: &mut Case, entries: u64) -> Simulation {
        case.occasion.flush_bytes = 64 << 20;
        Simulation {
            entries: entries as f64,
            next_id: 1,
            sequence: 0,
            flushed: 0.0,
            written: 0.0,
            merges: 0,
            most_runs: 0,
            most_bytes: 0,
        }
    }

    fn cells(&self, draws: f64) -> f64 {
        let keys = self.entries / BUCKETS as f64;
        keys * (1.0 - (-draws / keys).exp())
    }

    fn file(&mut self, first: usize, draws: Vec<f64>, sequence: u64) -> OwnedFile {
        let id = self.next_id;
        self.next_id += 1;
        let cells: f64 = draws.iter().map(|draws| self.cells(*draws)).sum();
        OwnedFile {
            id,
            first: key(first),
            last: key(first + draws.len() - 1),
            bytes: (cells * CELL_BYTES) as u64,
            times: (sequence as i64, sequence as i64),
            sequence,
            markers: 0,
            made: 0,
            seen: i64::MAX,
            busy: false,
            draws,
        }
    }

    fn run(mut self, case: &mut Case) -> String {
        let mut left = self.entries;
        while left > 0.0 {
            let cells = left.min(FLUSH_CELLS);
            left -= cells;
            self.sequence += 1;
            let draws = vec![cells / BUCKETS as f64; BUCKETS];
            let file = self.file(0, draws, self.sequence);
            self.flushed += file.bytes as f64;
            case.runs.push(OwnedRun { level: 0, files: vec![file] });
            self.most_runs = self.most_runs.max(case.runs.len());
            case.occasion.now_micros = self.sequence as i64;
            self.settle(case);
        }
        let bytes: u64 = bytes_of(&case.runs);
        let live = self.cells(self.entries / BUCKETS as f64) * BUCKETS as f64 * CELL_BYTES;
        let files: usize = case.runs.iter().map(|run| run.files.len()).sum();
        format!(
            "{} flushes, {} merges, written {:.2} times, {} runs of {files} files at rest, at most {} \
             runs, {:.2} times the live bytes at rest, {:.2} at most\n",
            self.sequence,
            self.merges,
            1.0 + self.written / self.flushed,
            case.runs.len(),
            self.most_runs,
            bytes as f64 / live,
            self.most_bytes as f64 / live,
        )
    }

    /// Executes the policy's selections until there are none.
    fn settle(&mut self, case: &mut Case) {
        loop {
            self.most_bytes = self.most_bytes.max(bytes_of(&case.runs));
            let layout = layout(&case.runs);
            let chosen = select(&layout, &case.options, CompactionRequest::Minor, &case.occasion);
            let Some(selection) = chosen else { return };
            assert!(layout.keeps_order(&selection.inputs), "{selection:?}");
            let inputs: Vec<u64> = selection.inputs.iter().map(|id| id.0).collect();
            match selection.action {
                Action::Drop => panic!("nothing expires here"),
                Action::Move { level } => {
                    let files = take(&mut case.runs, &inputs);
                    put(&mut case.runs, level, files);
                }
                Action::Merge { level, .. } => {
                    self.merges += 1;
                    let before = bytes_of(&case.runs);
                    let files = take(&mut case.runs, &inputs);
                    let merged = self.merge(files, case.options.file_bytes);
                    self.written += merged.iter().map(|file| file.bytes as f64).sum::<f64>();
                    // The inputs exist until the output does.
                    self.most_bytes = self.most_bytes.max(before + bytes_of_files(&merged));
                    put(&mut case.runs, level, merged);
                }
            }
        }
    }

    fn merge(&mut self, files: Vec<OwnedFile>, file_bytes: u64) -> Vec<OwnedFile> {
        let mut draws = vec![0.0; BUCKETS];
        let sequence = files.iter().map(|file| file.sequence).max().unwrap();
        for file in &files {
            let first: usize = number(std::str::from_utf8(&file.first).unwrap());
            for (sum, more) in draws[first..].iter_mut().zip(&file.draws) {
                *sum += more;
            }
        }
        let mut merged = Vec::new();
        let mut begin = 0;
        let mut bytes = 0.0;
        for bucket in 0..=BUCKETS {
            let ends = bucket == BUCKETS || draws[bucket] == 0.0 || bytes >= file_bytes as f64;
            if ends && bucket > begin && bytes > 0.0 {
                let part = draws[begin..bucket].to_vec();
                merged.push(self.file(begin, part, sequence));
                (begin, bytes) = (bucket, 0.0);
            }
            if bucket < BUCKETS {
                if draws[bucket] == 0.0 {
                    begin = bucket + 1;
                }
                bytes += self.cells(draws[bucket]) * CELL_BYTES;
            }
        }
        merged
    }
}

fn bytes_of(runs: &[OwnedRun]) -> u64 {
    runs.iter().map(|run| bytes_of_files(&run.files)).sum()
}

fn bytes_of_files(files: &[OwnedFile]) -> u64 {
    files.iter().map(|file| file.bytes).sum()
}

fn take(runs: &mut Vec<OwnedRun>, ids: &[u64]) -> Vec<OwnedFile> {
    let mut taken = Vec::new();
    for run in runs.iter_mut() {
        taken.extend(run.files.extract_if(.., |file| ids.contains(&file.id)));
    }
    runs.retain(|run| !run.files.is_empty());
    taken
}

fn put(runs: &mut Vec<OwnedRun>, level: u8, files: Vec<OwnedFile>) {
    match runs.iter_mut().find(|run| level > 0 && run.level == level) {
        Some(run) => run.files.extend(files),
        None => runs.push(OwnedRun { level, files }),
    }
    for run in runs.iter_mut() {
        run.files.sort_by(|a, b| a.first.cmp(&b.first));
    }
    runs.sort_by_key(|run| {
        let newest = run.files.iter().map(|file| file.sequence).max().unwrap();
        (u8::MAX - run.level, if run.level == 0 { newest } else { 0 })
    });
}
