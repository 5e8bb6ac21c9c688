//! With the feature `network` a running server is a place like any other, for clients that have its
//! token.

use frond_remote::{RemoteServer, ServeOptions, Tokens};
use fronddb::{Access, CloneOptions, Document, ErrorKind, Merge, PullOptions, PushOptions, doc};

#[test]
fn a_server_is_cloned_pulled_from_and_pushed_to() {
    let data = tempfile::tempdir().expect("a directory");
    let token = "all-all-all-all-all";
    let origin = frond_vcs::open(&data.path().join("there"), frond_db::FrondOptions::default())
        .expect("an empty directory opens");
    let options = ServeOptions {
        listen: "127.0.0.1:0".to_owned(),
        tokens: Tokens::parse(token).expect("a good one"),
        ..ServeOptions::default()
    };
    let server = RemoteServer::start(origin, &options).expect("a free port");
    let place = format!("{}/shop", server.url());
    let access = Access { token: Some(token.to_owned()), certificates: None };

    let ours = fronddb::open(data.path().join("ours")).expect("an empty directory opens");
    let shop = ours.database("shop").expect("a proper name");
    let things = shop.collection::<Document>("things");
    things.insert_one(doc! { "_id": 1 }).expect("inserted");
    let first = shop.commit("first").expect("committed");
    shop.add_remote("origin", &place).expect("named");
    assert_eq!(shop.list_remotes().expect("listed")[0].url, place);
    let error = shop.push("origin").expect_err("without the token");
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    let push = PushOptions { access: access.clone(), ..PushOptions::default() };
    assert_eq!(shop.push_with("origin", push.clone()).expect("pushed").to, first);

    let theirs = fronddb::open(data.path().join("theirs")).expect("an empty directory opens");
    let clone = CloneOptions { access: access.clone(), ..CloneOptions::default() };
    let copy = theirs.clone_database_with(&place, "copy", clone).expect("cloned");
    copy.collection::<Document>("things").insert_one(doc! { "_id": 2 }).expect("inserted");
    copy.commit("second").expect("committed");
    copy.push_with("origin", push).expect("pushed");

    let pull = PullOptions { access, ..PullOptions::default() };
    assert!(matches!(shop.pull_with("origin", pull).expect("pulled"), Merge::Merged(_)));
    assert_eq!(things.count(doc! {}).expect("counted"), 2);
}
