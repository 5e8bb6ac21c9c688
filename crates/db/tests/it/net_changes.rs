//! Goal: a stream that starts after a commit delivers the net changes since, then new ones, and
//! nothing twice; it resumes after each of its tokens. Method: what is returned is compared with
//! what was written, and a stream is begun anew behind every token.

use frond_db::{
    ChangeStream, ChangeStreamRequest, Error, Frond, Image, Interrupt, StreamStart, Watched,
};
use frond_doc::{DocumentBuf, Value, document};
use frond_testkit::SimDisk;
use frond_vcs::Repository;

use crate::support::{
    delete, insert, json, open_with_changes, options_with_changes, statement, text, try_insert,
    update,
};

/// A database whose first commit has two collections.
fn shop(frond: &Frond) -> Repository {
    let shop = Repository::open(frond, "shop").expect("a proper name");
    let kept = json("{'changeStreamPreAndPostImages': {'enabled': true}}");
    shop.create_collection("things", kept.view()).expect("made");
    insert(&shop, "things", "[{'_id': 1, 'a': 1}, {'_id': 2, 'a': 1}, {'_id': 3, 'a': 1}]");
    insert(&shop, "gone", "[{'_id': 1}]");
    shop.commit("first", "test").expect("committed");
    shop
}

/// Two changes of one document, a removal, a collection that goes and one that comes.
fn change(shop: &Repository) {
    update(shop, "things", statement("{'_id': 2}", "{'$set': {'a': 7}}"));
    update(shop, "things", statement("{'_id': 2}", "{'$set': {'a': 2}}"));
    delete(shop, "things", "{'_id': 3}");
    shop.drop_collection("gone").expect("dropped");
    insert(shop, "new", "[{'_id': 5}]");
}

const CHANGED: [&str; 4] = [
    "delete gone {'_id':1} net",
    "insert new {'_id':5} net",
    "update things {'_id':2} net",
    "delete things {'_id':3} net",
];

fn watch(shop: &Repository, start: StreamStart) -> Result<ChangeStream, Error> {
    let request = ChangeStreamRequest { start, ..ChangeStreamRequest::default() };
    shop.frond().watch(Watched::Database(shop.database().clone()), &request)
}

fn after(shop: &Repository, revision: &str) -> Result<ChangeStream, Error> {
    watch(shop, StreamStart::AfterCommit(revision.to_owned()))
}

fn short(event: &DocumentBuf) -> String {
    let field = |name| event.get(name);
    let kind = field("operationType").and_then(|kind| kind.as_str()).expect("a kind");
    let of = field("ns").and_then(|ns| ns.as_document()).expect("a place").get("coll");
    let of = of.and_then(|of| of.as_str()).expect("a collection");
    let key = field("documentKey").and_then(|key| key.as_document()).expect("a key").to_buf();
    let net = field("frond").and_then(|frond| frond.as_document());
    let is_net = net.and_then(|frond| frond.get("net")) == Some(Value::Boolean(true));
    format!("{kind} {of} {}{}", text(&key), if is_net { " net" } else { "" })
}

fn delivered(shop: &Repository, stream: &mut ChangeStream) -> Result<Vec<DocumentBuf>, Error> {
    shop.frond().flush().expect("the disk works");
    let mut delivered = Vec::new();
    while let Some(event) = stream.next(&Interrupt::default())? {
        delivered.push(event);
    }
    Ok(delivered)
}

fn shorts(events: &[DocumentBuf]) -> Vec<String> {
    events.iter().map(short).collect()
}

/// However much differs: what a stream reads of it takes no cache from other readers.
#[test]
fn many_net_changes_are_read_past_the_cache() {
    const COUNT: i32 = 20_000;
    let disk = SimDisk::new(1);
    let open = || frond_vcs::open_on(&disk.machine(), options_with_changes()).expect("opens");
    let frond = open();
    let many = shop(&frond);
    let text = "x".repeat(200);
    let document = |number| document! { "_id": number, "text": &text };
    let documents: Vec<DocumentBuf> = (10..10 + COUNT).map(document).collect();
    try_insert(&many, "things", &documents);
    many.commit("many", "test").expect("committed");
    frond.flush().expect("the disk works");
    drop((many, frond));
    let frond = open();
    let many = Repository::open(&frond, "shop").expect("a proper name");
    let mut stream = after(&many, "HEAD~1").expect("it is kept");
    let cached = || frond.engine().store().counters().cache_bytes;
    let before = cached();
    assert_eq!(delivered(&many, &mut stream).expect("it is kept").len(), COUNT as usize);
    let (read, more) = (COUNT as u64 * 200, cached() - before);
    assert!(more < read / 8, "{more} of {read} bytes stay in the cache");
}

