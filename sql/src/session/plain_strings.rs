//! Backslashes in plain string literals: `standard_conforming_strings` and
//! `escape_string_warning`.

use std::borrow::Cow;

use super::Session;
use crate::error::{Error, Result};
use crate::parser::plain_strings::{self, EscapeInString};

impl Session {
    /// Returns a text as with `standard_conforming_strings = on`: where the setting is off, plain
    /// strings with backslashes become escape strings, with a warning.
    ///
    /// # Errors
    ///
    /// 0A000 for `U&'…'` with the setting off.
    pub fn conforming<'t>(&mut self, text: &'t str) -> Result<Cow<'t, str>> {
        let has_meaning = text.contains('\\') || text.contains("&'");
        if !has_meaning || self.settings.is_on("standard_conforming_strings") {
            return Ok(Cow::Borrowed(text));
        }
        let (text, escapes) = plain_strings::to_standard_strings(text)?;
        if self.settings.is_on("escape_string_warning") {
            for (escape, position) in escapes {
                self.notice("WARNING", warning(escape).at(position));
            }
        }
        Ok(Cow::Owned(text))
    }
}

fn warning(escape: EscapeInString) -> Error {
    let (what, hint) = match escape {
        EscapeInString::Quote => {
            (r"\'", "Use '' to write quotes in strings, or use the escape string syntax (E'...').")
        }
        EscapeInString::Backslash => {
            (r"\\", r"Use the escape string syntax for backslashes, e.g., E'\\'.")
        }
        EscapeInString::Other => {
            ("escape", r"Use the escape string syntax for escapes, e.g., E'\r\n'.")
        }
    };
    err!(NONSTANDARD_USE_OF_ESCAPE_CHARACTER: "nonstandard use of {what} in a string literal"; hint hint)
}
