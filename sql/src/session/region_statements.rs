//! ALTER TABLE and ALTER INDEX … SPLIT and MERGE REGIONS: not transactional, like FLUSH and
//! COMPACT.

use std::sync::Arc;

use store::TableId;
use store::descriptor::RegionId;
use store::store::SplitPoint;

use crate::ast::{Expr, RegionAction, TableName};
use crate::binder::NameContext;
use crate::catalog::CatalogRelation;
use crate::ddl::pre_split::{SplitKey, point};
use crate::error::{Error, Result, sqlstate};
use crate::session::Session;

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
    /// 42704 if there is no such index; otherwise as for a table.
    pub(super) fn alter_index_regions(
        &mut self,
        name: &TableName,
        action: &RegionAction,
    ) -> Result<()> {
        let place = self.place_of_index(name)?;
        self.alter_regions(&place, action)
    }

    fn place_of_table(&self, name: &TableName) -> Result<RegionTarget> {
        let table = self.table(name)?;
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

    /// Returns the store table and key of an index: its own columns, then those of the table's
    /// key if it is not unique.
    fn place_of_index(&self, name: &TableName) -> Result<RegionTarget> {
        let path = self.constants.search_path();
        let index = self.with_planning(|planning| match planning.catalog.find(name, path) {
            Some(CatalogRelation::Index(_, index)) => Ok(Arc::clone(index)),
            _ => {
                Err(err!(UNDEFINED_OBJECT: "index \"{}\" does not exist", name.name.value; at name.position()))
            }
        })?;
        let layout = &index.spec.layout;
        let key = layout.key.iter().map(|key| SplitKey {
            sql_type: (&layout.columns[key.column].data_type).into(),
            descending: key.descending,
            nulls_first: key.nulls_first,
            nullable: true,
        });
        Ok(RegionTarget {
            store_table: index.spec.store_table,
            salt_buckets: layout.salt_buckets,
            key: key.collect(),
        })
    }

    fn alter_regions(&mut self, place: &RegionTarget, action: &RegionAction) -> Result<()> {
        match action {
            RegionAction::Split { region, points } => self.split_regions(place, *region, points),
            RegionAction::MergeRegions(regions) => {
                let regions: Vec<RegionId> = regions.iter().copied().map(RegionId).collect();
                let merged = self.engine.store().merge_regions(place.store_table, &regions);
                merged.map(drop).map_err(refused)
            }
        }
    }

    fn split_regions(
        &mut self,
        place: &RegionTarget,
        region: Option<u64>,
        points: &[Vec<Expr>],
    ) -> Result<()> {
        let store = self.engine.store();
        match (points, region) {
            ([], Some(region)) => {
                let middle = SplitPoint::Middle(RegionId(region));
                store.split_region(place.store_table, middle).map(drop).map_err(refused)
            }
            ([], None) => self.split_all(place.store_table),
            (points, region) => {
                for row in self.rows(place, points)? {
                    let store = self.engine.store();
                    if let Some(region) = region {
                        check_inside(&store.regions(place.store_table)?, RegionId(region), &row)?;
                    }
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
    fn rows(&mut self, place: &RegionTarget, points: &[Vec<Expr>]) -> Result<Vec<Vec<u8>>> {
        if place.salt_buckets > 0 {
            return Err(Error::not_supported(
                "SPLIT AT of a salted table or index",
                "The salt bucket depends on the whole key. Use SPLIT REGION n, or SPLIT.",
            ));
        }
        self.begin_statement();
        let eval = self.open.as_ref().map(|open| self.eval_context(open, Vec::new()));
        let eval = eval.unwrap_or_default();
        let catalog = self.catalog();
        let names =
            NameContext { catalog: &catalog, path: self.constants.search_path(), session: None };
        points.iter().map(|values| point(values, &place.key, &eval, names)).collect()
    }
}

fn check_inside(
    regions: &[store::store::RegionStatus],
    region: RegionId,
    row: &[u8],
) -> Result<()> {
    let refuse = |why: String| Err(err!(INVALID_PARAMETER_VALUE: why));
    let Some(status) = regions.iter().find(|status| status.region == region) else {
        return refuse(format!("the table has no region {}", region.0));
    };
    let ends_before = status.stop.as_deref().is_some_and(|stop| stop <= row);
    if status.start.as_slice() > row || ends_before {
        return refuse(format!("the key is outside region {}", region.0));
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
