//! Functions that users define, in the catalog: a row for each.
//!
//! The key is `f` and the function's number; the one cell holds a [`FunctionRecord`]. The body is
//! one query, kept as text: parsed when the function enters the catalog snapshot, bound wherever it
//! is called.

use std::sync::Arc;

use types::SqlType;

use crate::ast::{Query, Volatility};
use crate::catalog::Catalog;
use crate::catalog::name::SearchPath;
use crate::catalog::user_type::OID_OFFSET;
use crate::error::{Error, Result, sqlstate};
use crate::parser;

/// What the keys of functions begin with.
pub const FUNCTIONS_PREFIX: &[u8] = b"f";

/// Returns the key of a function's row.
pub fn function_key(number: u32) -> Vec<u8> {
    [FUNCTIONS_PREFIX, number.to_be_bytes().as_slice()].concat()
}

/// A function on disk.
#[derive(Debug, Clone, PartialEq, Eq, bincode::Encode, bincode::Decode)]
pub struct FunctionRecord {
    /// Its number.
    pub number: u32,
    /// Its schema.
    pub schema: String,
    /// Its name.
    pub name: String,
    /// What it takes.
    pub parameters: Vec<ParameterRecord>,
    /// What it returns.
    pub returns: ReturnRecord,
    /// How its value may change.
    pub volatility: Volatility,
    /// NULL if an argument is.
    pub strict: bool,
    /// Text of the query.
    pub body: String,
    /// Where names of the body without a schema are looked for; without one, where the caller looks
    /// for them.
    pub search_path: Option<Vec<String>>,
}

/// A parameter of a function.
#[derive(Debug, Clone, PartialEq, Eq, bincode::Encode, bincode::Decode)]
pub struct ParameterRecord {
    /// Its name; empty without one.
    pub name: String,
    /// OID of its type.
    pub type_oid: u32,
    /// SQL text of what it is if it is left out.
    pub default: Option<String>,
}

/// What a function returns; types are OIDs.
#[derive(Debug, Clone, PartialEq, Eq, bincode::Encode, bincode::Decode)]
pub enum ReturnRecord {
    /// One value.
    Value(u32),
    /// Values.
    Set(u32),
    /// Rows.
    Table(Vec<(String, u32)>),
}

/// A function.
#[derive(Debug)]
pub struct Function {
    /// What is stored of it.
    pub record: FunctionRecord,
    /// The types of its parameters.
    pub parameters: Vec<SqlType>,
    /// The columns of what it returns; one without a name for a value or values.
    pub columns: Vec<(String, SqlType)>,
    /// The body.
    pub query: Query,
    /// Where names of the body are looked for, unless it is where the caller does.
    pub search_path: Option<Arc<SearchPath>>,
}

impl Function {
    /// Returns the function that a record describes.
    ///
    /// # Errors
    ///
    /// XX001 for an unknown type; what is wrong with the text.
    pub fn of_record(record: FunctionRecord, catalog: &Catalog) -> Result<Function> {
        let type_of = |oid: u32| catalog.stored_type(oid, -1);
        let parameters = record.parameters.iter().map(|one| type_of(one.type_oid));
        let parameters = parameters.collect::<Result<_>>()?;
        let columns = match &record.returns {
            ReturnRecord::Value(oid) | ReturnRecord::Set(oid) => {
                vec![(String::new(), type_of(*oid)?)]
            }
            ReturnRecord::Table(columns) => columns
                .iter()
                .map(|(name, oid)| Ok((name.clone(), type_of(*oid)?)))
                .collect::<Result<_>>()?,
        };
        let query = parser::parse_query(&record.body).map_err(|error| {
            let message = format!("damaged body of function \"{}\": {error}", record.name);
            Error::new(sqlstate::DATA_CORRUPTED, message)
        })?;
        let search_path = record.search_path.clone().map(|path| Arc::new(SearchPath::of(path)));
        Ok(Function { record, parameters, columns, query, search_path })
    }

    /// Returns its OID.
    pub fn oid(&self) -> u32 {
        self.record.number + OID_OFFSET
    }

    /// Returns how many arguments a call must have: those behind have defaults.
    pub fn required(&self) -> usize {
        let with = self.record.parameters.iter().filter(|one| one.default.is_some()).count();
        self.record.parameters.len() - with
    }

    /// Returns whether it returns any number of rows.
    pub fn is_set(&self) -> bool {
        !matches!(self.record.returns, ReturnRecord::Value(_))
    }

    /// Returns the OIDs of the types that it takes and returns.
    pub fn type_oids(&self) -> Vec<u32> {
        let mut oids: Vec<u32> = self.parameters.iter().map(|one| one.oid()).collect();
        oids.extend(self.columns.iter().map(|(_, sql_type)| sql_type.oid()));
        oids
    }
}
