//! Patterns, compiled in bounded memory.
//!
//! 1. A pattern is compiled within the least of [`SIZES`] that it fits, so that it is known about
//!    what it takes: its automata, what they remember while they search, and the table of a pattern
//!    with groups.
//! 2. What was compiled lately is kept for the next request, up to [`CACHE_BYTES_MAX`] in all.
//! 3. A filter compiles and holds a pattern from its first use on, and charges it to its request;
//!    parsing it only tells whether it is one ([`is_plain`]). Whether to go on is asked before each
//!    is compiled.
//! 4. Only what a pattern that looks around or refers back needs is searched by trying, up to a
//!    limit: beyond it the search is an error. Whether to go on is asked before each such search.

use std::sync::{Arc, OnceLock};

use fancy_regex::{CompileError, Error, Regex, RegexBuilder};
use quick_cache::Weighter;
use quick_cache::sync::Cache;

use crate::error::QueryError;
use crate::memory::{Charge, RequestMemory};

/// How large an automaton may be; the last is the engine's own limit.
const SIZES: [usize; 7] = [8 << 10, 32 << 10, 128 << 10, 512 << 10, 2 << 20, 5 << 20, 10 << 20];
/// What a search remembers of an automaton's states at most.
const SEARCH_BYTES_MAX: usize = 128 << 10;
/// The table of a pattern with groups, at most.
const TABLE_BYTES_MAX: usize = 1 << 20;
/// Instructions of a pattern that is searched by trying.
const PROGRAM_MAX: usize = 1 << 16;
/// What is kept of patterns that were compiled lately.
const CACHE_BYTES_MAX: u64 = 8 << 20;
/// The engine reads a large class of letters (`\w`) as so many bytes of ranges, before it compiles
/// them.
const CLASS_BYTES: usize = 16 << 10;
/// What may be read so at once.
const READ_BYTES_MAX: usize = 32 << 20;
/// What matches a plain pattern may be as short.
const PLAIN_BYTES_MAX: usize = 64 << 10;
/// Units of work of a search that tries.
const TRYING_UNITS: usize = 1 << 13;
/// Units of work of any other, and so many bytes that are searched are one.
const SEARCH_UNITS: usize = 8;
const BYTES_OF_UNIT: usize = 16;

/// A pattern, compiled.
#[derive(Debug)]
pub(crate) struct Compiled {
    regex: Regex,
    /// About what it takes at most.
    bytes: usize,
    may_try: bool,
}

impl Compiled {
    /// The pattern, to search `text` once. Counts that as work.
    ///
    /// # Errors
    /// What the request is to fail with, if it is to stop.
    pub(crate) fn to_search(
        &self,
        text: &str,
        memory: &RequestMemory,
    ) -> Result<&Regex, QueryError> {
        let units = if self.may_try { TRYING_UNITS } else { SEARCH_UNITS };
        memory.work(units + text.len() / BYTES_OF_UNIT)?;
        Ok(&self.regex)
    }

    /// Charges it to a request.
    ///
    /// # Errors
    /// `ExceededMemoryLimit`.
    pub(crate) fn charge(&self, memory: &RequestMemory) -> Result<Charge, QueryError> {
        memory.charge_of(self.bytes)
    }
}

#[derive(Clone)]
struct ByBytes;

impl Weighter<String, Arc<Compiled>> for ByBytes {
    fn weight(&self, source: &String, compiled: &Arc<Compiled>) -> u64 {
        (source.len() + compiled.bytes) as u64
    }
}

/// Those that were compiled lately.
fn cache() -> &'static Cache<String, Arc<Compiled>, ByBytes> {
    static CACHE: OnceLock<Cache<String, Arc<Compiled>, ByBytes>> = OnceLock::new();
    CACHE.get_or_init(|| Cache::with_weighter(64, CACHE_BYTES_MAX, ByBytes))
}

/// Whether a pattern is one that every engine knows, and isn't surely too large, so that it needn't
/// be compiled to find out.
pub(crate) fn is_plain(source: &str) -> bool {
    let is_small = |hir: regex_syntax::hir::Hir| {
        hir.properties().minimum_len().is_none_or(|bytes| bytes <= PLAIN_BYTES_MAX)
    };
    may_be_read(source) && regex_syntax::parse(source).is_ok_and(is_small)
}

