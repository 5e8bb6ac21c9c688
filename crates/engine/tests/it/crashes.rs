//! Power cuts at every write and every sync of a scripted run, and failing disks.
//!
//! *Method*: a run of random transactions over several trees, each of which also writes its number
//! into every tree. The run notes what each tree held after each transaction, which transaction was
//! acknowledged last, and which was tried last. After a crash all trees must show the same number,
//! not below the acknowledged and not above the tried one, and exactly what was noted for it.

use bytes::Bytes;
use frond_engine::{Durability, Engine, EngineError, EngineOptions, Sequence, TreeId};
use frond_store::io::Disk;
use frond_store::{Chunk, ChunkKind, StoreError};
use frond_testkit::random::{assert_met, for_seeds};
use frond_testkit::{Random, SimDisk};
use frond_tree::{Content as Place, Tree, Value};

use crate::rig::{
    Content, add_work, changed, churning, content, get, make_trees, new_bytes, open, put, quiet,
    small_nodes,
};

const TREE_COUNT: usize = 3;
const NUMBER_KEY: &str = "number";

/// The knowledge of a run about itself.
#[derive(Default)]
struct Notes {
    trees: Vec<TreeId>,
    /// The content of each tree after each transaction.
    versions: Vec<Vec<Content>>,
    acknowledged: usize,
    last_sequence: Sequence,
    /// Runs written, steps of passes, merges.
    work: [u64; 3],
    /// The file where the power had failed when all steps were done, without an error. The engine
    /// is dropped later: that writes, too, and reports no failure to a caller.
    lost_power_at: Option<String>,
}

impl Notes {
    fn current(&self) -> Vec<Content> {
        self.versions.last().cloned().unwrap_or_default()
    }
}

/// Runs `steps` random steps on `disk`, opening the engine anew now and then.
fn run(
    disk: &mut SimDisk,
    options: EngineOptions,
    random: &mut Random,
    steps: usize,
    notes: &mut Notes,
) -> Result<(), EngineError> {
    let mut engine = open(disk, options)?;
    notes.trees = make_trees(&engine, TREE_COUNT)?;
    notes.versions = vec![vec![Content::new(); TREE_COUNT]];
    for _ in 0..steps {
        // Where committers fold, little is folded on demand.
        let on_demand = options.fold_threads > 0 || random.one_in(6);
        match random.below(12) {
            0 if on_demand => engine.checkpoint()?,
            1 if on_demand => {
                engine.fold(&engine.snapshot(), &notes.trees)?;
            }
            2 => {
                notes.work = add_work(notes.work, &engine);
                engine.close()?;
                drop(engine);
                engine = open(disk, options)?;
            }
            _ => transact(&engine, random, notes)?,
        }
    }
    notes.work = add_work(notes.work, &engine);
    if disk.is_dead() {
        // Failures in the background (an opening of many segments has them flushed there) are
        // reported by the next flush.
        engine.flush()?;
        // One that ends well says that all is durable, the relaxed, too.
        notes.acknowledged = notes.versions.len() - 1;
        notes.lost_power_at = disk.lost_power_at();
    }
    Ok(())
}

/// Commits one transaction, which writes its number into each tree, and some more.
fn transact(engine: &Engine, random: &mut Random, notes: &mut Notes) -> Result<(), EngineError> {
    let mut transaction = engine.begin();
    let mut after = notes.current();
    let number = notes.versions.len();
    for (tree, content) in notes.trees.iter().zip(&mut after) {
        if random.one_in(8) {
            replace(engine, &mut transaction, *tree, content)?;
        }
        for _ in 0..random.below(6) {
            let key = Bytes::from(format!("{:02}", random.below(40)));
            if random.one_in(4) {
                content.remove(&key);
                transaction.delete(*tree, key)?;
                continue;
            }
            let bytes = match content.get(&key).filter(|_| !random.one_in(3)) {
                Some(before) => changed(before, random),
                None => new_bytes(random),
            };
            let value = match random.one_in(5) {
                true => chunk_value(&mut transaction, &bytes),
                false => Value::inline(bytes.clone()),
            };
            match random.one_in(4) {
                true => transaction.put(*tree, key.clone(), value)?,
                false => transaction.put_changed(*tree, key.clone(), value)?,
            }
            content.insert(key, bytes);
        }
        put(&mut transaction, *tree, NUMBER_KEY, &number.to_string());
        content.insert(Bytes::from(NUMBER_KEY), Bytes::from(number.to_string()));
    }
    notes.versions.push(after);
    let relaxed = random.one_in(4);
    let durability = if relaxed { Durability::Relaxed } else { Durability::Synced };
    let sequence = transaction.commit(durability)?;
    assert!(notes.last_sequence < sequence, "sequences rise");
    notes.last_sequence = sequence;
    if !relaxed {
        notes.acknowledged = number;
    }
    Ok(())
}

