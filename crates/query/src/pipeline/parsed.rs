//! A pipeline once it is parsed: its stages, and what its runner asks of them first.

use std::collections::BTreeSet;
use std::sync::Arc;

use frond_doc::DocumentBuf;

use super::field_positions::TouchedPaths;
use super::geo_near::GeoNear;
use super::stage::{Cardinality, Counter, Stage};
use crate::error::QueryError;
use crate::expression::{NotedConstant, Variables, compute, undefined};
use crate::filter::Filter;
use crate::metadata::{Metadata, MetadataKind};
use crate::sort::SortPattern;

/// A parsed pipeline.
#[derive(Clone, Debug)]
pub struct Pipeline {
    pub(super) stages: Vec<Arc<dyn Stage>>,
    /// The variables that must come from outside.
    pub(super) free: BTreeSet<String>,
    /// The metadata that its stages want of the search that finds its documents.
    pub(super) metadata: Metadata,
    /// The parts of its expressions that give the same value for all documents.
    pub(super) constants: Vec<NotedConstant>,
    /// Whether a client's script is run.
    pub(super) runs_scripts: bool,
}

impl Pipeline {
    /// Refuses what the first stage's search doesn't know of the documents.
    pub(super) fn check_metadata(&self) -> Result<(), QueryError> {
        let first = self.stages.first();
        let has_text = self.is_text_search();
        let has_near = first.is_some_and(|stage| stage.geo_near().is_some());
        for (kind, is_there) in [
            (MetadataKind::TextScore, has_text),
            (MetadataKind::GeoNearDistance, has_near),
            (MetadataKind::GeoNearPoint, has_near),
        ] {
            if self.metadata.contains(kind) && !is_there {
                return Err(kind.unavailable());
            }
        }
        Ok(())
    }

    /// The places of fields that its stages take away and set again, if they only change fields.
    pub(crate) fn places(&self) -> Option<TouchedPaths> {
        TouchedPaths::of(self.stages.iter().map(|stage| stage.shape()))
    }

    /// Refuses unbound variables.
    pub(crate) fn check_bound(&self, variables: &Variables) -> Result<(), QueryError> {
        match self.free.iter().find(|name| !variables.contains(name)) {
            Some(name) => Err(undefined(name)),
            None => Ok(()),
        }
    }

    /// Computes what gives the same for all documents, for a request with these variables.
    ///
    /// # Errors
    /// An unbound variable; what an expression fails with; 31264 if it runs scripts and the request
    /// may run none.
    pub fn compute_constants(&self, variables: &Variables) -> Result<(), QueryError> {
        self.check_bound(variables)?;
        if self.runs_scripts {
            variables.memory().check_scripts()?;
        }
        compute(&self.constants, variables)
            .map_err(|error| error.within("Failed to optimize pipeline"))
    }

    /// Cuts off the leading `$match` stages, for the planner to do; the filter that everything
    /// passes if there is none. A caller that evaluates it supplies the pipeline's variables
    /// ([`Filter::with_variables`]), which its `$expr` may use.
    pub fn take_filter(&mut self) -> Filter {
        let leading = self.stages.iter().map_while(|stage| stage.filter().cloned());
        let leading: Vec<Filter> = leading.collect();
        self.stages.drain(..leading.len());
        let filter = match &leading[..] {
            [only] => only.clone(),
            several => Filter::all_of(several).unwrap_or_else(Filter::all),
        };
        filter.with_metadata(self.metadata.of_search())
    }

    /// Cuts off a leading `$geoNear`, for its documents to be found by an index: see [`GeoNear`].
    ///
    /// # Errors
    /// Its point or a distance is none, or can't be computed.
    pub fn take_geo_near(&mut self, variables: &Variables) -> Result<Option<GeoNear>, QueryError> {
        let Some(found) = self.stages.first().and_then(|stage| stage.geo_near()) else {
            return Ok(None);
        };
        let near = found.computed(variables, self.metadata)?;
        self.stages.remove(0);
        Ok(Some(near))
    }

    /// Whether documents come out as they went in, or not at all: a caller that needs them needs
    /// them whole.
    pub fn chooses_only(&self) -> bool {
        let passes =
            |stage: &Arc<dyn Stage>| stage.filter().is_some() || stage.cardinality().cuts();
        self.stages.iter().all(passes)
    }

    /// The order of a leading `$sort`, and how many documents the stages after it read at most, if
    /// that is known; of a pipeline that begins otherwise no order, and how many documents all
    /// stages read.
    pub fn leading_order(&self) -> (Option<&SortPattern>, Option<usize>) {
        // A caller that asks for sort keys has documents sorted, which makes them.
        let is_needed = self.metadata.contains(MetadataKind::SortKey);
        match self.stages.first().and_then(|stage| stage.order()).filter(|_| !is_needed) {
            Some(order) => (Some(order), wanted(&self.stages[1..])),
            None => (None, wanted(&self.stages)),
        }
    }

