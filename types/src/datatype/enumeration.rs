//! Enums: user-defined types with a list of labels.
//!
//! A value is the rank of its label, which never changes when labels are added before or after
//! it, so that stored rows and keys remain valid and sort in label order. A label inserted
//! between two others gets a rank between theirs.

use std::sync::Arc;

use super::identity::{TypeIdentity, identified_by_oid};
use crate::error::{Error, Result};

/// Distance between the ranks of labels that are added at the end.
const STEP: i64 = 1 << 40;

/// One value of an enum.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Label {
    /// Its sort position.
    pub rank: i64,
    /// Its own OID.
    pub oid: u32,
    /// Its text.
    pub name: Arc<str>,
}

/// An enum.
pub struct EnumType {
    identity: TypeIdentity,
    labels: Vec<Label>,
}

identified_by_oid!(EnumType, "enum");

impl EnumType {
    /// Returns the type with these labels, by rank.
    pub fn new(identity: TypeIdentity, labels: Vec<Label>) -> EnumType {
        EnumType { identity, labels }
    }

    /// Returns the labels, by rank.
    pub fn labels(&self) -> &[Label] {
        &self.labels
    }

    /// Returns the label of a value; `None` for an invalid rank, which only corruption can cause.
    pub fn name_of(&self, rank: i64) -> Option<&Arc<str>> {
        let at = self.labels.binary_search_by_key(&rank, |label| label.rank).ok()?;
        Some(&self.labels[at].name)
    }

    /// Returns the value of a label.
    ///
    /// # Errors
    ///
    /// 22P02 if there is no such label.
    pub fn parse(&self, text: &str) -> Result<i64> {
        let found = self.labels.iter().find(|label| *label.name == *text);
        found.map(|label| label.rank).ok_or_else(|| {
            let TypeIdentity { oid, shown, .. } = &self.identity;
            err!(INVALID_TEXT_REPRESENTATION: "invalid input value for enum {shown}: \"{text}\"";
                with_type_mention *oid, shown)
        })
    }
}

/// Returns the rank of a new label between two others, `None` for the ends.
///
/// # Errors
///
/// 54000 if there is no rank between them: after some 40 labels in one place.
pub fn rank_between(before: Option<i64>, after: Option<i64>) -> Result<i64> {
    let rank = match (before, after) {
        (None, None) => Some(0),
        (Some(before), None) => before.checked_add(STEP),
        (None, Some(after)) => after.checked_sub(STEP),
        (Some(before), Some(after)) => {
            let middle = before.midpoint(after);
            (middle != before && middle != after).then_some(middle)
        }
    };
    rank.ok_or_else(|| {
        err!(PROGRAM_LIMIT_EXCEEDED: "too many labels were added at this position of the enum";
            hint "Create another type, and change the columns to it.")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn enum_labels_are_found_by_text_and_rank() {
        let identity = TypeIdentity::new((99_000, 99_001), ("public", "mood"), "mood".to_owned());
        let labels = [("sad", 0), ("ok", 7), ("happy", 9)];
        let label = |(name, rank): (&str, i64)| Label { rank, oid: 0, name: name.into() };
        let mood = EnumType::new(identity, labels.into_iter().map(label).collect());
        assert_eq!(mood.parse("ok").unwrap(), 7);
        assert_eq!(mood.name_of(9).map(|name| &**name), Some("happy"));
        assert_eq!(mood.name_of(8), None);
        let error = mood.parse("OK").unwrap_err();
        assert_eq!(
            (error.sqlstate, error.message.as_str()),
            ("22P02", "invalid input value for enum mood: \"OK\"")
        );
    }

    #[test]
    fn enum_ranks_leave_room_for_new_labels() {
        let (first, last) =
            (rank_between(None, None).unwrap(), rank_between(Some(0), None).unwrap());
        assert!(rank_between(None, Some(first)).unwrap() < first && first < last);
        let mut high = last;
        let mut added = 0;
        while let Ok(rank) = rank_between(Some(first), Some(high)) {
            assert!(first < rank && rank < high);
            high = rank;
            added += 1;
        }
        assert!(added >= 39, "{added}");
    }
}
