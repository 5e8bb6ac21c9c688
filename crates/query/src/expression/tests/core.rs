//! Paths, variables, literals, comparison, conditions.

use super::check;

#[test]
fn paths_fan_out_over_arrays_of_documents() {
    check(&[
        (r#""$i""#, "7"),
        (r#""$absent""#, "missing"),
        (r#""$o.y.z""#, r#""deep""#),
        (r#""$o.x.y""#, "missing"),
        (r#""$i.x""#, "missing"),
        (r#""$docs.b""#, "[1, [2, 3]]"),
        (r#""$docs.c.d""#, "[9]"),
        (r#""$a.b""#, "[]"),
        (r#""$a.0""#, "[]"),
        (r#""$many.b.c""#, "3"),
        (r#""$$ROOT.o.x""#, "1"),
        (r#""$$CURRENT.docs.b""#, "[1, [2, 3]]"),
        (r#""$""#, "!16872"),
        (r#""$a.""#, "!40353"),
        (r#""$a..b""#, "!15998"),
        (r#""$a.$b""#, "!16410"),
        (r#""$$""#, "!9"),
    ]);
}

#[test]
fn variables_are_bound_inside_out() {
    check(&[
        (r#""$$given""#, "42"),
        (r#""$$unbound""#, "!17276"),
        (r#""$$UNKNOWN""#, "!17276"),
        (r#""$$NOW""#, r#"{"$date": "1970-01-02T00:00:00Z"}"#),
        (r#""$$REMOVE""#, "missing"),
        (r#"{"$let": {"vars": {"x": "$i"}, "in": {"$add": ["$$x", 1]}}}"#, "8"),
        (
            r#"{"$let": {"vars": {"given": 1, "y": "$$given"}, "in": ["$$given", "$$y"]}}"#,
            "[1, 42]",
        ),
        (r#"{"$let": {"vars": {"x": "$o"}, "in": "$$x.y.z"}}"#, r#""deep""#),
        (r#"{"$let": {"vars": {"x": {"q": [{"r": 1}]}}, "in": "$$x.q.r"}}"#, "[1]"),
        (r#"{"$let": {"vars": {"CURRENT": "$o"}, "in": "$x"}}"#, "1"),
        (r#"{"$let": {"vars": {"x": "$absent"}, "in": "$$x"}}"#, "missing"),
        (r#"{"$let": {"vars": {"X": 1}, "in": 1}}"#, "!9"),
        (r#"{"$let": {"vars": {"x-y": 1}, "in": 1}}"#, "!9"),
        (r#"{"$let": {"in": 1}}"#, "!16876"),
        (r#"{"$let": {"vars": {}}}"#, "!16877"),
        (r#"{"$let": 1}"#, "!16874"),
        (r#"{"$let": {"vars": {}, "in": 1, "out": 2}}"#, "!16875"),
    ]);
}

#[test]
fn literals_documents_and_arrays_stand_for_themselves() {
    check(&[
        ("1", "1"),
        (r#""text""#, r#""text""#),
        (r#"{"$literal": "$i"}"#, r#""$i""#),
        (r#"{"$literal": {"$add": [1, 2]}}"#, r#"{"$add": [1, 2]}"#),
        ("{}", "{}"),
        (r#"{"p": "$i", "q": {"r": "$absent", "s": "$d"}}"#, r#"{"p": 7, "q": {"s": 2.5}}"#),
        (r#"["$i", "$absent", ["$s"]]"#, r#"[7, null, ["Straße"]]"#),
        (r#"{"a.b": 1}"#, "!16412"),
        (r#"{"a": 1, "$add": [1]}"#, "!16410"),
        (r#"{"$add": [1], "a": 1}"#, "!15983"),
        (r#"{"$nonsense": 1}"#, "!168"),
        (r#"{"$function": {}}"#, "!168"),
        (r#"{"$cmp": [1]}"#, "!16020"),
        (r#"{"$abs": [1, 2]}"#, "!16020"),
        (r#"{"$round": []}"#, "!28667"),
    ]);
}

#[test]
fn values_compare_across_types_and_missing_is_least() {
    check(&[
        (r#"{"$eq": [1, 1.0]}"#, "true"),
        (r#"{"$eq": [{"$numberDecimal": "1.0"}, {"$numberLong": "1"}]}"#, "true"),
        (r#"{"$eq": ["$n", null]}"#, "true"),
        (r#"{"$eq": ["$absent", null]}"#, "false"),
        (r#"{"$lt": ["$absent", null]}"#, "true"),
        (r#"{"$eq": ["$absent", "$other"]}"#, "true"),
        (r#"{"$gt": ["$absent", {"$minKey": 1}]}"#, "true"),
        (r#"{"$gt": ["a", 99]}"#, "true"),
        (r#"{"$lt": ["$nan", -1e300]}"#, "true"),
        (r#"{"$eq": ["$nan", "$nan"]}"#, "true"),
        (r#"{"$cmp": [[1, 2], [1, 3]]}"#, "-1"),
        (r#"{"$cmp": [2, 1]}"#, "1"),
        (r#"{"$cmp": [{"a": 1}, {"a": 1.0}]}"#, "0"),
        (r#"{"$gte": [2, 2]}"#, "true"),
        (r#"{"$lte": [3, 2]}"#, "false"),
        (r#"{"$ne": ["a", "b"]}"#, "true"),
    ]);
}

#[test]
fn conditions_evaluate_only_what_they_take() {
    check(&[
        (r#"{"$and": []}"#, "true"),
        (r#"{"$or": []}"#, "false"),
        (r#"{"$and": [1, "x", {}]}"#, "true"),
        (r#"{"$and": [0, {"$divide": [1, 0]}]}"#, "false"),
        (r#"{"$or": ["$absent", null, 0, "$t"]}"#, "true"),
        (r#"{"$or": [1, {"$divide": [1, 0]}]}"#, "true"),
        (r#"{"$not": ["$n"]}"#, "true"),
        (r#"{"$not": [""]}"#, "false"),
        (r#"{"$cond": [true, 1, {"$divide": [1, 0]}]}"#, "1"),
        (r#"{"$cond": {"if": "$absent", "then": 1, "else": "$$REMOVE"}}"#, "missing"),
        (r#"{"$cond": {"then": 1, "else": 2}}"#, "!17080"),
        (r#"{"$cond": {"if": 1, "else": 2}}"#, "!17081"),
        (r#"{"$cond": {"if": 1, "then": 2}}"#, "!17082"),
        (r#"{"$cond": {"if": 1, "then": 2, "else": 3, "or": 4}}"#, "!17083"),
        (r#"{"$cond": [1, 2]}"#, "!16020"),
        (r#"{"$ifNull": ["$absent", "$n", "$i"]}"#, "7"),
        (r#"{"$ifNull": ["$absent", "$other"]}"#, "missing"),
        (r#"{"$ifNull": ["$i"]}"#, "!1257300"),
        (r#"{"$switch": {"branches": [{"case": 0, "then": 1}, {"case": 1, "then": 2}]}}"#, "2"),
        (r#"{"$switch": {"branches": [{"case": 0, "then": 1}], "default": "d"}}"#, r#""d""#),
        (r#"{"$switch": {"branches": [{"case": 0, "then": 1}]}}"#, "!40066"),
        (r#"{"$switch": {"branches": []}}"#, "!40068"),
        (r#"{"$switch": {"branches": 1}}"#, "!40061"),
        (r#"{"$switch": {"branches": [1]}}"#, "!40062"),
        (r#"{"$switch": {"branches": [{"then": 1}]}}"#, "!40064"),
        (r#"{"$switch": {"branches": [{"case": 1}]}}"#, "!40065"),
        (r#"{"$switch": {"branches": [{"case": 1, "then": 1, "or": 1}]}}"#, "!40063"),
        (r#"{"$switch": {"other": 1}}"#, "!40067"),
        (r#"{"$switch": 1}"#, "!40060"),
    ]);
}

#[test]
fn random_numbers_lie_between_zero_and_one() {
    check(&[
        (r#"{"$lt": [{"$rand": {}}, 1]}"#, "true"),
        (r#"{"$gte": [{"$rand": {}}, 0]}"#, "true"),
        (r#"{"$rand": {"a": 1}}"#, "!3040501"),
    ]);
}
