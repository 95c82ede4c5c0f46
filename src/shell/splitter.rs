//! Splitter of SQL text into statements. A statement ends with a semicolon outside of quotes,
//! dollar quotes and comments.

/// A split text.
pub(super) struct StatementSplit<'a> {
    /// The complete statements.
    pub(super) statements: Vec<&'a str>,
    /// The text after the last complete statement.
    pub(super) rest: &'a str,
    /// The text ends within quotes or a comment.
    pub(super) is_quoted: bool,
}

/// Splits a text into statements.
pub(super) fn split(text: &str) -> StatementSplit<'_> {
    let mut statements = Vec::new();
    let (mut begin, mut at) = (0, 0);
    let mut is_quoted = false;
    while at < text.len() {
        let (end, is_open) = token_end(text, at);
        is_quoted = is_open;
        if &text[at..end] == ";" {
            statements.push(&text[begin..end]);
            begin = end;
        }
        at = end;
    }
    StatementSplit { statements, rest: &text[begin..], is_quoted }
}

/// Returns the end of the token that begins at `at`, and whether the text ends within it. A token
/// is a word, a quoted text, a comment or one other character.
fn token_end(text: &str, at: usize) -> (usize, bool) {
    let rest = &text[at..];
    let until = |opening: usize, end: &str| match rest[opening..].find(end) {
        Some(place) => (at + opening + place + end.len(), false),
        None => (text.len(), true),
    };
    let mut characters = rest.chars();
    match characters.next() {
        Some('\'') => until(1, "'"),
        Some('"') => until(1, "\""),
        Some('-') if rest.starts_with("--") => (until(2, "\n").0, false),
        Some('/') if rest.starts_with("/*") => comment_end(text, at),
        Some('$') => match dollar_tag(rest) {
            Some(tag) => until(tag.len(), tag),
            None => (at + 1, false),
        },
        Some(first) if is_of_word(first) => {
            let end = at + rest.find(|one| !is_of_word(one) && one != '$').unwrap_or(rest.len());
            let is_escaping = rest[..end - at].eq_ignore_ascii_case("e");
            match is_escaping && text[end..].starts_with('\'') {
                true => escaped_end(text, end + 1),
                false => (end, false),
            }
        }
        Some(other) => (at + other.len_utf8(), false),
        None => (text.len(), false),
    }
}

fn is_of_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

/// Returns the opening dollar quote at the start of a text.
fn dollar_tag(text: &str) -> Option<&str> {
    let name = &text[1..];
    let end = name.find(|one| !is_of_word(one))?;
    let is_tag = name[end..].starts_with('$') && !name.starts_with(|one: char| one.is_numeric());
    is_tag.then(|| &text[..end + 2])
}

/// Returns the end of a string with backslash escapes whose contents begin at `begin`.
fn escaped_end(text: &str, begin: usize) -> (usize, bool) {
    let mut characters = text[begin..].char_indices();
    while let Some((offset, character)) = characters.next() {
        match character {
            '\\' => drop(characters.next()),
            '\'' => return (begin + offset + 1, false),
            _ => {}
        }
    }
    (text.len(), true)
}

/// Returns the end of a comment whose contents begin at `begin`; comments nest.
fn comment_end(text: &str, begin: usize) -> (usize, bool) {
    let (mut at, mut depth) = (begin, 0_usize);
    while let Some(place) = text[at..].find(['/', '*']) {
        at += place;
        let change = &text[at..];
        match () {
            () if change.starts_with("/*") => depth += 1,
            () if change.starts_with("*/") => depth -= 1,
            () => {
                at += 1;
                continue;
            }
        }
        at += 2;
        if depth == 0 {
            return (at, false);
        }
    }
    (text.len(), true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn semicolon_outside_quotes_ends_statement() {
        let cases: &[(&str, &[&str], &str, bool)] = &[
            ("", &[], "", false),
            ("select 1; select 2;\n", &["select 1;", " select 2;"], "\n", false),
            ("select ';', \";\";", &["select ';', \";\";"], "", false),
            ("select 'it''s;", &[], "select 'it''s;", true),
            ("select e'\\';';", &["select e'\\';';"], "", false),
            ("select '\\';", &["select '\\';"], "", false),
            ("do $$ begin; end $$;", &["do $$ begin; end $$;"], "", false),
            ("do $a$ ; $$ ; $a$;", &["do $a$ ; $$ ; $a$;"], "", false),
            ("do $a$ ;", &[], "do $a$ ;", true),
            ("select $1; x", &["select $1;"], " x", false),
            ("select a$b$; x", &["select a$b$;"], " x", false),
            ("-- ;\nselect 1;", &["-- ;\nselect 1;"], "", false),
            ("/* ; /* ; */ ; */ select 1;", &["/* ; /* ; */ ; */ select 1;"], "", false),
            ("/*/ ; ", &[], "/*/ ; ", true),
            ("select 'ä'; ß", &["select 'ä';"], " ß", false),
        ];
        for (text, statements, rest, is_quoted) in cases {
            let found = split(text);
            assert_eq!((&found.statements[..], found.rest), (*statements, *rest), "{text}");
            assert_eq!(found.is_quoted, *is_quoted, "{text}");
        }
    }
}
