//! Goal: what an update does doesn't depend on the document's size. Method: the same update on
//! a small and on a large form of one document, which differ in nothing but the length of one
//! string: by `update` and by `findAndModify`, with events of the change and the documents before
//! and after. Counts, errors, answers, documents and events must be the same, as [`shortened`]
//! shows them. The updates are those in which sizes have mattered, and random ones.

use std::fmt::Write;

use frond_db::{
    ChangeStream, ChangeStreamRequest, Database, Durability, FindAndModify, Frond, FullDocument,
    Image, Interrupt, StreamStart, UpdateStatement, Watched,
};
use frond_doc::DocumentBuilder;
use frond_testkit::Random;
use frond_testkit::random::{assert_met, for_seeds};
use frond_vcs::Repository;

use crate::support::*;

/// The lengths of the string: of a document just below the size from which it lies in pieces, and
/// of one just above, the sizes that matter are met, too.
const LENGTHS: [usize; 4] = [3, 32_300, 32_800, 70_000];
const LETTER: &str = "w";

/// A document with such a string.
fn before(length: usize) -> String {
    let long = LETTER.repeat(length);
    format!(
        "{{'_id': 1, 'n': 4, 'text': 'ab', 'long': '{long}', 'list': [1, 'x', {{'k': 1}}, 3, 1],
          'rows': [{{'k': 1, 'v': 2}}, {{'k': 2, 'v': 0}}], 'deep': {{'a': {{'b': 1}}, 'c': []}},
          'first': 1, 'last': null}}"
    )
}

/// A text in which the long string is as short as any.
fn shortened(text: &str) -> String {
    let mut out = String::new();
    for part in text.split_inclusive(['\'', '"']) {
        let is_long = part.len() > 2 && part[..part.len() - 1].chars().all(|it| it == 'w');
        let _ = if is_long { write!(out, "LONG'") } else { write!(out, "{part}") };
    }
    out
}

struct Side {
    database: Repository,
    stream: ChangeStream,
}

impl Side {
    fn new(frond: &Frond, length: usize) -> Side {
        let database = Repository::open(frond, &format!("of{length}")).expect("a proper name");
        let kept = json("{'changeStreamPreAndPostImages': {'enabled': true}}");
        database.create_collection("c", kept.view()).expect("made");
        insert(&database, "c", &format!("[{}]", before(length)));
        let request = ChangeStreamRequest {
            full_document: FullDocument::WhenAvailable,
            before_change: Image::WhenAvailable,
            start: StreamStart::Now,
            ..ChangeStreamRequest::default()
        };
        let watched = Watched::Collection(Database::clone(&database), "c".to_owned());
        let stream = frond.watch(watched, &request).expect("it is kept");
        Side { database, stream }
    }

    fn events(&mut self) -> String {
        let mut shown = String::new();
        while let Some(event) = self.stream.next(&Interrupt::default()).expect("all is kept") {
            let mut facts = DocumentBuilder::new();
            let own = ["_id", "clusterTime", "wallTime", "ns", "collectionUUID"];
            for (name, value) in event.iter().filter(|(name, _)| !own.contains(name)) {
                facts.append(name, value);
            }
            shown.push_str(&text(&facts.build()));
        }
        shown
    }

    /// Does the update, and shows all that it does.
    fn run(&mut self, filter: &str, change: &str, filters: Option<&str>, finds: bool) -> String {
        let mut shown = String::new();
        if finds {
            let request = FindAndModify {
                filter: json(filter),
                update: Some(value(change)),
                array_filters: filters.map(value),
                return_new: true,
                ..FindAndModify::default()
            };
            let done = self.database.find_and_modify("c", &request, Durability::Relaxed);
            let _ = match done {
                Ok(report) => {
                    let value = report.value.as_ref().map(text);
                    write!(shown, "{value:?} {} {}", report.updated_existing, report.count)
                }
                Err(error) => write!(shown, "{:?} {}", error.code, error.message),
            };
        } else {
            let statement =
                UpdateStatement { array_filters: filters.map(value), ..statement(filter, change) };
            let done = self.database.update("c", &[statement], true, Durability::Relaxed);
            let _ = match done {
                Ok(report) => {
                    let errors = report.errors.iter().map(|it| (it.error.code, &it.error.message));
                    let errors: Vec<_> = errors.collect();
                    let counts = (report.matched, report.modified, &report.upserted);
                    write!(shown, "{counts:?} {errors:?}")
                }
                Err(error) => write!(shown, "{:?} {}", error.code, error.message),
            };
        }
        self.database.frond().flush().expect("the disk works");
        let _ = write!(shown, "\nnow {}", all(&self.database, "c"));
        let _ = write!(shown, "\nevents {}", self.events());
        // By its own database's name.
        shortened(&shown.replace(self.database.repository_name(), "db"))
    }
}

