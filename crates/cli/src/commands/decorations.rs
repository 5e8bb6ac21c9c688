//! The branches and tags that name a commit, beside it as in git: `(main, tag: v1)`.

use std::collections::HashMap;

use frond_doc::{Document, document};

use crate::backend::Backend;
use crate::failure::Failure;
use crate::output::{documents_of, plain, text_of};
use crate::terminal::{Style, Terminal};

/// The names of each commit that has one.
#[derive(Default)]
pub struct Decorations(HashMap<String, Vec<String>>);

impl Decorations {
    /// Asks for the branches and tags of a database. A user who may not list them sees none.
    ///
    /// # Errors
    /// If the server is gone.
    pub fn read(backend: &mut dyn Backend, database: &str) -> Result<Decorations, Failure> {
        let mut names: HashMap<String, Vec<String>> = HashMap::new();
        for (command, list, field, before) in [
            (document! { "frondBranch": 1_i32 }, "branches", "branch", ""),
            (document! { "frondTag": 1_i32 }, "tags", "tag", "tag: "),
        ] {
            let answer = match backend.execute(database, &command) {
                Ok(answer) => answer,
                Err(Failure::Refused { .. }) => continue,
                Err(failure) => return Err(failure),
            };
            for named in documents_of(answer.view(), list) {
                let name = format!("{before}{}", plain(text_of(named, field)));
                names.entry(text_of(named, "commitId").to_owned()).or_default().push(name);
            }
        }
        Ok(Decorations(names))
    }

    /// Returns the names to print behind a commit's id, with a space before them, or nothing.
    pub fn of(&self, terminal: &Terminal, commit: Document<'_>) -> String {
        self.0.get(text_of(commit, "commitId")).map_or_else(String::new, |names| {
            format!(" {}", terminal.paint(Style::Accent, format!("({})", names.join(", "))))
        })
    }
}
