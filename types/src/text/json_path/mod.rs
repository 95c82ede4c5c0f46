//! Text format of `jsonpath`: parser by operator precedence, and output in PostgreSQL's format.
//!
//! Source: PostgreSQL's `jsonpath_scan.l`, `jsonpath_gram.y` and `jsonpath.c`.

mod scan;
mod write;

use std::sync::Arc;

use crate::datum::JsonPath;
use crate::datum::json_path::{
    Arithmetic, Comparison, Item, Kind, MAX_PATH_DEPTH as MAX_DEPTH, Method,
};
use crate::error::{Error, Result};
use crate::numeric::Numeric;
use crate::regex::{Options, Pattern};

use self::scan::{LocatedToken, PathToken, Scanner, at, syntax};
pub(super) use self::write::write;

struct Parser<'a> {
    text: &'a str,
    tokens: Vec<LocatedToken>,
    at: usize,
    depth: usize,
    /// Error of the scanner that ended the tokens early.
    failed: Option<Error>,
}

/// Parses a path.
///
/// # Errors
///
/// 42601 for a syntax error, 22P02 for an empty text.
pub(super) fn parse(text: &str) -> Result<JsonPath> {
    let mut scanner = Scanner { text, at: 0 };
    let mut tokens = Vec::new();
    let failed = loop {
        match scanner.next() {
            Ok(Some(token)) => tokens.push(token),
            Ok(None) => break None,
            Err(error) => break Some(error),
        }
    };
    if tokens.is_empty() {
        return Err(failed.unwrap_or_else(|| Error::bad_text("jsonpath", text)));
    }
    let mut parser = Parser { text, tokens, at: 0, depth: 0, failed };
    let lax = !parser.take_word("strict");
    if lax {
        parser.take_word("lax");
    }
    let root = parser.any()?;
    if parser.at < parser.tokens.len() || parser.failed.is_some() {
        return Err(parser.unexpected());
    }
    check(&root, false, false)?;
    Ok(JsonPath { lax, root })
}

/// Rejects `@` outside of filters and `last` outside of subscripts.
fn check(item: &Item, in_filter: bool, in_subscript: bool) -> Result<()> {
    match &item.kind {
        Kind::Current if !in_filter => {
            return Err(syntax("@ is not allowed in root expressions"));
        }
        Kind::Last if !in_subscript => {
            return Err(syntax("LAST is allowed only in array subscripts"));
        }
        _ => {}
    }
    let in_filter_below = in_filter || matches!(item.kind, Kind::Filter(_));
    let in_subscript_below = in_subscript || matches!(item.kind, Kind::Subscripts(_));
    let mut result = Ok(());
    item.kind.for_each_item(&mut |below| {
        if result.is_ok() {
            result = check(below, in_filter_below, in_subscript_below);
        }
    });
    result?;
    item.next.as_deref().map_or(Ok(()), |next| check(next, in_filter, in_subscript))
}

fn item(kind: Kind) -> Item {
    Item { kind, next: None }
}

