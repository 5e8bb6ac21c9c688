//! Dotted paths through documents and arrays.

use crate::document::Document;
use crate::value::Value;

/// A dotted path, cut once: `a.b.0.c`.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Path {
    parts: Vec<String>,
}

impl Path {
    /// Cuts `dotted` at its dots. An empty string is the path of the empty name.
    pub fn new(dotted: &str) -> Path {
        Path { parts: dotted.split('.').map(str::to_owned).collect() }
    }

    /// The names between the dots; at least one.
    pub fn parts(&self) -> &[String] {
        &self.parts
    }

    /// The value at the path through documents only (arrays are not entered): `None` if absent.
    pub fn get<'a>(&self, _document: Document<'a>) -> Option<Value<'a>> {
        todo!()
    }

    /// Calls `visit` with every value that a query's path reaches, as MongoDB fans out: through
    /// documents, through each element of an array on the way, and, where a part is a number, also
    /// through the array's element at that position. `None` is visited for a branch on which the
    /// path ends early (what `{a: null}` matches). Arrays at the end of the path are visited as
    /// they are: whoever compares them with elements too expands them. Stops when `visit` says
    /// `true` and returns whether it did.
    pub fn visit<'a>(
        &self,
        _document: Document<'a>,
        _visit: &mut dyn FnMut(Option<Value<'a>>) -> bool,
    ) -> bool {
        todo!()
    }
}
