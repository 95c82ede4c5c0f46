//! Dispatch of statements about types; CREATE TYPE of enums, and changes of their labels.

use std::sync::Arc;

use types::enumeration::rank_between;

use crate::ast::{
    self, AlterTypeAction, LabelPosition, ObjectKind, ObjectReference, TypeStatement,
};
use crate::catalog::enumeration::{EnumRecord, Enumeration, LabelRecord};
use crate::catalog::name::SearchPath;
use crate::catalog::user_type::{OID_OFFSET, UserType};
use crate::catalog::view::View;
use crate::catalog::{Catalog, CatalogObject};
use crate::ddl::Ddl;
use crate::ddl::objects::NameUse;
use crate::ddl::user_type::{Meaning, TextChange, with_changed_type};
use crate::error::{Error, Result, sqlstate};
use crate::parser;

/// The maximum length of a label, in bytes.
const LABEL_BYTES_MAX: usize = 63;

impl Ddl<'_> {
    /// Creates, alters or drops types.
    pub fn change_types(&mut self, statement: &TypeStatement) -> Result<()> {
        match statement {
            TypeStatement::Create(create) => self.create_enum(create),
            TypeStatement::CreateComposite(create) => self.create_composite(create),
            TypeStatement::Alter(alter) => self.alter_type(alter),
            TypeStatement::CreateDomain(create) => self.create_domain(create),
            TypeStatement::AlterDomain(alter) => self.alter_domain(alter),
        }
    }

    fn create_enum(&mut self, statement: &ast::CreateEnum) -> Result<()> {
        let catalog = self.catalog();
        let schema = self.creation_schema(&catalog, &statement.name)?;
        let name = statement.name.name.value.clone();
        self.name_exists(&catalog, (ObjectKind::Type, &schema, &name), false)?;
        let number = self.take_ids(2 + statement.labels.len() as u32)?;
        let mut record =
            EnumRecord { number, schema, name, labels: vec![], unknown: Default::default() };
        // The next number is that of the array type.
        for (next, label) in (number + 2..).zip(&statement.labels) {
            check_label(label)?;
            if record.labels.iter().any(|known| known.name == *label) {
                bail!(UNIQUE_VIOLATION: "duplicate key value violates unique constraint \"pg_enum_typid_label_index\"";
                    detail "Key (enumtypid, enumlabel)=({}, {label}) already exists.", number + OID_OFFSET);
            }
            let rank = rank_between(record.labels.last().map(|last| last.rank), None)?;
            record.labels.push(LabelRecord {
                rank,
                number: next,
                name: label.clone(),
                unknown: Default::default(),
            });
        }
        self.store_object(CatalogObject::of_type(UserType::Enum(Enumeration::of_record(record))))
    }

    fn alter_type(&mut self, statement: &ast::AlterType) -> Result<()> {
        if let AlterTypeAction::Attributes(changes) = &statement.action {
            return self.alter_attributes(statement, changes);
        }
        let catalog = self.catalog();
        let reference = ObjectReference::new(ObjectKind::Type, statement.name.clone());
        let found = self.named_object(&catalog, &reference, (NameUse::Alter, false))?;
        let Some(known) = found.and_then(|one| catalog.user_type(one.number())) else {
            return Ok(());
        };
        let UserType::Enum(Enumeration { record, .. }) = known.as_ref() else {
            bail!(WRONG_OBJECT_TYPE: "{} is not an enum", catalog.display_type(known, &self.path));
        };
        let mut record = record.clone();
        match &statement.action {
            AlterTypeAction::AddValue { if_not_exists, label, place } => {
                check_label(label)?;
                if record.labels.iter().any(|known| known.name == *label) {
                    let message = format!("enum label \"{label}\" already exists");
                    if *if_not_exists {
                        let message = format!("{message}, skipping");
                        self.add_notice(sqlstate::DUPLICATE_OBJECT, message);
                        return Ok(());
                    }
                    bail!(DUPLICATE_OBJECT: message);
                }
                let number = self.take_ids(1)?;
                add_label(&mut record, label, number, place.as_ref())?;
                self.replace_type(UserType::Enum(Enumeration::of_record(record)))
            }
            AlterTypeAction::RenameValue { from, to } => {
                check_label(to)?;
                let at = position_of(&record, from)?;
                if record.labels.iter().any(|known| known.name == *to) {
                    bail!(DUPLICATE_OBJECT: "enum label \"{to}\" already exists");
                }
                self.rename_label(record, at, to)
            }
            AlterTypeAction::Attributes(_) => Ok(()),
        }
    }

    /// Renames a label, also in texts of the catalog.
    fn rename_label(&mut self, mut record: EnumRecord, at: usize, to: &str) -> Result<()> {
        let from = record.labels[at].name.clone();
        let before = self.changes.catalog(self.engine);
        // A catalog in which both texts are labels of the value.
        let mut both = record.clone();
        both.labels.insert(at, LabelRecord { name: to.to_owned(), ..record.labels[at].clone() });
        let both = with_changed_type(&before, UserType::Enum(Enumeration::of_record(both)))?;
        to.clone_into(&mut record.labels[at].name);
        let after =
            with_changed_type(&before, UserType::Enum(Enumeration::of_record(record.clone())))?;
        let mut renaming = LabelRenaming { from, to: to.to_owned(), both, after };
        self.replace_type_and_texts(UserType::Enum(Enumeration::of_record(record)), &mut renaming)
    }
}

