//! Limits on the size of a statement, checked on its tokens before it is parsed.
//!
//! A recursive parser and the trees it builds could overflow the stack on hostile text: by deep
//! nesting, and by long chains of operators, which make left-deep trees. Both are rejected with
//! SQLSTATE 54001, independent of the stack of the calling thread.
//!
//! A chain is counted between commas, at one level of nesting; its depth and that of the deepest
//! tree in parentheses within it add up to the tree depth, which has a limit of its own. AND and
//! OR have a larger limit, because their chains become lists; so has UNION.

use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::error::{ParseError, Result, sqlstate};
use super::source::ScriptText;

/// The maximum bytes of a script. A statement of this size needs some hundred MiB to parse.
pub const SCRIPT_BYTES: usize = 16 << 20;
/// The maximum nesting of parentheses, brackets and CASEs.
pub const NESTING_DEPTH: usize = 64;
/// The maximum length of a chain of operators other than AND and OR.
pub const CHAINED_OPERATORS: usize = 1_000;
/// The maximum depth of a tree of operators and joins, including those in parentheses.
pub const TREE_DEPTH: usize = CHAINED_OPERATORS + NESTING_DEPTH;
/// The maximum length of a chain of ANDs and ORs.
pub const CHAINED_CONDITIONS: usize = 50_000;
/// The maximum number of INTERSECTs, EXCEPTs and JOINs in one query.
pub const CHAINED_QUERIES: usize = 250;
/// The maximum number of UNIONs in one query, which are bound in a loop and make one list.
pub const CHAINED_UNIONS: usize = 1_000;
/// The recursion limit of `sqlparser`: for a nesting of [`NESTING_DEPTH`], with room for the
/// precedence levels and prefix operators.
pub(crate) const PARSER_DEPTH: usize = 250;

/// The bytes of stack that a lowering step may need before the next check.
const RED_ZONE_BYTES: usize = 256 << 10;
/// The bytes of stack that are added when less than [`RED_ZONE_BYTES`] is left.
const STACK_BYTES: usize = 2 << 20;

/// Runs a step of a recursion with enough stack, as `sqlparser` does when parsing.
pub(crate) fn with_stack<T>(step: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(RED_ZONE_BYTES, STACK_BYTES, step)
}

/// The counts at one level of nesting.
#[derive(Default)]
struct NestingLevel {
    /// True if it is opened by CASE and closed by END.
    case: bool,
    /// True if the next AND belongs to a BETWEEN.
    between: bool,
    operators: usize,
    conditions: usize,
    queries: usize,
    unions: usize,
    /// The deepest tree in parentheses that belongs to the current chain.
    inner: usize,
    /// The deepest tree so far.
    depth: usize,
}

impl NestingLevel {
    /// Ends a chain: what follows is its sibling in the tree.
    fn restart(&mut self) {
        self.operators = 0;
        self.inner = 0;
    }
}

/// The effect of a token on the counts.
enum TokenEffect {
    Open {
        case: bool,
    },
    Close {
        case: bool,
    },
    Operator,
    Between,
    Condition,
    QueryOperator,
    Union,
    /// Begins another expression.
    Restart,
    Statement,
    Nothing,
}

/// Checks the size of a script.
pub(crate) fn check_size(text: &str) -> Result<()> {
    if text.len() <= SCRIPT_BYTES {
        return Ok(());
    }
    let message = format!("statement is too long: {} bytes", text.len());
    Err(ParseError::new(sqlstate::STATEMENT_TOO_COMPLEX, message, None)
        .with_hint(format!("Send at most {SCRIPT_BYTES} bytes in one message, or use COPY.")))
}

