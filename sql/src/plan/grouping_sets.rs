//! GROUPING SETS: the plan node and its EXPLAIN text.

use types::aggregate::Aggregate;
use types::expr::Expr;

use crate::plan::Node;
use crate::plan::expression::text;

/// See [`Node::GroupingSets`]. Output: the keys, the aggregates, then the GROUPING calls.
#[derive(Debug)]
pub struct GroupingSetsNode {
    /// Input.
    pub input: Node,
    /// True if the input is a [`Node::RegionAggregate`] by all keys with the same aggregates,
    /// whose partial groups are merged here, once for each set.
    pub in_regions: bool,
    /// Keys of all sets, over the input. If the regions group, only their types are used.
    pub group_by: Vec<Expr>,
    /// Sets, of which there is at least one.
    pub sets: Vec<GroupingSet>,
    /// Arguments of each GROUPING call, as key positions.
    pub groupings: Vec<Vec<usize>>,
}

/// A grouping set.
#[derive(Debug)]
pub struct GroupingSet {
    /// Its keys, by position.
    pub keys: Vec<usize>,
    /// Aggregates over the same columns as the keys. In direct arguments, which are evaluated per
    /// group, keys that the set does not have are NULL.
    pub aggregates: Vec<Aggregate>,
}

impl GroupingSetsNode {
    /// Returns the node's line and the names of its columns; `names` are those of its input.
    pub(super) fn text(&self, names: &[String]) -> (String, Vec<String>) {
        let (keys, calls): (Vec<String>, Vec<String>) = if self.in_regions {
            let (keys, calls) = names.split_at(self.group_by.len());
            (keys.to_vec(), calls.to_vec())
        } else {
            let call = |call: &Aggregate| call.describe_with(&|part| text(part, names));
            let keys = self.group_by.iter().map(|key| text(key, names)).collect();
            let calls = self.sets.first().map_or(&[][..], |set| &set.aggregates);
            (keys, calls.iter().map(call).collect())
        };
        let list = |positions: &Vec<usize>| {
            let names: Vec<&str> = positions.iter().map(|&key| keys[key].as_str()).collect();
            names.join(", ")
        };
        let sets: Vec<String> =
            self.sets.iter().map(|set| format!("({})", list(&set.keys))).collect();
        let separator = if calls.is_empty() { "" } else { " " };
        let line = format!(
            "Grouping Sets: {}{separator}by {}, in the session",
            calls.join(", "),
            sets.join(", ")
        );
        let groupings = self.groupings.iter().map(|asked| format!("GROUPING({})", list(asked)));
        (line, keys.iter().cloned().chain(calls).chain(groupings).collect())
    }
}
