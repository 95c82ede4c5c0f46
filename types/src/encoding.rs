//! Client encodings: conversion between UTF-8, the server encoding, and other encodings.
//!
//! The tables in the `encoding` folder are PostgreSQL's: they were generated with its
//! `convert_from` and `convert_to`. A table is parsed at the first use of its encoding. In all of
//! them the bytes below 80 (hex) are ASCII.
//!
//! Not supported: `EUC_JIS_2004`, `SHIFT_JIS_2004`, `MULE_INTERNAL`.

use std::borrow::Cow;
use std::fmt;
use std::sync::LazyLock;

use ahash::AHashMap;

use crate::error::{Error, Result};
use crate::interruptible::{InterruptPacer, chunks};

/// An encoding.
pub struct Encoding {
    /// Its name in PostgreSQL.
    pub name: &'static str,
    /// Its number in PostgreSQL.
    pub number: i32,
    kind: Kind,
}

/// Conversion method of an encoding.
enum Kind {
    /// UTF-8, or treated as UTF-8.
    Utf8,
    /// One byte per character.
    Single(LazyLock<Table>),
    /// One to four bytes per character.
    Multiple(CharacterLength, LazyLock<Table>),
    /// Not supported: there is no table.
    Missing,
}

/// Length of a character, by its first byte.
#[derive(Clone, Copy)]
enum CharacterLength {
    /// Two bytes; two for half-width characters after 8E, and three after 8F.
    EucJp,
    /// Two bytes; four for other planes, after 8E and the plane's byte.
    EucTw,
    /// Two bytes; one for half-width characters from A1 to DF.
    Sjis,
    /// Two bytes, or four if the second byte is a digit.
    Gb18030,
    /// Two bytes; three after 8F.
    Johab,
    /// Two bytes.
    Two,
}

/// The characters of an encoding beyond ASCII.
struct Table {
    /// By their bytes, as a big-endian number.
    characters: AHashMap<u32, char>,
    bytes: AHashMap<char, u32>,
    /// Four-byte codes of GB18030, ascending by code index and character.
    runs: Vec<Run>,
}

/// A run of consecutive characters with consecutive four-byte codes.
struct Run {
    /// The index of the first code among the four-byte codes.
    place: u32,
    /// The first character.
    character: u32,
    count: u32,
}

macro_rules! missing {
    ($name:literal, $number:literal) => {
        Encoding { name: $name, number: $number, kind: Kind::Missing }
    };
}

macro_rules! single {
    ($name:literal, $number:literal) => {
        Encoding {
            name: $name,
            number: $number,
            kind: Kind::Single(LazyLock::new(|| single_byte($name))),
        }
    };
}

macro_rules! multiple {
    ($name:literal, $number:literal, $lead:ident, $file:literal) => {
        Encoding {
            name: $name,
            number: $number,
            kind: Kind::Multiple(
                CharacterLength::$lead,
                LazyLock::new(|| multiple_bytes(include_str!($file))),
            ),
        }
    };
}

/// The number of UTF-8.
const UTF8: usize = 6;

/// All encodings, by number.
static ENCODINGS: [Encoding; 42] = [
    Encoding { name: "SQL_ASCII", number: 0, kind: Kind::Utf8 },
    multiple!("EUC_JP", 1, EucJp, "encoding/euc_jp.txt"),
    multiple!("EUC_CN", 2, Two, "encoding/euc_cn.txt"),
    multiple!("EUC_KR", 3, Two, "encoding/euc_kr.txt"),
    multiple!("EUC_TW", 4, EucTw, "encoding/euc_tw.txt"),
    missing!("EUC_JIS_2004", 5),
    Encoding { name: "UTF8", number: 6, kind: Kind::Utf8 },
    missing!("MULE_INTERNAL", 7),
    single!("LATIN1", 8),
    single!("LATIN2", 9),
    single!("LATIN3", 10),
    single!("LATIN4", 11),
    single!("LATIN5", 12),
    single!("LATIN6", 13),
    single!("LATIN7", 14),
    single!("LATIN8", 15),
    single!("LATIN9", 16),
    single!("LATIN10", 17),
    single!("WIN1256", 18),
    single!("WIN1258", 19),
    single!("WIN866", 20),
    single!("WIN874", 21),
    single!("KOI8R", 22),
    single!("WIN1251", 23),
    single!("WIN1252", 24),
    single!("ISO_8859_5", 25),
    single!("ISO_8859_6", 26),
    single!("ISO_8859_7", 27),
    single!("ISO_8859_8", 28),
    single!("WIN1250", 29),
    single!("WIN1253", 30),
    single!("WIN1254", 31),
    single!("WIN1255", 32),
    single!("WIN1257", 33),
    single!("KOI8U", 34),
    multiple!("SJIS", 35, Sjis, "encoding/sjis.txt"),
    multiple!("BIG5", 36, Two, "encoding/big5.txt"),
    multiple!("GBK", 37, Two, "encoding/gbk.txt"),
    multiple!("UHC", 38, Two, "encoding/uhc.txt"),
    multiple!("GB18030", 39, Gb18030, "encoding/gb18030.txt"),
    multiple!("JOHAB", 40, Johab, "encoding/johab.txt"),
    missing!("SHIFT_JIS_2004", 41),
];

