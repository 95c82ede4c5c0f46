//! Parsing of CREATE, ALTER and DROP FUNCTION, DO and CALL.

use sqlparser::tokenizer::Token;

use types::{DataType, key_words};

use super::cursor::TokenCursor;
use super::error::{ParseError, Result, sqlstate};
use crate::ast::{
    AlterFunction, BodyPosition, CreateFunction, DATABASE, DoBlock, Expr, FunctionAttributes,
    FunctionBody, FunctionParameter, FunctionStatement, Language, NamedType, ObjectKind,
    ObjectReference, Parallel, ParameterMode, Returns, Statement, TableName, TypeName, Volatility,
};

/// The clauses of CREATE FUNCTION after RETURNS.
#[derive(Default)]
struct Clauses {
    language: Option<(String, usize)>,
    attributes: FunctionAttributes,
    body: Option<FunctionBody>,
}

impl TokenCursor<'_> {
    /// Reads CREATE FUNCTION or CREATE PROCEDURE from the word of the kind.
    pub(super) fn create_function(&mut self, or_replace: bool) -> Result<Statement> {
        let is_procedure = self.take_word("procedure");
        let kind = if is_procedure { ObjectKind::Procedure } else { ObjectKind::Function };
        if !is_procedure {
            self.expect_words(&["function"])?;
        }
        let start = self.position();
        let name = self.routine_name()?;
        let arguments = self.function_parameters()?;
        let may_return = kind == ObjectKind::Function && !self.is_words(&["returns", "null"]);
        let returns = match may_return && self.take_word("returns") {
            true => Some(self.returns()?),
            false => None,
        };
        let mut clauses = Clauses::default();
        while self.function_clause(&mut clauses)? {}
        if self.is_words(&["using", "jar"]) {
            return Err(ParseError::unsupported("CREATE FUNCTION … USING JAR", self.position()));
        }
        let invalid =
            |message: &str| ParseError::new(sqlstate::INVALID_FUNCTION_DEFINITION, message, start);
        let mut language = Language::Sql;
        match &clauses.language {
            Some((name, _)) if name == "sql" => {}
            Some((name, _)) if name == "plpgsql" => language = Language::PlPgSql,
            Some((name, position)) => return Err(other_language(name, *position)),
            None if matches!(
                clauses.body,
                Some(FunctionBody::Statements(..) | FunctionBody::Expression(..))
            ) => {}
            None => return Err(invalid("no language specified")),
        }
        let body = clauses.body.ok_or_else(|| invalid("no function body specified"))?;
        if language != Language::Sql && !matches!(body, FunctionBody::Text { .. }) {
            return Err(invalid("inline SQL function body only valid for language SQL"));
        }
        let create = CreateFunction {
            kind,
            name,
            or_replace,
            arguments,
            returns,
            attributes: clauses.attributes,
            language,
            body,
        };
        Ok(Statement::Function(Box::new(FunctionStatement::Create(create))))
    }

    fn function_parameters(&mut self) -> Result<Vec<FunctionParameter>> {
        self.expect(&Token::LParen)?;
        if self.take(&Token::RParen) {
            return Ok(Vec::new());
        }
        let parameters = self.list(Self::function_parameter)?;
        self.expect(&Token::RParen)?;
        Ok(parameters)
    }

    fn parameter_mode(&mut self) -> Option<ParameterMode> {
        let mode = match self.peek_word().as_str() {
            "in" if self.nth_word_is(1, "out") => {
                self.advance();
                ParameterMode::InOut
            }
            "in" => ParameterMode::In,
            "out" => ParameterMode::Out,
            "inout" => ParameterMode::InOut,
            "variadic" => ParameterMode::Variadic,
            _ => return None,
        };
        self.advance();
        Some(mode)
    }

    fn function_parameter(&mut self) -> Result<FunctionParameter> {
        let mode = self.parameter_mode();
        // The parameter is named, unless the first word begins its type.
        let named = match (self.peek(), &self.parser.peek_nth_token_ref(1).token) {
            (Token::Word(_), Token::Word(word)) => {
                let next = word.value.to_ascii_lowercase();
                let first = self.peek_word();
                let of_type = matches!(
                    (first.as_str(), next.as_str()),
                    ("double", "precision")
                        | ("character" | "char" | "bit", "varying")
                        | ("time" | "timestamp", "with" | "without")
                );
                !of_type && next != "default"
            }
            _ => false,
        };
        let name = if named { Some(self.parameter_name()?) } else { None };
        let mode = mode.or_else(|| self.parameter_mode());
        let (has_mode, mode) = (mode.is_some(), mode.unwrap_or(ParameterMode::In));
        let type_name = self.signature_type()?;
        let default = match self.take_word("default") || self.take(&Token::Eq) {
            true => Some(self.source_expr()?),
            false => None,
        };
        Ok(FunctionParameter { mode, has_mode, name, type_name, default })
    }

    fn returns(&mut self) -> Result<Returns> {
        if self.is_word("event_trigger") {
            let what = "RETURNS event_trigger";
            let hint = "Set log_statement to ddl, or call the function from a statement.";
            return Err(ParseError::unsupported(what, self.position()).with_hint(hint));
        }
        if self.take_word("setof") {
            return Ok(Returns::Set(self.signature_type()?));
        }
        if self.take_word("table") {
            self.expect(&Token::LParen)?;
            let columns =
                self.list(|cursor| Ok((cursor.parameter_name()?, cursor.signature_type()?)))?;
            self.expect(&Token::RParen)?;
            return Ok(Returns::Table(columns));
        }
        Ok(Returns::Value(self.signature_type()?))
    }

    /// Reads a type in a signature, which may be `relation.column%TYPE`.
    fn signature_type(&mut self) -> Result<TypeName> {
        let token = |cursor: &Self, at: usize| cursor.parser.peek_nth_token_ref(at).token.clone();
        let is_name = |token: &Token| matches!(token, Token::Word(_));
        let mut last = 0;
        while is_name(&token(self, last)) && token(self, last + 1) == Token::Period {
            last += 2;
        }
        let is_of_column = last > 0
            && is_name(&token(self, last))
            && token(self, last + 1) == Token::Mod
            && self.nth_word_is(last + 2, "type");
        if !is_of_column {
            return self.type_name();
        }
        let position = self.position();
        let mut parts = Vec::new();
        while !self.take(&Token::Mod) {
            parts.push(self.name()?.value);
            self.take(&Token::Period);
        }
        self.advance();
        let named = match parts.as_slice() {
            [relation, column] => (None, relation, column),
            [schema, relation, column] => (Some(schema.clone()), relation, column),
            [database, schema, relation, column] if database == DATABASE => {
                (Some(schema.clone()), relation, column)
            }
            _ => {
                let name = parts.join(".");
                let message = format!("improper %TYPE reference (too many dotted names): {name}");
                return Err(ParseError::syntax(message, position));
            }
        };
        let (schema, name, column) = named;
        let (name, of_column) = (name.clone(), Some(column.clone()));
        let named = Some(NamedType { schema, name, of_column, is_array: false });
        let sql_type = DataType::Unknown.into();
        Ok(TypeName { sql_type, named, collation: None, position })
    }

    /// Reads one clause after RETURNS; returns false if there is none.
    fn function_clause(&mut self, clauses: &mut Clauses) -> Result<bool> {
        let position = self.position();
        let mut again = false;
        if self.take_word("language") {
            let language = match self.peek() {
                Token::Word(_) => self.identifier(key_words::is_not_reserved)?.value,
                _ => self.string()?.to_lowercase(),
            };
            again = clauses.language.replace((language, position)).is_some();
        } else if self.function_attribute(&mut clauses.attributes)? {
            // It is already stored.
        } else if self.take_word("as") {
            let position = self.position();
            let rest = &self.source.text()[self.byte()..];
            let text = self.string()?;
            let place = literal_place(&text, rest, position);
            again = clauses.body.replace(FunctionBody::Text { text, place }).is_some();
        } else if self.take_word("return") {
            let place =
                BodyPosition { start: self.position(), inserted_chars: 7, is_quoted: false };
            let value = self.source_expr()?;
            let body = FunctionBody::Expression(format!("SELECT {}", value.text), place);
            again = clauses.body.replace(body).is_some();
        } else if self.take_words(&["begin", "atomic"]) {
            let place =
                BodyPosition { start: self.position(), inserted_chars: 0, is_quoted: false };
            let body = FunctionBody::Statements(self.atomic_statements()?, place);
            again = clauses.body.replace(body).is_some();
        } else {
            return Ok(false);
        }
        match again {
            true => Err(ParseError::syntax("conflicting or redundant options", position)),
            false => Ok(true),
        }
    }

    /// Reads the statements of a body up to END; returns their text.
    fn atomic_statements(&mut self) -> Result<String> {
        let start = self.byte();
        let mut end = start;
        while !self.is_word("end") {
            if self.take(&Token::SemiColon) {
                continue;
            }
            self.statement()?;
            if self.peek() != &Token::SemiColon {
                return Err(self.unexpected());
            }
            self.advance();
            end = self.byte();
        }
        let text = self.source.text()[start..end].trim_end().to_owned();
        self.advance();
        Ok(text)
    }

    /// Reads one of the clauses common to CREATE and ALTER; returns false if there is none.
    fn function_attribute(&mut self, attributes: &mut FunctionAttributes) -> Result<bool> {
        let position = self.position();
        let mut of_functions = true;
        let again = if let Some(volatility) = self.volatility() {
            attributes.volatility.replace(volatility).is_some()
        } else if let Some(strict) = self.strictness() {
            attributes.strict.replace(strict).is_some()
        } else if self.take_word("parallel") {
            attributes.parallel.replace(self.parallel()?).is_some()
        } else if self.take_word("leakproof") {
            attributes.leakproof.replace(true).is_some()
        } else if self.take_words(&["not", "leakproof"]) {
            attributes.leakproof.replace(false).is_some()
        } else if self.take_word("cost") {
            attributes.cost.replace(self.estimate("COST")?).is_some()
        } else if self.take_word("rows") {
            attributes.rows.replace(self.estimate("ROWS")?).is_some()
        } else if self.is_words(&["external", "security"]) || self.is_word("security") {
            self.take_word("external");
            self.expect_words(&["security"])?;
            of_functions = false;
            let is_definer = self.take_word("definer");
            if !is_definer {
                self.expect_words(&["invoker"])?;
            }
            attributes.security_definer.replace(is_definer).is_some()
        } else if self.is_word("set") || self.is_word("reset") {
            of_functions = false;
            attributes.settings.push(self.setting_clause()?);
            false
        } else {
            return Ok(false);
        };
        if again {
            return Err(ParseError::syntax("conflicting or redundant options", position));
        }
        if of_functions {
            attributes.of_functions.get_or_insert(position);
        }
        Ok(true)
    }

    fn parallel(&mut self) -> Result<Parallel> {
        let word = self.identifier(|_| true)?.value;
        match word.as_str() {
            "safe" => Ok(Parallel::Safe),
            "restricted" => Ok(Parallel::Restricted),
            "unsafe" => Ok(Parallel::Unsafe),
            _ => {
                let message = "parameter \"parallel\" must be SAFE, RESTRICTED, or UNSAFE";
                Err(ParseError::syntax(message, None))
            }
        }
    }

    /// Reads a positive number.
    fn estimate(&mut self, what: &str) -> Result<f32> {
        let position = self.position();
        let is_negative = self.take(&Token::Minus);
        if !is_negative {
            self.take(&Token::Plus);
        }
        let Token::Number(text, _) = self.peek() else { return Err(self.unexpected()) };
        let number = text.parse::<f32>().map_err(|_| self.syntax_error_near(position))?;
        self.advance();
        if is_negative || number <= 0.0 {
            let message = format!("{what} must be positive");
            return Err(ParseError::new(sqlstate::INVALID_PARAMETER_VALUE, message, None));
        }
        Ok(number)
    }

    fn volatility(&mut self) -> Option<Volatility> {
        let volatility = match self.peek_word().as_str() {
            "immutable" => Volatility::Immutable,
            "stable" => Volatility::Stable,
            "volatile" => Volatility::Volatile,
            _ => return None,
        };
        self.advance();
        Some(volatility)
    }

    fn strictness(&mut self) -> Option<bool> {
        if self.take_word("strict") || self.take_words(&["returns", "null", "on", "null", "input"])
        {
            return Some(true);
        }
        self.take_words(&["called", "on", "null", "input"]).then_some(false)
    }

    /// Reads a function's name, and the types of its parameters if present.
    pub(super) fn function_reference(
        &mut self,
    ) -> Result<(TableName, Option<Vec<FunctionParameter>>)> {
        let name = match self.parser.peek_nth_token_ref(1).token {
            Token::Period => self.table_name()?,
            Token::LParen => self.routine_name()?,
            // Without parentheses, reserved words are the only restriction.
            _ => {
                let name = self.identifier(key_words::is_not_reserved)?;
                TableName { schema: None, name }
            }
        };
        if !self.take(&Token::LParen) {
            return Ok((name, None));
        }
        let mut arguments = Vec::new();
        if !self.take(&Token::RParen) {
            arguments = self.list(Self::function_parameter)?;
            self.expect(&Token::RParen)?;
        }
        Ok((name, Some(arguments)))
    }

    /// Reads the rest of ALTER FUNCTION, ALTER PROCEDURE or ALTER ROUTINE.
    pub(super) fn alter_function(&mut self, function: ObjectReference) -> Result<Statement> {
        let position = self.position();
        let mut attributes = FunctionAttributes::default();
        while self.function_attribute(&mut attributes)? {}
        if attributes == FunctionAttributes::default() {
            let construct = format!("ALTER FUNCTION … {}", self.peek_word().to_uppercase());
            return Err(ParseError::unsupported(construct, position));
        }
        self.take_word("restrict");
        let alter = AlterFunction { function, attributes };
        Ok(Statement::Function(Box::new(FunctionStatement::Alter(alter))))
    }
}

