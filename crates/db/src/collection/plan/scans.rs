//! The planner's choice, or a hint's, as scans of trees.

use std::sync::Arc;

use frond_doc::key;
use frond_query::index::{FieldKind, IndexShape};
use frond_query::planner::{self, IndexFacts, IndexScan, Plan};
use frond_query::{Code, Filter};
use frond_tree::{Bounds, Direction};

use super::access::{Access, AccessPath, Source};
use super::candidates::Candidates;
use super::request::Request;
use crate::collection::covered::Cover;
use crate::error::Error;
use crate::timeseries;

/// A scan of one tree.
struct Scanned {
    source: Source,
    scan: IndexScan,
    flags: u8,
    cover: Cover,
    /// Whether documents come in the order that is asked for.
    gives_order: bool,
}

impl Candidates<'_> {
    /// The access of a hint: its index, whatever it costs.
    pub(super) fn hinted(&self, request: Request<'_>) -> Result<Access, Error> {
        let sort = request.order.pattern();
        let facts = &self.facts[0];
        let all = IndexFacts {
            shape: Arc::new(IndexShape::of_values(facts.shape.sort_fields(), false)),
            ..facts.clone()
        };
        if request.between.is_given() {
            let range = request.between.range(&facts.shape)?;
            let scan = planner::whole_scan(&Filter::all(), sort, &all);
            let mut scan = scan.ok_or_else(|| Error::internal("an index can't be scanned"))?;
            scan.ranges = vec![range];
            scan.fields.clear();
            scan.is_exact &= request.filter.is_all();
            return Ok(self.access(Plan::IndexScan(scan), request));
        }
        if let Some(scan) = planner::whole_scan(request.filter, sort, facts) {
            return Ok(self.access(Plan::IndexScan(scan), request));
        }
        if facts.shape.has_kind(FieldKind::Wildcard) {
            let message = "error processing query: planner returned error :: caused by :: No query \
                           solutions: the hinted index can't answer this query";
            return Err(Error::invalid(Code::NoQueryExecutionPlans, message));
        }
        // Any other index that is asked for by name answers with what it has.
        let scan = planner::whole_scan(&Filter::all(), None, &all);
        let scan = scan.ok_or_else(|| Error::internal("an index can't be scanned"))?;
        let mut access = self.access(Plan::IndexScan(scan), request);
        access.is_exact = false;
        access.gives_order = request.order.pattern().is_none();
        Ok(access)
    }

    /// The scans of a plan.
    pub(super) fn access(&self, plan: Plan, request: Request<'_>) -> Access {
        match plan {
            Plan::CollectionScan => {
                let direction = request.id_direction();
                Access::all(direction.unwrap_or(Direction::Ascending), request)
            }
            Plan::IdScan(_) | Plan::IndexScan(_) => self.scan(plan, request),
            Plan::Union { branches, is_merged } => {
                let branches = branches.into_iter().map(|branch| self.scan(branch, request));
                let paths: Vec<AccessPath> = branches.flat_map(|branch| branch.paths).collect();
                let gives_order = is_merged || request.order.pattern().is_none();
                Access { paths, is_merged, gives_order, is_exact: false, filter: None }
            }
        }
    }

    /// The scan of one tree.
    fn scan(&self, plan: Plan, request: Request<'_>) -> Access {
        let Scanned { source, scan, flags, cover, gives_order } = self.scanned(plan, request);
        let direction = if scan.descending { Direction::Descending } else { Direction::Ascending };
        let is_unique = match source {
            Source::Index(position) => self.indexes[position].spec.unique,
            _ => true,
        };
        let is_whole = |key: &[u8]| {
            let mut rest = key;
            let is_read = match source {
                Source::Index(position) => self.indexes[position].skip_key(&mut rest).is_ok(),
                _ => key::skip(&mut rest, false).is_ok(),
            };
            is_unique && is_read && rest.is_empty()
        };
        let mut path = AccessPath {
            source,
            ranges: scan.ranges,
            checks: scan.checks,
            direction,
            may_repeat: scan.may_repeat,
            flags,
            cover,
            fields: scan.fields,
            between: None,
        };
        let is_wider = path.fit(&is_whole, request);
        let is_exact = scan.is_exact && !is_wider;
        // Several ranges, each in order, may have become one that isn't in order.
        if !scan.is_merged || is_wider {
            return Access {
                paths: vec![path],
                is_merged: false,
                gives_order: gives_order && !scan.is_merged,
                is_exact,
                filter: None,
            };
        }
        let one = |range: &Bounds| AccessPath { ranges: vec![range.clone()], ..path.clone() };
        let paths = path.ranges.iter().map(one).collect();
        Access { paths, is_merged: true, gives_order, is_exact, filter: None }
    }

    /// Returns the tree that a plan of one scan is about.
    fn scanned(&self, plan: Plan, request: Request<'_>) -> Scanned {
        match plan {
            Plan::IndexScan(mut scan) => {
                let source = self.sources[scan.index];
                let flags = self.facts[scan.index].flags;
                let gives_order = scan.sorted || request.order.pattern().is_none();
                let cover = match source {
                    Source::Index(position) => {
                        let order = request.order.pattern();
                        Cover::of(&self.indexes[position], flags, &self.needs, order)
                    }
                    _ => {
                        scan.ranges = timeseries::ranges(scan.ranges);
                        // Where a source is absent no key shows it.
                        scan.is_exact = false;
                        Cover::Nothing
                    }
                };
                Scanned { source, scan, flags, cover, gives_order }
            }
            Plan::IdScan(scan) => {
                let gives_order =
                    request.order.pattern().is_none() || request.id_direction().is_some();
                Scanned { source: Source::Id, scan, flags: 0, cover: Cover::Nothing, gives_order }
            }
            Plan::CollectionScan | Plan::Union { .. } => {
                unreachable!("only scans of ranges are branches")
            }
        }
    }
}
