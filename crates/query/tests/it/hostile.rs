//! Goal: no filter, update, projection or pipeline, whatever stands in it, panics, recurses without
//! bound or keeps more than it may. Method: random ones over the grammar (real names of operators
//! and of their parameters, in places where they may and may not stand), with hostile values,
//! nested to the limit, over hostile documents. Their answers don't matter. FROND_SEED_TIMES makes
//! the run long.

use std::sync::Arc;

use frond_doc::document::DEPTH_MAX;
use frond_doc::{
    Array, Binary, Decimal128, DocumentBuf, DocumentBuilder, ObjectId, Regex, Timestamp, Value,
};
use frond_query::expression::Variables;
use frond_query::index::{IndexShape, ShapeOptions, TextOptions};
use frond_query::pipeline::{Pipeline, Resources};
use frond_query::update::UpdateContext;
use frond_query::{Code, Expression, Filter, Projection, SortPattern, Update};
use frond_testkit::Random;
use frond_testkit::random::{assert_met, for_seeds};

use crate::pipelines::{json, memory};

const EXPRESSIONS: &str = "$abs $acos $acosh $add $allElementsTrue $and $anyElementTrue $arrayElemAt \
    $arrayToObject $asin $asinh $atan $atan2 $atanh $avg $binarySize $bitAnd $bitNot $bitOr $bitXor $bsonSize $ceil \
    $cmp $concat $concatArrays $cond $const $convert $cos $cosh $dateAdd $dateDiff $dateFromParts $dateFromString \
    $dateSubtract $dateToParts $dateToString $dateTrunc $dayOfMonth $dayOfWeek $dayOfYear $degreesToRadians $divide \
    $eq $exp $filter $first $firstN $floor $getField $gt $gte $hour $ifNull $in $indexOfArray $indexOfBytes \
    $indexOfCP $isArray $isNumber $isoDayOfWeek $isoWeek $isoWeekYear $last $lastN $let $literal $ln $log $log10 \
    $lt $lte $ltrim $map $max $maxN $median $mergeObjects $meta $millisecond $min $minN $minute $mod $month $multiply $ne \
    $not $objectToArray $or $percentile $pow $radiansToDegrees $rand $range $reduce $regexFind $regexFindAll $regexMatch \
    $replaceAll $replaceOne $reverseArray $round $rtrim $second $setDifference $setEquals $setField \
    $setIntersection $setIsSubset $setUnion $sin $sinh $size $slice $sortArray $split $sqrt $stdDevPop $stdDevSamp \
    $strLenBytes $strLenCP $strcasecmp $substr $substrBytes $substrCP $subtract $sum $switch $tan $tanh $toBool \
    $toDate $toDecimal $toDouble $toHashedIndexKey $toInt $toLong $toLower $toObjectId $toString $toUUID $toUpper \
    $trim $trunc $tsIncrement $tsSecond $type $unsetField $week $year $zip";
const ACCUMULATORS: &str = "$addToSet $avg $bottom $bottomN $count $covariancePop $covarianceSamp $first $firstN \
    $last $lastN $max $maxN $median $mergeObjects $min $minN $percentile $push $stdDevPop $stdDevSamp $sum $top \
    $topN $rank $denseRank $documentNumber $shift $derivative $integral $expMovingAvg $linearFill $locf";
const STAGES: &str = "$addFields $bucket $bucketAuto $count $densify $documents $facet $fill $graphLookup $group \
    $limit $lookup $match $project $redact $replaceRoot $replaceWith $sample $set $setWindowFields $skip $sort \
    $sortByCount $unionWith $unset $unwind";
const FILTERS: &str = "$all $and $bitsAllClear $bitsAllSet $bitsAnyClear $bitsAnySet $elemMatch $eq $exists $expr \
    $geoIntersects $geoWithin $gt $gte $in $jsonSchema $lt $lte $maxDistance $mod $ne $near $nearSphere $nin $nor \
    $not $options $or $regex $sampleRate $search $size $text $type";
const UPDATES: &str = "$addToSet $bit $currentDate $inc $max $min $mul $pop $pull $pullAll $push $rename $set \
    $setOnInsert $unset $each $position $slice $sort";
