//! ALTER TABLE and ALTER INDEX … SPLIT, MERGE REGIONS and NORMALIZE: not transactional, like FLUSH
//! and COMPACT. Also the periodic pass of the normaliser over the tables and indexes with
//! NORMALIZATION_ENABLED.

use std::time::Duration;

use store::TableId;
use store::descriptor::RegionId;
use store::normalizer::NormalizerRules;
use store::store::SplitPoint;

use crate::ast::{Expr, QueryExpr, RegionAction, SplitPoints, Statement, TableName};
use crate::binder::NameContext;
use crate::catalog::table::{Index, StoreTable, normalizer_rules, stores};
use crate::ddl::pre_split::{SplitKey, encode, point, too_many};
use crate::error::{Error, Result, sqlstate};
use crate::exec;
use crate::logical::OutputColumn;
use crate::session::Session;
use crate::session::prepared::{PlannedQuery, PlannedStatement};

/// Maximal number of split points of a query: each is a region.
const QUERY_POINTS_MAX: usize = 10_000;

/// Maximal number of merges and splits of one pass: each stops the writers of its regions for
/// milliseconds, and compactions follow a split.
const PASS_ACTIONS_MAX: usize = 32;

/// Store table and key columns of a table or an index.
struct RegionTarget {
    store_table: TableId,
    salt_buckets: u16,
    key: Vec<SplitKey>,
}

impl Session {
    /// Splits or merges regions of a table.
    ///
    /// # Errors
    ///
    /// 42P01 if there is no such table. 22023 where the regions cannot be split or merged in this
    /// way; what precedes it in the statement has taken effect.
    pub(super) fn alter_table_regions(
        &mut self,
        name: &TableName,
        action: &RegionAction,
    ) -> Result<()> {
        let place = self.place_of_table(name)?;
        self.alter_regions(&place, action)
    }

    /// Splits or merges regions of an index.
    ///
    /// # Errors
    ///
    /// As for a table.
    pub(super) fn alter_index_regions(
        &mut self,
        index: &Index,
        action: &RegionAction,
    ) -> Result<()> {
        if index.spec.local {
            let hint = "Split or merge the regions of the table: its local indexes follow it.";
            return Err(Error::not_supported("regions of a local index of its own", hint));
        }
        self.alter_regions(&place_of_index(index), action)
    }

    fn place_of_table(&self, name: &TableName) -> Result<RegionTarget> {
        let table = self.owned_table(name)?;
        let key = table.layout.key.iter().map(|key| SplitKey {
            sql_type: table.columns[key.column].sql_type.clone(),
            descending: key.descending,
            nulls_first: key.nulls_first,
            nullable: !table.columns[key.column].not_null,
        });
        Ok(RegionTarget {
            store_table: table.id,
            salt_buckets: table.layout.salt_buckets,
            key: key.collect(),
        })
    }

    fn alter_regions(&mut self, place: &RegionTarget, action: &RegionAction) -> Result<()> {
        match action {
            RegionAction::Split { region, points } => {
                self.split_regions(place, *region, points.as_ref())
            }
            RegionAction::MergeRegions(regions) => {
                let regions: Vec<RegionId> = regions.iter().copied().map(RegionId).collect();
                let merged = self.engine.store().merge_regions(place.store_table, &regions);
                merged.map(drop).map_err(refused)
            }
            RegionAction::Normalize => {
                // The age is for tables that are filled slowly; a statement knows better.
                let rules = normalizer_rules(place.salt_buckets, Duration::ZERO);
                self.normalize(place.store_table, rules, usize::MAX).map(drop)
            }
        }
    }

    fn split_regions(
        &mut self,
        place: &RegionTarget,
        region: Option<u64>,
        points: Option<&SplitPoints>,
    ) -> Result<()> {
        let store = self.engine.store();
        match (points, region) {
            (None, Some(region)) => {
                let middle = SplitPoint::Middle(RegionId(region));
                store.split_region(place.store_table, middle).map(drop).map_err(refused)
            }
            (None, None) => self.split_all(place.store_table),
            (Some(points), region) => {
                let rows = self.rows(place, points)?;
                let store = self.engine.store();
                check_rows(&store.regions(place.store_table)?, region.map(RegionId), &rows)?;
                for row in rows {
                    self.stop.interrupt().check()?;
                    store.split_region(place.store_table, SplitPoint::At(row)).map_err(refused)?;
                }
                Ok(())
            }
        }
    }

