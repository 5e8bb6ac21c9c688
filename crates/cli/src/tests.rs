//! Goal: what is said of the arguments is true: help, hints, and the pages that show commands.

use std::path::Path;

use super::*;

#[test]
fn the_arguments_are_consistent() {
    Cli::command().debug_assert();
}

/// What a command knows needs no hint, and a hint of a command that isn't there is never shown.
#[test]
fn hints_are_of_what_is_not_there() {
    let cli = Cli::command();
    for (word, _) in other_tools::COMMANDS {
        assert!(cli.find_subcommand(word).is_none(), "{word}");
    }
    for (name, words, _) in other_tools::OPTIONS.iter().filter(|(name, _, _)| !name.is_empty()) {
        let command = cli.find_subcommand(name).expect("a command's name");
        for word in *words {
            let mut known = command.get_arguments();
            let is_known = match word.strip_prefix("--") {
                Some(long) => known.any(|each| each.get_long() == Some(long)),
                None => known.any(|each| each.get_short() == word.chars().nth(1)),
            };
            assert!(!is_known, "{name} {word}");
        }
    }
}

#[test]
fn paragraphs_of_help_are_broken_where_the_terminal_ends() {
    for command in Cli::command().get_subcommands() {
        let below = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let is_text = |line: &str| line.starts_with(|first: char| !first.is_whitespace());
        let broken = below
            .lines()
            .zip(below.lines().skip(1))
            .find(|(line, next)| is_text(line) && is_text(next));
        assert_eq!(broken, None, "help of {}", command.get_name());
    }
}

/// The words of a line of a shell, up to a pipe, a redirection or the like.
fn words_of(line: &str) -> Vec<String> {
    let (mut words, mut word, mut is_begun) = (Vec::new(), String::new(), false);
    let mut quote = None;
    for letter in line.chars() {
        match (quote, letter) {
            (Some(open), _) if letter == open => quote = None,
            (Some(_), _) => word.push(letter),
            (None, '\'' | '"') => (quote, is_begun) = (Some(letter), true),
            (None, '|' | '>' | '<' | '&' | ';' | '#' | ')') if !is_begun => break,
            (None, ';' | ')') => break,
            (None, ' ') if is_begun => {
                words.push(std::mem::take(&mut word));
                is_begun = false;
            }
            (None, ' ') => {}
            (None, _) => {
                word.push(letter);
                is_begun = true;
            }
        }
    }
    if is_begun {
        words.push(word);
    }
    words
}

/// The commands that a page shows: `frond` begins the line, or follows a prompt; what stands below
/// a prompt is what was printed.
fn commands_of(page: &str) -> Vec<String> {
    let mut has_prompt = false;
    let mut found = Vec::new();
    for line in page.replace("\\\n", " ").lines() {
        let shown = match line.trim_start().strip_prefix("$ ") {
            Some(shown) => {
                has_prompt = true;
                Some(shown)
            }
            None if line.trim().is_empty() => {
                has_prompt = false;
                None
            }
            None => line.strip_prefix("    ").filter(|_| !has_prompt),
        };
        let Some(shown) = shown else { continue };
        let at = shown.find("frond ").filter(|at| *at == 0 || shown[..*at].ends_with("| "));
        found.extend(at.map(|at| shown[at..].to_owned()).filter(|line| !is_synopsis(line)));
    }
    found
}

/// Whether a line has a synopsis' brackets and alternatives.
fn is_synopsis(line: &str) -> bool {
    let is_mark = |word: &String| {
        ["[", "<", "...", "…"].iter().any(|mark| word.starts_with(mark)) || word.contains("|--")
    };
    let unquoted = line.split(['\'', '"']).next().unwrap_or_default();
    words_of(line).iter().any(is_mark)
        || [" | --", " | DATABASE"].iter().any(|mark| line.contains(mark))
        || (unquoted.contains('|') && !line.contains(" | "))
}

/// An option that was renamed stays behind in a page, or in another command's help.
#[test]
fn what_pages_and_help_show_is_understood() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut pages: Vec<(String, String)> = ["README.md", "AGENTS.md", "SHORTCOMINGS.md"]
        .map(|name| root.join(name))
        .into_iter()
        .chain(std::fs::read_dir(root.join("docs")).unwrap().map(|file| file.unwrap().path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
        .map(|path| (path.display().to_string(), std::fs::read_to_string(&path).unwrap()))
        .collect();
    for command in Cli::command().get_subcommands() {
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let examples = help.split("\n\n").next().unwrap_or_default();
        // What an example does stands behind some spaces.
        let lines = examples.lines().filter_map(|line| line.trim_start().split("  ").next());
        let lines: String = lines.map(|line| format!("    {line}\n")).collect();
        pages.push((format!("frond {} --help", command.get_name()), lines));
    }
    let (mut count, mut wrong) = (0, String::new());
    for (name, page) in &pages {
        for line in commands_of(page) {
            let mut words: Vec<OsString> = words_of(&line).into_iter().map(Into::into).collect();
            if words.get(1).is_some_and(|word| word == "mongod") {
                continue;
            }
            put_command_first(&mut words);
            name_limit(&mut words);
            count += 1;
            if let Err(error) = Cli::try_parse_from(&words) {
                let is_help = matches!(
                    error.kind(),
                    clap::error::ErrorKind::DisplayHelp | clap::error::ErrorKind::DisplayVersion
                );
                if !is_help {
                    wrong.push_str(&format!("{name}: {line}\n{error}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(count > 300, "{count} commands");
}