/// Other names, in lower case without characters other than letters and digits.
const ALIASES: &[(&str, &str)] = &[
    ("abc", "WIN1258"),
    ("alt", "WIN866"),
    ("iso88591", "LATIN1"),
    ("iso885910", "LATIN6"),
    ("iso885913", "LATIN7"),
    ("iso885914", "LATIN8"),
    ("iso885915", "LATIN9"),
    ("iso885916", "LATIN10"),
    ("iso88592", "LATIN2"),
    ("iso88593", "LATIN3"),
    ("iso88594", "LATIN4"),
    ("iso88599", "LATIN5"),
    ("koi8", "KOI8R"),
    ("mskanji", "SJIS"),
    ("shiftjis", "SJIS"),
    ("tcvn", "WIN1258"),
    ("tcvn5712", "WIN1258"),
    ("unicode", "UTF8"),
    ("vscii", "WIN1258"),
    ("win", "WIN1251"),
    ("win932", "SJIS"),
    ("win936", "GBK"),
    ("win949", "UHC"),
    ("win950", "BIG5"),
];

/// Parses the line of a single-byte encoding.
fn single_byte(name: &str) -> Table {
    let mut lines = include_str!("encoding/single_byte.txt").lines();
    let line = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    let mut characters = AHashMap::new();
    for (byte, point) in (0x80_u32..).zip(line.unwrap_or_default().split(' ')) {
        let point = u32::from_str_radix(point, 16).ok();
        if let Some(character) = point.and_then(char::from_u32) {
            characters.insert(byte, character);
        }
    }
    let bytes = characters.iter().map(|(byte, character)| (*character, *byte)).collect();
    Table { characters, bytes, runs: Vec::new() }
}

/// Parses the file of a multi-byte encoding.
fn multiple_bytes(text: &str) -> Table {
    let (characters, bytes) = (AHashMap::new(), AHashMap::new());
    let mut table = Table { characters, bytes, runs: Vec::new() };
    for line in text.split('\n').filter(|line| !line.starts_with('#')) {
        if let Some(run) = line.strip_prefix("~ ") {
            table.runs.extend(run_of(run));
            continue;
        }
        let other = line.strip_prefix("= ");
        let Some((code, characters)) = other.unwrap_or(line).split_once(' ') else { continue };
        let Ok(code) = u32::from_str_radix(code, 16) else { continue };
        for (code, character) in (code..).zip(characters.chars()) {
            if other.is_some() {
                table.bytes.insert(character, code);
            } else {
                table.characters.insert(code, character);
                table.bytes.entry(character).or_insert(code);
            }
        }
    }
    table
}

/// Parses the run of a line: its first code, its first character and their number.
fn run_of(line: &str) -> Option<Run> {
    let mut numbers = line.split(' ').map(|word| u32::from_str_radix(word, 16));
    let mut next = || numbers.next()?.ok();
    let place = place_of(next()?.to_be_bytes());
    Some(Run { place, character: next()?, count: next()? })
}

/// Returns the index of a GB18030 code among the four-byte codes, whose second and fourth bytes
/// are digits.
fn place_of([first, second, third, fourth]: [u8; 4]) -> u32 {
    let from = |byte: u8, least: u8| u32::from(byte.wrapping_sub(least));
    ((from(first, 0x81) * 10 + from(second, b'0')) * 126 + from(third, 0x81)) * 10
        + from(fourth, b'0')
}

/// Returns the code at an index: see [`place_of`].
fn code_at(place: u32) -> [u8; 4] {
    let (digit, place) = (place % 10, place / 10);
    let (third, place) = (place % 126, place / 126);
    let at = |least: u8, number: u32| least + number as u8;
    [at(0x81, place / 10), at(b'0', place % 10), at(0x81, third), at(b'0', digit)]
}

