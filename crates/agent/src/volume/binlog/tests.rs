//! Files made of bytes, and bytes that mysqld wrote.

use std::io::Cursor;

use proptest::prelude::*;

use super::*;

const SOURCE: [u8; 16] = [0x11; 16];

fn event(kind: u8, flags: u8, body: &[u8]) -> Vec<u8> {
    let size = u32::try_from(HEADER + body.len()).unwrap();
    let mut bytes = vec![0; 4];
    bytes.push(kind);
    bytes.extend(1_u32.to_le_bytes());
    bytes.extend(size.to_le_bytes());
    bytes.extend(0_u32.to_le_bytes());
    bytes.extend([flags, 0]);
    bytes.extend(body);
    bytes
}

fn gtid(number: u64) -> Vec<u8> {
    let mut body = vec![0];
    body.extend(SOURCE);
    body.extend(number.to_le_bytes());
    body.extend([0; 17]);
    event(kind::GTID, 0, &body)
}

fn query(text: &str) -> Vec<u8> {
    let mut body = vec![0; 8];
    body.extend([4, 0, 0, 3, 0]);
    body.extend([0; 3]);
    body.extend(b"shop\0");
    body.extend(text.as_bytes());
    body.extend([0xaa; 4]);
    event(kind::QUERY, 0, &body)
}

fn file(in_use: bool, events: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend(event(kind::FORMAT_DESCRIPTION, u8::from(in_use), &[0; 80]));
    bytes.extend(events.concat());
    bytes
}

fn scan(bytes: &[u8]) -> Scan {
    Scan::of(Cursor::new(bytes)).unwrap()
}

fn set(text: &str) -> GtidSet {
    text.parse().unwrap()
}

/// A row transaction, a compressed one, a DDL, an XA one.
fn four() -> Vec<Vec<u8>> {
    vec![
        gtid(1),
        query("BEGIN"),
        event(19, 0, b"table map"),
        event(kind::XID, 0, &[0; 12]),
        gtid(2),
        event(kind::TRANSACTION_PAYLOAD, 0, &[0; 100]),
        gtid(3),
        query("CREATE TABLE t (id INT)"),
        gtid(4),
        query("XA START X'78',X'',1"),
        query("XA END X'78',X'',1"),
        event(kind::XA_PREPARE, 0, &[0; 16]),
    ]
}

#[test]
fn every_kind_of_transaction_counts_once_it_is_complete() {
    let bytes = file(true, &four());
    let scan = scan(&bytes);
    assert_eq!(scan.gtids, set("11111111-1111-1111-1111-111111111111:1-4"));
    assert!(scan.in_use && !scan.stopped);
    assert_eq!(scan.complete, bytes.len() as u64);
}

#[test]
fn a_clean_end_shows_and_an_encrypted_file_proves_nothing() {
    let stopped = scan(&file(false, &[event(kind::STOP, 0, &[])]));
    assert!(stopped.stopped && !stopped.in_use);
    assert!(matches!(
        Scan::of(Cursor::new(MAGIC_ENCRYPTED)),
        Err(BinlogError::Encrypted)
    ));
    assert!(matches!(
        Scan::of(Cursor::new(b"ABCD")),
        Err(BinlogError::NotABinlog)
    ));
    assert_eq!(scan(b""), Scan::default(), "created this moment");
}

#[test]
fn a_torn_transaction_does_not_count_and_is_read_on_when_its_rest_comes() {
    let bytes = file(true, &four());
    let before_xid = MAGIC.len() + HEADER + 80 + four()[..3].concat().len();
    let mut scan = scan(&bytes[..before_xid + 5]);
    assert!(scan.gtids.is_empty());
    assert_eq!(scan.complete, (MAGIC.len() + HEADER + 80) as u64);
    scan.go_on(Cursor::new(&bytes)).unwrap();
    assert_eq!(scan, self::scan(&bytes));
}

#[test]
fn a_rotation_of_the_source_inside_a_torn_transaction_rolls_it_back() {
    let relay = file(
        false,
        &[gtid(1), query("BEGIN"), event(kind::ROTATE, 0, &[0; 20])],
    );
    assert!(scan(&relay).gtids.is_empty());
}

