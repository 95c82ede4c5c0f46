//! Lengths of quoted texts and comments, for scanners that search a text for something else.
//!
//! Each function takes a text that begins with the construct and returns the length of the
//! construct in bytes; an unterminated construct extends to the end of the text.

/// Returns the length through the end of `mark`, which is searched after the first bytes.
pub(super) fn length_through(text: &str, first: usize, mark: &str) -> usize {
    let behind = &text[first..];
    first + behind.find(mark).map_or(behind.len(), |found| found + mark.len())
}

/// Returns the length of a comment that begins with `/*`; comments nest.
pub(super) fn comment_length(text: &str) -> usize {
    let (mut length, mut depth) = (0, 0);
    loop {
        let rest = &text[length..];
        let (step, change) = match rest.as_bytes() {
            [] => return length,
            [b'/', b'*', ..] => (2, 1),
            [b'*', b'/', ..] => (2, -1),
            _ => (rest.chars().next().map_or(1, char::len_utf8), 0),
        };
        length += step;
        depth += change;
        if depth == 0 {
            return length;
        }
    }
}

/// Returns the length of `$tag$…$tag$`, or 1 if the dollar does not begin a tag.
pub(super) fn dollar_quote_length(text: &str) -> usize {
    let tag = text[1..].find('$').map(|length| &text[..length + 2]);
    let is_tag = |tag: &&str| {
        let name = &tag[1..tag.len() - 1];
        !name.starts_with(|c: char| c.is_ascii_digit())
            && name.chars().all(|c| c.is_alphanumeric() || c == '_' || !c.is_ascii())
    };
    tag.filter(is_tag).map_or(1, |tag| length_through(text, tag.len(), tag))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lexical_span_includes_closing_delimiter() {
        assert_eq!(length_through("\"a\"b", 1, "\""), 3);
        assert_eq!(length_through("-- a", 2, "\n"), 4);
        assert_eq!(comment_length("/* ä /* b */ c */ d"), "/* ä /* b */ c */".len());
        assert_eq!(comment_length("/*/ a"), 5);
        assert_eq!(dollar_quote_length("$a$ $$ $a$ b"), 10);
        assert_eq!(dollar_quote_length("$$ b"), 4);
        assert_eq!(dollar_quote_length("$1 $2"), 1);
    }
}
