//! Random changes of documents, of small ones and of those that are trees of pieces: for the
//! database an insertion, a deletion or an update with operators, for the model a change of a list
//! of fields.

use std::rc::Rc;

use frond_db::{DeleteStatement, Durability, Error, Transaction, UpdateStatement};
use frond_doc::{DocumentBuf, DocumentBuilder, document};
use frond_testkit::Random;

use super::state::Key;
use crate::model::naive::{Fields, Item, append, random_fields, to_document};

/// Documents with a smaller `_id` are large.
pub const LARGE_IDS: usize = 4;
const TEXT_NAMES: [&str; 10] = ["s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9"];

pub enum Edit {
    /// There afterwards, whatever there was.
    Put(Fields),
    Remove,
    /// An update of what is there.
    Update(Change),
}

pub enum Change {
    Set(String, Item),
    /// A field of a nested document that is there.
    SetInner(String, String, Item),
    Unset(String),
    Increase(String, i32),
    Push(String, Vec<i32>),
}

fn text(random: &mut Random, bytes: usize) -> Item {
    let letters = random.bytes(bytes).into_iter().map(|byte| char::from(b'a' + byte % 26));
    Item::Text(Rc::from(letters.collect::<String>()))
}

/// A text that is much like `before`.
fn changed(before: &str, random: &mut Random) -> Item {
    let start = random.below(before.len());
    let end = (start + random.below(20)).min(before.len());
    let count = random.below(20);
    let Item::Text(middle) = text(random, count) else { unreachable!("it is a text") };
    Item::Text(Rc::from([&before[..start], &middle, &before[end..]].concat()))
}

fn new_document(id: i32, random: &mut Random) -> Fields {
    let mut fields = random_fields(random);
    let (texts, bytes) = match random.below(8) {
        _ if (id as usize) < LARGE_IDS => (TEXT_NAMES.len(), 3000 + random.below(4000)),
        0 => (4, 3000),
        1 | 2 => (2, random.below(1500)),
        _ => (1, random.below(300)),
    };
    for name in &TEXT_NAMES[..texts] {
        fields.push(((*name).to_owned(), text(random, bytes)));
    }
    if random.one_in(4) {
        let count = if (id as usize) < LARGE_IDS { 3000 } else { 30 };
        let numbers = (0..random.below(count)).map(|_| random.below(1000) as i32).collect();
        fields.push(("l".to_owned(), Item::List(numbers)));
    }
    fields
}

impl Edit {
    pub fn random(id: i32, before: Option<&Fields>, random: &mut Random) -> Edit {
        match before {
            Some(_) if random.one_in(8) => Edit::Remove,
            Some(fields) if !random.one_in(6) => Edit::Update(Change::random(fields, random)),
            None if random.one_in(8) => Edit::Remove,
            _ => Edit::Put(new_document(id, random)),
        }
    }

    /// Returns the fields after the edit.
    pub fn apply(&self, before: Option<&Fields>) -> Option<Fields> {
        match self {
            Edit::Put(fields) => Some(fields.clone()),
            Edit::Remove => None,
            Edit::Update(change) => before.map(|fields| change.apply(fields.clone())),
        }
    }

    /// Does it in a transaction that is committed at once.
    pub fn run_within(
        &self,
        transaction: &Transaction,
        (branch, collection, id): &Key,
        durability: Durability,
    ) -> Result<bool, Error> {
        let changed = self.run(&transaction.database(branch)?, collection, *id, durability)?;
        transaction.commit(durability, None).map(|()| changed)
    }

