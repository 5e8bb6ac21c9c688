//! `frond complete`: what the scripts of `frond completions` ask for names of databases, branches,
//! tags and collections.
//!
//! 1. The words before the one that is typed are read as the parser of arguments would, but by what
//!    it knows of the command alone: half a command line is none.
//! 2. So it is known which argument is being typed. The name of its value says what is meant.
//! 3. The data directory or server that the line names is asked.
//!
//! Whatever goes wrong, the answer is nothing: an error would stand amid what is typed.

use std::io::Write;
use std::path::PathBuf;

use clap::{Arg, Command};
use frond_doc::{DocumentBuf, document};

use crate::arguments::Target;
use crate::backend::Backend;
use crate::commands::branch::driver_name;
use crate::failure::Failure;
use crate::output::{documents_of, text_of};
use crate::terminal::Terminal;

/// Databases of the server's own.
const OF_THE_SERVER: [&str; 3] = ["admin", "config", "local"];

/// Print the names that may stand next in a command line
#[derive(clap::Args)]
#[command(hide = true)]
pub struct Complete {
    /// The words behind frond, as far as they are typed
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<String>,
}

/// What may stand in an argument.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Names {
    Databases,
    Branches,
    Tags,
    /// Branches and tags.
    Versions,
    Collections,
}

/// What is being typed.
#[derive(Debug)]
struct Question {
    names: Names,
    /// The database that the line names.
    database: String,
    typed: String,
    target: Target,
}

impl Complete {
    /// Prints the names, a line each.
    ///
    /// # Errors
    /// [`Failure::ReaderGone`] if nothing reads the output.
    pub fn run(&self, cli: Command, terminal: &mut Terminal) -> Result<(), Failure> {
        let Some(question) = Question::read(cli, &self.words) else { return Ok(()) };
        for name in question.answer().unwrap_or_default() {
            if name.starts_with(&question.typed) && !name.contains(char::is_whitespace) {
                writeln!(terminal, "{name}")?;
            }
        }
        Ok(())
    }
}

impl Question {
    fn read(mut cli: Command, words: &[String]) -> Option<Question> {
        cli.build();
        let (typed, before) = words.split_last()?;
        let at = before.iter().position(|word| cli.find_subcommand(word).is_some())?;
        let command = cli.find_subcommand(&before[at])?;
        let positionals: Vec<&Arg> = command.get_positionals().collect();
        let (mut given, mut position) = (Vec::new(), 0);
        let mut awaiting: Option<&Arg> = None;
        for word in &before[at + 1..] {
            if let Some(argument) = awaiting.take() {
                given.push((argument, word.as_str()));
            } else if word == "--" {
                position = positionals.len().saturating_sub(1);
            } else if let Some((argument, value)) = option(command, word) {
                match value {
                    Some(value) => given.push((argument, value)),
                    None if argument.get_action().takes_values() => awaiting = Some(argument),
                    None => {}
                }
            } else {
                given.extend(positionals.get(position).map(|argument| (*argument, word.as_str())));
                position += 1;
            }
        }
        let expected = awaiting.or_else(|| positionals.get(position).copied());
        let names = names_of(expected.filter(|_| !typed.starts_with('-'))?)?;
        let value = |name: &str| {
            let of_name = |(argument, _): &&(&Arg, &str)| value_name(argument) == name;
            given.iter().find(of_name).map(|(_, value)| (*value).to_owned())
        };
        let data = value("DIR").unwrap_or_else(|| "./frond-data".to_owned());
        Some(Question {
            names,
            database: value("DATABASE").unwrap_or_default(),
            typed: typed.clone(),
            target: Target { data: PathBuf::from(data), uri: value("HOST:PORT") },
        })
    }

    /// All names of the kind, with what stands before them in the word that is typed.
    ///
    /// # Errors
    /// As [`Target::open`], and what the database answers.
    fn answer(&self) -> Result<Vec<String>, Failure> {
        let mut backend = self.target.open()?;
        let (names, before) = match (self.names, self.typed.split_once('@')) {
            (Names::Databases, Some((database, _))) => {
                let versions = versions(&mut *backend, database, Names::Versions)?;
                let names = versions.iter().map(|name| driver_name(name)).collect();
                (names, format!("{database}@"))
            }
            (Names::Databases, None) => {
                let command = document! { "listDatabases": 1_i32, "nameOnly": true };
                let mut names = list(&mut *backend, "admin", &command, ("databases", "name"))?;
                names.retain(|name| !OF_THE_SERVER.contains(&name.as_str()));
                (names, String::new())
            }
            (Names::Collections, _) => (collections(&mut *backend, &self.database)?, String::new()),
            (names, _) => {
                // Of a range, the end.
                let start = match self.typed.rfind("..") {
                    Some(dots) => &self.typed[..dots + "..".len()],
                    None => "",
                };
                (versions(&mut *backend, &self.database, names)?, start.to_owned())
            }
        };
        backend.close()?;
        Ok(names.into_iter().map(|name| format!("{before}{name}")).collect())
    }
}

