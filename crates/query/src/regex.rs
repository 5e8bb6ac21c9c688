//! Regular expressions, which are PCRE2's, searched in bounded time and memory.
//!
//! 1. A pattern is read ([`syntax`]); what PCRE2 surely takes isn't compiled before it is used.
//! 2. Where an automaton finds the same as PCRE2, it searches, in time that is linear in the text
//!    ([`linear`]). Elsewhere an automaton that finds all that PCRE2 might says where it may begin.
//! 3. Only then does PCRE2 search by trying, in calls that are bounded ([`trying`]). Whether to go
//!    on is asked before each. A pattern that exceeds its bound in a text is an error, unless
//!    automata show where it matches that look around ([`lookaround`]); those search a long text
//!    first where PCRE2 would look ahead from each place.
//! 4. Patterns that were compiled lately are kept for the next request, up to [`CACHE_BYTES_MAX`]
//!    in all.
//! 5. A filter compiles and holds a pattern from its first use on, and charges it to its request;
//!    parsing it only checks whether it is one ([`check`]). Whether to go on is asked before each
//!    is compiled.

use std::sync::{Arc, OnceLock};

use quick_cache::Weighter;
use quick_cache::sync::Cache;

use crate::error::QueryError;
use crate::memory::{Charge, RequestMemory};
use backtracking::Backtracker;
pub(crate) use backtracking::{Failure, Groups};
use linear::{Linear, Meaning};
use lookaround::{Lookarounds, Positions};
use syntax::Flags;

mod backtracking;
mod linear;
mod lookaround;
mod syntax;
#[cfg(test)]
mod tests;

/// As long as a pattern may be: MongoDB's limit.
const PATTERN_BYTES_MAX: usize = 32_764;
/// The bytes that are kept of recently compiled patterns.
const CACHE_BYTES_MAX: u64 = 8 << 20;
/// The length below which PCRE2 is done before it matters how far it looks from each place.
const FAR_BYTES_MIN: usize = 4 << 10;
/// The number of searched bytes that are a unit of work.
const BYTES_OF_UNIT: usize = 16;

/// A pattern, compiled.
#[derive(Debug)]
pub(crate) struct Compiled {
    linear: Option<Linear>,
    /// The meaning of an answer of `linear`; for other patterns it says where a match may begin.
    meaning: Option<Meaning>,
    /// Automata for what looks around, where PCRE2 takes too long.
    arounds: Option<Lookarounds>,
    /// The searcher for what automata can't decide, or not in a long text.
    trying: Backtracker,
}

impl Compiled {
    /// Whether there is a match in `text`.
    ///
    /// # Errors
    /// See [`Failure`].
    pub(crate) fn is_match(&self, text: &str, memory: &RequestMemory) -> Result<bool, Failure> {
        match (&self.linear, self.meaning) {
            (Some(linear), Some(_)) => return linear.is_match(text, 0, memory),
            (Some(linear), None) if !linear.is_match(text, 0, memory)? => return Ok(false),
            _ => {}
        }
        let is_far = FAR_BYTES_MIN <= text.len() && self.trying.looks_far();
        if is_far && let Some(places) = self.places(text, memory) {
            return Ok(places?.next(0).is_some());
        }
        match self.find_by_trying(text, 0, memory) {
            Err(failure @ Failure::Limit(_)) => match self.places(text, memory) {
                Some(places) => Ok(places?.next(0).is_some()),
                None => Err(failure),
            },
            found => Ok(found?.is_some()),
        }
    }

    /// Returns where matches begin, if automata can decide it.
    fn places(&self, text: &str, memory: &RequestMemory) -> Option<Result<Positions, Failure>> {
        self.arounds.as_ref().map(|arounds| arounds.places(text, memory))
    }

    /// The first match in `text` from `from` on. Lookbehind sees the text before that.
    ///
    /// # Errors
    /// See [`Failure`].
    pub(crate) fn find(
        &self,
        text: &str,
        from: usize,
        memory: &RequestMemory,
    ) -> Result<Option<Groups>, Failure> {
        match self.find_by_trying(text, from, memory) {
            Err(failure @ Failure::Limit(_)) => match self.places(text, memory) {
                // From there on PCRE2 finds the groups.
                Some(places) => {
                    let places = places?;
                    self.trying.find(text, from, memory, |from| places.next(from))
                }
                None => Err(failure),
            },
            found => found,
        }
    }