    /// Does it; returns whether there was something to change.
    pub fn run(
        &self,
        database: &frond_db::Database,
        collection: &str,
        id: i32,
        durability: Durability,
    ) -> Result<bool, Error> {
        let filter = document! { "_id": id };
        let statement = match self {
            Edit::Put(fields) => UpdateStatement {
                upsert: true,
                ..UpdateStatement::new(filter, to_document(id, fields))
            },
            Edit::Update(change) => UpdateStatement::new(filter, change.statement()),
            Edit::Remove => {
                let statement = DeleteStatement {
                    filter,
                    only_first: true,
                    hint: None,
                    variables: None,
                    collation: None,
                };
                let report = database.delete(collection, &[statement], true, durability)?;
                let failed = report.errors.into_iter().next();
                return failed.map_or(Ok(report.count > 0), |error| Err(error.error));
            }
        };
        let report = database.update(collection, &[statement], true, durability)?;
        let failed = report.errors.into_iter().next();
        let changed = report.modified > 0 || !report.upserted.is_empty();
        failed.map_or(Ok(changed), |error| Err(error.error))
    }
}

impl Change {
    fn random(fields: &Fields, random: &mut Random) -> Change {
        let (name, item) = match fields.is_empty() {
            true => ("new".to_owned(), Item::Number(0)),
            false => random.choose(fields).clone(),
        };
        match (random.below(8), item) {
            (0, _) => Change::Set("c".to_owned(), Item::Number(random.below(3) as i32)),
            (1, _) => Change::Unset(name),
            (2, _) => {
                let bytes = random.below(3000);
                Change::Set((*random.choose(&TEXT_NAMES)).to_owned(), text(random, bytes))
            }
            (_, Item::Number(_)) => Change::Increase(name, random.below(3) as i32 - 1),
            (_, Item::Text(before)) if !before.is_empty() => {
                Change::Set(name, changed(&before, random))
            }
            (_, Item::List(_)) => {
                Change::Push(name, (0..random.below(4)).map(|_| random.below(3) as i32).collect())
            }
            (_, Item::Nested(_)) => {
                let inner = (*random.choose(&["x", "y", "z"])).to_owned();
                Change::SetInner(name, inner, Item::Number(random.below(3) as i32))
            }
            _ => Change::Set(name, Item::Number(1)),
        }
    }

    fn apply(&self, mut fields: Fields) -> Fields {
        match self {
            Change::Set(name, item) => set(&mut fields, name, item.clone()),
            Change::Unset(name) => fields.retain(|(known, _)| known != name),
            Change::SetInner(name, inner, item) => {
                if let Some(Item::Nested(nested)) = get_mut(&mut fields, name) {
                    set(nested, inner, item.clone());
                }
            }
            Change::Increase(name, more) => match get_mut(&mut fields, name) {
                Some(Item::Number(number)) => *number += more,
                Some(_) => {}
                None => set(&mut fields, name, Item::Number(*more)),
            },
            Change::Push(name, more) => {
                if let Some(Item::List(numbers)) = get_mut(&mut fields, name) {
                    numbers.extend(more);
                }
            }
        }
        fields
    }

    fn statement(&self) -> DocumentBuf {
        let (operator, path, item) = match self {
            Change::Set(name, item) => ("$set", name.clone(), item.clone()),
            Change::SetInner(name, inner, item) => {
                ("$set", format!("{name}.{inner}"), item.clone())
            }
            Change::Unset(name) => ("$unset", name.clone(), Item::Number(1)),
            Change::Increase(name, more) => ("$inc", name.clone(), Item::Number(*more)),
            Change::Push(name, more) => {
                let each = vec![("$each".to_owned(), Item::List(more.clone()))];
                ("$push", name.clone(), Item::Nested(each))
            }
        };
        let mut out = DocumentBuilder::new();
        append(operator, &Item::Nested(vec![(path, item)]), &mut out);
        out.build()
    }
}

fn get_mut<'a>(fields: &'a mut Fields, name: &str) -> Option<&'a mut Item> {
    fields.iter_mut().find(|(known, _)| known == name).map(|(_, item)| item)
}

fn set(fields: &mut Fields, name: &str, item: Item) {
    match get_mut(fields, name) {
        Some(known) => *known = item,
        None => fields.push((name.to_owned(), item)),
    }
}
