"""GridFS: files in chunks, their revisions, what is missing or damaged."""

import io

from bson import Binary, ObjectId
from gridfs import GridFSBucket, NoFile
from gridfs.errors import CorruptGridFile

from specified.setting import Specification, equal, refused

SPECIFICATION = Specification("gridfs")
CHUNK = 1_000
CONTENT = bytes(range(256)) * 12


def bucket_of(given):
    return GridFSBucket(given.database, chunk_size_bytes=CHUNK)


def upload(given, content=CONTENT, name="file"):
    return bucket_of(given).upload_from_stream(name, io.BytesIO(content))


def read(given, file):
    return bucket_of(given).open_download_stream(file).read()


@SPECIFICATION.case
def chunks(given):
    """A file is cut into chunks of its size, numbered from 0, the last one shorter."""
    file = upload(given)
    found = list(given.database.fs.chunks.find({"files_id": file}).sort("n", 1))
    equal([(it["n"], len(it["data"])) for it in found], [(0, CHUNK), (1, CHUNK), (2, CHUNK), (3, len(CONTENT) % CHUNK)])
    equal(read(given, file), CONTENT)
    about = given.database.fs.files.find_one(file)
    equal((about["length"], about["chunkSize"], about["filename"]), (len(CONTENT), CHUNK, "file"))


@SPECIFICATION.case
def empty(given):
    """An empty file has no chunks, and reads as nothing."""
    file = upload(given, b"")
    equal((given.database.fs.chunks.count_documents({}), read(given, file)), (0, b""))


@SPECIFICATION.case
def made_indexes(given):
    """The first upload makes the indexes of both collections, the one of chunks unique."""
    file = upload(given)
    equal(given.database.fs.files.index_information()["filename_1_uploadDate_1"]["key"], [("filename", 1), ("uploadDate", 1)])
    equal(given.database.fs.chunks.index_information()["files_id_1_n_1"]["unique"], True)
    refused(11000, lambda: given.database.fs.chunks.insert_one({"files_id": file, "n": 0, "data": Binary(b"")}))


@SPECIFICATION.case
def equal_indexes(given):
    """An index whose key has doubles for numbers is the one that drivers look for."""
    for name, key, options in (("files", {"filename": 1.0, "uploadDate": 1.0}, {}), ("chunks", {"files_id": 1.0, "n": 1.0}, {"unique": True})):
        index = {"key": key, "name": "_".join(f"{field}_1" for field in key), **options}
        given.database.command("createIndexes", f"fs.{name}", indexes=[index])
    upload(given)
    equal(len(given.database.fs.files.index_information()), 2)


@SPECIFICATION.case
def deletes(given):
    """A delete removes the file and its chunks; of a missing one it removes its chunks and fails."""
    one, other = upload(given), upload(given)
    bucket_of(given).delete(one)
    equal((given.database.fs.chunks.count_documents({}), read(given, other)), (4, CONTENT))
    given.database.fs.files.delete_one({"_id": other})
    refused(None, lambda: bucket_of(given).delete(other), NoFile)
    equal(given.database.fs.chunks.count_documents({}), 0)


@SPECIFICATION.case
def revisions(given):
    """Files of a name are revisions: 0 the first, -1 the last."""
    for text in (b"one", b"two", b"three"):
        upload(given, text)
    by_name = bucket_of(given).open_download_stream_by_name
    equal([by_name("file", revision).read() for revision in (0, 1, -1, -2)], [b"one", b"two", b"three", b"two"])
    refused(None, lambda: by_name("file", 3), NoFile)


@SPECIFICATION.case
def damaged(given):
    """A missing chunk, one of another size or one too many is told as damage."""
    for change in (lambda at: at.delete_one({"n": 1}), lambda at: at.update_one({"n": 1}, {"$set": {"data": b"a"}})):
        file = upload(given)
        change(given.database.fs.chunks)
        refused(None, lambda file=file: read(given, file), CorruptGridFile)
        bucket_of(given).delete(file)


@SPECIFICATION.case
def metadata(given):
    """Own _ids and metadata are stored and found; a rename changes the name alone."""
    bucket = bucket_of(given)
    bucket.upload_from_stream_with_id({"a": 1}, "x", CONTENT, metadata={"of": [1, 2]})
    equal([file._id for file in bucket.find({"metadata.of": 2})], [{"a": 1}])
    bucket.rename({"a": 1}, "y")
    equal(bucket.open_download_stream_by_name("y").metadata, {"of": [1, 2]})
    refused(None, lambda: bucket.rename(ObjectId(), "z"), NoFile)


@SPECIFICATION.case
def seeks(given):
    """A download stream reads any part."""
    stream = bucket_of(given).open_download_stream(upload(given))
    stream.seek(CHUNK - 3)
    equal(stream.read(6), CONTENT[CHUNK - 3 : CHUNK + 3])
    stream.seek(-2, io.SEEK_END)
    equal((stream.read(), stream.tell()), (CONTENT[-2:], len(CONTENT)))


@SPECIFICATION.case
def aborted(given):
    """An upload that is aborted leaves nothing."""
    stream = bucket_of(given).open_upload_stream("file")
    stream.write(CONTENT)
    stream.abort()
    equal((given.database.fs.files.count_documents({}), given.database.fs.chunks.count_documents({})), (0, 0))


@SPECIFICATION.case
def by_name(given):
    """All revisions of a name are renamed and deleted together; none is an error."""
    upload(given, b"one")
    upload(given, b"two")
    bucket = bucket_of(given)
    bucket.rename_by_name("file", "new")
    equal(bucket.open_download_stream_by_name("new", 0).read(), b"one")
    bucket.delete_by_name("new")
    equal((given.database.fs.files.count_documents({}), given.database.fs.chunks.count_documents({})), (0, 0))
    refused(None, lambda: bucket.delete_by_name("new"), NoFile)