/// Gives `tree` another base: half of its entries.
fn replace(
    engine: &Engine,
    transaction: &mut frond_engine::Transaction,
    tree: TreeId,
    content: &mut Content,
) -> Result<(), EngineError> {
    let keep = content.len() / 2;
    *content = std::mem::take(content).into_iter().take(keep).collect();
    let mut entries = content.iter().map(|(key, value)| {
        Ok(frond_tree::Entry { key: key.clone(), value: Value::inline(value.clone()) })
    });
    let base = Tree::build(&**engine.store(), small_nodes(), &mut entries)?;
    transaction.set_base(tree, base)
}

fn chunk_value(transaction: &mut frond_engine::Transaction, bytes: &Bytes) -> Value {
    let chunk = Chunk::new(ChunkKind::Blob, &[], bytes);
    transaction.put_chunks(std::slice::from_ref(&chunk));
    let content = Place::Chunk { hash: chunk.hash(), bytes: bytes.len() as u64 };
    Value { flags: 0, content }
}

/// Checks what a restart finds, and returns the number of the last transaction in it.
fn check(engine: &Engine, notes: &Notes) -> usize {
    engine.check().unwrap();
    let snapshot = engine.snapshot();
    let Some(first) = notes.trees.first().filter(|tree| snapshot.has_tree(**tree)) else {
        assert!(notes.versions.len() <= 1, "the trees were made before the first transaction");
        return 0;
    };
    let number = get(&snapshot, *first, NUMBER_KEY).map_or(0, |text| text.parse().unwrap());
    assert!(notes.acknowledged <= number, "transaction {} is lost", notes.acknowledged);
    for (tree, expected) in notes.trees.iter().zip(&notes.versions[number]) {
        let found = content(&snapshot, *tree);
        assert!(found == *expected, "tree {} is not as transaction {number} left it", tree.0);
    }
    number
}

/// Opens what a crash left, checks it, and goes on working with it.
fn check_restart(disk: &SimDisk, options: EngineOptions, notes: &mut Notes, random: &mut Random) {
    // Recovery may be interrupted too, as often as it likes.
    let mut disk = disk.clone();
    for _ in 0..random.below(3) {
        disk.crash_after(random.below(12) as u64);
        drop(open(&disk, options));
        disk = disk.crash();
    }
    let engine = open(&disk, options).unwrap();
    let number = check(&engine, notes);
    if notes.trees.is_empty() || !engine.snapshot().has_tree(notes.trees[0]) {
        return;
    }

    // The state that was found stays, also if the power fails again at once.
    notes.acknowledged = number;
    notes.versions.truncate(number + 1);
    let disk = disk.crash();
    drop(engine);
    let engine = open(&disk, options).unwrap();
    assert_eq!(check(&engine, notes), number);

    // Work goes on.
    transact(&engine, random, notes).unwrap();
    engine.fold(&engine.snapshot(), &notes.trees).unwrap();
    let disk = disk.crash();
    drop(engine);
    let engine = open(&disk, options).unwrap();
    check(&engine, notes);
    transact(&engine, random, notes).unwrap();
    engine.checkpoint().unwrap();
    transact(&engine, random, notes).unwrap();
    check(&engine, notes);
    let disk = disk.crash();
    drop(engine);
    check(&open(&disk, options).unwrap(), notes);
}

#[test]
fn a_crash_at_any_write_or_sync_loses_nothing_acknowledged_and_leaves_no_half() {
    check_every_crash(5, 24, quiet());
}

#[test]
fn a_crash_while_runs_are_written_folded_and_merged_loses_nothing_either() {
    let folding = check_every_crash(2, 30, churning(5));
    let merging = check_every_crash(2, 40, churning(5000));
    assert_met("flushes beside folds", folding[0], 1);
    assert_met("folds", folding[1], 1);
    assert_met("flushes beside merges", merging[0], 1);
    assert_met("merges", merging[2], 1);
}

