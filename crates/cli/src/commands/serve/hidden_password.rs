//! Takes a password off the command line, which every user of the machine can read.
//!
//! The program begins again with the password in its environment, which only its own user and root
//! can read, and without it among its arguments: `ps`, `getCmdLineOpts` and processes that it
//! starts don't have it. Until then, some milliseconds, the command line has it, as mongod's has.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use crate::commands::serve::mongod;
use crate::commands::serve::process::begin_with;
use crate::failure::Failure;

const FLAG: &str = "--tls-certificate-key-file-password";
const MONGOD_FLAG: &str = "--tlsCertificateKeyFilePassword";
const VARIABLE: &str = "FROND_TLS_CERTIFICATE_KEY_FILE_PASSWORD";

/// Begins the program again where its arguments have a password.
///
/// # Errors
/// [`Failure::Failed`] if it can't be begun.
pub fn hide(arguments: &[OsString]) -> Result<(), Failure> {
    let Some(without) = without_password(arguments) else { return Ok(()) };
    let error = begin_with(&without.arguments, Some((VARIABLE, &without.password)));
    Err(Failure::failed(format!("can't begin again without the password in sight: {error}")))
}

/// A command line whose password was taken out.
#[derive(PartialEq, Debug)]
struct WithoutPassword {
    arguments: Vec<OsString>,
    password: OsString,
}

/// Takes out the password of a command line that is a server's; `None` if there is none, or the
/// word behind the option is missing, which is reported later.
fn without_password(arguments: &[OsString]) -> Option<WithoutPassword> {
    let flag = match mongod::arguments_of(arguments) {
        Some(_) => MONGOD_FLAG,
        None if arguments.iter().any(|word| word == "serve") => FLAG,
        None => return None,
    };
    let mut without = WithoutPassword { arguments: Vec::new(), password: OsString::new() };
    let mut is_found = false;
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        match value_of(word, flag) {
            None => without.arguments.push(word.clone()),
            // The last of several holds.
            Some(value) => {
                without.password = value.or_else(|| words.next().cloned())?;
                is_found = true;
            }
        }
    }
    is_found.then_some(without)
}

/// Whether a word is the option; and its value, if that is part of the word.
fn value_of(word: &OsStr, flag: &str) -> Option<Option<OsString>> {
    match word.as_bytes().strip_prefix(flag.as_bytes())? {
        [] => Some(None),
        [b'=', value @ ..] => Some(Some(OsString::from_vec(value.to_vec()))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_password_is_taken_out() {
        let words =
            |text: &str| -> Vec<OsString> { text.split_whitespace().map(OsString::from).collect() };
        for (line, expected) in [
            (
                "frond serve --data d --tls-certificate-key-file-password=p=1 --auth",
                Some(("frond serve --data d --auth", "p=1")),
            ),
            (
                "frond serve --tls-certificate-key-file-password p --auth",
                Some(("frond serve --auth", "p")),
            ),
            (
                "/bin/mongod --tlsCertificateKeyFilePassword a --tlsCertificateKeyFilePassword=b",
                Some(("/bin/mongod", "b")),
            ),
            ("frond mongod --tlsCertificateKeyFilePassword", None),
            ("frond serve --tls-certificate-key-file f", None),
            ("frond serve --tls-certificate-key-file-passwords x", None),
            ("frond commit --tls-certificate-key-file-password x", None),
        ] {
            let found = without_password(&words(line));
            let expected = expected.map(|(arguments, password)| WithoutPassword {
                arguments: words(arguments),
                password: password.into(),
            });
            assert_eq!(found, expected, "{line}");
        }
    }
}
