//! Stages that set or remove outermost fields, on a large document: in an update by pipeline, and
//! before `$out`.
//!
//! 1. `{$set: {level: -1, total: {$add: ["$a", "$b.c"]}}}` needs of a document only the outermost
//!    fields that its expressions name, and those that it sets. What it needs is told from the
//!    stages as they were written; whatever may need more (`$$ROOT`, `$getField`, a dotted target,
//!    any other stage) is left to the way over the whole document.
//! 2. The stages are run on a document of these fields alone, by the same code as ever. The fields
//!    that come out changed are put in the places of those before, new ones behind all others.
//!
//! So a document's other fields are not read, and its copy refers to the same chunks. *Invariant*:
//! the result is what the stages make of the whole document; tests compare the two.

use frond_doc::pieces::{Edited, Element, LargeDocument, PiecesError};
use frond_doc::{Array, Document, DocumentBuf, Value};
use frond_store::ChunkStore;

const ID: &str = "_id";
/// Expressions that ask for fields in other ways than by their paths, or for the document.
const OPAQUE: [&str; 4] = ["$getField", "$setField", "$unsetField", "$function"];
const WHOLE: [&str; 2] = ["ROOT", "CURRENT"];
/// Expressions that are nested deeper are left to the other way.
const DEPTH_MAX: usize = 60;

/// What stages need of a document, and what they change of it.
#[derive(Default, Debug)]
pub(crate) struct OutermostStages {
    /// Outermost fields that are set or removed.
    targets: Vec<String>,
    /// Those that expressions ask for.
    asked: Vec<String>,
}

impl OutermostStages {
    /// Reads the stages; `None` if they may ask for more than some outermost fields.
    pub(crate) fn of(stages: Array<'_>) -> Option<OutermostStages> {
        let mut out = OutermostStages::default();
        for stage in stages.iter() {
            let (name, argument) = only_field(stage.as_document()?)?;
            match (name, argument) {
                ("$set" | "$addFields", Value::Document(fields)) => {
                    for (name, expression) in fields.iter() {
                        // What was removed before (by `$$REMOVE` too) goes to the end: where that
                        // is in the part isn't where it is in the whole.
                        if out.is_target(name) {
                            return None;
                        }
                        out.add_target(name)?;
                        out.add_asked(expression, DEPTH_MAX)?;
                    }
                }
                ("$unset", Value::String(name)) => {
                    out.add_target(name)?;
                }
                ("$unset", Value::Array(names)) => {
                    for name in names.iter() {
                        let Value::String(name) = name else { return None };
                        out.add_target(name)?;
                    }
                }
                _ => return None,
            }
        }
        Some(out)
    }

    /// The outermost fields that the stages must see.
    pub(crate) fn names(&self) -> impl Iterator<Item = &[u8]> {
        self.targets.iter().chain(&self.asked).map(|name| name.as_bytes())
    }

