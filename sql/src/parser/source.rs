//! The text of a script, and where its characters are.
//!
//! The tokenizer reports lines and columns; PostgreSQL's clients want one character offset, and
//! taking text out of the script wants a byte offset. A table of line starts serves both.

use sqlparser::tokenizer::Location;

/// A script with its line starts.
#[derive(Debug)]
pub(crate) struct Source<'a> {
    text: &'a str,
    /// Byte and character offset, from 0, of the first character of each line.
    lines: Vec<(usize, usize)>,
    ascii: bool,
}

impl<'a> Source<'a> {
    pub(crate) fn new(text: &'a str) -> Source<'a> {
        let mut lines = vec![(0, 0)];
        let mut character = 0;
        for (byte, c) in text.char_indices() {
            character += 1;
            if c == '\n' {
                lines.push((byte + 1, character));
            }
        }
        Source { text, lines, ascii: text.is_ascii() }
    }

    pub(crate) fn text(&self) -> &'a str {
        self.text
    }

    /// Returns the 1-based character offset of a location, or 0 if it is none of this text.
    pub(crate) fn position(&self, location: Location) -> usize {
        if location.line == 0 {
            return 0;
        }
        let line = usize::try_from(location.line).unwrap_or(usize::MAX) - 1;
        let column = usize::try_from(location.column).unwrap_or(0);
        self.lines.get(line).map_or(0, |(_, character)| character + column)
    }

    /// Returns the byte offset of a location, at most the length of the text.
    pub(crate) fn byte(&self, location: Location) -> usize {
        let line = usize::try_from(location.line).unwrap_or(usize::MAX).saturating_sub(1);
        let column = usize::try_from(location.column).unwrap_or(0).saturating_sub(1);
        let Some((byte, _)) = self.lines.get(line) else { return self.text.len() };
        if self.ascii {
            return (byte + column).min(self.text.len());
        }
        let rest = &self.text[*byte..];
        byte + rest.char_indices().nth(column).map_or(rest.len(), |(offset, _)| offset)
    }

    /// Returns the position just behind the last character.
    pub(crate) fn end(&self) -> usize {
        let (byte, character) = self.lines[self.lines.len() - 1];
        character + self.text[byte..].chars().count() + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locations_become_offsets() {
        let source = Source::new("aé\nbü c");
        let location = |line, column| Location { line, column };
        assert_eq!(source.position(location(1, 1)), 1);
        assert_eq!(source.position(location(2, 4)), 7);
        assert_eq!(source.byte(location(2, 1)), 4);
        assert_eq!(source.byte(location(2, 3)), 7);
        assert_eq!(source.byte(location(9, 9)), source.text().len());
        assert_eq!(source.end(), 8);
        assert_eq!(source.position(location(0, 0)), 0);
    }
}
