//! Large documents in collections. Goal: an update that goes piece by piece gives what the update
//! of a plain document gives, in every operator, at every place; indexes, versions and a restart
//! see the same; and it logs little. Method: random updates on a document of some 100 KB, and on
//! its copy in memory.

use frond_db::catalog::IndexSpec;
use frond_db::{Database, Durability, FrondOptions};
use frond_doc::pieces::read_bson;
use frond_doc::{DocumentBuf, DocumentBuilder, Value, ValueBuf, path::Path};
use frond_query::update::UpdateContext;
use frond_query::{Collation, Filter, Update};
use frond_testkit::SimDisk;
use frond_testkit::random::{Random, assert_met, for_seeds};
use frond_vcs::Repository;

use crate::collation::collation;
use crate::support::*;

const CONTEXT: UpdateContext = UpdateContext { now_millis: 0, timestamp: 0, position: None };

/// `{_id, n, tags, text, sections: [{title, body, rows}], deep: {a: {b: {...}}}}`.
fn document(sections: usize) -> DocumentBuf {
    let mut out = DocumentBuilder::new();
    out.append("_id", Value::Int32(1)).append("n", Value::Int32(1)).begin_array("tags");
    for tag in 0..400 {
        out.push(Value::String(&format!("tag{tag}")));
    }
    out.end().append("text", Value::String(&"text ".repeat(2_000))).begin_array("sections");
    for section in 0..sections {
        let mut inner = DocumentBuilder::new();
        inner.append("title", Value::String(&format!("section {section}")));
        inner.append("body", Value::String(&"some words ".repeat(60 + section % 50)));
        inner.begin_array("rows");
        for row in 0..5 {
            inner.push(Value::Int32(row));
        }
        inner.end();
        out.push(Value::from(&inner.build()));
    }
    out.end().begin_document("deep").begin_document("a").begin_document("b");
    out.append("x", Value::Int32(1)).append("long", Value::String(&"long ".repeat(900)));
    out.end().end().end();
    out.build()
}

fn path(random: &mut Random) -> String {
    let section = random.below(70);
    match random.below(19) {
        0 => "n".to_owned(),
        1 => "tags".to_owned(),
        2 => format!("tags.{}", random.below(420)),
        3 => "text".to_owned(),
        4 => format!("sections.{section}"),
        5 => format!("sections.{section}.title"),
        6 => format!("sections.{section}.rows"),
        7 => format!("sections.{section}.rows.{}", random.below(7)),
        8 => "deep.a.b.x".to_owned(),
        9 => "deep.a.b".to_owned(),
        10 => format!("deep.a.new{}", random.below(3)),
        11 => "sections".to_owned(),
        12 => format!("new{}.{}", random.below(3), random.below(3)),
        13 => format!("sections.{section}.new.a"),
        14 => "sections.$[x].title".to_owned(),
        15 => "sections.$[x].rows.$[]".to_owned(),
        16 => format!("sections.$[].new{}", random.below(2)),
        17 => "tags.$[x]".to_owned(),
        _ => format!("{}", random.below(3)),
    }
}