impl Table {
    /// Returns the character of a code.
    fn character(&self, code: &[u8]) -> Option<char> {
        if let (&[a, b, c, d], false) = (code, self.runs.is_empty()) {
            let place = place_of([a, b, c, d]);
            let at = self.runs.partition_point(|run| run.place <= place).checked_sub(1)?;
            let run = &self.runs[at];
            let behind = place - run.place;
            return (behind < run.count).then(|| char::from_u32(run.character + behind))?;
        }
        let number = code.iter().fold(0, |number, byte| number << 8 | u32::from(*byte));
        self.characters.get(&number).copied()
    }

    /// Returns the code of a character, as a big-endian number.
    fn code(&self, character: char) -> Option<u32> {
        let in_runs = || {
            let point = u32::from(character);
            let at = self.runs.partition_point(|run| run.character <= point).checked_sub(1)?;
            let run = &self.runs[at];
            let behind = point - run.character;
            (behind < run.count).then(|| u32::from_be_bytes(code_at(run.place + behind)))
        };
        self.bytes.get(&character).copied().or_else(in_runs)
    }
}

impl Encoding {
    /// Returns the server encoding.
    pub fn utf8() -> &'static Encoding {
        &ENCODINGS[UTF8]
    }

    /// Returns the encoding of a name, case-insensitively; only letters and digits are compared.
    pub fn by_name(name: &str) -> Option<&'static Encoding> {
        let plain = |name: &str| -> String {
            let kept = name.chars().filter(char::is_ascii_alphanumeric);
            kept.map(|character| character.to_ascii_lowercase()).collect()
        };
        let mut wanted = plain(name);
        if let Some(number) = wanted.strip_prefix("windows") {
            wanted = format!("win{number}");
        }
        let alias = ALIASES.iter().find(|(alias, _)| *alias == wanted).map(|(_, name)| *name);
        ENCODINGS.iter().find(|one| match alias {
            Some(name) => one.name == name,
            None => plain(one.name) == wanted,
        })
    }

    /// Returns the encoding with this PostgreSQL number.
    pub fn by_number(number: i32) -> Option<&'static Encoding> {
        ENCODINGS.get(usize::try_from(number).ok()?)
    }

    /// Returns whether conversion is supported.
    pub fn is_supported(&self) -> bool {
        !matches!(self.kind, Kind::Missing)
    }

    /// Returns whether text needs no conversion.
    pub fn is_utf8(&self) -> bool {
        matches!(self.kind, Kind::Utf8)
    }

    /// Converts text of this encoding to UTF-8.
    ///
    /// # Errors
    ///
    /// 22021 for bytes that are invalid in the encoding, 22P05 for a character without an
    /// equivalent in UTF-8.
    pub fn decode<'t>(&self, bytes: &'t [u8]) -> Result<Cow<'t, str>> {
        match self.decode_prefix(bytes) {
            (text, None) => Ok(text),
            (_, Some(error)) => Err(error),
        }
    }

    /// Converts a client's text of this encoding to UTF-8; zero bytes are rejected.
    ///
    /// # Errors
    ///
    /// As of [`Encoding::decode`].
    pub fn decode_text<'t>(&self, bytes: &'t [u8]) -> Result<Cow<'t, str>> {
        // No character of these encodings contains a zero byte.
        match memchr::memchr(0, bytes) {
            None => self.decode(bytes),
            Some(zero) => {
                self.decode(&bytes[..zero])?;
                Err(invalid(self.name_of_bytes(), &[0]))
            }
        }
    }

    /// Converts text of this encoding to UTF-8, up to the first invalid byte.
    pub fn decode_prefix<'t>(&self, bytes: &'t [u8]) -> (Cow<'t, str>, Option<Error>) {
        let table = match &self.kind {
            Kind::Single(table) | Kind::Multiple(_, table) if !bytes.is_ascii() => table,
            _ => return utf8_prefix(bytes),
        };
        let mut text = String::with_capacity(bytes.len() + bytes.len() / 2);
        let mut rest = bytes;
        while let Some(&first) = rest.first() {
            if first.is_ascii() {
                text.push(char::from(first));
                rest = &rest[1..];
                continue;
            }
            match self.decode_one(table, rest) {
                Ok((character, length)) => {
                    text.push(character);
                    rest = &rest[length..];
                }
                Err(error) => return (Cow::Owned(text), Some(error)),
            }
        }
        (Cow::Owned(text), None)
    }

    /// Returns the first, non-ASCII character of some bytes, and its length.
    fn decode_one(&self, table: &Table, bytes: &[u8]) -> Result<(char, usize)> {
        let length = self.length_of(bytes);
        let Some(character) = bytes.get(..length) else {
            return Err(invalid(self.name, bytes));
        };
        let trails = &character[1..];
        let are_trails = match (&self.kind, trails) {
            (Kind::Multiple(CharacterLength::Gb18030, _), &[_, third, fourth]) => {
                matches!(third, 0x81..=0xfe) && fourth.is_ascii_digit()
            }
            _ => trails.iter().all(|byte| self.may_trail(*byte)),
        };
        if !self.may_lead(bytes[0]) || !are_trails {
            return Err(invalid(self.name, character));
        }
        match table.character(character) {
            Some(found) => Ok((found, length)),
            None => Err(no_equivalent(character, self.name, "UTF8")),
        }
    }

    /// Returns the name of the encoding against which bytes are validated.
    fn name_of_bytes(&self) -> &'static str {
        if self.is_utf8() { "UTF8" } else { self.name }
    }

    /// Converts the end of a buffer, from `at` on, from UTF-8.
    ///
    /// # Errors
    ///
    /// As of [`Encoding::encode`]; 57014.
    pub fn encode_tail(
        &self,
        out: &mut Vec<u8>,
        at: usize,
        pace: &mut InterruptPacer<'_>,
    ) -> Result<()> {
        if self.is_utf8() || out[at..].is_ascii() {
            return Ok(());
        }
        let tail = out.split_off(at);
        for piece in chunks(&*String::from_utf8_lossy(&tail)) {
            self.encode(piece, out)?;
            pace.count_steps(piece.len())?;
        }
        Ok(())
    }

    /// Appends text converted to this encoding.
    ///
    /// # Errors
    ///
    /// 22P05 for a character that the encoding lacks; the text before it has been appended.
    pub fn encode(&self, text: &str, out: &mut Vec<u8>) -> Result<()> {
        let table = match &self.kind {
            Kind::Single(table) | Kind::Multiple(_, table) if !text.is_ascii() => table,
            _ => {
                out.extend_from_slice(text.as_bytes());
                return Ok(());
            }
        };
        for character in text.chars() {
            if character.is_ascii() {
                out.push(character as u8);
                continue;
            }
            let Some(code) = table.code(character) else {
                let mut buffer = [0; 4];
                let bytes = character.encode_utf8(&mut buffer).as_bytes();
                return Err(no_equivalent(bytes, "UTF8", self.name));
            };
            let bytes = code.to_be_bytes();
            let start = bytes.iter().position(|byte| *byte != 0).unwrap_or(3);
            out.extend_from_slice(&bytes[start..]);
        }
        Ok(())
    }

    /// Converts text to this encoding, with `?` for characters that it lacks.
    pub fn encode_lossy(&self, text: &str) -> Vec<u8> {
        let mut out = Vec::with_capacity(text.len());
        for character in text.chars() {
            let mut buffer = [0; 4];
            if self.encode(character.encode_utf8(&mut buffer), &mut out).is_err() {
                out.push(b'?');
            }
        }
        out
    }

    /// Returns the number of bytes without an incomplete last character.
    pub fn whole_length(&self, bytes: &[u8]) -> usize {
        if self.is_utf8() {
            let cut = std::str::from_utf8(bytes).err().filter(|error| error.error_len().is_none());
            return cut.map_or(bytes.len(), |error| error.valid_up_to());
        }
        let mut at = 0;
        while let Some(&first) = bytes.get(at) {
            let length = if first.is_ascii() { 1 } else { self.length_of(&bytes[at..]) };
            if at + length > bytes.len() {
                break;
            }
            at += length;
        }
        at
    }

    /// Returns the length of the first character of some bytes.
    fn length_of(&self, bytes: &[u8]) -> usize {
        match (&self.kind, bytes[0]) {
            (Kind::Multiple(CharacterLength::Gb18030, _), _) => match bytes.get(1) {
                Some(b'0'..=b'9') => 4,
                _ => 2,
            },
            (
                Kind::Multiple(
                    CharacterLength::EucJp | CharacterLength::EucTw | CharacterLength::Johab,
                    _,
                ),
                0x8f,
            ) => 3,
            (Kind::Multiple(CharacterLength::EucTw, _), 0x8e) => 4,
            (Kind::Multiple(CharacterLength::Sjis, _), 0xa1..=0xdf) => 1,
            (Kind::Multiple(..), _) => 2,
            _ => 1,
        }
    }

    fn may_lead(&self, byte: u8) -> bool {
        match self.number {
            1 | 4 => matches!(byte, 0x8e | 0x8f | 0xa1..=0xfe),
            2 | 3 => matches!(byte, 0xa1..=0xfe),
            35 => matches!(byte, 0x81..=0x9f | 0xa1..=0xfc),
            39 => matches!(byte, 0x81..=0xfe),
            _ => true,
        }
    }

    fn may_trail(&self, byte: u8) -> bool {
        match self.number {
            1..=4 | 40 => byte >= 0xa1 && byte != 0xff,
            35 => matches!(byte, 0x40..=0x7e | 0x80..=0xfc),
            39 => matches!(byte, 0x40..=0x7e | 0x80..=0xfe),
            _ => byte != 0,
        }
    }
}

