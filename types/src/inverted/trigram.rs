//! `gin_trgm_ops`: the trigrams of a text, for LIKE and ILIKE with a pattern that has literal
//! characters anywhere.
//!
//! ```text
//!   'Main St'      -->  "ain" "in " "mai" "n s" " st"
//!   ~~ '%ain_St%'  -->  "ain"             (a literal part of fewer than three characters has none)
//! ```
//!
//! A trigram is three consecutive characters of the text in lower case, letters or not. Both
//! operators have the same terms, because lower case is a function of single characters. This
//! differs from PostgreSQL's `pg_trgm`, which divides a text into words first: a pattern with
//! spaces or punctuation has more trigrams here.

use super::{TermOperator, TermQuery, term};
use crate::datum::Datum;
use crate::error::Result;
use crate::function::lower_char;

/// Maximum number of trigrams that a condition requires: of more, some that are evenly distributed.
const REQUIRED_MAX: usize = 16;
/// Character of a pattern before a literal character.
const ESCAPE: char = '\\';

pub(super) fn terms(value: &Datum) -> Result<Vec<Vec<u8>>> {
    let Datum::Text(text) = value else { return Ok(Vec::new()) };
    Ok(trigrams(text.chars()))
}

pub(super) fn query(operator: TermOperator, operand: &Datum) -> Result<TermQuery> {
    let Datum::Text(text) = operand else { return Ok(TermQuery::All) };
    let mut required = match operator {
        TermOperator::Equals => trigrams(text.chars()),
        TermOperator::Like => {
            let parts = literal_parts(text);
            parts.into_iter().flat_map(|part| trigrams(part.into_iter())).collect()
        }
        _ => return Ok(TermQuery::All),
    };
    if required.len() > REQUIRED_MAX {
        let count = required.len();
        required = (0..REQUIRED_MAX).map(|n| required[n * count / REQUIRED_MAX].clone()).collect();
    }
    Ok(TermQuery::all_of(required.into_iter().map(TermQuery::Term)))
}

/// Returns the trigrams of consecutive characters, in order.
fn trigrams(characters: impl Iterator<Item = char>) -> Vec<Vec<u8>> {
    let lowered: Vec<char> = characters.map(lower_char).collect();
    lowered.windows(3).map(|three| term(three.iter().collect::<String>().into_bytes())).collect()
}

/// Returns the runs of literal characters of a pattern of LIKE; none of an invalid pattern, whose
/// error is raised by the condition itself.
fn literal_parts(pattern: &str) -> Vec<Vec<char>> {
    let mut parts = vec![Vec::new()];
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        match character {
            '%' | '_' => parts.push(Vec::new()),
            ESCAPE => match (characters.next(), parts.last_mut()) {
                (Some(escaped), Some(part)) => part.push(escaped),
                _ => return Vec::new(),
            },
            literal => parts.last_mut().into_iter().for_each(|part| part.push(literal)),
        }
    }
    parts
}
