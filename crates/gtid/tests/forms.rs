//! Texts as MySQL writes and reads them, and texts that must be refused.

#![allow(
    clippy::unwrap_used,
    reason = "a test stops where its picture is wrong"
)]

use gtid::{Expected, Gtid, GtidSet, Interval, NUMBER_MAX, ParseError, Tag, Uuid};

const A: &str = "3e11fa47-71ca-11e1-9e33-c80aa9429562";
const B: &str = "5a11fa47-71ca-11e1-9e33-c80aa9429562";

fn set(text: &str) -> GtidSet {
    text.replace('A', A).replace('B', B).parse().unwrap()
}

fn refusal(text: &str) -> ParseError {
    text.replace('A', A)
        .replace('B', B)
        .parse::<GtidSet>()
        .unwrap_err()
}

fn printed(text: &str) -> String {
    set(text).to_string().replace(A, "A").replace(B, "B")
}

#[test]
fn texts_are_printed_in_the_canonical_form() {
    for (given, canonical) in [
        ("", ""),
        (" \n\t", ""),
        (",,", ""),
        ("A:1", "A:1"),
        ("A:1-1", "A:1"),
        ("A:1-3:5", "A:1-3:5"),
        ("A:5:1-3", "A:1-3:5"),
        ("A:1-3:4-6", "A:1-6"),
        ("A:1-9:2-3", "A:1-9"),
        ("B:1,A:1", "A:1,B:1"),
        ("A:1-3,\nB:7", "A:1-3,B:7"),
        ("A:1,A:2,A:2-3", "A:1-3"),
        ("\n A : 1 - 3 : 5 ,\r\n B : 7 \n", "A:1-3:5,B:7"),
        // measured on 9.7.4: SET gtid_next='AUTOMATIC:blue' beside an untagged one
        ("A:1:blue:1-2", "A:1:blue:1-2"),
        ("A:1:blue:1-2:green:5", "A:1:blue:1-2:green:5"),
        ("A:green:5:blue:1-2:4", "A:blue:1-2:4:green:5"),
        ("A:blue:1,A:3", "A:3:blue:1"),
        ("A:GREEN_2:1", "A:green_2:1"),
        ("A:_:1", "A:_:1"),
        ("A:9223372036854775806", "A:9223372036854775806"),
        ("A:1-9223372036854775806:7", "A:1-9223372036854775806"),
    ] {
        assert_eq!(printed(given), canonical, "{given:?}");
    }
}

#[test]
fn uuids_are_read_in_any_case_and_printed_in_lower_case() {
    let upper: Uuid = A.to_uppercase().parse().unwrap();
    assert_eq!(upper.to_string(), A);
    assert_eq!(Uuid::from_bytes(*upper.as_bytes()), upper);
    assert_eq!(
        format!("{}:1", A.to_uppercase())
            .parse::<GtidSet>()
            .unwrap(),
        set("A:1")
    );
}

#[test]
fn a_server_per_line_is_how_the_server_prints() {
    assert_eq!(
        format!("{:#}", set("A:1,B:2:blue:1")),
        format!("{A}:1,\n{B}:2:blue:1")
    );
}

