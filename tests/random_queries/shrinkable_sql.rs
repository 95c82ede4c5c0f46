//! SQL text with alternatives for shrinking, so that a statement with a difference can be shrunk
//! without knowledge of its grammar.

use std::fmt;

/// A part of a statement: text and nested parts, in order.
#[derive(Debug, Clone, Default)]
pub(super) struct SqlNode {
    parts: Vec<SqlPart>,
    smaller: Vec<Replacement>,
}

#[derive(Debug, Clone)]
enum SqlPart {
    Text(String),
    Piece(SqlNode),
}

/// A smaller replacement.
#[derive(Debug, Clone)]
enum Replacement {
    Text(String),
    /// The nested part with this index.
    Part(usize),
}

impl fmt::Display for SqlNode {
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

impl SqlNode {
    /// Returns text that cannot be shrunk.
    pub(super) fn text(text: impl Into<String>) -> SqlNode {
        SqlNode::default().then(text)
    }

    /// Appends text.
    pub(super) fn then(mut self, text: impl Into<String>) -> SqlNode {
        self.parts.push(SqlPart::Text(text.into()));
        self
    }

    /// Appends a part.
    pub(super) fn with(mut self, piece: SqlNode) -> SqlNode {
        self.parts.push(SqlPart::Piece(piece));
        self
    }

    /// Appends a part that may also replace the whole.
    pub(super) fn with_or_replaced_by(mut self, piece: SqlNode) -> SqlNode {
        self.smaller.push(Replacement::Part(self.parts.len()));
        self.with(piece)
    }

    /// Adds a text that may replace the whole.
    pub(super) fn or_text(mut self, text: impl Into<String>) -> SqlNode {
        self.smaller.push(Replacement::Text(text.into()));
        self
    }

    /// Appends an optional clause.
    pub(super) fn maybe(self, clause: SqlNode) -> SqlNode {
        self.with(clause.or_text(""))
    }

    /// Appends parts with a separator; all but the first are optional.
    pub(super) fn list(mut self, items: Vec<SqlNode>, separator: &str) -> SqlNode {
        for (at, item) in items.into_iter().enumerate() {
            self = match at {
                0 => self.with(item),
                _ => self.maybe(SqlNode::text(separator).with(item)),
            };
        }
        self
    }

    /// Returns all variants with one replacement, the largest parts first.
    pub(super) fn shrunk_variants(&self) -> Vec<SqlNode> {
        let mut all: Vec<SqlNode> = Vec::new();
        for smaller in &self.smaller {
            match smaller {
                Replacement::Text(text) => {
                    if self.to_string() != *text {
                        all.push(SqlNode::text(text.clone()));
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
fn sql_fragments_shrink() {
    let sum = SqlNode::text("(")
        .with_or_replaced_by(SqlNode::text("a"))
        .then(" + ")
        .with_or_replaced_by(SqlNode::text("b"));
    let sum = sum.then(")").or_text("NULL");
    let query = SqlNode::text("SELECT ").list(vec![sum, SqlNode::text("c")], ", ");
    let texts: Vec<String> = query.shrunk_variants().iter().map(SqlNode::to_string).collect();
    assert_eq!(query.to_string(), "SELECT (a + b), c");
    assert_eq!(texts, ["SELECT a, c", "SELECT b, c", "SELECT NULL, c", "SELECT (a + b)"]);
}
