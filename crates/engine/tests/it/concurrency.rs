//! Many threads: no lost update, no half of a transaction, one sync for many commits.

use std::cell::Cell;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use frond_engine::{Durability, Engine, EngineError, EngineOptions, TreeId};
use frond_store::io::{Disk, DiskFile, Machine};
use frond_store::memory::MemoryStore;
use frond_testkit::random::for_seeds;
use frond_testkit::{Random, SimDisk};

use crate::rig::{content, get, make_trees, open, put, quiet};

const THREADS: u64 = 8;

/// Memtables so small that folding runs all the time.
fn busy() -> EngineOptions {
    EngineOptions { memtable_bytes_max: 20_000, relaxed_sync_millis: 5, ..EngineOptions::default() }
}

/// Runs `change` in transactions until one commits.
fn retry(engine: &Engine, durability: Durability, change: impl Fn(&mut frond_engine::Transaction)) {
    loop {
        let mut transaction = engine.begin();
        change(&mut transaction);
        match transaction.commit(durability) {
            Ok(_) => return,
            Err(EngineError::Conflict { .. }) => thread::yield_now(),
            Err(error) => panic!("{error}"),
        }
    }
}

fn number(transaction: &frond_engine::Transaction, tree: TreeId, key: &str) -> i64 {
    let value = transaction.get(tree, key.as_bytes()).unwrap();
    value.map_or(0, |value| {
        let bytes = transaction.read(&value).unwrap();
        String::from_utf8(bytes.to_vec()).unwrap().parse().unwrap()
    })
}

#[test]
fn concurrent_counters_lose_no_update() {
    let disk = SimDisk::new(1);
    let engine = open(&disk, busy()).unwrap();
    let trees = make_trees(&engine, 3).unwrap();
    let progress = 60;
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (engine, trees) = (&engine, &trees);
            scope.spawn(move || {
                let mut random = Random::fresh();
                for _ in 0..progress {
                    let tree = *random.choose(trees);
                    let key = format!("{}", random.below(5));
                    let relaxed = random.one_in(3);
                    let durability = if relaxed { Durability::Relaxed } else { Durability::Synced };
                    retry(engine, durability, |transaction| {
                        let count = number(transaction, tree, &key) + 1;
                        put(transaction, tree, &key, &count.to_string());
                        let total = number(transaction, trees[0], &format!("of {thread}")) + 1;
                        put(transaction, trees[0], &format!("of {thread}"), &total.to_string());
                    });
                }
            });
        }
        let (engine, trees) = (&engine, &trees);
        scope.spawn(move || {
            for _ in 0..30 {
                engine.fold(&engine.snapshot(), trees).unwrap();
                thread::yield_now();
            }
        });
    });
    let check = |engine: &Engine| {
        let snapshot = engine.snapshot();
        let mut sum = 0;
        for tree in &trees {
            content(&snapshot, *tree);
            let keys = (0..5).filter_map(|key| get(&snapshot, *tree, &key.to_string()));
            sum += keys.map(|text| text.parse::<u64>().unwrap()).sum::<u64>();
        }
        assert_eq!(sum, THREADS * progress);
    };
    check(&engine);
    engine.check().unwrap();
    engine.close().unwrap();
    drop(engine);
    check(&open(&disk.crash(), quiet()).unwrap());
}

