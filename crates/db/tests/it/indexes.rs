//! Goal: indexes are made, refused, kept and used as MongoDB does. Method: tables of
//! specifications, and small collections whose index is looked at through hints.

use frond_db::catalog::IndexSpec;
use frond_db::{Database, FindRequest, UpdateStatement};
use frond_query::Code;

use crate::support::*;

fn spec(text: &str) -> IndexSpec {
    IndexSpec::parse(json(text).view()).expect("a proper index")
}

fn through(database: &Database, index: &str, filter: &str) -> String {
    let hint = Some(value(&format!("'{index}'")));
    let request = FindRequest { hint, sort: Some(json("{'_id': 1}")), ..request(filter) };
    texts(&run(database, "things", &request).expect("the request is right"))
}

#[test]
fn specifications() {
    assert_eq!(
        text(&spec("{'key': {'a': 1, 'b': -1}}").to_document()),
        "{'v':2,'key':{'a':1,'b':-1},'name':'a_1_b_-1'}"
    );
    assert_eq!(
        text(
            &spec("{'v': 2, 'key': {'a': 1}, 'name': 'n', 'unique': true, 'sparse': 1}")
                .to_document()
        ),
        "{'v':2,'key':{'a':1},'name':'n','unique':true,'sparse':true}"
    );
    for specification in [
        "{'v':2,'key':{'a':1},'name':'a_1','hidden':true,'expireAfterSeconds':60}",
        "{'v':2,'key':{'a':1},'name':'a_1','partialFilterExpression':{'b':{'$gt':5}}}",
        "{'v':2,'key':{'a':'hashed','b':1},'name':'a_hashed_b_1'}",
        "{'v':2,'key':{'$**':1},'name':'$**_1','wildcardProjection':{'a':1}}",
        "{'v':2,'key':{'a':1},'name':'a_1','include':['b','c.d']}",
        "{'v':2,'key':{'a':1},'name':'a_1','clustering':true}",
    ] {
        assert_eq!(text(&spec(specification).to_document()), specification);
    }
    for (wrong, code) in [
        ("{}", Code::FailedToParse),
        ("{'key': 1}", Code::TypeMismatch),
        ("{'key': {}}", Code::CannotCreateIndex),
        ("{'key': {'a': 0}}", Code::CannotCreateIndex),
        ("{'key': {'a': true}}", Code::CannotCreateIndex),
        ("{'key': {'a': 'text', 'b': 2}}", Code::CannotCreateIndex),
        ("{'key': {'a': 'what'}}", Code::CannotCreateIndex),
        ("{'key': {'a..b': 1}}", Code::CannotCreateIndex),
        ("{'key': {'$a': 1}}", Code::CannotCreateIndex),
        ("{'key': {'a': 1}, 'expireAfterSeconds': -5}", Code::CannotCreateIndex),
        ("{'key': {'a': 1, 'b': 1}, 'expireAfterSeconds': 5}", Code::CannotCreateIndex),
        ("{'key': {'a': 'hashed'}, 'unique': true}", Code::Location(16764)),
        ("{'key': {'$**': 1}, 'unique': true}", Code::CannotCreateIndex),
        ("{'key': {'a': 1}, 'wildcardProjection': {'a': 1}}", Code::BadValue),
        (
            "{'key': {'a': 1}, 'partialFilterExpression': {'a': {'$ne': 1}}}",
            Code::CannotCreateIndex,
        ),
        (
            "{'key': {'a': 1}, 'partialFilterExpression': {'a': 1}, 'sparse': true}",
            Code::CannotCreateIndex,
        ),
        ("{'key': {'a': 1}, 'include': ['b'], 'clustering': true}", Code::CannotCreateIndex),
        ("{'key': {'a': 1}, 'include': ['b', 'b.c']}", Code::CannotCreateIndex),
        ("{'key': {'_id': 1}, 'hidden': true}", Code::BadValue),
        ("{'key': {'a': 1}, 'collation': {'locale': 'nowhere'}}", Code::BadValue),
        (
            "{'key': {'a': 1}, 'partialFilterExpression': {'$expr': {'$eq': ['$a', 1]}}}",
            Code::QueryFeatureNotAllowed,
        ),
        (
            "{'key': {'a': 1}, 'partialFilterExpression': {'$jsonSchema': {}}}",
            Code::QueryFeatureNotAllowed,
        ),
        (
            "{'key': {'a': 1}, 'partialFilterExpression': {'a': {'$near': [0, 0]}}}",
            Code::Location(5_626_500),
        ),
        ("{'key': {'a': 1}, 'v': 9}", Code::CannotCreateIndex),
        ("{'key': {'$**': 1}, 'v': 1}", Code::CannotCreateIndex),
        ("{'key': {'a': 'wildcard'}}", Code::Location(7_246_202)),
        ("{'key': {'a': 1}, 'name': ''}", Code::CannotCreateIndex),
        ("{'key': {'a': 1}, 'name': '*'}", Code::BadValue),
        ("{'key': {'a': 1}, 'name': '_id_'}", Code::BadValue),
        ("{'key': {'a': 1}, 'unique': 'x'}", Code::TypeMismatch),
        ("{'key': {'a': 1}, 'nonsense': 1}", Code::InvalidIndexSpecificationOption),
        ("{'key': {'_id': 1}, 'sparse': true}", Code::InvalidIndexSpecificationOption),
        ("{'key': {'_id': 1}, 'expireAfterSeconds': 5}", Code::InvalidIndexSpecificationOption),
        ("{'key': {'_id': -1}}", Code::BadValue),
        ("{'key': {'_id': -1.5}}", Code::BadValue),
    ] {
        let error = IndexSpec::parse(json(wrong).view()).unwrap_err();
        assert_eq!(error.code, code, "{wrong}: {}", error.message);
    }
    for (count, code) in [(32, 0), (33, 13103)] {
        let fields: Vec<String> = (0..count).map(|field| format!("'f{field}': 1")).collect();
        let whole = format!("{{'key': {{{}}}, 'name': 'many'}}", fields.join(", "));
        let parsed = IndexSpec::parse(json(&whole).view());
        assert_eq!(parsed.err().map_or(0, |error| error.code.number()), code, "{count}");
    }
}

