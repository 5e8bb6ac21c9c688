//! A scan in parts that several threads may run at once, and what they find put together.
//!
//! Only a scan along one tree that meets each document once can be cut, by ranges of keys: the
//! overlay's entries, and a transaction's own, lie in them as the tree's do.

use std::cell::Cell;
use std::sync::Arc;

use frond_query::Filter;
use frond_query::cores::{Cores, Workers};

use super::fetch::{Fetch, Scores};
use super::{Scan, Waiting};
use crate::collection::walk::Walk;
use crate::error::Error;
use crate::interrupt::Interrupt;

impl<'a> Scan<'a> {
    /// The scan, which hasn't begun, in parts that follow one another; `None` if it can't be cut or
    /// that isn't worth it. Each asks `workers` whether to go on.
    ///
    /// # Errors
    /// As the scan's own steps.
    pub fn parts(&self, workers: &Arc<Workers>) -> Result<Option<Vec<Scan<'a>>>, Error> {
        if !self.can_be_cut() {
            return Ok(None);
        }
        let wanted = |entries| workers.part_count(entries);
        let walks = self.walks[0].parts(&self.fetch.reader, wanted)?;
        let of_part = |(position, walk)| self.part(walk, position, workers);
        Ok(walks.map(|walks| walks.into_iter().enumerate().map(of_part).collect()))
    }

    /// Whether it is along one tree, meets each document once, and hasn't begun.
    pub(super) fn can_be_cut(&self) -> bool {
        let meets_once = self.seen.is_none() && self.merge.is_none() && self.runs.is_none();
        let is_plain = self.scoring.is_none()
            && matches!(self.fetch.scores, Scores::Texts)
            && self.fetch.metadata.is_empty();
        let has_begun = 0 < self.fetch.steps.get() || 0 < self.current;
        self.walks.len() == 1 && meets_once && is_plain && !has_begun
    }

    /// The scan, which hasn't begun, in pieces that follow one another, each to be read as often as
    /// one likes; as many as `cores` say for its entries. `None` if it can't be cut or that isn't
    /// worth it. The scan itself is left alone then.
    ///
    /// # Errors
    /// As the scan's own steps.
    pub fn pieces(&mut self, cores: &Cores) -> Result<Option<ScanPieces<'a>>, Error> {
        let is_still = !self.fetch.reader.may_change() && self.waiting.is_empty();
        if !is_still || !self.can_be_cut() {
            return Ok(None);
        }
        let wanted = |entries| cores.piece_count(entries);
        let Some(walks) = self.walks[0].parts(&self.fetch.reader, wanted)? else { return Ok(None) };
        let mut scan = self.along(self.walks[0].twin());
        scan.ending = self.ending.take();
        Ok(Some(ScanPieces { scan, walks }))
    }

    /// The scan along `walk`, a part of its own, which asks `workers` whether to go on.
    pub(super) fn part(&self, walk: Walk, position: usize, workers: &Arc<Workers>) -> Scan<'a> {
        Scan { fetch: self.fetch.of_part(position, workers), ..self.along(walk) }
    }

    /// The scan along another walk.
    fn along(&self, walk: Walk) -> Scan<'a> {
        let (interrupt, filter) = (self.fetch.interrupt.clone(), self.fetch.filter.clone());
        Scan {
            fetch: self.fetch.twin(interrupt, filter),
            walks: vec![walk],
            current: 0,
            seen: None,
            merge: None,
            waiting: self.waiting.iter().map(|_| Waiting::default()).collect(),
            runs: None,
            scoring: None,
            ending: None,
            is_profiled: false,
        }
    }

    /// Returns the check that stops the scan.
    pub fn interrupt(&self) -> &Interrupt {
        &self.fetch.interrupt
    }
}

/// A scan in pieces.
pub(crate) struct ScanPieces<'a> {
    /// It isn't read itself.
    scan: Scan<'a>,
    walks: Vec<Walk>,
}

impl<'a> ScanPieces<'a> {
    /// Returns how many there are.
    pub fn count(&self) -> usize {
        self.walks.len()
    }

    /// Fails if what the scan needs is gone.
    ///
    /// # Errors
    /// As a cursor's that can't go on.
    pub fn check(&mut self) -> Result<(), Error> {
        self.scan.check_ending()
    }

    /// The scan along the piece at `position`, which asks the worker that reads it, if one does,
    /// whether to go on.
    pub fn scan(&self, position: usize, worker: Option<(&Arc<Workers>, usize)>) -> Scan<'a> {
        let walk = self.walks[position].twin();
        match worker {
            Some((workers, place)) => self.scan.part(walk, place, workers),
            None => self.scan.along(walk),
        }
    }
}

impl<'a> Fetch<'a> {
    fn of_part(&self, position: usize, workers: &Arc<Workers>) -> Fetch<'a> {
        let go_on = {
            let workers = Arc::clone(workers);
            move || workers.go_on(position)
        };
        let (whole, own) = (self.interrupt.clone(), go_on.clone());
        let interrupt = Interrupt::new(move || {
            whole.check()?;
            Ok(own()?)
        });
        self.twin(interrupt, self.filter.clone().with_memory(self.filter.memory().of_part(go_on)))
    }

    /// The same, with another interrupt and filter.
    fn twin(&self, interrupt: Interrupt, filter: Filter) -> Fetch<'a> {
        Fetch {
            reader: self.reader.clone(),
            documents: self.documents,
            without_scripts: self.without_scripts.clone(),
            filter,
            may_fail: self.may_fail,
            in_part: self.in_part.clone(),
            lazily: self.lazily.clone(),
            counts_only: self.counts_only,
            covers: self.covers.clone(),
            interrupt,
            steps: Cell::new(0),
            metadata: self.metadata,
            scores: Scores::Texts,
        }
    }
}

/// Applies `gather` to the parts of a scan that hasn't begun, and returns the results in their
/// order; it is given the number of parts. `None` if there are none or it failed: then one thread
/// does it all.
pub(crate) fn gathered<T: Send>(
    cores: &Arc<Cores>,
    scan: &mut Scan<'_>,
    gather: impl Fn(&mut Scan<'_>, usize) -> Result<T, Error> + Sync,
) -> Option<Vec<T>> {
    let workers = Workers::find(cores)?;
    scan.check_ending().ok()?;
    let parts = scan.parts(&workers).ok()??;
    let count = parts.len();
    workers.run(parts, |mut part| gather(&mut part, count))
}
