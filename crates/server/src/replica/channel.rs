//! A secured stream between two members, both of which know the cluster key.
//!
//! 1. Each side sends [`MAGIC`] and the public half of an X25519 key that is drawn for this stream
//!    alone. Clients' messages begin with a length that is smaller than the magic is as a number,
//!    so members come to the address that clients come to.
//! 2. HKDF-SHA256 makes two keys, one for each direction, of the cluster key (the salt), the secret
//!    that both have agreed on, and both public halves. A peer that doesn't know the cluster key
//!    has other keys: the first box that it sends doesn't open.
//! 3. From then on boxes are sent: a length of four bytes, and so many bytes by ChaCha20-Poly1305,
//!    whose nonce counts the boxes of the direction and whose length is authenticated with it.
//!
//! So what passes can't be read, changed, left out or repeated by others, and not be read later
//! with the cluster key either. The pattern is that of Noise's NNpsk0.

use std::io::{self, BufReader, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::agreement::{EphemeralPrivateKey, UnparsedPublicKey, X25519, agree_ephemeral};
use ring::hkdf::{HKDF_SHA256, Salt};
use ring::rand::SystemRandom;
use rustix::net::{SendFlags, send};

use super::key::ClusterKey;

/// The first bytes that a member sends.
pub const MAGIC: [u8; 8] = *b"FRNDSET\x01";
/// The system sends the first packet again after a second: a call after that comes sooner.
const CONNECT_WAIT_MAX: Duration = Duration::from_secs(1);
const PUBLIC_BYTES: usize = 32;
const LENGTH_BYTES: usize = size_of::<u32>();
/// As `connection::socket` sends: it doesn't block, and raises no signal.
#[cfg(target_os = "linux")]
const SEND_NOW: SendFlags = SendFlags::DONTWAIT.union(SendFlags::NOSIGNAL);
#[cfg(not(target_os = "linux"))]
const SEND_NOW: SendFlags = SendFlags::DONTWAIT;
/// Of a stream so many bytes are read at once, where more has come than is asked for: a short box
/// costs one call, and a long one goes where it is to be.
const READ_BYTES: usize = 16 << 10;
/// Boxes of a side that has proved nothing yet are no longer.
pub const FIRST_BOX_BYTES_MAX: usize = 64 << 10;

/// The side of a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// The member that connected.
    Caller,
    /// The member that was connected to.
    Called,
}

/// The sending half of one side.
pub struct Sender {
    stream: TcpStream,
    cipher: Cipher,
    /// The end of a box for which there was no room at once.
    unsent: Vec<u8>,
}

/// The receiving half.
pub struct Receiver {
    stream: BufReader<TcpStream>,
    cipher: Cipher,
    /// The size above which boxes are refused.
    pub box_bytes_max: usize,
}

struct Cipher {
    key: LessSafeKey,
    count: u64,
}

