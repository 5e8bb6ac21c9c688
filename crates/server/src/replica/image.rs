//! Copies a leader's data to a member that lacks entries which are on no log any more.
//!
//! 1. The caller's first box on a secured stream is [`HEAD`] instead of an identity.
//! 2. The answer is an [`Incoming`] and, one after the other behind an empty line, the names of
//!    commits that are known to be absent; or a line that says why there is none.
//! 3. Then the caller sends names of chunks, and gets frames with the first of them, as many as fit
//!    into a box. An empty box says that they can't be had.
//!
//! The image is kept as long as the stream stands.

use std::io;
use std::sync::Mutex;
use std::time::Duration;

use frond_db::Error;
use frond_store::{Chunk, ChunkHash};
use frond_vcs::remote::frame::{self, FrameEffort};
use frond_vcs::remote::{CHUNK_BYTES_MAX, ImageSource, decode_hashes, encode_hashes};

use super::channel::{Receiver, Sender, Side, connect, secure};
use super::incoming::Incoming;
use super::{Replica, lock};

/// The first box of a caller that asks for an image.
pub const HEAD: &[u8] = b"frond-set-image 0";
/// Chunks are read so many at once, until they have grown to this.
const BATCH: usize = 8;
const BATCH_BYTES: usize = 4 << 20;
/// A box has no more: names, or the chunks of one batch beyond what is enough.
const NAMES_BYTES_MAX: usize = 64 << 10;
const CHUNKS_BYTES_MAX: usize = BATCH_BYTES + BATCH * (CHUNK_BYTES_MAX + 64);
/// An image takes as long as folding all trees; a writer of chunks may wait for its disk.
pub const WAIT_MAX: Duration = Duration::from_secs(600);

/// An image, and behind which entry a member goes on that has it.
pub struct Offer {
    /// The image.
    pub image: Box<dyn ImageSource>,
    /// The point from which to go on.
    pub incoming: Incoming,
}

/// Answers a member that has asked for an image.
///
/// # Errors
/// An error of the socket.
pub fn serve(
    offered: Result<Offer, String>,
    sender: &mut Sender,
    receiver: &mut Receiver,
) -> io::Result<()> {
    let offer = match offered {
        Ok(offer) => offer,
        Err(why) => return sender.send(why.as_bytes()),
    };
    let mut answer = offer.incoming.to_text().into_bytes();
    answer.push(b'\n');
    answer.extend(encode_hashes(offer.image.absent()));
    sender.send(&answer)?;
    receiver.box_bytes_max = NAMES_BYTES_MAX;
    loop {
        let names = decode_hashes(&receiver.receive()?);
        sender.send(&frames_of(&*offer.image, &names))?;
    }
}

fn frames_of(image: &dyn ImageSource, names: &[ChunkHash]) -> Vec<u8> {
    let (mut chunks, mut bytes): (Vec<Chunk>, usize) = (Vec::new(), 0);
    for batch in names.chunks(BATCH) {
        let Ok(found) = image.get_many(batch) else { break };
        bytes += found.iter().map(|chunk| chunk.encoded().len()).sum::<usize>();
        chunks.extend(found);
        if BATCH_BYTES <= bytes {
            break;
        }
    }
    frame::encode(&chunks, FrameEffort::Quick)
}

/// An image that another member has.
pub struct RemoteImage<'a> {
    replica: &'a Replica,
    /// The description of the image, and where to go on with it.
    pub incoming: Incoming,
    absent: Vec<ChunkHash>,
    stream: Mutex<(Sender, Receiver)>,
}

impl<'a> RemoteImage<'a> {
    /// Asks the member at `address`, which has one if it leads.
    ///
    /// # Errors
    /// An error of the socket; `Unsupported` with what the other says, if it has none.
    pub fn ask(replica: &'a Replica, address: &str) -> io::Result<RemoteImage<'a>> {
        let stream = connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(WAIT_MAX))?;
        stream.set_read_timeout(Some(WAIT_MAX))?;
        let (mut sender, mut receiver) = secure(stream, &replica.options.key, Side::Caller)?;
        sender.send(HEAD)?;
        receiver.box_bytes_max = CHUNKS_BYTES_MAX;
        let answer = receiver.receive()?;
        let end = answer.windows(2).position(|two| two == b"\n\n");
        let text = String::from_utf8_lossy(&answer[..end.map_or(answer.len(), |end| end + 1)]);
        let (Some(end), Some(incoming)) = (end, Incoming::parse(&text)) else {
            return Err(io::Error::new(io::ErrorKind::Unsupported, text.into_owned()));
        };
        let absent = decode_hashes(&answer[end + 2..]);
        let stream = Mutex::new((sender, receiver));
        Ok(RemoteImage { replica, incoming, absent, stream })
    }

    /// The first of the chunks that `names` name: at least one.
    fn get_some(&self, names: &[ChunkHash]) -> Result<Vec<Chunk>, Error> {
        let io = |error: io::Error| {
            Error::unavailable(format!("the member that has the image: {error}"))
        };
        if self.replica.is_stopped() {
            return Err(Error::unavailable("this member stops"));
        }
        let answer = {
            let mut stream = lock(&self.stream);
            stream.0.send(&encode_hashes(names)).map_err(io)?;
            stream.1.receive().map_err(io)?
        };
        let chunks = frame::decode_all("the image", &answer, CHUNKS_BYTES_MAX)?;
        match chunks.is_empty() || names.len() < chunks.len() {
            true => Err(Error::unavailable("a chunk of the image is missing")),
            false => Ok(chunks),
        }
    }
}

impl ImageSource for RemoteImage<'_> {
    fn root(&self) -> ChunkHash {
        self.incoming.root
    }

    fn time_millis(&self) -> i64 {
        0
    }

    fn databases(&self) -> &[String] {
        &[]
    }

    fn absent(&self) -> &[ChunkHash] {
        &self.absent
    }

    fn get_many(&self, hashes: &[ChunkHash]) -> Result<Vec<Chunk>, Error> {
        let mut chunks: Vec<Chunk> = Vec::with_capacity(hashes.len());
        while chunks.len() < hashes.len() {
            let more = self.get_some(&hashes[chunks.len()..])?;
            chunks.extend(more);
        }
        Ok(chunks)
    }
}
