//! Script commands that read.
//!
//! ```text
//! get TABLE ROW [families=…] [columns=…] [versions=…] [since=…] [until=…] [times=…] [cells=…]
//!         [filter=…]
//! exists TABLE ROW …
//! scan TABLE [start=ROW] [after=ROW] [stop=ROW] [through=ROW] [prefix=TEXT] [reverse] [limit=ROWS]
//!            [batch=CELLS] [bytes=BYTES] [seek=ROW] [counts] … and the options of a get
//! raw-scan TABLE …
//!
//! families=a,b  columns=a:x,a:y  versions=2 or all  times=a:1..5 (of one family)
//! cells=3 or cells=1+3 (of each row and family, after leaving out the first)
//! ```
//!
//! Every scan runs twice: in small batches, and as a chain of scans of which each returns one row
//! or partial row and the next continues from there. The results must be equal.

use store::scan::{CellWindow, FamilyRead};
use store::{CellBatch, Filter, Get, Scan, TableId, TimeRange, Timestamp, Transaction};

use crate::cases::filter_text;
use crate::{Answer, ScriptRun, Words, shown};

/// Common options of gets and scans.
struct Common {
    families: Option<Vec<u8>>,
    family_reads: Vec<FamilyRead>,
    time_range: TimeRange,
    max_versions: u32,
    cells: CellWindow,
    filter: Option<Filter>,
}

impl ScriptRun {
    fn family_index(&self, table: TableId, name: &str) -> Result<u8, String> {
        Ok(self.column(table, name)?.0)
    }

    fn common(&self, table: TableId, words: &mut Words<'_>) -> Result<Common, String> {
        // Columns and families are named through the builder, as programs do.
        let mut scan = Scan::all();
        for name in words.named.remove("families").into_iter().flat_map(|list| list.split(',')) {
            scan = scan.family(self.family_index(table, name)?);
        }
        for name in words.named.remove("columns").into_iter().flat_map(|list| list.split(',')) {
            let (family, qualifier) = self.column(table, name)?;
            scan = scan.column(family, qualifier);
        }
        if let Some(times) = words.named.remove("times") {
            let (family, range) = times.split_once(':').ok_or("bad times")?;
            let (min, max) = range.split_once("..").ok_or("bad times")?;
            let parse = |text: &str| text.parse().map(Timestamp).map_err(|_| "bad times");
            let time_range = Some(TimeRange::new(parse(min)?, parse(max)?));
            let family = self.family_index(table, family)?;
            scan.family_reads.push(FamilyRead { family, time_range, ..FamilyRead::default() });
        }
        let max_versions = match words.named.remove("versions") {
            Some("all") => u32::MAX,
            Some(word) => word.parse().map_err(|_| format!("bad versions {word}"))?,
            None => 1,
        };
        let min = Timestamp(words.number("since", i64::MIN)?);
        let max = Timestamp(words.number("until", i64::MAX)?);
        let number = |text: &str| text.parse().map_err(|_| format!("bad cells {text}"));
        let cells = match words.named.remove("cells").map(|text| text.split_once('+').ok_or(text)) {
            None => CellWindow::ALL,
            Some(Ok((offset, limit))) => {
                CellWindow { offset: number(offset)?, limit: number(limit)? }
            }
            Some(Err(limit)) => CellWindow { offset: 0, limit: number(limit)? },
        };
        let filter = match words.named.remove("filter") {
            Some(text) => Some(filter_text::parse(text, &|name| self.family_index(table, name))?),
            None => None,
        };
        let Scan { families, family_reads, .. } = scan;
        let time_range = match words.named.remove("as_of") {
            Some(at) => TimeRange::as_of(Timestamp(at.parse().map_err(|_| "bad as_of")?)),
            None => TimeRange::new(min, max),
        };
        Ok(Common { families, family_reads, time_range, max_versions, cells, filter })
    }