#[test]
fn a_reader_sees_all_of_a_transaction_or_nothing() {
    let engine = open(&SimDisk::new(2), busy()).unwrap();
    let trees = make_trees(&engine, 3).unwrap();
    let accounts = 12;
    let mut setup = engine.begin();
    for tree in &trees {
        (0..accounts).for_each(|account| put(&mut setup, *tree, &format!("{account:02}"), "100"));
    }
    setup.commit(Durability::Synced).unwrap();
    let total = 100 * accounts * trees.len() as i64;
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let (engine, trees, stop) = (&engine, &trees, &stop);
        let readers: Vec<_> = (0..3)
            .map(|reader| {
                scope.spawn(move || {
                    // A reader that begins late reads once.
                    let mut is_last = false;
                    while !is_last {
                        is_last = stop.load(Ordering::Relaxed);
                        let snapshot = engine.snapshot();
                        if reader == 0 {
                            engine.fold(&snapshot, trees).unwrap();
                        }
                        let sum: i64 = trees
                            .iter()
                            .flat_map(|tree| content(&snapshot, *tree).into_values())
                            .map(|text| {
                                String::from_utf8(text.to_vec()).unwrap().parse::<i64>().unwrap()
                            })
                            .sum();
                        assert_eq!(sum, total);
                    }
                })
            })
            .collect();
        let writers: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(move || {
                    let mut random = Random::fresh();
                    for _ in 0..150 {
                        let mut place =
                            || (*random.choose(trees), format!("{:02}", random.below(12)));
                        let (from, to) = (place(), place());
                        retry(engine, Durability::Synced, |transaction| {
                            let amount = number(transaction, from.0, &from.1) - 7;
                            put(transaction, from.0, &from.1, &amount.to_string());
                            let amount = number(transaction, to.0, &to.1) + 7;
                            put(transaction, to.0, &to.1, &amount.to_string());
                        });
                    }
                })
            })
            .collect();
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        stop.store(true, Ordering::Relaxed);
        for reader in readers {
            reader.join().unwrap();
        }
    });
    engine.checkpoint().unwrap();
    engine.check().unwrap();
}

#[test]
fn commits_share_syncs_when_syncing_is_slow() {
    let machine = SimDisk::new(3).machine();
    static CROWD: Crowd = Crowd::new();
    let disk = SlowDisk::new(&machine, |_| CROWD.wait());
    let syncs = Arc::clone(&disk.syncs);
    let machine = Machine { disk: Arc::new(disk), ..machine };
    let engine = Engine::open_over(&machine, MemoryStore::new(), quiet()).unwrap();
    let trees = make_trees(&engine, 1).unwrap();
    let before = (engine.counters(), syncs.load(Ordering::Relaxed));
    let progress = 25;
    CROWD.expect(THREADS);
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (engine, tree) = (&engine, trees[0]);
            scope.spawn(move || {
                for round in 0..progress {
                    let mut transaction = engine.begin();
                    put(&mut transaction, tree, &format!("{thread} {round}"), "x");
                    CROWD.within(|| transaction.commit(Durability::Synced)).unwrap();
                }
                CROWD.leave();
            });
        }
    });
    let after = engine.counters();
    let commits = after.commits - before.0.commits;
    let log_syncs = after.log_syncs - before.0.log_syncs;
    assert_eq!(commits, THREADS * progress);
    assert_eq!(log_syncs, syncs.load(Ordering::Relaxed) - before.1);
    assert!(log_syncs < commits, "{commits} commits, {log_syncs} syncs");
    assert_eq!(content(&engine.snapshot(), trees[0]).len() as u64, commits);
}

/// A leader hands over after four groups, however many form meanwhile. Counted are the syncs that a
/// thread makes itself: how many pass before a thread that was woken gets a processor is no matter
/// of the engine.
#[test]
fn no_thread_leads_group_after_group() {
    let machine = SimDisk::new(8).machine();
    let disk = SlowDisk::new(&machine, |_| 2_000);
    let machine = Machine { disk: Arc::new(disk), ..machine };
    let engine = Engine::open_over(&machine, MemoryStore::new(), quiet()).unwrap();
    let tree = make_trees(&engine, 1).unwrap()[0];
    let progress = 40;
    let most = AtomicU64::new(0);
    thread::scope(|scope| {
        for thread in 0..2 * THREADS {
            let (engine, most) = (&engine, &most);
            scope.spawn(move || {
                let mut random = Random::fresh();
                for round in 0..progress {
                    // So that in every sync some are queued.
                    thread::sleep(Duration::from_micros(random.below(3_000) as u64));
                    let mut transaction = engine.begin();
                    put(&mut transaction, tree, &format!("{thread} {round}"), "x");
                    let before = OWN_SYNCS.get();
                    transaction.commit(Durability::Synced).unwrap();
                    most.fetch_max(OWN_SYNCS.get() - before, Ordering::Relaxed);
                }
            });
        }
    });
    let most = most.into_inner();
    assert!((1..=4).contains(&most), "a commit led {most} groups");
}