/// Each of `updates` (a filter, a change, `arrayFilters`) on documents of all sizes: alike.
fn check(updates: &[(&str, &str, Option<&str>)]) -> (usize, usize) {
    let (mut changed, mut refused) = (0, 0);
    for &(filter, change, filters) in updates {
        for finds in [false, true] {
            let frond = open_with_changes();
            let mut shown = LENGTHS.iter().map(|length| {
                let mut side = Side::new(&frond, *length);
                (*length, side.run(filter, change, filters, finds))
            });
            let (_, expected) = shown.next().expect("there are lengths");
            for (length, shown) in shown {
                assert_eq!(shown, expected, "{length}: {filter} {change} {filters:?}");
            }
            changed += usize::from(expected.contains("operationType"));
            refused += usize::from(!expected.contains("now [{'_id':1") || expected.contains("[("));
        }
    }
    (changed, refused)
}

/// Not a change that is shorter as a replacement: events have the shorter form, as MongoDB's, and
/// which one it is depends on the size.
#[test]
fn updates_in_which_sizes_have_mattered() {
    let pipelines = [
        "[{'$replaceWith': {'$mergeObjects': [{'first': 1}, '$$ROOT']}}]",
        "[{'$replaceWith': {'$mergeObjects': ['$$ROOT', {'first': 1}]}}]",
        "[{'$replaceWith': {'$mergeObjects': ['$$ROOT', {'first': 2}]}}]",
        "[{'$replaceWith': '$$ROOT'}]",
        "[{'$set': {'long': '$long'}}]",
        "[{'$set': {'copy': '$long'}}, {'$set': {'long': '$copy'}}, {'$unset': 'copy'}]",
        "[{'$unset': '_id'}]",
        "[{'$project': {'_id': 0}}]",
        "[{'$project': {'_id': 0, 'gone': 0}}]",
        "[{'$set': {'_id': 1}}]",
        "[{'$set': {'_id': {'$toDouble': 1}}}]",
        "[{'$set': {'_id': 2}}]",
        "[{'$unset': ['deep', 'first']}, {'$set': {'first': 1, 'deep': '$deep'}}]",
        "[{'$set': {'list': {'$concatArrays': ['$list', []]}}}]",
        "[{'$set': {'length': {'$gt': [{'$strLenCP': '$long'}, 0]}}}]",
        "[{'$set': {'n': {'$add': ['$text', 1]}}}]",
        "[]",
    ];
    let operators = [
        "{'$set': {'n': 4}}",
        "{'$set': {'n': 4.0}}",
        "{'$inc': {'n': 0}}",
        "{'$inc': {'text': 1}}",
        "{'$mul': {'none': 3}}",
        "{'$unset': {'none': 1}}",
        "{'$rename': {'none': 'other'}}",
        "{'$rename': {'first': 'last'}}",
        "{'$rename': {'long': 'wide'}}",
        "{'$push': {'list': {'$each': []}}}",
        "{'$push': {'list': {'$each': [2, 0], '$sort': 1, '$slice': 4}}}",
        "{'$push': {'text': 1}}",
        "{'$pull': {'list': 17}}",
        "{'$pull': {'rows': {'k': 2}}}",
        "{'$addToSet': {'list': 1}}",
        "{'$pop': {'list': 1}}",
        "{'$pop': {'deep.c': 1}}",
        "{'$set': {'list.9': 1}}",
        "{'$set': {'text.a': 1}}",
        "{'$set': {'a.b': 1, 'a': 2}}",
        "{'$set': {'_id': 1}}",
        "{'$set': {'_id': 1.0}}",
        "{'$set': {'_id': 3}}",
        "{'$max': {'n': 4}}",
        "{'$min': {'rows.1.v': -1}}",
        "{'$bit': {'n': {'or': 0}}}",
        "{'$set': {'rows.$[].v': 2}}",
        "{'$set': {'deep.a': {'b': 1}}}",
        "{'$setOnInsert': {'n': 9}}",
        "{'first': 1}",
    ];
    let plain = pipelines.iter().chain(&operators).map(|change| ("{'_id': 1}", *change, None));
    let mut updates: Vec<_> = plain.collect();
    updates.extend([
        ("{'list': 'x'}", "{'$set': {'list.$': 'x'}}", None),
        ("{'rows.k': 2}", "{'$inc': {'rows.$.v': 5}}", None),
        ("{'n': 5}", "{'$set': {'n': 5}}", None),
        ("{'_id': 1}", "{'$set': {'rows.$[r].v': 2}}", Some("[{'r.k': 1}]")),
        ("{'_id': 1}", "{'$set': {'rows.$[r].v': 7}}", Some("[{'r.k': 2}]")),
        ("{'_id': 1}", "{'$set': {'rows.$[r].v': 7}}", Some("[{'q.k': 2}]")),
        ("{'_id': 1}", "[{'$set': {'a': 1}}]", Some("[{'q.k': 2}]")),
    ]);
    let (changed, refused) = check(&updates);
    assert_met("changed", changed, 40);
    assert_met("refused", refused, 10);
}

