//! The parser: from SQL text to [`ast`](crate::ast).
//!
//! ```text
//! text ──tokens──▶ limits ──▶ statement heads (ours) ──▶ expressions, queries, types (sqlparser)
//!                                       │                               │ lowered at once
//!                                       └──────────────▶ ast ◀──────────┘
//! ```
//!
//! The crate `sqlparser` provides the tokenizer, and parses expressions, queries and type names
//! with a dialect of ours. The heads of statements are parsed here, because most of bennu's differ
//! from `sqlparser`'s. Its trees never leave this module: they are lowered as soon as they are
//! parsed, in one pass that destructures every field, so that no syntax is silently ignored.
//!
//! Syntax errors have PostgreSQL's wording, `syntax error at or near "x"`, with the position.

pub mod error;
mod lexical_span;
pub mod constant_runs;
mod literal;
pub mod plain_strings;
pub mod limits;
mod name;
mod source;
mod tokens;
mod context_keywords;
mod rewrite_from;
mod operator_tokens;
mod rewrite;
mod phoenix_syntax;
mod grouping;
mod dialect;
mod cursor;
mod type_name;
mod operator;
mod collation;
mod expr;
mod array;
mod call;
mod query;
mod with;
mod window;
mod table;
mod dml;
mod merge;
mod create_as;
mod like;
mod foreign_key;
mod constraint_attributes;
mod column;
mod ddl;
mod comment;
mod family_clause;
mod drop;
mod view;
mod access;
mod schema;
mod sequence;
mod type_statement;
mod extension;
mod database;
mod domain;
mod function;
mod trigger;
mod text_references;
mod alter;
mod alter_columns;
mod session;
mod maintenance;
mod copy;
mod explain;

pub use error::ParseError;
pub use name::DatabaseQualifier;
pub(crate) use name::IDENTIFIER_BYTES;
pub use text_references::{
    NameReference, call_references, column_references, replace, string_places, strings,
    type_references,
};
pub use types::function::quote_ident as quoted;

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Token, TokenWithSpan, TokenizerError, Whitespace};

use types::interrupt::check_planned;

use crate::ast::{Expr, Ident, QueryExpr, Statement, TableName};
use cursor::TokenCursor;
use dialect::BennuDialect;
use error::Result;
use source::ScriptText;

/// One statement of a script.
#[derive(Debug, Clone, PartialEq)]
pub struct ParsedStatement {
    /// The syntax tree.
    pub statement: Statement,
    /// Its text, without the semicolon and surrounding blanks.
    pub text: StatementText,
    /// The databases that qualify names.
    pub databases: Vec<DatabaseQualifier>,
}

/// The text of a statement, as a range of its script. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatementText {
    /// The script.
    pub input: Arc<str>,
    range: Range<usize>,
}

impl ParsedStatement {
    /// Returns the statement with what is shown of a text with a password, which no view and no
    /// log may have.
    pub(crate) fn without_password(self) -> ParsedStatement {
        match &self.statement {
            Statement::Role(role) if role.has_password() => {
                let input: Arc<str> = format!("{} … PASSWORD …", role.tag()).into();
                let range = 0..input.len();
                ParsedStatement { text: StatementText { input, range }, ..self }
            }
            _ => self,
        }
    }
}

impl StatementText {
    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.input[self.range.clone()]
    }

    /// Returns the byte offset of the text in the script.
    pub fn offset(&self) -> usize {
        self.range.start
    }
}

impl fmt::Display for StatementText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Parses a script: statements separated by semicolons. Empty statements are omitted, so an empty
/// text gives an empty list.
///
/// # Errors
///
/// The first error in any of the statements; none is returned then.
pub fn parse_statements(sql: &str) -> std::result::Result<Vec<ParsedStatement>, ParseError> {
    with_cursor(ScriptText::new(sql).with_runs(), |cursor| {
        let mut statements = Vec::new();
        let input: Arc<str> = sql.into();
        loop {
            while cursor.take(&Token::SemiColon) {}
            if cursor.peek() == &Token::EOF {
                return Ok(statements);
            }
            let offset = cursor.byte();
            let statement = cursor.statement()?;
            let range = offset..offset + cursor.text_since(offset).len();
            if !cursor.at_end() {
                return Err(cursor.unexpected());
            }
            let text = StatementText { input: Arc::clone(&input), range };
            let databases = cursor.source.take_databases();
            statements.push(ParsedStatement { statement, text, databases });
        }
    })
}

