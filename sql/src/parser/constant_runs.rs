//! Detection of long constant lists in a script: those of IN, and the rows of VALUES.
//!
//! Such a list becomes one token and one tree node ([`ConstantRun`]) instead of several for each
//! constant. It must consist of plain constants only, in a long script without definitions; other
//! lists are parsed constant by constant.

use std::ops::Range;

use super::lexical_span::{comment_length, dollar_quote_length, length_through};
use crate::ast::constant_run::{ConstantReader, ConstantRun, ConstantSeparator};

/// The minimum size of a script with runs.
const TEXT_BYTES_MIN: usize = 64 << 10;
/// The minimum number of constants of a run.
const CONSTANTS_MIN: usize = 1_000;

/// The prefix of the token of a run; the byte range follows.
const MARK: &str = "\0constants ";

/// A run in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundRun {
    /// The byte range from the first constant to the last one.
    pub range: Range<usize>,
    /// The number of its constants.
    pub constant_count: usize,
}

/// Returns the runs of a text, in order.
pub fn find(sql: &str) -> Vec<FoundRun> {
    let mut finder = Finder { sql, at: 0, runs: Vec::new() };
    if sql.len() >= TEXT_BYTES_MIN {
        while finder.at < sql.len() {
            finder.step();
        }
    }
    finder.runs
}

/// Returns the text of the token of a run.
pub(super) fn token(run: &FoundRun) -> String {
    format!("{MARK}{} {}", run.range.start, run.range.end)
}

/// Returns the run of a token.
pub(super) fn run_of(token: &str, sql: &str, position: usize) -> Option<ConstantRun> {
    let (start, end) = token.strip_prefix(MARK)?.split_once(' ')?;
    let text = sql.get(start.parse().ok()?..end.parse().ok()?)?;
    Some(ConstantRun { text: text.into(), position })
}

struct Finder<'a> {
    sql: &'a str,
    at: usize,
    runs: Vec<FoundRun>,
}

impl<'a> Finder<'a> {
    fn rest(&self) -> &'a str {
        &self.sql[self.at..]
    }

    /// Skips anything but a word; reads a word, and the run after it.
    fn step(&mut self) {
        let rest = self.rest();
        let first = rest.as_bytes()[0];
        let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '$' || !c.is_ascii();
        match first {
            b'\'' => self.skip_quoted('\'', false),
            b'"' => self.skip_quoted('"', false),
            b'-' if rest.starts_with("--") => self.at += length_through(rest, 2, "\n"),
            b'/' if rest.starts_with("/*") => self.at += comment_length(rest),
            b'$' => self.at += dollar_quote_length(rest),
            _ if rest.starts_with(is_word) => {
                let length = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
                self.at += length;
                self.after_word(&rest[..length]);
            }
            _ => self.at += rest.chars().next().map_or(1, char::len_utf8),
        }
    }

    fn after_word(&mut self, word: &str) {
        let is_escaped = word.eq_ignore_ascii_case("e") && self.rest().starts_with('\'');
        if is_escaped {
            return self.skip_quoted('\'', true);
        }
        if word.eq_ignore_ascii_case("create") {
            // The catalog stores the text of definitions, and other parsers read it.
            (self.at, self.runs) = (self.sql.len(), Vec::new());
            return;
        }
        let is_list = word.eq_ignore_ascii_case("in");
        if !is_list && !word.eq_ignore_ascii_case("values") {
            return;
        }
        let open = self.rest().trim_start();
        if !open.starts_with('(') {
            return;
        }
        let start = self.sql.len() - open.len() + 1;
        if let Some(run) = read(&self.sql[start..], start, is_list)
            && run.constant_count >= CONSTANTS_MIN
        {
            self.at = run.range.end;
            self.runs.push(run);
        }
    }

    fn skip_quoted(&mut self, quote: char, has_escapes: bool) {
        self.at += 1;
        loop {
            let Some(found) = self.rest().find([quote, '\\']) else {
                self.at = self.sql.len();
                return;
            };
            self.at += found + 1;
            match self.sql[self.at - 1..].starts_with(quote) {
                true => return,
                false if has_escapes => {
                    self.at += self.rest().chars().next().map_or(0, char::len_utf8);
                }
                false => {}
            }
        }
    }
}

/// Reads the constants after a parenthesis, at byte `start` of the text, up to the end of the list
/// or of the rows; `None` if there is anything else, or if rows have different widths.
fn read(text: &str, start: usize, is_list: bool) -> Option<FoundRun> {
    let mut reader = ConstantReader::new(text, 1);
    let (mut constant_count, mut row_count, mut width) = (0, 0, 0);
    loop {
        reader.constant()?;
        constant_count += 1;
        let end = text.len() - reader.rest().len();
        match reader.behind()? {
            ConstantSeparator::Constant => continue,
            ConstantSeparator::Row => {}
            ConstantSeparator::End => return None,
        }
        row_count += 1;
        if row_count == 1 {
            width = constant_count;
        }
        if constant_count != row_count * width {
            return None;
        }
        let goes_on = !is_list && reader.rest().trim_start().starts_with(',');
        if !goes_on {
            return Some(FoundRun { range: start..start + end, constant_count });
        }
        reader.next_row()?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(sql: &str) -> Vec<(String, usize)> {
        let padded = format!("{sql} /* {} */", " ".repeat(TEXT_BYTES_MIN));
        let runs = find(&padded).into_iter();
        runs.map(|run| (padded[run.range].chars().take(12).collect(), run.constant_count)).collect()
    }

    #[test]
    fn long_constant_lists_are_detected() {
        let numbers = vec!["-7"; CONSTANTS_MIN].join(" ,\n");
        let rows = vec!["(1, 'a)''(')"; CONSTANTS_MIN / 2].join(", ");
        let run = (numbers.chars().take(12).collect::<String>(), CONSTANTS_MIN);
        let row_run = ("1, 'a)''('),".to_owned(), CONSTANTS_MIN);
        assert_eq!(found(&format!("x in ({numbers}) or y NOT IN( {numbers} )")).len(), 2);
        assert_eq!(found(&format!("x in ({numbers}) and 1")), [run]);
        assert_eq!(found(&format!("insert into t values{rows} returning 1")), [row_run]);
        for none in [
            format!("x in ({numbers}, a)"),
            format!("x in (select 1, {numbers})"),
            format!("values {rows}, (1)"),
            format!("values {rows}, (1, default)"),
            format!("f({numbers})"),
            format!("select 1 in ({numbers}); create view v as select 1"),
            format!("'x in ({numbers})'"),
            format!("E'\\' x in ({numbers})'"),
            format!("$$ x in ({numbers}) $$"),
            format!("/* /* */ x in ({numbers}) */ -- x in ({numbers})"),
            format!("\"x in ({numbers})\""),
            "x in (1, 2, 3)".to_owned(),
        ] {
            assert_eq!(found(&none), [], "{none:.60}");
        }
    }
}
