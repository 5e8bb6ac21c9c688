//! Finds which files of a crate import which, from their text.
//!
//! 1. Comments, strings and tests are taken out.
//! 2. Each `use` is flattened into paths; outside of them each path that begins with `crate`,
//!    `super`, `self` or the name of a child module is one.
//! 3. A path is followed through modules; where it ends at a name that the module only passes on
//!    (`use` of it), it is followed from there. The file that it ends in is imported.
//!
//! A module that passes on what its children have (`pub use child::Name`) doesn't import them by
//! that.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::documentation::of_product;

/// The number of modules that pass a name on through which it is followed.
const PASSES_MAX: usize = 8;

/// A crate's files and the imports between them.
pub struct Crate {
    /// Paths relative to `src`, sorted.
    pub files: Vec<PathBuf>,
    /// Pairs of positions in `files`: (importing, imported).
    pub imports: BTreeSet<(usize, usize)>,
    /// Files, by their positions, and what stands behind `crate::` in them.
    pub named: BTreeSet<(usize, String)>,
}

/// A module of one file.
struct Module {
    path: Vec<String>,
    uses: Vec<Use>,
    /// Paths outside of `use`.
    paths: Vec<Vec<String>>,
}

struct Use {
    path: Vec<String>,
    name: String,
    is_public: bool,
}

impl Crate {
    /// Reads a crate's files, paths relative to its `src` with their texts.
    pub fn read(mut files: Vec<(PathBuf, String)>) -> Self {
        let tests: Vec<PathBuf> = files.iter().flat_map(|(path, text)| tests(path, text)).collect();
        files.retain(|(path, _)| {
            !tests.iter().any(|test| path.with_extension("").starts_with(test))
        });
        files.sort();
        let modules: Vec<Module> = files.iter().map(|(path, text)| module(path, text)).collect();
        let by_path: BTreeMap<&[String], usize> =
            modules.iter().enumerate().map(|(at, module)| (&module.path[..], at)).collect();
        let (mut imports, mut named) = (BTreeSet::new(), BTreeSet::new());
        for (at, module) in modules.iter().enumerate() {
            let uses = module.uses.iter().map(|one| (&one.path, one.is_public));
            let paths = module.paths.iter().map(|path| (path, false));
            for (path, is_public) in uses.chain(paths) {
                if let [first, name, ..] = &path[..]
                    && first == "crate"
                {
                    named.insert((at, name.clone()));
                }
                let Some(target) = resolve(&modules, &by_path, at, path, 0) else { continue };
                let is_child = modules[target].path.starts_with(&module.path);
                if target != at && !(is_public && is_child) {
                    imports.insert((at, target));
                }
            }
        }
        Self { files: files.into_iter().map(|(path, _)| path).collect(), imports, named }
    }

    /// Groups of files that import each other, directly or through others, the largest first.
    pub fn rings(&self) -> Vec<Vec<&Path>> {
        let count = self.files.len();
        let mut reaches = vec![BTreeSet::new(); count];
        for (start, reached) in reaches.iter_mut().enumerate() {
            let mut open = vec![start];
            while let Some(at) = open.pop() {
                let next = self.imports.range((at, 0)..(at + 1, 0)).map(|pair| pair.1);
                open.extend(next.filter(|next| reached.insert(*next)));
            }
        }
        let mut rings: Vec<Vec<&Path>> = Vec::new();
        for at in 0..count {
            let ring = reaches[at].iter().copied().filter(|other| reaches[*other].contains(&at));
            let ring: Vec<usize> = ring.collect();
            if ring.first() == Some(&at) && ring.len() > 1 {
                rings.push(ring.into_iter().map(|one| &*self.files[one]).collect());
            }
        }
        rings.sort_by_key(|ring| std::cmp::Reverse(ring.len()));
        rings
    }
}

/// The modules of a file that are compiled for tests only, as paths without an extension.
fn tests(file: &Path, text: &str) -> Vec<PathBuf> {
    let folder = folder(file);
    let declared = text.split("#[cfg(test)]\nmod ").skip(1);
    let names = declared.filter_map(|rest| rest.split_once(';').map(|(name, _)| name));
    names.filter(|name| name.bytes().all(is_name)).map(|name| folder.join(name)).collect()
}

/// Returns where a module's children are.
fn folder(file: &Path) -> PathBuf {
    let path = file.with_extension("");
    let is_root = ["lib", "main", "mod"].iter().any(|name| path.ends_with(name));
    if is_root { path.parent().unwrap_or(&path).to_owned() } else { path }
}

fn module(file: &Path, text: &str) -> Module {
    let path = folder(file).iter().map(|part| part.to_string_lossy().into_owned()).collect();
    // The visibility of an item names no import.
    let code = bare(text).replace("pub(in crate::", "pub(");
    let code = of_product(&code);
    let (mut uses, mut rest) = (Vec::new(), String::new());
    let mut statements = code;
    while let Some(begin) = find_word(statements, "use") {
        let (before, from) = statements.split_at(begin);
        let (tree, after) = from["use".len()..].split_once(';').unwrap_or((from, ""));
        let is_public = before.trim_end().ends_with(['b', ')']);
        flatten(tree, &mut Vec::new(), is_public, &mut uses);
        rest.push_str(before);
        statements = after;
    }
    rest.push_str(statements);
    Module { path, uses, paths: paths(&rest) }
}

