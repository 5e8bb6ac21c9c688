//! The fields by which a command says that it is part of a transaction, or a retryable write.

use frond_db::Error;
use frond_query::Code;

use super::{SessionId, UserDigest};

/// A command's place in a transaction, or its identity as a retryable write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// A write that may be sent again.
    Write {
        /// Its session.
        session: SessionId,
        /// Its number.
        number: i64,
    },
    /// A command of a transaction.
    Statement {
        /// Its session.
        session: SessionId,
        /// Its number.
        number: i64,
        /// Whether it is the first.
        starts: bool,
    },
}

impl Part {
    /// Makes its session one of `user`.
    pub fn set_user(&mut self, user: UserDigest) {
        let (Part::Write { session, .. } | Part::Statement { session, .. }) = self;
        session.user = user;
    }
}

/// Fields of a command that say which transaction it belongs to.
#[derive(Clone, Copy, Debug, Default)]
pub struct PartFields {
    /// `txnNumber`.
    pub number: Option<i64>,
    /// `autocommit`.
    pub autocommit: Option<bool>,
    /// `startTransaction`.
    pub starts: Option<bool>,
}

impl PartFields {
    /// Returns the meaning of the fields together.
    ///
    /// # Errors
    /// `InvalidOptions` where they contradict one another.
    pub fn read(&self, session: Option<SessionId>) -> Result<Option<Part>, Error> {
        let refuse = |message: &str| Err(Error::invalid(Code::InvalidOptions, message));
        let Some(number) = self.number else {
            return match (self.autocommit, self.starts) {
                (None, None) => Ok(None),
                (Some(_), _) => {
                    refuse("'autocommit' field requires a transaction number to also be specified")
                }
                (None, Some(_)) => refuse(
                    "'startTransaction' field requires 'autocommit' field to also be specified",
                ),
            };
        };
        let Some(session) = session else {
            return refuse("Transaction number requires a session ID to also be specified");
        };
        if number < 0 {
            return refuse("Transaction number cannot be negative");
        }
        match (self.autocommit, self.starts) {
            (Some(true), _) => refuse("Specifying autocommit=true is not allowed."),
            (_, Some(false)) => refuse("Specifying startTransaction=false is not allowed."),
            (None, Some(true)) => {
                refuse("'startTransaction' field requires 'autocommit' field to also be specified")
            }
            (None, None) => Ok(Some(Part::Write { session, number })),
            (Some(false), starts) => {
                Ok(Some(Part::Statement { session, number, starts: starts.is_some() }))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_say_what_a_command_is() {
        let session = SessionId::anonymous([1; 16]);
        let statement = |starts| Some(Part::Statement { session, number: 3, starts });
        for (number, autocommit, starts, expected) in [
            (None, None, None, Ok(None)),
            (Some(3), None, None, Ok(Some(Part::Write { session, number: 3 }))),
            (Some(3), Some(false), Some(true), Ok(statement(true))),
            (Some(3), Some(false), None, Ok(statement(false))),
            (Some(3), Some(true), None, Err(72)),
            (Some(3), None, Some(true), Err(72)),
            (Some(3), Some(false), Some(false), Err(72)),
            (None, Some(false), None, Err(72)),
            (None, None, Some(true), Err(72)),
            (Some(-1), None, None, Err(72)),
        ] {
            let fields = PartFields { number, autocommit, starts };
            let found = fields.read(Some(session)).map_err(|error| error.code.number());
            assert_eq!(found, expected, "{fields:?}");
        }
        let fields = PartFields { number: Some(3), ..PartFields::default() };
        assert!(fields.read(None).is_err());
    }
}