/// Lets the power fail at every operation of runs of so many steps; at every second one, the even
/// or the odd by the seed, where neither a long run nor one seed is asked for, since these are two
/// thirds of what this crate's tests take. Returns what the whole runs did in the background.
fn check_every_crash(seeds: u64, steps: usize, options: EngineOptions) -> [u64; 3] {
    let mut work = [0; 3];
    for_seeds(seeds, |random| {
        let seed = random.clone().next();
        let mut disk = SimDisk::new(seed);
        let mut notes = Notes::default();
        run(&mut disk, options, &mut random.clone(), steps, &mut notes).unwrap();
        let operations = disk.operations();
        assert!(operations > 40);
        work.iter_mut().zip(notes.work).for_each(|(sum, done)| *sum += done);
        // For long runs: how many crashes there were.
        println!("{operations} crashes");
        let variables = ["FROND_SEED", "FROND_SEED_TIMES"].map(std::env::var_os);
        let apart = if variables.iter().any(Option::is_some) { 1 } else { 2 };
        for operation in (seed % apart..operations).step_by(apart as usize) {
            check_crash(random.clone(), steps, options, operation);
        }
    });
    work
}

/// Lets the power fail at this operation of a run.
fn check_crash(mut random: Random, steps: usize, options: EngineOptions, operation: u64) {
    let mut disk = SimDisk::new(random.clone().next());
    disk.crash_after(operation);
    let mut notes = Notes::default();
    let result = run(&mut disk, options, &mut random, steps, &mut notes);
    // Second copies are a precaution: a run doesn't report whether one could be made.
    let is_unreported = |name: &str| !name.starts_with("COPIES");
    let unreported = notes.lost_power_at.as_deref().filter(|name| is_unreported(name));
    assert!(result.is_err() || unreported.is_none(), "operation {operation}: {unreported:?}");
    check_restart(&disk.crash(), options, &mut notes, &mut random);
}

/// The last thing that a run of this seed writes is a second copy, after a checkpoint: 1148 of
/// 1152.
#[test]
fn a_crash_while_the_last_second_copy_is_written_loses_nothing() {
    let (random, steps, options) = (Random::new(3_860_783_714), 30, churning(5));
    let mut disk = SimDisk::new(random.clone().next());
    run(&mut disk, options, &mut random.clone(), steps, &mut Notes::default()).unwrap();
    for operation in disk.operations().saturating_sub(40)..disk.operations() {
        check_crash(random.clone(), steps, options, operation);
    }
}

#[test]
fn a_killed_process_leaves_what_a_later_power_cut_cannot_take() {
    for_seeds(60, |mut random| {
        let mut disk = SimDisk::new(random.next());
        let mut notes = Notes::default();
        if random.one_in(2) {
            // As after a failed sync: memory and disk differ, and only memory is read.
            disk.fail_sync_after(3 + random.below(30) as u64);
        }
        let options =
            if random.one_in(2) { quiet() } else { churning(*random.choose(&[15, 5000])) };
        let steps = random.below(40);
        let _ = run(&mut disk, options, &mut random, steps, &mut notes);
        let disk = disk.kill();
        check_restart(&disk, options, &mut notes, &mut random);
    });
}

#[test]
fn a_failed_sync_or_write_closes_the_engine_for_writing() {
    for fail in [SimDisk::fail_sync_after, SimDisk::fail_write_after] {
        let disk = SimDisk::new(3);
        let engine = open(&disk, quiet()).unwrap();
        let mut notes = Notes { trees: make_trees(&engine, 2).unwrap(), ..Notes::default() };
        notes.versions = vec![vec![Content::new(); 2]];
        let mut random = Random::new(5);
        (0..5).for_each(|_| while transact(&engine, &mut random, &mut notes).is_err() {});
        let before = engine.snapshot().sequence();
        fail(&disk, 0);
        let mut transaction = engine.begin();
        put(&mut transaction, notes.trees[0], "lost", "x");
        assert_eq!(engine.fault(), None);
        assert!(matches!(transaction.commit(Durability::Synced), Err(EngineError::Unknown(_))));
        let fault = engine.fault().unwrap().message.clone();
        assert!(fault.contains("log-") && fault.contains("simulated failure"), "{fault}");
        let mut transaction = engine.begin();
        put(&mut transaction, notes.trees[0], "refused", "x");
        assert!(matches!(transaction.commit(Durability::Relaxed), Err(EngineError::Closed(_))));
        assert!(engine.fold(&engine.snapshot(), &notes.trees).is_err());
        assert!(engine.checkpoint().is_err());
        assert_eq!(engine.visible(), before);
        assert_eq!(engine.fault().unwrap().message, fault);
        check(&engine, &notes);
        assert_eq!(get(&engine.snapshot(), notes.trees[0], "lost"), None);
        let disk = disk.crash();
        drop(engine);
        let engine = open(&disk, quiet()).unwrap();
        assert!(engine.visible() >= before);
        assert_eq!(get(&engine.snapshot(), notes.trees[0], "refused"), None);
    }
}