/// Returns the valid UTF-8 prefix, and the error of the byte that follows.
fn utf8_prefix(bytes: &[u8]) -> (Cow<'_, str>, Option<Error>) {
    let error = match std::str::from_utf8(bytes) {
        Ok(text) => return (Cow::Borrowed(text), None),
        Err(error) => error,
    };
    let (valid, bad) = bytes.split_at(error.valid_up_to());
    // PostgreSQL shows as many bytes as the first one announces.
    let length = match bad.first() {
        Some(0xc0..=0xdf) => 2,
        Some(0xe0..=0xef) => 3,
        Some(0xf0..=0xf7) => 4,
        _ => 1,
    };
    let error = invalid("UTF8", &bad[..length.min(bad.len())]);
    (String::from_utf8_lossy(valid), Some(error))
}

fn listed(bytes: &[u8]) -> String {
    let bytes: Vec<String> = bytes.iter().map(|byte| format!("0x{byte:02x}")).collect();
    bytes.join(" ")
}

fn invalid(name: &str, bytes: &[u8]) -> Error {
    err!(CHARACTER_NOT_IN_REPERTOIRE: "invalid byte sequence for encoding \"{name}\": {}", listed(bytes))
}

fn no_equivalent(bytes: &[u8], from: &str, to: &str) -> Error {
    err!(UNTRANSLATABLE_CHARACTER: "character with byte sequence {} in encoding \"{from}\" has no equivalent in encoding \
        \"{to}\"", listed(bytes))
}

