//! Groups of which clients' scripts make something: the scripts are asked about several groups
//! together ([`BatchReader`]).

use std::sync::Arc;

use super::{Documents, Group, Groups, OneGroup};
use crate::error::QueryError;
use crate::expression::Evaluated;
use crate::memory::RequestMemory;
use crate::script_batches::BatchReader;

/// The results of scripts for a group's states; `None` for those that run none.
pub(super) type Made = Vec<Option<Evaluated<'static>>>;

/// Runs the scripts of a group and returns their results.
fn made(group: &OneGroup) -> Result<Made, QueryError> {
    group.states.iter().map(|state| state.scripted()).collect()
}

impl Group {
    /// Whether scripts make something of the groups.
    pub(super) fn runs_scripts(&self) -> bool {
        self.fields.iter().any(|field| field.accumulator.runs_scripts())
    }

    /// The documents that the groups become.
    pub(super) fn together(
        self: Arc<Self>,
        groups: Groups,
        memory: RequestMemory,
    ) -> Documents<'static> {
        let mut ahead: BatchReader<OneGroup, Made, QueryError> = BatchReader::default();
        let mut waiting = groups.groups.into_iter().flatten();
        let reservation = groups.reservation;
        let mut read = move || {
            let _kept_until_all_is_read = &reservation;
            Ok(waiting.next().map(|group| (group, 0)))
        };
        Box::new(std::iter::from_fn(move || {
            let next = ahead.next(&memory, &mut read, &made).transpose()?;
            Some(next.and_then(|(group, made)| self.finish_with(group, made)))
        }))
    }
}

#[cfg(test)]
mod tests {
    use frond_doc::{DocumentBuf, Value, extended_json};
    use frond_store::budget::Reservation;

    use crate::expression::Variables;
    use crate::memory::RequestMemory;
    use crate::pipeline::{Documents, Pipeline};

    /// Returns the groups of the numbers from 0 to 20, by their remainders of 7.
    fn grouped(field: &str) -> Vec<DocumentBuf> {
        let stages = format!(
            r#"{{"stages": [{{"$group": {{"_id": {{"$mod": ["$n", 7]}}, "made": {field},
                "count": {{"$sum": 1}}}}}}]}}"#
        );
        let stages = extended_json::parse(&stages).unwrap();
        let Some(Value::Array(stages)) = stages.get("stages") else { panic!("they are there") };
        let memory = RequestMemory::new(Reservation::new(1 << 20, None), None);
        let numbers = (0..21).map(|n| extended_json::parse(&format!("{{\"n\": {n}}}")).unwrap());
        let input: Documents<'_> = Box::new(numbers.map(Ok));
        let pipeline = Pipeline::parse(stages).unwrap();
        let made = pipeline.run_alone(input, Variables::default().with_memory(memory)).unwrap();
        made.collect::<Result<_, _>>().unwrap()
    }

    fn numbers(documents: &[DocumentBuf], field: &str) -> Vec<i64> {
        documents
            .iter()
            .map(|document| document.get(field).unwrap().as_integer().unwrap())
            .collect()
    }

    #[test]
    fn groups_are_finished_together_and_come_out_as_by_themselves() {
        let made = grouped(
            r#"{"$accumulator": {
                "init": "s => { log = (globalThis.log ?? '') + 'i'; return {sum: s}; }",
                "initArgs": [100], "accumulate": "(state, n) => ({sum: state.sum + n})",
                "accumulateArgs": ["$n"], "merge": "x => x", "lang": "js",
                "finalize": "state => { log += 'f'; return [state.sum, log]; }"}}"#,
        );
        assert_eq!(numbers(&made, "count"), [3; 7]);
        let sums = made.iter().map(|document| {
            let pair = document.get("made").and_then(|made| made.as_array()).unwrap();
            pair.iter().next().and_then(|sum| sum.as_integer()).unwrap()
        });
        let remainders = numbers(&made, "_id");
        let expected: Vec<i64> = remainders.iter().map(|n| 100 + 3 * n + 21).collect();
        assert_eq!(sums.collect::<Vec<_>>(), expected);
        let last = made[6].get("made").and_then(|made| made.as_array()).unwrap();
        // One, two, and four groups are asked together.
        assert_eq!(last.iter().last(), Some(Value::String("ifiiffiiiiffff")));
    }

    #[test]
    fn reduced_values_are_those_of_their_groups() {
        let made = grouped(
            r#"{"$_internalJsReduce": {"data": {"k": {"$mod": ["$n", 7]}, "v": "$n"},
                "eval": "(key, values) => key * 1000 + Array.sum(values)"}}"#,
        );
        let expected: Vec<i64> = numbers(&made, "_id").iter().map(|n| 1003 * n + 21).collect();
        assert_eq!(numbers(&made, "made"), expected);
    }
}
