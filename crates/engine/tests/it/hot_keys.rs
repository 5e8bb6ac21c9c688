//! Goal: transactions that see queued commits (`Engine::begin_ahead`) lose no update, find no half
//! of another, and tell nothing that isn't there after a crash, whatever fails when. Method:
//! threads move amounts between few accounts, each having read all of them; the disk fills and is
//! emptied again, then a write or a sync fails, or the power; by seeds.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use frond_engine::{Durability, Engine, EngineError, EngineOptions, Transaction, TreeId};
use frond_testkit::random::for_seeds;
use frond_testkit::{Random, SimDisk};

use crate::rig::{get, make_trees, open, put, quiet};

const WORKERS: u64 = 5;
const ACCOUNTS: usize = 4;
const TOTAL: i64 = 100 * ACCOUNTS as i64;
/// Moves that a worker tries.
const MOVES: usize = 40;
/// Numbers have leading zeros, so that the log grows.
const DIGITS: usize = 100;

/// The answers that clients got.
struct Acknowledged {
    /// The number of moves that each worker has made: these are durable.
    moves: Vec<AtomicU64>,
    /// The number of times the disk was full.
    refused: AtomicU64,
}

/// The share of a worker's commits that wait for no sync: one in so many. Data that were seen of
/// them may be lost, so where there are some, only the answers of a synced commit count.
type RelaxedOneIn = Option<usize>;

fn account(position: usize) -> String {
    format!("account {position}")
}

fn moves(worker: u64) -> String {
    format!("moves of {worker}")
}

fn read(transaction: &Transaction, tree: TreeId, key: &str) -> Result<i64, EngineError> {
    let Some(value) = transaction.get(tree, key.as_bytes())? else { return Ok(0) };
    let bytes = transaction.read(&value)?;
    Ok(std::str::from_utf8(&bytes).unwrap().parse().unwrap())
}

fn write(
    transaction: &mut Transaction,
    tree: TreeId,
    key: &str,
    number: i64,
) -> Result<(), EngineError> {
    let value = frond_tree::Value::inline(format!("{number:0DIGITS$}"));
    transaction.put(tree, bytes::Bytes::from(key.to_owned()), value)
}

/// A statement: moves an amount, or looks how many moves a worker has made.
fn run(
    transaction: &mut Transaction,
    trees: &[TreeId],
    worker: u64,
    random: &mut Random,
) -> Result<Option<(u64, u64)>, EngineError> {
    let place = |position: usize| (trees[position % trees.len()], account(position));
    let mut amounts = Vec::new();
    for position in 0..ACCOUNTS {
        let (tree, key) = place(position);
        amounts.push(read(transaction, tree, &key)?);
    }
    assert_eq!(amounts.iter().sum::<i64>(), TOTAL, "half of a transaction");
    if random.one_in(4) {
        let other = random.below(WORKERS as usize) as u64;
        return Ok(Some((other, read(transaction, trees[0], &moves(other))? as u64)));
    }
    let (from, to) = (random.below(ACCOUNTS), random.below(ACCOUNTS));
    amounts[from] -= 7;
    amounts[to] += 7;
    for position in [from, to] {
        let (tree, key) = place(position);
        write(transaction, tree, &key, amounts[position])?;
    }
    let made = read(transaction, trees[0], &moves(worker))? + 1;
    write(transaction, trees[0], &moves(worker), made)?;
    Ok(None)
}

/// Works until the engine is closed, or all moves are tried.
fn work(
    (engine, trees): (&Engine, &[TreeId]),
    worker: u64,
    relaxed: RelaxedOneIn,
    acknowledged: &Acknowledged,
    mut random: Random,
) {
    for _ in 0..MOVES {
        let mut transaction = engine.begin_ahead();
        let done = loop {
            match run(&mut transaction, trees, worker, &mut random) {
                Ok(None) => {
                    let made = read(&transaction, trees[0], &moves(worker)).unwrap() as u64;
                    let is_relaxed = relaxed.is_some_and(|count| random.one_in(count));
                    let durability =
                        if is_relaxed { Durability::Relaxed } else { Durability::Synced };
                    let committed = transaction.commit(durability);
                    break committed.map(|_| (!is_relaxed).then_some((worker, made)));
                }
                Ok(Some(seen)) if random.one_in(2) => {
                    break transaction.end().map(|()| relaxed.is_none().then_some(seen));
                }
                Ok(Some(seen)) => {
                    break transaction.commit(Durability::Synced).map(|_| Some(seen));
                }
                Err(EngineError::Conflict { .. }) => {
                    let blocked = transaction.blocked();
                    let has_its_turn = blocked.is_none_or(|wait| {
                        while !wait.wait(Duration::from_secs(1)) {}
                        transaction.unblock()
                    });
                    if has_its_turn {
                        transaction.restart_ahead();
                    } else {
                        drop(transaction);
                        transaction = engine.begin_ahead();
                    }
                }
                Err(error) => break Err(error),
            }
        };
        match done {
            Ok(Some((of, made))) => {
                acknowledged.moves[of as usize].fetch_max(made, Ordering::SeqCst);
            }
            Ok(None) | Err(EngineError::Withdrawn | EngineError::Conflict { .. }) => {}
            Err(error) if error.is_full() => {
                acknowledged.refused.fetch_add(1, Ordering::SeqCst);
            }
            Err(_) => return,
        }
    }
}

