//! Change streams with more detail: former documents, collections and indexes that are made, events
//! too large for one document.

use frond_db::catalog::IndexSpec;
use frond_db::{
    AccessChange, AccessKind, CHANGE_STREAM_OPTIONS, ChangeRetention, ChangeStream,
    ChangeStreamRequest, Database, Error, Frond, FrondOptions, FullDocument, Image, Interrupt,
    StreamStart, UpdateStatement, Watched,
};
use frond_doc::{Binary, DocumentBuf, DocumentBuilder, Value, document};
use frond_testkit::machine::machine;
use frond_testkit::{SimClock, SimDisk};
use frond_vcs::{MergeRequest, Repository};

use crate::support::{
    delete, insert, json, open_with_changes, statement, text, try_insert, update, value,
};

fn watch(database: &Database, request: &ChangeStreamRequest) -> Result<ChangeStream, Error> {
    let watched = Watched::Collection(database.clone(), "things".to_owned());
    database.frond().watch(watched, request)
}

fn delivered(frond: &Frond, stream: &mut ChangeStream) -> Result<Vec<DocumentBuf>, Error> {
    frond.flush().expect("the disk works");
    let mut delivered = Vec::new();
    while let Some(event) = stream.next(&Interrupt::default())? {
        delivered.push(event);
    }
    Ok(delivered)
}

/// An event's fields of these names, as text.
fn parts(event: &DocumentBuf, names: &[&str]) -> String {
    let mut out = DocumentBuilder::new();
    for (name, value) in event.iter().filter(|(name, _)| names.contains(name)) {
        out.append(name, value);
    }
    text(&out.build())
}

#[test]
fn pre_images_are_delivered_where_the_collection_keeps_them() {
    let frond = open_with_changes();
    let shop = Repository::open(&frond, "shop").expect("a proper name");
    let kept = json("{'changeStreamPreAndPostImages': {'enabled': true}}");
    shop.create_collection("things", kept.view()).expect("made");
    let long = "x".repeat(40_000);
    let request = ChangeStreamRequest {
        full_document: FullDocument::Required,
        before_change: Image::Required,
        ..ChangeStreamRequest::default()
    };
    let mut stream = watch(&shop, &request).expect("it is kept");
    insert(&shop, "things", "[{'_id': 1, 'a': 1, 'l': [1, 2, 3], 'd': {'x': 1, 'y': 2}}]");
    let change = "{'$set': {'a': 2, 'd.z': 3}, '$push': {'l': 4}, '$unset': {'d.x': 1}}";
    update(&shop, "things", statement("{'_id': 1}", change));
    update(&shop, "things", UpdateStatement::new(json("{'_id': 1}"), value("{'b': 1}")));
    delete(&shop, "things", "{}");
    // Of a large one, too, also where it is changed piece by piece.
    try_insert(&shop, "things", &[document! { "_id": 2, "text": &*long, "n": 1 }]);
    update(&shop, "things", statement("{'_id': 2}", "{'$inc': {'n': 1}}"));
    delete(&shop, "things", "{}");
    let names = ["operationType", "fullDocumentBeforeChange", "fullDocument"];
    let short = |text: String| text.replace(&long, "long");
    let events = delivered(&frond, &mut stream).expect("all is kept");
    let events: Vec<_> = events.iter().map(|event| short(parts(event, &names))).collect();
    let first = "{'_id':1,'a':1,'l':[1,2,3],'d':{'x':1,'y':2}}";
    let second = "{'_id':1,'a':2,'l':[1,2,3,4],'d':{'y':2,'z':3}}";
    let (large, larger) = ("{'_id':2,'text':'long','n':1}", "{'_id':2,'text':'long','n':2}");
    assert_eq!(
        events,
        [
            format!("{{'operationType':'insert','fullDocument':{first}}}"),
            format!(
                "{{'operationType':'update','fullDocumentBeforeChange':{first},'fullDocument':{second}}}"
            ),
            format!(
                "{{'operationType':'replace','fullDocument':{{'_id':1,'b':1}},\
                 'fullDocumentBeforeChange':{second}}}"
            ),
            "{'operationType':'delete','fullDocumentBeforeChange':{'_id':1,'b':1}}".to_owned(),
            format!("{{'operationType':'insert','fullDocument':{large}}}"),
            format!(
                "{{'operationType':'update','fullDocumentBeforeChange':{large},'fullDocument':{larger}}}"
            ),
            format!("{{'operationType':'delete','fullDocumentBeforeChange':{larger}}}"),
        ]
    );
}