    /// Splits every region with more than one row near its middle.
    fn split_all(&self, table: TableId) -> Result<()> {
        let store = self.engine.store();
        let mut split_any = false;
        let mut why_not = None;
        for region in store.regions(table)? {
            match store.split_region(table, SplitPoint::Middle(region.region)) {
                Ok(_) => split_any = true,
                Err(error @ store::Error::InvalidRequest(_)) => why_not = Some(error),
                Err(error) => return Err(error.into()),
            }
        }
        match why_not {
            Some(error) if !split_any => Err(refused(error)),
            _ => Ok(()),
        }
    }

    /// Returns the row keys of split points, which may be prefixes of the key.
    fn rows(&mut self, place: &RegionTarget, points: &SplitPoints) -> Result<Vec<Vec<u8>>> {
        if place.salt_buckets > 0 {
            return Err(Error::not_supported(
                "SPLIT AT of a salted table or index",
                "The salt bucket depends on the whole key. Use SPLIT REGION n, or SPLIT.",
            ));
        }
        match points {
            SplitPoints::List(points) => self.listed_rows(place, points),
            SplitPoints::Query(query) => self.queried_rows(place, query),
        }
    }

    fn listed_rows(&mut self, place: &RegionTarget, points: &[Vec<Expr>]) -> Result<Vec<Vec<u8>>> {
        self.begin_statement();
        let eval = self.open.as_ref().map(|open| self.eval_context(open, Vec::new()));
        let eval = eval.unwrap_or_default();
        let catalog = self.catalog();
        let names = NameContext {
            catalog: &catalog,
            path: self.constants.search_path(),
            session: None,
            families: None,
        };
        points.iter().map(|values| point(values, &place.key, &eval, names)).collect()
    }

    fn queried_rows(&mut self, place: &RegionTarget, query: &QueryExpr) -> Result<Vec<Vec<u8>>> {
        let query = Statement::Query(Box::new(query.clone()));
        let PlannedQuery { statement, types, values } = self.planned_query(&query)?;
        let PlannedStatement { planned, columns, .. } = self.planned_and_locked(
            |planning| planning.plan(&statement, &types),
            |made| &made.planned,
        )?;
        if !planned.writes.is_empty() {
            return Err(Error::not_supported(
                "a data-changing WITH in SPLIT AT",
                "Select the split points from a table that is filled before.",
            ));
        }
        check_columns(place, columns.as_deref().unwrap_or_default())?;
        planned.constants.check(&values)?;
        let open = self.begin_request();
        let _turn = open.transaction.turn();
        self.lock_to_read(&planned)?;
        let open = self.open.as_ref().expect("a statement was begun");
        let mut parameters = values;
        parameters.resize(planned.parameter_count, types::Datum::Null);
        let mut source = exec::open(&planned.plan, self.context(open, parameters))?;
        let mut points = Vec::new();
        while let Some(batch) = source.next()? {
            if points.len() + batch.row_count > QUERY_POINTS_MAX {
                bail!(PROGRAM_LIMIT_EXCEEDED: "the query returns more than {QUERY_POINTS_MAX} split points");
            }
            for at in 0..batch.row_count {
                points.push(encode(&batch.row(at), &place.key)?);
            }
        }
        Ok(points)
    }
}

/// Returns the store table and key of an index: its own columns, then those of the table's key if
/// it is not unique.
fn place_of_index(index: &Index) -> RegionTarget {
    let layout = &index.spec.layout;
    let key = layout.key.iter().map(|key| SplitKey {
        sql_type: (&layout.columns[key.column].data_type).into(),
        descending: key.descending,
        nulls_first: key.nulls_first,
        nullable: true,
    });
    RegionTarget {
        store_table: index.spec.store_table,
        salt_buckets: layout.salt_buckets,
        key: key.collect(),
    }
}

