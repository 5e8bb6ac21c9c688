//! The `frond` command: a server, an importer, version control and a tour, in one binary.
//!
//! Reading order: `arguments` (what several commands take), `backend` (a data directory or a
//! running server: both take command documents and give reply documents, so that each command here
//! exists once), `directory` (what is a data directory), `commands` (one file a command), `input`
//! and `output` (files in, text out), `output_file` (files that are there whole or not at all),
//! `text_file` (small files), `terminal` (colours), `pager`, `allocator` (memory), `other_tools`
//! (what users of git type), `failure` (what can go wrong, and exit codes).

#![deny(clippy::print_stderr)] // `notice` says why.

mod allocator;
mod arguments;
mod backend;
mod commands;
mod directory;
mod failure;
mod input;
mod json_list;
mod notice;
mod other_tools;
mod output;
mod output_file;
mod pager;
mod panics;
mod plain_text;
mod terminal;
mod text_file;

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue};
use clap::{Args, CommandFactory, Parser, Subcommand};

use crate::commands::serve::configuration::Configuration;
use crate::commands::serve::hidden_password;
use crate::commands::serve::mongod::{self, Invocation};
use crate::failure::{ErrorForm, Failure};
use crate::notice::print;
use crate::terminal::{Colour, Terminal};

const EXAMPLES: &str = "\
Examples:
  frond tour                                    see what it does, in a second
  frond serve                                   serve ./frond-data on 127.0.0.1:27017
  frond shell shop                              mongosh on it, with db.commit() and more
  frond import -d shop -c items items.jsonl     fill a collection
  frond commit shop -m 'first items'            record a version
  frond branch shop sale                        a branch: the database shop@sale
  frond diff shop main sale                     what differs
  frond merge shop sale -m 'the sale begins'    bring it into main

A database's name may carry a version: shop (the branch main), shop@sale (another branch), \
shop@main~2 or shop@<commit> (read only).";

/// A version-controlled document database that MongoDB's drivers, mongosh and Compass use unchanged
#[derive(Parser)]
#[command(name = "frond", version, after_help = EXAMPLES, max_term_width = 100)]
#[command(subcommand_required = true, arg_required_else_help = true)]
struct Cli {
    #[command(flatten)]
    global: Global,

    #[command(subcommand)]
    command: Command,
}

#[derive(Args)]
struct Global {
    /// When to colour the output
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = Colour::Auto, global = true)]
    #[arg(help_heading = "Global options")]
    color: Colour,

    /// Don't page: on a terminal log, diff, show, history and blame go through PAGER, or less
    #[arg(long, global = true, help_heading = "Global options")]
    no_pager: bool,
}

/// The line of `frond serve`, alone: to describe all commands as well takes some of the few
/// milliseconds in which a server starts.
#[derive(Parser)]
#[command(name = "frond serve", bin_name = "frond serve", max_term_width = 100)]
struct ServeLine {
    #[command(flatten)]
    global: Global,

    #[command(flatten)]
    serve: commands::serve::Serve,
}

#[derive(Subcommand)]
enum Command {
    Tour(commands::tour::Tour),
    Serve(Box<commands::serve::Serve>),
    Router(commands::router::Router),
    Shell(commands::shell::Shell),
    Mcp(commands::mcp::Mcp),
    Import(commands::import::Import),
    Export(commands::export::Export),
    Follow(commands::follow::Follow),
    FromDolt(commands::from_dolt::FromDolt),
    Commit(commands::commit::Commit),
    Log(commands::log::Log),
    Show(commands::show::Show),
    History(commands::history::History),
    Blame(commands::blame::Blame),
    Status(commands::status::Status),
    Ls(commands::ls::Ls),
    Branch(commands::branch::Branch),
    Tag(commands::tag::Tag),
    Policy(commands::policy::Policy),
    Diff(commands::diff::Diff),
    Bisect(commands::bisect::Bisect),
    FormatPatch(commands::patch::FormatPatch),
    Apply(commands::patch::Apply),
    Merge(commands::merge::Merge),
    Conflicts(commands::conflicts::Conflicts),
    Resolve(commands::resolve::Resolve),
    CherryPick(commands::pick::CherryPick),
    Revert(commands::pick::Revert),
    Rebase(commands::rebase::Rebase),
    Reset(commands::reset::Reset),
    Restore(commands::restore::Restore),
    Remote(commands::remote::Remotes),
    Clone(commands::remote::Clone),
    Fetch(commands::remote::Fetch),
    Pull(commands::pull::Pull),
    Push(commands::push::Push),
    Backup(commands::backup::Backup),
    Reflog(commands::reflog::Reflog),
    Undo(commands::undo::Undo),
    Erase(commands::erase::Erase),
    Gc(commands::gc::Gc),
    Doctor(commands::doctor::Doctor),
    Replicas(commands::replicas::Replicas),
    Fsck(commands::fsck::Fsck),
    Repair(commands::repair::Repair),
    Salvage(commands::salvage::Salvage),
    Completions(commands::completions::Completions),
    Complete(commands::complete::Complete),
    Man(commands::man::Manual),
}

