//! SQL text with alternatives for shrinking, so that a statement with a difference can be shrunk
//! without knowledge of its grammar.

use std::fmt;

/// A part of a statement: text and nested parts, in order.
#[derive(Debug, Clone, Default)]
pub(super) struct ShrinkableSql {
    parts: Vec<SqlPart>,
    smaller: Vec<Replacement>,
}

#[derive(Debug, Clone)]
enum SqlPart {
    Text(String),
    Piece(ShrinkableSql),
}

/// A smaller replacement.
#[derive(Debug, Clone)]
enum Replacement {
    Text(String),
    /// The nested part with this index.
    Part(usize),
}

impl fmt::Display for ShrinkableSql {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for part in &self.parts {
            match part {
                SqlPart::Text(text) => f.write_str(text)?,
                SqlPart::Piece(piece) => piece.fmt(f)?,
            }
        }
        Ok(())
    }
}

impl ShrinkableSql {
    /// Returns text that cannot be shrunk.
    pub(super) fn text(text: impl Into<String>) -> ShrinkableSql {
        ShrinkableSql::default().then(text)
    }

    /// Appends text.
    pub(super) fn then(mut self, text: impl Into<String>) -> ShrinkableSql {
        self.parts.push(SqlPart::Text(text.into()));
        self
    }

    /// Appends a part.
    pub(super) fn with(mut self, piece: ShrinkableSql) -> ShrinkableSql {
        self.parts.push(SqlPart::Piece(piece));
        self
    }

    /// Appends a part that may also replace the whole.
    pub(super) fn with_or_replaced_by(mut self, piece: ShrinkableSql) -> ShrinkableSql {
        self.smaller.push(Replacement::Part(self.parts.len()));
        self.with(piece)
    }

    /// Adds a text that may replace the whole.
    pub(super) fn or_text(mut self, text: impl Into<String>) -> ShrinkableSql {
        self.smaller.push(Replacement::Text(text.into()));
        self
    }

    /// Appends an optional clause.
    pub(super) fn maybe(self, clause: ShrinkableSql) -> ShrinkableSql {
        self.with(clause.or_text(""))
    }

    /// Appends parts with a separator; all but the first are optional.
    pub(super) fn list(mut self, items: Vec<ShrinkableSql>, separator: &str) -> ShrinkableSql {
        for (at, item) in items.into_iter().enumerate() {
            self = match at {
                0 => self.with(item),
                _ => self.maybe(ShrinkableSql::text(separator).with(item)),
            };
        }
        self
    }

    /// Returns all variants with one replacement, the largest parts first.
    pub(super) fn shrunk_variants(&self) -> Vec<ShrinkableSql> {
        let mut all: Vec<ShrinkableSql> = Vec::new();
        for smaller in &self.smaller {
            match smaller {
                Replacement::Text(text) => {
                    if self.to_string() != *text {
                        all.push(ShrinkableSql::text(text.clone()));
                    }
                }
                Replacement::Part(at) => {
                    if let SqlPart::Piece(piece) = &self.parts[*at] {
                        all.push(piece.clone());
                    }
                }
            }
        }
        for (at, part) in self.parts.iter().enumerate() {
            let SqlPart::Piece(piece) = part else { continue };
            for smaller in piece.shrunk_variants() {
                let mut whole = self.clone();
                whole.parts[at] = SqlPart::Piece(smaller);
                all.push(whole);
            }
        }
        all
    }
}

#[test]
fn pieces_shrink() {
    let sum = ShrinkableSql::text("(")
        .with_or_replaced_by(ShrinkableSql::text("a"))
        .then(" + ")
        .with_or_replaced_by(ShrinkableSql::text("b"));
    let sum = sum.then(")").or_text("NULL");
    let query = ShrinkableSql::text("SELECT ").list(vec![sum, ShrinkableSql::text("c")], ", ");
    let texts: Vec<String> = query.shrunk_variants().iter().map(ShrinkableSql::to_string).collect();
    assert_eq!(query.to_string(), "SELECT (a + b), c");
    assert_eq!(texts, ["SELECT a, c", "SELECT b, c", "SELECT NULL, c", "SELECT (a + b)"]);
}