impl Session {
    /// Normalises the tables and indexes that it is enabled for, as far as their regions are old
    /// enough, and returns the number of merges and splits. Errors are logged.
    ///
    /// # Errors
    ///
    /// 57014 if it was cancelled; what precedes has taken effect.
    pub fn normalize_due(&mut self) -> Result<usize> {
        self.stop.begin_statement();
        let (catalog, store) = (self.engine.catalog(), self.engine.store());
        let min_age = store.normalizer_min_age();
        let mut count = 0;
        for StoreTable { name, id, layout } in catalog.tables().into_iter().flat_map(stores) {
            if !store.table(id).is_some_and(|table| table.split.normalization) {
                continue;
            }
            let rules = normalizer_rules(layout.salt_buckets, min_age);
            match self.normalize(id, rules, PASS_ACTIONS_MAX - count) {
                Ok(actions) => count += actions,
                Err(error) if error.sqlstate == sqlstate::QUERY_CANCELED => return Err(error),
                // For example, a bulk load is in progress, or the table was dropped.
                Err(error) => tracing::warn!(table = name, %error, "could not normalize a table"),
            }
        }
        Ok(count)
    }

    /// Runs the due actions of a table's plan, at most `actions_max`, and returns their number.
    ///
    /// # Errors
    ///
    /// 57014; 22023 where an action is not possible now. What precedes has taken effect.
    fn normalize(
        &self,
        table: TableId,
        rules: NormalizerRules,
        actions_max: usize,
    ) -> Result<usize> {
        let store = self.engine.store();
        let mut count = 0;
        for action in store.normalizer_plan(table, rules)?.actions {
            if count == actions_max {
                break;
            }
            if action.due_micros.is_some_and(|due| due > store.now_micros()) {
                continue;
            }
            self.stop.interrupt().check()?;
            if let Some(changed) = store.normalize(table, &action).map_err(refused)? {
                tracing::info!(table = table.0, ?changed, "normalized regions");
                count += 1;
            }
        }
        Ok(count)
    }
}

/// Compares the columns of a query of split points with the leading key columns.
fn check_columns(place: &RegionTarget, columns: &[OutputColumn]) -> Result<()> {
    if columns.len() > place.key.len() {
        return Err(too_many(columns.len(), &place.key));
    }
    for (column, key) in columns.iter().zip(&place.key) {
        let (found, wanted) = (&column.sql_type.base, &key.sql_type.base);
        if found != wanted && !(found.is_text() && wanted.is_text()) {
            let wanted = wanted.sql_name();
            bail!(DATATYPE_MISMATCH: "column \"{}\" of the split points has type {}, but the key column has type {wanted}",
                column.name, found.sql_name(); hint format!("Cast it to {wanted}."));
        }
    }
    Ok(())
}

/// Checks all split points before the first split: they ascend, begin no region, and are inside
/// `region` if it is given.
fn check_rows(
    regions: &[store::store::RegionStatus],
    region: Option<RegionId>,
    rows: &[Vec<u8>],
) -> Result<()> {
    if let Some(at) = rows.windows(2).position(|pair| pair[0] >= pair[1]) {
        let how = if rows[at] == rows[at + 1] { "equal to" } else { "below" };
        bail!(INVALID_PARAMETER_VALUE: "split points must be distinct and in key order";
            detail format!("Split point {} is {how} the one before it.", at + 2);
            hint "List the points in key order, or use ORDER BY and DISTINCT in the query.");
    }
    let refuse = |why: String| Err(err!(INVALID_PARAMETER_VALUE: why));
    let known = |id: &RegionId| regions.iter().any(|status| status.region == *id);
    if let Some(id) = region.filter(|id| !known(id)) {
        return refuse(format!("the table has no region {}", id.0));
    }
    for (at, row) in rows.iter().enumerate() {
        let after = regions.partition_point(|status| status.start <= *row);
        let Some(status) = after.checked_sub(1).map(|at| &regions[at]) else { continue };
        if let Some(id) = region.filter(|id| status.region != *id) {
            return refuse(format!("split point {} is outside region {}", at + 1, id.0));
        }
        if status.start == *row {
            return Err(refused(store::Error::InvalidRequest(format!(
                "region {} already begins at split point {}",
                status.region.0,
                at + 1
            ))));
        }
    }
    Ok(())
}

/// Returns the error of a rejected split or merge.
fn refused(error: store::Error) -> Error {
    match error {
        store::Error::InvalidRequest(why) => Error::new(sqlstate::INVALID_PARAMETER_VALUE, why)
            .with_hint("bennu.regions lists the regions of a table."),
        error => error.into(),
    }
}