/// As `compound_wildcard_index_validation.js` and `wildcard_validation.cpp` have it.
#[test]
fn fields_that_may_precede_a_wildcard() {
    for (key, projection, code) in [
        ("{'a': 1, 'b.$**': -1, 'c': 1}", "", 0),
        ("{'$**': 1}", "", 0),
        ("{'$**': 'text', 'a': 1}", "", 0),
        ("{'a': 1, '$**': 1}", "{'a': 0}", 0),
        ("{'c.d.e': 1, 'a.b': 1, '$**': 1}", "{'e': 1, 'c.d.e.l': 1, 'a.b.c': 1}", 0),
        ("{'c.d.e': 1, 'a.b': 1, '$**': 1}", "{'_id': 1, 'a': 0, 'c.d.e': 0}", 0),
        ("{'$**': 1, 'other': 1}", "{'_id': 0, 'a': 1}", 0),
        ("{'$**': 1, 'd': 1}", "{'a': {'b': 1, 'c': 1}}", 0),
        ("{'a': 1, '$**': 1}", "", 67),
        ("{'$**': 1, 'a': 1}", "", 67),
        ("{'a': 1, 'a.$**': 1}", "", 7_246_204),
        ("{'a.b.c': 1, 'a.b.$**': 1}", "", 7_246_204),
        ("{'a.$**': 1, 'b.$**': 1}", "", 7_246_201),
        ("{'$**': 1, 'b.$**': 1}", "", 7_246_201),
        ("{'a.$**': 1, 'b': 'text'}", "", 67),
        ("{'a.$**': 1, 'b': 'hashed'}", "", 67),
        ("{'b': 'hashed', 'a.$**': 1}", "", 67),
        ("{'a.$**': 1, 'b': '2dsphere'}", "", 67),
        ("{'b': '2d', 'a.$**': 1}", "", 67),
        ("{'$**': 'hashed'}", "", 67),
        ("{'$**': '2d'}", "", 67),
        ("{'a.$**': '2dsphere'}", "", 67),
        ("{'a.$**': 'text'}", "", 67),
        ("{'a': 1, 'a': -1}", "", 2),
        ("{'$**': 1, 'c': 1}", "{'a.b': 1, 'a.b.c': 1}", 7_246_200),
        ("{'$**': 1, 'c': 1}", "{'c': 0, 'a': 0, 'a.b': 0}", 7_246_200),
        ("{'$**': 1, 'c.d': 1}", "{'c': 1}", 7_246_208),
        ("{'$**': 1, 'b': 1}", "{'c': 0}", 7_246_209),
        ("{'$**': 1, 'd': 1}", "{'c': 0}", 7_246_210),
        ("{'$**': 1, 'b': 1}", "{'c': 1, 'b': 0}", 7_246_211),
        ("{'$**': 1}", "{'a.b': 1, 'a.b.c': 1}", 31249),
        ("{'st': 1, '$**': 1}", "{'a': 'something'}", 51271),
        ("{'b.$**': 1}", "{'a': 1}", 9),
        ("{'$**': 1}", "{}", 9),
    ] {
        let option = if projection.is_empty() {
            String::new()
        } else {
            format!(", 'wildcardProjection': {projection}")
        };
        let whole = format!("{{'key': {key}, 'name': 'w'{option}}}");
        let parsed = IndexSpec::parse(json(&whole).view());
        let found = parsed.err().map_or(0, |error| error.code.number());
        assert_eq!(found, code, "{whole}");
    }
}

