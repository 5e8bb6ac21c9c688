//! `$regex` with `$options`, and patterns in the place of values.
//!
//! Compiled and held from its first use on ([`crate::regex`]): some hundreds take seconds, which
//! parsing couldn't end. A pattern that exceeds its limit on some string is an error, so that no
//! pattern can hold a server up. (MongoDB answers as if the string didn't match, and `$not` as if
//! it did.)

use std::sync::{Arc, OnceLock};

use frond_doc::Value;

use super::operand::{Operand, bad_value};
use crate::code::Code;
use crate::error::QueryError;
use crate::memory::{Charge, RequestMemory};
use crate::regex::{self, Compiled, Failure};

/// A compiled pattern.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    source: String,
    /// Sorted, without repetitions.
    options: String,
    /// The held pattern, from its first use on.
    held: OnceLock<Arc<Held>>,
}

/// A compiled pattern, and what the request is charged with for it.
#[derive(Debug)]
struct Held {
    regex: Arc<Compiled>,
    _charge: Charge,
}

impl Pattern {
    /// Checks a pattern with options out of `imsxu`.
    ///
    /// # Errors
    /// Codes 51091 (pattern), 51108 (option), `BadValue` (a null byte).
    pub(crate) fn new(source: &str, options: &str) -> Result<Pattern, QueryError> {
        let mut flags: Vec<char> = options.chars().collect();
        flags.sort_unstable();
        flags.dedup();
        if let Some(flag) = flags.iter().find(|flag| !"imsxu".contains(**flag)) {
            let message = format!("invalid flag in regex options: {flag}");
            return Err(QueryError::new(Code::Location(51108), message));
        }
        if source.contains('\0') {
            let message = "Regular expression cannot contain an embedded null byte";
            return Err(QueryError::new(Code::BadValue, message));
        }
        let options: String = flags.into_iter().collect();
        regex::check(source, &options).map_err(|reason| invalid(&reason))?;
        Ok(Pattern { source: source.to_owned(), options, held: OnceLock::new() })
    }

    /// The pattern, compiled when it is used first.
    fn held(&self, memory: &RequestMemory) -> Result<&Held, QueryError> {
        if let Some(held) = self.held.get() {
            return Ok(held);
        }
        memory.check()?;
        let compiled = regex::compile(&self.source, &self.options);
        let regex = compiled.map_err(|reason| invalid(&reason))?;
        let held = Arc::new(Held { _charge: regex.charge(memory)?, regex });
        Ok(self.held.get_or_init(|| held))
    }

    /// Whether a string matches, or a value is this very pattern.
    ///
    /// # Errors
    /// Code 51156 if the pattern exceeds its limit; `ExceededMemoryLimit`; what the request is to
    /// fail with, if it is to stop.
    pub(crate) fn matches(
        &self,
        value: Value<'_>,
        memory: &RequestMemory,
    ) -> Result<bool, QueryError> {
        match value {
            Value::String(text) | Value::Symbol(text) => {
                self.held(memory)?.regex.is_match(text, memory).map_err(|failure| match failure {
                    Failure::Request(error) => error,
                    Failure::Limit(reason) => {
                        let message = format!(
                            "Error occurred while executing the regular expression. Result code: \
                             {reason}"
                        );
                        QueryError::new(Code::Location(51156), message)
                    }
                })
            }
            Value::Regex(regex) => {
                Ok(regex.pattern == self.source && regex.options == self.options)
            }
            _ => Ok(false),
        }
    }

    /// The pattern and its options as written.
    pub(crate) fn source(&self) -> (&str, &str) {
        (&self.source, &self.options)
    }

    /// The letters with which every matching string begins; `None` if there is no such beginning.
    /// A pattern like `^abc` is a range of an index.
    pub(crate) fn prefix(&self) -> Option<String> {
        // Other options change what letters, spaces or `^` mean; an alternative has its own begin.
        if !self.options.chars().all(|flag| "su".contains(flag)) || self.source.contains('|') {
            return None;
        }
        let mut rest = self.source.strip_prefix('^')?.chars().peekable();
        let mut prefix = String::new();
        while let Some(letter) = rest.next() {
            let literal = match letter {
                '\\' if rest.peek().is_some_and(|next| next.is_ascii_punctuation()) => rest.next(),
                '\\' | '.' | '[' | '(' | ')' | '$' | '^' | '+' => None,
                '*' | '?' | '{' => {
                    prefix.pop(); // The letter before may be absent.
                    None
                }
                _ => Some(letter),
            };
            match literal {
                Some(letter) => prefix.push(letter),
                None => break,
            }
        }
        (!prefix.is_empty()).then_some(prefix)
    }
}

fn invalid(reason: &str) -> QueryError {
    QueryError::new(Code::Location(51091), format!("Regular expression is invalid: {reason}"))
}

/// `$regex`
pub(super) fn matching(operand: Operand<'_>) -> Result<Pattern, QueryError> {
    let options = match operand.siblings.get("$options") {
        Some(Value::String(options)) => Some(options),
        Some(_) => return Err(bad_value("$options has to be a string")),
        None => None,
    };
    let (source, own_options) = match operand.value {
        Value::String(source) => (source, ""),
        Value::Regex(regex) => (regex.pattern, regex.options),
        _ => return Err(bad_value("$regex has to be a string")),
    };
    let both = |code| {
        let message = "options set in both $regex and $options";
        QueryError::new(Code::Location(code), message)
    };
    let is_before = operand.siblings.iter().find_map(|(name, _)| match name {
        "$options" => Some(true),
        "$regex" => Some(false),
        _ => None,
    });
    let options = match (options, is_before) {
        (None, _) => own_options,
        (Some(options), _) if own_options.is_empty() => options,
        // Read before the pattern, no options are as if nothing were said.
        (Some(""), Some(true)) => own_options,
        (Some(_), Some(true)) => return Err(both(51074)),
        (Some(_), _) => return Err(both(51075)),
    };
    Pattern::new(source, options)
}

/// `$options`, which `$regex` reads: checks that there is one.
pub(super) fn options(operand: Operand<'_>) -> Result<(), QueryError> {
    if operand.siblings.get("$regex").is_none() {
        return Err(bad_value("$options needs a $regex"));
    }
    Ok(())
}
