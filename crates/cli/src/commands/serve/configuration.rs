//! Sources of options for `frond serve` besides its command line: a file in YAML with mongod's
//! names (`--config`), then variables of the environment (`FROND_LISTEN` is `--listen`).
//!
//! 1. Each source becomes a list of settings: a flag, its value, where it stands.
//! 2. Of each flag the settings of the last source that has it hold: file, environment, command
//!    line.
//! 3. These settings are put before the command line's own words, and clap reads it all: a value
//!    from a file is judged as one of a flag, with the place where it stands.
//!
//! An unknown key or variable is refused by its name.

mod keys;
mod yaml;

use std::ffi::OsString;
use std::path::Path;

use clap::Args;
use frond_doc::{DocumentBuf, DocumentBuilder, Value};

use crate::commands::serve::Serve;
use crate::failure::Failure;
use crate::text_file;

/// The prefix of Frond's own settings in mongod's files.
const OWN: &str = "frond.";
/// The prefix of variables of the environment.
const VARIABLE: &str = "FROND_";
/// Variables that aren't settings of a server: those of other commands, and those of tests.
const OTHER_VARIABLES: &[&str] = &[
    "FROND_AUTHOR",
    "FROND_PASSWORD",
    "FROND_REMOTE_TOKEN",
    "FROND_FAULTS",
    "FROND_FAULTS_DIRECTORY",
    "FROND_SEED",
    "FROND_SEED_FROM",
    "FROND_SEED_SECONDS",
    "FROND_SEED_TIMES",
];
/// Variables that Kubernetes and Docker make of a service or container that is called frond.
const SERVICE_VARIABLES: &[&str] = &["FROND_SERVICE_", "FROND_PORT", "FROND_ENV_", "FROND_NAME"];

/// One setting.
#[derive(Clone, PartialEq, Debug)]
pub struct Setting {
    /// The flag's name, without dashes.
    flag: String,
    /// Its value; of a flag that takes none whether it is given.
    value: Given,
    /// The key by which it is reported: in a file, or as it would be in one.
    key: String,
    /// The place of the setting; `None`: on the command line.
    origin: Option<String>,
}

/// A value of a flag.
#[derive(Clone, PartialEq, Debug)]
enum Given {
    Text(OsString),
    Switch(bool),
}

/// All that holds.
pub struct Configuration {
    /// The command line, completed.
    pub arguments: Vec<OsString>,
    /// The settings in force, under mongod's names: `getCmdLineOpts` shows them as `parsed`.
    pub parsed: DocumentBuf,
    settings: Vec<Setting>,
}

/// A flag of `frond serve`.
struct Flag {
    name: String,
    takes_value: bool,
    is_list: bool,
}

impl Configuration {
    /// Completes a command line, that of `frond serve`, by what its file and the environment say.
    ///
    /// # Errors
    /// [`Failure::Usage`] with the key or variable that is unknown, or whose value is wrong;
    /// [`Failure::Failed`] if the file can't be read.
    pub fn read(
        arguments: Vec<OsString>,
        variables: impl Iterator<Item = (OsString, OsString)>,
    ) -> Result<Configuration, Failure> {
        let flags = flags();
        let own = arguments.get(2..).unwrap_or_default();
        let line = of_command_line(own, &flags);
        let environment = of_environment(variables, &flags)?;
        let config = line.iter().chain(&environment).find(|setting| setting.flag == "config");
        let file = match config {
            Some(Setting { value: Given::Text(path), .. }) => of_file(Path::new(path), &flags)?,
            _ => Vec::new(),
        };
        let named = |layer: &[Setting], flag: &str| layer.iter().any(|it| it.flag == flag);
        let file =
            file.into_iter().filter(|it| !named(&environment, &it.flag) && !named(&line, &it.flag));
        let mut settings: Vec<Setting> = file.collect();
        settings.extend(environment.iter().filter(|it| !named(&line, &it.flag)).cloned());
        let mut completed: Vec<OsString> = arguments.iter().take(2).cloned().collect();
        completed.extend(settings.iter().filter_map(Setting::as_argument));
        completed.extend(own.iter().cloned());
        settings.extend(line);
        let parsed = parsed(&settings);
        Ok(Configuration { arguments: completed, parsed, settings })
    }

    /// Returns where the value of a flag stands, named as clap names it; `None` on the command
    /// line.
    pub fn origin_of(&self, argument: &str) -> Option<&str> {
        let name = argument.trim_start_matches('-');
        let name = name.split_once(' ').map_or(name, |(name, _)| name);
        let setting = self.settings.iter().rev().find(|setting| setting.flag == name)?;
        setting.origin.as_deref()
    }
}

impl Setting {
    fn as_argument(&self) -> Option<OsString> {
        let mut argument = OsString::from(format!("--{}", self.flag));
        match &self.value {
            Given::Switch(false) => return None,
            Given::Switch(true) => {}
            Given::Text(value) => {
                argument.push("=");
                argument.push(value);
            }
        }
        Some(argument)
    }
}

fn flags() -> Vec<Flag> {
    let command = Serve::augment_args(clap::Command::new("serve"));
    let flags = command.get_arguments().filter_map(|argument| {
        let (name, action) = (argument.get_long()?.to_owned(), argument.get_action());
        let is_list = matches!(action, clap::ArgAction::Append);
        Some(Flag { name, takes_value: action.takes_values(), is_list })
    });
    flags.collect()
}

