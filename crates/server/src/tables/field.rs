//! A field: its name, what it takes, and how it stands beside MongoDB's.

use frond_query::Code;
use frond_query::reference::{Feature, SupportLevel};

use super::kind::{Kind, MismatchMessage};

/// A field of a command, or of a document inside one.
#[derive(Clone, Copy)]
pub struct Field {
    /// Its name.
    pub name: &'static str,
    /// The kind of value that it takes.
    pub kind: Kind,
    /// The message about other types, where MongoDB words it specially.
    pub worded: Option<&'static MismatchMessage>,
    /// The smallest number that it takes.
    pub min: Option<i64>,
    /// The largest number that it takes.
    pub max: Option<i64>,
    /// The message about numbers out of this range, where it isn't the usual sentence.
    pub range_words: Option<(Code, &'static str)>,
    /// Whether it must be there.
    pub is_required: bool,
    /// The message where it isn't, if that isn't the usual sentence.
    pub missing_words: Option<(Code, &'static str)>,
    /// Whether the stable API has it.
    pub is_stable: bool,
    /// The support for it, compared with MongoDB; `None` where MongoDB documents no such field.
    pub standing: Option<SupportLevel>,
    /// The prefix in messages of the names inside it, where that isn't its own path.
    pub path: Option<&'static str>,
}

impl Field {
    /// A field that works as MongoDB documents it.
    pub const fn new(name: &'static str, kind: Kind) -> Field {
        Field {
            name,
            kind,
            worded: None,
            min: None,
            max: None,
            range_words: None,
            is_required: false,
            missing_words: None,
            is_stable: true,
            standing: Some(SupportLevel::Works),
            path: None,
        }
    }

    /// It must be there.
    pub const fn required(self) -> Field {
        Field { is_required: true, ..self }
    }

    /// It must be there, and is missed in these words.
    pub const fn required_worded(self, code: Code, message: &'static str) -> Field {
        Field { is_required: true, missing_words: Some((code, message)), ..self }
    }

    /// It takes no number below `min`.
    pub const fn at_least(self, min: i64) -> Field {
        Field { min: Some(min), ..self }
    }

    /// It takes no number above `max`.
    pub const fn at_most(self, max: i64) -> Field {
        Field { max: Some(max), ..self }
    }

    /// Numbers out of its range are refused in these words.
    pub const fn range_worded(self, code: Code, message: &'static str) -> Field {
        Field { range_words: Some((code, message)), ..self }
    }

    /// Sets the words in which a value of another type is refused.
    pub const fn worded(self, worded: &'static MismatchMessage) -> Field {
        Field { worded: Some(worded), ..self }
    }

    /// The stable API doesn't have it.
    pub const fn unstable(self) -> Field {
        Field { is_stable: false, ..self }
    }

    /// MongoDB has it and Frond refuses it with 115, unless it says no.
    pub const fn refused(self) -> Field {
        Field { standing: Some(SupportLevel::Refused("115")), ..self }
    }

    /// It is refused with 115, by a MongoDB without Enterprise too.
    pub const fn elsewhere(self) -> Field {
        Field { standing: Some(SupportLevel::Elsewhere("115")), ..self }
    }

    /// It is taken and has no effect.
    pub const fn idle(self) -> Field {
        Field { standing: Some(SupportLevel::Differs("no effect")), ..self }
    }

    /// It works otherwise than MongoDB's.
    pub const fn differs(self, how: &'static str) -> Field {
        Field { standing: Some(SupportLevel::Differs(how)), ..self }
    }

    /// It is Frond's own.
    pub const fn own(self) -> Field {
        Field { standing: Some(SupportLevel::Own), is_stable: false, ..self }
    }

    /// MongoDB takes it and documents it nowhere: it comes from drivers and other servers. The
    /// stable API has it, unless it is said to be unstable, too.
    pub const fn internal(self) -> Field {
        Field { standing: None, ..self }
    }

    /// Messages name what is inside it so.
    pub const fn called(self, path: &'static str) -> Field {
        Field { path: Some(path), ..self }
    }

    /// Its line in the lists of features, if MongoDB documents it or it is Frond's own.
    pub fn feature(&self) -> Option<Feature> {
        self.standing.map(|standing| Feature::new(self.name, standing))
    }
}