fn operator(random: &mut Random) -> (&'static str, String) {
    let number = random.below(5);
    let (tag, section) = words(random);
    match random.below(28) {
        24..28 => ("$push", ordered_push(random)),
        0 => ("$set", format!("{number}")),
        1 => ("$set", format!("'{}'", "set ".repeat(number * 200))),
        2 => ("$set", format!("{{'a': {number}, 'b': ['{}']}}", "x".repeat(number * 300))),
        3 => ("$unset", "''".to_owned()),
        4 => ("$inc", format!("{number}")),
        5 => ("$push", format!("{number}")),
        6 => ("$push", format!("{{'$each': ['p', {number}], '$position': {}}}", number as i64 - 2)),
        7 => ("$push", format!("{{'$each': [{number}], '$slice': 40}}")),
        8 => ("$pull", format!("{number}")),
        9 => ("$pull", format!("{{'title': '{section} {}'}}", random.below(60))),
        10 => ("$pull", format!("{{'$in': ['{tag}{}', 'tag{}', 3]}}", random.below(400), number)),
        11 => ("$pop", if random.one_in(2) { "1" } else { "-1" }.to_owned()),
        12 => ("$addToSet", format!("'{tag}{}'", random.below(500))),
        13 => ("$addToSet", format!("{{'$each': ['tag3', {number}, {number}, 'p']}}")),
        14 => ("$pullAll", format!("['{tag}{}', {number}, 'p']", random.below(400))),
        15 => (
            "$push",
            format!("{{'$each': ['s', 1], '$slice': {}}}", 350 - 700 * (number as i64 % 2)),
        ),
        16 => ("$push", format!("{{'$each': ['s'], '$position': 3, '$slice': -{}}}", 40 + number)),
        17 => ("$push", "{'$each': [{'title': 'b'}, 'a'], '$sort': {'title': 1}}".to_owned()),
        18 => {
            let target = ["moved", "deep.moved", "deep.a.b", "text"][random.below(4)];
            ("$rename", format!("'{target}'"))
        }
        19 => ("$pull", format!("{{'rows': {number}, 'title': {{'$gt': '{section} 5'}}}}")),
        20 => ("$pull", format!("{{'$or': [{{'rows.2': 1}}, {{'title': '{section} 7'}}]}}")),
        21 => ("$pull", format!("{{'$expr': {{'$eq': ['$title', 'section {number}']}}}}")),
        22 => ("$pullAll", format!("[{{'title': 'b'}}, {number}, ['a']]")),
        _ => ("$max", format!("{number}")),
    }
}

/// A `$push` that sorts: what came out of one such is in order for the next.
fn ordered_push(random: &mut Random) -> String {
    const VALUES: [&str; 8] = [
        "{'title': 'section 3', 'n': 1}",
        "{'title': 'section 30'}",
        "{'rows': [7], 'title': 'a'}",
        "{'n': 2}",
        "'tag20'",
        "'TAG20'",
        "3",
        "['a', 'b']",
    ];
    const SORTS: [&str; 6] =
        ["1", "-1", "{'title': 1}", "{'title': -1}", "{'title': 1, 'n': -1}", "{'rows.0': 1}"];
    let count = random.below(4);
    let values: Vec<&str> = (0..count).map(|_| *random.choose(&VALUES)).collect();
    let mut out = format!("{{'$each': [{}], '$sort': ", values.join(", "));
    // Mostly the same order, so that arrays are found in order.
    out += if random.one_in(3) { random.choose::<&str>(&SORTS) } else { SORTS[2] };
    if random.one_in(3) {
        out += &format!(", '$position': {}", random.below(500) as i64 - 250);
    }
    if random.one_in(4) {
        out += &format!(", '$slice': {}", random.below(800) as i64 - 400);
    }
    out + "}"
}

/// Returns the beginnings of tags and titles, or equal ones where case doesn't matter.
fn words(random: &mut Random) -> (&'static str, &'static str) {
    *random.choose(&[("tag", "section"), ("tag", "section"), ("TAG", "Section")])
}

fn stored(shop: &Database) -> DocumentBuf {
    run(shop, "docs", &request("{'_id': 1}")).expect("found").pop().expect("it is there")
}

/// Runs the update on both; whether it was taken.
fn both(shop: &Database, plain: &mut DocumentBuf, text: &str) -> bool {
    both_with(shop, plain, "{'_id': 1}", text, Options::default())
}

/// The options of an update besides its filter and its operators.
#[derive(Default)]
struct Options {
    array_filters: Option<ValueBuf>,
    collation: Option<Collation>,
}

/// Returns the array filter of `$[x]`, if it is there.
fn array_filters(random: &mut Random, text: &str) -> Option<ValueBuf> {
    let (tag, section) = words(random);
    let filter = match random.below(3) {
        0 => format!("{{'x': {{'$in': ['{tag}{}', 'tag3', 'p', 2]}}}}", random.below(400)),
        1 => format!("{{'x.title': '{section} {}'}}", random.below(60)),
        _ => format!("{{'x.rows': {{'$gte': {}}}}}", random.below(6)),
    };
    text.contains("$[x]").then(|| value(&format!("[{filter}]")))
}

