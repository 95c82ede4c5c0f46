//! Parser of PostgreSQL's advanced regular expressions, with its errors.

use super::set::{CharSet, Class};
use super::tree::{
    PositionConstraint, Preference, QuantifiedAtom, Quantifier, RegexNode, RegexNodeKind,
    RepeatCount, branch,
};
use super::{Options, Syntax};

/// Maximum repetition count of a bound.
const REPETITIONS_MAX: usize = 255;
/// Maximum nesting depth of parentheses.
const DEPTH_MAX: usize = 250;

const BAD_PATTERN: &str = "invalid regexp (reg version 0.8)";
const BAD_COLLATION: &str = "invalid collating element";
const BAD_CLASS: &str = "invalid character class";
const BAD_ESCAPE: &str = "invalid escape \\ sequence";
const BAD_REFERENCE: &str = "invalid backreference number";
const OPEN_BRACKET: &str = "brackets [] not balanced";
const OPEN_PAREN: &str = "parentheses () not balanced";
const OPEN_BRACE: &str = "braces {} not balanced";
const BAD_COUNT: &str = "invalid repetition count(s)";
const BAD_RANGE: &str = "invalid character range";
const NO_OPERAND: &str = "quantifier operand invalid";
const BAD_OPTION: &str = "invalid embedded option";
pub(super) const TOO_COMPLEX: &str = "regular expression is too complex";

type Result<T> = std::result::Result<T, &'static str>;

/// A parsed pattern.
pub(super) struct ParsedPattern {
    pub(super) part: RegexNode,
    pub(super) groups: usize,
    pub(super) options: Options,
}

/// Parses a pattern.
pub(super) fn parse(pattern: &str, options: Options) -> Result<ParsedPattern> {
    let mut parser = Parser {
        pattern: pattern.chars().collect(),
        at: 0,
        options,
        closed: vec![false],
        depth: 0,
        in_look: 0,
    };
    parser.prefixes()?;
    let part = match parser.options.syntax {
        Syntax::Literal => {
            let set = |c: &char| RegexNodeKind::Set(CharSet::one(*c, parser.options.ignore_case));
            let atoms = parser.pattern[parser.at..].iter().map(|c| RegexNode::plain(set(c)));
            branch(atoms.map(|atom| QuantifiedAtom { atom, quantifier: None }).collect())
        }
        _ => parser.alternatives()?,
    };
    if parser.at < parser.pattern.len() && parser.options.syntax != Syntax::Literal {
        return Err(OPEN_PAREN);
    }
    Ok(ParsedPattern { part, groups: parser.closed.len() - 1, options: parser.options })
}

struct Parser {
    pattern: Vec<char>,
    at: usize,
    options: Options,
    /// For each group that was opened, whether it was closed; the first entry is unused.
    closed: Vec<bool>,
    depth: usize,
    /// Nesting depth of look-around, in which parentheses do not capture.
    in_look: usize,
}

/// Meaning of an escape.
enum Escape {
    Character(char),
    Class(Class, bool),
    Place(PositionConstraint),
    Reference(usize),
}

impl Parser {
    fn peek(&self) -> Option<char> {
        self.pattern.get(self.at).copied()
    }

    fn nth(&self, ahead: usize) -> Option<char> {
        self.pattern.get(self.at + ahead).copied()
    }

    fn take(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(wanted);
        self.at += usize::from(found);
        found
    }

    fn follows(&self, text: &str) -> bool {
        text.chars().enumerate().all(|(ahead, c)| self.nth(ahead) == Some(c))
    }

    fn is_advanced(&self) -> bool {
        self.options.syntax == Syntax::Advanced
    }