#[test]
fn making_and_dropping() {
    let shop = shop();
    let created = shop.create_indexes("things", &[spec("{'key': {'a': 1}}")]).expect("made");
    assert_eq!((created.before, created.after, created.created_collection), (1, 2, true));
    let again = shop.create_indexes("things", &[spec("{'key': {'a': 1}}")]).expect("there");
    assert_eq!((again.before, again.after, again.created_collection), (2, 2, false));
    let ids = shop.create_indexes("things", &[spec("{'key': {'_id': 1}}")]).expect("there");
    assert_eq!((ids.before, ids.after), (2, 2));
    for (wrong, code) in [
        ("{'key': {'b': 1}, 'name': 'a_1'}", Code::IndexKeySpecsConflict),
        ("{'key': {'a': 1}, 'unique': true}", Code::IndexKeySpecsConflict),
        ("{'key': {'a': 1.0}, 'name': 'other'}", Code::IndexOptionsConflict),
    ] {
        let error = shop.create_indexes("things", &[spec(wrong)]).unwrap_err();
        assert_eq!(error.code, code, "{wrong}: {}", error.message);
    }
    shop.create_indexes("things", &[spec("{'key': {'b': 1}}"), spec("{'key': {'c': 1}}")])
        .expect("made");
    let names = || {
        let indexes = shop.list_indexes("things").expect("listed");
        indexes.into_iter().map(|index| index.name).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(names(), "_id_ a_1 b_1 c_1");
    assert_eq!(shop.drop_indexes("things", "b_1").expect("dropped"), 4);
    assert_eq!(names(), "_id_ a_1 c_1");
    assert_eq!(shop.drop_indexes("things", "b_1").unwrap_err().code, Code::IndexNotFound);
    assert_eq!(shop.drop_indexes("things", "_id_").unwrap_err().code, Code::InvalidOptions);
    assert_eq!(shop.drop_indexes("things", "*").expect("dropped"), 3);
    assert_eq!(shop.drop_indexes("things", "*").expect("nothing to drop"), 1);
    assert_eq!(names(), "_id_");
    assert_eq!(shop.list_indexes("nothing").unwrap_err().code, Code::NamespaceNotFound);
    assert_eq!(shop.drop_indexes("nothing", "*").unwrap_err().code, Code::NamespaceNotFound);
}

#[test]
fn an_index_follows_its_documents() {
    for build_first in [true, false] {
        let shop = shop();
        let build = || {
            let specs = [spec("{'key': {'a': 1}}"), spec("{'key': {'t': -1, 'a': 1}}")];
            shop.create_indexes("things", &specs).expect("built");
        };
        if build_first {
            build();
        }
        insert(
            &shop,
            "things",
            "[{'_id': 1, 'a': 1, 't': [1, 2]}, {'_id': 2, 'a': 1}, {'_id': 3}]",
        );
        update(&shop, "things", statement("{'_id': 2}", "{'$set': {'a': 5}}"));
        update(&shop, "things", statement("{'_id': 1}", "{'$push': {'t': 9}}"));
        if !build_first {
            build();
        }
        assert_eq!(through(&shop, "a_1", "{'a': 1}"), "[{'_id':1,'a':1,'t':[1,2,9]}]");
        assert_eq!(through(&shop, "a_1", "{'a': 5}"), "[{'_id':2,'a':5}]");
        assert_eq!(through(&shop, "a_1", "{'a': null}"), "[{'_id':3}]");
        assert_eq!(through(&shop, "t_-1_a_1", "{'t': 9}"), "[{'_id':1,'a':1,'t':[1,2,9]}]");
        let everything = "[{'_id':1,'a':1,'t':[1,2,9]},{'_id':2,'a':5},{'_id':3}]";
        assert_eq!(through(&shop, "t_-1_a_1", "{}"), everything);
        delete(&shop, "things", "{'_id': 1}");
        assert_eq!(through(&shop, "t_-1_a_1", "{}"), "[{'_id':2,'a':5},{'_id':3}]");
        assert_eq!(through(&shop, "a_1", "{}"), "[{'_id':2,'a':5},{'_id':3}]");
    }
}

#[test]
fn unique_indexes_refuse_a_second_document() {
    let shop = shop();
    shop.create_indexes("things", &[spec("{'key': {'a': 1}, 'unique': true}")]).expect("made");
    insert(&shop, "things", "[{'_id': 1, 'a': 'x'}, {'_id': 2, 'a': ['y', 'z', 'z']}, {'_id': 3}]");
    for (document, message) in [
        ("{'_id': 4, 'a': 'x'}", "index: a_1 dup key: { a: \"x\" }"),
        ("{'_id': 4, 'a': 'z'}", "index: a_1 dup key: { a: \"z\" }"),
        ("{'_id': 4, 'a': null}", "index: a_1 dup key: { a: null }"),
        ("{'_id': 4}", "index: a_1 dup key: { a: null }"),
        ("{'_id': 4, 'a': [1, 'y']}", "index: a_1 dup key: { a: \"y\" }"),
    ] {
        let report = try_insert(&shop, "things", &[json(document)]);
        let error = &report.errors[0].error;
        assert_eq!(error.code, Code::DuplicateKey, "{document}");
        let expected = format!("E11000 duplicate key error collection: shop.things {message}");
        assert_eq!(error.message, expected, "{document}");
    }
    // Nothing of a refused document stays, in no tree.
    insert(&shop, "things", "[{'_id': 4, 'a': 1}]");
    let report = update(&shop, "things", statement("{'_id': 4}", "{'$set': {'a': 'x'}}"));
    assert_eq!(report.errors[0].error.code, Code::DuplicateKey);
    assert_eq!(through(&shop, "a_1", "{'a': 1}"), "[{'_id':4,'a':1}]");
    // A key is free again once its document has left it.
    update(&shop, "things", statement("{'_id': 1}", "{'$set': {'a': 'w'}}"));
    update(&shop, "things", statement("{'_id': 4}", "{'$set': {'a': 'x'}}"));
    assert_eq!(through(&shop, "a_1", "{'a': 'x'}"), "[{'_id':4,'a':'x'}]");
    // Two documents of one request can't have one key either.
    let both = UpdateStatement { multi: true, ..statement("{}", "{'$set': {'a': 'same'}}") };
    assert_eq!(update(&shop, "things", both).errors[0].error.code, Code::DuplicateKey);
}

#[test]
fn unique_indexes_are_not_built_over_duplicates() {
    let shop = shop();
    insert(&shop, "things", "[{'_id': 1, 'a': 1}, {'_id': 2, 'a': 1.0}, {'_id': 3}, {'_id': 4}]");
    let error =
        shop.create_indexes("things", &[spec("{'key': {'a': 1}, 'unique': true}")]).unwrap_err();
    assert_eq!(error.code, Code::DuplicateKey);
    assert!(error.details.is_some());
    assert_eq!(shop.list_indexes("things").expect("listed").len(), 1);
    delete(&shop, "things", "{'_id': 2}");
    let sparse = spec("{'key': {'a': 1}, 'unique': true, 'sparse': true}");
    shop.create_indexes("things", &[sparse]).expect("sparse: absent fields don't count");
    insert(&shop, "things", "[{'_id': 5}]");
    // A sparse index is not used where it would miss documents, unless it is hinted.
    assert_eq!(find(&shop, "things", "{'a': null}"), "[{'_id':3},{'_id':4},{'_id':5}]");
    assert_eq!(through(&shop, "a_1", "{}"), "[{'_id':1,'a':1}]");
}

#[test]
fn arrays_in_parallel_are_refused() {
    let shop = shop();
    shop.create_indexes("things", &[spec("{'key': {'a': 1, 'b': 1}}")]).expect("made");
    let report = try_insert(&shop, "things", &[json("{'_id': 1, 'a': [1, 2], 'b': [3, 4]}")]);
    assert_eq!(report.count, 0);
    assert_eq!(report.errors.len(), 1);
    assert_eq!(all(&shop, "things"), "[]");
}

/// Only the wildcard of a compound index may meet arrays.
#[test]
fn arrays_beside_a_wildcard_are_refused() {
    let shop = shop();
    let key = "{'key': {'a': 1, 'w.$**': 1, 'b.c': 1}, 'name': 'wild'}";
    shop.create_indexes("things", &[spec(key)]).expect("made");
    for (document, code) in [
        ("{'_id': 1, 'a': 1, 'w': [1, {'x': [2]}], 'b': {'c': 3}}", 0),
        ("{'_id': 2, 'a': [1], 'w': 1}", 7_246_301),
        ("{'_id': 3, 'a': [], 'w': 1}", 7_246_301),
        ("{'_id': 4, 'a': [1]}", 7_246_301),
        ("{'_id': 5, 'b': [{'c': 1}], 'w': [1]}", 7_246_301),
    ] {
        let report = try_insert(&shop, "things", &[json(document)]);
        let found = report.errors.first().map_or(0, |failed| failed.error.code.number());
        assert_eq!(found, code, "{document}");
    }
}
