//! Parsing of DROP and TRUNCATE.

use sqlparser::tokenizer::Token;
use types::key_words;

use super::cursor::TokenCursor;
use super::error::{ParseError, Result};
use crate::ast::{
    Drop, DropUnsupported, NameSpace, ObjectKind, ObjectReference, Statement, TableName, Truncate,
};

impl TokenCursor<'_> {
    pub(super) fn drop(&mut self) -> Result<Statement> {
        let position = self.position();
        self.expect_words(&["drop"])?;
        if self.take_word("trigger") {
            return self.drop_trigger();
        }
        if self.take_word("policy") {
            return self.drop_policy();
        }
        if self.take_word("database") {
            return self.drop_database();
        }
        if self.is_word("owned") {
            return self.owned(true);
        }
        if let Some(drop) = self.drop_nothing()? {
            return Ok(drop);
        }
        if !self.nth_word_is(1, "mapping") && self.role_noun().is_some() {
            return self.drop_role();
        }
        let Some(kind) = self.object_kind() else {
            return match self.peek_word().to_uppercase() {
                word if word.is_empty() => Err(self.unexpected()),
                word => Err(ParseError::unsupported(format!("DROP {word}"), position)),
            };
        };
        let is_index = kind == ObjectKind::Index;
        let concurrently = is_index && self.take_word("concurrently");
        let if_exists = self.take_words(&["if", "exists"]);
        let mut objects = self.list(|cursor| match kind {
            ObjectKind::Type | ObjectKind::Domain => {
                Ok(ObjectReference::new(kind, cursor.dropped_type()?))
            }
            _ => cursor.object(kind),
        })?;
        if is_index && self.take_word("on") {
            let table = self.table_name()?;
            objects.iter_mut().for_each(|index| index.table = Some(table.clone()));
        }
        let cascade = self.cascade();
        Ok(Statement::Drop(Drop { if_exists, objects, cascade, concurrently }))
    }

    /// Reads the words for a kind of object.
    pub(super) fn object_kind(&mut self) -> Option<ObjectKind> {
        let mut kinds = ObjectKind::ALL.iter().copied();
        kinds.find(|kind| self.take_words(&kind.noun().split(' ').collect::<Vec<_>>()))
    }

    /// Reads a reference to an object of a kind.
    pub(super) fn object(&mut self, kind: ObjectKind) -> Result<ObjectReference> {
        let (name, arguments) = match kind.descriptor().name_space {
            NameSpace::Schema | NameSpace::Extension | NameSpace::Role => {
                (TableName { schema: None, name: self.name()? }, None)
            }
            NameSpace::Routine => self.function_reference()?,
            NameSpace::Relation | NameSpace::Type => (self.table_name()?, None),
        };
        Ok(ObjectReference { arguments, ..ObjectReference::new(kind, name) })
    }

    /// Reads a name of DROP TYPE or DROP DOMAIN.
    fn dropped_type(&mut self) -> Result<TableName> {
        if self.parser.peek_nth_token_ref(1).token == Token::Period {
            return self.table_name();
        }
        let is_type = |word: &str| {
            key_words::is_type_or_function(word) || types::DataType::from_name(word).is_some()
        };
        Ok(TableName { schema: None, name: self.identifier(is_type)? })
    }

    /// Reads the rest of DROP for kinds of objects that are not supported.
    fn drop_nothing(&mut self) -> Result<Option<Statement>> {
        let of_table = ["rule"];
        let others = ["publication", "server"];
        let kind = self.peek_word();
        if !of_table.iter().chain(&others).any(|known| **known == kind) {
            return Ok(None);
        }
        self.advance();
        let if_exists = self.take_words(&["if", "exists"]);
        let (names, table) = match of_table.contains(&kind.as_str()) {
            true => {
                let name = self.name()?;
                self.expect_words(&["on"])?;
                (vec![name], Some(self.table_name()?))
            }
            false => (self.list(Self::name)?, None),
        };
        self.cascade();
        Ok(Some(Statement::DropNothing(Box::new(DropUnsupported {
            kind,
            if_exists,
            names,
            table,
        }))))
    }

    pub(super) fn truncate(&mut self) -> Result<Statement> {
        self.expect_words(&["truncate"])?;
        self.take_word("table");
        let names = self.list(|cursor| {
            cursor.take_word("only");
            let name = cursor.table_name()?;
            cursor.take(&Token::Mul);
            Ok(name)
        })?;
        let restart_identity = self.take_words(&["restart", "identity"]);
        if !restart_identity {
            self.take_words(&["continue", "identity"]);
        }
        let cascade = self.cascade();
        Ok(Statement::Truncate(Truncate { names, restart_identity, cascade }))
    }

    pub(super) fn cascade(&mut self) -> bool {
        let cascade = self.take_word("cascade");
        if !cascade {
            self.take_word("restrict");
        }
        cascade
    }
}
