//! PCRE2 is the model: what is found in linear time, or in bounded calls, is what PCRE2 finds when
//! it is asked for all at once. Patterns and texts are made at random, of parts where the engines
//! differ most.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use frond_store::budget::Reservation;
use frond_testkit::random::Random;
use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange};

use super::*;
use crate::code::Code;

/// Returns the match that PCRE2 finds in `text` from `from` on.
fn model(source: &str, options: &str, text: &str, from: usize) -> Option<Groups> {
    let flags = flags(options);
    let regex = pcre2::bytes::RegexBuilder::new()
        .utf(true)
        .caseless(flags.caseless)
        .multi_line(flags.multiline)
        .dotall(flags.dotall)
        .extended(flags.extended)
        .build(source)
        .unwrap();
    let mut groups = regex.capture_locations();
    regex.captures_read_at(&mut groups, text.as_bytes(), from).unwrap()?;
    Some((0..groups.len()).map(|group| groups.get(group)).collect())
}

/// Compares with the model at all places of `text`.
fn compare(source: &str, options: &str, text: &str) {
    let memory = RequestMemory::default();
    let compiled = compile(source, options).unwrap();
    let matches = compiled.is_match(text, &memory).unwrap();
    let expected = model(source, options, text, 0);
    assert_eq!(matches, expected.is_some(), "/{source}/{options} in {text:?}");
    let places = compiled.places(text, &memory).map(|places| places.unwrap());
    for (from, _) in text.char_indices() {
        if let Some(places) = &places {
            let begins = expected_start(source, options, text, from);
            assert_eq!(places.next(from), begins, "/{source}/{options} in {text:?} from {from}");
        }
        let found = compiled.find(text, from, &memory).unwrap();
        let expected = model(source, options, text, from);
        assert_eq!(found, expected, "/{source}/{options} in {text:?} from {from}");
    }
}

/// Returns where the first match from `from` on begins. `\K` moves the start that is reported.
fn expected_start(source: &str, options: &str, text: &str, from: usize) -> Option<usize> {
    model(source, options, text, from).and_then(|groups| groups[0]).map(|(start, _)| start)
}

#[test]
fn matches_are_those_of_pcre2() {
    const ATOMS: &[&str] = &[
        "a",
        "b",
        "ab",
        "é",
        "k",
        "s",
        "\\n",
        ".",
        "^",
        "$",
        "\\b",
        "\\B",
        "\\A",
        "\\z",
        "\\Z",
        "\\d",
        "\\D",
        "\\w",
        "\\W",
        "\\s",
        "\\S",
        "[ab]",
        "[^a]",
        "[^\\w]",
        "[[:upper:]]",
        "[[:^alpha:]1]",
        "[a-c\\d]",
        "[\\]k]",
        "[-a]",
        "\\x41",
        "\\x{e9}",
        "\\.",
        "(?i)",
        "(?m)",
        "(?s)",
        "(?-i)",
        "(?x) ",
        "(?:a|)",
        "(a|ab)",
        "(b)?",
        "(?i:aK)",
        "(?=a)",
        "(?!b)",
        "(?<=a)",
        "(?<!\\n)",
        "(?>a*)",
        "(?:a*)*",
        "(a*)+",
        "(?:|a)+",
        "\\1",
        "\\Qa.\\E",
        "\\h",
        "\\R",
        "\\K",
        "\\p{L}",
        "(?#c)",
        "{",
        "a{2}",
        "a{1,2}b",
        "(?|(a)|b)",
        "(?(?=a)ab|b)",
        "a++",
        "\\X",
    ];
    const REPEATS: &[&str] =
        &["", "", "", "", "*", "+", "?", "*?", "+?", "??", "{2}", "{0,2}", "{1,}?", "*+"];
    const LETTERS: &[&str] =
        &["a", "a", "b", "A", "k", "K", "\u{212a}", "s", "ſ", "é", "É", "1", " ", "\n", ".", "\r"];
    let mut random = Random::new(7);
    let (mut linear, mut around) = (0, 0);
    let mut compared = 0;
    while compared < 6000 {
        let mut source = String::new();
        let mut depth = 0;
        for _ in 0..1 + random.below(5) {
            match random.below(8) {
                0 => source.push('|'),
                1 => {
                    source.push('(');
                    depth += 1;
                }
                2 if 0 < depth => {
                    source.push(')');
                    source.push_str(random.choose::<&str>(REPEATS));
                    depth -= 1;
                }
                _ => {
                    source.push_str(random.choose::<&str>(ATOMS));
                    source.push_str(random.choose::<&str>(REPEATS));
                }
            }
        }
        source.push_str(&")".repeat(depth));
        let options: String = "imsx".chars().filter(|_| random.below(4) == 0).collect();
        if check(&source, &options).is_err() {
            assert!(backtracking::check(&source, flags(&options)).is_err(), "/{source}/{options}");
            continue;
        }
        backtracking::check(&source, flags(&options)).unwrap_or_else(|error| {
            panic!("/{source}/{options} was taken, but {error}");
        });
        compared += 1;
        let compiled = compile(&source, &options).unwrap();
        linear += usize::from(compiled.meaning.is_some());
        around += usize::from(compiled.arounds.is_some());
        for _ in 0..6 {
            let text: String = (0..random.below(8)).map(|_| *random.choose(LETTERS)).collect();
            compare(&source, &options, &text);
        }
    }
    assert!(compared / 4 < linear, "of {compared} patterns {linear} are searched in linear time");
    assert!(compared / 20 < around, "of {compared} patterns {around} look around in linear time");
}