/// The text without comments, and with empty strings; its lines keep their numbers.
pub fn bare(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(next) = rest.find(['/', '"', '\'']) {
        out.push_str(&rest[..next]);
        rest = &rest[next..];
        if rest.starts_with("//") {
            rest = rest.find('\n').map_or("", |end| &rest[end..]);
        } else if rest.starts_with('"') {
            let end = string_end(out.as_bytes(), &rest[1..]);
            let newlines = rest[..=end].matches('\n').count();
            out.push_str("\"\"");
            out.extend(std::iter::repeat_n('\n', newlines));
            rest = &rest[1 + end..];
        } else {
            // A quoted character is at most an escape; anything else is a lifetime.
            let quoted = ["'\"'", "'\\\"'", "'/'"].iter().find(|one| rest.starts_with(**one));
            let taken = quoted.map_or(1, |one| one.len());
            out.push_str(if taken == 1 { &rest[..1] } else { "''" });
            rest = &rest[taken..];
        }
    }
    out.push_str(rest);
    out
}

/// Returns where a string ends (behind its quotes) that begins before `rest`; raw strings end at as
/// many `#` as they began with.
fn string_end(before: &[u8], rest: &str) -> usize {
    let hashes = before.iter().rev().take_while(|byte| **byte == b'#').count();
    if before[..before.len() - hashes].ends_with(b"r") {
        let close = format!("\"{}", "#".repeat(hashes));
        return rest.find(&close).map_or(rest.len(), |end| end + close.len());
    }
    let mut escaped = false;
    for (at, byte) in rest.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn find_word(text: &str, word: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    text.match_indices(word).map(|(at, _)| at).find(|at| {
        let after = at + word.len();
        (*at == 0 || !is_name(bytes[at - 1])) && bytes.get(after).is_some_and(|byte| *byte == b' ')
    })
}

/// Adds each path of a `use`'s tree to `uses`.
fn flatten(tree: &str, prefix: &mut Vec<String>, is_public: bool, uses: &mut Vec<Use>) {
    let tree = tree.trim();
    let depth = prefix.len();
    let (path, group) = match tree.split_once('{') {
        Some((path, group)) => (path, Some(group.trim_end().trim_end_matches('}'))),
        None => (tree, None),
    };
    let (path, name) = path.split_once(" as ").unwrap_or((path, ""));
    let parts = path.split("::").map(str::trim).filter(|part| !part.is_empty());
    prefix.extend(parts.map(str::to_owned));
    if let Some(group) = group {
        let (mut begin, mut open) = (0, 0);
        for (at, byte) in group.bytes().enumerate() {
            match byte {
                b'{' => open += 1,
                b'}' => open -= 1,
                b',' if open == 0 => {
                    flatten(&group[begin..at], prefix, is_public, uses);
                    begin = at + 1;
                }
                _ => {}
            }
        }
        flatten(&group[begin..], prefix, is_public, uses);
    } else if prefix.len() > depth {
        let mut path = prefix.clone();
        if path.last().is_some_and(|last| last == "self") {
            path.pop();
        }
        let name = if name.is_empty() {
            path.last().cloned().unwrap_or_default()
        } else {
            name.trim().to_owned()
        };
        uses.push(Use { path, name, is_public });
    }
    prefix.truncate(depth);
}

/// The paths of at least two parts in `code`.
fn paths(code: &str) -> Vec<Vec<String>> {
    let words =
        code.split(|char: char| !char.is_ascii_alphanumeric() && char != '_' && char != ':');
    let paths = words.filter(|word| word.contains("::"));
    paths
        .map(|word| word.split("::").map(|part| part.trim_matches(':').to_owned()).collect())
        .filter(|path: &Vec<String>| path.iter().all(|part| !part.is_empty()))
        .collect()
}

/// The module in which a path ends that stands in the module at `at`; `None` if it leads out of the
/// crate.
fn resolve(
    modules: &[Module],
    by_path: &BTreeMap<&[String], usize>,
    at: usize,
    path: &[String],
    passes: usize,
) -> Option<usize> {
    let mut place = modules[at].path.clone();
    let mut parts = path.iter();
    let first = parts.next()?;
    match first.as_str() {
        "crate" => place.clear(),
        "self" => {}
        "super" => {
            place.pop();
        }
        name => {
            place.push(name.to_owned());
            by_path.get(&place[..])?;
        }
    }
    let mut found = *by_path.get(&place[..])?;
    for part in parts {
        if part == "super" {
            place.pop();
        } else {
            place.push(part.clone());
        }
        match by_path.get(&place[..]) {
            Some(next) => found = *next,
            None => {
                let passed = modules[found].uses.iter().find(|one| one.name == *part);
                return match passed {
                    Some(passed) if passes < PASSES_MAX => {
                        resolve(modules, by_path, found, &passed.path, passes + 1)
                    }
                    _ => Some(found),
                };
            }
        }
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn imports_are_read_behind_a_module_of_tests_and_not_from_visibility() {
        let files = [
            ("lib.rs", "mod a;\nmod b;\nmod c;"),
            ("a.rs", "mod one;\n#[cfg(test)]\nmod tests;\nuse crate::b::B;\n"),
            ("a/one.rs", "pub(in crate::a) fn f() {}"),
            ("a/tests.rs", "use crate::c::C;"),
            ("b.rs", "pub struct B;\n#[cfg(test)]\nmod tests {\n    use crate::c::C;\n}\n"),
            ("c.rs", "fn f() { crate::b::f(\"crate::a::f\") } // crate::a::f"),
        ];
        let files = files.map(|(path, text)| (PathBuf::from(path), text.to_owned()));
        let read = Crate::read(files.to_vec());
        let shown = |at: usize| read.files[at].display().to_string();
        let imports: Vec<_> =
            read.imports.iter().map(|(from, to)| (shown(*from), shown(*to))).collect();
        let expected = [("a.rs", "b.rs"), ("c.rs", "b.rs")];
        assert_eq!(imports, expected.map(|(from, to)| (from.to_owned(), to.to_owned())));
    }
}