/// Returns the position of the text in a literal that begins at `position`; `None` if it is not
/// written character by character.
fn literal_place(text: &str, literal: &str, position: usize) -> Option<BodyPosition> {
    let is_quoted = literal.starts_with('\'');
    let (opening, written) = match is_quoted {
        true => ("'", text.replace('\'', "''")),
        false => {
            let tag = literal.strip_prefix('$')?.find('$')?;
            (literal.get(..tag + 2)?, text.to_owned())
        }
    };
    literal.strip_prefix(opening)?.strip_prefix(&written)?.strip_prefix(opening)?;
    Some(BodyPosition { start: position + opening.chars().count(), inserted_chars: 0, is_quoted })
}

fn other_language(language: &str, position: usize) -> ParseError {
    match language {
        "c" | "internal" | "plperl" | "plpython3u" | "pltcl" => {
            ParseError::unsupported(format!("language {language}"), position)
                .with_hint("Write it in LANGUAGE sql or plpgsql.")
        }
        _ => {
            let message = format!("language \"{language}\" does not exist");
            ParseError::new(sqlstate::UNDEFINED_OBJECT, message, None)
        }
    }
}

impl TokenCursor<'_> {
    /// Reads DO.
    pub(super) fn do_statement(&mut self) -> Result<Statement> {
        self.expect_words(&["do"])?;
        let (mut language, mut body) = (None, None);
        loop {
            let position = self.position();
            let again = if self.take_word("language") {
                let name = match self.peek() {
                    Token::Word(_) => self.identifier(key_words::is_not_reserved)?.value,
                    _ => self.string()?.to_lowercase(),
                };
                language.replace(name).is_some()
            } else if self.at_end() {
                break;
            } else {
                let rest = &self.source.text()[self.byte()..];
                let text = self.string()?;
                let place = literal_place(&text, rest, position);
                body.replace((text, place)).is_some()
            };
            if again {
                return Err(ParseError::syntax("conflicting or redundant options", position));
            }
        }
        let Some((body, place)) = body else {
            return Err(ParseError::syntax("no inline code specified", None));
        };
        let language = language.unwrap_or_else(|| "plpgsql".to_owned());
        Ok(Statement::Do(Box::new(DoBlock { language, body, place })))
    }

    /// Reads CALL.
    pub(super) fn call_statement(&mut self) -> Result<Statement> {
        self.expect_words(&["call"])?;
        let position = self.position();
        match self.expr()? {
            Expr::Call(call) if !call.star && call.over.is_none() && call.filter.is_none() => {
                Ok(Statement::Call(call))
            }
            _ => Err(self.syntax_error_near(position)),
        }
    }
}