impl Default for &'static Encoding {
    fn default() -> &'static Encoding {
        Encoding::utf8()
    }
}

impl fmt::Debug for Encoding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name)
    }
}

impl PartialEq for Encoding {
    fn eq(&self, other: &Encoding) -> bool {
        self.number == other.number
    }
}

impl Eq for Encoding {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodings_are_found_by_number_and_name() {
        for (number, encoding) in (0..).zip(&ENCODINGS) {
            assert_eq!(encoding.number, number);
            assert_eq!(Encoding::by_name(encoding.name), Some(encoding));
            assert_eq!(Encoding::by_number(number), Some(encoding));
        }
        for (name, found) in
            [("utf-8", "UTF8"), ("iso-8859-15", "LATIN9"), ("windows-1252", "WIN1252")]
        {
            assert_eq!(Encoding::by_name(name).unwrap().name, found);
        }
        assert!(Encoding::by_name("klingon").is_none());
    }

    #[test]
    fn every_character_round_trips() {
        for encoding in ENCODINGS.iter().filter(|one| one.is_supported() && !one.is_utf8()) {
            let (Kind::Single(table) | Kind::Multiple(_, table)) = &encoding.kind else {
                unreachable!("the others are filtered out")
            };
            assert!(table.characters.len() > 80, "{encoding:?}");
            // Some characters do not round-trip in PostgreSQL either: `¢` becomes `￠` in SJIS,
            // and some of EUC_TW cannot be converted back.
            let returns =
                |(character, code): &(&char, &u32)| table.characters.get(code) == Some(*character);
            let is_there = |(_, code): &(&char, &u32)| table.characters.contains_key(code);
            let others = table.bytes.iter().filter(|pair| is_there(pair) && !returns(pair)).count();
            assert!(others <= 8, "{encoding:?}");
            for (character, _) in table.bytes.iter().filter(returns) {
                let text = format!("a{character}b");
                let mut bytes = Vec::new();
                encoding.encode(&text, &mut bytes).unwrap();
                assert_eq!(encoding.decode(&bytes).unwrap(), text, "{encoding:?}");
                assert_eq!(encoding.whole_length(&bytes), bytes.len());
            }
        }
    }