/// As `both`, of the document that `filter` finds.
fn both_with(
    shop: &Database,
    plain: &mut DocumentBuf,
    filter: &str,
    text: &str,
    options: Options,
) -> bool {
    let Options { array_filters, collation } = options;
    let update_value: ValueBuf = value(text);
    let filters = array_filters.as_ref().and_then(|filters| filters.as_value().as_array());
    let position =
        Filter::parse(json(filter).view()).expect("proper").matches_position(plain.view());
    let context = UpdateContext { position: position.1, ..CONTEXT };
    let collated = collation.clone().unwrap_or_default();
    let expected = Update::parse(update_value.as_value(), filters)
        .and_then(|update| update.with_collation(&collated).apply(plain.view(), &context));
    let mut statement = statement(filter, "{}");
    statement.update = update_value;
    statement.array_filters = array_filters;
    statement.collation = collation;
    let report = update(shop, "docs", statement);
    match expected {
        Ok(after) => {
            assert!(report.errors.is_empty(), "{text}: {:?}", report.errors);
            assert_eq!(report.modified, u64::from(after.is_some()), "{text}");
            *plain = after.unwrap_or(plain.clone());
            true
        }
        Err(error) => {
            assert_eq!(report.errors.len(), 1, "{text}");
            assert_eq!(report.errors[0].error.message, error.message, "{text}");
            false
        }
    }
}

fn check_index(shop: &Database, plain: &DocumentBuf) {
    for path in ["n", "sections.title"] {
        let mut values = Vec::new();
        Path::new(path).visit(plain.view(), &mut |value| {
            values.extend(
                value.filter(|value| !matches!(value, Value::Array(_))).map(|it| it.to_buf()),
            );
            false
        });
        for value in values.iter().take(3) {
            let mut filter = DocumentBuilder::new();
            filter.append(path, value.as_value());
            let mut request = request("{}");
            request.filter = Some(filter.build());
            let found = run(shop, "docs", &request).expect("found");
            assert_eq!(found.len(), 1, "{path} = {value:?}");
        }
    }
}

#[test]
fn updates_equal_those_of_plain_documents() {
    let (mut taken, mut refused) = (0, 0);
    for_seeds(6, |mut random| {
        let disk = SimDisk::new(random.next());
        let frond = frond_vcs::open_on(&disk.machine(), FrondOptions::default()).expect("opens");
        let shop = Repository::open(&frond, "shop").expect("a proper name");
        for key in ["{'key': {'n': 1}}", "{'key': {'sections.title': 1}}"] {
            let spec = IndexSpec::parse(json(key).view()).expect("a proper index");
            shop.create_indexes("docs", &[spec]).expect("made");
        }
        let mut plain = document(60);
        assert_eq!(try_insert(&shop, "docs", &[plain.clone()]).count, 1);
        for turn in 0..80 {
            let mut texts: Vec<String> = Vec::new();
            for _ in 0..1 + random.below(2) {
                let (operator, operand) = operator(&mut random);
                let field_count = *random.choose(&[1, 1, 1, 3]);
                let fields: Vec<String> = (0..field_count)
                    .map(|_| format!("'{}': {operand}", path(&mut random)))
                    .collect();
                let text = format!("'{operator}': {{{}}}", fields.join(", "));
                if !texts.iter().any(|known| known.starts_with(&format!("'{operator}'"))) {
                    texts.push(text);
                }
            }
            let text = format!("{{{}}}", texts.join(", "));
            let filters = array_filters(&mut random, &text);
            let array = filters.as_ref().and_then(|filters| filters.as_value().as_array());
            if Update::parse(value(&text).as_value(), array).is_err() {
                continue; // Paths in conflict.
            }
            let caseless = || collation("{'locale': 'en', 'strength': 2}");
            let collation = random.one_in(4).then(caseless);
            let options = Options { array_filters: filters, collation };
            let was_taken = both_with(&shop, &mut plain, "{'_id': 1}", &text, options);
            taken += u32::from(was_taken);
            refused += u32::from(!was_taken);
            assert_eq!(stored(&shop).as_bytes(), plain.as_bytes(), "{text}");
            if turn % 8 == 0 {
                check_index(&shop, &plain);
            }
            if turn == 15 {
                shop.commit("half", "test").expect("committed");
            }
        }
        check_index(&shop, &plain);

        // The same content written as a whole is the same value: nothing is left to commit.
        shop.commit("all", "test").expect("committed");
        assert_eq!(delete(&shop, "docs", "{}"), 1);
        assert_eq!(try_insert(&shop, "docs", &[plain.clone()]).count, 1);
        let error = shop.commit("again", "test").expect_err("the content is what it was");
        assert!(error.message.contains("nothing"), "{}", error.message);

        // Writes that are only in the log survive a crash.
        both(&shop, &mut plain, "{'$set': {'sections.3.title': 'last'}}");
        shop.insert("other", &[json("{}")], true, Durability::Synced).expect("synced");
        drop((shop, frond));
        let frond =
            frond_vcs::open_on(&disk.machine(), FrondOptions::default()).expect("opens again");
        let shop = Repository::open(&frond, "shop").expect("a proper name");
        assert_eq!(stored(&shop).as_bytes(), plain.as_bytes());
        check_index(&shop, &plain);
        frond.engine().check().expect("every invariant holds");
    });
    assert_met("updates taken", taken, 30);
    assert_met("updates refused", refused, 1);
}