/// A renaming of a label.
struct LabelRenaming {
    from: String,
    to: String,
    /// The catalog in which both texts are labels of the value.
    both: Catalog,
    /// The catalog in which only the new text is.
    after: Catalog,
}

impl TextChange for LabelRenaming {
    /// Returns a text with the same meaning as before, with the new label. String literals that
    /// are not the label remain: their replacement would change the meaning.
    fn change(&mut self, text: &str, _: &SearchPath, meaning: &Meaning<'_>) -> Result<String> {
        if meaning(&self.after, text).is_ok() {
            return Ok(text.to_owned());
        }
        let meant = meaning(&self.both, text)?;
        let same = |text: &str| meaning(&self.both, text).is_ok_and(|means| means == meant);
        let literal = format!("'{}'", self.to.replace('\'', "''"));
        let strings = parser::strings(text)?.into_iter();
        let labels = strings.filter(|(_, value)| *value == self.from);
        let mut places: Vec<_> = labels.map(|(range, _)| (range, literal.clone())).collect();
        places.retain(|place| same(&parser::replace(text, std::slice::from_ref(place))));
        let renamed = parser::replace(text, &places);
        if same(&renamed) && meaning(&self.after, &renamed).is_ok() {
            return Ok(renamed);
        }
        let what = format!("renaming a label that \"{text}\" references in this form");
        let hint = "Drop the default, constraint, index or view and create it again.";
        Err(Error::not_supported(what, hint))
    }

    /// Makes a changed view visible to views over it.
    fn changed_view(&mut self, view: &View) {
        self.after = self.after.with(CatalogObject::View(Arc::new(view.clone())));
    }
}

fn check_label(label: &str) -> Result<()> {
    if label.len() <= LABEL_BYTES_MAX {
        return Ok(());
    }
    bail!(INVALID_NAME: "invalid enum label \"{label}\""; detail "Labels must be {LABEL_BYTES_MAX} bytes or less.")
}

fn position_of(record: &EnumRecord, label: &str) -> Result<usize> {
    record
        .labels
        .iter()
        .position(|known| known.name == label)
        .ok_or_else(|| err!(INVALID_PARAMETER_VALUE: "\"{label}\" is not an existing enum label"))
}

fn add_label(
    record: &mut EnumRecord,
    label: &str,
    number: u32,
    place: Option<&LabelPosition>,
) -> Result<()> {
    let at = match place {
        None => record.labels.len(),
        Some(place) => position_of(record, &place.label)? + usize::from(!place.before),
    };
    let rank_at = |at: Option<usize>| at.and_then(|at| record.labels.get(at)).map(|one| one.rank);
    let rank = rank_between(rank_at(at.checked_sub(1)), rank_at(Some(at)))?;
    record.labels.insert(
        at,
        LabelRecord { rank, number, name: label.to_owned(), unknown: Default::default() },
    );
    Ok(())
}
