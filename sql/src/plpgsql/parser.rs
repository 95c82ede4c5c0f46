//! Parser of a PL/pgSQL body: blocks, statements and SQL fragments.

use std::sync::Arc;

use types::key_words;

use crate::ast::{self, Ident, Statement, TargetStep};
use crate::parser::{ParseError, ParsedStatement, parse_statements};
use crate::plpgsql::body_tree::{
    AssignmentTarget, Block, Body, BodyQuery, CallTargets, Condition, DynamicQuery, FragmentKind,
    Handlers, IntoClause, PlpgsqlStatement, SqlFragment, StatementAction, Variable,
    VariableConflict, VariableType,
};
use crate::plpgsql::scopes::{BodyScopes, ScopePosition};
use crate::plpgsql::token::{Token, TokenKind, position, tokens};

/// The result of parsing.
pub(super) type Result<T> = std::result::Result<T, ParseError>;

/// The maximum nesting of blocks, which bounds the stack.
const DEPTH_MAX: usize = 200;

/// A parameter of a body.
#[derive(Debug, Clone)]
pub struct BodyParameter {
    /// Its name; empty without one.
    pub name: String,
    /// True if it has fields.
    pub is_row: bool,
}

/// An error in a body.
#[derive(Debug)]
pub struct BodyError {
    /// The error.
    pub error: ParseError,
    /// The current line.
    pub line: u32,
}

/// The kind of result that RETURN may have in a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReturnKind {
    /// No result: DO, a procedure without OUT parameters, or `void`.
    Nothing,
    /// A single value.
    Value,
    /// The values of the OUT parameters.
    Parameters,
    /// A set of values.
    Set,
    /// A set of rows of the OUT parameters.
    SetOfParameters,
}

/// Parses the body of a function named `label` with these parameters; `returning` is the kind of
/// its result.
///
/// # Errors
///
/// PostgreSQL's, with positions in the text, and the current line.
pub fn parse_body(
    text: &str,
    label: &str,
    parameters: &[BodyParameter],
    (returning, is_procedure): (ReturnKind, bool),
) -> std::result::Result<Body, BodyError> {
    let mut parser = BodyParser {
        text,
        tokens: tokens(text).map_err(|error| BodyError { error, line: 1 })?,
        at: 0,
        names: BodyScopes::default(),
        place: None,
        variables: Vec::new(),
        fragment_count: 0,
        labels: Vec::new(),
        returning,
        is_procedure,
        depth: 0,
        ends_transactions: false,
    };
    parser.place = parser.names.push_label(None, label);
    for (at, parameter) in parameters.iter().enumerate() {
        let number = parser.variable(&parameter.name, VariableType::Parameter(at), 0);
        for name in [format!("${}", at + 1), parameter.name.clone()] {
            if !name.is_empty() {
                parser.place = parser.names.push_variable(parser.place, &name, number);
            }
        }
        parser.variables[number].is_row_parameter = parameter.is_row;
    }
    let found = parser.declare("found", VariableType::Named(boolean(), "boolean".to_owned()), 0);
    let read = parser.options().and_then(|options| Ok((options, parser.outermost()?)));
    let line = parser.line();
    let (conflict, block) = read.map_err(|error| BodyError { error, line })?;
    let BodyParser { names, variables, fragment_count, ends_transactions, .. } = parser;
    Ok(Body { variables, names, fragment_count, conflict, found, ends_transactions, block })
}

fn boolean() -> ast::TypeName {
    builtin(&types::DataType::Bool)
}

/// Returns the name of a built-in type.
pub(super) fn builtin(base: &types::DataType) -> ast::TypeName {
    ast::TypeName { sql_type: base.into(), named: None, collation: None, position: 1 }
}

pub(super) struct BodyParser<'a> {
    text: &'a str,
    tokens: Vec<Token>,
    pub(super) at: usize,
    pub(super) names: BodyScopes,
    pub(super) place: ScopePosition,
    pub(super) variables: Vec<Variable>,
    fragment_count: usize,
    /// The enclosing blocks and loops: label, and whether it is a loop.
    pub(super) labels: Vec<(Option<String>, bool)>,
    pub(super) returning: ReturnKind,
    pub(super) is_procedure: bool,
    depth: usize,
    ends_transactions: bool,
}

