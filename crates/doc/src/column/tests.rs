//! Columns that MongoDB made, as published in its tests and in questions about it; columns built
//! word by word; bytes of chance.

use crate::{DocumentBuf, DocumentBuilder, Value, document};

fn bytes(hex: &str) -> Vec<u8> {
    let digit = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).expect("hexadecimal");
    (0..hex.len()).step_by(2).map(digit).collect()
}

/// The values as a document's fields `v`, a missing one as `-`.
fn read_all(column: &[u8]) -> DocumentBuf {
    let mut read = DocumentBuilder::new();
    for value in super::read(column, 1 << 20).expect("a column") {
        match value {
            Some(value) => read.append_element(&value.named(b"v")),
            None => read.append("-", Value::Null),
        };
    }
    let read = read.build();
    DocumentBuf::validated(read.into_bytes()).expect("valid")
}

fn check(hex: &str, expected: &[Option<Value<'_>>]) {
    let mut wanted = DocumentBuilder::new();
    for value in expected {
        match value {
            Some(value) => wanted.append("v", *value),
            None => wanted.append("-", Value::Null),
        };
    }
    assert_eq!(read_all(&bytes(hex)), wanted.build(), "{hex}");
}

/// A control byte and words, each of one number (selector 14).
fn words(control: &str, numbers: &[u64]) -> String {
    let words = numbers.iter().map(|number| number << 4 | 14);
    let hex = |word: u64| word.to_le_bytes().map(|byte| format!("{byte:02x}")).concat();
    control.to_owned() + &words.map(hex).collect::<String>()
}

#[test]
fn columns_that_mongodb_made() {
    let id = |text: &str| Value::ObjectId(crate::ObjectId(bytes(text).try_into().expect("12")));
    let time = |millis| Some(Value::DateTime(millis));
    check(
        "0900188608148d010000800e0000000000000000",
        &[time(1_705_438_119_448), time(1_705_438_119_448)],
    );
    check(
        "01000000000000000000902e0000000000000000",
        &[Some(Value::Double(0.0)), Some(Value::Double(1.0))],
    );
    check(
        "070065a6eba7e6d2e848e08c3750802e0000000000000000",
        &[Some(id("65a6eba7e6d2e848e08c3750")), Some(id("65a6eba7e6d2e848e08c3751"))],
    );
    check(
        "0900e89732f18201000080fe7c00000000000000",
        &[time(1_661_904_001_000), time(1_661_904_000_000)],
    );
    check("02000b000000707265557067726164650000", &[Some(Value::String("preUpgrade"))]);
}

/// A bucket of 577 points, whose `control` has the least and the greatest time.
#[test]
fn a_column_of_many_times() {
    let column = "0900482bdc4181010000870a7d0000000000001f0000000000000004000000000000000a00000000d0f7\
        7c01000000000000001f0000000000000006000000000000000e0000000000000000";
    let read = read_all(&bytes(column));
    let times: Vec<i64> = read
        .iter()
        .map(|(_, time)| match time {
            Value::DateTime(time) => time,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(times.len(), 577);
    assert!(times.is_sorted());
    assert_eq!((times[0], times[576]), (1_654_667_357_000, 1_654_667_934_000));
}

#[test]
fn differences_of_each_type() {
    let number = |number| Some(Value::Int32(number));
    let integers = "100005000000".to_owned() + &words("82", &[4, 0, 5]);
    check(&(integers + "00"), &[number(5), number(7), number(7), number(4)]);
    let doubles = "0100000000000000f83f".to_owned() + &words("a1", &[2, 1]);
    let double = |double| Some(Value::Double(double));
    check(&(doubles + "00"), &[double(1.5), double(1.6), double(1.5)]);
    let bits = "0100000000000000f03f".to_owned() + &words("80", &[2]) + "00";
    check(&bits, &[double(1.0), double(f64::from_bits(1.0_f64.to_bits() + 1))]);
    let texts = "0200020000006100".to_owned() + &words("81", &[2, 3]) + "00";
    check(&texts, &[Some(Value::String("a")), Some(Value::String("b")), Some(Value::String("`"))]);
    let missing = "0a00".to_owned() + &words("81", &[(1 << 60) - 1, 0]) + "0800010a0000";
    check(
        &missing,
        &[
            Some(Value::Null),
            None,
            Some(Value::Null),
            Some(Value::Boolean(true)),
            Some(Value::Null),
        ],
    );
    let first_missing = words("80", &[(1 << 60) - 1]) + "100001000000" + "00";
    check(&first_missing, &[None, number(1)]);
    let nothing_to_repeat = words("80", &[0]) + "00";
    check(&nothing_to_repeat, &[None]);
}

#[test]
fn repeated_words_go_on_with_the_last_number() {
    let run = "10000100000080".to_owned() + "0f00000000000000";
    let same = run.clone() + "00";
    assert_eq!(read_all(&bytes(&same)).iter().count(), 121);
    let rising = "100001000000".to_owned() + &words("80", &[2]) + "800f0000000000000000";
    let read = read_all(&bytes(&rising));
    assert_eq!(read.iter().last(), Some(("v", Value::Int32(122))));
}

#[test]
fn objects_are_taken_apart() {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let inside = document! { "x": 5_i32, "y": "t" };
    let first = document! { "a": 1_i32, "o": &inside };
    let second = document! { "a": 2_i32, "o": &inside };
    let alone = document! { "a": 2_i32 };
    let none = (1_u64 << 60) - 1;
    // The fields' parts in the order in which they are needed: each of one word, then of one.
    let one = |number| words("80", &[number]);
    let objects = "f1".to_owned()
        + &hex(first.as_bytes())
        + &(one(0) + &one(0) + &one(0))
        + &(one(2) + &one(0) + &one(0))
        + &(one(0) + &one(none) + &one(none))
        + &(one(none) + &one(none) + &one(none))
        + "00"
        + "100007000000"
        + "00";
    check(
        &objects,
        &[
            Some(Value::from(&first)),
            Some(Value::from(&second)),
            Some(Value::from(&alone)),
            None,
            Some(Value::Int32(7)),
        ],
    );
    let again = "f0".to_owned() + &hex(alone.as_bytes()) + &one(0) + "00" + &one(0) + "00";
    check(&again, &[Some(Value::from(&alone)), Some(Value::from(&alone))]);
}

#[test]
fn malformed_columns_are_refused() {
    for hex in [
        "",
        "10",
        "100001",
        "100001000000",
        "1000010000000010",
        "80",
        "e0000000000000000000",
        "900e0000000000000000",
        "0a00802e0000000000000000",
        "f10500000000",
        "f1ffffffff",
        "14000000000000",
    ] {
        assert!(super::read(&bytes(hex), 1 << 20).is_err(), "{hex}");
    }
    // Few bytes that stand for many: repeated words behind a long text.
    let text = "x".repeat(1_000);
    let mut long = document! { "": text.as_str() }.as_bytes()[4..].to_vec();
    long.pop();
    long.push(0x80);
    long.extend_from_slice(&0xff_u64.to_le_bytes());
    long.push(0);
    assert!(super::read(&long, 1 << 20).is_err());
    assert_eq!(super::read(&long, 1 << 22).expect("a column").len(), 1_921);
}

#[test]
fn bytes_of_chance_end_in_an_answer() {
    let mut state = 1_u64;
    let mut random = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) as u8
    };
    let controls = [0x10, 0x09, 0x02, 0x05, 0x80, 0x81, 0x90, 0xf1, 0xf0, 0x00, 0x01, 0x08];
    for _ in 0..20_000 {
        let count = random() as usize % 60;
        let mut column: Vec<u8> = (0..count).map(|_| random() & random()).collect();
        for at in (0..count).step_by(9) {
            column[at] = controls[random() as usize % controls.len()];
        }
        let _ = super::read(&column, 1 << 16);
    }
}
