//! `frondHelp`: describes Frond's own commands, from their page.
//!
//! `docs/commands.md` has a section a command: its synopsis (lines that are set in by four), what
//! it does, what it answers, an example, its errors. A test refuses a command without one.

use frond_db::Error;
use frond_doc::{DocumentBuilder, Value};
use frond_query::Code;

use crate::commands::suggestion;
use crate::request::{Answer, Request};

const PAGE: &str = include_str!("../../../../docs/commands.md");
/// The beginning of a command's section.
const HEADING: &str = "\n### frond";
/// The beginning of the lines after it.
const SET_IN: &str = "    ";

/// A command's section.
struct Section {
    command: String,
    /// The forms of the command.
    usage: Vec<String>,
    /// Its first sentence.
    about: String,
    /// All of it, without where its links lead.
    text: String,
}

impl Section {
    /// Reads what stands behind [`HEADING`].
    fn read(section: &'static str) -> Section {
        let text = section.split("\n## ").next().unwrap_or(section);
        let (name, text) = text.split_once('\n').unwrap_or((text, ""));
        // The spaces of the first line count.
        let text = text.trim_start_matches('\n').trim_end();
        let (mut usage, mut rest): (Vec<String>, _) = (Vec::new(), text);
        while let Some(line) = rest.strip_prefix(SET_IN) {
            let (line, behind) = line.split_once('\n').unwrap_or((line, ""));
            match usage.last_mut() {
                Some(last) if !line.starts_with('{') => {
                    last.push(' ');
                    last.push_str(line.trim());
                }
                _ => usage.push(line.to_owned()),
            }
            rest = behind;
        }
        let paragraph = rest.trim_start().split("\n\n").next().unwrap_or_default();
        let paragraph = paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
        let about = paragraph.split_once(". ").map_or(paragraph.as_str(), |(first, _)| first);
        let about = about.trim_end_matches(['.', ':']).to_owned();
        Section { command: format!("frond{name}"), usage, about, text: without_links(text) }
    }
}

/// `[text](#place)` as `text`, and `[text](page.md)` as `text (docs/page.md)`: links can't be
/// followed from an answer.
fn without_links(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once("](") {
        let Some((before, name)) = before.rsplit_once('[') else { break };
        let Some((place, behind)) = behind.split_once(')') else { break };
        plain.push_str(before);
        plain.push_str(name);
        let page = place.split('#').next().unwrap_or_default();
        if !page.is_empty() {
            let folder = if page.contains("://") { "" } else { "docs/" };
            plain.push_str(&format!(" ({folder}{page})"));
        }
        rest = behind;
    }
    plain.push_str(rest);
    plain
}

/// The sections, in the page's order.
fn sections() -> impl Iterator<Item = Section> {
    PAGE.split(HEADING).skip(1).map(Section::read)
}

/// Returns the purpose of the command of this name, in a sentence; `None` if it isn't one of
/// Frond's own.
pub fn about(command: &str) -> Option<String> {
    sections().find(|section| section.command == command).map(|section| section.about)
}

/// Runs a `frondHelp`: lists the commands, or shows all about one, with or without its `frond`.
pub fn run(request: &Request<'_>) -> Answer {
    let topic = request.argument();
    request.no_fields()?;
    let mut answer = DocumentBuilder::new();
    let Value::String(topic) = topic else {
        answer.begin_array("commands");
        for section in sections() {
            answer
                .push_begin_document()
                .append("command", Value::String(&section.command))
                .append("about", Value::String(&section.about))
                .end();
        }
        answer.end();
        return Ok(answer);
    };
    let is_selected = |section: &Section| {
        let bare = section.command.trim_start_matches("frond");
        section.command.eq_ignore_ascii_case(topic) || bare.eq_ignore_ascii_case(topic)
    };
    let section = sections().find(is_selected).ok_or_else(|| {
        let names: Vec<String> = sections().map(|section| section.command).collect();
        let hint = suggestion::did_you_mean(topic, names.iter().map(String::as_str));
        let message = format!("'{topic}' is not one of Frond's own commands{hint}");
        Error::invalid(Code::CommandNotFound, message)
    })?;
    answer.append("command", Value::String(&section.command)).begin_array("usage");
    for form in &section.usage {
        answer.push(Value::String(form));
    }
    answer
        .end()
        .append("about", Value::String(&section.about))
        .append("text", Value::String(&section.text));
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::COMMANDS;

    #[test]
    fn every_command_of_frond_has_a_section() {
        let own = COMMANDS.iter().map(|command| command.name);
        let mut own: Vec<&str> = own.filter(|name| name.starts_with("frond")).collect();
        let listed: Vec<Section> = sections().collect();
        for section in &listed {
            let name = &section.command;
            let position = own.iter().position(|known| known == name);
            own.swap_remove(position.unwrap_or_else(|| panic!("{name} is no command")));
            assert!(!section.usage.is_empty() && !section.about.is_empty(), "{name}");
            for form in &section.usage {
                assert!(form.starts_with(&format!("{{{name}: ")), "{form}");
                assert!(form.contains('}'), "{form}");
            }
            assert!(!section.text.contains("\n## "), "{name}");
        }
        assert!(own.is_empty(), "without a section: {own:?}");
    }

    #[test]
    fn links_are_places_that_can_be_found() {
        for (text, expected) in [
            (
                "See [How documents\nmerge](merging.md#fields).",
                "See How documents\nmerge (docs/merging.md).",
            ),
            ("the [policy's](#frondpolicy) rules [a: int]", "the policy's rules [a: int]"),
            ("[BSON](https://bsonspec.org/), [n]", "BSON (https://bsonspec.org/), [n]"),
        ] {
            assert_eq!(without_links(text), expected);
        }
        let linked = sections().find(|section| section.text.contains("]("));
        assert_eq!(linked.map(|section| section.command), None);
    }

    #[test]
    fn a_section_is_read() {
        let text = "Do\n\n    {frondDo: 1,\n     [a: int]}\n    {frondDo: 2}\n\nDoes it\nwell. \
                    Ever.\n\nMore.\n\n## Else";
        let section = Section::read(text);
        assert_eq!(section.command, "frondDo");
        assert_eq!(section.usage, ["{frondDo: 1, [a: int]}", "{frondDo: 2}"]);
        assert_eq!(section.about, "Does it well");
        assert!(section.text.ends_with("More."), "{}", section.text);
    }
}