/// Connects to a member.
///
/// # Errors
/// An error of the socket.
pub fn connect(address: &str) -> io::Result<TcpStream> {
    let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for resolved in address.to_socket_addrs()? {
        match TcpStream::connect_timeout(&resolved, CONNECT_WAIT_MAX) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Secures a stream.
///
/// # Errors
/// An error of the socket; `InvalidData` if the other side speaks something else.
pub fn secure(
    mut stream: TcpStream,
    key: &ClusterKey,
    side: Side,
) -> io::Result<(Sender, Receiver)> {
    let random = SystemRandom::new();
    let failed = |_| io::Error::other("no keys can be drawn");
    let private = EphemeralPrivateKey::generate(&X25519, &random).map_err(failed)?;
    let public = private.compute_public_key().map_err(failed)?;
    let mut first = MAGIC.to_vec();
    first.extend_from_slice(public.as_ref());
    stream.write_all(&first)?;
    let mut other = [0; MAGIC.len() + PUBLIC_BYTES];
    stream.read_exact(&mut other)?;
    let Some(other) = other.strip_prefix(&MAGIC) else {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "it isn't a member of a set"));
    };
    let (caller, called) = match side {
        Side::Caller => (public.as_ref(), other),
        Side::Called => (other, public.as_ref()),
    };
    let keys = agree_ephemeral(private, &UnparsedPublicKey::new(&X25519, other), |secret| {
        let material = [secret, caller, called].concat();
        let keys = Salt::new(HKDF_SHA256, key.bytes()).extract(&material);
        let cipher = |direction: &[u8]| {
            let info = [direction];
            let okm = keys.expand(&info, &CHACHA20_POLY1305);
            let okm = okm.expect("one block is never too much");
            Cipher { key: LessSafeKey::new(UnboundKey::from(okm)), count: 0 }
        };
        (cipher(b"frond set 1: caller"), cipher(b"frond set 1: called"))
    });
    let bad = |_| io::Error::new(io::ErrorKind::InvalidData, "no public key");
    let (of_caller, of_called) = keys.map_err(bad)?;
    let (sends, receives) = match side {
        Side::Caller => (of_caller, of_called),
        Side::Called => (of_called, of_caller),
    };
    let sender = Sender { stream: stream.try_clone()?, cipher: sends, unsent: Vec::new() };
    let stream = BufReader::with_capacity(READ_BYTES, stream);
    let box_bytes_max = FIRST_BOX_BYTES_MAX;
    Ok((sender, Receiver { stream, cipher: receives, box_bytes_max }))
}

impl Cipher {
    fn nonce(&mut self) -> Nonce {
        let mut nonce = [0; NONCE_LEN];
        nonce[..size_of::<u64>()].copy_from_slice(&self.count.to_le_bytes());
        self.count += 1;
        Nonce::assume_unique_for_key(nonce)
    }
}

impl Sender {
    /// Sends a box, and what is left of one before it.
    ///
    /// # Errors
    /// An error of the socket.
    pub fn send(&mut self, content: &[u8]) -> io::Result<()> {
        self.send_rest()?;
        let sealed = self.seal(content)?;
        self.stream.write_all(&sealed)
    }

    /// Begins to send a box, as far as there is room for it, and never waits. Nothing of one before
    /// it is left.
    ///
    /// # Errors
    /// An error of the socket.
    pub fn send_now(&mut self, content: &[u8]) -> io::Result<()> {
        assert!(!self.has_rest(), "a box is sent behind the one before it");
        let sealed = self.seal(content)?;
        let sent = match send(&self.stream, &sealed, SEND_NOW).map_err(io::Error::from) {
            Ok(sent) => sent,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
            Err(error) => return Err(error),
        };
        self.unsent.extend_from_slice(&sealed[sent..]);
        Ok(())
    }

    /// Whether something of a box is left that there was no room for.
    pub fn has_rest(&self) -> bool {
        !self.unsent.is_empty()
    }

    /// Sends what is left, and waits for room.
    ///
    /// # Errors
    /// An error of the socket.
    pub fn send_rest(&mut self) -> io::Result<()> {
        let unsent = std::mem::take(&mut self.unsent);
        self.stream.write_all(&unsent)
    }

    fn seal(&mut self, content: &[u8]) -> io::Result<Vec<u8>> {
        let bytes = content.len() + CHACHA20_POLY1305.tag_len();
        let length = u32::try_from(bytes).map_err(|_| io::ErrorKind::InvalidInput)?.to_le_bytes();
        let mut sealed = Vec::with_capacity(LENGTH_BYTES + bytes);
        sealed.extend_from_slice(&length);
        sealed.extend_from_slice(content);
        let nonce = self.cipher.nonce();
        let boxed = &mut sealed[LENGTH_BYTES..];
        let tag = self.cipher.key.seal_in_place_separate_tag(nonce, Aad::from(length), boxed);
        let tag = tag.map_err(|_| io::ErrorKind::InvalidInput)?;
        sealed.extend_from_slice(tag.as_ref());
        Ok(sealed)
    }
}