#[test]
fn wrong_texts_are_refused_with_the_place() {
    let colon_after = A.len();
    for (text, position, expected) in [
        ("x", 0, Expected::Uuid),
        ("A:1,", usize::MAX, Expected::End), // accepted: an empty item
        ("3e11fa47-71ca-11e1-9e33-c80aa942956", 35, Expected::Uuid),
        ("3e11fa4771ca11e19e33c80aa9429562:1", 8, Expected::Uuid),
        ("é3e11fa4-71ca-11e1-9e33-c80aa9429562:1", 0, Expected::Uuid),
        ("A", colon_after, Expected::Colon),
        ("A:", colon_after + 1, Expected::TagOrNumber),
        ("A:blue", colon_after + 5, Expected::Colon),
        ("A:blue:", colon_after + 6, Expected::Number),
        ("A:blue:green:1", colon_after + 6, Expected::Number),
        ("A:0", colon_after + 1, Expected::Number),
        ("A:-1", colon_after + 1, Expected::TagOrNumber),
        ("A:1-", colon_after + 3, Expected::Number),
        ("A:1--2", colon_after + 3, Expected::Number),
        ("A:5-3", colon_after + 1, Expected::OrderedInterval),
        ("A:9223372036854775807", colon_after + 1, Expected::Number),
        (
            "A:99999999999999999999999",
            colon_after + 1,
            Expected::Number,
        ),
        ("A:1 B:2", colon_after + 3, Expected::CommaOrEnd),
        ("A:1;", colon_after + 2, Expected::CommaOrEnd),
        ("A:1:grün:2", colon_after + 5, Expected::Colon),
        (
            "A:a234567890123456789012345678901234:1",
            colon_after + 33,
            Expected::Tag,
        ),
    ] {
        if position == usize::MAX {
            assert_eq!(printed(text), "A:1");
            continue;
        }
        assert_eq!(refusal(text), ParseError { position, expected }, "{text:?}");
    }
    assert_eq!(
        refusal("A:5-3").to_string(),
        "at byte 37: expected an interval that does not end before it starts"
    );
}

#[test]
fn one_transaction_is_read_and_printed() {
    let plain: Gtid = format!("{A}:7").parse().unwrap();
    assert_eq!(
        (
            plain.uuid().to_string().as_str(),
            plain.tag(),
            plain.number()
        ),
        (A, None, 7)
    );
    let tagged: Gtid = format!(" {A} : Blue : 7\n").parse().unwrap();
    assert_eq!(tagged.to_string(), format!("{A}:blue:7"));
    assert_eq!(tagged.tag(), Some(&"blue".parse::<Tag>().unwrap()));
    assert!(format!("{A}:7-8").parse::<Gtid>().is_err());
    assert!(format!("{A}:blue").parse::<Gtid>().is_err());
    assert_eq!(Gtid::new(plain.uuid(), None, 0), None);
    assert_eq!(Gtid::new(plain.uuid(), None, NUMBER_MAX + 1), None);
    assert!(set("A:7:blue:7").contains_gtid(&tagged));
    assert!(!set("A:7").contains_gtid(&tagged));
}

#[test]
fn tags_and_servers_are_told_apart() {
    let mixed = set("A:1-3:blue:1-2,B:1");
    let a: Uuid = A.parse().unwrap();
    assert_eq!(mixed.only(a), set("A:1-3:blue:1-2"));
    assert_eq!(
        mixed
            .uuids()
            .map(|uuid| uuid.to_string())
            .collect::<Vec<_>>(),
        [A, B]
    );
    assert!(mixed.has_tags());
    assert!(!set("A:1").has_tags());
    assert_eq!(set("A:1").partial_cmp(&set("A:blue:1")), None);
    assert!(set("A:1") < mixed);
    assert_eq!(mixed.count(), 6);
    assert_eq!(mixed.intervals().count(), 3);
}

#[test]
fn the_last_number_is_no_special_case() {
    let last = set("A:9223372036854775806");
    let all = set("A:1-9223372036854775806");
    assert_eq!(all.subtract(&last), set("A:1-9223372036854775805"));
    assert_eq!(set("A:1-9223372036854775805").union(&last), all);
    assert_eq!(all.subtract(&all), GtidSet::new());
    assert_eq!(Interval::new(1, NUMBER_MAX + 1), None);
    assert_eq!(Interval::new(2, 1), None);
}

#[test]
fn a_value_is_its_text_in_json() {
    let json = format!("\"{A}:1-3\"");
    let read: GtidSet = serde_json::from_str(&json).unwrap();
    assert_eq!(serde_json::to_string(&read).unwrap(), json);
    let refused = serde_json::from_str::<GtidSet>("\"A:1\"")
        .unwrap_err()
        .to_string();
    assert!(refused.contains("expected a uuid"), "{refused}");
    assert!(
        serde_json::from_str::<GtidSet>("null").is_err(),
        "absent is not empty"
    );
}
