//! Parsing of DECLARE: variables, aliases and cursors.

use super::body_tree::{BoundCursor, VariableType};
use super::parser::{BodyParser, Result};
use super::token::TokenKind;
use crate::parser::{ParseError, parse_type};

impl BodyParser<'_> {
    /// Reads declarations up to BEGIN; returns the variables that are initialised there.
    pub(super) fn declarations(&mut self) -> Result<Vec<usize>> {
        let mut declared = Vec::new();
        while !self.is_word("begin") {
            if self.take_word("declare") {
                continue;
            }
            if self.is_symbol("<<") {
                return Err(self.error("block label must be placed before DECLARE, not after"));
            }
            declared.extend(self.declaration()?);
        }
        Ok(declared)
    }

    fn declaration(&mut self) -> Result<Option<usize>> {
        let line = self.line();
        let name = match &self.token().kind {
            TokenKind::Word(word) if is_reserved(word) => return Err(self.unexpected()),
            _ => {
                if let TokenKind::Word(name) | TokenKind::Quoted(name) = &self.token().kind
                    && self.names.is_declared(self.place, name)
                {
                    return Err(self.error_at_token("duplicate declaration"));
                }
                self.any_name()?
            }
        };
        if self.take_word("alias") {
            self.expect_word("for")?;
            let Some((target, length)) = self.peek_target() else {
                let shown = self.text_of(self.token());
                let message = format!("variable \"{shown}\" does not exist");
                return Err(ParseError::new("42704", message, self.position()));
            };
            self.at += length;
            self.place = self.names.push_variable(self.place, &name, target.variable);
            self.expect_symbol(";")?;
            return Ok(None);
        }
        if self.begins_cursor() {
            return self.cursor_declaration(&name, line).map(Some);
        }
        let is_constant = self.take_word("constant");
        let of = self.data_type(&["collate", "not", "default", ":=", "=", ";"])?;
        if self.take_word("collate") {
            let position = self.position();
            let collation = self.any_name()?;
            if !["c", "posix", "default", "C", "POSIX"].contains(&collation.as_str()) {
                let what = format!("COLLATE \"{collation}\" of a variable");
                let hint = "Write COLLATE where the variable is compared.";
                return Err(ParseError::unsupported(what, position).with_hint(hint));
            }
        }
        let not_null = self.is_word("not");
        if not_null {
            self.at += 1;
            self.expect_word("null")?;
        }
        let mut default = None;
        if self.take_symbol(":=") || self.take_symbol("=") || self.take_word("default") {
            default = Some(self.expression(&[";"])?);
        }
        self.expect_symbol(";")?;
        if not_null && default.is_none() {
            let message = format!(
                "variable \"{name}\" must have a default value, since it's declared NOT NULL"
            );
            return Err(ParseError::new("22004", message, self.position()));
        }
        let number = self.declare(&name, of, line);
        let variable = &mut self.variables[number];
        (variable.is_constant, variable.not_null) = (is_constant, not_null);
        variable.default = default;
        Ok(Some(number))
    }

    fn begins_cursor(&self) -> bool {
        let at = match (self.is_word("no"), self.is_word("scroll")) {
            (true, _) if self.is_word_at(1, "scroll") => 2,
            (false, true) => 1,
            _ => 0,
        };
        self.is_word_at(at, "cursor")
    }

    fn cursor_declaration(&mut self, name: &str, line: u32) -> Result<usize> {
        let scroll = self.scroll();
        self.expect_word("cursor")?;
        let outer = self.place;
        let mut arguments = Vec::new();
        // The arguments are visible only in the query.
        self.place = self.names.push_label(self.place, "");
        if self.take_symbol("(") {
            loop {
                let line = self.line();
                let name = self.any_name()?;
                let of = self.data_type(&[",", ")"])?;
                arguments.push(self.declare(&name, of, line));
                if !self.take_symbol(",") {
                    break;
                }
            }
            self.expect_symbol(")")?;
        }
        if !self.take_word("is") {
            self.expect_word("for")?;
        }
        let query = self.sql(&[";"])?;
        self.expect_symbol(";")?;
        self.place = outer;
        let number = self.declare(name, VariableType::Cursor, line);
        self.variables[number].cursor = Some(BoundCursor { arguments, query, scroll });
        Ok(number)
    }

    /// Reads `SCROLL` or `NO SCROLL`.
    pub(super) fn scroll(&mut self) -> Option<bool> {
        if self.is_word("no") && self.is_word_at(1, "scroll") {
            self.at += 2;
            return Some(false);
        }
        self.take_word("scroll").then_some(true)
    }

    /// Reads a type up to one of these words or symbols.
    fn data_type(&mut self, ends: &[&str]) -> Result<VariableType> {
        let (first, position) = (self.at, self.position());
        if self.is_symbol(";") || self.token().kind == TokenKind::End {
            return Err(self.error_at_token("missing data type declaration"));
        }
        let mut depth = 0;
        loop {
            let token = self.token();
            let text = match &token.kind {
                TokenKind::Word(word) => word.as_str(),
                TokenKind::Symbol => self.text_of(token),
                TokenKind::End => {
                    return Err(self.error_at_token("incomplete data type declaration"));
                }
                _ => "",
            };
            if depth == 0 && ends.contains(&text) {
                break;
            }
            match text {
                "(" | "[" => depth += 1,
                ")" | "]" => depth -= 1,
                ";" => return Err(self.error_at_token("incomplete data type declaration")),
                _ => {}
            }
            self.at += 1;
        }
        if first == self.at {
            return Err(self.error_at_token("missing data type declaration"));
        }
        if let Some(of) = self.referenced_type(first)? {
            return Ok(of);
        }
        let (start, end) = (self.nth_token(first).start, self.nth_token(self.at - 1).end);
        let text = self.source()[start..end].to_owned();
        match text.to_ascii_lowercase().as_str() {
            "record" => return Ok(VariableType::Record),
            "refcursor" | "pg_catalog.refcursor" => return Ok(VariableType::Cursor),
            _ => {}
        }
        let placed = |error: ParseError| {
            let at = error.position.map(|at| position + at - 1);
            ParseError { position: at, ..error }
        };
        Ok(VariableType::Named(parse_type(&text).map_err(placed)?, text))
    }

    /// Returns the type of `name%TYPE` or `name%ROWTYPE`, if the tokens have that form.
    fn referenced_type(&self, first: usize) -> Result<Option<VariableType>> {
        let end = self.at;
        let symbol = |at: usize, wanted: &str| {
            let token = self.nth_token(at);
            at < end && token.kind == TokenKind::Symbol && self.text_of(token) == wanted
        };
        let Some(percent) = (first..end).find(|at| symbol(*at, "%")) else { return Ok(None) };
        let mut parts = Vec::new();
        for at in (first..percent).step_by(2) {
            match &self.nth_token(at).kind {
                TokenKind::Word(name) | TokenKind::Quoted(name) => parts.push(name.clone()),
                TokenKind::Parameter => parts.push(self.text_of(self.nth_token(at)).to_owned()),
                _ => return Err(self.unexpected()),
            }
        }
        let word = match &self.nth_token(percent + 1).kind {
            TokenKind::Word(word) if percent + 1 < end => word.as_str(),
            _ => return Err(self.unexpected()),
        };
        let names: Vec<&str> = parts.iter().map(String::as_str).collect();
        let variable = self.names.find(self.place, &names, |variable| self.may_be_row(variable));
        let variable = variable.filter(|found| found.parts == names.len());
        match (word, variable) {
            ("rowtype", _) if percent + 2 == end => Ok(Some(VariableType::RowOf(parts))),
            ("type", Some(found)) if percent + 2 == end => {
                Ok(Some(VariableType::OfVariable(found.variable)))
            }
            ("type", None) if percent + 2 == end => Ok(Some(VariableType::Like(parts, false))),
            ("type", None) if symbol(percent + 2, "[") => Ok(Some(VariableType::Like(parts, true))),
            _ => Err(self.unexpected()),
        }
    }
}

/// Returns whether a word is a reserved keyword of PL/pgSQL.
fn is_reserved(word: &str) -> bool {
    const RESERVED: &[&str] = &[
        "all", "begin", "by", "case", "declare", "else", "end", "execute", "for", "foreach",
        "from", "if", "in", "into", "loop", "not", "null", "or", "strict", "then", "to", "using",
        "when", "while",
    ];
    RESERVED.contains(&word)
}
