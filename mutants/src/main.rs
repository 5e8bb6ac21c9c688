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
//!    its time ([`limit`]). A mutant that no test reaches survives, of course.
//!
//! Numbers mean the same as long as the code (tests aside) and the seed do: `--only 3,17` runs
//! those again after tests were written.
//!
//! A survivor costs all tests that reach it. So with `--quick 5` tests that take longer than five
//! seconds wait: what survives the others is tried once more, `--only` those and with all tests.
//! Times are the processors', which a busy machine changes little. Tests of random histories run
//! once where the environment says `FROND_SEED=1`: a first round may do with that.

mod places;

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use places::{NUMBER, Place};

const USAGE: &str = "usage: cargo xtask mutants --crate NAME [--under PATH] [--count 200] \
    [--seed N] [--also CRATE]... [--tests PART_OF_NAME]... [--quick SECONDS] [--only NUMBER,...] \
    [--copy DIRECTORY]";
/// Appended to the crate's `lib.rs`.
const SWITCH: &str = r#"
mod mutant {
    use std::io::Write;
    use std::sync::LazyLock;
    use std::sync::atomic::{AtomicBool, Ordering};

    struct Chosen {
        number: usize,
        reached: Option<std::fs::File>,
    }

    static CHOSEN: LazyLock<Chosen> = LazyLock::new(|| Chosen {
        number: std::env::var("FROND_MUTANT").map_or(usize::MAX, |number| number.parse().unwrap()),
        reached: std::env::var("FROND_MUTANTS_REACHED")
            .ok()
            .map(|path| std::fs::File::options().append(true).create(true).open(path).unwrap()),
    });
    static SEEN: [AtomicBool; COUNT] = [const { AtomicBool::new(false) }; COUNT];

    pub fn is(number: usize) -> bool {
        let chosen = &*CHOSEN;
        if let Some(mut file) = chosen.reached.as_ref()
            && !SEEN[number].swap(true, Ordering::Relaxed)
        {
            file.write_all(format!("{number}\n").as_bytes()).unwrap();
        }
        chosen.number == number
    }
}
"#;

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
}

struct Mutant {
    file: PathBuf,
    place: Place,
}

struct Test {
    program: PathBuf,
    name: String,
    took: Duration,
    reaches: HashSet<usize>,
}

fn main() -> Result<()> {
    let options = options()?;
    println!("seed {}", options.seed);
    let built_before = options.copy.clone();
    let copy =
        built_before.unwrap_or_else(|| options.root.join("target/mutants").join(&options.name));
    let mutants = shuffled(candidates(&options, &copied(&options.root, &copy)?)?, options.seed);
    let (chosen, programs) = built(&options, &copy, &mutants)?;
    println!("{} of {} mutants chosen", chosen.len(), mutants.len());
    let package = copy.join("crates").join(&options.name);
    let mut tests = measured(&options, &programs, &package)?;
    tests.sort_by_key(|test| test.took);
    let mut survived = 0;
    for number in &chosen {
        let Mutant { file, place } = &mutants[*number];
        let reaching: Vec<_> = tests.iter().filter(|test| test.reaches.contains(number)).collect();
        let variable = ("FROND_MUTANT", number.to_string());
        let mut killed = reaching.iter().filter_map(|test| kills(test, &variable, &package));
        let fate = killed.next().unwrap_or_else(|| {
            survived += 1;
            format!("SURVIVED {} tests", reaching.len())
        });
        println!("{number} {}:{}: {}: {fate}", file.display(), place.line, place.change);
    }
    println!("{} killed, {survived} survived", chosen.len() - survived);
    Ok(())
}

fn options() -> Result<Options> {
    let mut arguments = std::env::args().skip(1);
    let since = SystemTime::UNIX_EPOCH.elapsed()?.as_secs();
    let mut options = Options { count: 200, seed: since, ..Options::default() };
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

/// Copies the workspace; what hasn't changed stays, and so does what was built of it.
fn copied(root: &Path, copy: &Path) -> Result<Vec<PathBuf>> {
    let mut list = Command::new("git");
    list.args(["ls-files", "--cached", "--others", "--exclude-standard"]).current_dir(root);
    let listed = String::from_utf8(list.output()?.stdout)?;
    let files: Vec<_> =
        listed.lines().map(PathBuf::from).filter(|path| root.join(path).is_file()).collect();
    for path in &files {
        write(&copy.join(path), &fs::read(root.join(path))?)?;
    }
    Ok(files)
}

fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    if !fs::read(path).is_ok_and(|present| present == bytes) {
        fs::create_dir_all(path.parent().ok_or("a path without a folder")?)?;
        fs::write(path, bytes)?;
    }
    Ok(())
}