/// Pushes with `$sort`, of any kind, into arrays of any kind.
#[test]
fn ordered_pushes_equal_those_into_plain_documents() {
    for_seeds(8, |mut random| {
        let shop = shop();
        let mut plain = document(120);
        assert_eq!(try_insert(&shop, "docs", &[plain.clone()]).count, 1);
        for _ in 0..60 {
            let path = *random.choose(&["sections", "sections", "tags"]);
            let text = match random.below(8) {
                0 => format!("{{'$pull': {{'{path}': {{'title': 'section 30'}}}}}}"),
                1 => format!("{{'$set': {{'{path}.{}': 'z'}}}}", random.below(100)),
                _ => format!("{{'$push': {{'{path}': {}}}}}", ordered_push(&mut random)),
            };
            let collation = random.one_in(6).then(|| collation("{'locale': 'en', 'strength': 2}"));
            let options = Options { array_filters: None, collation };
            assert!(both_with(&shop, &mut plain, "{'_id': 1}", &text, options), "{text}");
            assert_eq!(stored(&shop).as_bytes(), plain.as_bytes(), "{text}");
        }
        shop.commit("all", "test").expect("committed");
        assert_eq!(delete(&shop, "docs", "{}"), 1);
        assert_eq!(try_insert(&shop, "docs", &[plain.clone()]).count, 1);
        shop.commit("again", "test").expect_err("the content is what it was");
    });
}

/// A push into an array that is in order logs what it pushes, and finds its place.
#[test]
fn ordered_pushes_log_what_they_push() {
    let shop = shop();
    let mut plain = document(2_000);
    assert_eq!(try_insert(&shop, "docs", &[plain.clone()]).count, 1);
    for turn in 0..10 {
        let text = format!(
            "{{'$push': {{'sections': {{'$each': [{{'title': 'section {turn}5', 'n': 1}}], '$sort': {{'title': 1}}}}}}}}"
        );
        let before = logged(&shop);
        assert!(both(&shop, &mut plain, &text));
        let bytes = logged(&shop) - before;
        assert!(turn == 0 || bytes < 16 << 10, "{bytes} bytes");
        assert_eq!(stored(&shop).as_bytes(), plain.as_bytes());
    }
}

/// One field of a large document: the log grows by a path of pieces, before and after a fold.
#[test]
fn updates_log_what_they_change() {
    let shop = shop();
    let plain = document(4_000);
    assert!(3 << 20 < plain.as_bytes().len());
    assert_eq!(try_insert(&shop, "docs", &[plain]).count, 1);
    for turn in 0..2 {
        for text in [
            "{'$inc': {'n': 1}}",
            "{'$set': {'sections.2000.title': 'x'}}",
            "{'$set': {'deep.a.b.x': 7}}",
            "{'$push': {'sections': {'$each': [{'title': 'first'}], '$position': 0}}}",
            "{'$push': {'sections': {'title': 'last'}}}",
            "{'$pop': {'sections': -1}}",
            "{'$unset': {'text': ''}}",
        ] {
            let before = logged(&shop);
            let mut statement = statement("{'_id': 1}", text);
            if text.contains("title") && turn == 1 {
                statement.update = value(&text.replace("'x'", "'y'"));
            }
            update(&shop, "docs", statement);
            let bytes = logged(&shop) - before;
            assert!(bytes < 24 << 10, "{text}: {bytes} bytes were logged");
        }
        shop.commit("turn", "test").expect("committed");
    }
}

