//! Privileges: a resource, and actions on it.
//!
//! | resource | what it is |
//! |---|---|
//! | `{db: "shop", collection: "things"}` | a collection; with an empty `db` that of every database |
//! | `{db: "shop", collection: ""}` | a database, and all its collections but `system.*` |
//! | `{db: "", collection: ""}` | all databases but `local` and `config` |
//! | `{cluster: true}` | the server |
//! | `{anyResource: true}` | everything |
//!
//! With `branch: "dev/*"` beside `db` and `collection` it is only what lies on such branches.

use frond_db::Error;
use frond_doc::{Document, DocumentBuilder, Value};
use frond_query::Code;

use super::{Action, ActionSet, BranchPattern};
use crate::fields::Fields;

/// The resource that actions are done on.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Resource {
    /// Everything.
    Any,
    /// The server.
    Cluster,
    /// A database's collections, or one of them.
    Namespace {
        /// Empty: every database.
        database: String,
        /// Empty: the database itself, and all its collections but `system.*`.
        collection: String,
        /// `None`: on all branches.
        branch: Option<BranchPattern>,
    },
}

/// Actions on a resource.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Privilege {
    /// The resource on which they are granted.
    pub resource: Resource,
    /// The actions.
    pub actions: ActionSet,
}

impl Resource {
    /// A collection, or with an empty name a database, on all branches.
    pub fn namespace(database: &str, collection: &str) -> Resource {
        let (database, collection) = (database.to_owned(), collection.to_owned());
        Resource::Namespace { database, collection, branch: None }
    }

    fn read(document: Document<'_>) -> Result<Resource, Error> {
        let refuse = |message: &str| Err(Error::invalid(Code::BadValue, message));
        let mut fields = Fields::of_part("resource", document)?;
        let (any, cluster) = (fields.boolean("anyResource")?, fields.boolean("cluster")?);
        let (database, collection) = (fields.string("db")?, fields.string("collection")?);
        let branch = fields.string("branch")?;
        fields.finish()?;
        match (any, cluster, database, collection, branch) {
            (true, false, None, None, None) => Ok(Resource::Any),
            (false, true, None, None, None) => Ok(Resource::Cluster),
            (false, false, Some(database), Some(collection), branch) => {
                let name = |name: &str| !name.contains('\0');
                if !name(database) || !name(collection) || database.contains(['@', '%']) {
                    return refuse(
                        "the resource's db is a database without a version: its branches are \
                         named by 'branch'",
                    );
                }
                let Ok(branch) = branch.map(|text| BranchPattern::new(text).ok_or(())).transpose()
                else {
                    return refuse("the resource's branch is empty: leave it out to mean all");
                };
                let (database, collection) = (database.to_owned(), collection.to_owned());
                Ok(Resource::Namespace { database, collection, branch })
            }
            _ => refuse(
                "a resource is {db, collection}, optionally with branch, or {cluster: true}, or \
                 {anyResource: true}",
            ),
        }
    }

    fn append(&self, builder: &mut DocumentBuilder) {
        builder.begin_document("resource");
        match self {
            Resource::Any => {
                builder.append("anyResource", Value::Boolean(true));
            }
            Resource::Cluster => {
                builder.append("cluster", Value::Boolean(true));
            }
            Resource::Namespace { database, collection, branch } => {
                builder
                    .append("db", Value::String(database))
                    .append("collection", Value::String(collection));
                if let Some(branch) = branch {
                    builder.append("branch", Value::String(branch.as_str()));
                }
            }
        }
        builder.end();
    }
}

impl Privilege {
    /// Actions on a resource.
    pub fn new(resource: Resource, actions: &[Action]) -> Privilege {
        Privilege { resource, actions: ActionSet::of(actions) }
    }

    /// Reads `{resource, actions}`.
    ///
    /// # Errors
    /// `BadValue` if it isn't one, or names an action that there is not.
    pub fn read(value: Value<'_>) -> Result<Privilege, Error> {
        let Some(document) = value.as_document() else {
            let message = "a privilege is an object of 'resource' and 'actions'";
            return Err(Error::invalid(Code::BadValue, message));
        };
        let mut fields = Fields::of_part("privilege", document)?;
        let resource = Resource::read(fields.required_document("resource")?)?;
        let names = fields.array("actions")?.ok_or_else(|| fields.missing("actions"))?;
        let mut actions = ActionSet::default();
        for name in names.iter() {
            let name = name.as_str();
            let name =
                name.ok_or_else(|| Error::invalid(Code::BadValue, "actions are named by strings"))?;
            let action = Action::named(name).ok_or_else(|| {
                let message = format!("Unrecognized action privilege strings: {name}");
                Error::invalid(Code::BadValue, message)
            })?;
            actions = actions.union(ActionSet::of(&[action]));
        }
        fields.finish()?;
        if actions.is_empty() {
            return Err(Error::invalid(Code::BadValue, "a privilege needs actions"));
        }
        Ok(Privilege { resource, actions })
    }

