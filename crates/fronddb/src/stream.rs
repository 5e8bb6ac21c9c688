//! Documents in and out that are never whole in memory, up to BSON's 2 GiB.

use std::io::{BufWriter, Read, Write};

use bson::Bson;
use frond_db::StoredDocument;
use frond_doc::extended_json::Form;
use frond_doc::pieces::{JsonWriter, PiecesError, Writer, read_bson, read_json};

use crate::collection::by_id;
use crate::{Collection, Result, convert};

impl<T> Collection<T> {
    /// Inserts the document whose BSON `reader` gives, and answers with its `_id`. Nothing behind
    /// the document is read; a file wants a [`BufReader`](std::io::BufReader) around it.
    ///
    /// The document is never whole in memory (but for one that is small, and for a collection with
    /// a validator), and is visible as a whole or not at all. Afterwards it is a document like any
    /// other: finds and updates of some of its fields read and write these alone.
    ///
    /// ```
    /// use fronddb::{Document, doc};
    /// # let data = tempfile::tempdir()?;
    /// # let shop = fronddb::open(&data)?.database("shop")?;
    ///
    /// let scans = shop.collection::<Document>("scans");
    /// let image = doc! { "_id": "a", "pixels": vec![0; 100_000] }.to_vec().expect("a document");
    /// scans.insert_bson(&image[..])?; // Or any other reader: a file, a socket.
    ///
    /// let mut out = Vec::new();
    /// assert!(scans.write_bson("a", &mut out)?);
    /// assert_eq!(out, image);
    /// # Ok::<(), fronddb::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Unavailable`](crate::ErrorKind::Unavailable) if the reader fails or ends too early; what
    /// isn't BSON; as [`Collection::insert_one`].
    pub fn insert_bson(&self, mut reader: impl Read) -> Result<Bson> {
        self.insert_streamed(&mut |writer| read_bson(&mut reader, writer))
    }

    /// As [`Collection::insert_bson`], of extended JSON (as `mongoimport` reads and `mongoexport`
    /// writes): one object, and nothing behind it.
    ///
    /// # Errors
    /// As there; what isn't JSON, with line and column.
    pub fn insert_json(&self, mut reader: impl Read) -> Result<Bson> {
        self.insert_streamed(&mut |writer| read_json(&mut reader, writer))
    }

    fn insert_streamed(
        &self,
        fill: &mut dyn FnMut(&mut Writer<'_>) -> Result<(), PiecesError>,
    ) -> Result<Bson> {
        convert::bson(&self.inner().insert_streamed(&self.name, fill, self.durability())?)
    }

    /// Writes the BSON of the document with this `_id` as it is read; answers whether there is one.
    ///
    /// # Errors
    /// [`Unavailable`](crate::ErrorKind::Unavailable) if the writer fails; damage.
    pub fn write_bson(&self, id: impl Into<Bson>, writer: impl Write) -> Result<bool> {
        self.write(id.into(), writer, &mut |document, out| document.write_bson(out))
    }

    /// As [`Collection::write_bson`], as one line of canonical extended JSON, which keeps every
    /// type, without the end of a line.
    ///
    /// # Errors
    /// As there.
    pub fn write_json(&self, id: impl Into<Bson>, writer: impl Write) -> Result<bool> {
        self.write(id.into(), writer, &mut |document, out| {
            let mut json = JsonWriter::new(Form::Canonical);
            document.write_json(&mut json, out)?;
            Ok(json.finish(out)?)
        })
    }

    fn write(
        &self,
        id: Bson,
        writer: impl Write,
        write: &mut dyn FnMut(&StoredDocument<'_>, &mut dyn Write) -> Result<(), frond_db::Error>,
    ) -> Result<bool> {
        let filter = convert::encode(&by_id(id))?;
        let mut out = BufWriter::new(writer);
        let mut is_there = false;
        self.inner().export(&self.name, Some(filter.view()), &mut |document| {
            is_there = true;
            write(document, &mut out)
        })?;
        out.flush()?;
        Ok(is_there)
    }
}