    /// Changes a document as `run` changes the part of it that it is given (`None`: not at all).
    /// `None` if the whole document is needed.
    pub(crate) fn apply<E: From<PiecesError>>(
        &self,
        store: &dyn ChunkStore,
        document: &LargeDocument,
        run: &dyn Fn(Document<'_>) -> Result<Option<DocumentBuf>, E>,
    ) -> Result<Option<LargeDocument>, E> {
        let mut names: Vec<&[u8]> = vec![ID.as_bytes()];
        for name in self.names() {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let before = document.project(store, &names)?;
        let Some(after) = run(before.view())? else { return Ok(Some(*document)) };
        Ok(self.replaced(store, document, before.view(), after.view())?)
    }

    fn replaced(
        &self,
        store: &dyn ChunkStore,
        document: &LargeDocument,
        before: Document<'_>,
        after: Document<'_>,
    ) -> Result<Option<LargeDocument>, PiecesError> {
        let mut current = *document;
        for old in before.elements() {
            let Some(name) = old.name().filter(|name| self.is_target(name)) else { continue };
            let new = after.field(name.as_bytes());
            if new.as_ref().is_some_and(|new| new.kind == old.kind && new.value == old.value) {
                continue;
            }
            let found = current.find(store, &[name])?;
            let Some((position, _)) = found.item else { return Ok(None) };
            let new: Vec<Element<'_>> = new.into_iter().collect();
            match current.splice(store, &found, position, 1, &new)? {
                Some(Edited::Large(changed)) => current = changed,
                _ => return Ok(None),
            }
        }
        let is_new = |element: &Element<'_>| before.field(element.name).is_none();
        let new: Vec<Element<'_>> = after.elements().filter(is_new).collect();
        if new.is_empty() {
            return Ok(Some(current));
        }
        let end = current.find(store, &[])?;
        match current.splice(store, &end, end.count(store)?, 0, &new)? {
            Some(Edited::Large(changed)) => Ok(Some(changed)),
            _ => Ok(None),
        }
    }

    fn is_target(&self, name: &str) -> bool {
        self.targets.iter().any(|target| target == name)
    }

    fn add_target(&mut self, name: &str) -> Option<()> {
        let is_plain = !name.is_empty() && !name.contains(['.', '\0']) && !name.starts_with('$');
        if !is_plain || name == ID {
            return None;
        }
        if !self.is_target(name) {
            self.targets.push(name.to_owned());
        }
        Some(())
    }

    /// Adds the fields that an expression asks for; `None` if it may ask for the whole document.
    fn add_asked(&mut self, expression: Value<'_>, depth: usize) -> Option<()> {
        let depth = depth.checked_sub(1)?;
        match expression {
            Value::String(text) => self.add_path(text),
            Value::Array(elements) => {
                elements.iter().try_for_each(|element| self.add_asked(element, depth))
            }
            Value::Document(fields) => fields.iter().try_for_each(|(name, value)| match name {
                "$literal" => Some(()),
                name if OPAQUE.contains(&name) => None,
                _ => self.add_asked(value, depth),
            }),
            _ => Some(()),
        }
    }

    fn add_path(&mut self, text: &str) -> Option<()> {
        let Some(path) = text.strip_prefix('$') else { return Some(()) };
        if let Some(variable) = path.strip_prefix('$') {
            let name = variable.split('.').next().unwrap_or(variable);
            return (!WHOLE.contains(&name)).then_some(());
        }
        let first = path.split('.').next().unwrap_or(path);
        if !self.asked.iter().any(|asked| asked == first) {
            self.asked.push(first.to_owned());
        }
        Some(())
    }
}

/// A document's field, if it has no other.
pub(crate) fn only_field<'a>(document: Document<'a>) -> Option<(&'a str, Value<'a>)> {
    let mut fields = document.iter();
    fields.next().filter(|_| fields.next().is_none())
}

#[cfg(test)]
mod tests {
    use frond_doc::extended_json;

    use super::*;

    /// The fields that the stages change, and those that they ask for besides.
    fn needs(stages: &str) -> Option<(String, String)> {
        let holder = extended_json::parse(&format!("{{\"s\": {stages}}}")).expect("JSON");
        let stages = holder.get("s").and_then(|stages| stages.as_array()).expect("an array");
        OutermostStages::of(stages).map(|it| (it.targets.join(" "), it.asked.join(" ")))
    }

    #[test]
    fn needs_are_told_from_the_stages() {
        for (stages, targets, asked) in [
            ("[]", "", ""),
            (r#"[{"$set": {"a": 1, "b": "$c.d"}}]"#, "a b", "c"),
            (r#"[{"$addFields": {"a": {"$add": ["$b", "$$x.y", {"z": "$c"}]}}}]"#, "a", "b c"),
            (r#"[{"$set": {"a": {"$literal": "$$ROOT"}}}, {"$unset": ["b", "c"]}]"#, "a b c", ""),
            (r#"[{"$unset": "a"}, {"$set": {"b": "$a"}}]"#, "a b", "a"),
        ] {
            assert_eq!(needs(stages), Some((targets.to_owned(), asked.to_owned())), "{stages}");
        }
        for stages in [
            r#"[{"$set": {"a.b": 1}}]"#,
            r#"[{"$set": {"_id": 1}}]"#,
            r#"[{"$set": {"a": "$$ROOT"}}]"#,
            r#"[{"$set": {"a": ["$$CURRENT.b"]}}]"#,
            r#"[{"$set": {"a": {"$getField": "b"}}}]"#,
            r#"[{"$unset": "a.b"}]"#,
            r#"[{"$unset": "a"}, {"$set": {"a": 1}}]"#,
            r#"[{"$set": {"a": "$$REMOVE"}}, {"$set": {"a": 1}}]"#,
            r#"[{"$project": {"a": 1}}]"#,
            r#"[{"$replaceWith": "$a"}]"#,
        ] {
            assert_eq!(needs(stages), None, "{stages}");
        }
    }
}
