//! Optimizer hints in comments: `/*+ INDEX(t i) */`.
//!
//! A hint for which the planner has a switch marks the scans of the FROM clause. Any other hint of
//! Phoenix, and an unknown one, has no effect and becomes a notice of each execution.

use crate::ast::Hint;
use crate::binder::level::Binder;
use crate::binder::lock_marks::for_each_scan;
use crate::binder::scope::{Scope, ScopeRelation};
use crate::error::{Error, Result, sqlstate};
use crate::logical::Logical;

/// The hints of Phoenix without a switch in the planner, with the reason.
const WITHOUT_EFFECT: &[(&str, &str)] = &[
    ("cdc_include", "Versions of rows are read with FOR SYSTEM_TIME."),
    ("forward_scan", "The planner chooses the direction of a scan."),
    ("hash_aggregate", "The planner chooses how rows are grouped."),
    ("no_cache", "The block cache protects itself from large scans."),
    ("no_child_parent_join_optimization", "The planner chooses the kind of join."),
    ("no_index_server_merge", "The planner chooses how rows of an index are fetched."),
    ("no_intra_region_parallelization", "The server divides a scan by its cost."),
    ("no_seek_to_column", "The store chooses between skipping and seeking."),
    ("no_star_join", "The planner chooses the order of joins."),
    ("range_scan", "The planner chooses the kind of scan."),
    ("seek_to_column", "The store chooses between skipping and seeking."),
    ("serial", "The server divides a scan by its cost."),
    ("skip_scan", "The planner chooses the kind of scan."),
    ("skip_scan_hash_join", "The planner chooses the kind of join."),
    ("small", "All reads of a few rows are done in one step."),
    ("use_index_over_data_table", "The planner compares the costs. Use INDEX(table index)."),
    ("use_persistent_cache", "Each statement builds its own hash table."),
    ("use_sort_merge_join", "The planner chooses the kind of join."),
];

impl Binder<'_> {
    /// Applies hints to the scans of a FROM clause.
    pub(in crate::binder) fn apply_hints(
        &mut self,
        plan: &mut Logical,
        scope: &Scope,
        hints: &[Hint],
        position: usize,
    ) -> Result<()> {
        for hint in hints {
            match (hint.name.as_str(), hint.arguments.as_slice()) {
                ("index", [table, indexes @ ..]) if !indexes.is_empty() => {
                    let known = self.known_indexes(scope, table, indexes);
                    if !known.is_empty() {
                        mark(plan, Some(table), &known);
                    }
                }
                ("no_index" | "use_data_over_index_table", []) => mark(plan, None, &[]),
                ("no_index", [table]) => mark(plan, Some(table), &[]),
                ("index" | "no_index", _) => {
                    bail!(SYNTAX_ERROR: "hint {} is malformed", hint.name; hint "Write INDEX(table index) or NO_INDEX(table).";
                        at position);
                }
                _ => self.note_hint(hint),
            }
        }
        Ok(())
    }

    /// Adds the notice for a hint without effect.
    pub(in crate::binder) fn note_hint(&mut self, hint: &Hint) {
        let name = hint.name.to_uppercase();
        let notice = match WITHOUT_EFFECT.iter().find(|(known, _)| *known == hint.name) {
            Some((_, reason)) => {
                err!(SUCCESSFUL_COMPLETION: "hint {name} has no effect").with_hint(*reason)
            }
            None => err!(SUCCESSFUL_COMPLETION: "hint {name} is unknown and has no effect")
                .with_hint("Supported hints are INDEX(table index) and NO_INDEX(table)."),
        };
        self.notices.push(notice);
    }

    /// Returns the indexes of a hint that exist, and adds notices for the others.
    fn known_indexes(&mut self, scope: &Scope, name: &str, indexes: &[String]) -> Vec<String> {
        let named = |relation: &&ScopeRelation| {
            let is_table = relation.table.as_ref().is_some_and(|table| table.name == name);
            relation.alias == name || is_table
        };
        let relation = scope.relations.iter().find(named);
        let Some(table) = relation.and_then(|relation| relation.table.as_ref()) else {
            self.add_notice(format!("relation \"{name}\" in hint not found in FROM clause"));
            return Vec::new();
        };
        let mut known = Vec::new();
        for index in indexes {
            match table.indexes.iter().any(|one| one.name == *index) {
                true => known.push(index.clone()),
                false => self.add_notice(format!("index \"{index}\" in hint does not exist")),
            }
        }
        known
    }

    fn add_notice(&mut self, message: String) {
        self.notices.push(Error::new(sqlstate::SUCCESSFUL_COMPLETION, message));
    }
}

/// Marks the scans of a table, or all scans, with the only indexes that they may use.
fn mark(plan: &mut Logical, table: Option<&String>, indexes: &[String]) {
    for_each_scan(plan, &mut |scan| {
        if table.is_none_or(|name| *name == scan.alias || *name == scan.table.name) {
            scan.index_hint = Some(indexes.to_vec());
        }
    });
}
