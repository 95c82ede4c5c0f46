//! SQL text with alternatives for shrinking, so that a statement with a difference can be shrunk
//! without knowledge of its grammar.

use std::fmt;

/// A part of a statement: text and nested parts, in order.
#[derive(Debug, Clone, Default)]
pub(super) struct Piece {
    parts: Vec<Part>,
    smaller: Vec<Smaller>,
}

#[derive(Debug, Clone)]
enum Part {
    Text(String),
    Piece(Piece),
}

/// A smaller replacement.
#[derive(Debug, Clone)]
enum Smaller {
    Text(String),
    /// The nested part with this index.
    Part(usize),
}

impl fmt::Display for Piece {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for part in &self.parts {
            match part {
                Part::Text(text) => f.write_str(text)?,
                Part::Piece(piece) => piece.fmt(f)?,
            }
        }
        Ok(())
    }
}

impl Piece {
    /// Returns text that cannot be shrunk.
    pub(super) fn text(text: impl Into<String>) -> Piece {
        Piece::default().then(text)
    }

    /// Appends text.
    pub(super) fn then(mut self, text: impl Into<String>) -> Piece {
        self.parts.push(Part::Text(text.into()));
        self
    }

    /// Appends a part.
    pub(super) fn with(mut self, piece: Piece) -> Piece {
        self.parts.push(Part::Piece(piece));
        self
    }

    /// Appends a part that may also replace the whole.
    pub(super) fn or_only(mut self, piece: Piece) -> Piece {
        self.smaller.push(Smaller::Part(self.parts.len()));
        self.with(piece)
    }

    /// Adds a text that may replace the whole.
    pub(super) fn or_text(mut self, text: impl Into<String>) -> Piece {
        self.smaller.push(Smaller::Text(text.into()));
        self
    }

    /// Appends an optional clause.
    pub(super) fn maybe(self, clause: Piece) -> Piece {
        self.with(clause.or_text(""))
    }

    /// Appends parts with a separator; all but the first are optional.
    pub(super) fn list(mut self, items: Vec<Piece>, separator: &str) -> Piece {
        for (at, item) in items.into_iter().enumerate() {
            self = match at {
                0 => self.with(item),
                _ => self.maybe(Piece::text(separator).with(item)),
            };
        }
        self
    }

    /// Returns all variants with one replacement, the largest parts first.
    pub(super) fn shrunk(&self) -> Vec<Piece> {
        let mut all: Vec<Piece> = Vec::new();
        for smaller in &self.smaller {
            match smaller {
                Smaller::Text(text) => {
                    if self.to_string() != *text {
                        all.push(Piece::text(text.clone()));
                    }
                }
                Smaller::Part(at) => {
                    if let Part::Piece(piece) = &self.parts[*at] {
                        all.push(piece.clone());
                    }
                }
            }
        }
        for (at, part) in self.parts.iter().enumerate() {
            let Part::Piece(piece) = part else { continue };
            for smaller in piece.shrunk() {
                let mut whole = self.clone();
                whole.parts[at] = Part::Piece(smaller);
                all.push(whole);
            }
        }
        all
    }
}

#[test]
fn pieces_shrink() {
    let sum = Piece::text("(").or_only(Piece::text("a")).then(" + ").or_only(Piece::text("b"));
    let sum = sum.then(")").or_text("NULL");
    let query = Piece::text("SELECT ").list(vec![sum, Piece::text("c")], ", ");
    let texts: Vec<String> = query.shrunk().iter().map(Piece::to_string).collect();
    assert_eq!(query.to_string(), "SELECT (a + b), c");
    assert_eq!(texts, ["SELECT a, c", "SELECT b, c", "SELECT NULL, c", "SELECT (a + b)"]);
}