/// Checks nesting and chains.
pub(crate) fn check_tokens(tokens: &[TokenWithSpan], source: &ScriptText<'_>) -> Result<()> {
    let mut levels = vec![NestingLevel::default()];
    for token in tokens {
        let top = levels.len() - 1;
        let level = &mut levels[top];
        match effect(&token.token) {
            TokenEffect::Open { case } => {
                levels.push(NestingLevel { case, ..NestingLevel::default() })
            }
            TokenEffect::Close { case } => {
                if top > 0 && level.case == case {
                    let depth = level.depth + 1;
                    levels.pop();
                    let around = &mut levels[top - 1];
                    around.inner = around.inner.max(depth);
                }
            }
            TokenEffect::Operator => level.operators += 1,
            TokenEffect::Between => {
                level.operators += 1;
                level.between = true;
            }
            TokenEffect::Condition if level.between => level.between = false,
            TokenEffect::Condition => {
                level.conditions += 1;
                level.restart();
            }
            effect @ (TokenEffect::QueryOperator | TokenEffect::Union) => {
                match effect {
                    TokenEffect::Union => level.unions += 1,
                    _ => level.queries += 1,
                }
                // A preceding expression in parentheses may be its left operand.
                level.operators = 0;
                level.conditions = 0;
            }
            TokenEffect::Restart => {
                level.restart();
                level.conditions = 0;
                level.between = false;
            }
            TokenEffect::Statement => levels = vec![NestingLevel::default()],
            TokenEffect::Nothing => continue,
        }
        let nesting = levels.len();
        let level = &mut levels[nesting - 1];
        // A join needs more stack than an operator.
        let own = level.operators + 2 * level.queries;
        level.depth = level.depth.max(own + level.inner);
        if nesting > NESTING_DEPTH
            || level.depth > TREE_DEPTH
            || level.operators > CHAINED_OPERATORS
            || level.conditions > CHAINED_CONDITIONS
            || level.queries > CHAINED_QUERIES
            || level.unions > CHAINED_UNIONS
        {
            return Err(too_complex(source.position(token.span.start)));
        }
    }
    Ok(())
}

/// Returns the error for a statement beyond the limits.
pub(crate) fn too_complex(position: impl Into<Option<usize>>) -> ParseError {
    ParseError::new(sqlstate::STATEMENT_TOO_COMPLEX, "stack depth limit exceeded", position)
        .with_hint(format!(
            "A statement can have at most {NESTING_DEPTH} nesting levels, and chains of at most \
             {CHAINED_OPERATORS} operators including those in parentheses, {CHAINED_CONDITIONS} \
             conditions, {CHAINED_UNIONS} unions and {CHAINED_QUERIES} joins. Split the statement, \
             or use IN or VALUES lists."
        ))
}

fn effect(token: &Token) -> TokenEffect {
    match token {
        Token::Whitespace(_)
        | Token::Number(..)
        | Token::SingleQuotedString(_)
        | Token::DollarQuotedString(_)
        | Token::EscapedStringLiteral(_)
        | Token::UnicodeStringLiteral(_)
        | Token::NationalStringLiteral(_)
        | Token::Placeholder(_)
        | Token::Period
        | Token::EOF => TokenEffect::Nothing,
        Token::Comma => TokenEffect::Restart,
        Token::LParen | Token::LBracket | Token::LBrace => TokenEffect::Open { case: false },
        Token::RParen | Token::RBracket | Token::RBrace => TokenEffect::Close { case: false },
        Token::SemiColon => TokenEffect::Statement,
        Token::Word(word) if word.quote_style.is_some() => TokenEffect::Nothing,
        Token::Word(word) => word_effect(&word.value),
        _ => TokenEffect::Operator,
    }
}

