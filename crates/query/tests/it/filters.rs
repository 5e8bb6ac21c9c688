//! Filters pass just the documents that the naive matcher passes.

use frond_query::Filter;
use frond_testkit::random::for_seeds;

use crate::model;

#[test]
fn filters_match_as_the_model_does() {
    let (mut passed, mut asked) = (0, 0);
    for_seeds(6000, |mut random| {
        let filter = model::filter(&mut random, 3);
        let bson = filter.to_bson();
        let parsed = Filter::parse(bson.view()).unwrap_or_else(|error| panic!("{bson:?}: {error}"));
        for id in 0..8 {
            let document = model::document(&mut random, 3);
            let stored = model::to_bson(&document, id);
            let expected = filter.matches(&document);
            assert_eq!(parsed.matches(stored.view()), expected, "{bson:?} {stored:?}");
            passed += usize::from(expected);
            asked += 1;
        }
    });
    assert!(passed * 20 > asked || asked < 100, "too few documents pass: {passed} of {asked}");
}
