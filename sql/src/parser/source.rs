//! The text of a script, with conversions between positions.
//!
//! The tokenizer reports lines and columns; PostgreSQL's clients expect one character offset, and
//! slicing the text needs a byte offset. A table of line starts serves both.

use std::cell::RefCell;

use sqlparser::tokenizer::Location;

use super::constant_runs::{self, FoundRun};
use super::name::DatabaseQualifier;

/// A script with its line starts.
#[derive(Debug)]
pub(crate) struct ScriptText<'a> {
    text: &'a str,
    /// 0-based byte and character offset of the first character of each line.
    lines: Vec<(usize, usize)>,
    /// Byte offset of every [`STRIDE`]th character; empty if the text is ASCII.
    marks: Vec<usize>,
    /// Long lists of constants.
    runs: Vec<FoundRun>,
    /// The databases that qualify names of the statement that is read.
    databases: RefCell<Vec<DatabaseQualifier>>,
}

/// The number of characters between two marks.
const STRIDE: usize = 64;

impl<'a> ScriptText<'a> {
    pub(crate) fn new(text: &'a str) -> ScriptText<'a> {
        let mut lines = vec![(0, 0)];
        let mut marks = Vec::new();
        let is_ascii = text.is_ascii();
        let mut character = 0;
        for (byte, c) in text.char_indices() {
            if !is_ascii && character % STRIDE == 0 {
                marks.push(byte);
            }
            character += 1;
            if c == '\n' {
                lines.push((byte + 1, character));
            }
        }
        ScriptText { text, lines, marks, runs: Vec::new(), databases: RefCell::default() }
    }

    /// Finds long lists of constants, so that each becomes one token.
    pub(crate) fn with_runs(self) -> ScriptText<'a> {
        ScriptText { runs: constant_runs::find(self.text), ..self }
    }

    pub(crate) fn runs(&self) -> &[FoundRun] {
        &self.runs
    }

    /// Notes a database that qualifies a name.
    pub(crate) fn note_database(&self, database: Option<DatabaseQualifier>) {
        self.databases.borrow_mut().extend(database);
    }

    /// Takes the noted databases.
    pub(crate) fn take_databases(&self) -> Vec<DatabaseQualifier> {
        self.databases.take()
    }

    pub(crate) fn text(&self) -> &'a str {
        self.text
    }

    /// Returns the 1-based character offset of a location, or 0 if it is not in this text.
    pub(crate) fn position(&self, location: Location) -> usize {
        if location.line == 0 {
            return 0;
        }
        let line = usize::try_from(location.line).unwrap_or(usize::MAX) - 1;
        let column = usize::try_from(location.column).unwrap_or(0);
        self.lines.get(line).map_or(0, |(_, character)| character + column)
    }

    /// Returns the location of the character at a byte offset.
    pub(crate) fn location(&self, byte: usize) -> Location {
        let line = self.lines.partition_point(|(start, _)| *start <= byte).saturating_sub(1);
        let start = self.lines[line].0;
        let column = match self.marks.is_empty() {
            true => byte - start,
            false => self.text[start..byte].chars().count(),
        };
        Location::new(line as u64 + 1, column as u64 + 1)
    }

    /// Returns the byte offset of a location, at most the length of the text.
    pub(crate) fn byte(&self, location: Location) -> usize {
        let line = usize::try_from(location.line).unwrap_or(usize::MAX).saturating_sub(1);
        let column = usize::try_from(location.column).unwrap_or(0).saturating_sub(1);
        let Some((byte, character)) = self.lines.get(line) else { return self.text.len() };
        if self.marks.is_empty() {
            return (byte + column).min(self.text.len());
        }
        let character = character + column;
        let Some(&mark) = self.marks.get(character / STRIDE) else { return self.text.len() };
        let mut behind = self.text[mark..].char_indices();
        behind.nth(character % STRIDE).map_or(self.text.len(), |(offset, _)| mark + offset)
    }

    /// Returns the position after the last character.
    pub(crate) fn end(&self) -> usize {
        let (byte, character) = self.lines[self.lines.len() - 1];
        character + self.text[byte..].chars().count() + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locations_map_to_offsets() {
        let source = ScriptText::new("aé\nbü c");
        let location = |line, column| Location { line, column };
        assert_eq!(source.position(location(1, 1)), 1);
        assert_eq!(source.position(location(2, 4)), 7);
        assert_eq!(source.byte(location(2, 1)), 4);
        assert_eq!(source.byte(location(2, 3)), 7);
        assert_eq!(source.byte(location(9, 9)), source.text().len());
        assert_eq!(source.end(), 8);
        assert_eq!(source.position(location(0, 0)), 0);
    }

    #[test]
    fn offset_index_finds_every_character() {
        let text = "aé\n漢x".repeat(100);
        let source = ScriptText::new(&text);
        let mut at = Location { line: 1, column: 1 };
        for (byte, c) in text.char_indices() {
            assert_eq!((source.byte(at), source.location(byte)), (byte, at));
            at = match c {
                '\n' => Location { line: at.line + 1, column: 1 },
                _ => Location { line: at.line, column: at.column + 1 },
            };
        }
        assert_eq!(source.byte(at), text.len());
    }
}