/// `changeStreamOptions`: what is older isn't shown, and is again once it isn't set any more, as
/// long as the log has it.
#[test]
fn pre_images_expire() {
    let (disk, clock) = (SimDisk::new(1), SimClock::new());
    let mut options = FrondOptions::default();
    options.engine.changes =
        ChangeRetention { seconds: 360_000, bytes: 1 << 30, ..ChangeRetention::default() };
    let frond = frond_vcs::open_on(&machine(&disk, &clock, 1), options).expect("opens");
    let shop = Repository::open(&frond, "shop").expect("a proper name");
    let kept = json("{'changeStreamPreAndPostImages': {'enabled': true}}");
    shop.create_collection("things", kept.view()).expect("made");
    let stream_request = ChangeStreamRequest {
        full_document: FullDocument::WhenAvailable,
        before_change: Image::WhenAvailable,
        ..ChangeStreamRequest::default()
    };
    let start = watch(&shop, &stream_request).expect("it is kept").token();
    let again = ChangeStreamRequest { start: StreamStart::Resume(start), ..stream_request };
    let set = |seconds: Option<i64>| {
        let images = seconds.map(|seconds| document! { "expireAfterSeconds": seconds });
        let options = images.map(|images| document! { "preAndPostImages": &images });
        let (database, name) = (String::new(), CHANGE_STREAM_OPTIONS.to_owned());
        let change = AccessChange { kind: AccessKind::Setting, database, name, document: options };
        frond.change_access(&[change]).expect("written");
    };
    insert(&shop, "things", "[{'_id': 1, 'a': 1}]");
    update(&shop, "things", statement("{'_id': 1}", "{'$set': {'a': 2}}"));
    clock.step(90_000_000);
    update(&shop, "things", statement("{'_id': 1}", "{'$set': {'a': 3}}"));
    let names = ["fullDocumentBeforeChange", "fullDocument"];
    let of_updates = || {
        let mut stream = watch(&shop, &again).expect("it is kept");
        let events = delivered(&frond, &mut stream).expect("null is told");
        events[1..].iter().map(|event| parts(event, &names)).collect::<Vec<_>>()
    };
    let of = |before: &str, after: &str| {
        format!("{{'fullDocumentBeforeChange':{before},'fullDocument':{after}}}")
    };
    let first = of("{'_id':1,'a':1}", "{'_id':1,'a':2}");
    let second = of("{'_id':1,'a':2}", "{'_id':1,'a':3}");
    assert_eq!(of_updates(), [first.clone(), second.clone()]);
    set(Some(60));
    assert_eq!(of_updates(), [of("null", "null"), second.clone()]);
    let required = ChangeStreamRequest { before_change: Image::Required, ..again.clone() };
    let mut stream = watch(&shop, &required).expect("it is kept");
    assert_eq!(delivered(&frond, &mut stream).expect_err("one is too old").code.number(), 47);
    set(Some(3_600));
    assert_eq!(of_updates(), [first.clone(), second.clone()]);
    set(None);
    assert_eq!(of_updates(), [first, second]);
}