#[test]
fn a_failed_sync_among_many_threads_wakes_all_and_loses_nothing_acknowledged() {
    for_seeds(40, |mut random| {
        let simulated = SimDisk::new(random.next());
        let machine = simulated.machine();
        let disk = SlowDisk::new(&machine, |before| before * 7_919 % 1_500);
        let machine = Machine { disk: Arc::new(disk), ..machine };
        let engine = Engine::open(&machine, quiet()).unwrap();
        let trees = make_trees(&engine, 2).unwrap();
        simulated.fail_sync_after(random.below(60) as u64);
        let acknowledged = work_until_it_fails(&engine, &trees, THREADS);
        let mut late = engine.begin();
        put(&mut late, trees[0], "late", "x");
        assert!(matches!(late.commit(Durability::Relaxed), Err(EngineError::Closed(_))));
        drop(engine);
        check_acknowledged(&simulated.crash(), quiet(), &trees, &acknowledged);
    });
}

#[test]
fn blind_writes_of_one_key_never_conflict_and_share_syncs() {
    let simulated = SimDisk::new(6);
    let machine = simulated.machine();
    static CROWD: Crowd = Crowd::new();
    let disk = SlowDisk::new(&machine, |_| CROWD.wait());
    let machine = Machine { disk: Arc::new(disk), ..machine };
    let engine = Engine::open(&machine, quiet()).unwrap();
    let tree = make_trees(&engine, 1).unwrap()[0];
    let before = engine.counters();
    let progress = 25;
    CROWD.expect(THREADS);
    let last = thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                let engine = &engine;
                scope.spawn(move || {
                    let mut random = Random::fresh();
                    let commits = (0..progress).map(|round| {
                        let mut transaction = engine.begin();
                        let text = format!("{thread} {round}");
                        put(&mut transaction, tree, "hot", &text);
                        let relaxed = random.one_in(5);
                        let durability =
                            if relaxed { Durability::Relaxed } else { Durability::Synced };
                        (CROWD.within(|| transaction.commit(durability)).unwrap(), text)
                    });
                    let last = commits.max().unwrap();
                    CROWD.leave();
                    last
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).max().unwrap()
    });
    let after = engine.counters();
    assert_eq!(after.conflicts, before.conflicts);
    let commits = after.commits - before.commits;
    let log_syncs = after.log_syncs - before.log_syncs;
    assert_eq!(commits, THREADS * progress);
    assert!(log_syncs < commits, "{commits} commits, {log_syncs} syncs");
    assert_eq!(get(&engine.snapshot(), tree, "hot").as_ref(), Some(&last.1));
    engine.check().unwrap();
    engine.close().unwrap();
    drop(engine);
    let engine = open(&simulated.crash(), quiet()).unwrap();
    assert_eq!(get(&engine.snapshot(), tree, "hot").as_ref(), Some(&last.1));
}

#[test]
fn relaxed_commits_are_synced_at_the_interval() {
    let disk = SimDisk::new(4);
    let options = EngineOptions { relaxed_sync_millis: 1, ..EngineOptions::default() };
    let engine = open(&disk, options).unwrap();
    let mut last = 0;
    for round in 0..5 {
        let syncs = engine.counters().log_syncs;
        let mut transaction = engine.begin();
        put(&mut transaction, TreeId::SYSTEM, "round", &round.to_string());
        transaction.commit(Durability::Relaxed).unwrap();
        assert_eq!(get(&engine.snapshot(), TreeId::SYSTEM, "round"), Some(round.to_string()));
        while engine.counters().log_syncs == syncs {
            thread::yield_now();
        }
        last = round;
    }
    let engine = open(&disk.crash(), quiet()).unwrap();
    assert_eq!(get(&engine.snapshot(), TreeId::SYSTEM, "round"), Some(last.to_string()));
}

