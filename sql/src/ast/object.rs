//! Kinds of catalog objects, each declared once, and references to objects in statements.
//!
//! Parsing, command tags, messages and the checks of names are derived from the
//! [descriptor](ObjectKind::descriptor) of a kind.

use types::sqlstate;

use super::{FunctionParameter, TableName, TypeName};

/// The properties that all objects of a kind have in common.
#[derive(Debug)]
pub struct KindDescriptor {
    /// The noun in messages, which is also the words of statements.
    pub noun: &'static str,
    /// The command tags of ALTER and DROP.
    pub tags: [&'static str; 2],
    /// The objects among which its name is unique.
    pub name_space: NameSpace,
    /// The SQLSTATE if there is no object of a name.
    pub undefined: &'static str,
}

/// Objects among which names are unique.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameSpace {
    /// Tables, views, sequences and indexes of a schema.
    Relation,
    /// Types of a schema.
    Type,
    /// Functions and procedures of a schema with the same types of parameters.
    Routine,
    /// Schemas.
    Schema,
    /// Extensions.
    Extension,
    /// Roles.
    Role,
}

/// Declares the kinds of objects with their descriptors.
macro_rules! object_kinds {
    ($($kind:ident: $words:literal, $noun:literal, $space:ident, $undefined:ident;)*) => {
        /// The kind of object that a statement names.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum ObjectKind { $(
            #[doc = concat!("`", $words, "`")]
            $kind,
        )* }

        impl ObjectKind {
            /// All kinds.
            pub const ALL: &[ObjectKind] = &[$(ObjectKind::$kind),*];

            /// Returns what the objects of the kind have in common.
            pub const fn descriptor(self) -> &'static KindDescriptor {
                match self { $(
                    ObjectKind::$kind => &KindDescriptor {
                        noun: $noun,
                        tags: [concat!("ALTER ", $words), concat!("DROP ", $words)],
                        name_space: NameSpace::$space,
                        undefined: sqlstate::$undefined,
                    },
                )* }
            }
        }
    };
}

object_kinds! {
    Table: "TABLE", "table", Relation, UNDEFINED_TABLE;
    View: "VIEW", "view", Relation, UNDEFINED_TABLE;
    MaterializedView: "MATERIALIZED VIEW", "materialized view", Relation, UNDEFINED_TABLE;
    Sequence: "SEQUENCE", "sequence", Relation, UNDEFINED_TABLE;
    Index: "INDEX", "index", Relation, UNDEFINED_OBJECT;
    Type: "TYPE", "type", Type, UNDEFINED_OBJECT;
    Domain: "DOMAIN", "domain", Type, UNDEFINED_OBJECT;
    Function: "FUNCTION", "function", Routine, UNDEFINED_FUNCTION;
    Procedure: "PROCEDURE", "procedure", Routine, UNDEFINED_FUNCTION;
    Routine: "ROUTINE", "routine", Routine, UNDEFINED_FUNCTION;
    Schema: "SCHEMA", "schema", Schema, INVALID_SCHEMA_NAME;
    Extension: "EXTENSION", "extension", Extension, UNDEFINED_OBJECT;
    Role: "ROLE", "role", Role, UNDEFINED_OBJECT;
}

impl ObjectKind {
    /// Returns the noun in messages.
    pub fn noun(self) -> &'static str {
        self.descriptor().noun
    }

    /// Returns the article of the noun.
    pub fn article(self) -> &'static str {
        if self.noun().starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" }
    }
}

/// An object that a statement names.
#[derive(Debug, Clone, PartialEq)]
pub struct ObjectReference {
    /// The kind that the statement says.
    pub kind: ObjectKind,
    /// Its name; that of a schema or an extension has no qualifier.
    pub name: TableName,
    /// The parameters of a function, if written.
    pub arguments: Option<Vec<FunctionParameter>>,
    /// The table of `DROP INDEX i ON t`.
    pub table: Option<TableName>,
}

impl ObjectReference {
    /// Returns a reference by a name alone.
    pub fn new(kind: ObjectKind, name: TableName) -> ObjectReference {
        ObjectReference { kind, name, arguments: None, table: None }
    }

    /// Returns the types of the parameters of a function.
    pub fn types(&self) -> impl Iterator<Item = &TypeName> {
        self.arguments.iter().flatten().map(|one| &one.type_name)
    }
}