fn random_value(random: &mut Random) -> &'static str {
    random.choose::<&str>(&[
        "1", "1.0", "'x'", "null", "[1]", "{'k': 1}", "'$long'", "4", "-0.0", "[]",
    ])
}

fn random_path(random: &mut Random) -> &'static str {
    random.choose::<&str>(&[
        "n", "text", "long", "list", "list.0", "list.2.k", "rows", "rows.1.v", "rows.0", "deep",
        "deep.a.b", "deep.c", "first", "last", "new", "new.a", "deep.new", "list.7", "_id",
        "text.a",
    ])
}

fn random_change(random: &mut Random) -> String {
    if random.one_in(3) {
        let mut stages = Vec::new();
        for _ in 0..1 + random.below(3) {
            let path = random_path(random).split('.').next().unwrap_or_default();
            let operand = random_value(random);
            stages.push(match random.below(6) {
                0 => format!("{{'$unset': '{path}'}}"),
                1 => format!(
                    "{{'$replaceWith': {{'$mergeObjects': [{{'{path}': {operand}}}, '$$ROOT']}}}}"
                ),
                2 => format!(
                    "{{'$replaceWith': {{'$mergeObjects': ['$$ROOT', {{'{path}': {operand}}}]}}}}"
                ),
                3 => format!("{{'$set': {{'{path}': '${path}'}}}}"),
                4 => format!("{{'$project': {{'{path}': 0}}}}"),
                _ => format!("{{'$set': {{'{path}': {operand}}}}}"),
            });
        }
        return format!("[{}]", stages.join(", "));
    }
    let mut change = String::from("{");
    let (path, operand) = (random_path(random), random_value(random).replace("$long", "w"));
    let operator = *random.choose(&[
        "$set",
        "$set",
        "$unset",
        "$inc",
        "$mul",
        "$min",
        "$max",
        "$push",
        "$pull",
        "$addToSet",
        "$pop",
        "$rename",
        "$pullAll",
    ]);
    let operand = match operator {
        "$rename" => format!("'{}'", random_path(random)),
        "$pop" => "1".to_owned(),
        "$inc" | "$mul" => (*random.choose(&["0", "1", "1.0", "2"])).to_owned(),
        "$push" | "$addToSet" if random.one_in(2) => format!("{{'$each': [{operand}, 1]}}"),
        _ => operand,
    };
    let _ = write!(change, "'{operator}': {{'{path}': {operand}}}}}");
    change
}

#[test]
fn random_updates() {
    let (mut changed, mut refused) = (0, 0);
    for_seeds(60, |mut random| {
        let change = random_change(&mut random);
        let done = check(&[("{'_id': 1}", change.as_str(), None)]);
        changed += done.0;
        refused += done.1;
    });
    assert_met("changed", changed, 20);
    assert_met("refused", refused, 5);
}
