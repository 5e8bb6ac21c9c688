//! The copy of the workspace in which the chosen mutants are built, all into one crate.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::places::NUMBER;
use crate::{Mutant, Options, Result, Sources};

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

/// Copies the workspace; what hasn't changed stays, and so does what was built of it. Returns what
/// isn't copied: the crate's own files, which [`built`] writes.
pub fn copied(options: &Options, copy: &Path) -> Result<Sources> {
    let root = &options.root;
    let source = Path::new("crates").join(&options.name).join("src");
    let is_source = |path: &Path| {
        path.starts_with(&source) && path.extension().is_some_and(|suffix| suffix == "rs")
    };
    let mut list = Command::new("git");
    list.args(["ls-files", "--cached", "--others", "--exclude-standard"]).current_dir(root);
    let listed = String::from_utf8(list.output()?.stdout)?;
    let mut sources = Sources::new();
    for path in listed.lines().map(PathBuf::from).filter(|path| root.join(path).is_file()) {
        if is_source(&path) {
            let text = fs::read_to_string(root.join(&path))?;
            sources.push((path, text));
        } else {
            write(&copy.join(&path), &fs::read(root.join(&path))?)?;
        }
    }
    Ok(sources)
}

fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    if !fs::read(path).is_ok_and(|present| present == bytes) {
        fs::create_dir_all(path.parent().ok_or("a path without a folder")?)?;
        fs::write(path, bytes)?;
    }
    Ok(())
}

/// Builds the tests with as many mutants as were asked for; returns their numbers, and programs.
pub fn built(
    options: &Options,
    copy: &Path,
    sources: &Sources,
    mutants: &[Mutant],
) -> Result<(Vec<usize>, Vec<PathBuf>)> {
    let mut rejected = HashSet::new();
    loop {
        let chosen = chosen(options, mutants, &rejected);
        let places = rewrite(options, copy, sources, mutants, &chosen)?;
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
    sources: &Sources,
    mutants: &[Mutant],
    chosen: &[usize],
) -> Result<BTreeMap<PathBuf, Starts>> {
    let library = Path::new("crates").join(&options.name).join("src/lib.rs");
    let mut numbers_of: BTreeMap<&Path, Vec<usize>> = BTreeMap::new();
    for number in chosen {
        numbers_of.entry(&mutants[*number].file).or_default().push(*number);
    }
    let mut places = BTreeMap::new();
    for (file, text) in sources {
        let mut numbers = numbers_of.remove(&**file).unwrap_or_default();
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
        if *file == library {
            rewritten.push_str(&SWITCH.replace("COUNT", &mutants.len().to_string()));
        }
        write(&copy.join(file), rewritten.as_bytes())?;
        places.insert(file.to_owned(), starts);
    }
    Ok(places)
}