    pub(crate) fn get(
        &self,
        transaction: &Transaction,
        verb: &str,
        words: &mut Words<'_>,
    ) -> Answer {
        let table = self.table(words)?;
        let row = words.next("row")?.into();
        let Common { families, family_reads, time_range, max_versions, cells, filter } =
            self.common(table, words)?;
        let get = Get {
            row,
            families,
            family_reads,
            time_range,
            max_versions,
            cells,
            filter,
            sections: None,
        };
        let mut out = CellBatch::new();
        let found = match verb {
            "get" => transaction.get(table, &get, &mut out),
            "exists" => transaction.exists(table, &get),
            _ => transaction.get_locked(table, &get, &mut out),
        };
        Ok(match (verb, found.map_err(shown)?) {
            ("exists", found) => format!("{found}\n"),
            (_, true) => self.show(table, &out, false),
            (_, false) => "no row\n".into(),
        })
    }

    pub(crate) fn scan(
        &self,
        transaction: &Transaction,
        raw: bool,
        words: &mut Words<'_>,
    ) -> Answer {
        let table = self.table(words)?;
        let scan = self.scan_request(table, raw, words)?;
        let (seek, counts) = (words.named.remove("seek"), words.flag("counts"));
        let mut scanner = transaction.scan(table, scan.clone()).map_err(shown)?;
        let mut out = String::new();
        let mut batch = CellBatch::new();
        if let Some(seek) = seek {
            scanner.next_batch(1, &mut batch).map_err(shown)?;
            out += &self.show(table, &batch, raw);
            scanner.seek(seek.as_bytes()).map_err(shown)?;
        }
        let mut last_row = Vec::new();
        // Small batches, so that every script also tests continuation.
        while scanner.next_batch(2, &mut batch).map_err(shown)? {
            for index in 0..batch.row_count() {
                let row = batch.row(index);
                if last_row == row.key() {
                    out += "-- the next piece\n";
                }
                last_row = row.key().to_vec();
                let mut piece = CellBatch::new();
                piece.start_row(row.key());
                row.cells().for_each(|cell| piece.push(cell));
                out += &self.show(table, &piece, raw);
            }
        }
        if seek.is_none() {
            let chained = self.chain_of_scans(transaction, table, scan)?;
            let expected = out.replace("-- the next piece\n", "");
            if chained != expected {
                out += &format!("a chain of scans answers otherwise:\n{chained}");
            }
        }
        if out.is_empty() {
            out = "no rows\n".into();
        }
        if counts {
            let counts = scanner.counts();
            out += &format!("{} cells looked at, {} seeks\n", counts.cells, counts.seeks);
        }
        Ok(out)
    }

    fn scan_request(
        &self,
        table: TableId,
        raw: bool,
        words: &mut Words<'_>,
    ) -> Result<Scan, String> {
        let common = self.common(table, words)?;
        let mut scan = match words.named.remove("prefix") {
            Some(prefix) => Scan::prefix(prefix),
            None => Scan::all(),
        };
        if let Some(start) = words.named.remove("start") {
            scan.start = start.into();
        }
        if let Some(after) = words.named.remove("after") {
            (scan.start, scan.start_inclusive) = (after.into(), false);
        }
        if let Some(stop) = words.named.remove("stop") {
            scan.stop = Some(stop.into());
        }
        if let Some(through) = words.named.remove("through") {
            (scan.stop, scan.stop_inclusive) = (Some(through.into()), true);
        }
        scan.reverse = words.flag("reverse");
        scan.raw = raw;
        scan.limit = match words.number("limit", u64::MAX)? {
            u64::MAX => None,
            rows => Some(rows),
        };
        scan.batch = match words.number("batch", u32::MAX)? {
            u32::MAX => None,
            cells => Some(cells),
        };
        scan.batch_bytes = words.number("bytes", scan.batch_bytes)?;
        let max_versions = if raw { u32::MAX } else { common.max_versions };
        let Common { families, family_reads, time_range, cells, filter, .. } = common;
        Ok(Scan { families, family_reads, time_range, max_versions, cells, filter, ..scan })
    }

    /// Reads a scan by scans of one row or partial row each.
    fn chain_of_scans(
        &self,
        transaction: &Transaction,
        table: TableId,
        mut scan: Scan,
    ) -> Result<String, String> {
        let mut out = String::new();
        let mut batch = CellBatch::new();
        loop {
            let raw = scan.raw;
            let mut scanner = transaction.scan(table, scan).map_err(shown)?;
            if !scanner.next_batch(1, &mut batch).map_err(shown)? {
                return Ok(out);
            }
            out += &self.show(table, &batch, raw);
            scan = scanner.rest().map_err(shown)?;
        }
    }
}