    /// Parses `***=`, `***:` and `(?options)`.
    fn prefixes(&mut self) -> Result<()> {
        if self.options.syntax == Syntax::Literal {
            return Ok(());
        }
        if self.follows("***") && self.nth(3).is_some() {
            match self.nth(3) {
                Some('=') => self.options.syntax = Syntax::Literal,
                Some(':') => self.options.syntax = Syntax::Advanced,
                Some('?') => return Err(BAD_PATTERN),
                _ => return Err(NO_OPERAND),
            }
            self.at += 4;
        }
        let letter = self.nth(2).is_some_and(|c| c.is_ascii_alphabetic());
        if !self.is_advanced() || !self.follows("(?") || !letter {
            return Ok(());
        }
        self.at += 2;
        while let Some(letter) = self.peek().filter(char::is_ascii_alphabetic) {
            self.at += 1;
            if !self.options.take(letter) {
                return Err(BAD_OPTION);
            }
        }
        if self.take(')') { Ok(()) } else { Err(BAD_OPTION) }
    }

    /// Skips comments, and white space in expanded syntax.
    fn skip(&mut self) {
        let start = self.at;
        if self.options.expanded {
            loop {
                while self.peek().is_some_and(char::is_whitespace) {
                    self.at += 1;
                }
                if self.peek() != Some('#') {
                    break;
                }
                while self.peek().is_some_and(|c| c != '\n') {
                    self.at += 1;
                }
            }
        }
        if self.is_advanced() && self.follows("(?#") {
            while self.peek().is_some_and(|c| c != ')') {
                self.at += 1;
            }
            self.at = (self.at + 1).min(self.pattern.len());
        }
        if self.at > start {
            self.skip();
        }
    }