    /// Reads an array of privileges; those on one resource become one.
    ///
    /// # Errors
    /// As [`Privilege::read`].
    pub fn read_all<'a>(values: impl Iterator<Item = Value<'a>>) -> Result<Vec<Privilege>, Error> {
        let mut privileges = Vec::new();
        for value in values {
            add(&mut privileges, Privilege::read(value)?);
        }
        Ok(privileges)
    }

    /// Appends an array of privileges.
    pub fn append_all(builder: &mut DocumentBuilder, name: &str, privileges: &[Privilege]) {
        builder.begin_array(name);
        for privilege in privileges {
            builder.push_begin_document();
            privilege.resource.append(builder);
            builder.begin_array("actions");
            for action in privilege.actions.iter() {
                builder.push(Value::String(action.name()));
            }
            builder.end().end();
        }
        builder.end();
    }
}

/// Adds a privilege to those that are there.
pub fn add(privileges: &mut Vec<Privilege>, privilege: Privilege) {
    match privileges.iter_mut().find(|known| known.resource == privilege.resource) {
        Some(known) => known.actions = known.actions.union(privilege.actions),
        None => privileges.push(privilege),
    }
}

/// Takes actions away; a privilege without actions goes.
pub fn remove(privileges: &mut Vec<Privilege>, privilege: &Privilege) {
    for known in privileges.iter_mut().filter(|known| known.resource == privilege.resource) {
        known.actions = known.actions.without(privilege.actions);
    }
    privileges.retain(|known| !known.actions.is_empty());
}

#[cfg(test)]
mod tests {
    use frond_doc::{DocumentBuf, document, extended_json};

    use super::*;

    fn read(json: &str) -> Result<Privilege, i32> {
        let document: DocumentBuf = extended_json::parse(json).expect("JSON");
        Privilege::read(Value::from(&document)).map_err(|error| error.code.number())
    }

    #[test]
    fn privileges_are_read_as_they_were_written() {
        for json in [
            r#"{"resource":{"db":"shop","collection":""},"actions":["find","insert"]}"#,
            r#"{"resource":{"db":"shop","collection":"a","branch":"dev/*"},"actions":["find"]}"#,
            r#"{"resource":{"cluster":true},"actions":["shutdown"]}"#,
            r#"{"resource":{"anyResource":true},"actions":["anyAction"]}"#,
        ] {
            let privilege = read(json).expect(json);
            let mut builder = DocumentBuilder::new();
            Privilege::append_all(&mut builder, "all", std::slice::from_ref(&privilege));
            let written = builder.build();
            let all = written.get("all").and_then(|all| all.as_array()).expect("an array");
            let again = Privilege::read_all(all.iter()).expect("read");
            assert_eq!(again, [privilege], "{json}");
        }
    }

    #[test]
    fn malformed_privileges_are_refused() {
        for json in [
            "{}",
            r#"{"resource":{"db":"shop"},"actions":["find"]}"#,
            r#"{"resource":{"db":"shop","collection":""},"actions":[]}"#,
            r#"{"resource":{"db":"shop","collection":""},"actions":["fly"]}"#,
            r#"{"resource":{"db":"shop@dev","collection":""},"actions":["find"]}"#,
            r#"{"resource":{"db":"shop","collection":"","branch":""},"actions":["find"]}"#,
            r#"{"resource":{"cluster":true,"branch":"a"},"actions":["find"]}"#,
            r#"{"resource":{"cluster":true,"anyResource":true},"actions":["find"]}"#,
            r#"{"resource":{"db":"a","collection":"","x":1},"actions":["find"]}"#,
        ] {
            assert!(read(json).is_err(), "{json}");
        }
        assert!(Privilege::read(Value::from(&document! {})).is_err());
    }

    #[test]
    fn actions_are_added_and_taken_away() {
        let shop = || Resource::namespace("shop", "");
        let mut all = Vec::new();
        add(&mut all, Privilege::new(shop(), &[Action::Find]));
        add(&mut all, Privilege::new(shop(), &[Action::Insert]));
        assert_eq!(all, [Privilege::new(shop(), &[Action::Find, Action::Insert])]);
        remove(&mut all, &Privilege::new(shop(), &[Action::Find]));
        remove(&mut all, &Privilege::new(Resource::Cluster, &[Action::Insert]));
        assert_eq!(all, [Privilege::new(shop(), &[Action::Insert])]);
        remove(&mut all, &Privilege::new(shop(), &[Action::Insert]));
        assert!(all.is_empty());
    }
}
