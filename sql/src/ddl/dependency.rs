//! What depends on what: views on tables and on other views.

use store::Mutation;

use crate::catalog::Catalog;
use crate::catalog::record::{CATALOG_TABLE, view_key};
use crate::ddl::Ddl;
use crate::error::{Error, Result, sqlstate};

/// A view that depends on a relation.
struct Dependent {
    view: String,
    on: String,
}

/// Returns the word for a relation: `table` or `view`.
fn kind(catalog: &Catalog, relation: &str) -> &'static str {
    if catalog.view(relation).is_some() { "view" } else { "table" }
}

/// Returns the views that depend on some relations, directly or not, but for those relations.
fn dependents(catalog: &Catalog, relations: &[String]) -> Vec<Dependent> {
    let mut gone: Vec<String> = relations.to_vec();
    let mut found = Vec::new();
    let mut next = 0;
    while let Some(on) = gone.get(next).cloned() {
        next += 1;
        for view in catalog.views().filter(|view| view.relations.contains(&on)) {
            if !gone.contains(&view.name) {
                gone.push(view.name.clone());
                found.push(Dependent { view: view.name.clone(), on: on.clone() });
            }
        }
    }
    found
}

impl Ddl<'_> {
    /// Drops the views that depend on relations which are about to go, or refuses that. Returns a
    /// notice about what was dropped.
    pub(super) fn drop_dependents(
        &mut self,
        relations: &[String],
        cascade: bool,
    ) -> Result<Option<String>> {
        let catalog = self.changes.catalog(self.engine);
        let dependents = dependents(&catalog, relations);
        if dependents.is_empty() {
            return Ok(None);
        }
        if !cascade {
            let message = match relations {
                [one] => {
                    let kind = kind(&catalog, one);
                    format!("cannot drop {kind} {one} because other objects depend on it")
                }
                _ => "cannot drop desired object(s) because other objects depend on them".into(),
            };
            let line = |one: &Dependent| {
                format!("view {} depends on {} {}", one.view, kind(&catalog, &one.on), one.on)
            };
            let detail: Vec<String> = dependents.iter().map(line).collect();
            return Err(Error::new(sqlstate::DEPENDENT_OBJECTS_STILL_EXIST, message)
                .with_detail(detail.join("\n"))
                .with_hint("Use DROP ... CASCADE to drop the dependent objects too."));
        }
        for dependent in &dependents {
            self.remove_view(&dependent.view)?;
        }
        Ok(Some(match dependents.as_slice() {
            [one] => format!("drop cascades to view {}", one.view),
            many => format!("drop cascades to {} other objects", many.len()),
        }))
    }

    /// Removes a view from the catalog.
    pub(super) fn remove_view(&mut self, name: &str) -> Result<()> {
        self.transaction.mutate(CATALOG_TABLE, vec![Mutation::new(view_key(name)).delete_row()])?;
        let catalog = self.changes.catalog(self.engine);
        self.changes.set_catalog(catalog.without_view(name));
        Ok(())
    }
}
