//! Giving a collection the rules by which its documents are merged.

use frond_db::inside::merge_rules::{DocumentRules, OPTION};
use frond_db::inside::{Error, LatchMode, Outcome, Scope, WorkingEntry, adopt};
use frond_doc::{Document, DocumentBuilder, Value};
use frond_engine::Durability;
use frond_query::Code;

use crate::repository::Repository;

impl Repository {
    /// Gives a collection rules by which its documents are merged, or takes them away.
    ///
    /// # Errors
    /// `BadValue` if the rules are none; `NamespaceNotFound` if there is no such collection.
    pub fn set_merge_rules(
        &self,
        collection: &str,
        rules: Option<Document<'_>>,
    ) -> Result<(), Error> {
        if let Some(rules) = rules {
            DocumentRules::parse(Value::Document(rules))?;
        }
        let branch = self.writable_branch()?;
        let scope = Scope::collection(self.repository_name(), branch, collection);
        self.transact_alone(scope, LatchMode::Writer, Durability::Synced, |transaction| {
            self.refuse_closed(transaction)?;
            let Some(found) = adopt::find(transaction, self, branch, collection)? else {
                let message = format!("no collection {}", self.namespace(collection));
                return Err(Error::invalid(Code::NamespaceNotFound, message));
            };
            let mut live = adopt::adopt(transaction, self, branch, collection, &found)?;
            let mut options = DocumentBuilder::new();
            for (name, value) in live.options.iter().filter(|(name, _)| *name != OPTION) {
                options.append(name, value);
            }
            if let Some(rules) = rules {
                options.append(OPTION, Value::Document(rules));
            }
            live.options = options.build();
            let entry = WorkingEntry::Live(live);
            adopt::put_entry(transaction, self, branch, collection, &entry)?;
            Ok(Outcome::Commit(()))
        })
    }
}