impl Parser<'_> {
    fn peek(&self) -> Option<&PathToken> {
        self.tokens.get(self.at).map(|placed| &placed.token)
    }

    fn unexpected(&self) -> Error {
        match (self.tokens.get(self.at), &self.failed) {
            (None, Some(failed)) => failed.clone(),
            (placed, _) => {
                let near = placed.map_or("", |placed| &self.text[placed.near.clone()]);
                at("syntax error", near)
            }
        }
    }

    fn take_sign(&mut self, sign: &str) -> bool {
        let found = matches!(self.peek(), Some(PathToken::Sign(found)) if *found == sign);
        self.at += usize::from(found);
        found
    }

    fn expect_sign(&mut self, sign: &str) -> Result<()> {
        if self.take_sign(sign) { Ok(()) } else { Err(self.unexpected()) }
    }

    fn is_word(&self, ahead: usize, word: &str) -> bool {
        let exact = matches!(word, "true" | "false" | "null");
        matches!(self.tokens.get(self.at + ahead).map(|placed| &placed.token),
            Some(PathToken::Word(found)) if found == word
                || (!exact && found.eq_ignore_ascii_case(word)))
    }

    fn take_word(&mut self, word: &str) -> bool {
        let found = self.is_word(0, word);
        self.at += usize::from(found);
        found
    }

    fn expect_word(&mut self, word: &str) -> Result<()> {
        if self.take_word(word) { Ok(()) } else { Err(self.unexpected()) }
    }

    /// Parses an expression or a predicate.
    fn any(&mut self) -> Result<Item> {
        if self.depth == MAX_DEPTH {
            bail!(STATEMENT_TOO_COMPLEX: "stack depth limit exceeded");
        }
        self.depth += 1;
        let found = self.disjunction();
        self.depth -= 1;
        found
    }

    fn predicate(&mut self) -> Result<Item> {
        let found = self.any()?;
        self.expect_predicate(found)
    }

    fn expect_predicate(&self, found: Item) -> Result<Item> {
        let is_one = found.kind.is_predicate() && found.next.is_none();
        if is_one { Ok(found) } else { Err(self.unexpected()) }
    }

    fn expect_value(&self, found: Item) -> Result<Item> {
        let is_value = !found.kind.is_predicate() || found.next.is_some();
        if is_value { Ok(found) } else { Err(self.unexpected()) }
    }

    fn disjunction(&mut self) -> Result<Item> {
        let mut left = self.conjunction()?;
        while matches!(self.peek(), Some(PathToken::Sign("||"))) {
            let before = self.expect_predicate(left)?;
            self.at += 1;
            let right = self.conjunction()?;
            let right = self.expect_predicate(right)?;
            left = item(Kind::Or(Box::new(before), Box::new(right)));
        }
        Ok(left)
    }

    fn conjunction(&mut self) -> Result<Item> {
        let mut left = self.comparison()?;
        while matches!(self.peek(), Some(PathToken::Sign("&&"))) {
            let before = self.expect_predicate(left)?;
            self.at += 1;
            let right = self.comparison()?;
            let right = self.expect_predicate(right)?;
            left = item(Kind::And(Box::new(before), Box::new(right)));
        }
        Ok(left)
    }

    fn comparison(&mut self) -> Result<Item> {
        if self.take_sign("!") {
            let starts =
                matches!(self.peek(), Some(PathToken::Sign("("))) || self.is_word(0, "exists");
            if !starts {
                return Err(self.unexpected());
            }
            let operand = self.primary()?;
            let operand = self.expect_predicate(operand)?;
            return Ok(item(Kind::Not(Box::new(operand))));
        }
        let left = self.sum()?;
        let comparison = match self.peek() {
            Some(PathToken::Sign("==")) => Comparison::Equal,
            Some(PathToken::Sign("!=" | "<>")) => Comparison::NotEqual,
            Some(PathToken::Sign("<")) => Comparison::Less,
            Some(PathToken::Sign("<=")) => Comparison::LessOrEqual,
            Some(PathToken::Sign(">")) => Comparison::Greater,
            Some(PathToken::Sign(">=")) => Comparison::GreaterOrEqual,
            Some(PathToken::Word(_)) => return self.tested(left),
            _ => return Ok(left),
        };
        let left = self.expect_value(left)?;
        self.at += 1;
        let right = self.sum()?;
        let right = self.expect_value(right)?;
        Ok(item(Kind::Compare(comparison, Box::new(left), Box::new(right))))
    }

    /// Parses a predicate that follows an operand with keywords, if there is one.
    fn tested(&mut self, left: Item) -> Result<Item> {
        if self.is_word(0, "starts") {
            let left = self.expect_value(left)?;
            self.at += 1;
            self.expect_word("with")?;
            let initial = match self.tokens.get(self.at).map(|placed| placed.token.clone()) {
                Some(PathToken::String(text)) => Kind::String(text.into()),
                Some(PathToken::Variable(name)) => Kind::Variable(name.into()),
                _ => return Err(self.unexpected()),
            };
            self.at += 1;
            return Ok(item(Kind::StartsWith(Box::new(left), Box::new(item(initial)))));
        }
        if self.take_word("like_regex") {
            let operand = self.expect_value(left)?;
            let pattern = self.string()?;
            let mut flags = String::new();
            if self.take_word("flag") {
                for flag in self.string()?.chars() {
                    if !"ismxq".contains(flag) {
                        let detail = format!(
                            "Unrecognized flag character \"{flag}\" in LIKE_REGEX predicate."
                        );
                        let message = "invalid input syntax for type jsonpath";
                        return Err(syntax(message).with_detail(detail));
                    }
                    if !flags.contains(flag) {
                        flags.push(flag);
                    }
                }
            }
            if flags.contains('x') && !flags.contains('q') {
                bail!(FEATURE_NOT_SUPPORTED: "XQuery \"x\" flag (expanded regular expressions) is not implemented");
            }
            // It is compiled again at its use.
            Pattern::new(&pattern, Options::of_path(&flags))?;
            let ordered: String = "ismxq".chars().filter(|flag| flags.contains(*flag)).collect();
            let operand = Box::new(operand);
            return Ok(item(Kind::LikeRegex {
                operand,
                pattern: pattern.into(),
                flags: ordered.into(),
            }));
        }
        if self.is_word(0, "is") {
            let operand = self.expect_predicate(left)?;
            self.at += 1;
            self.expect_word("unknown")?;
            return Ok(item(Kind::IsUnknown(Box::new(operand))));
        }
        Ok(left)
    }

    fn string(&mut self) -> Result<String> {
        match self.tokens.get(self.at).map(|placed| placed.token.clone()) {
            Some(PathToken::String(text)) => {
                self.at += 1;
                Ok(text)
            }
            _ => Err(self.unexpected()),
        }
    }

    fn sum(&mut self) -> Result<Item> {
        let mut left = self.product()?;
        loop {
            let operator = match self.peek() {
                Some(PathToken::Sign("+")) => Arithmetic::Add,
                Some(PathToken::Sign("-")) => Arithmetic::Subtract,
                _ => return Ok(left),
            };
            left = self.expect_value(left)?;
            self.at += 1;
            let right = self.product()?;
            let right = self.expect_value(right)?;
            left = item(Kind::Arithmetic(operator, Box::new(left), Box::new(right)));
        }
    }

    fn product(&mut self) -> Result<Item> {
        let mut left = self.signed()?;
        loop {
            let operator = match self.peek() {
                Some(PathToken::Sign("*")) => Arithmetic::Multiply,
                Some(PathToken::Sign("/")) => Arithmetic::Divide,
                Some(PathToken::Sign("%")) => Arithmetic::Modulo,
                _ => return Ok(left),
            };
            left = self.expect_value(left)?;
            self.at += 1;
            let right = self.signed()?;
            let right = self.expect_value(right)?;
            left = item(Kind::Arithmetic(operator, Box::new(left), Box::new(right)));
        }
    }

    fn signed(&mut self) -> Result<Item> {
        let mut signs = Vec::new();
        loop {
            match self.peek() {
                Some(PathToken::Sign("-")) => signs.push(true),
                Some(PathToken::Sign("+")) => signs.push(false),
                _ => break,
            }
            self.at += 1;
        }
        if signs.len() > MAX_DEPTH {
            bail!(STATEMENT_TOO_COMPLEX: "stack depth limit exceeded");
        }
        let mut operand = self.primary()?;
        for negative in signs.into_iter().rev() {
            operand = self.expect_value(operand)?;
            operand = match operand {
                Item { kind: Kind::Number(number), next: None } => {
                    item(Kind::Number(if negative { number.neg() } else { number }))
                }
                operand => item(Kind::Sign { negative, operand: Box::new(operand) }),
            };
        }
        Ok(operand)
    }

    fn primary(&mut self) -> Result<Item> {
        let Some(token) = self.peek().cloned() else { return Err(self.unexpected()) };
        let mut first = match token {
            PathToken::Sign("(") => {
                self.at += 1;
                let within = self.any()?;
                self.expect_sign(")")?;
                within
            }
            PathToken::Word(_) if self.is_word(0, "exists") => {
                self.at += 1;
                self.expect_sign("(")?;
                let within = self.any()?;
                let within = self.expect_value(within)?;
                self.expect_sign(")")?;
                return Ok(item(Kind::Exists(Box::new(within))));
            }
            token => {
                let kind = match token {
                    PathToken::Sign("$") => Kind::Root,
                    PathToken::Sign("@") => Kind::Current,
                    PathToken::Variable(name) => Kind::Variable(name.into()),
                    PathToken::String(text) => Kind::String(text.into()),
                    PathToken::Number(text) | PathToken::Integer(text) => {
                        Kind::Number(Numeric::parse(&text)?)
                    }
                    PathToken::Word(_) if self.is_word(0, "true") => Kind::Bool(true),
                    PathToken::Word(_) if self.is_word(0, "false") => Kind::Bool(false),
                    PathToken::Word(_) if self.is_word(0, "null") => Kind::Null,
                    PathToken::Word(_) if self.is_word(0, "last") => Kind::Last,
                    _ => return Err(self.unexpected()),
                };
                self.at += 1;
                item(kind)
            }
        };
        let mut length = 0;
        while let Some(next) = self.accessor()? {
            length += 1;
            if length > MAX_DEPTH {
                bail!(STATEMENT_TOO_COMPLEX: "stack depth limit exceeded");
            }
            first.last_mut().next = Some(Box::new(next));
        }
        Ok(first)
    }

    fn accessor(&mut self) -> Result<Option<Item>> {
        let kind = if self.take_sign("[") {
            self.subscripts()?
        } else if self.take_sign("?") {
            self.expect_sign("(")?;
            let within = self.predicate()?;
            self.expect_sign(")")?;
            Kind::Filter(Box::new(within))
        } else if self.take_sign(".") {
            self.member()?
        } else {
            return Ok(None);
        };
        Ok(Some(item(kind)))
    }

    fn subscripts(&mut self) -> Result<Kind> {
        if self.take_sign("*") {
            self.expect_sign("]")?;
            return Ok(Kind::AnyArray);
        }
        let mut list = Vec::new();
        loop {
            let from = self.any()?;
            let from = self.expect_value(from)?;
            let to = match self.take_word("to") {
                false => None,
                true => {
                    let to = self.any()?;
                    Some(self.expect_value(to)?)
                }
            };
            list.push((from, to));
            if !self.take_sign(",") {
                self.expect_sign("]")?;
                return Ok(Kind::Subscripts(list));
            }
        }
    }

    fn level(&mut self) -> Result<u32> {
        if self.take_word("last") {
            return Ok(u32::MAX);
        }
        match self.peek() {
            Some(PathToken::Integer(digits)) => {
                let level = digits.parse().unwrap_or(u32::MAX);
                self.at += 1;
                Ok(level)
            }
            _ => Err(self.unexpected()),
        }
    }

    fn member(&mut self) -> Result<Kind> {
        if self.take_sign("**") {
            if !self.take_sign("{") {
                return Ok(Kind::AnyLevel { first: 0, last: u32::MAX });
            }
            let first = self.level()?;
            let last = if self.take_word("to") { self.level()? } else { first };
            self.expect_sign("}")?;
            return Ok(Kind::AnyLevel { first, last });
        }
        if self.take_sign("*") {
            return Ok(Kind::AnyKey);
        }
        let called = matches!(
            self.tokens.get(self.at + 1).map(|placed| &placed.token),
            Some(PathToken::Sign("("))
        );
        let kind = match self.peek().cloned() {
            Some(PathToken::String(key)) => Kind::Key(key.into()),
            Some(PathToken::Word(word)) if called => {
                let lower = word.to_ascii_lowercase();
                self.at += 2;
                if lower == "datetime" {
                    let template = match self.peek() {
                        Some(PathToken::String(_)) => Some(Arc::from(self.string()?)),
                        _ => None,
                    };
                    self.expect_sign(")")?;
                    return Ok(Kind::Datetime(template));
                }
                let method = Method::ALL.into_iter().find(|method| method.name() == lower);
                let Some(method) = method else {
                    self.at -= 1;
                    return Err(self.unexpected());
                };
                self.expect_sign(")")?;
                return Ok(Kind::Method(method));
            }
            Some(PathToken::Word(word)) => Kind::Key(word.into()),
            _ => return Err(self.unexpected()),
        };
        self.at += 1;
        Ok(kind)
    }
}