/// Parses a standalone expression, such as one stored in the catalog.
///
/// # Errors
///
/// Its first syntax error.
pub fn parse_expression(sql: &str) -> std::result::Result<Expr, ParseError> {
    with_cursor(ScriptText::new(sql), |cursor| {
        let expression = cursor.expr()?;
        if cursor.peek() != &Token::EOF {
            return Err(cursor.unexpected());
        }
        Ok(expression)
    })
}

/// Parses the option `column_families`: families with the names of their columns, `f(a, b), g(c)`.
///
/// # Errors
///
/// Its first syntax error.
pub fn parse_column_families(
    text: &str,
) -> std::result::Result<Vec<(String, Vec<String>)>, ParseError> {
    with_cursor(ScriptText::new(text), |cursor| {
        let mut families = Vec::new();
        while cursor.peek() != &Token::EOF {
            if !families.is_empty() {
                cursor.expect(&Token::Comma)?;
            }
            let family = cursor.label()?.value;
            let is_empty = cursor.parser.peek_nth_token_ref(1).token == Token::RParen;
            let columns = match cursor.peek() == &Token::LParen && is_empty {
                true => {
                    cursor.advance();
                    cursor.advance();
                    Vec::new()
                }
                false => cursor.parenthesized(|cursor| Ok(cursor.label()?.value))?,
            };
            families.push((family, columns));
        }
        Ok(families)
    })
}

/// Parses a standalone query, such as one stored in the catalog.
///
/// # Errors
///
/// Its first syntax error.
pub fn parse_query(sql: &str) -> std::result::Result<QueryExpr, ParseError> {
    with_cursor(ScriptText::new(sql), |cursor| {
        let query = cursor.query()?;
        if cursor.peek() != &Token::EOF {
            return Err(cursor.unexpected());
        }
        Ok(query)
    })
}

/// Parses the standalone name of a table, view or sequence.
///
/// # Errors
///
/// Its first syntax error.
pub fn parse_relation_name(text: &str) -> std::result::Result<TableName, ParseError> {
    let invalid = || ParseError::new(error::sqlstate::INVALID_NAME, "invalid name syntax", None);
    let ident = |value: String| Ident { value, position: 1 };
    let mut parts: Vec<Ident> =
        name::split(text).ok_or_else(invalid)?.into_iter().map(ident).collect();
    let name = parts.pop().ok_or_else(invalid)?;
    let schema = parts.pop();
    name::database_of(&parts, &[text])?;
    Ok(TableName { schema, name })
}

/// Parses a standalone name as [`parse_relation_name`] does, in a database.
///
/// # Errors
///
/// Its first syntax error; 0A000 if it names another database.
pub fn parse_relation_name_in(
    text: &str,
    present: &str,
) -> std::result::Result<TableName, ParseError> {
    let name = parse_relation_name(text)?;
    let mut parts = name::split(text).unwrap_or_default().into_iter();
    let database = (parts.len() > 2).then(|| parts.next()).flatten();
    let before = database.map(|value| Ident { value, position: 1 });
    match name::database_of(before.as_slice(), &[text])? {
        Some(database) => database.check(present).map(|()| name),
        None => Ok(name),
    }
}

/// Parses a type with its modifier, as an input of `regtype`.
///
/// # Errors
///
/// 42601 if it is not a type name; 42704 for a type that does not exist.
pub fn parse_type(text: &str) -> std::result::Result<crate::ast::TypeName, ParseError> {
    if text.trim().is_empty() {
        return Err(ParseError::syntax(format!("invalid type name \"{text}\""), None));
    }
    with_cursor(ScriptText::new(text), |cursor| {
        let parsed = cursor.type_name()?;
        if cursor.peek() != &Token::EOF {
            return Err(cursor.unexpected());
        }
        Ok(parsed)
    })
}