/// Of few documents, which the log has one by one, and of many, which are read when the events are
/// returned.
#[test]
fn pre_images_of_a_merge_are_delivered() {
    for count in [5, 1_200] {
        let frond = open_with_changes();
        let shop = Repository::open(&frond, "shop").expect("a proper name");
        let kept = json("{'changeStreamPreAndPostImages': {'enabled': true}}");
        shop.create_collection("things", kept.view()).expect("made");
        let documents: Vec<DocumentBuf> =
            (0..count).map(|id| document! { "_id": id, "a": 1, "b": 1 }).collect();
        assert_eq!(try_insert(&shop, "things", &documents).count, count as u64);
        shop.commit("first", "test").expect("committed");
        shop.create_branch("other", None).expect("made");
        let other = Repository::open(&frond, "shop@other").expect("there");
        let all = UpdateStatement { multi: true, ..statement("{}", "{'$set': {'a': 2}}") };
        update(&other, "things", all);
        delete(&other, "things", "{'_id': 1}");
        update(&other, "things", UpdateStatement::new(json("{'_id': 2}"), value("{'c': 1}")));
        other.commit("second", "test").expect("committed");
        let stream_request = ChangeStreamRequest {
            full_document: FullDocument::Required,
            before_change: Image::Required,
            ..ChangeStreamRequest::default()
        };
        let mut stream = watch(&shop, &stream_request).expect("it is kept");
        let request = MergeRequest { merge_in: "other".to_owned(), ..MergeRequest::default() };
        shop.merge(&request).expect("merged");
        let events = delivered(&frond, &mut stream).expect("all is kept");
        let names = ["operationType", "fullDocumentBeforeChange", "fullDocument"];
        let parts: Vec<String> = events.iter().map(|event| parts(event, &names)).collect();
        let update = |id: i32| {
            format!(
                "{{'operationType':'update','fullDocumentBeforeChange':{{'_id':{id},'a':1,'b':1}},\
                 'fullDocument':{{'_id':{id},'a':2,'b':1}}}}"
            )
        };
        let deleted = "{'operationType':'delete','fullDocumentBeforeChange':{'_id':1,'a':1,'b':1}}";
        let replaced = "{'operationType':'replace','fullDocument':{'_id':2,'c':1},\
                        'fullDocumentBeforeChange':{'_id':2,'a':1,'b':1}}";
        let mut expected: Vec<String> = (0..count).map(update).collect();
        (expected[1], expected[2]) = (deleted.to_owned(), replaced.to_owned());
        assert_eq!(parts, expected, "{count}");
    }
}

#[test]
fn a_missing_pre_image_is_null_or_ends_the_stream() {
    let frond = open_with_changes();
    let shop = Repository::open(&frond, "shop").expect("a proper name");
    let of = |full_document, before_change| {
        let others = ChangeStreamRequest::default();
        watch(&shop, &ChangeStreamRequest { full_document, before_change, ..others }).expect("kept")
    };
    let mut streams = [
        of(FullDocument::WhenAvailable, Image::WhenAvailable),
        of(FullDocument::Required, Image::Off),
        of(FullDocument::Default, Image::Required),
    ];
    insert(&shop, "things", "[{'_id': 1}]");
    update(&shop, "things", statement("{'_id': 1}", "{'$set': {'a': 2}}"));
    let events = delivered(&frond, &mut streams[0]).expect("null is told");
    let names = ["fullDocumentBeforeChange", "fullDocument"];
    assert_eq!(parts(&events[1], &names), "{'fullDocumentBeforeChange':null,'fullDocument':null}");
    for stream in &mut streams[1..] {
        assert_eq!(delivered(&frond, stream).expect_err("it isn't kept").code.number(), 47);
        assert!(stream.is_over());
    }
    let mut streams = [
        of(FullDocument::WhenAvailable, Image::Off),
        of(FullDocument::Default, Image::WhenAvailable),
    ];
    let on = json("{'changeStreamPreAndPostImages': {'enabled': true}}");
    shop.change_collection("things", on.view()).expect("changed");
    update(&shop, "things", statement("{'_id': 1}", "{'$set': {'a': 3}}"));
    let requests = streams.each_mut().map(|stream| {
        let events = delivered(&frond, stream).expect("kept");
        parts(&events[0], &names)
    });
    assert_eq!(
        requests,
        ["{'fullDocument':{'_id':1,'a':3}}", "{'fullDocumentBeforeChange':{'_id':1,'a':2}}"]
    );
    let off = json("{'changeStreamPreAndPostImages': {'enabled': false}}");
    shop.change_collection("things", off.view()).expect("changed");
    let listed = shop.list_collections().expect("listed");
    let options = listed.iter().find(|it| it.name == "things").map(|it| it.options.clone());
    assert_eq!(options, Some(DocumentBuf::empty()), "what is off goes without saying");
    for (options, code) in [
        ("{'changeStreamPreAndPostImages': {}}", 40414),
        ("{'changeStreamPreAndPostImages': {'enabled': 1}}", 14),
        ("{'changeStreamPreAndPostImages': {'enabled': true, 'more': 1}}", 40415),
        ("{'viewOn': 'x', 'changeStreamPreAndPostImages': {'enabled': true}}", 72),
    ] {
        let refused = shop.create_collection("others", json(options).view());
        assert_eq!(refused.expect_err(options).code.number(), code, "{options}");
    }
}

