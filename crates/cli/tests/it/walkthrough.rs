//! docs/walkthrough.md is run: each command that it shows must give the output that it shows.
//!
//! - A block ` ```json NAME ` is a file NAME in the directory where the commands run.
//! - In a block ` ```console `, a line `$ frond ...` is a command, and the lines up to the next one
//!   are what it prints, standard output first, then errors. `$ echo '...' | frond ...` gives it
//!   its input.
//! - `…` stands for any text within a line: ids and dates are others each time.

use super::Directory;

const WALKTHROUGH: &str = include_str!("../../../../docs/walkthrough.md");

/// A command and what it is to print.
#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) line: String,
    expected: Vec<String>,
}

/// The words of a command line, as a shell cuts them: quotes hold together.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote, mut has_word) = (Vec::new(), String::new(), None, false);
    for character in line.chars() {
        match (character, quote) {
            (mark, Some(open)) if mark == open => quote = None,
            (_, Some(_)) => word.push(character),
            ('\'' | '"', None) => (quote, has_word) = (Some(character), true),
            (' ', None) => {
                if has_word {
                    words.push(std::mem::take(&mut word));
                }
                has_word = false;
            }
            (_, None) => {
                word.push(character);
                has_word = true;
            }
        }
    }
    assert_eq!(quote, None, "a quote stays open: {line}");
    if has_word {
        words.push(word);
    }
    words
}

/// Whether `line` is `pattern`, in which `…` stands for any text.
fn fits(pattern: &str, line: &str) -> bool {
    let mut parts = pattern.split('…');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = line.strip_prefix(first) else { return false };
    let parts: Vec<&str> = parts.collect();
    for (position, part) in parts.iter().enumerate() {
        if position + 1 == parts.len() {
            return rest.ends_with(part);
        }
        match rest.find(part) {
            Some(found) => rest = &rest[found + part.len()..],
            None => return false,
        }
    }
    rest.is_empty()
}

/// The commands of a page, in their order; its files are written.
pub(crate) fn read(page: &str, directory: &Directory) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for block in page.split("\n```").skip(1).step_by(2) {
        let (head, body) = block.split_once('\n').unwrap_or((block, ""));
        if let Some(name) = head.strip_prefix("json ") {
            directory.file(name, &format!("{body}\n"));
        }
        if head != "console" {
            continue;
        }
        for line in body.lines() {
            match (line.strip_prefix("$ "), steps.last_mut()) {
                (Some(line), _) => {
                    steps.push(Step { line: line.to_owned(), expected: Vec::new() });
                }
                (None, Some(step)) => step.expected.push(line.to_owned()),
                (None, None) => panic!("output before any command: {line}"),
            }
        }
    }
    steps
}

/// Runs a command that a page shows; what it prints, standard output first.
pub(crate) fn run(directory: &Directory, line: &str) -> Vec<String> {
    let (input, line) = match line.split_once(" | ") {
        Some((echo, line)) => {
            let mut echo = words(echo);
            assert_eq!(echo.remove(0), "echo", "{line}");
            (echo.join(" ") + "\n", line)
        }
        None => (String::new(), line),
    };
    let words = words(line);
    assert_eq!(words[0], "frond", "{line}");
    let ran = super::run_words(directory, &words[1..], &input);
    ran.out.lines().chain(ran.err.lines()).map(str::to_owned).collect()
}

/// Runs a command, after `replace` has been to it and to what it is to print. Returns what differs.
pub(crate) fn difference(
    directory: &Directory,
    step: &Step,
    replace: &dyn Fn(&str) -> String,
) -> String {
    let found = run(directory, &replace(&step.line));
    let expected: Vec<String> = step.expected.iter().map(|line| replace(line)).collect();
    let same = found.len() == expected.len()
        && expected.iter().zip(&found).all(|(pattern, line)| fits(pattern, line));
    if same {
        return String::new();
    }
    let (expected, found) = (expected.join("\n"), found.join("\n"));
    format!("$ {}\nshown:\n{expected}\nis:\n{found}\n\n", step.line)
}

#[test]
fn the_walkthrough_is_true() {
    let directory = Directory::new();
    let steps = read(WALKTHROUGH, &directory);
    assert!(steps.len() > 40, "{} commands", steps.len());
    let mut wrong = String::new();
    for step in &steps {
        wrong.push_str(&difference(&directory, step, &str::to_owned));
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

#[test]
fn patterns() {
    for (pattern, line, expected) in [
        ("abc", "abc", true),
        ("abc", "abcd", false),
        ("a…", "abc", true),
        ("a…c", "abc", true),
        ("a…c…e", "abcde", true),
        ("a…c…e", "abde", false),
        ("…", "", true),
        ("a…c", "ab", false),
    ] {
        assert_eq!(fits(pattern, line), expected, "{pattern} {line}");
    }
    assert_eq!(words("a 'b c' \"d\" e''"), ["a", "b c", "d", "e"]);
}