/// Parameters of operators and stages.
const PARAMETERS: &str = "input in as cond vars initialValue date unit amount startDate endDate format timezone \
    onNull onError to n sortBy output chars find replacement regex options field value by _id partitionBy \
    partitionByFields range step bounds documents window path preserveNullAndEmptyArrays includeArrayIndex from let \
    pipeline localField foreignField startWith connectFromField connectToField maxDepth depthField coll groupBy \
    boundaries default buckets granularity newRoot size method p alpha N if then else branches case defaults inputs \
    useLongestLength binSize startOfWeek year month day hour type required properties items coordinates near key \
    $search $language $caseSensitive $geometry $box $center $centerSphere $polygon";
const PATHS: [&str; 14] = [
    "a",
    "b",
    "a.b",
    "a.0",
    "a.b.c",
    "_id",
    "x.y",
    "a.$[]",
    "a.$",
    "",
    ".",
    "a..b",
    "$a",
    "a.b.c.d.e.f",
];

/// Makes requests.
struct Maker<'r> {
    random: &'r mut Random,
    /// The number of values that may still be made: what is nested isn't wide, too.
    left: usize,
}

impl Maker<'_> {
    fn word(&mut self, words: &'static str) -> &'static str {
        let count = words.split_whitespace().count();
        words.split_whitespace().nth(self.random.below(count)).unwrap_or("$add")
    }

    fn number(&mut self, builder: &mut DocumentBuilder, name: &str) {
        let hostile = self.random.one_in(6);
        let value = match self.random.below(4) {
            0 if hostile => Value::Int32(*self.random.choose(&[i32::MIN, i32::MAX, -1])),
            1 if hostile => Value::Int64(*self.random.choose(&[i64::MIN, i64::MAX, 1 << 53, -1])),
            2 if hostile => {
                let odd = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 1e308, 5e-324, 0.1];
                Value::Double(*self.random.choose(&odd))
            }
            3 if hostile => {
                let bytes: [u8; 16] = self.random.bytes(16).try_into().expect("sixteen");
                Value::Decimal128(Decimal128(bytes))
            }
            0 => Value::Double(self.random.below(90) as f64 / 8.0 - 3.0),
            1 => Value::Int64(self.random.below(9) as i64 - 2),
            _ => Value::Int32(self.random.below(20) as i32 - 3),
        };
        builder.append(name, value);
    }

    fn text(&mut self, builder: &mut DocumentBuilder, name: &str) {
        let long = "ab\u{e9}\u{1f600}".repeat(self.random.below(400));
        let odd = [
            "",
            "a",
            "$",
            "$$",
            "$a",
            "$$ROOT",
            "$$this",
            "$$CURRENT.a",
            "$$REMOVE",
            "unbounded",
            "current",
            "full",
            "day",
            "month",
            "%Y-%m-%d",
            "%",
            "Europe/Berlin",
            "+25:99",
            "2024-02-30",
            "9999999999999",
            "(a+)+$",
            "((((((",
            "[",
            "a{1000}{1000}",
            "\u{0}",
            "\u{10ffff}",
            "linear",
            "approximate",
            "object",
            "Polygon",
            "Point",
            "sortKey",
            "randVal",
            "running -\"the cats",
            "\"a b\" -c",
            "da\u{308}mlich\u{200d}l'eau",
        ];
        let text = if self.random.one_in(20) { &long[..] } else { *self.random.choose(&odd) };
        builder.append(name, Value::String(text));
    }

    fn scalar(&mut self, builder: &mut DocumentBuilder, name: &str) {
        match self.random.below(14) {
            0..=4 => self.number(builder, name),
            5..=8 => self.text(builder, name),
            9 => {
                let path = format!("${}", self.random.choose(&PATHS));
                builder.append(name, Value::String(&path));
            }
            10 => {
                let date = *self.random.choose(&[
                    0,
                    i64::MIN,
                    i64::MAX,
                    -62_135_596_800_001,
                    1_700_000_000_000,
                ]);
                builder.append(name, Value::DateTime(date));
            }
            11 => {
                let odd = [
                    Value::Null,
                    Value::Undefined,
                    Value::MinKey,
                    Value::MaxKey,
                    Value::Boolean(true),
                    Value::Boolean(false),
                    Value::ObjectId(ObjectId([7; 12])),
                    Value::Timestamp(Timestamp(u64::MAX)),
                    Value::JavaScript("x"),
                    Value::Symbol("s"),
                ];
                builder.append(name, *self.random.choose(&odd));
            }
            12 => {
                let pattern = *self.random.choose(&["a", "(", "(?<n>a)\\k<n>", "^(a|aa)+$", ""]);
                let options = *self.random.choose(&["", "i", "imsx"]);
                builder.append(name, Value::Regex(Regex { pattern, options }));
            }
            _ => {
                let bytes = self.random.bytes(16);
                builder.append(name, Value::Binary(Binary { subtype: 4, bytes: &bytes }));
            }
        }
    }

    /// A value in which operators of `family` stand, and those that stand in any of them.
    fn value(
        &mut self,
        builder: &mut DocumentBuilder,
        name: &str,
        family: &'static str,
        depth: usize,
    ) {
        self.left = self.left.saturating_sub(1);
        if depth == 0 || self.left == 0 {
            return self.scalar(builder, name);
        }
        match self.random.below(10) {
            0..=2 => self.scalar(builder, name),
            3 => {
                builder.begin_array(name);
                for position in 0..self.random.below(4) {
                    self.value(builder, &position.to_string(), family, depth - 1);
                }
                builder.end();
            }
            4 | 5 => {
                builder.begin_document(name);
                for _ in 0..1 + self.random.below(4) {
                    let name = match self.random.below(3) {
                        0 => *self.random.choose(&PATHS),
                        _ => self.word(PARAMETERS),
                    };
                    self.value(builder, name, family, depth - 1);
                }
                builder.end();
            }
            _ => {
                let families = [EXPRESSIONS, family, family, family];
                let inner = *self.random.choose(&families);
                builder.begin_document(name);
                let operator = self.word(inner);
                self.value(builder, operator, inner, depth - 1);
                builder.end();
            }
        }
    }

    /// The same operator in itself, as deep as a document may be.
    fn nest(&mut self, builder: &mut DocumentBuilder, name: &str, family: &'static str) {
        let operator = self.word(family);
        let is_list = self.random.one_in(2);
        let depth = 20 + self.random.below(DEPTH_MAX - 40);
        builder.begin_document(name);
        let mut open = 1;
        while open + 2 < depth {
            if is_list {
                builder.begin_array(operator).push_begin_document();
                open += 2;
            } else {
                builder.begin_document(operator);
                open += 1;
            }
        }
        self.scalar(builder, operator);
        for _ in 0..open {
            builder.end();
        }
    }

    fn request(&mut self, builder: &mut DocumentBuilder, name: &str, family: &'static str) {
        match self.random.below(12) {
            0 => self.nest(builder, name, family),
            _ => {
                let depth = 1 + self.random.below(6);
                self.value(builder, name, family, depth);
            }
        }
    }

    fn stage(&mut self, builder: &mut DocumentBuilder) {
        let stage = self.word(STAGES);
        builder.push_begin_document();
        match stage {
            "$match" => self.request(builder, stage, FILTERS),
            "$group" | "$bucket" | "$bucketAuto" | "$setWindowFields" => {
                builder.begin_document(stage);
                let key = *self.random.choose(&["_id", "groupBy", "partitionBy"]);
                self.value(builder, key, EXPRESSIONS, 2);
                if stage != "$group" {
                    builder.begin_document("sortBy").append("a", Value::Int32(1)).end();
                    builder.begin_document("output");
                }
                for field in ["x", "y"] {
                    builder.begin_document(field);
                    let accumulator = self.word(ACCUMULATORS);
                    self.value(builder, accumulator, EXPRESSIONS, 3);
                    match self.random.below(6) {
                        0 => self.value(builder, "window", EXPRESSIONS, 2),
                        1 | 2 => self.window(builder),
                        _ => {}
                    }
                    builder.end();
                }
                if stage != "$group" {
                    builder.end();
                }
                builder.end();
            }
            "$sort" | "$limit" | "$skip" | "$unwind" | "$count" => {
                self.value(builder, stage, EXPRESSIONS, 1);
            }
            _ => self.request(builder, stage, EXPRESSIONS),
        }
        builder.end();
    }

    /// A window that is right but for its numbers.
    fn window(&mut self, builder: &mut DocumentBuilder) {
        builder.begin_document("window");
        let kind = *self.random.choose(&["range", "documents"]);
        builder.begin_array(kind);
        for position in ["0", "1"] {
            match self.random.below(5) {
                0 => {
                    builder.append(position, Value::String("unbounded"));
                }
                1 => {
                    builder.append(position, Value::String("current"));
                }
                _ => self.number(builder, position),
            }
        }
        builder.end();
        if kind == "range" && self.random.one_in(3) {
            let unit = *self.random.choose(&["millisecond", "day", "month", "year"]);
            builder.append("unit", Value::String(unit));
        }
        builder.end();
    }

    fn document(&mut self) -> DocumentBuf {
        let mut builder = DocumentBuilder::new();
        for name in ["_id", "a", "b", "x"] {
            self.left = 12;
            match self.random.below(8) {
                0 => {}
                1 => self.nest(&mut builder, name, PARAMETERS),
                _ => self.value(&mut builder, name, PARAMETERS, 3),
            }
        }
        builder.build()
    }
}

