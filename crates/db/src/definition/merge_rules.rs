//! The rules by which documents are merged, where a call or a collection asks for something else
//! than usual.
//!
//! - *Granularity*: by field (usual), or by document: one that both sides changed is a conflict.
//! - *Equal changes* of both sides agree (usual), or are a conflict because both touched the same.
//! - *Rules of fields*, by path: `delta` adds both sides' changes of a number; `union` merges an
//!   array as a set: what a side added is in, what a side removed is out.
//! - *On conflict*: a conflict waits to be resolved (usual), or ours or theirs is taken at once.
//!
//! A call's word counts before the collection's, which stands in its options as `mergeRules:
//! {granularity, equalChanges, fields: {path: rule}}` and is versioned with them.

use std::collections::BTreeMap;

use frond_doc::{Document, DocumentBuf, DocumentBuilder, Value};
use frond_query::Code;

use crate::error::Error;

/// The option of a collection that holds its rules.
pub const OPTION: &str = "mergeRules";

/// The units that merge by themselves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Granularity {
    /// Each field.
    Field,
    /// Each document.
    Document,
}

/// The meaning of equal changes on both sides.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EqualChanges {
    /// Agreed.
    Agree,
    /// A conflict: both touched the same.
    Conflict,
}

/// The rule for merging a field that both sides changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FieldRule {
    /// A number gets both changes.
    Delta,
    /// An array is a set.
    Union,
}

/// A side of a merge.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MergeSide {
    /// The branch that is merged into.
    Ours,
    /// The side that is merged in.
    Theirs,
}

/// The rules that a call asks for; the collections' own rules, or the defaults, hold for the rest.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct MergeRules {
    /// The units that merge by themselves.
    pub granularity: Option<Granularity>,
    /// The meaning of equal changes.
    pub equal_changes: Option<EqualChanges>,
    /// The rules by collection and path.
    pub fields: BTreeMap<String, BTreeMap<String, FieldRule>>,
    /// The side that counts where both conflict; without one, conflicts wait.
    pub on_conflict: Option<MergeSide>,
}

/// The rules for the documents of one collection.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct DocumentRules {
    /// A document that both sides changed is a conflict.
    pub whole: bool,
    /// Equal changes are a conflict.
    pub touched: bool,
    /// The rules by path.
    pub fields: BTreeMap<String, FieldRule>,
}

fn wrong(what: &str) -> Error {
    Error::invalid(Code::BadValue, format!("merge rules: {what}"))
}

fn text<'a>(document: Document<'a>, name: &str) -> Result<Option<&'a str>, Error> {
    match document.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(wrong(&format!("{name} must be a string"))),
    }
}

impl Granularity {
    /// Reads `field` or `document`.
    ///
    /// # Errors
    /// `BadValue` (2) for any other text.
    pub fn parse(text: &str) -> Result<Granularity, Error> {
        match text {
            "field" => Ok(Granularity::Field),
            "document" => Ok(Granularity::Document),
            _ => Err(wrong(&format!("granularity is 'field' or 'document', not '{text}'"))),
        }
    }
}

impl EqualChanges {
    /// Reads `agree` or `conflict`.
    ///
    /// # Errors
    /// `BadValue` (2) for any other text.
    pub fn parse(text: &str) -> Result<EqualChanges, Error> {
        match text {
            "agree" => Ok(EqualChanges::Agree),
            "conflict" => Ok(EqualChanges::Conflict),
            _ => Err(wrong(&format!("equalChanges is 'agree' or 'conflict', not '{text}'"))),
        }
    }
}

impl FieldRule {
    fn parse(text: Value<'_>) -> Result<FieldRule, Error> {
        match text {
            Value::String("delta") => Ok(FieldRule::Delta),
            Value::String("union") => Ok(FieldRule::Union),
            other => {
                Err(wrong(&format!("the rule of a field is 'delta' or 'union', not {other:?}")))
            }
        }
    }

    fn name(self) -> &'static str {
        match self {
            FieldRule::Delta => "delta",
            FieldRule::Union => "union",
        }
    }
}

impl MergeSide {
    /// Reads `ours` or `theirs`.
    ///
    /// # Errors
    /// `BadValue` (2) for any other text.
    pub fn parse(text: &str) -> Result<MergeSide, Error> {
        match text {
            "ours" => Ok(MergeSide::Ours),
            "theirs" => Ok(MergeSide::Theirs),
            _ => Err(wrong(&format!("a side is 'ours' or 'theirs', not '{text}'"))),
        }
    }

    /// `ours` or `theirs`.
    pub fn name(self) -> &'static str {
        match self {
            MergeSide::Ours => "ours",
            MergeSide::Theirs => "theirs",
        }
    }
}

/// Reads `{path: rule}`.
///
/// # Errors
/// `BadValue` (2) for what is no rule.
pub fn parse_field_rules(rules: Document<'_>) -> Result<BTreeMap<String, FieldRule>, Error> {
    rules.iter().map(|(path, rule)| Ok((path.to_owned(), FieldRule::parse(rule)?))).collect()
}

fn append_field_rules(builder: &mut DocumentBuilder, rules: &BTreeMap<String, FieldRule>) {
    for (path, rule) in rules {
        builder.append(path, Value::String(rule.name()));
    }
}

