//! Names of text search configurations and dictionaries.
//!
//! There are no text search types or functions. The names exist for values of `regconfig` and
//! `regdictionary` in tables from other servers, and for clients that list them. Names and OIDs
//! are those of a new PostgreSQL 15 cluster: `simple`, and for each language a dictionary
//! `LANGUAGE_stem` and a configuration with the next OID.

use crate::system::Row;
use crate::system::catalog_objects::OWNER;
use crate::system::relation_definitions::{PG_CATALOG, RelationDefinition};
use crate::system::value::{oid, text, text_or_null};

const SIMPLE: &str = "simple";
const SIMPLE_CONFIGURATION: u32 = 3748;
const SIMPLE_DICTIONARY: u32 = 3765;
/// OID of the dictionary of the first language.
const FIRST_DICTIONARY: u32 = 13151;

/// The languages; the flag is true if the dictionary removes stop words.
const LANGUAGES: [(&str, bool); 28] = [
    ("arabic", false),
    ("armenian", false),
    ("basque", false),
    ("catalan", false),
    ("danish", true),
    ("dutch", true),
    ("english", true),
    ("finnish", true),
    ("french", true),
    ("german", true),
    ("greek", false),
    ("hindi", false),
    ("hungarian", true),
    ("indonesian", false),
    ("irish", false),
    ("italian", true),
    ("lithuanian", false),
    ("nepali", true),
    ("norwegian", true),
    ("portuguese", true),
    ("romanian", false),
    ("russian", true),
    ("serbian", false),
    ("spanish", true),
    ("swedish", true),
    ("tamil", false),
    ("turkish", true),
    ("yiddish", false),
];

/// Returns the OID of the dictionary of a language; its configuration has the next OID.
fn dictionary_of(language: &str) -> Option<u32> {
    let place = LANGUAGES.iter().position(|(known, _)| *known == language)?;
    Some(FIRST_DICTIONARY + 2 * u32::try_from(place).ok()?)
}

/// Returns the language of a dictionary's OID.
fn language_of(dictionary: u32) -> Option<&'static str> {
    let distance = dictionary.checked_sub(FIRST_DICTIONARY).filter(|one| one % 2 == 0)?;
    LANGUAGES.get(usize::try_from(distance / 2).ok()?).map(|(language, _)| *language)
}

/// Returns the OID of the configuration of a name.
pub(super) fn configuration(name: &str) -> Option<u32> {
    match name {
        SIMPLE => Some(SIMPLE_CONFIGURATION),
        language => dictionary_of(language).map(|dictionary| dictionary + 1),
    }
}

/// Returns the OID of the dictionary of a name.
pub(super) fn dictionary(name: &str) -> Option<u32> {
    match name {
        SIMPLE => Some(SIMPLE_DICTIONARY),
        name => dictionary_of(name.strip_suffix("_stem")?),
    }
}

/// Returns the name of the configuration with an OID.
pub(super) fn configuration_name(number: u32) -> Option<&'static str> {
    match number {
        SIMPLE_CONFIGURATION => Some(SIMPLE),
        number => language_of(number.checked_sub(1)?),
    }
}

/// Returns the name of the dictionary with an OID.
pub(super) fn dictionary_name(number: u32) -> Option<String> {
    match number {
        SIMPLE_DICTIONARY => Some(String::from(SIMPLE)),
        number => language_of(number).map(|language| format!("{language}_stem")),
    }
}

/// Returns the rows of `pg_ts_config`.
pub(super) fn configurations(shape: &RelationDefinition) -> Vec<Row> {
    let names = std::iter::once(SIMPLE).chain(LANGUAGES.iter().map(|(language, _)| *language));
    let row = |name: &str| {
        shape.row([
            ("oid", oid(configuration(name).unwrap_or_default())),
            ("cfgname", text(name)),
            ("cfgnamespace", oid(PG_CATALOG)),
            ("cfgowner", oid(OWNER)),
        ])
    };
    names.map(row).collect()
}

/// Returns the rows of `pg_ts_dict`.
pub(super) fn dictionaries(shape: &RelationDefinition) -> Vec<Row> {
    let row = |name: String, options: Option<String>| {
        shape.row([
            ("oid", oid(dictionary(&name).unwrap_or_default())),
            ("dictname", text(&name)),
            ("dictnamespace", oid(PG_CATALOG)),
            ("dictowner", oid(OWNER)),
            ("dictinitoption", text_or_null(options)),
        ])
    };
    let of_language = |(language, stops): &(&str, bool)| {
        let mut options = format!("language = '{language}'");
        if *stops {
            options.push_str(&format!(", stopwords = '{language}'"));
        }
        row(format!("{language}_stem"), Some(options))
    };
    let simple = std::iter::once(row(String::from(SIMPLE), None));
    simple.chain(LANGUAGES.iter().map(of_language)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_found_by_its_oid() {
        for (language, _) in LANGUAGES {
            let found = configuration(language).and_then(configuration_name);
            assert_eq!(found, Some(language));
            let name = format!("{language}_stem");
            assert_eq!(dictionary(&name).and_then(dictionary_name), Some(name));
        }
        // As in PostgreSQL 15.
        assert_eq!(
            (configuration("english"), dictionary("yiddish_stem")),
            (Some(13164), Some(13205))
        );
        assert_eq!((configuration("english_stem"), dictionary("english")), (None, None));
        assert_eq!((configuration_name(13163), dictionary_name(13164)), (None, None));
        assert_eq!((configuration_name(13208), dictionary_name(13207)), (None, None));
    }
}