impl Command {
    /// Whether its output may be longer than a screen, and ends by itself.
    fn is_long(&self) -> bool {
        use Command::{Blame, Diff, History, Log, Reflog, Show};
        matches!(self, Log(_) | Diff(_) | Show(_) | History(_) | Blame(_) | Reflog(_))
    }
}

/// Runs the command that the process was given, and returns its exit code.
pub fn main() -> ExitCode {
    if std::env::args_os().nth(1).is_some_and(|word| word == frond_script::COMMAND) {
        // An error ends it, which its parent sees.
        return frond_script::worker::run().map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS);
    }
    let error_form = ErrorForm::of(std::env::args_os());
    let cli = match read_arguments(error_form) {
        Ok(cli) => cli,
        Err(failure) => {
            failure.print(error_form);
            return ExitCode::from(failure.exit_code());
        }
    };
    let is_long = cli.command.is_long() && !cli.global.no_pager;
    let mut terminal = Terminal::new(cli.global.color, is_long);
    let done = run(&cli.command, &mut terminal);
    // An error comes after what was printed before it, and after the pager.
    let finished = terminal.finish();
    match done.and(finished) {
        Ok(()) | Err(Failure::ReaderGone) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.print(error_form);
            ExitCode::from(failure.exit_code())
        }
    }
}

/// Reads the command line; what serves also has a file and the environment, or mongod's options.
fn read_arguments(error_form: ErrorForm) -> Result<Cli, Failure> {
    let mut arguments: Vec<OsString> = std::env::args_os().collect();
    hidden_password::hide(&arguments)?;
    let as_mongod = match mongod::arguments_of(&arguments).map(mongod::read).transpose()? {
        None => false,
        Some(Invocation::Serve(translated)) => {
            arguments = translated;
            true
        }
        Some(Invocation::Print(text)) => {
            // As help is: a reader that is gone misses nothing.
            let _ = writeln!(std::io::stdout(), "{text}");
            std::process::exit(0)
        }
    };
    put_command_first(&mut arguments);
    let is_help = arguments.iter().any(|word| word == "--help" || word == "-h");
    if arguments.get(1).is_none_or(|word| word != "serve") || is_help {
        if arguments.get(1).is_some_and(|word| word == "log" || word == "history") {
            name_limit(&mut arguments);
        }
        let command = arguments.get(1).and_then(|word| word.to_str()).map(str::to_owned);
        let parsed = Cli::try_parse_from(arguments);
        return parsed.or_else(|error| refuse(error, command.as_deref(), error_form));
    }
    read_serve_line(arguments, as_mongod)
}

fn read_serve_line(arguments: Vec<OsString>, as_mongod: bool) -> Result<Cli, Failure> {
    let configuration = Configuration::read(arguments, std::env::vars_os())?;
    let words = configuration.arguments.iter().skip(1);
    let line = ServeLine::try_parse_from(words).unwrap_or_else(|mut error| {
        let meant = other_tools::correct(&mut error, Some("serve"));
        let _ = error.print();
        if let Some(ContextValue::String(argument)) = error.get(ContextKind::InvalidArg)
            && let Some(origin) = configuration.origin_of(argument)
        {
            print(format_args!("\n  {argument} comes from {origin}"));
        } else if let Some(meant) = meant {
            print(format_args!("\n  {meant}"));
        }
        std::process::exit(error.exit_code())
    });
    let mut serve = line.serve;
    serve.parsed = configuration.parsed;
    serve.as_mongod = as_mongod;
    serve.take_begun_set()?;
    Ok(Cli { global: line.global, command: Command::Serve(Box::new(serve)) })
}

/// Moves options of every command, or of most, that stand before the command's name behind it.
fn put_command_first(arguments: &mut [OsString]) {
    let mut at = 1;
    while let Some(word) = arguments.get(at).and_then(|word| word.to_str()) {
        at += match word {
            "--color" | "--data" | "--uri" => 2,
            "--no-pager" => 1,
            _ if ["--color=", "--data=", "--uri="].iter().any(|each| word.starts_with(each)) => 1,
            _ => break,
        };
    }
    if let Some(to_command) = arguments.get_mut(1..=at) {
        to_command.rotate_right(1);
    }
}

