//! Text format of `aclitem`: `grantee=privileges/grantor`, with `*` after a privilege with grant
//! option.
//!
//! A value is its text, with roles by name.

use super::{TextStyle, trimmed_start};
use crate::datatype::RegKind;
use crate::datum::Datum;
use crate::error::{Error, Result};
use crate::system::{AclItem, CatalogHandle};

/// OID of the default grantor.
const BOOTSTRAP_ROLE: u32 = 10;

fn bad(message: impl Into<String>) -> Error {
    err!(INVALID_TEXT_REPRESENTATION: message)
}

/// Parses a name, quoted or of letters, digits and underscores.
fn take_name(text: &str) -> (String, &str) {
    let (mut name, mut in_quotes) = (String::new(), false);
    let mut characters = trimmed_start(text).chars();
    loop {
        let rest = characters.as_str();
        match characters.next() {
            Some('"') if characters.as_str().starts_with('"') && in_quotes => {
                name.push('"');
                characters.next();
            }
            Some('"') => in_quotes = !in_quotes,
            Some(next)
                if in_quotes || next.is_ascii_alphanumeric() || next == '_' || !next.is_ascii() =>
            {
                name.push(next);
            }
            _ => return (name, trimmed_start(rest)),
        }
    }
}

/// Returns the OID of a role.
fn role(name: &str, system: &CatalogHandle) -> Result<u32> {
    let quoted = format!("\"{}\"", name.replace('"', "\"\""));
    system.source()?.reg_oid(RegKind::Role, &quoted)
}

/// Parses a value.
pub(super) fn parse(text: &str, style: &TextStyle) -> Result<Datum> {
    let item = read(text, &|name| role(name, &style.system))?;
    Ok(Datum::text(item.text(&style.system)))
}

/// Returns the item of a value; roles that were dropped appear as OIDs.
///
/// # Errors
///
/// 0A000 if there is no catalog.
pub(crate) fn acl_item(text: &str, system: &CatalogHandle) -> Result<AclItem> {
    read(text, &|name| role(name, system).or_else(|error| name.parse().map_err(|_| error)))
}

fn read(text: &str, role: &dyn Fn(&str) -> Result<u32>) -> Result<AclItem> {
    let (mut name, mut rest) = take_name(text);
    if !rest.starts_with('=') {
        if !matches!(name.as_str(), "group" | "user") {
            let error = bad(format!("unrecognized key word: \"{name}\""));
            return Err(error.with_hint("ACL key word must be \"group\" or \"user\"."));
        }
        (name, rest) = take_name(rest);
        if name.is_empty() {
            let hint = "A name must follow the \"group\" or \"user\" key word.";
            return Err(bad("missing name").with_hint(hint));
        }
    }
    let mut item = AclItem::default();
    rest = rest.strip_prefix('=').ok_or_else(|| bad("missing \"=\" sign"))?;
    let end = rest.find(|c: char| !c.is_ascii_alphabetic() && c != '*').unwrap_or(rest.len());
    let (privileges, behind) = rest.split_at(end);
    let mut last = None;
    for letter in privileges.chars() {
        last = match AclItem::privilege(letter) {
            None if letter != '*' => {
                let all: String = AclItem::letters().collect();
                let message = format!("invalid mode character: must be one of \"{all}\"");
                return Err(bad(message));
            }
            found => found.or(last),
        };
        match last {
            Some(privilege) if letter == '*' => item.grantable |= privilege,
            privilege => item.privileges |= privilege.unwrap_or(0),
        }
    }
    if !name.is_empty() {
        item.grantee = role(&name)?;
    }
    rest = behind;
    item.grantor = match behind.strip_prefix('/') {
        Some(behind) => {
            let (grantor, behind) = take_name(behind);
            if grantor.is_empty() {
                return Err(bad("a name must follow the \"/\" sign"));
            }
            rest = behind;
            role(&grantor)?
        }
        None => BOOTSTRAP_ROLE,
    };
    if !trimmed_start(rest).is_empty() {
        return Err(bad("extra garbage at the end of the ACL specification"));
    }
    Ok(item)
}
