//! Mutation testing with one build (mutant schemata: Untch, Offutt, Harrold 1993).
//!
//! 1. The workspace is copied to `target/mutants/CRATE`, or to what `--copy` says: what was built
//!    there serves. Files that are equal stay as they are.
//! 2. Some of the crate's [`places`] are chosen by a seed, none within another. Each is rewritten
//!    there, so that `FROND_MUTANT=17` does the one with that number. What doesn't compile is
//!    replaced by the next of the list, until all does.
//! 3. Each test runs once, alone, without a mutant: how long it takes, and which mutants it
//!    reaches.
//! 4. For each mutant, the tests that reach it run, the quickest first, until one fails or exceeds
//!    its time. Some mutants at once (`--jobs`). A mutant that no test reaches survives, of course.
//!
//! Numbers mean the same as long as the code (tests aside) and the seed do: `--only 3,17` runs
//! those again after tests were written.
//!
//! A survivor costs all tests that reach it. So with `--quick 5` tests that take longer than five
//! seconds wait: what survives the others is tried once more, `--only` those and with all tests.
//! Times are the processors', which a busy machine changes little. Tests of random histories run
//! once where the environment says `FROND_SEED=1`: a first round may do with that.

mod places;
mod schemata;
mod trials;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, SystemTime};

use places::Place;
use trials::Fate;

const USAGE: &str = "usage: cargo xtask mutants --crate NAME [--under PATH] [--count 200] \
    [--seed N] [--also CRATE]... [--tests PART_OF_NAME]... [--quick SECONDS] [--only NUMBER,...] \
    [--jobs COUNT] [--copy DIRECTORY]";

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

#[derive(Default)]
struct Options {
    root: PathBuf,
    name: String,
    copy: Option<PathBuf>,
    under: PathBuf,
    count: usize,
    seed: u64,
    also: Vec<String>,
    tests: Vec<String>,
    quick: Option<Duration>,
    only: Vec<usize>,
    /// How many tests run at once.
    jobs: usize,
}

/// The crate's files as they were when the run began: they may change meanwhile.
type Sources = Vec<(PathBuf, String)>;

struct Mutant {
    file: PathBuf,
    place: Place,
}

fn main() -> Result<()> {
    let options = options()?;
    println!("seed {}", options.seed);
    let copy = match &options.copy {
        Some(copy) => copy.clone(),
        None => options.root.join("target/mutants").join(&options.name),
    };
    let sources = schemata::copied(&options, &copy)?;
    let mutants = shuffled(candidates(&options, &sources)?, options.seed);
    let (chosen, programs) = schemata::built(&options, &copy, &sources, &mutants)?;
    println!("{} of {} mutants chosen", chosen.len(), mutants.len());
    let package = copy.join("crates").join(&options.name);
    let tests = trials::measured(&options, &programs, &package)?;
    println!("{} tests reach a mutant", tests.len());
    let counts: [AtomicUsize; 3] = Default::default();
    trials::at_once(options.jobs, &chosen, |job, number| {
        let reaching: Vec<_> = tests.iter().filter(|test| test.reaches.contains(number)).collect();
        let (count, fate) = match trials::fate(&reaching, *number, &package, job) {
            Fate::Killed(how) => (0, format!("killed {how}")),
            Fate::Survived => (1, format!("SURVIVED {} tests", reaching.len())),
            Fate::Undecided(test) => (2, format!("UNDECIDED: {test} takes too long without it")),
        };
        counts[count].fetch_add(1, Ordering::Relaxed);
        let Mutant { file, place } = &mutants[*number];
        println!("{number} {}:{}: {}: {fate}", file.display(), place.line, place.change);
    });
    let [killed, survived, undecided] = counts.map(AtomicUsize::into_inner);
    println!("{killed} killed, {survived} survived, {undecided} undecided");
    Ok(())
}

fn options() -> Result<Options> {
    let mut arguments = std::env::args().skip(1);
    let since = SystemTime::UNIX_EPOCH.elapsed()?.as_secs();
    let jobs = thread::available_parallelism()?.get();
    let mut options = Options { count: 200, seed: since, jobs, ..Options::default() };
    options.root = fs::canonicalize(arguments.next().ok_or(USAGE)?)?;
    while let Some(option) = arguments.next() {
        let value = arguments.next().ok_or(USAGE)?;
        match &*option {
            "--crate" => options.name = value,
            "--copy" => options.copy = Some(std::path::absolute(value)?),
            "--under" => options.under = value.into(),
            "--count" => options.count = value.parse()?,
            "--seed" => options.seed = value.parse()?,
            "--also" => options.also.push(value),
            "--tests" => options.tests.push(value),
            "--jobs" => options.jobs = value.parse()?,
            "--quick" => options.quick = Some(Duration::from_secs(value.parse()?)),
            "--only" => {
                options.only =
                    value.split(',').map(str::parse).collect::<std::result::Result<_, _>>()?;
            }
            _ => return Err(USAGE.into()),
        }
    }
    if options.name.is_empty() { Err(USAGE.into()) } else { Ok(options) }
}

fn candidates(options: &Options, sources: &Sources) -> Result<Vec<Mutant>> {
    let is_left_out = |file: &Path| {
        file.components().any(|part| {
            let part = part.as_os_str();
            ["tests", "tests.rs", "counters.rs", "statistics.rs"].iter().any(|one| part == *one)
        })
    };
    let is_asked = |file: &Path| {
        let is_under = file.starts_with(&options.under) || file.with_extension("") == options.under;
        is_under && !is_left_out(file)
    };
    let mut mutants = Vec::new();
    for (file, text) in sources.iter().filter(|(file, _)| is_asked(file)) {
        let places =
            places::places(text).map_err(|error| format!("{}: {error}", file.display()))?;
        mutants.extend(places.into_iter().map(|place| Mutant { file: file.clone(), place }));
    }
    Ok(mutants)
}

/// SplitMix64 (Steele, Lea, Flood 2014) and the shuffle of Fisher and Yates.
fn shuffled(mut mutants: Vec<Mutant>, mut state: u64) -> Vec<Mutant> {
    for position in (1..mutants.len()).rev() {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mutants.swap(position, ((mixed ^ (mixed >> 31)) % (position as u64 + 1)) as usize);
    }
    mutants
}