impl DocumentRules {
    /// Whether a field is a sum of changes: two changes to the same value are two changes then.
    pub fn sums(&self) -> bool {
        self.fields.values().any(|rule| *rule == FieldRule::Delta)
    }

    /// Whether equal changes of both sides have to be looked at.
    pub fn looks_at_equal_changes(&self) -> bool {
        self.touched || self.sums()
    }

    /// Reads a collection's own rules.
    ///
    /// # Errors
    /// `BadValue` that names what is wrong.
    pub fn parse(rules: Value<'_>) -> Result<DocumentRules, Error> {
        let rules = rules.as_document().ok_or_else(|| wrong("a document is expected"))?;
        for (name, _) in rules.iter() {
            if !["granularity", "equalChanges", "fields"].contains(&name) {
                return Err(wrong(&format!("{name} is none of granularity, equalChanges, fields")));
            }
        }
        let granularity = text(rules, "granularity")?.map(Granularity::parse).transpose()?;
        let equal = text(rules, "equalChanges")?.map(EqualChanges::parse).transpose()?;
        let fields = match rules.get("fields") {
            None | Some(Value::Null) => BTreeMap::new(),
            Some(Value::Document(fields)) => parse_field_rules(fields)?,
            Some(_) => return Err(wrong("fields must be a document of paths and rules")),
        };
        Ok(DocumentRules {
            whole: granularity == Some(Granularity::Document),
            touched: equal == Some(EqualChanges::Conflict),
            fields,
        })
    }
}

impl MergeRules {
    /// The rules for a collection with these options.
    ///
    /// # Errors
    /// As [`DocumentRules::parse`], of the collection's own.
    pub fn of_collection(
        &self,
        collection: &str,
        options: &DocumentBuf,
    ) -> Result<DocumentRules, Error> {
        let own = options.get(OPTION).map(DocumentRules::parse).transpose()?;
        let mut rules = own.unwrap_or_default();
        if let Some(granularity) = self.granularity {
            rules.whole = granularity == Granularity::Document;
        }
        if let Some(equal) = self.equal_changes {
            rules.touched = equal == EqualChanges::Conflict;
        }
        if let Some(fields) = self.fields.get(collection) {
            rules.fields.extend(fields.iter().map(|(path, rule)| (path.clone(), *rule)));
        }
        Ok(rules)
    }

    /// The form to store with a merge that waits.
    pub fn to_document(&self) -> DocumentBuf {
        let mut builder = DocumentBuilder::new();
        if let Some(granularity) = self.granularity {
            let name = if granularity == Granularity::Field { "field" } else { "document" };
            builder.append("granularity", Value::String(name));
        }
        if let Some(equal) = self.equal_changes {
            let name = if equal == EqualChanges::Agree { "agree" } else { "conflict" };
            builder.append("equalChanges", Value::String(name));
        }
        if let Some(side) = self.on_conflict {
            builder.append("onConflict", Value::String(side.name()));
        }
        builder.begin_document("fields");
        for (collection, rules) in &self.fields {
            builder.begin_document(collection);
            append_field_rules(&mut builder, rules);
            builder.end();
        }
        builder.end();
        builder.build()
    }

    /// Reads that form.
    ///
    /// # Errors
    /// `BadValue` (2) for what it can't be.
    pub fn from_document(rules: Document<'_>) -> Result<MergeRules, Error> {
        let mut fields = BTreeMap::new();
        if let Some(Value::Document(collections)) = rules.get("fields") {
            for (collection, rules) in collections.iter() {
                let rules = rules.as_document().ok_or_else(|| wrong("fields of no document"))?;
                fields.insert(collection.to_owned(), parse_field_rules(rules)?);
            }
        }
        Ok(MergeRules {
            granularity: text(rules, "granularity")?.map(Granularity::parse).transpose()?,
            equal_changes: text(rules, "equalChanges")?.map(EqualChanges::parse).transpose()?,
            fields,
            on_conflict: text(rules, "onConflict")?.map(MergeSide::parse).transpose()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use frond_doc::document;

    #[test]
    fn rules_come_back_and_a_call_counts_before_the_collection() {
        let mut rules = MergeRules {
            granularity: Some(Granularity::Field),
            equal_changes: Some(EqualChanges::Conflict),
            on_conflict: Some(MergeSide::Theirs),
            ..MergeRules::default()
        };
        let fields = BTreeMap::from([("a.b".to_owned(), FieldRule::Union)]);
        rules.fields.insert("things".to_owned(), fields);
        let stored = rules.to_document();
        assert_eq!(MergeRules::from_document(stored.view()).expect("what was stored"), rules);
        let own = document! {
            "granularity": "document",
            "fields": &document! { "n": "delta", "a.b": "delta" },
        };
        let options = document! { "mergeRules": &own };
        let found = rules.of_collection("things", &options).expect("proper rules");
        assert!(!found.whole && found.touched);
        assert_eq!(found.fields["n"], FieldRule::Delta);
        assert_eq!(found.fields["a.b"], FieldRule::Union);
        let usual = MergeRules::default();
        assert!(usual.of_collection("things", &options).expect("proper rules").whole);
        for wrong in [
            document! { "granularity": "byte" },
            document! { "equalChanges": true },
            document! { "fields": &document! { "a": "sum" } },
            document! { "other": 1_i32 },
        ] {
            assert!(DocumentRules::parse(Value::from(&wrong)).is_err(), "{wrong:?}");
        }
    }
}