fn sum(engine: &Engine, trees: &[TreeId]) -> i64 {
    let snapshot = engine.snapshot();
    let amount =
        |position: usize| get(&snapshot, trees[position % trees.len()], &account(position));
    (0..ACCOUNTS).map(|position| amount(position).unwrap().parse::<i64>().unwrap()).sum()
}

/// The failure at the end.
#[derive(Clone, Copy, Debug)]
enum Failure {
    Write,
    Sync,
    Power,
    None,
}

#[test]
fn whatever_fails_no_half_is_seen_and_nothing_acknowledged_is_lost() {
    for_seeds(60, |mut random| {
        let disk = SimDisk::new(random.next());
        let options = EngineOptions { relaxed_sync_millis: 1, ..quiet() };
        let engine = open(&disk, options).unwrap();
        let trees = make_trees(&engine, 2).unwrap();
        let mut setup = engine.begin();
        for position in 0..ACCOUNTS {
            put(&mut setup, trees[position % trees.len()], &account(position), "100");
        }
        setup.commit(Durability::Synced).unwrap();
        let none = (0..WORKERS).map(|_| AtomicU64::new(0)).collect();
        let acknowledged = Acknowledged { moves: none, refused: AtomicU64::new(0) };
        let is_over = AtomicBool::new(false);
        let relaxed = random.one_in(2).then_some(4);
        let failure =
            *random.choose(&[Failure::Write, Failure::Sync, Failure::Power, Failure::None]);
        thread::scope(|scope| {
            let (engine, trees, acknowledged) = (&engine, &trees[..], &acknowledged);
            let workers: Vec<_> = (0..WORKERS)
                .map(|worker| {
                    let random = Random::new(random.next());
                    scope
                        .spawn(move || work((engine, trees), worker, relaxed, acknowledged, random))
                })
                .collect();
            let is_over = &is_over;
            scope.spawn(move || {
                while !is_over.load(Ordering::SeqCst) {
                    assert_eq!(sum(engine, trees), TOTAL, "a reader saw half");
                    thread::yield_now();
                }
            });
            let is_done = || workers.iter().all(|worker| worker.is_finished());
            for _ in 0..random.below(6) {
                let before = acknowledged.refused.load(Ordering::SeqCst);
                disk.fill_after(random.below(12_000) as u64);
                while acknowledged.refused.load(Ordering::SeqCst) == before && !is_done() {
                    thread::yield_now();
                }
                disk.make_room();
            }
            match failure {
                Failure::Write => disk.fail_write_after(random.below(20) as u64),
                Failure::Sync => disk.fail_sync_after(random.below(20) as u64),
                Failure::Power => disk.crash_after(random.below(60) as u64),
                Failure::None => {}
            }
            while !is_done() {
                thread::yield_now();
            }
            is_over.store(true, Ordering::SeqCst);
        });
        let disk = disk.crash();
        drop(engine);
        let engine = open(&disk, quiet()).unwrap();
        engine.check().unwrap();
        assert_eq!(sum(&engine, &trees), TOTAL, "half of a transaction survived");
        let snapshot = engine.snapshot();
        for (worker, acknowledged) in acknowledged.moves.iter().enumerate() {
            let found = get(&snapshot, trees[0], &moves(worker as u64));
            let found = found.map_or(0, |text| text.parse::<u64>().unwrap());
            let acknowledged = acknowledged.load(Ordering::SeqCst);
            assert!(
                acknowledged <= found,
                "{acknowledged} moves of {worker} were told, {found} survived"
            );
        }
    });
}
