//! Goal: a set is found by its name, and nothing in a name server's answer leads elsewhere or
//! causes a crash. Method: a name server of our own on loopback, by UDP and by TCP.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::thread;

use super::*;
use crate::backend::ServerUri;

const HEADER_BYTES: usize = 12;
const SERVICE: u16 = 33;
const TEXT: u16 = 16;

/// The records of a name server: a name, a kind, and the records' data.
type Zone = Vec<(&'static str, u16, Vec<Vec<u8>>)>;

fn encoded(name: &str) -> Vec<u8> {
    let labels =
        name.split('.').flat_map(|label| [&[label.len() as u8], label.as_bytes()].concat());
    labels.chain([0]).collect()
}

fn service(port: u16, name: &str) -> Vec<u8> {
    [&[0, 1, 0, 2][..], &port.to_be_bytes(), &encoded(name)].concat()
}

fn text(parts: &[&str]) -> Vec<u8> {
    parts.iter().flat_map(|part| [&[part.len() as u8], part.as_bytes()].concat()).collect()
}

fn answer(zone: &Zone, question: &[u8], is_cut: bool) -> Vec<u8> {
    let question_name = &question[HEADER_BYTES..question.len() - 4];
    let kind = u16::from_be_bytes([question[question.len() - 4], question[question.len() - 3]]);
    let is_known = zone.iter().any(|(name, ..)| encoded(name) == question_name);
    let found = zone.iter().find(|(name, of, _)| encoded(name) == question_name && *of == kind);
    let records: &[Vec<u8>] = match found {
        Some((.., records)) if !is_cut => records,
        _ => &[],
    };
    let mut answer = question.to_vec();
    answer[2] = 0x81 | if is_cut { 2 } else { 0 };
    answer[3] = if is_known { 0x80 } else { 0x83 };
    answer[7] = records.len() as u8;
    for data in records {
        // The record's name is the question's, by a pointer.
        answer.extend([0xc0, HEADER_BYTES as u8]);
        answer.extend(kind.to_be_bytes());
        answer.extend([0, 1, 0, 0, 0, 60]);
        answer.extend((data.len() as u16).to_be_bytes());
        answer.extend(data);
    }
    answer
}

/// A server of `zone`; with `is_cut` all that it answers by UDP is cut.
fn serve(zone: Zone, is_cut: bool) -> SocketAddr {
    // One number for both: that of the one may be taken for the other.
    let (socket, address, listener) = std::iter::repeat_with(|| {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        TcpListener::bind(address).ok().map(|listener| (socket, address, listener))
    })
    .flatten()
    .next()
    .unwrap();
    let of_stream = zone.clone();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut length = [0; 2];
            stream.read_exact(&mut length).unwrap();
            let mut question = vec![0; usize::from(u16::from_be_bytes(length))];
            stream.read_exact(&mut question).unwrap();
            let answer = answer(&of_stream, &question, false);
            stream.write_all(&(answer.len() as u16).to_be_bytes()).unwrap();
            stream.write_all(&answer).unwrap();
        }
    });
    thread::spawn(move || {
        let mut bytes = [0; 512];
        while let Ok((count, from)) = socket.recv_from(&mut bytes) {
            let _ = socket.send_to(&answer(&zone, &bytes[..count], is_cut), from);
        }
    });
    address
}

const MEMBERS: &str = "_mongodb._tcp.shop.example.org";

fn zone(members: &[(&str, u16)], texts: &[&[&str]]) -> Zone {
    let members = members.iter().map(|(name, port)| service(*port, name)).collect();
    let texts = texts.iter().map(|parts| text(parts)).collect();
    vec![(MEMBERS, SERVICE, members), ("shop.example.org", TEXT, texts)]
}

fn resolved(uri: &str, zone: Zone, is_cut: bool) -> Result<String, String> {
    let names = NameServers::at(&[serve(zone, is_cut)]);
    resolve(uri, &names).map_err(|failure| failure.to_string())
}

#[test]
fn members_and_options_are_those_that_the_names_give() {
    let members = [("a.example.org", 27017), ("b.db.example.org", 5)];
    let uri = "mongodb+srv://ada:se%40cret@shop.example.org/stock?tls=false&replicaSet=own";
    let parts: &[&str] = &["authSource=admin&", "replicaSet=rs"];
    for is_cut in [false, true] {
        let found = resolved(uri, zone(&members, &[parts]), is_cut).unwrap();
        let hosts = "a.example.org:27017,b.db.example.org:5";
        let options = "tls=true&authSource=admin&replicaSet=rs&tls=false&replicaSet=own";
        assert_eq!(found, format!("mongodb://ada:se%40cret@{hosts}/stock?{options}"));
    }
    let plain = resolved("mongodb+srv://shop.example.org", zone(&members[..1], &[]), false);
    assert_eq!(plain.as_deref(), Ok("mongodb://a.example.org:27017/?tls=true"));
    let server = ServerUri::parse(&plain.unwrap(), None).unwrap();
    assert_eq!(server.address, "a.example.org:27017");
    assert!(server.tls.is_some());
}

#[test]
fn a_name_server_leads_nowhere_else() {
    let member = [("a.example.org", 1)];
    for (members, texts, expected) in [
        (&[("a.example.com", 1)][..], &[][..], "another domain"),
        (&[("example.org", 1)], &[], "another domain"),
        (&[("notexample.org", 1)], &[], "another domain"),
        (&[], &[], "no members"),
        (&member, &[&["tls=false"][..]], "unknown option"),
        (&member, &[&["authSource=a"], &["authSource=b"]], "several TXT records"),
    ] {
        let uri = "mongodb+srv://ada:secret@shop.example.org/";
        let why = resolved(uri, zone(members, texts), false).unwrap_err();
        assert!(why.contains(expected) && !why.contains("secret"), "{why}");
    }
    let why = resolved("mongodb+srv://other.example.org", zone(&member, &[]), false).unwrap_err();
    assert!(why.contains("there is no name _mongodb._tcp.other.example.org"), "{why}");
    for uri in ["example.org", "a.example.org:1", "a.example.org,b.example.org", "..", ""] {
        resolved(&format!("mongodb+srv://{uri}/"), zone(&member, &[]), false).unwrap_err();
    }
}

/// Answers of any bytes are an error.
#[test]
fn answers_that_are_broken() {
    let whole = service(1, "a.example.org");
    let ring = [&whole[..6], &[0xc0, 200][..]].concat();
    let cut_off = whole[..9].to_vec();
    let reserved = [&whole[..6], &[0x80, 0][..]].concat();
    for data in [ring, cut_off, reserved, Vec::new()] {
        let zone = vec![(MEMBERS, SERVICE, vec![data])];
        let why = resolved("mongodb+srv://shop.example.org", zone, false).unwrap_err();
        assert!(why.contains("can't be read"), "{why}");
    }
}