/// A value of its own.
fn made(
    random: &mut Random,
    make: impl FnOnce(&mut Maker<'_>, &mut DocumentBuilder),
) -> DocumentBuf {
    let mut builder = DocumentBuilder::new();
    make(&mut Maker { random, left: 60 }, &mut builder);
    builder.build()
}

fn documents(random: &mut Random) -> Vec<DocumentBuf> {
    (0..4).map(|_| Maker { random: &mut *random, left: 12 }.document()).collect()
}

#[test]
fn pipelines() {
    let mut ran = 0;
    for_seeds(1_000, |mut random| {
        let wrapped = made(&mut random, |maker, builder| {
            builder.begin_array("stages");
            for _ in 0..1 + maker.random.below(3) {
                maker.stage(builder);
            }
            builder.end();
        });
        let stages = wrapped.get("stages").and_then(|value| value.as_array());
        let Ok(pipeline) =
            Pipeline::parse(stages.unwrap_or(Array::from_validated(&[5, 0, 0, 0, 0])))
        else {
            return;
        };
        ran += 1;
        let collections = memory();
        collections.limit(Resources { memory_bytes_max: 1 << 20, ..Resources::default() });
        let input = documents(&mut random);
        collections.set("a", input.clone());
        let input = Box::new(input.into_iter().map(Ok));
        if let Ok(found) = pipeline.run(input, Variables::default(), Arc::clone(&collections) as _)
        {
            found.take(2_000).take_while(Result::is_ok).for_each(drop);
        }
    });
    assert_met("pipelines that are right", ran, 1);
}

#[test]
fn filters_and_expressions() {
    for_seeds(1_500, |mut random| {
        let input = documents(&mut random);
        let wrapped = made(&mut random, |maker, builder| {
            maker.request(builder, "filter", FILTERS);
            maker.request(builder, "expression", EXPRESSIONS);
            maker.request(builder, "projection", EXPRESSIONS);
        });
        let part = |name| wrapped.get(name).and_then(|value| value.as_document());
        let filter = part("filter").and_then(|filter| Filter::parse(filter).ok());
        let expression = wrapped.get("expression").and_then(|value| Expression::parse(value).ok());
        let projection =
            part("projection").and_then(|projection| Projection::parse(projection).ok());
        let sort = part("projection").and_then(|sort| SortPattern::parse(sort).ok());
        for document in &input {
            if let Some(filter) = &filter {
                let _ = filter.try_matches(document.view());
                let _ = filter.matches_position(document.view());
                let _ = filter.failure_details(document.view());
            }
            if let Some(expression) = &expression {
                let _ = expression.evaluate(document.view(), &Variables::default());
            }
            if let Some(projection) = &projection {
                let _ = projection.apply(document.view(), &Filter::all());
            }
            if let Some(sort) = &sort {
                let _ = sort.key(document.view());
            }
        }
    });
}

/// The keys that indexes have for hostile documents, and the documents found by text.
#[test]
fn keys_and_searches() {
    let shape = |key: &str| {
        let key = json(key);
        let weights = json(r#"{"a": 1, "a.b": 7, "$**": 1}"#);
        let options = ShapeOptions {
            text: Some(TextOptions {
                weights: weights.view(),
                default_language: "english",
                language_override: "x",
            }),
            ..ShapeOptions::default()
        };
        let has_text = key.get("_fts").is_some();
        let options = if has_text { options } else { ShapeOptions::default() };
        IndexShape::parse(key.view(), options).expect("a key")
    };
    let shapes = [
        r#"{"a": "2d", "b": 1}"#,
        r#"{"a": "2dsphere", "b": -1}"#,
        r#"{"b": 1, "_fts": "text", "_ftsx": 1, "x": -1}"#,
        r#"{"a.$**": 1}"#,
        r#"{"a": "hashed", "b": 1}"#,
        r#"{"a": 1, "a.b": -1, "x": 1}"#,
    ]
    .map(shape);
    for_seeds(600, |mut random| {
        let input = documents(&mut random);
        let wrapped = made(&mut random, |maker, builder| {
            builder.begin_document("filter").begin_document("$text");
            maker.text(builder, "$search");
            maker.value(builder, "$language", FILTERS, 1);
            builder.end().end();
        });
        let filter = wrapped.get("filter").and_then(|filter| filter.as_document());
        let filter = filter.and_then(|filter| Filter::parse_search(filter).ok());
        let spec = shapes[2].text().expect("its texts");
        let matcher = filter
            .as_ref()
            .and_then(|filter| filter.text())
            .and_then(|(search, _)| frond_query::search::TextMatcher::new(search, spec).ok());
        for document in &input {
            for shape in &shapes {
                if let Ok(found) = shape.keys(document.view()) {
                    assert!(found.keys.is_sorted_by(|left, right| left.key < right.key));
                }
            }
            if let (Some(filter), Some(matcher)) = (&filter, &matcher) {
                filter.clone().with_text(matcher.clone()).matches(document.view());
                assert!(matcher.score(document.view()) >= 0.0);
            }
        }
    });
}

#[test]
fn updates() {
    let context = UpdateContext { now_millis: 1, timestamp: 2, position: Some(0) };
    for_seeds(1_500, |mut random| {
        let input = documents(&mut random);
        let wrapped = made(&mut random, |maker, builder| {
            builder.begin_document("update");
            for _ in 0..1 + maker.random.below(2) {
                let operator = maker.word(UPDATES);
                builder.begin_document(operator);
                for path in ["a", "b", "a.b", "a.0", "a.$[]", "a.$[x].b", "a.$", "_id", "x.y.z"] {
                    if maker.random.one_in(4) {
                        maker.value(builder, path, UPDATES, 3);
                    }
                }
                builder.end();
            }
            builder.end().begin_array("filters").push_begin_document();
            maker.value(builder, "x", FILTERS, 2);
            builder.end().end();
        });
        let Some(update) = wrapped.get("update") else { return };
        let filters = wrapped.get("filters").and_then(|filters| filters.as_array());
        for filters in [None, filters] {
            let Ok(update) = Update::parse(update, filters) else { continue };
            for document in &input {
                if let Ok(Some(after)) = update.apply(document.view(), &context) {
                    DocumentBuf::validated(after.into_bytes()).expect("an update makes BSON");
                }
            }
        }
    });
}

/// Found by `updates`: a string may hold what a field's name can't.
#[test]
fn a_field_is_not_renamed_to_a_name_with_a_nul() {
    let mut update = DocumentBuilder::new();
    update.begin_document("$rename").append("a", Value::String("b\0c")).end();
    let error = Update::parse(Value::from(&update.build()), None).unwrap_err();
    assert_eq!(error.code, Code::BadValue);
}