/// Reads the settings of the command line, up to a word that clap will refuse.
fn of_command_line(words: &[OsString], flags: &[Flag]) -> Vec<Setting> {
    let mut settings = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let word = word.to_string_lossy();
        let Some(word) = word.strip_prefix("--") else { break };
        let (name, value) = word.split_once('=').map_or((word, None), |(n, v)| (n, Some(v)));
        let Some(flag) = flags.iter().find(|flag| flag.name == name) else { break };
        let value = match (flag.takes_value, value) {
            (false, _) => Given::Switch(true),
            (true, Some(value)) => Given::Text(value.into()),
            (true, None) => match words.next() {
                Some(value) => Given::Text(value.clone()),
                None => break,
            },
        };
        let (flag, key) = (flag.name.clone(), keys::key_of(name));
        settings.push(Setting { flag, value, key, origin: None });
    }
    settings
}

/// Reads the settings of the environment.
fn of_environment(
    variables: impl Iterator<Item = (OsString, OsString)>,
    flags: &[Flag],
) -> Result<Vec<Setting>, Failure> {
    let mut settings = Vec::new();
    for (variable, value) in variables {
        let Some(variable) = variable.to_str().filter(|it| it.starts_with(VARIABLE)) else {
            continue;
        };
        let is_service = SERVICE_VARIABLES.iter().any(|start| variable.starts_with(start));
        if is_service || OTHER_VARIABLES.contains(&variable) {
            continue;
        }
        let Some(flag) = flags.iter().find(|flag| variable_of(&flag.name) == variable) else {
            let what =
                format!("the environment has {variable}, which is not a setting of frond serve");
            return Err(Failure::Usage(what));
        };
        let new = |value| Setting {
            flag: flag.name.clone(),
            value,
            key: keys::key_of(&flag.name),
            origin: Some(format!("the environment, {variable}")),
        };
        if !flag.takes_value {
            let is_given = boolean(&value.to_string_lossy()).ok_or_else(|| {
                Failure::Usage(format!("the environment has {variable}: it must be true or false"))
            })?;
            settings.push(new(Given::Switch(is_given)));
        } else if let Some(list) = value.to_str().filter(|_| flag.is_list) {
            let values = list.split(',').map(|value| Given::Text(value.trim().into()));
            settings.extend(values.map(new));
        } else {
            settings.push(new(Given::Text(value)));
        }
    }
    // The environment has no order.
    settings.sort_by(|one, other| one.flag.cmp(&other.flag));
    Ok(settings)
}

/// `FROND_LISTEN` for `listen`.
fn variable_of(flag: &str) -> String {
    format!("{VARIABLE}{}", flag.replace('-', "_").to_ascii_uppercase())
}

fn of_file(path: &Path, flags: &[Flag]) -> Result<Vec<Setting>, Failure> {
    let name = path.display().to_string();
    let text = text_file::read(path).map_err(|error| Failure::file(&name, &error))?;
    let refused = |(line, what): (usize, String)| Failure::Usage(format!("{name}:{line}: {what}"));
    let entries = yaml::read(&text).map_err(refused)?;
    keys::settings(&entries, &name, flags).map_err(refused)
}

/// A value of a file in YAML, by its key; `None` also if it can't be read, which is reported where
/// all of it is.
pub fn value_of(text: &str, key: &str) -> Option<String> {
    let entries = yaml::read(text).ok()?;
    let entry = entries.into_iter().rfind(|entry| entry.key == key)?;
    match entry.value {
        yaml::Value::Text(text) => Some(text),
        _ => None,
    }
}

/// Reads a boolean, in the words of YAML and of people.
fn boolean(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" | "1" => Some(true),
        "false" | "no" | "off" | "0" => Some(false),
        _ => None,
    }
}

/// Settings as a document, by their keys; those of one key are a list.
fn parsed(settings: &[Setting]) -> DocumentBuf {
    let mut fields: Vec<(Vec<&str>, Vec<&Given>)> = Vec::new();
    for setting in settings {
        let path: Vec<&str> = setting.key.split('.').collect();
        match fields.iter_mut().find(|(known, _)| *known == path) {
            Some((_, values)) => values.push(&setting.value),
            None => fields.push((path, vec![&setting.value])),
        }
    }
    fields.sort_by(|one, other| one.0.cmp(&other.0));
    let mut document = DocumentBuilder::new();
    append_fields(&mut document, &fields, 0);
    document.build()
}

/// Appends fields, sorted by their paths, which are alike up to `depth`.
fn append_fields(
    document: &mut DocumentBuilder,
    fields: &[(Vec<&str>, Vec<&Given>)],
    depth: usize,
) {
    for group in fields.chunk_by(|one, other| one.0[depth] == other.0[depth]) {
        let name = group[0].0[depth];
        if group[0].0.len() > depth + 1 {
            document.begin_document(name);
            append_fields(document, group, depth + 1);
            document.end();
            continue;
        }
        match group[0].1.as_slice() {
            [one] => append_value(document, name, one),
            several => {
                document.begin_array(name);
                for value in several {
                    if let Given::Text(text) = value {
                        document.push(Value::String(&text.to_string_lossy()));
                    }
                }
                document.end();
            }
        }
    }
}

fn append_value(document: &mut DocumentBuilder, name: &str, value: &Given) {
    match value {
        _ if keys::is_secret(name) => {
            document.append(name, Value::String("<password>"));
        }
        Given::Switch(is_on) if name == "authorization" => {
            let word = if *is_on { "enabled" } else { "disabled" };
            document.append(name, Value::String(word));
        }
        Given::Switch(is_on) => drop(document.append(name, Value::Boolean(*is_on))),
        Given::Text(text) => {
            let text = text.to_string_lossy();
            match text.parse::<i32>() {
                Ok(number) if keys::is_number(name) => {
                    document.append(name, Value::Int32(number));
                }
                _ => drop(document.append(name, Value::String(&text))),
            }
        }
    }
}

#[cfg(test)]
mod tests;