#[test]
fn collections_and_indexes_are_delivered_on_request() {
    let frond = open_with_changes();
    let shop = Repository::open(&frond, "shop").expect("a proper name");
    let expanded = ChangeStreamRequest { is_expanded: true, ..ChangeStreamRequest::default() };
    let mut all = frond.watch(Watched::Database((*shop).clone()), &expanded).expect("kept");
    let mut usual = watch(&shop, &ChangeStreamRequest::default()).expect("kept");
    let spec = |key: &str| [IndexSpec::parse(json(&format!("{{'key': {key}}}")).view()).unwrap()];
    shop.create_indexes("things", &spec("{'a': 1}")).expect("made");
    insert(&shop, "things", "[{'_id': 1, 'a': 1}]");
    shop.create_indexes("things", &spec("{'b': 1}")).expect("made");
    update(&shop, "things", statement("{'_id': 1}", "{'$set': {'a': 2}}"));
    shop.drop_indexes("things", "*").expect("dropped");
    let level = json("{'validationLevel': 'off'}");
    shop.change_collection("things", level.view()).expect("changed");
    shop.rename_collection("things", "more", false).expect("renamed");
    let events = delivered(&frond, &mut all).expect("kept");
    let names = ["operationType", "operationDescription"];
    let all_events: Vec<_> = events.iter().map(|event| parts(event, &names)).collect();
    let index =
        |field: &str| format!("{{'indexes':[{{'v':2,'key':{{'{field}':1}},'name':'{field}_1'}}]}}");
    let of = |kind: &str, what: &str| {
        format!("{{'operationType':'{kind}','operationDescription':{what}}}")
    };
    let id = "{'idIndex':{'v':2,'key':{'_id':1},'name':'_id_'}}";
    assert_eq!(
        all_events,
        [
            of("create", id),
            of("createIndexes", &index("a")),
            "{'operationType':'insert'}".to_owned(),
            of("createIndexes", &index("b")),
            "{'operationType':'update'}".to_owned(),
            of("dropIndexes", &index("a")),
            of("dropIndexes", &index("b")),
            of("modify", "{'validationLevel':'off'}"),
            of("rename", "{'to':{'db':'shop','coll':'more'}}"),
        ]
    );
    let uuids: Vec<_> = events.iter().map(|event| event.get("collectionUUID")).collect();
    assert!(uuids[0].is_some() && uuids.iter().all(|uuid| *uuid == uuids[0]), "{uuids:?}");
    let description = "{'updateDescription':{'updatedFields':{'a':2},'removedFields':[],\
                       'truncatedArrays':[],'disambiguatedPaths':{}}}";
    assert_eq!(parts(&events[4], &["updateDescription"]), description);
    let was = parts(&events[7], &["stateBeforeChange"]);
    assert!(was.starts_with("{'stateBeforeChange':{'collectionOptions':{'uuid':"), "{was}");
    let kinds = delivered(&frond, &mut usual).expect("kept");
    let kinds: Vec<_> = kinds.iter().map(|event| parts(event, &names[..1])).collect();
    let of = |kind: &str| format!("{{'operationType':'{kind}'}}");
    assert_eq!(kinds, ["insert", "update", "rename", "invalidate"].map(of));
}