/// Whether reading a pattern takes no more than it may.
fn may_be_read(source: &str) -> bool {
    let classes: usize =
        ["\\w", "\\W", "\\p", "\\P"].iter().map(|class| source.matches(class).count()).sum();
    classes.saturating_mul(CLASS_BYTES) <= READ_BYTES_MAX
}

/// Compiles a pattern, unless that was done lately.
///
/// # Errors
/// Why it is no pattern, or one that takes too much.
pub(crate) fn compile(source: &str) -> Result<Arc<Compiled>, String> {
    if let Some(compiled) = cache().get(source) {
        return Ok(compiled);
    }
    if !may_be_read(source) {
        return Err("regular expression is too large".to_owned());
    }
    let mut last = Err(String::new());
    for size in SIZES {
        let built = RegexBuilder::new(source)
            .delegate_size_limit(size)
            .delegate_dfa_size_limit(SEARCH_BYTES_MAX)
            .max_prog_size(PROGRAM_MAX)
            .build();
        match built {
            Ok(regex) => {
                last = Ok((regex, size));
                break;
            }
            Err(error) if is_too_large(&error) => last = Err(error.to_string()),
            Err(error) => return Err(error.to_string()),
        }
    }
    let (regex, size) = last?;
    let compiled = Arc::new(Compiled { regex, bytes: bytes(source, size), may_try: tries(source) });
    cache().insert(source.to_owned(), Arc::clone(&compiled));
    Ok(compiled)
}

fn is_too_large(error: &Error) -> bool {
    let Error::CompileError(error) = error else { return false };
    match &**error {
        CompileError::InnerError(error) => error.size_limit().is_some(),
        CompileError::DfaBuildError(..) => true,
        _ => false,
    }
}

/// About what a pattern takes whose automata fit `size`: one forward, one backward, and what a
/// search that follows all of their states at once remembers; a pattern that may try has several.
fn bytes(source: &str, size: usize) -> usize {
    let has_groups = source.contains('(');
    let table = if has_groups { TABLE_BYTES_MAX.min(size * 8) } else { 0 };
    let parts = if tries(source) { 1 + source.matches("(?").count().min(16) } else { 1 };
    parts * (3 * size + SEARCH_BYTES_MAX + table)
}

/// Whether a pattern may look around or refer back: what only trying finds.
fn tries(source: &str) -> bool {
    let mut letters = source.chars().peekable();
    while let Some(letter) = letters.next() {
        let next = letters.peek().copied().unwrap_or_default();
        match letter {
            '\\' if next.is_ascii_digit() || matches!(next, 'k' | 'K' | 'g' | 'G' | 'R' | 'X') => {
                return true;
            }
            '\\' => {
                letters.next();
            }
            // A group that is none, `(?i)` and `(?:...)` aside.
            '(' if next == '?' => {
                letters.next();
                if matches!(letters.peek(), Some('=' | '!' | '<' | '>' | '(' | 'P' | '&' | 'R')) {
                    return true;
                }
            }
            '+' | '*' | '?' | '}' if next == '+' => return true,
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_pattern_takes_is_known() {
        for (source, at_most) in [
            ("^abc", 256 << 10),
            (r"\w+@\w+", 1 << 20),
            (r"(a|b){50}", 2 << 20),
            (r"\w{60}", 32 << 20),
        ] {
            let compiled = compile(source).unwrap();
            assert!(compiled.bytes <= at_most, "{source}: {}", compiled.bytes);
        }
        assert!(compile(r"\w{2000}").is_err(), "larger than any may be");
        assert!(compile(&r"\w".repeat(8000)).is_err(), "larger than may be read");
        assert!(compile("(").is_err());
    }

    #[test]
    fn what_looks_around_or_refers_back_tries() {
        for source in ["(?=a)b", "(?!a)", "(?<=a)b", r"(a)\1", "a++", r"(?<x>a)\k<x>", "(?>a)"] {
            assert!(tries(source), "{source}");
        }
        for source in ["abc", r"a\d+", "(?i)abc", "(?:a|b)+", r"\(?=", r"\\+"] {
            assert!(!tries(source), "{source}");
        }
    }

    #[test]
    fn patterns_are_kept_for_the_next_request() {
        let first = compile("kept for the next").unwrap();
        let second = compile("kept for the next").unwrap();
        assert!(Arc::ptr_eq(&first, &second));
        // Of many, as much as may be kept.
        for number in 0..500 {
            compile(&format!("pattern number {number}")).unwrap();
        }
        assert!(cache().weight() <= CACHE_BYTES_MAX);
    }
}
