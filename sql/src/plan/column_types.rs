//! Types of the columns of plan nodes.

use types::DataType;
use types::expr::Expr;

use crate::logical::JoinKind;
use crate::plan::{KeyJoinNode, Node, ProjectSetNode};

impl Node {
    /// Returns the types of the node's columns.
    pub(crate) fn column_types(&self) -> Vec<DataType> {
        match self {
            Node::Scan(node) => node.types.clone(),
            Node::RegionAggregate(node) => {
                let aggregates = node.aggregates.iter().map(|one| one.data_type.clone());
                node.group_by.iter().map(Expr::data_type).cloned().chain(aggregates).collect()
            }
            Node::RegionTopN(node) => node.otherwise.column_types(),
            Node::SystemRows(node) => node.types.clone(),
            Node::Values(node) => node.types.clone(),
            Node::Filter(node) => node.input.column_types(),
            Node::Project(node) => node.expressions.iter().map(Expr::data_type).cloned().collect(),
            Node::ProjectSet(node) => node.column_types(),
            Node::HashJoin(node) | Node::MergeJoin(node) => node.column_types(),
            Node::LookupJoin(node) => joined(node.kind, &node.left_types, &node.right_types),
            Node::LoopJoin(node) => joined(node.kind, &node.left_types, &node.right_types),
            Node::Apply(node) => {
                let added = node.kind.added_types(node.subquery_types.clone());
                node.input_types.iter().cloned().chain(added).collect()
            }
            Node::Aggregate(node) => {
                let aggregates = node.aggregates.iter().map(|one| one.data_type.clone());
                node.group_by.iter().map(Expr::data_type).cloned().chain(aggregates).collect()
            }
            Node::GroupingSets(node) => {
                let aggregates = node.sets.first().into_iter().flat_map(|set| &set.aggregates);
                let keys = node.group_by.iter().map(Expr::data_type).cloned();
                let values = aggregates.map(|one| one.data_type.clone());
                keys.chain(values).chain(node.groupings.iter().map(|_| DataType::Int4)).collect()
            }
            Node::Sort(node) => node.types.clone(),
            Node::LockRows(node) => node.input.column_types(),
            Node::Limit(node) => node.input.column_types(),
            Node::Distinct(node) => node.input.column_types(),
            Node::SetOperation(node) => node.types.clone(),
            Node::WindowAgg(node) => {
                let added = node.functions.iter().map(|function| function.data_type.clone());
                node.input_types.iter().cloned().chain(added).collect()
            }
            Node::With(node) => node.body.column_types(),
            Node::CteScan(node) => node.types.clone(),
            Node::RecursiveUnion(node) => node.types.clone(),
            Node::Append(node) => node.inputs.first().map(Node::column_types).unwrap_or_default(),
        }
    }
}

fn joined(kind: JoinKind, left: &[DataType], right: &[DataType]) -> Vec<DataType> {
    match kind {
        JoinKind::Semi | JoinKind::Anti => left.to_vec(),
        _ => [left, right].concat(),
    }
}

impl KeyJoinNode {
    fn column_types(&self) -> Vec<DataType> {
        joined(self.kind, &self.left_types, &self.right_types)
    }
}

impl ProjectSetNode {
    fn column_types(&self) -> Vec<DataType> {
        let mut types = self.input.column_types();
        let columns = self.functions.iter().flat_map(|function| &function.columns);
        types.extend(columns.map(|column| column.sql_type.base.clone()));
        types.extend(self.ordinality.then_some(DataType::Int8));
        types
    }
}