#[test]
fn previous_gtids_are_read_with_and_without_tags() {
    let mut plain = 1_u64.to_le_bytes().to_vec();
    plain.extend(SOURCE);
    plain.extend(1_u64.to_le_bytes());
    plain.extend([1_u64.to_le_bytes(), 6_u64.to_le_bytes()].concat());
    let found = scan(&file(true, &[event(kind::PREVIOUS_GTIDS, 0, &plain)]));
    assert_eq!(
        found.previous,
        set("11111111-1111-1111-1111-111111111111:1-5")
    );

    let mut tagged = (1_u64 << 56 | 1 << 8 | 1).to_le_bytes().to_vec();
    tagged.extend(SOURCE);
    tagged.extend([4 << 1]);
    tagged.extend(b"blue");
    tagged.extend(1_u64.to_le_bytes());
    tagged.extend([1_u64.to_le_bytes(), 3_u64.to_le_bytes()].concat());
    let found = scan(&file(true, &[event(kind::PREVIOUS_GTIDS, 0, &tagged)]));
    assert_eq!(
        found.previous,
        set("11111111-1111-1111-1111-111111111111:blue:1-2")
    );
}

/// Written by mysqld 9.7.4 for `gtid_next='AUTOMATIC:blue'`.
const TAGGED: &str = "8bdc0d6b2a01000000510000005300000000\
     00027400000202a90291035503f2b103f10322c503b1025604f1030000000204080608626c75650808\
     0a0c0c7fe4047f4284610610d1021283120bf2f3c699";
/// The Previous_gtids of the file after it.
const TAGGED_PREVIOUS: &str = "8bdc0d6b230100000075000000f400000080000102000000000001aae4d579\
     ecfc11f1ac2b02fc0000000100010000000000000001000000000000000200000000000000aae4d579ecfc11f1\
     ac2b02fc0000000108626c7565010000000000000001000000000000000300000000000000fe7c2eb4";

fn bytes_of(hex: &str) -> Vec<u8> {
    let digits = hex.as_bytes().chunks(2);
    digits
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

#[test]
fn tagged_gtids_are_read_as_the_server_writes_them() {
    let events = [
        bytes_of(TAGGED_PREVIOUS),
        bytes_of(TAGGED),
        query("CREATE DATABASE f"),
    ];
    let found = scan(&file(true, &events));
    let uuid = "aae4d579-ecfc-11f1-ac2b-02fc00000001";
    assert_eq!(found.previous, set(&format!("{uuid}:1:blue:1-2")));
    assert_eq!(found.gtids, set(&format!("{uuid}:blue:2")));
}

#[test]
fn going_on_sees_a_flag_that_was_cleared_and_a_file_that_was_cut() {
    let mut scan = scan(&file(true, &four()));
    let mut ended = four();
    ended.push(event(kind::STOP, 0, &[]));
    scan.go_on(Cursor::new(file(false, &ended))).unwrap();
    assert!(!scan.in_use && scan.stopped);
    let cut = file(true, &four()[..6]);
    scan.go_on(Cursor::new(&cut)).unwrap();
    assert_eq!(scan, self::scan(&cut));
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        let mut file = MAGIC.to_vec();
        file.extend(bytes);
        let _ = Scan::of(Cursor::new(&file));
    }

    #[test]
    fn any_cut_reads_a_prefix_and_going_on_reads_the_rest(cut in 0_usize..1000) {
        let bytes = file(true, &four());
        let cut = cut.min(bytes.len());
        let mut part = scan(&bytes[..cut]);
        prop_assert!(scan(&bytes).gtids.contains(&part.gtids));
        part.go_on(Cursor::new(&bytes)).unwrap();
        prop_assert_eq!(part, scan(&bytes));
    }

    #[test]
    fn damaged_bytes_never_panic(at in 4_usize..700, value in any::<u8>()) {
        let mut bytes = file(true, &four());
        let at = at.min(bytes.len() - 1);
        bytes[at] = value;
        let _ = Scan::of(Cursor::new(&bytes));
    }
}
