//! Clients that shake hands badly, or not at all, or stop in the middle of something.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};

use frond_doc::document;
use frond_server::TlsMode;
use frond_server::wire::Message;
use frond_testkit::random::for_seeds;
use rustls::ClientConnection;

use super::{Secured, ping};
use crate::running::Running;
use crate::tls::certificates::TlsClient;

/// Returns the first message of a client.
fn client_hello(secured: &Secured) -> Vec<u8> {
    let name = "localhost".try_into().expect("a name");
    let mut client = ClientConnection::new(secured.client.clone(), name).expect("a client");
    let mut bytes = Vec::new();
    client.write_tls(&mut bytes).expect("it is memory");
    bytes
}

/// Sends bytes and nothing more; the server hangs up in the end.
fn send(mut stream: TcpStream, bytes: &[u8]) -> Vec<u8> {
    let _ = stream.write_all(bytes);
    let _ = stream.shutdown(Shutdown::Write);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    answer
}

#[test]
fn tls_to_a_plain_port_and_the_reverse_are_hung_up_on() {
    let secured = Secured::start(TlsMode::Required);
    let plain = Running::start();
    assert_eq!(send(plain.stream(), &client_hello(&secured)), b"");
    plain.check();
    for bytes in [ping(), b"GET / HTTP/1.1\r\n\r\n".to_vec(), vec![0; 1_000], vec![0x16; 1_000]] {
        let answer = send(secured.server.stream(), &bytes);
        // An alert, if anything.
        assert!(answer.is_empty() || answer[0] == 0x15, "{answer:?}");
    }
    assert!(secured.takes(&secured.client));
}

#[test]
fn half_a_handshake_holds_up_no_others() {
    for mode in [TlsMode::Required, TlsMode::Allowed] {
        let secured = Secured::start(mode);
        let hello = client_hello(&secured);
        let mut halves = Vec::new();
        for end in [0, 1, 2, 3, 4, 5, 6, hello.len() / 2, hello.len() - 1, hello.len()] {
            for _ in 0..20 {
                let mut stream = secured.server.stream();
                stream.write_all(&hello[..end]).expect("sends");
                halves.push(stream);
            }
            assert!(secured.takes(&secured.client));
        }
        // Cut off, too.
        for end in 0..hello.len() {
            send(secured.server.stream(), &hello[..end]);
        }
        assert!(secured.takes(&secured.client));
        // The server stops though they are there.
        drop(secured);
        drop(halves);
    }
}

#[test]
fn two_hundred_shake_hands_at_once() {
    let secured = Secured::start(TlsMode::Required);
    std::thread::scope(|scope| {
        for _ in 0..10 {
            scope.spawn(|| {
                let mut clients: Vec<TlsClient> = (0..20).map(|_| secured.client()).collect();
                // All have said hello before any is answered.
                for client in &mut clients {
                    let TlsClient(stream) = client;
                    stream.conn.write_tls(&mut stream.sock).expect("sends");
                }
                for client in &mut clients {
                    client.exchange(&ping()).expect("an answer");
                }
            });
        }
    });
}

#[test]
fn changed_records_do_no_harm() {
    let secured = Secured::start(TlsMode::Required);
    for_seeds(40, |mut random| {
        let mut client = secured.client();
        client.exchange(&ping()).expect("an answer");
        let mut records = Vec::new();
        client.0.conn.writer().write_all(&ping()).expect("it is memory");
        client.0.conn.write_tls(&mut records).expect("it is memory");
        for _ in 0..random.below(3) + 1 {
            let position = random.below(records.len());
            records[position] = random.next() as u8;
        }
        let stream = client.0.sock.try_clone().expect("a socket");
        drop(client);
        send(stream, &records);
        assert!(secured.takes(&secured.client));
    });
}

/// One that stops reading inside an answer of 16 MB, and goes on when others were served.
#[test]
fn an_answer_that_is_not_taken_waits_and_goes_on() {
    let secured = Secured::start(TlsMode::Required);
    let mut client = secured.client();
    let text = "x".repeat(15 << 20);
    let insert =
        format!(r#"{{"insert": "c", "documents": [{{"text": "{text}"}}], "$db": "test"}}"#);
    client.exchange(&Message::new(crate::running::json(&insert)).encode(1, 0)).expect("answers");
    let find = Message::new(document! { "find": "c", "$db": "test" }).encode(2, 0);
    let mut slow: Vec<TlsClient> = (0..5).map(|_| secured.client()).collect();
    for slow in &mut slow {
        slow.send(&find).expect("sends");
        slow.0.read_exact(&mut [0; 100_000]).expect("it begins");
    }
    for _ in 0..10 {
        client.exchange(&ping()).expect("an answer");
    }
    for slow in &mut slow[..3] {
        let mut rest = vec![0; (15 << 20) - 100_000];
        slow.0.read_exact(&mut rest).expect("it goes on");
        assert!(rest[..15 << 19].iter().all(|byte| *byte == b'x'));
    }
    // The others go, in the middle.
    drop(slow);
    client.exchange(&ping()).expect("an answer");
}

/// As many messages as a client likes while the server's answers pile up: it reads on only when
/// they are taken.
#[test]
fn a_client_that_only_writes_is_held_up() {
    let secured = Secured::start(TlsMode::Required);
    let mut client = secured.client();
    client.exchange(&ping()).expect("an answer");
    let (pings, count) = (ping().repeat(10), 200);
    for _ in 0..count {
        // All of it is 110 KB, which the system keeps on the way.
        client.send(&pings).expect("sends");
    }
    for _ in 0..count * 10 {
        client.read().expect("an answer");
    }
}