/// A transaction that finds that nothing is to be changed gets its answer once the data it read are
/// on the disk.
#[test]
fn a_synced_commit_without_writes_syncs_what_it_could_read() {
    let disk = SimDisk::new(6);
    let engine = open(&disk, quiet()).unwrap();
    // The first after an opening is synced anyway.
    for durability in [Durability::Synced, Durability::Relaxed] {
        let mut transaction = engine.begin();
        put(&mut transaction, TreeId::SYSTEM, "key", &format!("{durability:?}"));
        transaction.commit(durability).unwrap();
    }
    let syncs = || engine.counters().log_syncs;
    let before = syncs();
    engine.begin().commit(Durability::Relaxed).unwrap();
    assert_eq!(syncs(), before);
    for _ in 0..2 {
        engine.begin().commit(Durability::Synced).unwrap();
        assert_eq!(syncs(), before + 1);
    }
    let engine = open(&disk.crash(), quiet()).unwrap();
    assert_eq!(get(&engine.snapshot(), TreeId::SYSTEM, "key").as_deref(), Some("Relaxed"));
}

#[test]
fn writers_outrun_folding_without_losing_anything() {
    let disk = SimDisk::new(5);
    let options = EngineOptions { memtable_bytes_max: 4_000, ..quiet() };
    let engine = open(&disk, options).unwrap();
    let trees = make_trees(&engine, 2).unwrap();
    for round in 0..600 {
        let mut transaction = engine.begin();
        put(&mut transaction, trees[round % 2], &format!("{round:04}"), "0123456789");
        transaction.commit(Durability::Relaxed).unwrap();
    }
    let check = |engine: &Engine| {
        let snapshot = engine.snapshot();
        assert_eq!(trees.iter().map(|tree| content(&snapshot, *tree).len()).sum::<usize>(), 600);
        engine.check().unwrap();
    };
    check(&engine);
    engine.close().unwrap();
    check(&open(&disk.crash(), options).unwrap());
}

#[test]
fn a_power_cut_among_many_threads_takes_nothing_acknowledged() {
    for_seeds(60, |mut random| {
        let disk = SimDisk::new(random.next());
        let options = EngineOptions { memtable_bytes_max: 2_500, ..busy() };
        let engine = open(&disk, options).unwrap();
        let trees = make_trees(&engine, 2).unwrap();
        disk.crash_after(random.below(200) as u64);
        let acknowledged = work_until_it_fails(&engine, &trees, 4);
        let disk = disk.crash();
        drop(engine);
        check_acknowledged(&disk, options, &trees, &acknowledged);
    });
}

/// Has threads work, and returns what each was acknowledged last.
fn work_until_it_fails(engine: &Engine, trees: &[TreeId], threads: u64) -> Vec<u64> {
    thread::scope(|scope| {
        let work = |worker| scope.spawn(move || work_until_the_power_fails(engine, trees, worker));
        let workers: Vec<_> = (0..threads).map(work).collect();
        workers.into_iter().map(|worker| worker.join().unwrap()).collect()
    })
}

/// Checks that nothing acknowledged is lost, and nothing is there by half.
fn check_acknowledged(disk: &SimDisk, options: EngineOptions, trees: &[TreeId], counts: &[u64]) {
    let engine = open(disk, options).unwrap();
    engine.check().unwrap();
    let snapshot = engine.snapshot();
    for (worker, acknowledged) in counts.iter().enumerate() {
        let found = trees.iter().map(|tree| get(&snapshot, *tree, &worker.to_string()));
        let found: Vec<u64> =
            found.map(|text| text.map_or(0, |text| text.parse().unwrap())).collect();
        assert_eq!(found[0], found[1], "half of a transaction");
        assert!(*acknowledged <= found[0], "{found:?}, {acknowledged} acknowledged");
    }
}

