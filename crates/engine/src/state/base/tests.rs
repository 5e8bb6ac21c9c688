//! The rules against a model: whatever is done in whatever order, the base shows the content.
//!
//! *Method*: random edits to a few keys; at random moments work begins (it takes a copy of the
//! base, or of content at an older moment) and ends (its result is laid over the base of then).
//! After each step, runs over tree must give content(`folded_to`), and the invariants must hold.

use std::collections::BTreeMap;

use bytes::Bytes;
use frond_store::ChunkStore;
use frond_store::memory::MemoryStore;
use frond_testkit::Random;
use frond_testkit::random::{assert_met, for_seeds};
use frond_tree::{Bounds, Direction, Edit, Entry, TreeFormat, Value};

use super::run_counts::NewRunCounts;
use super::*;
use crate::entry::OverlayEntry;
use crate::overlay::interleave::{Interleave, Source};
use crate::overlay::run::RunCursor;
use crate::state::compaction_progress::CompactionProgress;

type Map = BTreeMap<Bytes, Value>;

struct World {
    store: Arc<dyn ChunkStore>,
    /// Every edit, its place being its Sequence.
    edits: Vec<(Bytes, Option<Value>)>,
    base: Base,
    ready: Vec<VersionEdit>,
    /// Bases of a while ago, as snapshots have them.
    held: Vec<Base>,
    /// The number of runs that steps dropped, and of edits that no reader need look at any more.
    dropped: usize,
    passed: usize,
}

const KEY_COUNT: usize = 12;

fn key(number: usize) -> Bytes {
    Bytes::from(format!("{number:02}"))
}

impl World {
    fn new() -> World {
        let store: Arc<dyn ChunkStore> = MemoryStore::new();
        let format = TreeFormat { chunk_bytes_target: 256, ..TreeFormat::new(1) };
        let tree = Tree::empty(&*store, format).unwrap();
        let base = Base::whole(tree, Sequence::ZERO);
        let (edits, ready, held, dropped, passed) = Default::default();
        World { store, edits, base, ready, held, dropped, passed }
    }

    fn newest(&self) -> Sequence {
        Sequence(self.edits.len() as u64)
    }

    /// The newest edit of each key in (after, upto].
    fn edits(&self, after: Sequence, up_to: Sequence) -> BTreeMap<Bytes, Option<Value>> {
        self.edits[after.0 as usize..up_to.0 as usize].iter().cloned().collect()
    }

    fn content(&self, up_to: Sequence) -> Map {
        let edits = self.edits(Sequence::ZERO, up_to).into_iter();
        edits.filter_map(|(key, value)| Some((key, value?))).collect()
    }

    fn build(&self, content: Map) -> Tree {
        let entries = &mut content.into_iter().map(|(key, value)| Ok(Entry { key, value }));
        Tree::build(&*self.store, self.base.tree.format, entries).unwrap()
    }

    fn overlay(&self, runs: &[Arc<Run>], bounds: &Bounds) -> Interleave {
        let ascending = Direction::Ascending;
        let sources = runs
            .iter()
            .map(|run| Source::Run(RunCursor::new(run, &self.store, bounds.clone(), ascending)));
        Interleave::new(sources.collect(), ascending)
    }

    fn apply(&self, runs: &[Arc<Run>], bounds: &Bounds) -> Tree {
        self.apply_edits(&self.base.tree, self.overlay(runs, bounds))
    }

    fn apply_edits(
        &self,
        tree: &Tree,
        edits: impl Iterator<Item = Result<OverlayEntry, TreeError>>,
    ) -> Tree {
        let mut edits = edits.map(|edit| {
            let (key, value) = edit?;
            Ok((key, value.map_or(Edit::Delete, Edit::Put)))
        });
        tree.apply(&*self.store, &mut edits).unwrap()
    }

    fn check(&self) {
        self.base.check().unwrap();
        let tree = self.apply(&self.base.runs, &Bounds::all());
        assert_eq!(tree, self.build(self.content(self.base.folded_to)));
    }

    fn flush(&mut self, random: &mut Random) {
        // Begun over the base of now, or over one of a while ago.
        let back = random.below(3).min(self.base.folded_to.0 as usize) as u64;
        let after = Sequence(self.base.folded_to.0 - back);
        let up_to = self.newest();
        let mut entries = self.edits(after, up_to).into_iter().map(Ok);
        let format = self.base.tree.format;
        let run = Run::build(&*self.store, format, (after, up_to), &mut entries).unwrap();
        let counts = self.counts_of_flush(after, up_to, random);
        self.ready.extend(run.map(|run| VersionEdit::Flushed { run: Arc::new(run), counts }));
    }