/// What an answer lists: the field of each document of its array.
fn list(
    backend: &mut dyn Backend,
    database: &str,
    command: &DocumentBuf,
    (array, field): (&str, &str),
) -> Result<Vec<String>, Failure> {
    let answer = backend.execute(database, command)?;
    Ok(documents_of(answer.view(), array).map(|row| text_of(row, field).to_owned()).collect())
}

/// Branches, tags, or both.
fn versions(
    backend: &mut dyn Backend,
    database: &str,
    names: Names,
) -> Result<Vec<String>, Failure> {
    let mut found = Vec::new();
    if names != Names::Tags {
        let command = document! { "frondBranch": 1_i32 };
        found.extend(list(backend, database, &command, ("branches", "branch"))?);
    }
    if names != Names::Branches {
        let command = document! { "frondTag": 1_i32 };
        found.extend(list(backend, database, &command, ("tags", "tag"))?);
    }
    Ok(found)
}

fn collections(backend: &mut dyn Backend, database: &str) -> Result<Vec<String>, Failure> {
    let command = document! { "listCollections": 1_i32, "nameOnly": true };
    let mut names = Vec::new();
    backend.for_each_document(database, &command, &mut |row| {
        names.push(text_of(row, "name").to_owned());
        Ok(())
    })?;
    Ok(names)
}

/// The option that `word` names, with the value that stands in the same word.
fn option<'c, 'w>(command: &'c Command, word: &'w str) -> Option<(&'c Arg, Option<&'w str>)> {
    let mut arguments = command.get_arguments();
    if let Some(long) = word.strip_prefix("--") {
        let (name, value) = match long.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (long, None),
        };
        return Some((arguments.find(|each| each.get_long() == Some(name))?, value));
    }
    let letters = word.strip_prefix('-')?;
    let argument = arguments.find(|each| each.get_short() == letters.chars().next())?;
    let value = letters.get(1..).filter(|rest| !rest.is_empty());
    Some((argument, value.filter(|_| argument.get_action().takes_values())))
}

fn value_name(argument: &Arg) -> String {
    let named = argument.get_value_names().and_then(|names| names.first());
    named.map_or_else(|| argument.get_id().as_str().to_uppercase(), |name| name.to_string())
}

/// What may stand in `argument`, where it is a name.
fn names_of(argument: &Arg) -> Option<Names> {
    Some(match value_name(argument).as_str() {
        "DATABASE" => Names::Databases,
        "BRANCH" => Names::Branches,
        "TAG" => Names::Tags,
        "VERSION" | "START" | "FROM" | "TO" | "RANGE" => Names::Versions,
        "COLLECTION" | "COLLECTION/ID" => Names::Collections,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use clap::{Parser, Subcommand};

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(subcommand)]
        command: Each,
    }

    #[derive(Subcommand)]
    enum Each {
        Log(crate::commands::log::Log),
        Branch(crate::commands::branch::Branch),
        Export(crate::commands::export::Export),
        Serve(Box<crate::commands::serve::Serve>),
    }

    fn check(line: &str, expected: Option<(Names, &str, &str)>) {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let question = Question::read(<Line as clap::CommandFactory>::command(), &words);
        let found = question.as_ref().map(|found| {
            (found.names, found.database.as_str(), found.target.data.to_str().unwrap_or_default())
        });
        assert_eq!(found, expected, "{line}");
    }

    #[test]
    fn the_argument_that_is_typed_is_found() {
        use Names::{Branches, Collections, Databases, Versions};
        let here = "./frond-data";
        check("log ", Some((Databases, "", here)));
        check("log -n 5 sh", Some((Databases, "", here)));
        check("log -n5 --data /d --oneline shop main..", Some((Versions, "shop", "/d")));
        check("log shop --data=/d -- it", Some((Collections, "shop", "/d")));
        check("log shop -c ", Some((Collections, "shop", here)));
        check("branch shop --delete s", Some((Branches, "shop", here)));
        check("branch shop -D ", Some((Branches, "shop", here)));
        check("branch shop sale ma", Some((Versions, "shop", here)));
        check("export -d ", Some((Databases, "", here)));
        check("export -d shop@sale -c ", Some((Collections, "shop@sale", here)));
        for line in ["log --on", "log shop --grep ", "lo", "export -d shop -o ", "serve "] {
            check(line, None);
        }
    }
}