    fn alternatives(&mut self) -> Result<RegexNode> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(TOO_COMPLEX);
        }
        let mut branches = vec![self.branch()?];
        while self.take('|') {
            branches.push(self.branch()?);
        }
        self.depth -= 1;
        Ok(RegexNode::alternatives(branches))
    }

    fn branch(&mut self) -> Result<RegexNode> {
        let mut pieces = Vec::new();
        loop {
            self.skip();
            match self.peek() {
                None | Some('|') => break,
                Some(')') if self.depth > 1 => break,
                Some(')') if self.is_advanced() => return Err(OPEN_PAREN),
                Some(_) => {}
            }
            let (atom, is_constraint) = self.atom()?;
            self.skip();
            let quantifier = if is_constraint { None } else { self.quantifier()? };
            pieces.push(QuantifiedAtom { atom, quantifier });
        }
        Ok(branch(pieces))
    }

    /// Parses an atom or a constraint, and returns whether it is a constraint.
    fn atom(&mut self) -> Result<(RegexNode, bool)> {
        let lines = self.options.line_anchors;
        let Some(c) = self.peek() else { return Err(NO_OPERAND) };
        let place = |place| Ok((RegexNode::plain(RegexNodeKind::Place(place)), true));
        self.at += 1;
        match c {
            '^' => {
                return place(if lines {
                    PositionConstraint::LineBegin
                } else {
                    PositionConstraint::Begin
                });
            }
            '$' => {
                return place(if lines {
                    PositionConstraint::LineEnd
                } else {
                    PositionConstraint::End
                });
            }
            '*' | '+' | '?' => return Err(NO_OPERAND),
            '{' if self.bound_follows() => return Err(NO_OPERAND),
            '(' => return self.parenthesized(),
            '[' if self.follows("[:<:]]") || self.follows("[:>:]]") => {
                let begin = self.nth(2) == Some('<');
                self.at += 6;
                return place(if begin {
                    PositionConstraint::WordBegin
                } else {
                    PositionConstraint::WordEnd
                });
            }
            _ => {}
        }
        let ignore_case = self.options.ignore_case;
        let set = match c {
            '[' => self.bracket()?,
            '.' => CharSet::any(self.options.stop_at_lines),
            '\\' => match self.escape()? {
                Escape::Place(found) => return place(found),
                Escape::Reference(group) => {
                    if !self.closed.get(group).copied().unwrap_or(false) || self.in_look > 0 {
                        return Err(BAD_REFERENCE);
                    }
                    let count = RepeatCount { min: 1, max: Some(1) };
                    let part = RegexNode::plain(RegexNodeKind::Reference { group, count });
                    return Ok((RegexNode { refers: true, ..part }, false));
                }
                Escape::Character(c) => CharSet::one(c, ignore_case),
                Escape::Class(class, outside) => {
                    let mut set = CharSet::default();
                    set.add_class(class, outside, ignore_case);
                    set.finish()
                }
            },
            c => CharSet::one(c, ignore_case),
        };
        Ok((RegexNode::plain(RegexNodeKind::Set(set)), false))
    }

    fn bound_follows(&self) -> bool {
        self.peek().is_some_and(|c| c.is_ascii_digit())
    }

    fn parenthesized(&mut self) -> Result<(RegexNode, bool)> {
        if !(self.is_advanced() && self.take('?')) {
            let group = self.closed.len();
            let captures = self.in_look == 0;
            if captures {
                self.closed.push(false);
            }
            let part = self.inner()?;
            if !captures {
                return Ok((part, false));
            }
            self.closed[group] = true;
            return Ok((part.grouped(group), false));
        }
        if self.take(':') {
            return Ok((self.inner()?, false));
        }
        let ahead = !self.take('<');
        let negated = match self.peek() {
            Some('=') => false,
            Some('!') => true,
            _ => return Err(NO_OPERAND),
        };
        self.at += 1;
        self.in_look += 1;
        let part = Box::new(self.inner()?);
        self.in_look -= 1;
        Ok((RegexNode::plain(RegexNodeKind::Look { ahead, negated, part }), true))
    }

    fn inner(&mut self) -> Result<RegexNode> {
        let part = self.alternatives()?;
        if self.take(')') { Ok(part) } else { Err(OPEN_PAREN) }
    }

    fn quantifier(&mut self) -> Result<Option<Quantifier>> {
        let (min, max) = match self.peek() {
            Some('*') => (0, None),
            Some('+') => (1, None),
            Some('?') => (0, Some(1)),
            Some('{') if self.nth(1).is_some_and(|c| c.is_ascii_digit()) => {
                self.at += 1;
                return self.bound().map(Some);
            }
            _ => return Ok(None),
        };
        self.at += 1;
        let preference = Some(self.preference());
        Ok(Some(Quantifier { count: RepeatCount { min, max }, preference }))
    }

    fn preference(&mut self) -> Preference {
        match self.is_advanced() && self.take('?') {
            true => Preference::Shortest,
            false => Preference::Longest,
        }
    }

    /// Parses `m}`, `m,}` or `m,n}`.
    fn bound(&mut self) -> Result<Quantifier> {
        let min = self.repetitions()?;
        let mut max = Some(min);
        let ranged = self.take(',');
        if ranged {
            let open = !self.bound_follows();
            max = if open { None } else { Some(self.repetitions()?) };
        }
        match self.peek() {
            None => return Err(OPEN_BRACE),
            Some('}') => self.at += 1,
            Some(_) => return Err(BAD_COUNT),
        }
        if max.is_some_and(|max| max < min) {
            return Err(BAD_COUNT);
        }
        let preference = self.preference();
        let preference = ranged.then_some(preference);
        Ok(Quantifier { count: RepeatCount { min, max }, preference })
    }

    fn repetitions(&mut self) -> Result<usize> {
        let mut number = 0;
        while let Some(digit) = self.peek().and_then(|c| c.to_digit(10)) {
            number = number * 10 + digit as usize;
            self.at += 1;
            if number > REPETITIONS_MAX {
                return Err(BAD_COUNT);
            }
        }
        Ok(number)
    }

    /// Parses an escape after its backslash.
    fn escape(&mut self) -> Result<Escape> {
        let Some(c) = self.peek() else { return Err(BAD_ESCAPE) };
        self.at += 1;
        if !self.is_advanced() || !c.is_ascii_alphanumeric() {
            return Ok(Escape::Character(c));
        }
        let place = match c {
            'A' => Some(PositionConstraint::Begin),
            'Z' => Some(PositionConstraint::End),
            'm' => Some(PositionConstraint::WordBegin),
            'M' => Some(PositionConstraint::WordEnd),
            'y' => Some(PositionConstraint::WordEdge),
            'Y' => Some(PositionConstraint::NotWordEdge),
            _ => None,
        };
        if let Some(place) = place {
            return Ok(Escape::Place(place));
        }
        let class = match c.to_ascii_lowercase() {
            'd' => Some(Class::Digit),
            's' => Some(Class::Space),
            'w' => Some(Class::Word),
            _ => None,
        };
        if let Some(class) = class {
            return Ok(Escape::Class(class, c.is_ascii_uppercase()));
        }
        if c.is_ascii_digit() && c != '0' {
            let start = self.at - 1;
            let mut number = c as usize - '0' as usize;
            while let Some(digit) = self.peek().and_then(|c| c.to_digit(10)) {
                number = (number * 10 + digit as usize).min(9_999);
                self.at += 1;
            }
            if self.at == start + 1 || number < self.closed.len() {
                return Ok(Escape::Reference(number));
            }
            self.at = start;
            return self.code(8, 1, 3).map(Escape::Character);
        }
        Ok(Escape::Character(match c {
            'a' => '\x07',
            'b' => '\x08',
            'B' => '\\',
            'c' => {
                let control = self.peek().ok_or(BAD_ESCAPE)?;
                self.at += 1;
                char::from((control as u32 & 31) as u8)
            }
            'e' => '\x1b',
            'f' => '\x0c',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\x0b',
            'u' => self.code(16, 4, 4)?,
            'U' => self.code(16, 8, 8)?,
            'x' => self.code(16, 1, 255)?,
            '0' => {
                self.at -= 1;
                self.code(8, 1, 3)?
            }
            _ => return Err(BAD_ESCAPE),
        }))
    }

    /// Parses the digits of a character code.
    fn code(&mut self, radix: u32, least: usize, most: usize) -> Result<char> {
        let mut code = 0_u32;
        let mut digits = 0;
        while digits < most {
            let Some(digit) = self.peek().and_then(|c| c.to_digit(radix)) else { break };
            code = code
                .checked_mul(radix)
                .and_then(|code| code.checked_add(digit))
                .ok_or(BAD_ESCAPE)?;
            self.at += 1;
            digits += 1;
        }
        if digits < least {
            return Err(BAD_ESCAPE);
        }
        char::from_u32(code).ok_or(BAD_ESCAPE)
    }

    fn bracket(&mut self) -> Result<CharSet> {
        let mut set = CharSet::default();
        let negated = self.take('^');
        let mut first = true;
        loop {
            match self.peek() {
                None => return Err(OPEN_BRACKET),
                Some(']') if !first => {
                    self.at += 1;
                    break;
                }
                Some('-') if !first && self.nth(1) != Some(']') => return Err(BAD_RANGE),
                Some(_) => self.bracket_part(&mut set)?,
            }
            first = false;
        }
        if negated {
            set.negate(self.options.stop_at_lines);
        }
        Ok(set.finish())
    }

    /// Parses a character, a range or a class in brackets.
    fn bracket_part(&mut self, set: &mut CharSet) -> Result<()> {
        let ignore_case = self.options.ignore_case;
        if self.follows("[:") {
            self.at += 2;
            let name = self.until(':')?;
            let class = Class::class_by_name(&name).ok_or(BAD_CLASS)?;
            set.add_class(class, false, ignore_case);
            return Ok(());
        }
        let equivalence = self.follows("[=");
        let start = match self.bracket_end()? {
            Escape::Class(class, outside) => {
                set.add_class(class, outside, ignore_case);
                return Ok(());
            }
            Escape::Character(c) => c,
            _ => return Err(BAD_ESCAPE),
        };
        let ranged = !equivalence && self.peek() == Some('-') && self.nth(1) != Some(']');
        if !ranged {
            set.add_range(start, start, ignore_case);
            return Ok(());
        }
        self.at += 1;
        if self.peek().is_none() {
            return Err(OPEN_BRACKET);
        }
        if self.follows("[:") || self.follows("[=") {
            return Err(BAD_RANGE);
        }
        let Escape::Character(end) = self.bracket_end()? else { return Err(BAD_RANGE) };
        if start > end {
            return Err(BAD_RANGE);
        }
        set.add_range(start, end, ignore_case);
        Ok(())
    }

    /// Parses a character in brackets, or a class escape.
    fn bracket_end(&mut self) -> Result<Escape> {
        let Some(c) = self.peek() else { return Err(OPEN_BRACKET) };
        if self.follows("[.") || self.follows("[=") {
            let kind = self.nth(1).unwrap_or('.');
            self.at += 2;
            let name = self.until(kind)?;
            return collating(&name).map(Escape::Character).ok_or(BAD_COLLATION);
        }
        self.at += 1;
        if c != '\\' || !self.is_advanced() {
            return Ok(Escape::Character(c));
        }
        if self.peek().is_none() {
            return Err(BAD_ESCAPE);
        }
        match self.escape()? {
            found @ (Escape::Character(_) | Escape::Class(..)) => Ok(found),
            _ => Err(BAD_ESCAPE),
        }
    }

    /// Parses a name up to `:]`, `.]` or `=]`.
    fn until(&mut self, kind: char) -> Result<String> {
        let mut name = String::new();
        while let Some(c) = self.peek() {
            self.at += 1;
            if c == kind && self.take(']') {
                return Ok(name);
            }
            name.push(c);
        }
        Err(OPEN_BRACKET)
    }
}