    /// What a flush may know of the keys that were edited in (after, upto].
    fn counts_of_flush(&self, after: Sequence, up_to: Sequence, random: &mut Random) -> RunCounts {
        let (before, mut counts) = (self.content(after), NewRunCounts::default());
        let (known, is_all) = (random.below(4), random.one_in(2));
        for (key, value) in self.edits(after, up_to) {
            let is_known = is_all || random.below(4) < known;
            counts.note(value.is_some(), is_known.then(|| before.contains_key(&key)));
        }
        counts.finish()
    }

    fn merge(&mut self, random: &mut Random) {
        let start = random.below(self.base.runs.len() - 1);
        let count = 2 + random.below(self.base.runs.len() - start - 1);
        let runs = self.base.runs[start..start + count].to_vec();
        let times = (runs[count - 1].after, runs[0].up_to);
        let mut entries = self.overlay(&runs, &Bounds::all());
        let format = self.base.tree.format;
        let into = Run::build(&*self.store, format, times, &mut entries).unwrap();
        self.ready.push(VersionEdit::Merged { runs, into: Arc::new(into.unwrap()) });
    }

    /// The next step of folding, as it is done: its result is laid over the base at once or later.
    fn step_fold(&mut self, random: &mut Random) {
        let start = self.base.progress.cursor().cloned();
        let ahead = 1 + random.below(6);
        let end = (0..KEY_COUNT).map(key).filter(|key| Some(key) > start.as_ref()).nth(ahead);
        let bounds = Bounds { start, end: end.clone() };
        let edits = Interleave::new(self.left(&self.base, &bounds), Direction::Ascending);
        let tree = self.apply_edits(&self.base.tree, edits);
        let (from, up_to) = (self.base.tree.root, self.base.folded_to);
        let (progress, whole_to) = self.base.progress.stepped(up_to, end.as_ref(), 0);
        self.ready.push(VersionEdit::Stepped { from, tree, up_to, whole_to, progress });
        if random.one_in(2) {
            self.end_work(self.ready.len() - 1);
        }
    }

    /// Returns the entries that the runs of `base` have and its tree hasn't.
    fn left(&self, base: &Base, bounds: &Bounds) -> Vec<Source> {
        let ascending = Direction::Ascending;
        let source =
            |(run, bounds)| Source::Run(RunCursor::new(run, &self.store, bounds, ascending));
        let left = |run: &'_ Arc<Run>| base.progress.left(run.up_to, bounds).collect::<Vec<_>>();
        let runs =
            base.runs.iter().flat_map(|run| left(run).into_iter().map(move |left| (&**run, left)));
        runs.map(source).collect()
    }

    /// A reader that skips the edits that are in the tree already sees the same, key by key and as
    /// a range.
    fn check_left(&mut self, random: &mut Random) {
        let content = self.content(self.base.folded_to);
        for key in (0..KEY_COUNT).map(key) {
            let found = self.base.get(&*self.store, &key).unwrap();
            assert_eq!(found.as_ref(), content.get(&key));
        }
        let sources = self.left(&self.base, &Bounds::all());
        let edits: Vec<_> = Interleave::new(sources, Direction::Ascending).collect();
        self.passed += self.overlay(&self.base.runs, &Bounds::all()).count() - edits.len();
        let tree = self.apply_edits(&self.base.tree, edits.into_iter());
        assert_eq!(tree, self.build(content));
        let mut two = [key(random.below(KEY_COUNT)), key(random.below(KEY_COUNT))];
        two.sort();
        let [start, end] = two.map(Some);
        let bounds = Bounds { start, end };
        let edits = Interleave::new(self.left(&self.base, &bounds), Direction::Ascending);
        let part = self.apply_edits(&self.base.tree, edits);
        let entries = |tree: Tree| -> Vec<Entry> {
            let entries = tree.range(&self.store, bounds.clone(), Direction::Ascending);
            entries.map(Result::unwrap).collect()
        };
        assert_eq!(entries(part), entries(tree));
    }

