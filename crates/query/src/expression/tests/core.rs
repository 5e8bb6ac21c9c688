//! Paths, variables, literals: what stands without an operator.

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
        (r#"["$$REMOVE"]"#, "[null]"),
        (r#""$$ROOT.i""#, "7"),
        (r#""$$USER_ROLES""#, "[]"),
        // There is no cluster here, no search and no `$redact`.
        (r#""$$CLUSTER_TIME""#, "!51144"),
        (r#""$$SEARCH_META""#, "!51144"),
        (r#""$$KEEP""#, "!17276"),
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
        (r#"{"": 1}"#, "!15998"),
        (r#"{"p": 1, "p": 2}"#, "!16406"),
        (r#"{"p": {"q": 1, "q": 2}}"#, "!16406"),
        (r#"{"a": 1, "$add": [1]}"#, "!16410"),
        (r#"{"$add": [1], "a": 1}"#, "!15983"),
        (r#"{"$nonsense": 1}"#, "!168"),
        (r#"{"$function": {}}"#, "!31261"),
        (
            r#"{"$_internalJsEmit": {"eval": "emit(this._id, n)", "this": "$$ROOT", "scope": {"n": 5}}}"#,
            r#"[{"k": {"$numberDouble": "1.0"}, "v": {"$numberDouble": "5.0"}}]"#,
        ),
        (r#"{"$_internalJsEmit": {"eval": "emit(1)", "this": "$$ROOT"}}"#, "!31220"),
        (r#"{"$_internalJsEmit": {"eval": "1", "this": 1}}"#, "!31225"),
        (r#"{"$cmp": [1]}"#, "!16020"),
        (r#"{"$abs": [1, 2]}"#, "!16020"),
        (r#"{"$round": []}"#, "!28667"),
    ]);
}