    /// Whether all that the pipeline asks of documents is how many there are.
    pub fn counts_only(&self) -> bool {
        self.counter().is_some()
    }

    /// The first stage that does more than choose stored documents, if it only counts, and how many
    /// are before it.
    pub(super) fn counter(&self) -> Option<(usize, &dyn Counter)> {
        let only_chooses = |stage: &&Arc<dyn Stage>| match stage.order() {
            Some(order) => !order.may_refuse_stored(),
            None => stage.cardinality().cuts(),
        };
        let place = self.stages.iter().take_while(only_chooses).count();
        Some((place, self.stages.get(place)?.counter()?))
    }

    /// The paths of what the pipeline needs of documents; `None`: it needs them whole.
    pub fn needs(&self) -> Option<Vec<String>> {
        let mut needs = Vec::new();
        let leads = self.leading_order().0.is_some();
        for (position, stage) in self.stages.iter().enumerate() {
            if let Some(order) = stage.order() {
                match leads && position == 0 {
                    // The reader of the documents sorts them, or knows that they are.
                    true => needs.extend(order.fields.iter().map(|field| field.path.clone())),
                    false => needs.extend(order.deciding_names()),
                }
            } else if let Some(filter) = stage.filter() {
                needs.extend(filter.paths()?.into_iter().map(str::to_owned));
            } else if !stage.cardinality().cuts() {
                needs.extend(stage.needs()?);
                return Some(needs);
            }
        }
        None
    }

    /// Cuts off a leading `$sort`: the documents come in its order.
    pub fn drop_order(&mut self) {
        if self.stages.first().is_some_and(|stage| stage.order().is_some()) {
            self.stages.remove(0);
        }
    }

    /// Cuts off an order at the end, for a reader that has one of its own.
    pub fn drop_last_order(&mut self) {
        self.stages.pop_if(|last| last.order().is_some());
    }

    /// Returns how many documents a `$skip` passes over that comes first, or next to a leading
    /// `$sort`; none if all that is asked is how many are left.
    pub fn leading_skip(&self) -> u64 {
        let (order, _) = self.leading_order();
        let first = self.stages.get(usize::from(order.is_some()));
        match first.map(|stage| stage.cardinality()) {
            Some(Cardinality::Skip(count)) if !self.counts_only() => count as u64,
            _ => 0,
        }
    }

    /// Has a first `$skip` pass over `count` fewer.
    pub fn skip_fewer(&mut self, count: u64) {
        let Some(Cardinality::Skip(all)) = self.stages.first().map(|stage| stage.cardinality())
        else {
            return;
        };
        let left = all.saturating_sub(usize::try_from(count).unwrap_or(usize::MAX));
        let stage = self.stages.remove(0);
        if 0 < left {
            self.stages.splice(..0, stage.skipping(left));
        }
    }

    /// Cuts off a first stage that shows history, for [`super::Collections::history`].
    pub fn take_history(&mut self) -> Option<DocumentBuf> {
        let stage = self.stages.first()?.history()?.clone();
        self.stages.remove(0);
        Some(stage)
    }

    /// Whether the first stage shows history.
    pub(crate) fn is_history(&self) -> bool {
        self.stages.first().is_some_and(|stage| stage.history().is_some())
    }

    /// Whether the first stage searches for texts.
    pub(crate) fn is_text_search(&self) -> bool {
        let filter = self.stages.first().and_then(|stage| stage.filter());
        filter.is_some_and(|filter| filter.text().is_some())
    }

    /// The collection that the last stage writes, if there is one: (database, collection).
    pub fn output(&self) -> Option<(Option<String>, String)> {
        self.stages.last().and_then(|stage| stage.output())
    }

    /// Whether the first stage makes its own documents, so that no collection is read.
    pub fn is_source(&self) -> bool {
        self.stages.first().is_some_and(|stage| stage.is_source())
    }

    /// The variables that the pipeline uses and must be given.
    pub(crate) fn free(&self) -> &BTreeSet<String> {
        &self.free
    }
}

/// Returns how many documents `stages` read at most, if that is known.
pub(super) fn wanted(stages: &[Arc<dyn Stage>]) -> Option<usize> {
    let mut skipped: usize = 0;
    for stage in stages {
        match stage.cardinality() {
            Cardinality::Same => {}
            Cardinality::Skip(count) => skipped = skipped.saturating_add(count),
            Cardinality::Limit(count) => return Some(skipped.saturating_add(count)),
            Cardinality::Other => return None,
        }
    }
    None
}
