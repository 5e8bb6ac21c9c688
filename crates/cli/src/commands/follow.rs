//! `frond follow`: a versioned copy beside production.
//!
//! 1. All that a database of MongoDB holds is copied, and its change stream is followed from the
//!    moment at which the copy began ([`session`]).
//! 2. How far the copy is lies in the copy, and changes with the data ([`record`], [`target`]): it
//!    may be ended in any way at any time, and goes on without an event lost or taken over twice.
//! 3. Versions are recorded by rule ([`policy`]).
//! 4. The source is read only, and asked nothing that MongoDB doesn't know ([`source`]).

mod changes;
mod description;
mod event;
mod policy;
mod progress;
mod record;
mod session;
mod source;
mod target;

use std::thread;
use std::time::Duration;

use crate::arguments::{Answer, Target};
use crate::backend::{Backend, ServerUri};
use crate::commands::follow::policy::CommitTrigger;
use crate::commands::follow::progress::FollowDisplay;
use crate::commands::follow::session::Session;
use crate::commands::follow::source::Source;
use crate::failure::Failure;
use crate::terminal::Terminal;

const EXAMPLES: &str = "\
Examples:
  frond follow mongodb://user:secret@db1,db2/shop?tls=true      into ./frond-data, as shop
  frond follow mongodb://localhost/shop --into prod --commit-every 15m
  frond follow mongodb://localhost/shop --commit-every 10000    a version every 10,000 changes
  frond follow mongodb://localhost/shop --once                  up to now, then stop
  frond follow mongodb://localhost/shop --uri 127.0.0.1:27018   into a running server

It continues where it stopped, however it stopped. The source must be a replica set of MongoDB 6.0 or \
later, or frond serve; its user needs the role read on the database. Write to a \
branch of the copy, not to the copy itself. Users, capped collections and time series aren't \
copied.";

/// The time that a source that is lost is left alone before it is tried again, at first and at
/// most.
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(10);

/// How a source's URI begins.
const SCHEMES: [&str; 2] = ["mongodb://", "mongodb+srv://"];

/// When versions are recorded, if it isn't said.
const HOURLY: [CommitTrigger; 1] = [CommitTrigger::Time(Duration::from_secs(3_600))];

/// Keep a versioned copy of a MongoDB database as it changes
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Follow {
    /// Database to follow, mongodb://HOST/DATABASE or mongodb+srv://; FROND_SOURCE_PASSWORD, where
    /// it names a user without a password
    source: String,

    /// The copy, if it has another name than the source: DATABASE, or DATABASE@BRANCH of a branch
    /// that exists
    #[arg(long, value_name = "DATABASE")]
    into: Option<String>,

    /// Record a version after this much time (30s, 15m, 1h, 1d) if anything changed, or after this
    /// many changes; both may be given [default: 1h]
    #[arg(long, value_name = "TIME|CHANGES", value_parser = policy::parse)]
    commit_every: Vec<CommitTrigger>,

    /// Stop, with a version, once everything that the source has now is copied
    #[arg(long)]
    once: bool,

    /// Author of the versions, instead of the source
    #[arg(long, value_name = "AUTHOR")]
    author: Option<String>,

    #[command(flatten)]
    as_json: Answer,

    #[command(flatten)]
    target: Target,
}

impl Follow {
    /// Follows until it is ended, or with `--once` up to now.
    ///
    /// # Errors
    /// [`Failure::Usage`]; [`Failure::Failed`] if the source can't be followed, or not any more.
    pub fn run(&self, terminal: &mut Terminal) -> Result<(), Failure> {
        let server = self.server()?;
        // A source that can't be reached at all is an error, not tried for ever.
        let mut source = Some(Source::connect(&server)?);
        let mut display = FollowDisplay::new(terminal, self.as_json, self.place(&server));
        let mut copy: Option<Box<dyn Backend>> = None;
        let mut is_remote = false;
        let mut pause = PAUSE_MIN;
        loop {
            let backend = match copy.take() {
                Some(backend) => Ok(backend),
                None if is_remote => self.target.open_by_server(),
                None => self.target.open_or_make(),
            };
            let done = backend.and_then(|backend| {
                let backend = copy.insert(backend);
                let done =
                    self.follow(&mut **backend, source.take(), &server, &mut display, &mut pause);
                is_remote = copy.as_ref().is_some_and(|copy| copy.embedded().is_none());
                if matches!(done, Err(Failure::Lost(_))) && is_remote {
                    copy = None;
                }
                done
            });
            match done {
                Err(Failure::Lost(why)) => {
                    display.lost(&why);
                    thread::sleep(pause);
                    pause = (pause * 2).min(PAUSE_MAX);
                }
                done => {
                    let closed = copy.map_or(Ok(()), |backend| backend.close());
                    return done.and(closed);
                }
            }
        }
    }

    fn follow(
        &self,
        backend: &mut dyn Backend,
        source: Option<Source>,
        server: &ServerUri,
        display: &mut FollowDisplay<'_>,
        pause: &mut Duration,
    ) -> Result<(), Failure> {
        let source = match source {
            Some(source) => source,
            None => Source::connect(server)?,
        };
        let into = self.into.clone().unwrap_or_else(|| server.database.clone());
        let target = target::Target::new(backend, into)?;
        let mut session = Session::begin(self, source, target, display)?;
        *pause = PAUSE_MIN;
        session.run()
    }

    fn server(&self) -> Result<ServerUri, Failure> {
        let variable = |name: &str| std::env::var(name).ok();
        let server = ServerUri::parse(&self.source, variable("FROND_SOURCE_PASSWORD"))?;
        let is_uri = SCHEMES.iter().any(|scheme| self.source.starts_with(scheme));
        match server.database.is_empty() || !is_uri {
            true => Err(Failure::Usage(
                "the source is mongodb://HOST:PORT/DATABASE, with one database".to_owned(),
            )),
            false => Ok(server),
        }
    }

    /// The source without what is secret.
    fn place(&self, server: &ServerUri) -> String {
        format!("{}/{}", server.address, server.database)
    }

    fn author(&self, place: &str) -> String {
        self.author.clone().unwrap_or_else(|| format!("frond follow {place}"))
    }

    fn every(&self) -> &[CommitTrigger] {
        match &self.commit_every[..] {
            [] => &HOURLY,
            given => given,
        }
    }
}