#[test]
fn letters_match_caselessly_as_pcre2_has_them() {
    let all: String = (1..0x3000).filter_map(char::from_u32).collect();
    for letter in (1..0x530).chain([0x5d0, 0xe01, 0x4e00, 0xac00]).filter_map(char::from_u32) {
        let mut set = ClassUnicode::new([ClassUnicodeRange::new(letter, letter)]);
        set.case_fold_simple();
        let source = format!("\\x{{{:x}}}", u32::from(letter));
        let regex = pcre2::bytes::RegexBuilder::new().utf(true).caseless(true).build(&source);
        let regex = regex.unwrap();
        let is_in =
            |letter: &char| set.iter().any(|it| it.start() <= *letter && *letter <= it.end());
        let expected: String = all.chars().filter(is_in).collect();
        let found: String = regex
            .find_iter(all.as_bytes())
            .map(|found| std::str::from_utf8(found.unwrap().as_bytes()).unwrap())
            .collect();
        assert_eq!(found, expected, "{letter:?}");
    }
}

#[test]
fn long_texts_are_searched_in_several_calls() {
    let memory = RequestMemory::default();
    let text = format!("{}x\n{}bar foo", "é".repeat(70_000), "foo ".repeat(30_000));
    let limit = "deeper than what may be remembered";
    for (source, expected) in [
        ("(?<=bar )foo", Ok(true)),
        ("^(?=.*foo)(?=.*bar).*", Ok(false)),
        ("(?m)^(?=.*foo)(?=.*bar).*", Ok(true)),
        ("(?m)^(?=.*foo)(?!.*bar).*", Ok(false)),
        (r"(\w)\1 ", Ok(true)),
        (r"(\w)\1\1", Ok(false)),
        ("(?<!é)é", Ok(true)),
        ("é(?!é|x)", Ok(false)),
        ("foo(?= bar)", Ok(true)),
        ("foo(?! (foo|bar))\\b.", Ok(false)),
        ("^((?!zzz).)*$", Ok(false)),
        ("(?s)^((?!zzz).)*$", Ok(true)),
        ("(?s)(?=.*bar)(?=.*foo)(?!.*é).x", Ok(false)),
        ("(?=.*zzz)foo", Ok(false)),
        ("foo(?=.*zzz)", Ok(false)),
        ("foo(?=.*bar foo$)", Ok(true)),
        ("(?s)^(?=.*(foo|é)+zzz)", Ok(false)),
        (r"(?s)^((?!zzz).)*\1$", Err(limit)),
    ] {
        let compiled = compile(source, "").unwrap();
        let found = match compiled.is_match(&text, &memory) {
            Ok(found) => Ok(found),
            Err(Failure::Limit(_)) => Err(limit),
            Err(error) => panic!("{source}: {error:?}"),
        };
        assert_eq!(found, expected, "{source}");
    }
    // Searches with an automaton, in parts.
    for (source, expected) in [
        ("(?s:foo.{0,9}){9}bar", true),
        ("(?:fo{0,9} ){90}bar foo", true),
        ("(?:fo{0,9} ){90}bar fooo", false),
        ("(?:fo{0,9} ){90}bar foo$", true),
    ] {
        let compiled = compile(source, "").unwrap();
        let linear = compiled.linear.as_ref().unwrap();
        assert!(!linear.is_quick(text.len()), "{source}");
        assert_eq!(compiled.is_match(&text, &memory).unwrap(), expected, "{source}");
    }
}

