//! Parsing and lowering of OVER and WINDOW.
//!
//! `sqlparser` does not know EXCLUDE. The clause is removed from the tokens before parsing
//! ([`take_exclusions`]), and looked up during lowering by the position of the window's owner: the
//! name of the function, or of the named window.

use sqlparser::ast as parsed;
use sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace};

use super::cursor::TokenCursor;
use super::error::{ParseError, Result};
use super::source::ScriptText;
use super::tokens::{is_word, next, previous};
use crate::ast::{
    Exclusion, FrameBoundClause, FrameClause, FrameUnits, NamedWindow, Over, WindowClause,
};

/// The exclusions of frames, by the position of the window's owner.
pub(super) type Exclusions = Vec<(usize, Exclusion)>;

/// Removes EXCLUDE from the frames.
pub(super) fn take_exclusions(tokens: &mut [TokenWithSpan], source: &ScriptText<'_>) -> Exclusions {
    let mut exclusions = Exclusions::new();
    for index in 0..tokens.len() {
        if !is_word(&tokens[index], "exclude") {
            continue;
        }
        let Some((exclusion, last)) = exclusion_at(tokens, index) else { continue };
        let Some(owner) = owner_of(tokens, index) else { continue };
        exclusions.push((source.position(tokens[owner].span.start), exclusion));
        for token in &mut tokens[index..=last] {
            token.token = Token::Whitespace(Whitespace::Space);
        }
    }
    exclusions
}

/// Reads the exclusion that begins with the word at `index`; returns it with the index of its last
/// word.
fn exclusion_at(tokens: &[TokenWithSpan], index: usize) -> Option<(Exclusion, usize)> {
    const FORMS: [(&[&str], Exclusion); 4] = [
        (&["current", "row"], Exclusion::CurrentRow),
        (&["group"], Exclusion::Group),
        (&["ties"], Exclusion::Ties),
        (&["no", "others"], Exclusion::NoOthers),
    ];
    let before = previous(tokens, index)?;
    if !["row", "preceding", "following"].iter().any(|word| is_word(&tokens[before], word)) {
        return None;
    }
    FORMS.iter().find_map(|(words, exclusion)| {
        let mut last = index;
        for word in *words {
            last = next(tokens, last).filter(|&at| is_word(&tokens[at], word))?;
        }
        let closed = next(tokens, last).is_some_and(|at| tokens[at].token == Token::RParen);
        closed.then_some((*exclusion, last))
    })
}

/// Returns the token before the parenthesis that closes at `index`, or that encloses it.
fn before_parenthesis(tokens: &[TokenWithSpan], index: usize) -> Option<usize> {
    let mut depth = 1;
    let opening = (0..index).rev().find(|&at| {
        match tokens[at].token {
            Token::RParen => depth += 1,
            Token::LParen => depth -= 1,
            _ => {}
        }
        depth == 0
    })?;
    previous(tokens, opening)
}

/// Returns the first token of the name of the function or window that owns the frame at `index`.
fn owner_of(tokens: &[TokenWithSpan], index: usize) -> Option<usize> {
    let word = before_parenthesis(tokens, index)?;
    if !is_word(&tokens[word], "over") {
        return is_word(&tokens[word], "as").then(|| previous(tokens, word)).flatten();
    }
    let mut name = before_parenthesis(tokens, previous(tokens, word)?)?;
    if is_word(&tokens[name], "filter") {
        name = before_parenthesis(tokens, previous(tokens, name)?)?;
    }
    while let Some(period) = previous(tokens, name)
        && tokens[period].token == Token::Period
    {
        name = previous(tokens, period)?;
    }
    Some(name)
}