/// Returns the text of an expression with the name of a column replaced, except where it is the
/// name of a function, type or field.
///
/// # Errors
///
/// 42601 if the text cannot be tokenized.
pub fn rename_identifier(
    text: &str,
    old: &str,
    new: &str,
) -> std::result::Result<String, ParseError> {
    let source = ScriptText::new(text);
    let tokens = tokenize(&BennuDialect::default(), &source)?;
    let is_blank = |token: &&TokenWithSpan| !matches!(token.token, Token::Whitespace(_));
    let tokens: Vec<&TokenWithSpan> = tokens.iter().filter(is_blank).collect();
    let mut out = String::with_capacity(text.len());
    let mut done = 0;
    for (at, token) in tokens.iter().enumerate() {
        let Token::Word(word) = &token.token else { continue };
        let before = at.checked_sub(1).map(|before| &tokens[before].token);
        let after = tokens.get(at + 1).map(|after| &after.token);
        let is_type = matches!(before, Some(Token::DoubleColon));
        let is_call = matches!(after, Some(Token::LParen));
        if is_type || is_call || name::fold(&word.value, word.quote_style.is_some()) != old {
            continue;
        }
        out.push_str(&text[done..source.byte(token.span.start)]);
        out.push_str(&quoted(new));
        done = source.byte(token.span.end);
    }
    out.push_str(&text[done..]);
    Ok(out)
}

/// Parses a list of names, such as the value of `search_path`: PostgreSQL's
/// `SplitIdentifierString`. The list may be empty, and a quoted name may be empty; `None` for
/// anything else.
pub fn parse_name_list(text: &str) -> Option<Vec<String>> {
    let mut names = Vec::new();
    let mut rest = text.trim_start();
    if rest.is_empty() {
        return Some(names);
    }
    loop {
        let behind;
        if let Some(mut quoted) = rest.strip_prefix('"') {
            let mut name = String::new();
            loop {
                let (part, after) = quoted.split_once('"')?;
                name.push_str(part);
                let Some(again) = after.strip_prefix('"') else {
                    behind = after;
                    break;
                };
                name.push('"');
                quoted = again;
            }
            names.push(name);
        } else {
            let ends = |c: char| c == ',' || c.is_ascii_whitespace();
            let end = rest.find(ends).unwrap_or(rest.len());
            if end == 0 {
                return None;
            }
            names.push(rest[..end].to_lowercase());
            behind = &rest[end..];
        }
        let behind = behind.trim_start();
        if behind.is_empty() {
            return Some(names);
        }
        rest = behind.strip_prefix(',')?.trim_start();
    }
}