/// The filter finds the element for `$`; elements are changed one by one; little is logged.
#[test]
fn positional_updates_log_what_they_change() {
    let shop = shop();
    let mut plain = document(4_000);
    assert_eq!(try_insert(&shop, "docs", std::slice::from_ref(&plain)).count, 1);
    for (filter, text, filters) in [
        ("{'tags': 'tag7'}", "{'$set': {'tags.$': 'other'}}", None),
        (
            "{'sections.title': 'section 9'}",
            "{'$inc': {'sections.$.n': 1}, '$inc': {'n': 1}}",
            None,
        ),
        (
            "{'_id': 1}",
            "{'$set': {'sections.$[x].title': 'y'}}",
            Some("[{'x.title': 'section 77'}]"),
        ),
        ("{'_id': 1}", "{'$addToSet': {'tags': 'tag9999'}}", None),
        ("{'_id': 1}", "{'$pullAll': {'tags': ['tag9', 'tag20', 'other']}}", None),
        ("{'_id': 1}", "{'$push': {'tags': {'$each': ['a', 'b'], '$slice': -300}}}", None),
        ("{'_id': 1}", "{'$rename': {'sections': 'deep.sections'}}", None),
        ("{'_id': 1}", "{'$rename': {'deep.sections': 'sections'}}", None),
    ] {
        let before = logged(&shop);
        let options = Options { array_filters: filters.map(value), collation: None };
        assert!(both_with(&shop, &mut plain, filter, text, options), "{text}");
        let bytes = logged(&shop) - before;
        assert!(bytes < 24 << 10, "{text}: {bytes} bytes were logged");
    }
    assert!(stored(&shop) == plain);
    // Both are found by the position alone: a conflict.
    assert!(!both_with(
        &shop,
        &mut plain,
        "{'sections.title': 'section 3'}",
        "{'$set': {'sections.$.title': 1, 'sections.3.title': 2}}",
        Options::default()
    ));
}

/// A document above MongoDB's limit, in a collection with an index: in and out as a stream, updated
/// in between, and counted with all its bytes.
#[test]
fn streamed_documents() {
    let disk = SimDisk::new(3);
    let frond = frond_vcs::open_on(&disk.machine(), FrondOptions::default()).expect("opens");
    let shop = Repository::open(&frond, "shop").expect("a proper name");
    let spec = IndexSpec::parse(json("{'key': {'n': 1}}").view()).expect("a proper index");
    shop.create_indexes("docs", &[spec]).expect("made");
    let mut plain = document(22_000);
    assert!(16 << 20 < plain.as_bytes().len());
    let before = logged(&shop);
    let id = shop.insert_streamed(
        "docs",
        &mut |writer| read_bson(&mut plain.as_bytes(), writer),
        Durability::Synced,
    );
    assert_eq!(id.expect("inserted"), Value::Int32(1).to_buf());
    assert!(logged(&shop) - before < 64 << 10, "its pieces aren't logged");
    check_index(&shop, &plain);
    assert!(both(&shop, &mut plain, "{'$set': {'sections.9000.title': 'y'}, '$inc': {'n': 1}}"));
    check_index(&shop, &plain);
    let stats = shop.collection_stats("docs").expect("there");
    let size = stats.get("size").and_then(|size| size.as_integer()).expect("a number");
    assert!(plain.as_bytes().len() as i64 <= size, "{size}");
    frond.close().expect("closes");
    drop((shop, frond));

    let frond = frond_vcs::open_on(&disk.machine(), FrondOptions::default()).expect("opens again");
    let shop = Repository::open(&frond, "shop").expect("a proper name");
    let mut shown = Vec::new();
    shop.export("docs", Some(json("{'n': 2}").view()), &mut |stored| {
        assert_eq!(stored.bytes(), plain.as_bytes().len() as u64);
        let mut bson = Vec::new();
        stored.write_bson(&mut bson)?;
        shown.push(bson);
        Ok::<(), frond_db::Error>(())
    })
    .expect("exported");
    assert!(shown == [plain.as_bytes()]);
    let again = shop.insert_streamed(
        "docs",
        &mut |writer| read_bson(&mut plain.as_bytes(), writer),
        Durability::Relaxed,
    );
    assert_eq!(again.expect_err("a duplicate").code, frond_query::Code::DuplicateKey);
    let limited = frond.clone().with_document_bytes_max(1 << 20).database("shop").expect("proper");
    let refused = limited.insert_streamed(
        "other",
        &mut |writer| read_bson(&mut plain.as_bytes(), writer),
        Durability::Relaxed,
    );
    assert_eq!(refused.expect_err("too large").code, frond_query::Code::BSONObjectTooLarge);
    frond.engine().check().expect("every invariant holds");
}