impl Receiver {
    /// Receives a box.
    ///
    /// # Errors
    /// An error of the socket; `PermissionDenied` if it doesn't open: the other side doesn't know
    /// the cluster key, or what it sent was changed on the way.
    pub fn receive(&mut self) -> io::Result<Vec<u8>> {
        let mut length = [0; LENGTH_BYTES];
        self.stream.read_exact(&mut length)?;
        let bytes = u32::from_le_bytes(length) as usize;
        if self.box_bytes_max < bytes {
            let what = format!("a box of {bytes} bytes");
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
        let mut sealed = vec![0; bytes];
        self.stream.read_exact(&mut sealed)?;
        let nonce = self.cipher.nonce();
        let opened = self.cipher.key.open_in_place(nonce, Aad::from(length), &mut sealed);
        let bytes = opened.map(|content| content.len()).map_err(|_| {
            io::Error::new(io::ErrorKind::PermissionDenied, "it doesn't know the cluster key")
        })?;
        sealed.truncate(bytes);
        Ok(sealed)
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    fn key(letter: &str) -> ClusterKey {
        ClusterKey::parse(&letter.repeat(40)).expect("long enough")
    }

    /// Both sides of a stream, whose keys may differ.
    fn pair(caller: &str, called: &str) -> ((Sender, Receiver), (Sender, Receiver)) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("it has one");
        let (caller, called) = (key(caller), key(called));
        let calls = thread::spawn(move || {
            secure(TcpStream::connect(address).expect("it listens"), &caller, Side::Caller)
        });
        let stream = listener.accept().expect("it comes").0;
        let called = secure(stream, &called, Side::Called).expect("the magic is right");
        (calls.join().expect("no panic").expect("the magic is right"), called)
    }

    #[test]
    fn boxes_arrive_in_both_directions() {
        let ((mut one, mut hears), (mut other, mut gets)) = pair("k", "k");
        for content in [&b"first"[..], b"", &[7; 70_000]] {
            gets.box_bytes_max = 80_000;
            one.send(content).expect("sent");
            assert_eq!(gets.receive().expect("it opens"), content);
        }
        other.send(b"back").expect("sent");
        assert_eq!(hears.receive().expect("it opens"), b"back");
        one.send(&[7; 70_000]).expect("sent");
        gets.box_bytes_max = FIRST_BOX_BYTES_MAX;
        assert_eq!(gets.receive().expect_err("too long").kind(), io::ErrorKind::InvalidData);
    }

    #[test]
    fn a_box_for_which_there_is_no_room_goes_on_where_it_stopped() {
        const BOX_BYTES: usize = 50_000;
        let ((mut one, _hears), (_other, mut gets)) = pair("k", "k");
        let content = |number: usize| vec![number as u8; BOX_BYTES];
        let mut count = 0;
        while !one.has_rest() {
            one.send_now(&content(count)).expect("there is a stream");
            count += 1;
        }
        thread::scope(|scope| {
            scope.spawn(|| {
                for number in 0..=count {
                    assert_eq!(gets.receive().expect("it opens"), content(number), "{number}");
                }
            });
            one.send(&content(count)).expect("the other side takes all");
        });
    }

    #[test]
    fn members_without_the_key_are_refused() {
        let ((mut one, mut hears), (mut other, mut gets)) = pair("k", "x");
        one.send(b"hello").expect("sent");
        assert_eq!(gets.receive().expect_err("refused").kind(), io::ErrorKind::PermissionDenied);
        other.send(b"hello").expect("sent");
        assert_eq!(hears.receive().expect_err("refused").kind(), io::ErrorKind::PermissionDenied);
    }

    #[test]
    fn a_box_that_was_changed_or_left_out_does_not_open() {
        let ((mut one, _), (_, mut gets)) = pair("k", "k");
        one.cipher.count = 1; // As if the first had been left out.
        one.send(b"second").expect("sent");
        assert_eq!(gets.receive().expect_err("left out").kind(), io::ErrorKind::PermissionDenied);
    }
}
