//! Long lists of constants, stored as text: a syntax tree node for each constant would need about
//! a hundred times the memory. The parser makes them of long IN lists and VALUES; the binder reads
//! the constants from the text.

use std::sync::Arc;

use super::expr::{Expr, UnaryOperator};

/// The constants of `IN (…)`, or the rows of VALUES, from the first to the last constant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConstantRun {
    /// `1, 'a'), (2, 'b'`: rows that have the same number of constants.
    pub text: Arc<str>,
    /// The position of the first constant.
    pub position: usize,
}

/// Reader of a run, or of text that may be one.
pub struct ConstantReader<'a> {
    rest: &'a str,
    position: usize,
}

/// The token after a constant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConstantSeparator {
    /// Another constant of the row.
    Constant,
    /// The end of the row; the parenthesis is consumed.
    Row,
    /// The end of the text.
    End,
}

impl ConstantRun {
    /// Returns the rows, in order.
    pub fn rows(&self) -> impl Iterator<Item = Vec<Expr>> {
        let mut reader = Some(ConstantReader::new(&self.text, self.position));
        std::iter::from_fn(move || {
            let mut row = Vec::new();
            loop {
                let at_hand = reader.as_mut()?;
                row.push(at_hand.constant()?);
                match at_hand.behind()? {
                    ConstantSeparator::Constant => {}
                    ConstantSeparator::Row => {
                        at_hand.next_row()?;
                        return Some(row);
                    }
                    ConstantSeparator::End => {
                        reader = None;
                        return Some(row);
                    }
                }
            }
        })
    }
}

impl<'a> ConstantReader<'a> {
    /// Returns a reader of a text, given the position of its first character.
    pub fn new(text: &'a str, position: usize) -> ConstantReader<'a> {
        ConstantReader { rest: text, position }
    }

    /// Returns the unread rest.
    pub fn rest(&self) -> &'a str {
        self.rest
    }

    fn skip(&mut self, bytes: usize) {
        let (read, rest) = self.rest.split_at(bytes);
        self.position += if read.is_ascii() { bytes } else { read.chars().count() };
        self.rest = rest;
    }

    fn skip_blanks(&mut self) {
        let blanks = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | b'\x0c');
        let count = self.rest.bytes().take_while(blanks).count();
        self.skip(count);
    }

    /// Reads a constant: a number, a plain string, NULL, TRUE or FALSE; `None` if the text is
    /// something else.
    pub fn constant(&mut self) -> Option<Expr> {
        self.skip_blanks();
        let position = self.position;
        match self.rest.as_bytes().first()? {
            b'\'' => self.string(position),
            b'-' => {
                self.skip(1);
                let number = self.position;
                let operand = Box::new(self.number(number)?);
                Some(Expr::Unary { operator: UnaryOperator::Minus, operand, position })
            }
            b'0'..=b'9' => self.number(position),
            _ => self.word(position),
        }
    }

    fn number(&mut self, position: usize) -> Option<Expr> {
        let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
        let mut end = digits(self.rest);
        if end == 0 {
            return None;
        }
        if self.rest[end..].starts_with('.') {
            end += 1 + digits(&self.rest[end + 1..]);
        }
        if !self.ends_at(end) {
            return None;
        }
        let text = self.rest[..end].to_owned();
        self.skip(end);
        Some(Expr::Number { text, position })
    }

    /// Returns whether a constant may end at byte `end`.
    fn ends_at(&self, end: usize) -> bool {
        let behind = self.rest.as_bytes().get(end);
        behind.is_none_or(|byte| matches!(byte, b',' | b')' | b' ' | b'\t' | b'\n' | b'\r'))
    }

    fn string(&mut self, position: usize) -> Option<Expr> {
        let mut value = String::new();
        let mut at = 1;
        loop {
            let end = at + self.rest[at..].find('\'')?;
            value.push_str(&self.rest[at..end]);
            at = end + 1;
            if !self.rest[at..].starts_with('\'') {
                break;
            }
            value.push('\'');
            at += 1;
        }
        if !self.ends_at(at) {
            return None;
        }
        self.skip(at);
        Some(Expr::String { value, position })
    }

    fn word(&mut self, position: usize) -> Option<Expr> {
        let end = self.rest.bytes().take_while(u8::is_ascii_alphabetic).count();
        let word = &self.rest[..end];
        let expr = match word.len() {
            4 if word.eq_ignore_ascii_case("null") => Expr::Null { position },
            4 if word.eq_ignore_ascii_case("true") => Expr::Boolean { value: true, position },
            5 if word.eq_ignore_ascii_case("false") => Expr::Boolean { value: false, position },
            _ => return None,
        };
        if !self.ends_at(end) {
            return None;
        }
        self.skip(end);
        Some(expr)
    }

    /// Reads the separator after a constant; `None` if the text is something else.
    pub fn behind(&mut self) -> Option<ConstantSeparator> {
        self.skip_blanks();
        let behind = match self.rest.as_bytes().first() {
            None => return Some(ConstantSeparator::End),
            Some(b',') => ConstantSeparator::Constant,
            Some(b')') => ConstantSeparator::Row,
            Some(_) => return None,
        };
        self.skip(1);
        Some(behind)
    }

    /// Reads up to the first constant of the next row; `None` if there is no further row.
    pub fn next_row(&mut self) -> Option<()> {
        for sign in [",", "("] {
            self.skip_blanks();
            if !self.rest.starts_with(sign) {
                return None;
            }
            self.skip(1);
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constant_run_yields_rows() {
        let text = "1, 'it''s ä', -2.50 ),\n( null,TRUE , '')\t,(9999999999, false, 'x'";
        let run = ConstantRun { text: text.into(), position: 11 };
        let rows: Vec<Vec<Expr>> = run.rows().collect();
        assert_eq!(rows.iter().map(Vec::len).collect::<Vec<_>>(), [3, 3, 3]);
        assert_eq!(rows[0][1], Expr::String { value: "it's ä".to_owned(), position: 14 });
        assert_eq!(rows[0][2].position(), 25);
        assert_eq!(rows[1][0], Expr::Null { position: 36 });
        assert_eq!(rows[2][1], Expr::Boolean { value: false, position: 66 });
        for other in
            ["1e5", "1a", "'a' 'b'", "E'a'", "x", "1 + 2", "- 1", "'a", "date '2020-01-01'"]
        {
            let mut reader = ConstantReader::new(other, 1);
            assert!(reader.constant().is_none() || reader.behind().is_none(), "{other}");
        }
    }
}