    /// Bases of now and of before count what they hold, whatever others of them have looked up.
    fn check_counts(&mut self, random: &mut Random) {
        for base in self.held.iter().chain([&self.base]) {
            let content = self.content(base.folded_to);
            let mut two = [key(random.below(KEY_COUNT)), key(random.below(KEY_COUNT))];
            two.sort();
            let [start, end] = two.map(|key| (!random.one_in(4)).then_some(key));
            if start.is_some() && start == end {
                continue;
            }
            let is_within = |key: &&Bytes| {
                start.as_ref().is_none_or(|start| start <= key)
                    && end.as_ref().is_none_or(|end| *key < end)
            };
            let expected = content.keys().filter(is_within).count() as i64;
            let bounds = Bounds { start: start.clone(), end: end.clone() };
            let below = base.tree.count_range(&*self.store, &bounds).unwrap() as i64;
            assert_eq!(below + base.run_change(&self.store, &bounds).unwrap(), expected);
        }
        if random.one_in(2) {
            self.held.push(self.base.clone());
        }
        if self.held.len() > 4 {
            self.held.swap_remove(random.below(self.held.len()));
        }
    }

    /// Lays over the base what is ready at `position`.
    fn end_work(&mut self, position: usize) {
        let edit = self.ready.swap_remove(position);
        let (before, run_count) = (self.base.folded_to, self.base.runs.len());
        if let Some(improved) = self.base.improved(&edit) {
            self.base = improved;
        }
        if matches!(edit, VersionEdit::Stepped { .. }) {
            self.dropped += run_count - self.base.runs.len();
        }
        assert!(before <= self.base.folded_to);
        self.check();
    }

    fn step(&mut self, random: &mut Random) {
        match random.below(20) {
            0..=3 => {
                let value = (!random.one_in(3)).then(|| Value::inline(random.bytes(20)));
                self.edits.push((key(random.below(KEY_COUNT)), value));
            }
            4 | 5 => self.flush(random),
            6 if self.base.runs.len() >= 2 => self.merge(random),
            // Now and then: it drops all that is older.
            7 if random.one_in(4) => {
                let up_to = Sequence(random.below(self.edits.len() + 1) as u64);
                let tree = self.build(self.content(up_to));
                self.ready.push(VersionEdit::Folded { tree, up_to });
            }
            8..=11 => self.step_fold(random),
            12 | 13 => self.check_left(random),
            17..=19 => self.check_counts(random),
            _ if !self.ready.is_empty() => self.end_work(random.below(self.ready.len())),
            _ => {}
        }
    }
}

#[test]
fn work_in_any_order_leaves_the_content() {
    let (mut dropped, mut passed) = (0, 0);
    for_seeds(300, |mut random| {
        let mut world = World::new();
        for _ in 0..200 {
            world.step(&mut random);
        }
        world.check();
        dropped += world.dropped;
        passed += world.passed;
    });
    assert_met("edits that were dropped", dropped, 500);
    assert_met("edits that passed", passed, 500);
}

#[test]
fn useless_edits_are_not_applied() {
    let mut world = World::new();
    let mut random = Random::new(1);
    for number in 0..4 {
        world.edits.push((key(number), Some(Value::inline("x"))));
        world.ready.clear();
        world.flush(&mut random);
        let flushed = world.ready.pop().unwrap();
        world.base = world.base.improved(&flushed).unwrap();
        assert_eq!(world.base.improved(&flushed), None, "a run that is there already");
    }
    let tree = *world.base.tree;
    let folded = |up_to| VersionEdit::Folded { tree, up_to: Sequence(up_to) };
    assert_eq!(world.base.improved(&folded(0)), None);
    let half = world.base.improved(&folded(2)).unwrap();
    assert_eq!((half.runs.len(), half.folded_to), (2, Sequence(4)));
    assert_eq!(half.improved(&folded(half.whole_to().0)), None, "no further than it is");
    let runs = world.base.runs.clone();
    let merged = VersionEdit::Merged { runs: runs[2..].to_vec(), into: Arc::clone(&runs[2]) };
    assert_eq!(half.improved(&merged), None, "runs that are gone");
    let up_to = world.newest();
    let (from, whole_to) = (ChunkHash([1; 32]), Sequence::ZERO);
    let progress = CompactionProgress::default();
    let stepped = VersionEdit::Stepped { from, tree, up_to, whole_to, progress };
    assert_eq!(half.improved(&stepped), None, "another tree");
    let all = half.improved(&folded(9)).unwrap();
    assert_eq!((all.runs.len(), all.folded_to), (0, Sequence(9)));
}

