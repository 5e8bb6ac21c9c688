//! Tests run one by one, some at once, each in a process with so much of the processors' time.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use crate::{Options, Result};

/// No test has less time than this with a mutant.
const LIMIT_MIN: Duration = Duration::from_secs(6);
/// How often a test that exceeds its time without a mutant, too, gets twice as much.
const DOUBLED_MAX: usize = 3;

pub struct Test {
    program: PathBuf,
    pub name: String,
    pub took: Duration,
    pub reaches: HashSet<usize>,
}

/// What tests found of a mutant.
pub enum Fate {
    Killed(String),
    Survived,
    /// Not killed, but this test exceeded its time with the mutant and without.
    Undecided(String),
}

/// Where one test runs at a time.
struct Place {
    package: PathBuf,
    scratch: PathBuf,
}

/// Does `work` for each of `items`, `jobs` of them at once.
pub fn at_once<T: Sync>(jobs: usize, items: &[T], work: impl Fn(usize, &T) + Sync) {
    let next = AtomicUsize::new(0);
    let (next, work) = (&next, &work);
    thread::scope(|scope| {
        for job in 0..jobs {
            scope.spawn(move || {
                while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
                    work(job, item);
                }
            });
        }
    });
}

/// Runs each test that was asked for without a mutant.
pub fn measured(options: &Options, programs: &[PathBuf], package: &Path) -> Result<Vec<Test>> {
    let mut selected = Vec::new();
    for program in programs {
        let listed = Command::new(program).args(["--list", "--format", "terse"]).output()?.stdout;
        let listed = String::from_utf8(listed)?;
        let names = listed.lines().filter_map(|line| line.strip_suffix(": test"));
        let is_selected = |name: &&str| {
            options.tests.is_empty() || options.tests.iter().any(|part| name.contains(part))
        };
        selected.extend(names.filter(is_selected).map(|name| (program.clone(), name.to_owned())));
    }
    let tests = std::sync::Mutex::new(Vec::new());
    at_once(options.jobs, &selected, |job, (program, name)| {
        let mut test = Test {
            program: program.clone(),
            name: name.clone(),
            took: Duration::ZERO,
            reaches: HashSet::new(),
        };
        match test.measure(options.quick, &Place::new(package, job)) {
            End::Passed if test.reaches.is_empty() => {}
            End::Passed => tests.lock().expect("no other panicked").push(test),
            End::Failed => println!("fails without a mutant, left out: {name}"),
            End::Late => println!("takes too long, left out: {name}"),
        }
    });
    let mut tests = tests.into_inner()?;
    tests.sort_by_key(|test| test.took);
    Ok(tests)
}

impl Test {
    /// Finds how long it takes, at most `limit`, and which mutants it reaches.
    fn measure(&mut self, limit: Option<Duration>, place: &Place) -> End {
        let list = place.scratch.with_extension("reached");
        let _ = fs::remove_file(&list);
        let variable = ("FROND_MUTANTS_REACHED", list.display().to_string());
        let Ran { end, took } =
            self.run(limit.unwrap_or(Duration::from_secs(3600)), place, &variable);
        let reached = fs::read_to_string(list).unwrap_or_default();
        self.reaches = reached.lines().flat_map(str::parse).collect();
        self.took = took;
        if limit.is_some_and(|limit| limit < took) { End::Late } else { end }
    }

    /// How it kills a mutant, if it does. One that waits may exceed its time on a busy machine
    /// without one, too.
    fn kills(&self, mutant: usize, place: &Place) -> Fate {
        let number = |number: usize| ("FROND_MUTANT", number.to_string());
        let mut limit = (self.took * 8).max(LIMIT_MIN);
        for _ in 0..=DOUBLED_MAX {
            match self.run(limit, place, &number(mutant)).end {
                End::Passed => return Fate::Survived,
                End::Failed => return Fate::Killed(format!("by {}", self.name)),
                End::Late => {}
            }
            if self.run(limit / 2, place, &number(usize::MAX)).end == End::Passed {
                return Fate::Killed(format!("by the time of {}", self.name));
            }
            limit *= 2;
        }
        Fate::Undecided(self.name.clone())
    }

    /// Runs it. It has memory and files of a few GB, a folder, so much of the processors' time, and
    /// four times as long in all: others may use them, too.
    fn run(&self, limit: Duration, place: &Place, variable: &(&str, String)) -> Ran {
        let limits = "ulimit -v 16000000; ulimit -f 4000000; ulimit -t \"$1\"; shift; \
                      timeout -s KILL \"$@\" >/dev/null 2>&1; end=$?; times; exit $end";
        let seconds = |limit: Duration| limit.as_secs().max(1).to_string();
        let mut test = Command::new("nice");
        test.args(["-n", "10", "sh", "-c", limits, "sh", &seconds(limit), &seconds(limit * 4)]);
        test.arg(&self.program).args(["--exact", &self.name]).current_dir(&place.package);
        test.env(variable.0, &variable.1).env("TMPDIR", &place.scratch);
        test.env("FROND_SEED_FROM", "0").env("RUST_BACKTRACE", "0");
        test.stdin(Stdio::null()).stderr(Stdio::null());
        // What a killed test left behind is no concern of the next.
        let _ = fs::remove_dir_all(&place.scratch);
        let output = match fs::create_dir_all(&place.scratch).and_then(|()| test.output()) {
            Ok(output) => output,
            Err(error) => panic!("{}: {error}", self.program.display()),
        };
        let end = match output.status.code() {
            Some(0) => End::Passed,
            // As a shell tells of SIGKILL and SIGXCPU.
            Some(137 | 152) => End::Late,
            _ => End::Failed,
        };
        Ran { end, took: children_took(&String::from_utf8_lossy(&output.stdout)) }
    }
}

/// What the tests that reach a mutant find of it, the quickest first, until one kills it.
pub fn fate(tests: &[&Test], mutant: usize, package: &Path, job: usize) -> Fate {
    let mut fate = Fate::Survived;
    for test in tests {
        match test.kills(mutant, &Place::new(package, job)) {
            Fate::Survived => {}
            Fate::Undecided(test) => fate = Fate::Undecided(test),
            killed @ Fate::Killed(_) => return killed,
        }
    }
    fate
}

impl Place {
    fn new(package: &Path, job: usize) -> Place {
        let scratch = package.join(format!("scratch-{job}"));
        Place { package: package.to_owned(), scratch }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Passed,
    Failed,
    Late,
}

/// How a test ended, and how much of the processors' time it took.
struct Ran {
    end: End,
    took: Duration,
}

/// What the second line of `times` tells: the children's time, as `0m1.25s 0m0.50s`.
fn children_took(times: &str) -> Duration {
    let seconds = |text: &str| {
        let (minutes, seconds) = text.trim_end_matches('s').split_once('m')?;
        Some(minutes.parse::<f64>().ok()? * 60.0 + seconds.parse::<f64>().ok()?)
    };
    let line = times.lines().nth(1).unwrap_or_default();
    Duration::from_secs_f64(line.split_whitespace().filter_map(seconds).sum())
}