/// Makes `-5` what clap knows, `-n5`, as git's users write it.
fn name_limit(arguments: &mut [OsString]) {
    for word in arguments.iter_mut().skip(2).take_while(|word| *word != "--") {
        let digits = word.to_str().and_then(|word| word.strip_prefix('-')).unwrap_or_default();
        if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) {
            *word = format!("-n{digits}").into();
        }
    }
}

/// Ends the process: help was asked for, or the arguments are wrong (exit code 2).
///
/// # Errors
/// [`Failure::Usage`] for a program that reads JSON: what is wrong, and what was meant.
fn refuse(
    mut error: clap::Error,
    command: Option<&str>,
    error_form: ErrorForm,
) -> Result<Cli, Failure> {
    let meant = other_tools::correct(&mut error, command);
    if error.use_stderr() && error_form == ErrorForm::Json {
        let wrong = first_paragraph(&error.render().to_string());
        let meant = meant.map(|meant| format!("; {meant}")).unwrap_or_default();
        return Err(Failure::Usage(wrong + &meant));
    }
    // As clap itself does it: a message that can't be written is dropped.
    let _ = error.print();
    if let Some(meant) = meant {
        print(format_args!("\n  {meant}"));
    }
    std::process::exit(error.exit_code())
}

/// What a message of the parser says is wrong, on one line.
fn first_paragraph(message: &str) -> String {
    let message = message.strip_prefix("error: ").unwrap_or(message);
    let lines = message.lines().map(str::trim).take_while(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join(" ")
}

fn run(command: &Command, terminal: &mut Terminal) -> Result<(), Failure> {
    match command {
        Command::Tour(tour) => tour.run(terminal),
        Command::Serve(serve) => serve.run(terminal),
        Command::Router(router) => router.run(terminal),
        Command::Shell(shell) => shell.run(terminal),
        Command::Mcp(mcp) => mcp.run(terminal),
        Command::Import(import) => import.run(terminal),
        Command::Export(export) => export.run(terminal),
        Command::Follow(follow) => follow.run(terminal),
        Command::FromDolt(from_dolt) => from_dolt.run(terminal),
        Command::Commit(commit) => commit.run(terminal),
        Command::Log(log) => log.run(terminal),
        Command::Show(show) => show.run(terminal),
        Command::History(history) => history.run(terminal),
        Command::Blame(blame) => blame.run(terminal),
        Command::Status(status) => status.run(terminal),
        Command::Ls(ls) => ls.run(terminal),
        Command::Branch(branch) => branch.run(terminal),
        Command::Tag(tag) => tag.run(terminal),
        Command::Policy(policy) => policy.run(terminal),
        Command::Diff(diff) => diff.run(terminal),
        Command::Bisect(bisect) => bisect.run(terminal),
        Command::FormatPatch(format) => format.run(terminal),
        Command::Apply(apply) => apply.run(terminal),
        Command::Merge(merge) => merge.run(terminal),
        Command::Conflicts(conflicts) => conflicts.run(terminal),
        Command::Resolve(resolve) => resolve.run(terminal),
        Command::CherryPick(pick) => pick.run(terminal),
        Command::Revert(revert) => revert.run(terminal),
        Command::Rebase(rebase) => rebase.run(terminal),
        Command::Reset(reset) => reset.run(terminal),
        Command::Restore(restore) => restore.run(terminal),
        Command::Remote(remotes) => remotes.run(terminal),
        Command::Clone(clone) => clone.run(terminal),
        Command::Fetch(fetch) => fetch.run(terminal),
        Command::Pull(pull) => pull.run(terminal),
        Command::Push(push) => push.run(terminal),
        Command::Backup(backup) => backup.run(terminal),
        Command::Reflog(reflog) => reflog.run(terminal),
        Command::Undo(undo) => undo.run(terminal),
        Command::Erase(erase) => erase.run(terminal),
        Command::Gc(gc) => gc.run(terminal),
        Command::Doctor(doctor) => doctor.run(terminal),
        Command::Replicas(replicas) => replicas.run(terminal),
        Command::Fsck(fsck) => fsck.run(terminal),
        Command::Repair(repair) => repair.run(terminal),
        Command::Salvage(salvage) => salvage.run(terminal),
        Command::Completions(completions) => completions.run(Cli::command(), terminal),
        Command::Complete(complete) => complete.run(Cli::command(), terminal),
        Command::Man(manual) => manual.run(Cli::command(), terminal),
    }
}

#[cfg(test)]
mod tests;