/// Patterns that take a search by trying for ever, or a text's length many times over.
const HOSTILE: &[&str] = &[
    "(?=a*b)c",
    "(?=a*b)a",
    "^(?:(?=a)a|(?=a)a)*[^a]\\1?(c)",
    "(a+)+\\1b",
    "(a|a)*\\1b",
    "(?:(?=(a+))\\1)+b",
    "(a*)*\\1b",
    "(.*)(.*)(.*)\\1b",
    "(?>a*)(?>a*)(?>a*)b(?<!c)b",
    "(?:a*+b|a)*c(?=d)",
    "(?:(?=a*+$)a)*b(?!c)",
    "(?<=a)(?:a?){200}b(?!c)",
    "(?:a{0,200}){0,200}(?=b)b",
    "((a{0,5}){0,5}){0,5}(?=b)c",
    "(\\w+\\s?)+(?=!)!",
    "(?=(?:.*a){20})b",
    "(?!(?:.*a){20}b)c",
    "(?R)?ab",
    "(a(?1)?b)c(*COMMIT)",
    "a*(*SKIP)b",
    "(*LIMIT_MATCH=4000000000)(a+)+\\1b",
    "(?:(a)|(?<=a))*\\1b",
    "\\Ga*(?=b)",
    "(?<x>a+)*\\k<x>b",
    "(?(?=a+b)a|a)*c(?=d)",
    "(a?){64}(?=a{64}b)b",
    "([a-z]+)*\\d(?=\\d)",
    "(?i)(K|k|\u{212a})+\\1{9}b",
    "(?=[^b]*b)(?=[^c]*c)(?=[^d]*d)e",
];

#[test]
fn hostile_patterns_end_and_ask_whether_to_go_on() {
    const COUNT_MAX: usize = 3;
    for source in HOSTILE {
        check(source, "").unwrap();
        for length in [30, 3000, 200_000] {
            // So that what may begin a match is there.
            let text = "a".repeat(length) + "\ncde b";
            let count = Arc::new(AtomicUsize::new(0));
            let counted = Arc::clone(&count);
            let stop = QueryError::new(Code::MaxTimeMSExpired, "stop");
            let go_on = move || match counted.fetch_add(1, Ordering::Relaxed) {
                COUNT_MAX.. => Err(stop.clone()),
                _ => Ok(()),
            };
            let memory = RequestMemory::new(Reservation::new(1 << 30, None), Some(Arc::new(go_on)));
            // Whatever the answer: in between no call takes more than it may (see below).
            match compile(source, "").unwrap().is_match(&text, &memory) {
                Ok(_) | Err(Failure::Limit(_)) => {}
                Err(Failure::Request(error)) => assert_eq!(error.code, Code::MaxTimeMSExpired),
            }
            assert!(count.load(Ordering::Relaxed) <= COUNT_MAX + 1, "{source}");
        }
    }
}

#[test]
fn the_memory_of_a_pattern_is_known() {
    for (source, at_most) in [
        ("^abc", 256 << 10),
        (r"\w+@\w+", 1 << 20),
        (r"(a|b){50}", 2 << 20),
        (r"\w{60}", 1 << 20),
        ("(?=a)b", 1 << 20),
    ] {
        let compiled = compile(source, "").unwrap();
        assert!(compiled.bytes() <= at_most, "{source}: {}", compiled.bytes());
    }
    for source in
        ["(", "((ab){100}){1000}", &"a".repeat(40_000), "a**", "[b-a]", "(?<=a*)b", "\\p{No}{"]
    {
        let is_pattern = source.starts_with("\\p");
        assert_eq!(check(source, "").is_ok(), is_pattern, "{source}");
        assert_eq!(compile(source, "").is_ok(), is_pattern, "{source}");
    }
}

#[test]
fn patterns_are_kept_for_the_next_request() {
    // Other tests' patterns may take its place in between.
    let is_kept = |number: usize| {
        let source = format!("kept for the next {number}");
        let first = compile(&source, "").unwrap();
        assert!(!Arc::ptr_eq(&first, &compile(&source, "i").unwrap()));
        Arc::ptr_eq(&first, &compile(&source, "").unwrap())
    };
    assert!((0..100).any(is_kept));
    // As many of them are kept as may be.
    for number in 0..500 {
        compile(&format!("pattern number {number}"), "").unwrap();
    }
    assert!(cache().weight() <= CACHE_BYTES_MAX);
}
