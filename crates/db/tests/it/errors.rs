//! Goal: errors tell the caller what to do. Method: disks that fail, requests that are wrong.

use frond_db::{Durability, ErrorKind, FrondOptions};
use frond_doc::{DocumentBuf, DocumentBuilder, Value};
use frond_query::Code;
use frond_testkit::SimDisk;

use crate::support::*;

#[test]
fn a_full_disk_takes_nothing_and_recovers() {
    let disk = SimDisk::new(1);
    let frond = frond_vcs::open_on(&disk.machine(), FrondOptions::default()).expect("opens");
    let shop = frond.database("shop").expect("a proper name");
    insert(&shop, "things", "[{'_id': 1}]");
    disk.fill_after(0);
    let text = "x".repeat(100_000);
    let large = frond_doc::document! { "_id": 2, "text": &text[..] };
    let error =
        shop.insert("things", std::slice::from_ref(&large), true, Durability::Synced).unwrap_err();
    assert_eq!((error.kind, error.code), (ErrorKind::Unavailable, Code::OutOfDiskSpace));
    assert_eq!(all(&shop, "things"), "[{'_id':1}]");
    disk.make_room();
    let report = shop.insert("things", &[large], true, Durability::Synced).expect("there is room");
    assert_eq!(report.count, 1);
}

#[test]
fn a_failed_sync_closes() {
    let disk = SimDisk::new(1);
    let frond = frond_vcs::open_on(&disk.machine(), FrondOptions::default()).expect("opens");
    let shop = frond.database("shop").expect("a proper name");
    insert(&shop, "things", "[{'_id': 1}]");
    disk.fail_sync_after(0);
    let write = |id: i32| {
        let document = frond_doc::document! { "_id": id };
        shop.insert("things", &[document], true, Durability::Synced)
    };
    let code_of = |result: Result<_, frond_db::Error>| {
        let error: frond_db::Error = result.map(|_: frond_db::WriteReport| ()).unwrap_err();
        (error.kind, error.code)
    };
    assert_eq!(frond.fault(), None);
    assert_eq!(code_of(write(2)), (ErrorKind::Unknown, Code::ShutdownInProgress));
    assert_eq!(code_of(write(3)), (ErrorKind::Closed, Code::NotWritablePrimary));
    assert!(frond.fault().is_some());
    let open = frond.begin();
    let within = open.database("shop").expect("a proper name");
    let document = frond_doc::document! { "_id": 4_i32 };
    assert_eq!(
        code_of(within.insert("things", &[document], true, Durability::Synced)),
        (ErrorKind::Closed, Code::NotWritablePrimary)
    );
    assert_eq!(all(&shop, "things"), "[{'_id':1}]", "reads go on");
}

#[test]
fn documents_that_are_too_large_are_refused() {
    let bytes = frond_doc::document::DOCUMENT_BYTES_MAX;
    let frond = shop().frond().clone().with_document_bytes_max(bytes as u64);
    let shop = frond.database("shop").expect("a proper name");
    let text = "x".repeat(bytes);
    let mut builder = DocumentBuilder::new();
    builder.append("_id", Value::Int32(1)).append("text", Value::String(&text));
    let report = try_insert(&shop, "things", &[builder.build()]);
    assert_eq!(report.errors[0].error.code, Code::BSONObjectTooLarge);
    let half = "x".repeat(bytes / 2);
    let mut builder = DocumentBuilder::new();
    builder.append("_id", Value::Int32(1)).append("text", Value::String(&half));
    assert_eq!(try_insert(&shop, "things", &[builder.build()]).count, 1);
    let mut set = DocumentBuilder::new();
    set.begin_document("$set").append("more", Value::String(&half)).end();
    let statement =
        frond_db::UpdateStatement { update: set.build().into(), ..statement("{'_id': 1}", "{}") };
    let report = update(&shop, "things", statement);
    assert_eq!(report.errors[0].error.code.number(), 17419);
}

#[test]
fn sorts_in_memory_are_bounded() {
    let shop = shop();
    let text = "x".repeat(8 << 20);
    let documents: Vec<DocumentBuf> = (0..13)
        .map(|id| {
            let mut builder = DocumentBuilder::new();
            builder.append("_id", Value::Int32(id)).append("n", Value::Int32(-id));
            builder.append("text", Value::String(&text));
            builder.build()
        })
        .collect();
    let report = shop.insert("things", &documents, true, Durability::Relaxed).expect("inserted");
    assert_eq!(report.count, 13);
    let mut sorted = request("{}");
    sorted.sort = Some(json("{'n': 1}"));
    sorted.in_memory_only = true;
    let error = run(&shop, "things", &sorted).unwrap_err();
    assert_eq!(error.code, Code::QueryExceededMemoryLimitNoDiskUseAllowed);
    sorted.limit = Some(2);
    sorted.projection = Some(json("{'n': 1}"));
    let found = run(&shop, "things", &sorted).expect("two fit");
    assert_eq!(texts(&found), "[{'_id':12,'n':-12},{'_id':11,'n':-11}]");
}

#[test]
fn requests_that_are_wrong() {
    let shop = shop();
    insert(&shop, "things", "[{'_id': 1}]");
    let code = |request| run(&shop, "things", &request).unwrap_err().code;
    assert_eq!(code(request("{'a': {'$bad': 1}}")), Code::BadValue);
    assert_eq!(code(request("{'$or': []}")), Code::BadValue);
    let mut wrong = request("{}");
    wrong.sort = Some(json("{'a': 'x'}"));
    assert!(run(&shop, "things", &wrong).is_err());
    let mut wrong = request("{}");
    wrong.sort = Some(json("{'$natural': 3}"));
    assert_eq!(run(&shop, "things", &wrong).unwrap_err().code, Code::BadValue);
    let mut wrong = request("{}");
    wrong.hint = Some(value("{'$natural': 1, 'a': 1}"));
    assert_eq!(run(&shop, "things", &wrong).unwrap_err().code, Code::BadValue);
    let error = shop.insert("a$", &[json("{}")], true, Durability::Synced).unwrap_err();
    assert_eq!(error.code, Code::InvalidNamespace);
}

#[test]
fn an_order_behind_the_id_refuses_documents_too() {
    let shop = shop();
    insert(&shop, "things", "[{'_id': 1, 'a': [1, 2], 'b': [3], 't': [{'0': 1}, 2]}]");
    let sorted = |sort: &str| {
        let mut request = request("{}");
        request.sort = Some(json(sort));
        run(&shop, "things", &request).map(|found| found.len()).map_err(|error| error.code)
    };
    assert_eq!(sorted("{'_id': 1, 'a': 1, 'b': -1}"), Err(Code::BadValue));
    assert_eq!(sorted("{'_id': -1, 't.0': 1}"), Err(Code::Location(16746)));
    assert_eq!(sorted("{'_id': 1, 'a': 1}"), Ok(1));
}
