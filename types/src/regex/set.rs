//! Character sets: the characters that an atom matches.

use std::fmt::Write;

/// A named class, in brackets or as an escape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    Alnum,
    Alpha,
    Blank,
    Cntrl,
    Digit,
    Graph,
    Lower,
    Print,
    Punct,
    Space,
    Upper,
    Xdigit,
    /// Letters, digits and the underscore.
    Word,
    Ascii,
}

impl Class {
    pub(super) fn class_by_name(name: &str) -> Option<Class> {
        Some(match name {
            "alnum" => Class::Alnum,
            "alpha" => Class::Alpha,
            "ascii" => Class::Ascii,
            "blank" => Class::Blank,
            "cntrl" => Class::Cntrl,
            "digit" => Class::Digit,
            "graph" => Class::Graph,
            "lower" => Class::Lower,
            "print" => Class::Print,
            "punct" => Class::Punct,
            "space" => Class::Space,
            "upper" => Class::Upper,
            "xdigit" => Class::Xdigit,
            "word" => Class::Word,
            _ => return None,
        })
    }

    /// Returns the class in the bracket syntax of the `regex` crate.
    fn pattern(self) -> &'static str {
        match self {
            Class::Alpha => r"[\p{Alphabetic}\p{Nd}&&[^0-9]]",
            Class::Alnum => r"\p{Alphabetic}\p{Nd}",
            Class::Word => r"\p{Alphabetic}\p{Nd}_",
            Class::Blank => r"\t ",
            Class::Space => {
                r"\t-\r \u{1680}\u{2000}-\u{2006}\u{2008}-\u{200a}\u{2028}\u{2029}\u{205f}\u{3000}"
            }
            Class::Cntrl => r"\p{Cc}",
            Class::Digit => "0-9",
            Class::Xdigit => "0-9A-Fa-f",
            Class::Ascii => r"\x00-\x7f",
            Class::Lower => r"\p{Lowercase}\u{1c5}\u{1c8}\u{1cb}\u{1f2}",
            Class::Upper => r"\p{Uppercase}\p{Lt}",
            Class::Print => r"[[^\p{Cc}\p{Cn}]&&[^\u{2028}\u{2029}]]",
            Class::Graph => r"[[^\p{Cc}\p{Cn}]&&[^\p{Z}]]\u{a0}\u{2007}\u{202f}",
            Class::Punct => {
                r"[[^\p{Cc}\p{Cn}]&&[^\p{Z}\p{Alphabetic}\p{Nd}]]\u{a0}\u{2007}\u{202f}"
            }
        }
    }
}

/// A set of characters.
#[derive(Debug, Clone, Default)]
pub(super) struct CharSet {
    /// Inclusive ranges.
    ranges: Vec<(char, char)>,
    /// Classes, or their complements.
    classes: Vec<(Class, bool)>,
    negated: bool,
    /// A newline is excluded in any case.
    not_newline: bool,
    compiled: Option<regex::Regex>,
}

impl CharSet {
    /// Creates the set of one character.
    pub(super) fn one(c: char, ignore_case: bool) -> CharSet {
        let mut set = CharSet::default();
        set.add_range(c, c, ignore_case);
        set
    }

    /// Creates the set of all characters, optionally without the newline.
    pub(super) fn any(not_newline: bool) -> CharSet {
        CharSet { negated: true, not_newline, ..CharSet::default() }
    }

    pub(super) fn add_range(&mut self, first: char, last: char, ignore_case: bool) {
        debug_assert!(first <= last, "the range {first:?} to {last:?} is empty");
        self.ranges.push((first, last));
        if !ignore_case {
            return;
        }
        for c in first..=last {
            for variant in [single(c.to_lowercase()), single(c.to_uppercase())] {
                if let Some(variant) = variant.filter(|variant| *variant != c) {
                    self.ranges.push((variant, variant));
                }
            }
        }
    }

    pub(super) fn add_class(&mut self, class: Class, outside: bool, ignore_case: bool) {
        let class = match class {
            Class::Lower | Class::Upper if ignore_case => Class::Alpha,
            class => class,
        };
        self.classes.push((class, outside));
    }

    pub(super) fn negate(&mut self, not_newline: bool) {
        self.negated = true;
        self.not_newline = not_newline;
    }

    /// Compiles the set for [`CharSet::contains`].
    pub(super) fn finish(mut self) -> CharSet {
        if !self.classes.is_empty() {
            self.compiled = regex::Regex::new(&format!("^{}$", self.pattern())).ok();
        }
        self
    }

    pub(super) fn contains(&self, c: char) -> bool {
        if let Some(compiled) = &self.compiled {
            return compiled.is_match(c.encode_utf8(&mut [0; 4]));
        }
        let within = self.ranges.iter().any(|(first, last)| (*first..=*last).contains(&c));
        within != self.negated && !(self.not_newline && c == '\n')
    }

    /// Returns the set in the syntax of the `regex` crate.
    pub(super) fn pattern(&self) -> String {
        let mut written = String::from("[");
        if self.negated {
            written.push('^');
        }
        for (first, last) in &self.ranges {
            let _ = write!(written, "\\u{{{:x}}}-\\u{{{:x}}}", *first as u32, *last as u32);
        }
        for (class, outside) in &self.classes {
            let hat = if *outside { "^" } else { "" };
            let _ = write!(written, "[{hat}{}]", class.pattern());
        }
        if self.ranges.is_empty() && self.classes.is_empty() {
            written = if self.negated { r"[\s\S]".to_owned() } else { r"[^\s\S]".to_owned() };
        } else {
            written.push(']');
        }
        if self.not_newline { format!("[{written}&&[^\\n]]") } else { written }
    }

    /// Returns whether the sets are disjoint; `false` if that is not easily determined.
    pub(super) fn is_disjoint(&self, other: &CharSet) -> bool {
        let plain = |set: &CharSet| !set.negated && set.classes.is_empty();
        if plain(self) && plain(other) {
            return !self
                .ranges
                .iter()
                .any(|(a, b)| other.ranges.iter().any(|(c, d)| a.max(c) <= b.min(d)));
        }
        let (small, large) = if plain(self) { (self, other) } else { (other, self) };
        let few = plain(small) && small.ranges.iter().all(|(a, b)| *b as u32 - *a as u32 <= 64);
        few && small.ranges.iter().all(|(a, b)| (*a..=*b).all(|c| !large.contains(c)))
    }
}

/// Returns the only character of a case conversion, if there is one.
fn single(mut characters: impl Iterator<Item = char>) -> Option<char> {
    let first = characters.next()?;
    characters.next().is_none().then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn posix_classes_are_supported_by_regex_crate() {
        let names = [
            "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print",
            "punct", "space", "upper", "xdigit", "word",
        ];
        for name in names {
            for outside in [false, true] {
                let mut set = CharSet::default();
                set.add_class(Class::class_by_name(name).unwrap(), outside, false);
                assert!(set.finish().compiled.is_some(), "{name}");
            }
        }
    }
}
