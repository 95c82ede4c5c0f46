//! Available extensions: names, versions and comments.
//!
//! The functions of an extension are built in. For a created extension the catalog has only its
//! comment ([`CommentSubjectKey::Extension`]), whose key contains the schema; an empty text means
//! no comment. PL/pgSQL is always present, and has a row only if COMMENT ON has changed its
//! comment.

use crate::catalog::Catalog;
use crate::catalog::comment::CommentSubjectKey;

/// An available extension.
#[derive(Debug)]
pub struct Extension {
    /// Its number in keys of the catalog.
    pub number: u32,
    /// Its name.
    pub name: &'static str,
    /// Its only version.
    pub version: &'static str,
    /// Its default comment.
    pub comment: &'static str,
    /// Notice and hint at its creation: functions that do not exist, and substitutes.
    pub notice: Option<(&'static str, &'static str)>,
}

/// PL/pgSQL, which is always present.
pub static PLPGSQL: Extension = Extension {
    number: 1,
    name: "plpgsql",
    version: "1.0",
    comment: "PL/pgSQL procedural language",
    notice: None,
};

static PGCRYPTO: Extension = Extension {
    number: 2,
    name: "pgcrypto",
    version: "1.3",
    comment: "cryptographic functions",
    notice: Some((
        "extension \"pgcrypto\" provides only function gen_random_uuid()",
        "Use md5(), sha224(), sha256(), sha384() and sha512() for digests.",
    )),
};

/// All of them, by name.
pub static EXTENSIONS: [&Extension; 2] = [&PGCRYPTO, &PLPGSQL];

impl Extension {
    /// Returns the extension with a name.
    pub fn named(name: &str) -> Option<&'static Extension> {
        EXTENSIONS.into_iter().find(|one| one.name == name)
    }

    /// Returns whether it can be created in any schema, for `pg_extension`.
    pub fn is_relocatable(&self) -> bool {
        self.number != PLPGSQL.number
    }

    /// Returns the number of its schema, 0 for `pg_catalog`; `None` if it has not been created.
    pub fn schema(&self, catalog: &Catalog) -> Option<u32> {
        let first = CommentSubjectKey::Extension(self.number, 0);
        match catalog.comments_from(first).next() {
            Some((CommentSubjectKey::Extension(number, schema), _)) if *number == self.number => {
                Some(*schema)
            }
            _ => (self.number == PLPGSQL.number).then_some(0),
        }
    }
}