fn word_effect(word: &str) -> TokenEffect {
    const OPERATORS: &[&str] = &[
        "is", "in", "like", "ilike", "similar", "not", "collate", "at", "operator", "overlaps",
        "isnull", "notnull", "regexp", "rlike", "member", "xor", "escape", "interval", "prior",
    ];
    const RESTARTS: &[&str] = &[
        "select", "from", "where", "group", "having", "order", "limit", "offset", "set", "values",
        "when", "then", "else", "on", "using",
    ];
    const QUERIES: &[&str] = &["intersect", "except", "minus", "join", "apply"];
    if word.len() > 9 {
        return TokenEffect::Nothing;
    }
    let is = |candidate: &&str| candidate.eq_ignore_ascii_case(word);
    if is(&"and") || is(&"or") {
        TokenEffect::Condition
    } else if is(&"between") {
        TokenEffect::Between
    } else if is(&"case") {
        TokenEffect::Open { case: true }
    } else if is(&"end") {
        TokenEffect::Close { case: true }
    } else if OPERATORS.iter().any(is) {
        TokenEffect::Operator
    } else if is(&"union") {
        TokenEffect::Union
    } else if QUERIES.iter().any(is) {
        TokenEffect::QueryOperator
    } else if RESTARTS.iter().any(is) {
        TokenEffect::Restart
    } else {
        TokenEffect::Nothing
    }
}

#[cfg(test)]
mod tests {
    use sqlparser::dialect::PostgreSqlDialect;
    use sqlparser::tokenizer::Tokenizer;

    use super::*;

    fn check(sql: &str) -> Result<()> {
        let tokens = Tokenizer::new(&PostgreSqlDialect {}, sql)
            .tokenize_with_location()
            .expect("the text has tokens");
        check_tokens(&tokens, &ScriptText::new(sql))
    }

    #[test]
    fn commas_parentheses_and_conjunctions_restart_operator_chain() {
        let sum = format!("1{}", " + 1".repeat(CHAINED_OPERATORS));
        assert_eq!(check(&format!("select {sum}, {sum}, ({sum})")), Ok(()));
        assert_eq!(check(&format!("select a = 1 where {sum} and {sum}")), Ok(()));
        let error = check(&format!("select {sum} + 1")).expect_err("one too many");
        assert_eq!(error.sqlstate, sqlstate::STATEMENT_TOO_COMPLEX);
        // The AND of a BETWEEN continues the chain.
        let between = "a between 1 and 2 is null ".repeat(CHAINED_OPERATORS / 2 + 1);
        assert!(check(&format!("select {between}")).is_err());
    }

    #[test]
    fn nested_operator_chains_add_to_tree_depth() {
        let chain = |inside: &str, terms: usize| format!("({inside}){}", " + 1".repeat(terms));
        let nested = |levels: usize, terms: usize| {
            (0..levels).fold("1".to_owned(), |inside, _| chain(&inside, terms))
        };
        assert_eq!(check(&format!("select {}", nested(2, TREE_DEPTH / 2 - 1))), Ok(()));
        assert!(check(&format!("select {}", nested(3, TREE_DEPTH / 2 - 1))).is_err());
        assert!(check(&format!("select {}", nested(60, 20))).is_err());
        let one = nested(2, 400);
        assert_eq!(
            check(&format!("select {one}, {one} from t where {one} = 1 or {one} = 2")),
            Ok(())
        );
        let joined = |inside: &str| format!("({inside}{})", " cross join t".repeat(200));
        let joins = (0..2).fold("t".to_owned(), |inside, _| joined(&inside));
        assert_eq!(check(&format!("select from {joins}")), Ok(()));
        assert!(check(&format!("select from {}", joined(&joins))).is_err());
    }

    #[test]
    fn nesting_is_counted_per_statement() {
        let nested = |depth: usize| format!("{}1{}", "(".repeat(depth), ")".repeat(depth));
        let script = format!("select {}; select {}", nested(40), nested(40));
        assert_eq!(check(&script), Ok(()));
        assert!(check(&nested(NESTING_DEPTH)).is_err());
        assert!(check(&"case when ".repeat(NESTING_DEPTH)).is_err());
        assert_eq!(check(&"\"case\" ".repeat(NESTING_DEPTH)), Ok(()), "a quoted word is a name");
    }
}