impl BodyParser<'_> {
    // ---- tokens ----

    pub(super) fn token(&self) -> &Token {
        &self.tokens[self.at.min(self.tokens.len() - 1)]
    }

    pub(super) fn nth(&self, ahead: usize) -> &Token {
        &self.tokens[(self.at + ahead).min(self.tokens.len() - 1)]
    }

    pub(super) fn line(&self) -> u32 {
        self.token().line
    }

    /// Returns a token by its index in the body.
    pub(super) fn nth_token(&self, at: usize) -> &Token {
        &self.tokens[at.min(self.tokens.len() - 1)]
    }

    pub(super) fn source(&self) -> &str {
        self.text
    }

    pub(super) fn text_of(&self, token: &Token) -> &str {
        &self.text[token.start..token.end]
    }

    pub(super) fn is_symbol_at(&self, ahead: usize, symbol: &str) -> bool {
        let token = self.nth(ahead);
        token.kind == TokenKind::Symbol && self.text_of(token) == symbol
    }

    pub(super) fn is_symbol(&self, symbol: &str) -> bool {
        self.is_symbol_at(0, symbol)
    }

    pub(super) fn is_word_at(&self, ahead: usize, word: &str) -> bool {
        matches!(&self.nth(ahead).kind, TokenKind::Word(found) if found == word)
    }

    pub(super) fn is_word(&self, word: &str) -> bool {
        self.is_word_at(0, word)
    }

    pub(super) fn take_word(&mut self, word: &str) -> bool {
        let found = self.is_word(word);
        self.at += usize::from(found);
        found
    }

    pub(super) fn take_symbol(&mut self, symbol: &str) -> bool {
        let found = self.is_symbol(symbol);
        self.at += usize::from(found);
        found
    }

    pub(super) fn expect_word(&mut self, word: &str) -> Result<()> {
        if self.take_word(word) { Ok(()) } else { Err(self.unexpected()) }
    }

    pub(super) fn expect_symbol(&mut self, symbol: &str) -> Result<()> {
        if self.take_symbol(symbol) { Ok(()) } else { Err(self.unexpected()) }
    }

    /// Reads a name, which may be any word.
    pub(super) fn any_name(&mut self) -> Result<String> {
        let name = match &self.token().kind {
            TokenKind::Word(name) | TokenKind::Quoted(name) => name.clone(),
            _ => return Err(self.unexpected()),
        };
        self.at += 1;
        Ok(name)
    }

    // ---- errors ----

    pub(super) fn position_of(&self, token: &Token) -> usize {
        position(self.text, token.start)
    }

    pub(super) fn position(&self) -> usize {
        self.position_of(self.token())
    }

    /// Returns the error for an unexpected token.
    pub(super) fn unexpected(&self) -> ParseError {
        self.error_at_token("syntax error")
    }

    /// Returns an error that names the current token.
    pub(super) fn error_at_token(&self, message: &str) -> ParseError {
        let token = self.token();
        let message = match token.kind {
            TokenKind::End => format!("{message} at end of input"),
            _ => format!("{message} at or near \"{}\"", self.text_of(token)),
        };
        ParseError::syntax(message, self.position())
    }

    pub(super) fn error(&self, message: impl Into<String>) -> ParseError {
        ParseError::syntax(message, self.position())
    }

    // ---- variables ----

    /// Adds a variable, and returns its number.
    pub(super) fn variable(&mut self, name: &str, of: VariableType, line: u32) -> usize {
        self.variables.push(Variable {
            name: name.to_owned(),
            of,
            is_constant: false,
            not_null: false,
            default: None,
            cursor: None,
            is_row_parameter: false,
            line,
        });
        self.variables.len() - 1
    }

    /// Adds a variable and declares its name.
    pub(super) fn declare(&mut self, name: &str, of: VariableType, line: u32) -> usize {
        let number = self.variable(name, of, line);
        self.place = self.names.push_variable(self.place, name, number);
        number
    }

    /// Returns whether a variable may have fields.
    pub(super) fn may_be_row(&self, variable: usize) -> bool {
        let variable = &self.variables[variable];
        match &variable.of {
            VariableType::Parameter(_) => variable.is_row_parameter,
            VariableType::Named(name, _) => name.named.is_some(),
            VariableType::Like(..) | VariableType::RowOf(_) | VariableType::Record => true,
            VariableType::OfVariable(other) => self.may_be_row(*other),
            VariableType::Cursor | VariableType::Operand => false,
        }
    }

    /// Returns the parts of the name at the current position, and its number of tokens.
    fn name_parts(&self) -> (Vec<String>, usize) {
        let (mut parts, mut ahead) = (Vec::new(), 0);
        loop {
            match &self.nth(ahead).kind {
                TokenKind::Word(name) | TokenKind::Quoted(name) => parts.push(name.clone()),
                TokenKind::Parameter if parts.is_empty() => {
                    parts.push(self.text_of(self.nth(ahead)).to_owned());
                }
                _ => return (parts, ahead.saturating_sub(1)),
            }
            if !self.is_symbol_at(ahead + 1, ".") {
                return (parts, ahead + 1);
            }
            ahead += 2;
        }
    }

    /// Returns the variable at the current position, optionally with fields, and its number of
    /// tokens.
    pub(super) fn peek_target(&self) -> Option<(AssignmentTarget, usize)> {
        let (parts, length) = self.name_parts();
        let names: Vec<&str> = parts.iter().map(String::as_str).collect();
        let found = self.names.find(self.place, &names, |variable| self.may_be_row(variable))?;
        let position = self.position();
        let field = |name: &&str| TargetStep::Field(Ident { value: (*name).to_owned(), position });
        let path = names[found.parts..].iter().map(field).collect();
        Some((AssignmentTarget { variable: found.variable, path }, length))
    }

    /// Reads the target of an assignment: a variable, optionally with fields.
    pub(super) fn target(&mut self) -> Result<AssignmentTarget> {
        let Some((target, length)) = self.peek_target() else {
            return Err(self.not_a_variable_error());
        };
        self.check_assignable(&target)?;
        self.at += length;
        Ok(target)
    }

    pub(super) fn not_a_variable_error(&self) -> ParseError {
        match &self.token().kind {
            TokenKind::Word(_) | TokenKind::Quoted(_) => {
                let name = self.name_parts().0.join(".");
                self.error(format!("\"{name}\" is not a known variable"))
            }
            _ => self.unexpected(),
        }
    }

    fn check_assignable(&self, target: &AssignmentTarget) -> Result<()> {
        let variable = &self.variables[target.variable];
        if !variable.is_constant {
            return Ok(());
        }
        let message = format!("variable \"{}\" is declared CONSTANT", variable.name);
        Err(ParseError::new(types::sqlstate::ERROR_IN_ASSIGNMENT, message, self.position()))
    }

    // ---- SQL fragments ----

    /// Reads tokens up to one of these words or symbols outside of parentheses; returns their
    /// range.
    fn tokens_until(&mut self, ends: &[&str], is_expression: bool) -> Result<(usize, usize)> {
        let first = self.at;
        let mut depth = 0_i32;
        loop {
            let token = self.token();
            let text = match &token.kind {
                TokenKind::Word(word) => word.as_str(),
                TokenKind::Symbol => self.text_of(token),
                TokenKind::End => ";",
                _ => "",
            };
            if depth == 0 && ends.contains(&text) && token.kind != TokenKind::End {
                break;
            }
            match text {
                "(" | "[" => depth += 1,
                ")" | "]" => {
                    depth -= 1;
                    if depth < 0 {
                        return Err(self.error_at_token("mismatched parentheses"));
                    }
                }
                ";" if depth != 0 => return Err(self.error_at_token("mismatched parentheses")),
                ";" if token.kind == TokenKind::End && ends == [";"] => {
                    return Err(self.unexpected());
                }
                ";" => {
                    let what = if is_expression { "expression" } else { "statement" };
                    let end = ends.first().copied().unwrap_or(";").to_uppercase();
                    let message = format!("missing \"{end}\" at end of SQL {what}");
                    return Err(self.error(message));
                }
                _ => {}
            }
            self.at += 1;
        }
        if first == self.at {
            let what = if is_expression { "expression" } else { "SQL statement" };
            return Err(self.error_at_token(&format!("missing {what}")));
        }
        Ok((first, self.at))
    }

    /// Reads an expression up to one of these words or symbols, which is not consumed.
    pub(super) fn expression(&mut self, ends: &[&str]) -> Result<SqlFragment> {
        let (first, end) = self.tokens_until(ends, true)?;
        let text = self.slice(first, end).to_owned();
        let at = self.position_of(&self.tokens[first]);
        self.expression_of(&text, &text, (at, 0))
    }

    fn slice(&self, first: usize, end: usize) -> &str {
        &self.text[self.tokens[first].start..self.tokens[end - 1].end]
    }

    /// Returns the expression with this text; `shown` is the text for messages, which begins at
    /// `position` of the body and contains the expression after `behind` characters.
    pub(super) fn expression_of(
        &mut self,
        text: &str,
        shown: &str,
        (position, behind): (usize, usize),
    ) -> Result<SqlFragment> {
        const SELECT: &str = "SELECT ";
        let shift = behind as isize - SELECT.len() as isize;
        let parsed = self.parsed(&format!("{SELECT}{text}"), (position, shift))?;
        if !matches!(parsed.statement, Statement::Query(_)) {
            return Err(ParseError::syntax(
                format!("syntax error at or near \"{text}\""),
                position,
            ));
        }
        let kind = match behind {
            0 => FragmentKind::Expression,
            _ => FragmentKind::Assignment,
        };
        Ok(self.fragment(shown, parsed, (kind, position, shift)))
    }

    /// Parses an SQL fragment; errors have positions in the body.
    fn parsed(&self, text: &str, (position, shift): (usize, isize)) -> Result<ParsedStatement> {
        let placed = |error: ParseError| {
            let at = error.position.map(|at| (position + at).saturating_add_signed(shift) - 1);
            ParseError { position: at, ..error }
        };
        let mut statements = parse_statements(text).map_err(placed)?;
        match (statements.pop(), statements.is_empty()) {
            (Some(statement), true) => Ok(statement),
            _ => Err(ParseError::syntax("syntax error", position)),
        }
    }

    fn fragment(
        &mut self,
        text: &str,
        parsed: ParsedStatement,
        (kind, position, shift): (FragmentKind, usize, isize),
    ) -> SqlFragment {
        self.fragment_count += 1;
        SqlFragment {
            number: self.fragment_count - 1,
            text: text.to_owned(),
            position,
            place: self.place,
            kind,
            shift,
            statement: Arc::new(parsed),
        }
    }

    /// Reads an SQL statement up to one of these words or symbols, which is not consumed.
    pub(super) fn sql(&mut self, ends: &[&str]) -> Result<SqlFragment> {
        let (first, end) = self.tokens_until(ends, false)?;
        let text = self.slice(first, end).to_owned();
        self.sql_of(&text, first)
    }

    pub(super) fn sql_of(&mut self, text: &str, first: usize) -> Result<SqlFragment> {
        let at = self.position_of(&self.tokens[first]);
        let parsed = self.parsed(text, (at, 0))?;
        Ok(self.fragment(text, parsed, (FragmentKind::Statement, at, 0)))
    }

    // ---- blocks ----

    fn options(&mut self) -> Result<Option<VariableConflict>> {
        let mut conflict = None;
        while self.take_symbol("#") {
            let position = self.position();
            let option = self.any_name()?;
            match option.as_str() {
                "variable_conflict" => {
                    conflict = Some(match self.any_name()?.as_str() {
                        "error" => VariableConflict::Error,
                        "use_variable" => VariableConflict::Variable,
                        "use_column" => VariableConflict::Column,
                        _ => return Err(self.unexpected()),
                    });
                }
                "print_strict_params" => match self.any_name()?.as_str() {
                    "on" => return Err(no_option(&option, position)),
                    "off" => {}
                    _ => return Err(self.unexpected()),
                },
                "option" => return Err(no_option(&option, position)),
                _ => return Err(self.unexpected()),
            }
        }
        Ok(conflict)
    }

    fn outermost(&mut self) -> Result<PlpgsqlStatement> {
        let label = self.label()?;
        if !self.is_word("declare") && !self.is_word("begin") {
            return Err(self.unexpected());
        }
        let block = self.block(label)?;
        self.take_symbol(";");
        match self.token().kind {
            TokenKind::End => Ok(block),
            _ => Err(self.unexpected()),
        }
    }

    /// Reads `<<label>>`, if it follows.
    fn label(&mut self) -> Result<Option<String>> {
        if !self.take_symbol("<<") {
            return Ok(None);
        }
        let label = self.any_name()?;
        self.expect_symbol(">>")?;
        Ok(Some(label))
    }

    /// Begins a block or a loop.
    pub(super) fn enter(&mut self, label: Option<&String>, is_loop: bool) -> Result<ScopePosition> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            let message = format!("blocks are nested more than {DEPTH_MAX} deep");
            return Err(ParseError::new("54001", message, self.position()));
        }
        self.labels.push((label.cloned(), is_loop));
        let outer = self.place;
        let name = label.map_or("", String::as_str);
        self.place = self.names.push_label(self.place, name);
        Ok(outer)
    }

    /// Ends a block or a loop after its END; an optional label may follow.
    pub(super) fn leave(&mut self, outer: ScopePosition) -> Result<()> {
        self.depth -= 1;
        self.place = outer;
        let (label, _) = self.labels.pop().unwrap_or_default();
        if self.is_symbol(";") || self.token().kind == TokenKind::End {
            return Ok(());
        }
        let position = self.position();
        if ["loop", "if", "case"].iter().any(|word| self.is_word(word)) {
            return Err(self.unexpected());
        }
        let found = self.any_name()?;
        let message = match label {
            Some(label) if label == found => return Ok(()),
            Some(label) => {
                format!("end label \"{found}\" differs from block's label \"{label}\"")
            }
            None => format!("end label \"{found}\" specified for unlabeled block"),
        };
        Err(ParseError::syntax(message, position))
    }

    fn block(&mut self, label: Option<String>) -> Result<PlpgsqlStatement> {
        let outer = self.enter(label.as_ref(), false)?;
        let declared = match self.take_word("declare") {
            true => self.declarations()?,
            false => Vec::new(),
        };
        let line = self.line();
        self.expect_word("begin")?;
        let body = self.statements(&["end", "exception"])?;
        let handlers = match self.take_word("exception") {
            true => Some(self.handlers()?),
            false => None,
        };
        self.expect_word("end")?;
        self.leave(outer)?;
        let block = Block { label, declared, body, handlers };
        Ok(PlpgsqlStatement { line, action: StatementAction::Block(block) })
    }

    fn handlers(&mut self) -> Result<Handlers> {
        let text = || VariableType::Named(builtin(&types::DataType::Text), "text".to_owned());
        let line = self.line();
        let sqlstate = self.declare("sqlstate", text(), line);
        let sqlerrm = self.declare("sqlerrm", text(), line);
        for number in [sqlstate, sqlerrm] {
            self.variables[number].is_constant = true;
        }
        let mut branches = Vec::new();
        while self.take_word("when") {
            let mut conditions = self.conditions()?;
            while self.take_word("or") {
                conditions.extend(self.conditions()?);
            }
            self.expect_word("then")?;
            branches.push((conditions, self.statements(&["end", "when"])?));
        }
        if branches.is_empty() {
            return Err(self.unexpected());
        }
        Ok(Handlers { sqlstate, sqlerrm, branches })
    }

    fn conditions(&mut self) -> Result<Vec<Condition>> {
        let name = self.any_name()?;
        if name == "others" {
            return Ok(vec![Condition::Others]);
        }
        if name == "sqlstate" {
            return Ok(vec![Condition::Code(self.sqlstate_literal()?)]);
        }
        let codes = types::sqlstate::codes_of_condition(&name);
        if codes.is_empty() {
            let message = format!("unrecognized exception condition \"{name}\"");
            return Err(ParseError::new(types::sqlstate::UNDEFINED_OBJECT, message, None));
        }
        Ok(codes.into_iter().map(|code| Condition::Code(code.to_owned())).collect())
    }

    pub(super) fn sqlstate_literal(&mut self) -> Result<String> {
        let TokenKind::Text(code) = &self.token().kind else { return Err(self.unexpected()) };
        let code = code.clone();
        let of_code = |byte: u8| byte.is_ascii_digit() || byte.is_ascii_uppercase();
        if code.len() != 5 || !code.bytes().all(of_code) {
            return Err(self.error_at_token("invalid SQLSTATE code"));
        }
        self.at += 1;
        Ok(code)
    }

    // ---- statements ----

    /// Reads statements up to one of these words, which begin no statement.
    pub(super) fn statements(&mut self, ends: &[&str]) -> Result<Vec<PlpgsqlStatement>> {
        let mut steps = Vec::new();
        while !ends.iter().any(|word| self.is_word(word)) {
            steps.push(self.statement()?);
        }
        Ok(steps)
    }

    fn statement(&mut self) -> Result<PlpgsqlStatement> {
        let label = self.label()?;
        let line = self.line();
        let TokenKind::Word(word) = &self.token().kind else {
            return match self.token().kind {
                TokenKind::Quoted(_) | TokenKind::Parameter if label.is_none() => {
                    Ok(PlpgsqlStatement { line, action: self.assignment()? })
                }
                _ => Err(self.unexpected()),
            };
        };
        let word = word.clone();
        match word.as_str() {
            "declare" | "begin" => {
                let block = self.block(label)?;
                self.expect_symbol(";")?;
                return Ok(block);
            }
            "loop" | "while" | "for" | "foreach" => {
                let action = self.loop_statement(label)?;
                return Ok(PlpgsqlStatement { line, action });
            }
            _ if label.is_some() => return Err(self.unexpected()),
            _ => {}
        }
        if self.is_assignment() {
            return Ok(PlpgsqlStatement { line, action: self.assignment()? });
        }
        let action = match word.as_str() {
            "if" => self.if_statement()?,
            "case" => self.case_statement()?,
            "exit" | "continue" => self.leave_statement()?,
            "return" => self.return_statement()?,
            "raise" => self.raise()?,
            "assert" => self.assert()?,
            "perform" => self.perform()?,
            "execute" => self.execute()?,
            "get" => self.diagnostics()?,
            "open" => self.open()?,
            "fetch" => self.fetch(false)?,
            "move" => self.fetch(true)?,
            "close" => self.close()?,
            "commit" | "rollback" => self.end_transaction()?,
            "call" | "do" => self.call()?,
            "null" => {
                self.at += 1;
                self.expect_symbol(";")?;
                StatementAction::Nothing
            }
            _ => self.sql_statement()?,
        };
        Ok(PlpgsqlStatement { line, action })
    }

    /// Returns whether an assignment follows: a keyword that begins a statement may also be the
    /// name of a variable.
    fn is_assignment(&self) -> bool {
        let (_, length) = self.name_parts();
        let assigns = [":=", "=", "["].iter().any(|one| self.is_symbol_at(length, one));
        assigns && (self.peek_target().is_some() || !self.is_word("if"))
    }

    fn assignment(&mut self) -> Result<StatementAction> {
        let first = self.at;
        let mut target = self.target()?;
        let names_end = self.at;
        let mut depth = 0;
        while depth > 0 || !(self.is_symbol(":=") || self.is_symbol("=")) {
            match () {
                () if self.is_symbol("[") || self.is_symbol("(") => depth += 1,
                () if self.is_symbol("]") || self.is_symbol(")") => depth -= 1,
                () if self.is_symbol(";") || self.token().kind == TokenKind::End => {
                    return Err(self.unexpected());
                }
                () => {}
            }
            self.at += 1;
        }
        if names_end < self.at {
            target.path.extend(self.steps(names_end, self.at)?);
        }
        self.at += 1;
        let value = self.at;
        let (_, end) = self.tokens_until(&[";"], true)?;
        let (shown, text) = (self.slice(first, end).to_owned(), self.slice(value, end).to_owned());
        let at = self.position_of(&self.tokens[first]);
        let behind = self.position_of(&self.tokens[value]) - at;
        let value = self.expression_of(&text, &shown, (at, behind))?;
        self.expect_symbol(";")?;
        Ok(StatementAction::Assign { target, value })
    }

    /// Returns the subscripts and fields in the tokens after a variable.
    fn steps(&self, first: usize, end: usize) -> Result<Vec<TargetStep>> {
        const BEFORE: &str = "UPDATE x SET x";
        let at = self.position_of(&self.tokens[first]);
        let text = format!("{BEFORE}{} = 0", self.slice(first, end));
        let parsed = self.parsed(&text, (at, -(BEFORE.len() as isize)))?;
        let Statement::Update(update) = parsed.statement else { return Err(self.unexpected()) };
        match update.assignments.into_iter().next() {
            Some(ast::AssignmentClause::Column { column, .. }) => Ok(column.path),
            _ => Err(self.unexpected()),
        }
    }

    fn if_statement(&mut self) -> Result<StatementAction> {
        self.at += 1;
        let mut branches = Vec::new();
        let mut otherwise = Vec::new();
        loop {
            let condition = self.expression(&["then"])?;
            self.at += 1;
            branches.push((condition, self.statements(&["elsif", "elseif", "else", "end"])?));
            if self.take_word("elsif") || self.take_word("elseif") {
                continue;
            }
            if self.take_word("else") {
                otherwise = self.statements(&["end"])?;
            }
            self.expect_word("end")?;
            self.expect_word("if")?;
            self.expect_symbol(";")?;
            return Ok(StatementAction::If { branches, otherwise });
        }
    }

    fn case_statement(&mut self) -> Result<StatementAction> {
        self.at += 1;
        let outer = self.place;
        let line = self.line();
        let operand = match self.is_word("when") {
            true => None,
            false => {
                let value = self.expression(&["when"])?;
                let name = format!("__Case__Variable_{}__", self.variables.len());
                Some((self.declare(&name, VariableType::Operand, line), value))
            }
        };
        let mut branches = Vec::new();
        while self.take_word("when") {
            let condition = match &operand {
                None => self.expression(&["then"])?,
                Some((variable, _)) => {
                    let (first, end) = self.tokens_until(&["then"], true)?;
                    let name = &self.variables[*variable].name;
                    let text = format!("\"{name}\" IN ({})", self.slice(first, end));
                    let at = self.position_of(&self.tokens[first]);
                    self.expression_of(&text, &text, (at, 0))?
                }
            };
            self.expect_word("then")?;
            branches.push((condition, self.statements(&["when", "else", "end"])?));
        }
        if branches.is_empty() {
            return Err(self.unexpected());
        }
        let otherwise = match self.take_word("else") {
            true => Some(self.statements(&["end"])?),
            false => None,
        };
        self.expect_word("end")?;
        self.expect_word("case")?;
        self.expect_symbol(";")?;
        self.place = outer;
        Ok(StatementAction::Case { operand, branches, otherwise })
    }

    fn perform(&mut self) -> Result<StatementAction> {
        let first = self.at;
        self.at += 1;
        let value = self.at;
        let (_, end) = self.tokens_until(&[";"], false)?;
        let rest = &self.text[self.tokens[value - 1].end..self.tokens[end - 1].end];
        let text = format!("SELECT{rest}");
        let at = self.position_of(&self.tokens[first]);
        // SELECT replaces PERFORM, which is one letter longer.
        let parsed = self.parsed(&text, (at, 1))?;
        let fragment = self.fragment(&text, parsed, (FragmentKind::Statement, at, 0));
        self.expect_symbol(";")?;
        Ok(StatementAction::Perform(fragment))
    }

    fn call(&mut self) -> Result<StatementAction> {
        let fragment = self.sql(&[";"])?;
        self.expect_symbol(";")?;
        let targets = match &fragment.statement.statement {
            Statement::Call(call) => self.call_targets(call),
            _ => Vec::new(),
        };
        Ok(StatementAction::Call(fragment, targets))
    }

    fn call_targets(&self, call: &ast::FunctionCall) -> CallTargets {
        let target = |argument: &ast::FunctionArgument| {
            let ast::Expr::Column(parts) = &argument.value else { return None };
            let names: Vec<&str> = parts.iter().map(|part| part.value.as_str()).collect();
            let found =
                self.names.find(self.place, &names, |variable| self.may_be_row(variable))?;
            let path = parts[found.parts..].iter().cloned().map(TargetStep::Field).collect();
            Some(AssignmentTarget { variable: found.variable, path })
        };
        call.arguments.iter().map(target).collect()
    }

    fn execute(&mut self) -> Result<StatementAction> {
        self.at += 1;
        let text = self.expression(&["into", "using", ";"])?;
        let (mut into, mut using) = (None, Vec::new());
        loop {
            if self.is_word("into") && into.is_none() {
                self.at += 1;
                into = Some(self.into()?);
            } else if self.is_word("using") && using.is_empty() {
                using = self.using(&[",", ";", "into"])?;
            } else {
                self.expect_symbol(";")?;
                return Ok(StatementAction::Execute(DynamicQuery { text, using }, into));
            }
        }
    }

    /// Reads a USING clause.
    pub(super) fn using(&mut self, ends: &[&str]) -> Result<Vec<SqlFragment>> {
        let mut values = Vec::new();
        while self.take_word("using") || (!values.is_empty() && self.take_symbol(",")) {
            values.push(self.expression(ends)?);
        }
        Ok(values)
    }

    /// Reads the targets of INTO.
    pub(super) fn into(&mut self) -> Result<IntoClause> {
        let strict = self.take_word("strict");
        let mut targets = vec![self.target()?];
        while self.take_symbol(",") {
            if self.may_be_row(targets[0].variable) && self.is_record(&targets[0]) {
                return Err(self.error("record variable cannot be part of multiple-item INTO list"));
            }
            targets.push(self.target()?);
        }
        Ok(IntoClause { targets, strict })
    }

    /// Returns whether a target is certainly a whole row.
    pub(super) fn is_record(&self, target: &AssignmentTarget) -> bool {
        let of = &self.variables[target.variable].of;
        let is_row = matches!(of, VariableType::Record | VariableType::RowOf(_));
        target.path.is_empty() && is_row
    }

    fn sql_statement(&mut self) -> Result<StatementAction> {
        let first = self.at;
        if !is_statement_word(self.token()) {
            let (_, length) = self.name_parts();
            let as_variable = [":=", "=", "["].iter().any(|one| self.is_symbol_at(length, one));
            return Err(if as_variable { self.not_a_variable_error() } else { self.unexpected() });
        }
        let mut into: Option<(IntoClause, std::ops::Range<usize>)> = None;
        let is_import = self.is_word("import");
        let mut depth = 0_usize;
        let defines = self.defines_routine();
        loop {
            let token = self.token();
            if token.kind == TokenKind::End {
                return Err(self.error_at_token("syntax error"));
            }
            match () {
                () if defines && self.is_word("begin") => depth += 1,
                () if defines && depth > 0 && self.is_word("case") => depth += 1,
                () if defines && depth > 0 && self.is_word("end") => depth -= 1,
                () if depth == 0 && self.is_symbol(";") => break,
                () => {}
            }
            let before = (self.at > first).then(|| &self.tokens[self.at - 1].kind);
            let inserts = matches!(before, Some(TokenKind::Word(word))
                if ["insert", "merge", "upsert"].contains(&word.as_str()));
            if !(self.is_word("into") && !inserts && !is_import && !defines) {
                self.at += 1;
                continue;
            }
            if into.is_some() {
                return Err(self.error("INTO specified more than once"));
            }
            let start = self.token().start;
            self.at += 1;
            into = Some((self.into()?, start..self.tokens[self.at - 1].end));
        }
        let mut text = self.slice(first, self.at).to_owned();
        if let Some((_, range)) = &into {
            let begin = self.tokens[first].start;
            let blanks = " ".repeat(self.text[range.clone()].chars().count());
            text.replace_range(range.start - begin..range.end - begin, &blanks);
            text.truncate(text.trim_end().len());
        }
        let fragment = self.sql_of(&text, first)?;
        self.expect_symbol(";")?;
        Ok(StatementAction::Sql(fragment, into.map(|(into, _)| into)))
    }

    /// Returns whether the current statement is CREATE FUNCTION or CREATE PROCEDURE, whose body
    /// may contain semicolons.
    fn defines_routine(&self) -> bool {
        let replaces = self.is_word_at(1, "or") && self.is_word_at(2, "replace");
        let at = if replaces { 3 } else { 1 };
        self.is_word("create")
            && ["function", "procedure"].iter().any(|word| self.is_word_at(at, word))
    }

    fn end_transaction(&mut self) -> Result<StatementAction> {
        self.ends_transactions = true;
        let commits = self.take_word("commit");
        self.at += usize::from(!commits);
        let mut chain = false;
        if self.take_word("and") {
            chain = !self.take_word("no");
            self.expect_word("chain")?;
        }
        self.expect_symbol(";")?;
        Ok(StatementAction::End { commits, chain })
    }

    /// Returns the error for RETURN with a result that the function does not return.
    pub(super) fn mismatch(&self, message: &str) -> ParseError {
        ParseError::new(types::sqlstate::DATATYPE_MISMATCH, message, self.position())
    }

    /// Reads a query that returns rows: SQL, or EXECUTE.
    pub(super) fn query(&mut self, ends: &[&str]) -> Result<BodyQuery> {
        if !self.take_word("execute") {
            return Ok(BodyQuery::Fixed(self.sql(ends)?));
        }
        let with_using: Vec<&str> = ["using"].into_iter().chain(ends.iter().copied()).collect();
        let text = self.expression(&with_using)?;
        let listed: Vec<&str> = [","].into_iter().chain(ends.iter().copied()).collect();
        let using = self.using(&listed)?;
        Ok(BodyQuery::Dynamic(DynamicQuery { text, using }))
    }
}

/// Returns whether a token may begin an SQL statement.
fn is_statement_word(token: &Token) -> bool {
    let TokenKind::Word(word) = &token.kind else { return false };
    const OTHERS: &[&str] = &["upsert", "major", "compact", "flush", "merge"];
    key_words::key_word(word).is_some() || OTHERS.contains(&word.as_str())
}

fn no_option(option: &str, position: usize) -> ParseError {
    ParseError::new("0A000", format!("#{option} is not supported"), position).with_hint("Omit it.")
}