/// Checks the limits of a text and runs `parse` over its tokens; after an error again, with
/// Phoenix's syntax rewritten.
fn with_cursor<T>(
    source: ScriptText<'_>,
    parse: impl Fn(&mut TokenCursor<'_>) -> Result<T>,
) -> Result<T> {
    limits::check_size(source.text())?;
    let dialect = BennuDialect::default();
    let tokens = tokenize(&dialect, &source)?;
    limits::check_tokens(&tokens, &source)?;
    let error = match parse_tokens(tokens, (&dialect, &source), &parse) {
        Err(error) if error.sqlstate != error::sqlstate::QUERY_CANCELED => error,
        parsed => return parsed,
    };
    let mut tokens = tokenize(&dialect, &source)?;
    if !phoenix_syntax::rewrite(&mut tokens) {
        return Err(error);
    }
    parse_tokens(tokens, (&dialect, &source), &parse).map_err(|_| error)
}

fn parse_tokens<T>(
    mut tokens: Vec<TokenWithSpan>,
    (dialect, source): (&BennuDialect, &ScriptText<'_>),
    parse: &impl Fn(&mut TokenCursor<'_>) -> Result<T>,
) -> Result<T> {
    operator_tokens::cut(dialect, &mut tokens);
    check_time()?;
    context_keywords::classify_keywords(&mut tokens);
    schema::part_elements(&mut tokens);
    check_time()?;
    rewrite::rewrite(&mut tokens);
    check_time()?;
    let exclusions = window::take_exclusions(&mut tokens, source);
    let join_aliases = rewrite_from::take_join_aliases(&mut tokens, source);
    let token_count = tokens.len();
    let parser = Parser::new(dialect)
        .with_recursion_limit(limits::PARSER_DEPTH)
        .with_tokens_with_locations(tokens);
    let table_names = Vec::new();
    let into = create_as::SelectIntoClause::Refused;
    let cursor =
        TokenCursor { parser, source, token_count, table_names, exclusions, join_aliases, into };
    parse(&mut { cursor })
}

/// Fails if the statement was cancelled; called between two passes over all tokens.
fn check_time() -> Result<()> {
    check_planned()
        .map_err(|error| ParseError::new(error::sqlstate::QUERY_CANCELED, error.message, None))
}

fn tokenize(dialect: &BennuDialect, source: &ScriptText<'_>) -> Result<Vec<TokenWithSpan>> {
    let tokens = literal::tokens(dialect, source)?;
    check_time()?;
    if let Some((what, text, position)) = junk(&tokens, source) {
        let message = format!("trailing junk after {what} at or near \"{text}\"");
        return Err(ParseError::syntax(message, position));
    }
    let is_empty_name =
        |token: &&TokenWithSpan| matches!(&token.token, Token::Word(word) if word.value.is_empty());
    if let Some(token) = broken_continuation(&tokens) {
        let text = source.text().get(source.byte(token.span.start)..source.byte(token.span.end));
        let message = format!("syntax error at or near \"{}\"", text.unwrap_or_default());
        return Err(ParseError::syntax(message, source.position(token.span.start)));
    }
    match tokens.iter().find(is_empty_name) {
        None => Ok(tokens),
        Some(token) => Err(ParseError::syntax(
            r#"zero-length delimited identifier at or near """""#,
            source.position(token.span.start),
        )),
    }
}

/// Returns the first string that would continue a preceding one, except for a comment between
/// them.
fn broken_continuation(tokens: &[TokenWithSpan]) -> Option<&TokenWithSpan> {
    let mut after_string = None;
    for token in tokens {
        match (&token.token, after_string) {
            (Token::Whitespace(Whitespace::MultiLineComment(_)), Some(_)) => {
                after_string = Some(true);
            }
            (Token::Whitespace(_), _) => {}
            (Token::SingleQuotedString(_), Some(true)) => return Some(token),
            (
                Token::SingleQuotedString(_)
                | Token::EscapedStringLiteral(_)
                | Token::NationalStringLiteral(_),
                _,
            ) => after_string = Some(false),
            _ => after_string = None,
        }
    }
    None
}

/// Returns the first number or parameter directly followed by letters, with its position.
fn junk<'a>(
    tokens: &[TokenWithSpan],
    source: &ScriptText<'a>,
) -> Option<(&'static str, &'a str, usize)> {
    let text_of = |from: &TokenWithSpan, to: &TokenWithSpan| {
        source.text().get(source.byte(from.span.start)..source.byte(to.span.end))
    };
    tokens.iter().enumerate().find_map(|(at, token)| {
        let text = text_of(token, token)?;
        let (what, is_odd) = match &token.token {
            Token::Number(..) => ("numeric literal", text.contains('_')),
            Token::HexStringLiteral(_) => ("numeric literal", text.starts_with('0')),
            Token::Placeholder(_) => (
                "parameter",
                text.starts_with('$') && !text[1..].bytes().all(|b| b.is_ascii_digit()),
            ),
            _ => return None,
        };
        let behind = tokens.get(at + 1).filter(|next| {
            matches!(&next.token, Token::Word(word) if word.quote_style.is_none())
                && next.span.start == token.span.end
        });
        let last = match (behind, is_odd) {
            (Some(word), _) => word,
            (None, true) => token,
            (None, false) => return None,
        };
        Some((what, text_of(token, last)?, source.position(token.span.start)))
    })
}

/// Translates an error of the tokenizer into PostgreSQL's wording.
fn token_error(error: &TokenizerError, source: &ScriptText<'_>) -> ParseError {
    let position = source.position(error.location).max(1);
    let rest = &source.text()[source.byte(error.location)..];
    let message = error.message.to_ascii_lowercase();
    let what = if message.contains("comment") {
        "unterminated /* comment"
    } else if message.contains("dollar") {
        "unterminated dollar-quoted string"
    } else if message.contains("delimited identifier") || message.contains("close delimiter") {
        "unterminated quoted identifier"
    } else if message.contains("escape") || message.contains("unicode") {
        "invalid escape sequence"
    } else if message.contains("string") {
        "unterminated quoted string"
    } else {
        "syntax error"
    };
    ParseError::syntax(format!("{what} at or near \"{rest}\""), position)
}

impl TokenCursor<'_> {
    /// Reads one statement by its first keyword.
    pub(super) fn statement(&mut self) -> Result<Statement> {
        let position = self.position();
        match self.peek_word().as_str() {
            "select" | "values" => self.query_statement(),
            "with" => self.with_statement(),
            "" if self.peek() == &Token::LParen => self.query_statement(),
            "insert" => self.insert(),
            "upsert" => self.upsert(),
            "update" => self.update(),
            "delete" => self.delete(),
            "merge" => self.merge(),
            "create" => self.create(),
            "drop" => self.drop(),
            "truncate" => self.truncate(),
            "refresh" => self.refresh(),
            "comment" => self.comment_on(),
            "alter" => self.alter(),
            "flush" => self.flush(),
            "major" | "compact" => self.compact(),
            "explain" => self.explain(),
            "copy" => self.copy(),
            "begin" | "start" => self.begin(),
            "commit" | "end" | "rollback" | "abort" => self.finish(),
            "savepoint" => self.savepoint(),
            "release" => self.release(),
            "grant" | "revoke" => self.grant(),
            "reassign" => {
                self.advance();
                self.owned(false)
            }
            "set" => self.set(),
            "show" => self.show(),
            "reset" => self.reset(),
            "discard" => self.discard(),
            "prepare" => self.prepare(),
            "execute" => self.execute(),
            "call" => self.call_statement(),
            "do" => self.do_statement(),
            "deallocate" => self.deallocate(),
            "declare" => self.declare(),
            "fetch" | "move" => self.fetch(),
            "close" => self.close(),
            "lock" => self.lock(),
            "reindex" => self.reindex(),
            "check" => self.check(),
            "listen" => self.listen(),
            "unlisten" => self.unlisten(),
            "notify" => self.notify(),
            "analyze" | "analyse" => self.analyze(),
            "vacuum" => self.vacuum(),
            "add" | "list" if self.nth_word_is(1, "jars") => {
                Err(ParseError::unsupported("ADD JARS or LIST JARS", position))
            }
            word => Err(unknown_statement(word, position).unwrap_or_else(|| self.unexpected())),
        }
    }

    /// Reads `WITH …` before a query or a data-modifying statement.
    fn with_statement(&mut self) -> Result<Statement> {
        let (with, mut statement) = self.with(|cursor| match cursor.peek_word().as_str() {
            "insert" => cursor.insert(),
            "update" => cursor.update(),
            "delete" => cursor.delete(),
            "merge" => cursor.merge(),
            _ => cursor.query_or_into(Self::query_body),
        })?;
        let place = match &mut statement {
            Statement::Query(query) if query.with.is_some() => {
                return Err(ParseError::syntax("multiple WITH clauses not allowed", with.position));
            }
            Statement::Query(query) => &mut query.with,
            Statement::CreateTableAs(create) => match create.query.as_mut() {
                Statement::Query(query) => &mut query.with,
                _ => return Err(self.unexpected()),
            },
            Statement::Insert(insert) => &mut insert.with,
            Statement::Update(update) => &mut update.with,
            Statement::Delete(delete) => &mut delete.with,
            Statement::Merge(merge) => &mut merge.with,
            _ => return Err(self.unexpected()),
        };
        *place = Some(with);
        Ok(statement)
    }

    fn query_statement(&mut self) -> Result<Statement> {
        self.query_or_into(Self::query)
    }
}

/// Returns the error for a statement of PostgreSQL or Phoenix that bennu does not support.
fn unknown_statement(word: &str, position: usize) -> Option<ParseError> {
    const OTHERS: &[&str] =
        &["checkpoint", "cluster", "import", "load", "security", "increment", "check", "trace"];
    if !OTHERS.contains(&word) {
        return None;
    }
    Some(ParseError::unsupported(word.to_uppercase(), position))
}
