//! Identifiers: folding, truncation, and the words that cannot be one.

use types::text::unquoted_name;

/// Bytes of an identifier, as in PostgreSQL (NAMEDATALEN - 1).
pub(crate) const IDENTIFIER_BYTES: usize = 63;

/// PostgreSQL's reserved words, less those that are expressions by themselves.
const RESERVED: &[&str] = &[
    "all",
    "analyse",
    "analyze",
    "and",
    "any",
    "array",
    "as",
    "asc",
    "asymmetric",
    "both",
    "case",
    "cast",
    "check",
    "collate",
    "column",
    "constraint",
    "create",
    "default",
    "deferrable",
    "desc",
    "distinct",
    "do",
    "else",
    "end",
    "except",
    "false",
    "fetch",
    "for",
    "foreign",
    "from",
    "grant",
    "group",
    "having",
    "in",
    "initially",
    "intersect",
    "into",
    "lateral",
    "leading",
    "limit",
    "not",
    "null",
    "offset",
    "on",
    "only",
    "or",
    "order",
    "placing",
    "primary",
    "references",
    "returning",
    "select",
    "some",
    "symmetric",
    "table",
    "then",
    "to",
    "trailing",
    "true",
    "union",
    "unique",
    "using",
    "variadic",
    "when",
    "where",
    "window",
    "with",
];

/// Words that are values, and so cannot name a table or column.
const VALUES: &[&str] = &[
    "current_catalog",
    "current_date",
    "current_role",
    "current_time",
    "current_timestamp",
    "current_user",
    "localtime",
    "localtimestamp",
    "session_user",
    "user",
];

/// Reserved words that may yet name a function or type (and, after AS, a column).
const FUNCTION_OR_TYPE: &[&str] = &[
    "cross",
    "full",
    "ilike",
    "inner",
    "is",
    "join",
    "left",
    "like",
    "natural",
    "outer",
    "overlaps",
    "right",
    "similar",
    "tablesample",
];

/// Returns the identifier that a word means: lower case unless quoted, cut to 63 bytes.
pub(crate) fn fold(word: &str, quoted: bool) -> String {
    let mut folded = if quoted { word.to_owned() } else { word.to_ascii_lowercase() };
    if folded.len() > IDENTIFIER_BYTES {
        let mut end = IDENTIFIER_BYTES;
        while !folded.is_char_boundary(end) {
            end -= 1;
        }
        folded.truncate(end);
    }
    folded
}

/// Returns whether a folded, unquoted word cannot stand for a column.
pub(crate) fn is_reserved_for_column(word: &str) -> bool {
    RESERVED.contains(&word) || FUNCTION_OR_TYPE.contains(&word)
}

/// Returns whether a folded, unquoted word cannot name a table, column or alias that is declared.
pub(crate) fn is_reserved(word: &str) -> bool {
    is_reserved_for_column(word) || VALUES.contains(&word)
}

/// Returns an identifier as SQL text, quoted if it must be.
pub fn quoted(name: &str) -> String {
    let mut characters = name.chars();
    let plain = characters.next().is_some_and(|c| c.is_ascii_lowercase() || c == '_')
        && characters.all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    // A keyword may not stand bare everywhere; quoting is always right.
    if plain && !is_reserved(name) {
        return name.to_owned();
    }
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Returns the parts of a name that a text is, between dots: quoted, or anything without blanks and
/// dots, folded. Source: PostgreSQL's `SplitIdentifierString`.
pub(super) fn split(text: &str) -> Option<Vec<String>> {
    let mut rest = text.trim();
    let mut parts = Vec::new();
    loop {
        if let Some(quoted) = rest.strip_prefix('"') {
            let (part, behind) = unquoted_name(quoted).filter(|(part, _)| !part.is_empty())?;
            parts.push(fold(&part, true));
            rest = behind;
        } else {
            let end = rest.find(|c: char| c == '.' || c.is_ascii_whitespace());
            let end = end.unwrap_or(rest.len());
            if end == 0 {
                return None;
            }
            parts.push(fold(&rest[..end], false));
            rest = &rest[end..];
        }
        rest = rest.trim_start();
        match rest.strip_prefix('.') {
            Some(next) => rest = next.trim_start(),
            None => return rest.is_empty().then_some(parts),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folding() {
        assert_eq!(fold("FooBar", false), "foobar");
        assert_eq!(fold("FooBar", true), "FooBar");
        assert_eq!(fold("ÄB", false), "Äb", "only ASCII letters fold");
        let long = "é".repeat(40);
        assert_eq!(fold(&long, false), "é".repeat(31), "62 bytes: a character is not cut");
        assert!(is_reserved("user") && !is_reserved_for_column("user"));
    }

    #[test]
    fn identifiers_are_quoted_when_they_must_be() {
        assert_eq!(quoted("dep_time"), "dep_time");
        assert_eq!(quoted("Dep"), "\"Dep\"");
        assert_eq!(quoted("order"), "\"order\"");
        assert_eq!(quoted("a\"b"), "\"a\"\"b\"");
    }
}
