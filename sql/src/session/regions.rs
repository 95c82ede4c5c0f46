//! ALTER TABLE … SPLIT and MERGE REGIONS: takes effect at once, whatever becomes of the
//! transaction, as FLUSH and COMPACT do.

use store::TableId;
use store::descriptor::RegionId;
use store::store::SplitPoint;

use crate::ast::{AlterTable, AlterTableAction, Expr};
use crate::catalog::table::Table;
use crate::ddl::pre_split::{SplitKey, point};
use crate::error::{Error, Result, sqlstate};
use crate::session::Session;

impl Session {
    /// Splits or merges regions of a table.
    ///
    /// # Errors
    ///
    /// 22023 where they cannot be split or merged so; nothing is split or merged then, but what
    /// stands before it in the statement.
    pub(super) fn run_alter_table(&mut self, alter: &AlterTable) -> Result<()> {
        let table = self.table(&alter.name)?;
        match &alter.action {
            AlterTableAction::Split { region, points } => {
                self.split_regions(&table, *region, points)
            }
            AlterTableAction::MergeRegions(regions) => {
                let regions: Vec<RegionId> = regions.iter().copied().map(RegionId).collect();
                let merged = self.engine.store().merge_regions(table.id, &regions);
                merged.map(drop).map_err(refused)
            }
            AlterTableAction::Coprocessor(_) => unreachable!("the caller runs it as DDL"),
        }
    }

    fn split_regions(
        &mut self,
        table: &Table,
        region: Option<u64>,
        points: &[Vec<Expr>],
    ) -> Result<()> {
        let store = self.engine.store();
        match (points, region) {
            ([], Some(region)) => {
                let middle = SplitPoint::Middle(RegionId(region));
                store.split_region(table.id, middle).map(drop).map_err(refused)
            }
            ([], None) => self.split_all(table.id),
            (points, region) => {
                for row in self.rows(table, points)? {
                    let store = self.engine.store();
                    if let Some(region) = region {
                        check_inside(&store.regions(table.id)?, RegionId(region), &row)?;
                    }
                    store.split_region(table.id, SplitPoint::At(row)).map_err(refused)?;
                }
                Ok(())
            }
        }
    }

    /// Splits every region of a table that has more than one row, about its middle.
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

    /// Returns the row keys that begin with the values of points.
    fn rows(&mut self, table: &Table, points: &[Vec<Expr>]) -> Result<Vec<Vec<u8>>> {
        let layout = &table.layout;
        if layout.salt_buckets > 0 {
            return Err(Error::not_supported(
                "SPLIT AT of a salted table",
                "A key says its bucket only as a whole: use SPLIT REGION n, or SPLIT.",
            ));
        }
        let key: Vec<SplitKey> = layout
            .key
            .iter()
            .map(|key| SplitKey {
                sql_type: table.columns[key.column].sql_type,
                descending: key.descending,
                nulls_first: key.nulls_first,
                nullable: false,
            })
            .collect();
        self.begin_statement();
        let eval = self.open.as_ref().map(|open| self.eval_context(open, Vec::new()));
        let eval = eval.unwrap_or_default();
        points.iter().map(|values| point(values, &key, &eval)).collect()
    }
}

fn check_inside(
    regions: &[store::store::RegionStatus],
    region: RegionId,
    row: &[u8],
) -> Result<()> {
    let refuse = |why: String| Err(Error::new(sqlstate::INVALID_PARAMETER_VALUE, why));
    let Some(status) = regions.iter().find(|status| status.region == region) else {
        return refuse(format!("the table has no region {}", region.0));
    };
    let ends_before = status.stop.as_deref().is_some_and(|stop| stop <= row);
    if status.start.as_slice() > row || ends_before {
        return refuse(format!("the key lies outside of region {}", region.0));
    }
    Ok(())
}

/// Returns the error of what cannot be split or merged.
fn refused(error: store::Error) -> Error {
    match error {
        store::Error::InvalidRequest(why) => Error::new(sqlstate::INVALID_PARAMETER_VALUE, why)
            .with_hint("bennu.regions lists the regions of a table."),
        error => error.into(),
    }
}
