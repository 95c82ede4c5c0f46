//! Parsing of LIKE in CREATE TABLE.

use super::cursor::TokenCursor;
use super::error::Result;
use crate::ast::{CreateTable, LikeOptions, LikeTable};

impl TokenCursor<'_> {
    /// Reads the rest of a LIKE clause.
    pub(super) fn like_table(&mut self, into: &mut CreateTable) -> Result<()> {
        let table = self.table_name()?;
        let mut including = LikeOptions::default();
        loop {
            let on = match self.peek_word().as_str() {
                "including" => true,
                "excluding" => false,
                _ => break,
            };
            self.advance();
            match self.peek_word().as_str() {
                "defaults" => including.defaults = on,
                "constraints" => including.constraints = on,
                "indexes" => including.indexes = on,
                "identity" => including.identity = on,
                "generated" => including.generated = on,
                "all" => {
                    including = LikeOptions {
                        defaults: on,
                        constraints: on,
                        indexes: on,
                        identity: on,
                        generated: on,
                        comments: on,
                        compression: on,
                        storage: on,
                    };
                }
                "comments" => including.comments = on,
                "compression" => including.compression = on,
                "storage" => including.storage = on,
                // Extended statistics do not exist.
                "statistics" => {}
                _ => return Err(self.unexpected()),
            }
            self.advance();
        }
        let after = into.columns.len();
        into.likes.push(LikeTable { table, after, including });
        Ok(())
    }
}
