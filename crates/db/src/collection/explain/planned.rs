//! A query whose plan was chosen: what is shown of it, and what it does when it is run.

use std::sync::Arc;

use frond_doc::DocumentBuf;
use frond_query::cores::Workers;

use super::stage::Stage;
use super::{Done, Effort, QueryFacts, answer, keys_of, plan_stages, purposed};
use crate::collection::distinct::{Values, scan_keys, scanned_part};
use crate::collection::nearest::{self, Nearest};
use crate::collection::plan::{Access, Order};
use crate::collection::query::Query;
use crate::collection::scan::Scan;
use crate::collection::skip::pass_over;
use crate::collection::walk::Walk;
use crate::collection::{FindRequest, Purpose};
use crate::database::Database;
use crate::error::Error;
use crate::reader::Reader;
use crate::schema::Collection;

/// A query of a collection that is there, and the plan that was chosen for it.
#[derive(Clone, Copy)]
pub(super) struct PlannedQuery<'a> {
    pub database: &'a Database,
    pub reader: &'a Reader<'static>,
    pub request: &'a FindRequest,
    pub query: &'a Query,
    pub collection: &'a Arc<Collection>,
    pub access: &'a Access,
    pub purpose: Purpose,
}

impl PlannedQuery<'_> {
    /// Returns how the query goes, run if that is asked for.
    ///
    /// # Errors
    /// An error of the query when it is run.
    pub fn explain(
        self,
        namespace: &str,
        facts: QueryFacts<'_>,
        effort: Effort,
    ) -> Result<DocumentBuf, Error> {
        let PlannedQuery { access, purpose, .. } = self;
        let began = self.database.frond().steady_millis();
        let distinct = self.distinct_part();
        let done = match effort {
            Effort::Plan => {
                let (_, passed) = self.passed_over()?;
                vec![Done { passed, ..Done::default() }; access.paths.len()]
            }
            Effort::Run | Effort::RunAll => self.run(distinct)?,
        };
        let millis = self.database.frond().steady_millis().saturating_sub(began);
        let plan = purposed(self.stages_done(&done), purpose);
        let each = access.paths.iter().zip(&done);
        let total = each.fold(Done::default(), |total, (path, done)| Done {
            keys: total.keys + keys_of(path, *done),
            documents: total.documents + done.documents,
            ..Done::default()
        });
        let mut rejected = Vec::with_capacity(self.query.rejected.len());
        for access in &self.query.rejected {
            let nothing_done = vec![Done::default(); access.paths.len()];
            rejected.push(purposed(self.stages(access, &nothing_done), purpose));
        }
        let parts = self.part_count(distinct.is_some())?;
        Ok(answer(namespace, facts, (&plan, &rejected, parts), effort, total, millis))
    }

    /// The part of an index's keys that a `distinct` scans: it asks for one field.
    fn distinct_part(self) -> Option<usize> {
        if self.purpose != Purpose::Distinct {
            return None;
        }
        let projection = self.request.projection.as_ref()?;
        let (path, _) = projection.iter().find(|(name, _)| *name != "_id")?;
        scanned_part(self.collection, self.access, path)
    }

    fn stages(self, access: &Access, done: &[Done]) -> Stage {
        plan_stages(self.collection, access, self.query, self.request, self.purpose, done)
    }

    /// The stages of the plan that runs, with the counts of each walk.
    pub fn stages_done(self, done: &[Done]) -> Stage {
        let plan = self.stages(self.access, done);
        match self.distinct_part() {
            Some(_) => plan.renamed("IXSCAN", "DISTINCT_SCAN"),
            None => plan,
        }
    }

    /// Runs the plan and returns the counts of each walk; `distinct` is the part of an index's keys
    /// that is scanned.
    fn run(self, distinct: Option<usize>) -> Result<Vec<Done>, Error> {
        let PlannedQuery { database, reader, request, query, collection, .. } = self;
        let interrupt = &request.interrupt;
        let (access, passed) = self.passed_over()?;
        if let Some(place) = distinct {
            let mut values = Values::new(database, query.filter.collation().clone());
            let walks = scan_keys(reader, collection, access, place, interrupt, &mut values)?;
            return Ok(walks.iter().map(of_walk).collect());
        }
        if let Some(nearest) = self.nearest()? {
            let Nearest { keys, documents, found } = nearest;
            return Ok(vec![Done { keys, documents, returned: found.len() as u64, passed: 0 }]);
        }
        let counts = self.purpose.counts() && access.is_exact;
        let enough = match &query.order {
            Order::By(_) if !access.gives_order => None,
            Order::Near(_) => None,
            _ => request.limit.map(|limit| (request.skip - passed).saturating_add(limit)),
        };
        let mut scan = self.scan_of(access).interrupted_by(interrupt);
        if counts {
            scan = scan.counting();
        }
        let counted = if counts { scan.remaining(u64::MAX)? } else { None };
        let mut returned = 0;
        while counted.is_none() && enough.is_none_or(|enough| returned < enough) {
            let Some(found) = scan.next() else { break };
            found?;
            returned += 1;
        }
        let mut done: Vec<Done> = scan.walks().iter().map(of_walk).collect();
        if let [done] = &mut done[..] {
            done.passed = passed;
            done.returned = counted.unwrap_or(done.returned);
        }
        Ok(done)
    }

    /// The access without what counts pass over, and how many documents these are.
    ///
    /// # Errors
    /// If a chunk is damaged or missing.
    pub fn passed_over(self) -> Result<(Access, u64), Error> {
        let (mut access, skip) = (self.access.clone(), self.request.skip);
        let is_in_order = match &self.query.order {
            Order::By(_) => access.gives_order,
            Order::Near(_) => false,
            Order::Any | Order::Natural(_) => true,
        };
        if !is_in_order || self.purpose.counts() {
            return Ok((access, 0));
        }
        let left = pass_over(self.reader, self.collection, &mut access, skip)?;
        Ok((access, skip - left))
    }

    fn scan_of(self, access: Access) -> Scan<'static> {
        let (filter, order) = (self.query.filter.clone(), &self.query.order);
        Scan::new(self.reader.clone(), self.collection, access, filter, order)
    }

    /// Returns the search outward from a `$near`, if this is one.
    fn nearest(self) -> Result<Option<Nearest>, Error> {
        let PlannedQuery { request, query, collection, access, .. } = self;
        let Order::Near(_) = &query.order else { return Ok(None) };
        let wanted = request.limit.map(|limit| limit.saturating_add(request.skip));
        let by = (&query.filter, request.hint.as_ref());
        let interrupt = &request.interrupt;
        nearest::find(self.database, self.reader, (collection, access), by, wanted, interrupt)
    }

    /// Into how many parts the search would be divided now: those of stages that can be, too.
    fn part_count(self, reads_keys: bool) -> Result<usize, Error> {
        let PlannedQuery { request, query, access, .. } = self;
        let is_divided = match self.purpose {
            Purpose::Find => matches!(query.order, Order::By(_)) && !access.gives_order,
            Purpose::Count => !access.is_exact && request.limit.is_none(),
            Purpose::Distinct => !reads_keys,
            Purpose::DividedStages => true,
            Purpose::CountedStages => !access.is_exact && request.limit.is_none(),
            Purpose::Stages | Purpose::Update | Purpose::Delete => false,
        };
        let cores = self.database.frond().cores();
        let workers = Workers::find(cores).filter(|_| is_divided);
        let Some(workers) = workers else { return Ok(1) };
        Ok(self.scan_of(self.access.clone()).parts(&workers)?.map_or(1, |parts| parts.len()))
    }
}

fn of_walk(walk: &Walk) -> Done {
    Done {
        keys: walk.keys_examined,
        documents: walk.documents_examined,
        returned: walk.returned,
        passed: 0,
    }
}