impl TokenCursor<'_> {
    /// Lowers the window of OVER, for the call at `position`.
    pub(super) fn over(&mut self, over: parsed::WindowType, position: usize) -> Result<Over> {
        match over {
            parsed::WindowType::NamedWindow(name) => Ok(Over::Name(self.checked_alias(&name)?)),
            parsed::WindowType::WindowSpec(window) => {
                Ok(Over::Window(self.window(window, position)?))
            }
        }
    }

    /// Lowers the WINDOW clause.
    pub(super) fn named_windows(
        &mut self,
        windows: Vec<parsed::NamedWindowDefinition>,
    ) -> Result<Vec<NamedWindow>> {
        let mut lowered = Vec::with_capacity(windows.len());
        for parsed::NamedWindowDefinition(name, window) in windows {
            let name = self.checked_alias(&name)?;
            let window = match window {
                parsed::NamedWindowExpr::WindowSpec(window) => {
                    self.window(window, name.position)?
                }
                parsed::NamedWindowExpr::NamedWindow(other) => {
                    return Err(self.syntax_error_near(self.ident(&other).position));
                }
            };
            lowered.push(NamedWindow { name, window });
        }
        Ok(lowered)
    }

    fn window(&mut self, window: parsed::WindowSpec, position: usize) -> Result<WindowClause> {
        let parsed::WindowSpec { window_name, partition_by, order_by, window_frame } = window;
        let mut base = window_name.map(|name| self.checked_alias(&name)).transpose()?;
        if let Some(base) = &mut base {
            // As in PostgreSQL, errors of it have the position of the parenthesis.
            base.position = self.start_before(base.position, |token| *token == Token::LParen);
        }
        let partition_by = self.lower_list(partition_by)?;
        let order_by = self.order_items(order_by)?;
        let frame = window_frame.map(|frame| self.frame(frame, position)).transpose()?;
        let position = self.opening(position).map_or(position, |index| self.start_of(index));
        Ok(WindowClause { base, partition_by, order_by, frame, position })
    }

    fn frame(&mut self, frame: parsed::WindowFrame, position: usize) -> Result<FrameClause> {
        let parsed::WindowFrame { units, start_bound, end_bound } = frame;
        let units = match units {
            parsed::WindowFrameUnits::Rows => FrameUnits::Rows,
            parsed::WindowFrameUnits::Range => FrameUnits::Range,
            parsed::WindowFrameUnits::Groups => FrameUnits::Groups,
        };
        let start = self.frame_bound(start_bound)?;
        let is_short = end_bound.is_none();
        let end = match end_bound {
            None => FrameBoundClause::CurrentRow,
            Some(bound) => self.frame_bound(bound)?,
        };
        check_bounds(&start, &end, is_short).map_err(|(message, is_end)| {
            let place = self.bound_position(position, is_end).unwrap_or(position);
            ParseError::new("42P20", message, place)
        })?;
        let found = self.exclusions.iter().find(|(owner, _)| *owner == position);
        let exclusion = found.map(|(_, exclusion)| *exclusion).unwrap_or_default();
        Ok(FrameClause { units, start, is_between: !is_short, end, exclusion })
    }

    /// Returns the opening token of the window of the call, or the name, at `position`.
    fn opening(&self, position: usize) -> Option<usize> {
        let mut depth = 0_usize;
        let mut index = self.token_index(position)?;
        let mut is_next = false;
        loop {
            let token = self.parser.token_at(index);
            match token.token {
                Token::LParen if is_next && depth == 0 => return Some(index),
                Token::LParen => depth += 1,
                Token::RParen => depth = depth.checked_sub(1)?,
                Token::EOF => return None,
                _ if depth == 0 => is_next = is_word(token, "over") || is_word(token, "as"),
                _ => {}
            }
            index = self.token_after(index)?;
        }
    }

    /// Returns the position of a frame bound in the window of the call or name at `position`.
    fn bound_position(&self, position: usize, is_end: bool) -> Option<usize> {
        let mut depth = 0_usize;
        let mut index = self.opening(position)?;
        let (mut start, mut end) = (None, None);
        loop {
            let token = self.parser.token_at(index);
            match token.token {
                Token::LParen => depth += 1,
                Token::RParen if depth == 1 => break,
                Token::RParen => depth -= 1,
                Token::EOF => return None,
                _ if depth > 1 => {}
                _ if ["rows", "range", "groups", "between"].iter().any(|w| is_word(token, w)) => {
                    start = self.token_after(index);
                }
                _ if is_word(token, "and") => end = self.token_after(index),
                _ => {}
            }
            index = self.token_after(index)?;
        }
        (if is_end { end.or(start) } else { start }).map(|index| self.start_of(index))
    }

    fn frame_bound(&mut self, bound: parsed::WindowFrameBound) -> Result<FrameBoundClause> {
        Ok(match bound {
            parsed::WindowFrameBound::CurrentRow => FrameBoundClause::CurrentRow,
            parsed::WindowFrameBound::Preceding(None) => FrameBoundClause::UnboundedPreceding,
            parsed::WindowFrameBound::Following(None) => FrameBoundClause::UnboundedFollowing,
            parsed::WindowFrameBound::Preceding(Some(offset)) => {
                FrameBoundClause::Preceding(Box::new(self.lower(*offset)?))
            }
            parsed::WindowFrameBound::Following(Some(offset)) => {
                FrameBoundClause::Following(Box::new(self.lower(*offset)?))
            }
        })
    }
}

/// Checks that a frame does not end before it starts; a short frame has no written end. The flag
/// of an error is true if the end is invalid.
fn check_bounds(
    start: &FrameBoundClause,
    end: &FrameBoundClause,
    is_short: bool,
) -> std::result::Result<(), (&'static str, bool)> {
    use FrameBoundClause::{
        CurrentRow, Following, Preceding, UnboundedFollowing, UnboundedPreceding,
    };
    match (start, end) {
        (UnboundedFollowing, _) => Err(("frame start cannot be UNBOUNDED FOLLOWING", false)),
        (_, UnboundedPreceding) => Err(("frame end cannot be UNBOUNDED PRECEDING", true)),
        (CurrentRow, Preceding(_)) => {
            Err(("frame starting from current row cannot have preceding rows", true))
        }
        (Following(_), CurrentRow) if is_short => {
            Err(("frame starting from following row cannot end with current row", false))
        }
        (Following(_), CurrentRow | Preceding(_)) => {
            Err(("frame starting from following row cannot have preceding rows", true))
        }
        _ => Ok(()),
    }
}