/// A document that is inserted again, or nearly: what the store has isn't logged.
#[test]
fn stored_parts_are_not_logged_again() {
    let shop = shop();
    let plain = document(4_000);
    assert_eq!(try_insert(&shop, "docs", std::slice::from_ref(&plain)).count, 1);
    let before = logged(&shop);
    let mut copy = DocumentBuilder::new();
    copy.append("_id", Value::Int32(2)).append("other", Value::Int32(2));
    plain.view().elements().skip(1).for_each(|element| {
        copy.append_element(&element);
    });
    let copy = copy.build();
    assert_eq!(try_insert(&shop, "docs", std::slice::from_ref(&copy)).count, 1);
    assert!(logged(&shop) - before < 64 << 10);
    let found = run(&shop, "docs", &request("{'_id': 2}")).expect("found");
    assert!(found == [copy]);
}

/// Stages give what they give of a plain document, and log little where they set outermost fields
/// alone.
#[test]
fn updates_by_stages() {
    let shop = shop();
    let mut plain = document(4_000);
    assert_eq!(try_insert(&shop, "docs", std::slice::from_ref(&plain)).count, 1);
    for (text, is_in_part) in [
        ("[{'$set': {'n': {'$add': ['$n', '$deep.a.b.x', 4]}, 'new': 'x'}}]", true),
        ("[{'$set': {'new': '$n', 'other': {'$size': '$tags'}}}, {'$unset': 'tags'}]", true),
        ("[{'$set': {'deep': {'a': 1}}}, {'$set': {'last': '$deep.a'}}]", true),
        ("[{'$set': {'n': '$$REMOVE', 'text': '$new'}}]", true),
        ("[{'$set': {'n': {'$literal': '$$ROOT'}}}]", true),
        ("[{'$set': {'n': {'$literal': '$$ROOT'}}}]", true),
        ("[{'$unset': ['other', 'absent']}, {'$set': {'other': '$n'}}]", false),
        ("[{'$set': {'deep.a': 7, 'count': {'$size': '$$ROOT.sections'}}}]", false),
        ("[{'$project': {'text': 0}}]", false),
    ] {
        let before = logged(&shop);
        assert!(both(&shop, &mut plain, text), "{text}");
        let bytes = logged(&shop) - before;
        assert!(!is_in_part || bytes < 24 << 10, "{text}: {bytes} bytes were logged");
        assert!(stored(&shop) == plain, "{text}");
    }
    assert!(!both(&shop, &mut plain, "[{'$set': {'n': {'$add': ['$n', []]}}}]"));
}