#[test]
fn an_event_that_is_too_large_comes_in_fragments() {
    const SPLIT: &str = "[{'$changeStreamSplitLargeEvent': {}}]";
    let frond = open_with_changes();
    let shop = Repository::open(&frond, "shop").expect("a proper name");
    let kept = json("{'changeStreamPreAndPostImages': {'enabled': true}}");
    shop.create_collection("things", kept.view()).expect("made");
    let request = |stages: &str, start| ChangeStreamRequest {
        start,
        before_change: Image::Required,
        stages: Some(value(stages)),
        ..ChangeStreamRequest::default()
    };
    let mut whole = watch(&shop, &request("[]", StreamStart::Now)).expect("kept");
    let mut split = watch(&shop, &request(SPLIT, StreamStart::Now)).expect("kept");
    let binary = vec![7; 10 << 20];
    let document = |number: i32| {
        let bytes = Value::Binary(Binary { subtype: 0, bytes: &binary });
        document! { "_id": 1, "n": number, "bytes": bytes }
    };
    try_insert(&shop, "things", &[document(1)]);
    let two = document(2);
    let replacement = Value::Document(two.view()).to_buf();
    update(&shop, "things", UpdateStatement::new(json("{'_id': 1}"), replacement));
    delete(&shop, "things", "{}");
    assert_eq!(delivered(&frond, &mut whole).expect_err("too large").code.number(), 10334);
    let events = delivered(&frond, &mut split).expect("kept");
    let marks = |event: &DocumentBuf| parts(event, &["operationType", "splitEvent"]);
    let parts_of_events: Vec<_> = events.iter().map(marks).collect();
    assert_eq!(
        parts_of_events,
        [
            "{'operationType':'insert'}",
            "{'splitEvent':{'fragment':1,'of':2},'operationType':'replace'}",
            "{'splitEvent':{'fragment':2,'of':2}}",
            "{'operationType':'delete'}",
        ]
    );
    let names = |event: &DocumentBuf| -> Vec<String> {
        event.iter().map(|(name, _)| name.to_owned()).collect()
    };
    let mut fields = [names(&events[1]), names(&events[2])].concat();
    fields.retain(|name| name != "_id" && name != "splitEvent");
    fields.sort();
    let all = ["clusterTime", "documentKey", "fullDocument", "fullDocumentBeforeChange", "ns"];
    assert_eq!(fields[..5], all.map(str::to_owned));
    assert_eq!(fields[5..], ["operationType", "wallTime"].map(str::to_owned));
    // From each of them a stream goes on with what comes behind it.
    for (position, event) in events.iter().enumerate() {
        let Some(Value::Document(token)) = event.get("_id") else { panic!("it has a token") };
        let start = StreamStart::Resume(token.to_buf());
        let mut after = watch(&shop, &request(SPLIT, start.clone())).expect("kept");
        assert!(
            delivered(&frond, &mut after).expect("kept") == events[position + 1..],
            "{position}"
        );
        let without = watch(&shop, &request("[]", start)).err().map(|error| error.code.number());
        let is_fragment = event.get("splitEvent").is_some();
        assert_eq!(without, is_fragment.then_some(280), "{position}");
    }
    for (stages, code) in [
        ("[{'$changeStreamSplitLargeEvent': {'a': 1}}]", 7182800),
        ("[{'$changeStreamSplitLargeEvent': {}}, {'$match': {}}]", 7182802),
    ] {
        let refused = watch(&shop, &request(stages, StreamStart::Now)).err().expect(stages);
        assert_eq!(refused.code.number(), code, "{stages}");
    }
}
