//! Scopes of a body: the visible variables at each SQL fragment, by labelled blocks.
//!
//! Source: PostgreSQL's `plpgsql_ns_lookup` (pl_funcs.c).

/// A declaration, linked to the preceding one.
#[derive(Debug, Clone)]
struct ScopeEntry {
    before: Option<usize>,
    kind: ScopeEntryKind,
}

#[derive(Debug, Clone)]
enum ScopeEntryKind {
    /// The start of a block or a loop, with its label or an empty one.
    Label(String),
    Variable(String, usize),
}

/// A position among the declarations of a body: all declarations up to it are visible.
pub type ScopePosition = Option<usize>;

/// The declarations of a body.
#[derive(Debug, Clone, Default)]
pub struct BodyScopes {
    entries: Vec<ScopeEntry>,
}

/// The resolution of a name, which may have several parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResolvedVariable {
    /// The number of the variable.
    pub variable: usize,
    /// The number of parts that identify the variable; the others are fields of it.
    pub parts: usize,
}

impl BodyScopes {
    /// Begins a block; returns the position inside.
    pub(super) fn push_label(&mut self, place: ScopePosition, label: &str) -> ScopePosition {
        self.push(place, ScopeEntryKind::Label(label.to_owned()))
    }

    /// Declares a variable; returns the position after it.
    pub(super) fn push_variable(
        &mut self,
        place: ScopePosition,
        name: &str,
        number: usize,
    ) -> ScopePosition {
        self.push(place, ScopeEntryKind::Variable(name.to_owned(), number))
    }

    fn push(&mut self, before: ScopePosition, kind: ScopeEntryKind) -> ScopePosition {
        self.entries.push(ScopeEntry { before, kind });
        Some(self.entries.len() - 1)
    }

    /// Returns the variable that a name refers to at a position; `is_row` returns whether a
    /// variable has fields.
    pub fn find(
        &self,
        place: ScopePosition,
        parts: &[&str],
        is_row: impl Fn(usize) -> bool,
    ) -> Option<ResolvedVariable> {
        let mut block = place;
        while block.is_some() {
            let (first, rest) = parts.split_first()?;
            let (found, label) = self.in_block(block, first);
            let fits = |variable: &usize, rest: &[&str]| rest.is_empty() || is_row(*variable);
            if let Some(variable) = found.filter(|variable| fits(variable, rest)) {
                return Some(ResolvedVariable { variable, parts: 1 });
            }
            let (label, around) = label?;
            if let (true, Some((second, rest))) = (label == *first, rest.split_first())
                && let (Some(variable), _) = self.in_block(block, second)
                && fits(&variable, rest)
            {
                return Some(ResolvedVariable { variable, parts: 2 });
            }
            block = around;
        }
        None
    }

    /// Returns a variable declared in the block of a position, and the block's label with the
    /// enclosing position.
    fn in_block(
        &self,
        place: ScopePosition,
        name: &str,
    ) -> (Option<usize>, Option<(&str, ScopePosition)>) {
        let (mut at, mut found) = (place, None);
        while let Some(entry) = at.map(|at| &self.entries[at]) {
            match &entry.kind {
                ScopeEntryKind::Label(label) => return (found, Some((label, entry.before))),
                ScopeEntryKind::Variable(known, number) if found.is_none() && known == name => {
                    found = Some(*number);
                }
                ScopeEntryKind::Variable(..) => {}
            }
            at = entry.before;
        }
        (found, None)
    }

    /// Returns whether the block of a position declares a variable.
    pub(super) fn is_declared(&self, place: ScopePosition, name: &str) -> bool {
        self.in_block(place, name).0.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inner_scope_shadows_outer_names() {
        let mut names = BodyScopes::default();
        let outer = names.push_label(None, "f");
        let outer = names.push_variable(outer, "x", 0);
        let outer = names.push_variable(outer, "r", 1);
        let inner = names.push_label(outer, "");
        let inner = names.push_variable(inner, "x", 2);
        let find = |parts: &[&str]| {
            let found = names.find(inner, parts, |variable| variable == 1);
            found.map(|found| (found.variable, found.parts))
        };
        assert_eq!(find(&["x"]), Some((2, 1)));
        assert_eq!(find(&["f", "x"]), Some((0, 2)));
        assert_eq!(find(&["r", "a"]), Some((1, 1)));
        assert_eq!(find(&["f", "r", "a"]), Some((1, 2)));
        assert_eq!(find(&["x", "a"]), None);
        assert_eq!(find(&["y"]), None);
    }
}