/// `$out` of large documents is what the stages make of whole ones, in the same pieces, with
/// indexes; and its cost doesn't follow the documents' bytes.
#[test]
fn copies_share_pieces() {
    let shop = shop();
    let whole = document(4_000);
    let mut documents = vec![json("{'_id': 0, 'n': 1}")];
    for id in 1..5 {
        let mut out = DocumentBuilder::new();
        out.append("_id", Value::Int32(id));
        whole.view().elements().skip(1).for_each(|element| {
            out.append_element(&element);
        });
        documents.push(out.build());
    }
    for document in &documents {
        assert_eq!(try_insert(&shop, "docs", std::slice::from_ref(document)).count, 1);
    }
    shop.commit("documents", "test").expect("committed");
    insert(&shop, "copies", "[{'_id': 'old'}]");
    let spec = IndexSpec::parse(json("{'key': {'n': 1}}").view()).expect("a proper index");
    shop.create_indexes("copies", &[spec]).expect("made");
    for stages in [
        "{'$set': {'n': {'$add': ['$n', 5]}, 'new': '$deep.a.b.x'}}, {'$unset': ['tags', 'text']}",
        "{'$match': {'_id': {'$lt': 3}}}, {'$addFields': {'n': -1}}",
        "{'$set': {'deep.a': 7, 'n': 9}}",
        "{'$match': {'n': 1}}",
        "{'$sort': {'_id': -1}}, {'$limit': 3}",
        "{'$sort': {'text': 1, 'n': 1, '_id': 1}}",
        "{'$match': {'_id': {'$gte': 1}}}, {'$sort': {'deep.a.b.x': 1, '_id': -1}}, {'$skip': 1}, {'$limit': 2}, {'$set': {'n': 5}}",
        "{'$skip': 2}, {'$limit': 2}",
        "{'$match': {'n': 1}}, {'$skip': 9}",
    ] {
        let mut expected = aggregate(&shop, Some("docs"), &format!("[{stages}]")).expect("proper");
        expected.sort_by_key(|document| document.get("_id").and_then(|id| id.as_integer()));
        let (_, before) = shop.frond().counters();
        let copied = format!("[{stages}, {{'$out': 'copies'}}]");
        assert!(aggregate(&shop, Some("docs"), &copied).expect("proper").is_empty());
        let (_, after) = shop.frond().counters();
        let bytes = after.bytes_put - before.bytes_put;
        assert!(stages.contains("deep.a'") || bytes < 100 << 10, "{stages}: {bytes} bytes");
        assert!(run(&shop, "copies", &request("{}")).expect("found") == expected, "{stages}");
        let found = run(&shop, "copies", &request("{'n': {'$gte': -1}}")).expect("found");
        assert_eq!(found.len(), expected.len(), "{stages}");
        // The same content written as a whole is the same value.
        shop.commit(stages, "test").expect("committed");
        delete(&shop, "copies", "{}");
        for document in &expected {
            assert_eq!(try_insert(&shop, "copies", std::slice::from_ref(document)).count, 1);
        }
        let error = shop.commit("again", "test").expect_err("the content is what it was");
        assert!(error.message.contains("nothing"), "{}", error.message);
    }
    let elsewhere = "[{'$set': {'n': 2}}, {'$out': {'db': 'other', 'coll': 'copies'}}]";
    aggregate(&shop, Some("docs"), elsewhere).expect("proper");
    let other = shop.frond().database("other").expect("a proper name");
    assert_eq!(run(&other, "copies", &request("{'n': 2}")).expect("found").len(), 5);
    shop.frond().engine().check().expect("every invariant holds");
}

/// Some fields of documents that are read in part: the same as of whole ones, sorted too.
#[test]
fn some_fields() {
    let shop = shop();
    for id in 0..6 {
        let mut out = DocumentBuilder::new();
        out.append("_id", Value::Int32(id)).append("n", Value::Int32(id * 7 % 5));
        out.append("text", Value::String(&"text ".repeat(20_000)));
        out.begin_document("inner").append("x", Value::Int32(-id)).end();
        assert_eq!(try_insert(&shop, "docs", &[out.build()]).count, 1);
    }
    for _ in 0..2 {
        let mut request = request("{'n': {'$gt': 0}}");
        request.projection = Some(json("{'n': 1}"));
        request.sort = Some(json("{'inner.x': 1}"));
        let found = run(&shop, "docs", &request).expect("found");
        let expected = "[{'_id':4,'n':3},{'_id':3,'n':1},{'_id':2,'n':4},{'_id':1,'n':2}]";
        assert_eq!(texts(&found), expected);
        request.projection = Some(json("{'text': 1, '_id': 0}"));
        request.limit = Some(1);
        let found = run(&shop, "docs", &request).expect("found");
        assert_eq!(found[0].get("text").map(|it| matches!(it, Value::String(_))), Some(true));
    }
}

fn logged(shop: &Database) -> u64 {
    shop.insert("marks", &[json("{}")], true, Durability::Synced).expect("synced");
    let (engine, _) = shop.frond().counters();
    engine.log_bytes
}