#[test]
fn a_full_disk_refuses_writes_until_there_is_room() {
    for_seeds(40, |mut random| {
        let disk = SimDisk::new(random.next());
        let options =
            if random.one_in(2) { quiet() } else { churning(*random.choose(&[15, 5000])) };
        let engine = open(&disk, options).unwrap();
        let mut notes = Notes { trees: make_trees(&engine, 3).unwrap(), ..Notes::default() };
        notes.versions = vec![vec![Content::new(); 3]];
        for _ in 0..3 {
            disk.fill_after(random.below(6000) as u64);
            let mut refused = 0;
            while refused < 3 {
                let before = engine.visible();
                let count = notes.versions.len();
                match transact(&engine, &mut random, &mut notes) {
                    Ok(()) => continue,
                    Err(error) => {
                        assert!(is_full(&error), "{error}");
                        notes.versions.truncate(count);
                        refused += 1;
                        assert!(before <= engine.visible());
                    }
                }
                check_relaxed(&engine, &notes);
            }
            if let Err(error) = engine.checkpoint() {
                assert!(is_full(&error), "{error}");
            }
            check_relaxed(&engine, &notes);
            disk.make_room();
            let count = notes.versions.len();
            if let Err(error) = transact(&engine, &mut random, &mut notes) {
                // A writer that waits gets the error of a flush that ran into the full disk just
                // before.
                assert!(is_full(&error), "{error}");
                notes.versions.truncate(count);
                transact(&engine, &mut random, &mut notes).unwrap();
            }
            check_relaxed(&engine, &notes);
            if random.one_in(2) {
                engine.checkpoint().unwrap();
            }
        }
        engine.close().unwrap();
        notes.acknowledged = notes.versions.len() - 1;
        let disk = disk.crash();
        drop(engine);
        check_restart(&disk, options, &mut notes, &mut random);
    });
}

/// Relaxed transactions are visible: the last one noted is what is read.
fn check_relaxed(engine: &Engine, notes: &Notes) {
    assert_eq!(check(engine, notes), notes.versions.len() - 1);
}

fn is_full(error: &EngineError) -> bool {
    let kind = match error {
        EngineError::Store(StoreError::Io { source, .. }) => source.kind(),
        EngineError::Tree(frond_tree::TreeError::Store(StoreError::Io { source, .. })) => {
            source.kind()
        }
        _ => return false,
    };
    kind == std::io::ErrorKind::StorageFull
}

/// A disk with eleven log segments of one tree, and what was committed.
fn disk_with_segments() -> (SimDisk, Notes) {
    let mut disk = SimDisk::new(11);
    let engine = open(&disk, quiet()).unwrap();
    let mut notes = Notes { trees: make_trees(&engine, 1).unwrap(), ..Notes::default() };
    notes.versions = vec![vec![Content::new(); 1]];
    drop(engine);
    for _ in 0..10 {
        disk = disk.kill();
        let engine = open(&disk, quiet()).unwrap();
        for _ in 0..3 {
            let mut transaction = engine.begin();
            let mut after = notes.current();
            let number = notes.versions.len().to_string();
            put(&mut transaction, notes.trees[0], NUMBER_KEY, &number);
            after[0].insert(Bytes::from(NUMBER_KEY), Bytes::from(number));
            transaction.commit(Durability::Synced).unwrap();
            notes.versions.push(after);
        }
    }
    notes.acknowledged = notes.versions.len() - 1;
    (disk.kill(), notes)
}

/// Returns where the records of a segment end that an opening has read: the marks say so, one of
/// which is the last of the file.
fn end_of_records(bytes: &[u8]) -> usize {
    const MARK_BYTES: usize = 48;
    const OFFSET_SYNCED: usize = 32;
    let mark = &bytes[bytes.len() - MARK_BYTES..];
    let end = mark[OFFSET_SYNCED..].first_chunk().expect("a mark is longer");
    usize::try_from(u64::from_le_bytes(*end)).expect("a short file")
}

fn segment_names() -> Vec<String> {
    (1..=11).map(|number| format!("log-{number:010}")).collect()
}