/// Counts in both trees, and returns the last count that was acknowledged as synced.
fn work_until_the_power_fails(engine: &Engine, trees: &[TreeId], worker: u64) -> u64 {
    let mut random = Random::fresh();
    let mut acknowledged = 0;
    for count in 1.. {
        let mut transaction = engine.begin();
        for tree in trees {
            put(&mut transaction, *tree, &worker.to_string(), &count.to_string());
        }
        let relaxed = random.one_in(3);
        let durability = if relaxed { Durability::Relaxed } else { Durability::Synced };
        match transaction.commit(durability) {
            Ok(_) if relaxed => {}
            Ok(_) => acknowledged = count,
            Err(_) => break,
        }
        if worker == 0 && random.one_in(4) && engine.fold(&engine.snapshot(), &trees[..1]).is_err()
        {
            break;
        }
    }
    acknowledged
}

thread_local! {
    /// Syncs of files that this thread made on a [`SlowDisk`].
    static OWN_SYNCS: Cell<u64> = const { Cell::new(0) };
}

/// A disk whose syncs take long, as on a real one.
struct SlowDisk {
    disk: Arc<dyn Disk>,
    syncs: Arc<AtomicU64>,
    micros: Micros,
}

/// Threads that commit. A sync that waits for it goes on once all of them are in a commit or done,
/// however slow the machine is: so commits are queued behind every sync but the last ones.
struct Crowd {
    present: AtomicU64,
    committing: AtomicU64,
}

impl Crowd {
    const fn new() -> Crowd {
        Crowd { present: AtomicU64::new(0), committing: AtomicU64::new(0) }
    }

    fn expect(&self, threads: u64) {
        self.present.store(threads, Ordering::SeqCst);
    }

    fn leave(&self) {
        self.present.fetch_sub(1, Ordering::SeqCst);
    }

    fn within<T>(&self, commit: impl FnOnce() -> T) -> T {
        self.committing.fetch_add(1, Ordering::SeqCst);
        let done = commit();
        self.committing.fetch_sub(1, Ordering::SeqCst);
        done
    }

    /// Waits, and says that the sync takes no longer.
    fn wait(&self) -> u64 {
        while self.committing.load(Ordering::SeqCst) < self.present.load(Ordering::SeqCst) {
            thread::yield_now();
        }
        0
    }
}

/// The time that a sync takes, by the number of those begun before it.
type Micros = fn(u64) -> u64;

struct SlowFile {
    file: Arc<dyn DiskFile>,
    syncs: Arc<AtomicU64>,
    micros: Micros,
}

impl SlowDisk {
    fn new(machine: &Machine, micros: Micros) -> SlowDisk {
        SlowDisk { disk: Arc::clone(&machine.disk), syncs: Arc::default(), micros }
    }

    fn slow(&self, file: Arc<dyn DiskFile>) -> Arc<dyn DiskFile> {
        Arc::new(SlowFile { file, syncs: Arc::clone(&self.syncs), micros: self.micros })
    }
}

impl Disk for SlowDisk {
    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        self.disk.create(name).map(|file| self.slow(file))
    }
    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        self.disk.open(name).map(|file| self.slow(file))
    }
    fn list(&self) -> io::Result<Vec<String>> {
        self.disk.list()
    }
    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.disk.rename(from, to)
    }
    fn remove(&self, name: &str) -> io::Result<()> {
        self.disk.remove(name)
    }
    fn sync_directory(&self) -> io::Result<()> {
        self.disk.sync_directory()
    }
    fn lock(&self) -> io::Result<()> {
        self.disk.lock()
    }
    fn unlock(&self) {
        self.disk.unlock();
    }
}

impl DiskFile for SlowFile {
    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(offset, buffer)
    }
    fn write_all_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(offset, bytes)
    }
    fn sync(&self) -> io::Result<()> {
        let before = self.syncs.fetch_add(1, Ordering::Relaxed);
        OWN_SYNCS.set(OWN_SYNCS.get() + 1);
        thread::sleep(Duration::from_micros((self.micros)(before)));
        self.file.sync()
    }
    fn set_bytes(&self, bytes: u64) -> io::Result<()> {
        self.file.set_bytes(bytes)
    }
    fn bytes(&self) -> io::Result<u64> {
        self.file.bytes()
    }
}