    const INVALID_UTF8: &str = "invalid byte sequence for encoding \"UTF8\": 0xc3 0x28";

    #[test]
    fn character_without_equivalent_is_error() {
        let latin = Encoding::by_name("latin1").unwrap();
        let error = latin.encode("a€", &mut Vec::new()).unwrap_err();
        assert_eq!(error.sqlstate, "22P05");
        assert_eq!(
            error.message,
            "character with byte sequence 0xe2 0x82 0xac in encoding \"UTF8\" has no equivalent in \
             encoding \"LATIN1\""
        );
        assert_eq!(latin.encode_lossy("é€"), b"\xe9?");
        let win = Encoding::by_name("win1252").unwrap();
        assert_eq!(win.decode(b"\x80").unwrap(), "€");
        assert_eq!(win.decode(b"\x81").unwrap_err().sqlstate, "22P05");
        let japanese = Encoding::by_name("euc_jp").unwrap();
        let (prefix, error) = japanese.decode_prefix(b"a\xa4\xa2\xa4b");
        assert_eq!((&*prefix, error.unwrap().sqlstate), ("aあ", "22021"));
        let mut out = "é€".as_bytes().to_vec();
        win.encode_tail(&mut out, 2, &mut InterruptPacer::without_interrupt()).unwrap();
        assert_eq!(out, b"\xc3\xa9\x80");
        let unicode = Encoding::utf8();
        assert_eq!(unicode.decode(b"a\xc3(").unwrap_err().message, INVALID_UTF8);
        assert_eq!(unicode.whole_length(b"a\xc3"), 1);
        for encoding in [unicode, latin, Encoding::by_name("sql_ascii").unwrap()] {
            let error = encoding.decode_text(b"a\0b").unwrap_err();
            assert!(error.message.ends_with(": 0x00"), "{}", error.message);
        }
        assert_eq!(japanese.decode(b"\xa4\xa2").unwrap(), "あ");
        assert_eq!(japanese.decode(b"\xa4").unwrap_err().sqlstate, "22021");
        assert_eq!(japanese.decode(b"\xa4a").unwrap_err().sqlstate, "22021");
        assert_eq!(japanese.decode(b"\x9f\xa7").unwrap_err().sqlstate, "22021");
        assert_eq!(japanese.decode(b"\xa9\xa7").unwrap_err().sqlstate, "22P05");
        assert_eq!(japanese.whole_length(b"a\xa4\xa2\x8f\xb0"), 3);
    }

    #[test]
    fn gb18030_uses_four_byte_codes_for_unmapped_characters() {
        let chinese = Encoding::by_name("gb18030").unwrap();
        for (text, bytes) in [
            ("a中b", &b"a\xd6\xd0b"[..]),
            ("\u{80}", b"\x81\x30\x81\x30"),
            ("€", b"\xa2\xe3"),
            ("é", b"\xa8\xa6"),
            ("꿔", b"\x82\x38\xb3\x35"),
            ("\u{10000}", b"\x90\x30\x81\x30"),
            ("😀", b"\x94\x39\xfc\x36"),
            ("\u{10ffff}", b"\xe3\x32\x9a\x35"),
        ] {
            let mut out = Vec::new();
            chinese.encode(text, &mut out).unwrap();
            assert_eq!(out, bytes, "{text}");
            assert_eq!(chinese.decode(bytes).unwrap(), text);
        }
        let code = |bytes: &[u8]| chinese.decode(bytes).unwrap_err().sqlstate;
        assert_eq!(code(b"\x84\x31\xa5\x30"), "22P05");
        assert_eq!(code(b"\xe3\x32\x9a\x36"), "22P05");
        for bytes in [&b"\x84\x30"[..], b"\x84\x30\x81", b"\x80", b"\xff\x41", b"\x81\x30\x41\x30"]
        {
            assert_eq!(code(bytes), "22021", "{bytes:x?}");
        }
        assert_eq!(chinese.whole_length(b"a\x94\x39\xfc"), 1);
        assert_eq!(chinese.whole_length(b"a\x94"), 1);
        let korean = Encoding::by_name("johab").unwrap();
        assert_eq!(korean.decode(b"\x8f\x61").unwrap_err().sqlstate, "22021");
    }
}