#[test]
fn flipped_bits_of_the_log_are_damage_or_turned_back_never_data() {
    let (mut disk, notes) = disk_with_segments();
    let mut random = Random::new(12);
    let names = segment_names();
    let contents: Vec<Vec<u8>> = names.iter().map(|name| disk.contents(name).unwrap()).collect();
    for (name, bytes) in names.iter().zip(&contents) {
        for _ in 0..60 {
            let bit = random.below(bytes.len() * 8);
            disk.flip_bit(name, bit as u64);
            match open(&disk, quiet()) {
                Err(EngineError::Store(StoreError::Damaged { file, .. })) => {
                    assert!(file.starts_with("log-"), "{file}");
                }
                Err(EngineError::Store(StoreError::Version { file, .. })) => assert!(file == *name),
                Err(error) => panic!("{name}: {error}"),
                Ok(engine) => {
                    let is_behind = end_of_records(bytes) <= bit / 8;
                    assert!(*name == names[10] || is_behind, "only the newest is turned back");
                    check(&engine, &notes);
                }
            }
            disk = disk.kill();
            // An opening cuts and marks the last one.
            names.iter().zip(&contents).for_each(|(name, bytes)| disk.set_contents(name, bytes));
        }
    }
    check(&open(&disk, quiet()).unwrap(), &notes);
}

#[test]
fn a_missing_or_shortened_segment_is_damage() {
    let (mut disk, notes) = disk_with_segments();
    let names = segment_names();
    for name in &names[..10] {
        let bytes = disk.contents(name).unwrap();
        // Without its marks a segment that another follows is whole.
        for end in (0..end_of_records(&bytes)).step_by(8) {
            disk.set_contents(name, &bytes[..end]);
            let error = open(&disk, quiet()).err().unwrap();
            assert!(
                matches!(error, EngineError::Store(StoreError::Damaged { .. })),
                "{name} of {end} bytes: {error}"
            );
            disk = disk.kill();
        }
        disk.remove(name).unwrap();
        let error = open(&disk, quiet()).err().unwrap();
        assert!(error.to_string().contains("missing"), "{name}: {error}");
        disk = disk.kill();
        disk.set_contents(name, &bytes);
    }
    check(&open(&disk, quiet()).unwrap(), &notes);
}

#[test]
fn folding_goes_on_by_itself_once_there_is_room() {
    let disk = SimDisk::new(21);
    let options = EngineOptions { memtable_bytes_max: 3_000, ..quiet() };
    let engine = open(&disk, options).unwrap();
    let mut notes = Notes { trees: make_trees(&engine, 1).unwrap(), ..Notes::default() };
    notes.versions = vec![vec![Content::new(); 1]];
    let mut random = Random::new(22);
    disk.fill_after(20_000);
    let refused = loop {
        let count = notes.versions.len();
        if let Err(error) = transact(&engine, &mut random, &mut notes) {
            notes.versions.truncate(count);
            break error;
        }
    };
    assert!(is_full(&refused), "{refused}");
    check_relaxed(&engine, &notes);
    disk.make_room();
    let tried = std::time::Instant::now();
    loop {
        let count = notes.versions.len();
        let Err(error) = transact(&engine, &mut random, &mut notes) else { break };
        notes.versions.truncate(count);
        assert!(is_full(&error) && tried.elapsed().as_secs() < 200, "{error}");
        std::thread::yield_now();
    }
    while engine.counters().memtable_bytes > 3_000 {
        assert!(tried.elapsed().as_secs() < 200, "nothing was folded");
        std::thread::yield_now();
    }
    check_relaxed(&engine, &notes);
    engine.close().unwrap();
    drop(engine);
    check_relaxed(&open(&disk.crash(), quiet()).unwrap(), &notes);
}

/// Chunks that lie in the store only, put by a writer that didn't sync them: a value is one of
/// them, or its chunk refers to one.
#[test]
fn references_of_a_record_are_durable_before_it() {
    for_seeds(20, |mut random| {
        let disk = SimDisk::new(random.next());
        let engine = open(&disk, quiet()).unwrap();
        let tree = make_trees(&engine, 1).unwrap()[0];
        let below = Chunk::new(ChunkKind::Blob, &[], b"put, not synced");
        let head = Chunk::new(ChunkKind::Blob, &[below.hash()], b"head");
        let mut transaction = engine.begin();
        engine.store().put_many(std::slice::from_ref(&below)).unwrap();
        match random.one_in(2) {
            true => engine.store().put_many(std::slice::from_ref(&head)).unwrap(),
            false => transaction.put_chunks(std::slice::from_ref(&head)),
        }
        let value = Place::Chunk { hash: head.hash(), bytes: 4 };
        transaction.put(tree, Bytes::from("a"), Value { flags: 0, content: value }).unwrap();
        transaction.commit(Durability::Synced).unwrap();
        let engine = open(&disk.crash(), quiet()).unwrap();
        let found = engine.snapshot().get(tree, b"a").unwrap().unwrap();
        assert_eq!(&engine.snapshot().read(&found).unwrap()[..], b"head");
        engine.store().get(below.hash()).unwrap();
    });
}