#[test]
fn a_step_is_not_laid_over_a_tree_that_went_and_came_back() {
    let mut world = World::new();
    let mut random = Random::new(1);
    let from = *world.base.tree;
    // One key is written, and a pass begins to bring it into the tree.
    world.edits.push((key(1), Some(Value::inline("gone soon"))));
    world.flush(&mut random);
    let flushed = world.ready.pop().unwrap();
    world.base = world.base.improved(&flushed).unwrap();
    let up_to = world.base.folded_to;
    let tree = world.apply(&world.base.runs, &Bounds::all());
    // Meanwhile the key is deleted again, and a version commit folds that: the tree is `from`
    // again.
    world.edits.push((key(1), None));
    let folded = VersionEdit::Folded { tree: from, up_to: world.newest() };
    world.base = world.base.improved(&folded).unwrap();
    assert_eq!(*world.base.tree, from);
    for whole_to in [Sequence::ZERO, up_to] {
        let (from, progress) = (from.root, CompactionProgress::default());
        let stepped = VersionEdit::Stepped { from, tree, up_to, whole_to, progress };
        assert_eq!(world.base.improved(&stepped), None, "the deleted key would be back");
    }
    world.check();
}

impl World {
    fn write(&mut self, number: usize, value: Option<&'static str>) {
        self.edits.push((key(number), value.map(Value::inline)));
    }

    fn lay(&mut self, edit: &VersionEdit) {
        self.base = self.base.improved(edit).expect("it wins something");
        self.check();
    }

    fn run(&self, after: u64, up_to: u64) -> Arc<Run> {
        let times = (Sequence(after), Sequence(up_to));
        let mut entries = self.edits(times.0, times.1).into_iter().map(Ok);
        let run = Run::build(&*self.store, self.base.tree.format, times, &mut entries);
        Arc::new(run.unwrap().expect("something was written"))
    }

    /// A step that folds all runs of now; what it makes is laid over the base of later.
    fn begun_step(&self) -> VersionEdit {
        let up_to = self.base.folded_to;
        let tree = self.apply(&self.base.runs, &Bounds::all());
        let (progress, whole_to) = self.base.progress.stepped(up_to, None, 0);
        VersionEdit::Stepped { from: self.base.tree.root, tree, up_to, whole_to, progress }
    }

    fn assert_count(&self, expected: i64) {
        let all = Bounds::all();
        let below = self.base.tree.count_range(&*self.store, &all).unwrap() as i64;
        assert_eq!(below + self.base.run_change(&self.store, &all).unwrap(), expected);
    }
}

/// A key of the merged run had no value below it, and has one in the tree of the step.
#[test]
fn run_counts_are_forgotten_where_a_step_folded_a_part() {
    let mut world = World::new();
    world.write(1, Some("v"));
    world.write(2, Some("v"));
    world.lay(&VersionEdit::Flushed { run: world.run(0, 1), counts: RunCounts::default() });
    let step = world.begun_step();
    world.lay(&VersionEdit::Flushed { run: world.run(1, 2), counts: RunCounts::default() });
    let into = world.run(0, 2);
    world.lay(&VersionEdit::Merged { runs: world.base.runs.clone(), into });
    world.assert_count(2);
    world.lay(&step);
    world.assert_count(2);
}

/// A version commit folded further than the step, and came to the tree that the step began with.
#[test]
fn run_counts_are_forgotten_where_the_tree_was_newer_than_a_step() {
    let mut world = World::new();
    let empty = *world.base.tree;
    world.write(1, Some("v"));
    world.lay(&VersionEdit::Flushed { run: world.run(0, 1), counts: RunCounts::default() });
    let step = world.begun_step();
    world.write(1, None);
    world.write(1, Some("w"));
    world.write(2, Some("w"));
    world.lay(&VersionEdit::Flushed { run: world.run(1, 4), counts: RunCounts::default() });
    world.lay(&VersionEdit::Folded { tree: empty, up_to: Sequence(2) });
    world.assert_count(2);
    world.lay(&step);
    world.assert_count(2);
}

/// A flush that began over an older base has keys about which it knows what that had.
#[test]
fn what_a_flush_knows_is_kept_over_the_base_that_it_began_with() {
    for (begins_at, known) in [(0, "counts of 0 blocks"), (1, "counts of 1 blocks")] {
        let mut world = World::new();
        world.write(1, Some("v"));
        world.lay(&VersionEdit::Flushed { run: world.run(0, 1), counts: RunCounts::default() });
        world.write(1, None);
        let mut counts = NewRunCounts::default();
        counts.note(false, Some(begins_at == 1));
        let counts = counts.finish();
        world.lay(&VersionEdit::Flushed { run: world.run(begins_at, 2), counts });
        assert_eq!(format!("{:?}", world.base.counts[0]), known);
        world.assert_count(0);
    }
}
