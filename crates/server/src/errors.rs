//! Errors in the form of answers.

use frond_db::Error;
use frond_doc::{DocumentBuf, DocumentBuilder, Value};

/// The answer that an error is.
pub fn error_document(error: &Error) -> DocumentBuf {
    error_builder(error).build()
}

/// As [`error_document`], to be added to.
pub fn error_builder(error: &Error) -> DocumentBuilder {
    let mut builder = DocumentBuilder::new();
    builder.append("ok", Value::Double(0.0));
    append_error(&mut builder, error, "errmsg");
    builder.append("codeName", Value::String(&error.code.name()));
    append_details(&mut builder, error);
    builder
}

/// Appends an error's message and code.
pub fn append_error(builder: &mut DocumentBuilder, error: &Error, message_name: &str) {
    builder.append(message_name, Value::String(&error.message));
    builder.append("code", Value::Int32(error.code.number()));
}

/// Appends the details of an error besides its message and code.
pub fn append_details(builder: &mut DocumentBuilder, error: &Error) {
    for (name, value) in error.details.iter().flat_map(DocumentBuf::iter) {
        builder.append(name, value);
    }
}

#[cfg(test)]
mod tests {
    use frond_doc::document;
    use frond_query::Code;

    use super::*;

    #[test]
    fn an_error_has_its_details() {
        let key = document! { "a": 1_i32 };
        let details = Some(document! { "keyPattern": &key });
        let error = Error { details, ..Error::invalid(Code::DuplicateKey, "twice") };
        let expected = document! {
            "ok": 0.0, "errmsg": "twice", "code": 11000_i32, "codeName": "DuplicateKey",
            "keyPattern": &key,
        };
        assert_eq!(error_document(&error), expected);
    }
}