/// Returns the character of a collating element name, which may be the character itself.
fn collating(name: &str) -> Option<char> {
    const NAMES: &[(&str, char)] = &[
        ("NUL", '\0'),
        ("alert", '\x07'),
        ("backspace", '\x08'),
        ("tab", '\t'),
        ("newline", '\n'),
        ("vertical-tab", '\x0b'),
        ("form-feed", '\x0c'),
        ("carriage-return", '\r'),
        ("space", ' '),
        ("exclamation-mark", '!'),
        ("quotation-mark", '"'),
        ("number-sign", '#'),
        ("dollar-sign", '$'),
        ("percent-sign", '%'),
        ("ampersand", '&'),
        ("apostrophe", '\''),
        ("left-parenthesis", '('),
        ("right-parenthesis", ')'),
        ("asterisk", '*'),
        ("plus-sign", '+'),
        ("comma", ','),
        ("hyphen", '-'),
        ("hyphen-minus", '-'),
        ("period", '.'),
        ("full-stop", '.'),
        ("slash", '/'),
        ("solidus", '/'),
        ("zero", '0'),
        ("one", '1'),
        ("two", '2'),
        ("three", '3'),
        ("four", '4'),
        ("five", '5'),
        ("six", '6'),
        ("seven", '7'),
        ("eight", '8'),
        ("nine", '9'),
        ("colon", ':'),
        ("semicolon", ';'),
        ("less-than-sign", '<'),
        ("equals-sign", '='),
        ("greater-than-sign", '>'),
        ("question-mark", '?'),
        ("commercial-at", '@'),
        ("left-square-bracket", '['),
        ("backslash", '\\'),
        ("reverse-solidus", '\\'),
        ("right-square-bracket", ']'),
        ("circumflex", '^'),
        ("circumflex-accent", '^'),
        ("underscore", '_'),
        ("low-line", '_'),
        ("grave-accent", '`'),
        ("left-brace", '{'),
        ("left-curly-bracket", '{'),
        ("vertical-line", '|'),
        ("right-brace", '}'),
        ("right-curly-bracket", '}'),
        ("tilde", '~'),
        ("DEL", '\x7f'),
    ];
    let mut characters = name.chars();
    match (characters.next(), characters.next()) {
        (Some(only), None) => Some(only),
        _ => NAMES.iter().find(|(known, _)| *known == name).map(|(_, c)| *c),
    }
}