fn candidates(options: &Options, files: &[PathBuf]) -> Result<Vec<Mutant>> {
    let source = Path::new("crates").join(&options.name).join("src");
    let is_left_out = |file: &Path| {
        file.components().any(|part| {
            let part = part.as_os_str();
            ["tests", "tests.rs", "counters.rs", "statistics.rs"].iter().any(|one| part == *one)
        })
    };
    let is_asked = |file: &Path| {
        let is_under = file.starts_with(&options.under) || file.with_extension("") == options.under;
        file.extension().is_some_and(|suffix| suffix == "rs") && is_under && !is_left_out(file)
    };
    let mut mutants = Vec::new();
    for file in files.iter().filter(|file| file.starts_with(&source) && is_asked(file)) {
        let places = places::places(&fs::read_to_string(options.root.join(file))?)
            .map_err(|error| format!("{}: {error}", file.display()))?;
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

/// Builds the tests with as many mutants as were asked for; returns their numbers, and programs.
fn built(options: &Options, copy: &Path, mutants: &[Mutant]) -> Result<(Vec<usize>, Vec<PathBuf>)> {
    let mut rejected = HashSet::new();
    loop {
        let chosen = chosen(options, mutants, &rejected);
        let places = rewrite(options, copy, mutants, &chosen)?;
        let mut build = Command::new("cargo");
        build.args(["test", "--no-run", "--profile", "checked", "--message-format", "short"]);
        for name in [&options.name].into_iter().chain(&options.also) {
            build.args(["--package", &format!("frond-{name}")]);
        }
        build.current_dir(copy);
        // Not the workspace's own: cargo would take what is built here for what is built there.
        build.env("CARGO_TARGET_DIR", copy.join("target"));
        let output = build.output()?;
        let messages = String::from_utf8(output.stderr)?;
        if output.status.success() {
            let lines = messages.lines().filter(|line| line.trim().starts_with("Executable"));
            let paths = lines.filter_map(|line| line.trim_end_matches(')').rsplit('(').next());
            return Ok((chosen, paths.map(|path| copy.join(path)).collect()));
        }
        let before = rejected.len();
        // The mutant in which a message's position is, or else the one before it.
        for line in messages.lines().filter(|line| line.contains(": error")) {
            let mut parts = line.split(':');
            let (Some(file), Some(row), Some(column)) = (parts.next(), parts.next(), parts.next())
            else {
                continue;
            };
            let at: (usize, usize) = (row.parse()?, column.parse()?);
            let of_file = places.get(Path::new(file)).ok_or_else(|| line.to_owned())?;
            let number = of_file.range(..=at).next_back().ok_or_else(|| line.to_owned())?.1;
            if rejected.insert(*number) {
                println!("doesn't compile: {number}: {}", mutants[*number].place.change);
            }
        }
        if rejected.len() == before {
            return Err(messages.into());
        }
    }
}

/// The first that can be chosen: none within another or beside it.
fn chosen(options: &Options, mutants: &[Mutant], rejected: &HashSet<usize>) -> Vec<usize> {
    let mut chosen: Vec<usize> = Vec::new();
    for (number, Mutant { file, place }) in mutants.iter().enumerate() {
        let is_apart = |other: &usize| {
            let other = &mutants[*other];
            let (theirs, ours) = (&other.place.bytes, &place.bytes);
            *file != other.file || theirs.end < ours.start || ours.end < theirs.start
        };
        let is_asked = options.only.is_empty() || options.only.contains(&number);
        if is_asked && !rejected.contains(&number) && chosen.iter().all(is_apart) {
            chosen.push(number);
        }
        if chosen.len() == options.count {
            break;
        }
    }
    chosen
}

/// Where a mutant begins in a file of the copy (line and column, from 1), and its number.
type Starts = BTreeMap<(usize, usize), usize>;

/// Writes the crate's files with the chosen mutants, and those without any as they are.
fn rewrite(
    options: &Options,
    copy: &Path,
    mutants: &[Mutant],
    chosen: &[usize],
) -> Result<BTreeMap<PathBuf, Starts>> {
    let library = Path::new("crates").join(&options.name).join("src/lib.rs");
    let mut files: BTreeMap<&Path, Vec<usize>> = BTreeMap::from([(&*library, Vec::new())]);
    files.extend(mutants.iter().map(|mutant| (&*mutant.file, Vec::new())));
    for number in chosen {
        files.entry(&mutants[*number].file).or_default().push(*number);
    }
    let mut places = BTreeMap::new();
    for (file, mut numbers) in files {
        let text = fs::read_to_string(options.root.join(file))?;
        numbers.sort_by_key(|number| mutants[*number].place.bytes.start);
        let (mut rewritten, mut starts, mut done) = (String::new(), Starts::new(), 0);
        for number in numbers {
            let place = &mutants[number].place;
            rewritten.push_str(&text[done..place.bytes.start]);
            let column = rewritten.chars().rev().take_while(|one| *one != '\n').count() + 1;
            starts.insert((rewritten.matches('\n').count() + 1, column), number);
            rewritten.push_str(&place.replacement.replace(NUMBER, &number.to_string()));
            done = place.bytes.end;
        }
        rewritten.push_str(&text[done..]);
        if file == library {
            rewritten.push_str(&SWITCH.replace("COUNT", &mutants.len().to_string()));
        }
        write(&copy.join(file), rewritten.as_bytes())?;
        places.insert(file.to_owned(), starts);
    }
    Ok(places)
}

/// Runs each test that was asked for without a mutant.
fn measured(options: &Options, programs: &[PathBuf], package: &Path) -> Result<Vec<Test>> {
    let mut tests = Vec::new();
    for program in programs {
        let listed = Command::new(program).args(["--list", "--format", "terse"]).output()?.stdout;
        for line in String::from_utf8(listed)?.lines() {
            let Some(name) = line.strip_suffix(": test") else { continue };
            if !options.tests.is_empty() && !options.tests.iter().any(|part| name.contains(part)) {
                continue;
            }
            let list = package.join("reached");
            fs::write(&list, "")?;
            let variable = ("FROND_MUTANTS_REACHED", list.display().to_string());
            let hour = Duration::from_secs(3600);
            let Ran { end, took } = run(program, name, hour, package, &variable);
            let reached = fs::read_to_string(list)?;
            let reaches: HashSet<usize> = reached.lines().flat_map(str::parse).collect();
            if end != End::Passed {
                println!("fails without a mutant, left out: {name}");
            } else if options.quick.is_some_and(|quick| quick < took) {
                println!("takes {} s, left out: {name}", took.as_secs());
            } else if !reaches.is_empty() {
                tests.push(Test { program: program.clone(), name: name.to_owned(), took, reaches });
            }
        }
    }
    println!("{} tests reach a mutant", tests.len());
    Ok(tests)
}

/// How a test kills a mutant, if it does. One that waits may exceed its time on a busy machine
/// without one, too.
fn kills(test: &Test, variable: &(&str, String), package: &Path) -> Option<String> {
    let mut limit = limit(test);
    loop {
        let ran = run(&test.program, &test.name, limit, package, variable);
        if ran.end != End::Late {
            return (ran.end == End::Failed).then(|| format!("killed by {}", test.name));
        }
        let none = ("FROND_MUTANT", usize::MAX.to_string());
        if run(&test.program, &test.name, limit / 2, package, &none).end == End::Passed {
            return Some(format!("killed by the time of {}", test.name));
        }
        limit *= 2;
    }
}

/// How long a test may take with a mutant: so long that only what hangs takes longer.
fn limit(test: &Test) -> Duration {
    (test.took * 8).max(Duration::from_secs(20))
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

/// Runs a test. It has memory and files of a few GB, a folder, so much of the processors' time, and
/// four times as long in all: others may use them, too.
fn run(
    program: &Path,
    name: &str,
    limit: Duration,
    package: &Path,
    variable: &(&str, String),
) -> Ran {
    let scratch = package.join("scratch");
    let limits = "ulimit -v 16000000; ulimit -f 4000000; ulimit -t \"$1\"; shift; \
                  timeout -s KILL \"$@\" >/dev/null 2>&1; end=$?; times; exit $end";
    let seconds = |limit: Duration| limit.as_secs().to_string();
    let mut test = Command::new("nice");
    test.args(["-n", "10", "sh", "-c", limits, "sh", &seconds(limit), &seconds(limit * 4)]);
    test.arg(program).args(["--exact", name]).current_dir(package).env(variable.0, &variable.1);
    test.env("TMPDIR", &scratch).env("FROND_SEED_FROM", "0").env("RUST_BACKTRACE", "0");
    test.stdin(Stdio::null()).stderr(Stdio::null());
    // What a killed test left behind is no concern of the next.
    let _ = fs::remove_dir_all(&scratch);
    let output = match fs::create_dir_all(&scratch).and_then(|()| test.output()) {
        Ok(output) => output,
        Err(error) => panic!("{}: {error}", program.display()),
    };
    let end = match output.status.code() {
        Some(0) => End::Passed,
        // As a shell tells of SIGKILL and SIGXCPU.
        Some(137 | 152) => End::Late,
        _ => End::Failed,
    };
    Ran { end, took: children_took(&String::from_utf8_lossy(&output.stdout)) }
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
