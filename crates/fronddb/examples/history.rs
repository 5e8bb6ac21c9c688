//! The history of one document, and bringing it back as it was.

use fronddb::{ChangeKind, doc};
use serde::{Deserialize, Serialize};

#[derive(PartialEq, Serialize, Deserialize, Debug)]
struct Page {
    #[serde(rename = "_id")]
    title: String,
    text: String,
}

/// Runs the example.
pub fn main() -> fronddb::Result<()> {
    let data = tempfile::tempdir()?;
    let wiki = fronddb::open(&data)?.database("wiki")?;
    let pages = wiki.collection::<Page>("pages");
    let page = |text: &str| Page { title: "Frond".to_owned(), text: text.to_owned() };

    pages.insert_one(page("A leaf."))?;
    wiki.commit("a page")?;
    pages.insert_one(Page { title: "Fern".to_owned(), text: "Has fronds.".to_owned() })?;
    wiki.commit("another page")?;
    pages.replace_one(doc! { "_id": "Frond" }, page("A divided leaf."))?;
    wiki.commit("more exact")?;
    pages.delete_one(doc! { "_id": "Frond" })?;

    // Newest first: what isn't committed, then each commit that changed it.
    let versions = pages.history("Frond")?.collect::<fronddb::Result<Vec<_>>>()?;
    let changes_by_commit: Vec<_> = versions
        .iter()
        .map(|version| {
            let why = version.commit.as_ref().map(|commit| commit.message.as_str());
            (why, version.kind, version.document.as_ref().map(|page| page.text.as_str()))
        })
        .collect();
    let expected = [
        (None, ChangeKind::Removed, None),
        (Some("more exact"), ChangeKind::Modified, Some("A divided leaf.")),
        (Some("a page"), ChangeKind::Added, Some("A leaf.")),
    ];
    assert_eq!(changes_by_commit, expected);
    assert_eq!(versions[1].fields[0].path, "text");

    // As it was two commits ago; and then everything.
    assert!(pages.restore_document("Frond", "main~2")?);
    assert_eq!(pages.get("Frond")?, Some(page("A leaf.")));
    assert!(pages.restore("HEAD")?);
    assert_eq!(pages.get("Frond")?, Some(page("A divided leaf.")));
    Ok(())
}