    fn find_by_trying(
        &self,
        text: &str,
        from: usize,
        memory: &RequestMemory,
    ) -> Result<Option<Groups>, Failure> {
        let Some(linear) = &self.linear else {
            return self.trying.find(text, from, memory, Some);
        };
        let is_quick = linear.is_quick(text.len() - from);
        if is_quick && self.meaning == Some(Meaning::Where) {
            memory.work(1 + (text.len() - from) / BYTES_OF_UNIT).map_err(Failure::Request)?;
            return Ok(linear.find(text, from));
        }
        if !linear.is_match(text, from, memory)? {
            return Ok(None);
        }
        match is_quick {
            true => self.trying.find(text, from, memory, |from| linear.start(text, from)),
            false => self.trying.find(text, from, memory, Some),
        }
    }

    /// About what it takes at most.
    fn bytes(&self) -> usize {
        // Few texts are so long that the automaton is asked.
        let forms = if self.meaning.is_some() { 1 } else { backtracking::FORMS_MAX };
        let arounds = self.arounds.as_ref().map_or(0, Lookarounds::bytes);
        self.linear.as_ref().map_or(0, Linear::bytes) + arounds + forms * self.trying.bytes()
    }

    /// Charges it to a request.
    ///
    /// # Errors
    /// `ExceededMemoryLimit`.
    pub(crate) fn charge(&self, memory: &RequestMemory) -> Result<Charge, QueryError> {
        memory.charge_of(self.bytes())
    }
}

#[derive(Clone)]
struct ByBytes;

impl Weighter<String, Arc<Compiled>> for ByBytes {
    fn weight(&self, source: &String, compiled: &Arc<Compiled>) -> u64 {
        (source.len() + compiled.bytes()) as u64
    }
}

/// Those that were compiled lately, by their options and pattern.
fn cache() -> &'static Cache<String, Arc<Compiled>, ByBytes> {
    static CACHE: OnceLock<Cache<String, Arc<Compiled>, ByBytes>> = OnceLock::new();
    CACHE.get_or_init(|| Cache::with_weighter(64, CACHE_BYTES_MAX, ByBytes))
}

/// The options `imsx`; `u` changes nothing, as strings are UTF-8 anyway.
fn flags(options: &str) -> Flags {
    Flags {
        caseless: options.contains('i'),
        multiline: options.contains('m'),
        dotall: options.contains('s'),
        extended: options.contains('x'),
    }
}

/// Checks that a pattern with options out of `imsxu` is one.
///
/// # Errors
/// Why it is none, as PCRE2 says it.
pub(crate) fn check(source: &str, options: &str) -> Result<(), String> {
    if PATTERN_BYTES_MAX < source.len() {
        return Err("pattern string is longer than the limit set by the application".to_owned());
    }
    let flags = flags(options);
    let is_plain =
        !source.starts_with("(*") && syntax::parse(source, flags).is_some_and(|it| it.plain);
    if is_plain { Ok(()) } else { backtracking::check(source, flags) }
}

/// Compiles a pattern with options out of `imsxu`, unless that was done lately.
///
/// # Errors
/// As [`check`].
pub(crate) fn compile(source: &str, options: &str) -> Result<Arc<Compiled>, String> {
    let key = format!("{options}/{source}");
    if let Some(compiled) = cache().get(&key) {
        return Ok(compiled);
    }
    check(source, options)?;
    let compiled = Arc::new(make(source, flags(options)));
    cache().insert(key, Arc::clone(&compiled));
    Ok(compiled)
}

fn make(source: &str, flags: Flags) -> Compiled {
    let beginning = backtracking::beginning(source);
    let parsed = syntax::parse(beginning.body, flags);
    let readable = parsed.as_ref().filter(|_| beginning.items.is_empty());
    let trying = Backtracker::new(&beginning, flags, parsed.as_ref());
    let exact = readable.and_then(|parsed| linear::exact(&parsed.node));
    let exact = exact.and_then(|(hir, meaning)| Some((Linear::compile(hir)?, meaning)));
    if let Some((linear, meaning)) = exact {
        return Compiled { linear: Some(linear), meaning: Some(meaning), arounds: None, trying };
    }
    let possible = readable.and_then(|parsed| linear::possible(&parsed.node));
    let arounds = readable.and_then(|parsed| Lookarounds::compile(&parsed.node));
    Compiled { linear: possible.and_then(Linear::compile), meaning: None, arounds, trying }
}