#[test]
fn net_changes_come_first_and_then_new_ones() {
    for commits in [true, false] {
        let frond = open_with_changes();
        let shop = shop(&frond);
        change(&shop);
        let revision = if commits { "HEAD~1" } else { "HEAD" };
        if commits {
            shop.commit("second", "test").expect("committed");
        }
        let mut stream = after(&shop, revision).expect("it is in history");
        insert(&shop, "things", "[{'_id': 9}]");
        let events = delivered(&shop, &mut stream).expect("all is kept");
        let live = ["insert things {'_id':9}"];
        assert_eq!(shorts(&events), [&CHANGED[..], &live[..]].concat(), "{commits}");
        let description = events[2].get("updateDescription").and_then(|it| it.as_document());
        let updated = description.and_then(|it| it.get("updatedFields")?.as_document());
        assert_eq!(updated.map(|it| text(&it.to_buf())).as_deref(), Some("{'a':2}"));
        let ids: Vec<Value<'_>> = events
            .iter()
            .map(|event| event.get("_id").and_then(|id| id.as_document()?.get("_data")))
            .map(|data| data.expect("a token"))
            .collect();
        assert!(ids.iter().zip(&ids[1..]).all(|(one, next)| one.as_str() < next.as_str()));
    }
}

#[test]
fn each_token_of_what_differs_leads_on() {
    let frond = open_with_changes();
    let shop = shop(&frond);
    let first = after(&shop, "HEAD").expect("it is in history").token();
    change(&shop);
    shop.commit("second", "test").expect("committed");
    let mut stream = after(&shop, "HEAD~1").expect("it is in history");
    let mut tokens = vec![stream.token()];
    let events = delivered(&shop, &mut stream).expect("all is kept");
    tokens.extend(
        events.iter().map(|event| {
            event.get("_id").and_then(|id| id.as_document()).expect("a token").to_buf()
        }),
    );
    assert_eq!(shorts(&events), CHANGED);
    insert(&shop, "things", "[{'_id': 9}]");
    // The branch differs from its former state, and each end is a commit still.
    for (position, token) in tokens.into_iter().enumerate() {
        let mut again = watch(&shop, StreamStart::Resume(token)).expect("both are in history");
        let events = delivered(&shop, &mut again).expect("all is kept");
        let live = ["insert things {'_id':9}"];
        assert_eq!(shorts(&events), [&CHANGED[position..], &live[..]].concat(), "{position}");
    }
    // Nothing differed then: events are as it was written.
    let mut again = watch(&shop, StreamStart::Resume(first)).expect("both are in history");
    let events = delivered(&shop, &mut again).expect("all is kept");
    assert!(events.iter().all(|event| event.get("frond").is_none()));
    assert_eq!(events.len(), 6, "{events:?}");
}

#[test]
fn pre_images_are_those_of_the_commit() {
    let frond = open_with_changes();
    let shop = shop(&frond);
    change(&shop);
    let request = ChangeStreamRequest {
        start: StreamStart::AfterCommit("HEAD".to_owned()),
        before_change: Image::Required,
        ..ChangeStreamRequest::default()
    };
    let watched = Watched::Collection(shop.database().clone(), "things".to_owned());
    let mut stream = frond.watch(watched, &request).expect("it is in history");
    let events = delivered(&shop, &mut stream).expect("all is kept");
    let image = |event: &DocumentBuf| {
        let image = event.get("fullDocumentBeforeChange").and_then(|it| it.as_document());
        text(&image.expect("it is kept").to_buf())
    };
    let images: Vec<String> = events.iter().map(image).collect();
    assert_eq!(images, ["{'_id':2,'a':1}", "{'_id':3,'a':1}"]);
}

#[test]
fn tokens_without_a_place_are_refused() {
    let frond = open_with_changes();
    let shop = shop(&frond);
    shop.create_branch("other", None).expect("made");
    let other = Repository::open(&frond, "shop@other").expect("there");
    insert(&other, "things", "[{'_id': 8}]");
    other.commit("elsewhere", "test").expect("committed");
    for (revision, what) in [("other", "of another branch"), ("nowhere", "none")] {
        let error = after(&shop, revision).err().expect(what);
        assert_eq!(error.code.number(), 2, "{what}: {}", error.message);
    }
    let deployment = ChangeStreamRequest {
        start: StreamStart::AfterCommit("HEAD".to_owned()),
        ..ChangeStreamRequest::default()
    };
    let error = frond.watch(Watched::Deployment(frond.clone()), &deployment);
    assert_eq!(error.err().expect("a commit is of one").code.number(), 2);
    // Within what differs of a working state, which only the open stream keeps.
    change(&shop);
    let mut stream = after(&shop, "HEAD").expect("it is in history");
    stream.next(&Interrupt::default()).expect("told").expect("something differs");
    let error = watch(&shop, StreamStart::Resume(stream.token())).err().expect("it is gone");
    assert_eq!(error.code.number(), 286, "{}", error.message);
    // Behind all of it the log is enough.
    while stream.next(&Interrupt::default()).expect("told").is_some() {}
    insert(&shop, "things", "[{'_id': 9}]");
    let mut again = watch(&shop, StreamStart::Resume(stream.token())).expect("the log has it");
    let events = delivered(&shop, &mut again).expect("all is kept");
    assert_eq!(shorts(&events), ["insert things {'_id':9}"]);
}
