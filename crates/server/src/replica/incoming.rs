//! A copy that is complete, and takes the place of a member's content when it starts: the file
//! `set-incoming` of its data directory.
//!
//! Nothing else has the directory open then. The steps can be done again after a crash: the file
//! goes last, and durably.
//!
//! *Form*: lines of text. `frond-set-incoming 0`, `root HASH`, `behind ENTRY TERM`, and for each
//! member of the set then `voter ID` or `learner ID`.

use frond_db::Error;
use frond_quorum::{Ballot, Beginning, Configuration, Continuation, EntryIndex, FileLog};
use frond_quorum::{MemberId, Term};
use frond_store::io::Machine;
use frond_store::{ChunkHash, StoreError};

use super::identity::{self, Identity};

const FILE_NAME: &str = "set-incoming";
const NEW_FILE_NAME: &str = "set-incoming.new";
const HEAD: &str = "frond-set-incoming 0";

/// The point from which a member goes on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Incoming {
    /// The image whose chunks the directory has.
    pub root: ChunkHash,
    /// The entry up to which the image has all.
    pub beginning: Beginning,
}

impl Incoming {
    /// Writes it, durably.
    ///
    /// # Errors
    /// An error of the disk.
    pub fn write(&self, machine: &Machine) -> Result<(), StoreError> {
        identity::replace_file(machine, FILE_NAME, NEW_FILE_NAME, &self.to_text())
    }

    /// Makes a complete copy, if there is one, the content of a directory that isn't open.
    ///
    /// # Errors
    /// An error of the disk; `Damaged` if the copy isn't there. Then it is to be done again.
    pub fn install(machine: &Machine, own: &Identity) -> Result<(), Error> {
        let Some(text) = identity::read_file(machine, FILE_NAME)? else { return Ok(()) };
        let incoming = Incoming::parse(&text)
            .ok_or_else(|| StoreError::damaged(FILE_NAME, 0, "a line is malformed"))?;
        if let Some(continuation) = incoming.continuation(machine, own)? {
            frond_vcs::remote::install_copy(machine, incoming.root)?;
            if let Continuation::Replaced(ballot) = continuation {
                let set = own.set_id();
                FileLog::replace(machine, own.id, set, incoming.beginning, ballot)?;
            }
        }
        let io = |error| StoreError::io(FILE_NAME, error);
        machine.disk.remove(FILE_NAME).map_err(io)?;
        Ok(machine.disk.sync_directory().map_err(io)?)
    }

    /// Returns how the member's log goes on; `None`: the copy is of no use.
    fn continuation(
        &self,
        machine: &Machine,
        own: &Identity,
    ) -> Result<Option<Continuation>, StoreError> {
        if FileLog::owner(machine)? != Some((own.id, own.set_id())) {
            return Ok(Some(Continuation::Replaced(Ballot::default())));
        }
        match FileLog::open(machine) {
            Ok((_, recovered)) => match recovered.continuation(&self.beginning) {
                Continuation::Further => Ok(None),
                continuation => Ok(Some(continuation)),
            },
            // It can't go on as this member.
            Err(StoreError::Damaged { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// As it is stored, and sent.
    pub fn to_text(&self) -> String {
        let Incoming { root, beginning: Beginning { before, term, configuration } } = self;
        let root: String = root.0.iter().map(|byte| format!("{byte:02x}")).collect();
        let mut text = format!("{HEAD}\nroot {root}\nbehind {} {}\n", before.0, term.0);
        for voter in &configuration.voters {
            text.push_str(&format!("voter {:016x}\n", voter.0));
        }
        for learner in &configuration.learners {
            text.push_str(&format!("learner {:016x}\n", learner.0));
        }
        text
    }

    /// Reads what `to_text` made; `None`: it isn't that.
    pub fn parse(text: &str) -> Option<Incoming> {
        let mut lines = text.lines();
        lines.next().filter(|line| *line == HEAD)?;
        let root = parse_hash(lines.next()?.strip_prefix("root ")?)?;
        let (before, term) = lines.next()?.strip_prefix("behind ")?.split_once(' ')?;
        let (before, term) = (EntryIndex(before.parse().ok()?), Term(term.parse().ok()?));
        let mut configuration = Configuration::default();
        for line in lines {
            let (kind, id) = line.split_once(' ')?;
            let id = MemberId(u64::from_str_radix(id, 16).ok().filter(|id| *id != 0)?);
            let is_new = match kind {
                "voter" => configuration.voters.insert(id),
                "learner" => configuration.learners.insert(id),
                _ => false,
            };
            if !is_new {
                return None;
            }
        }
        Some(Incoming { root, beginning: Beginning { before, term, configuration } })
    }
}

fn parse_hash(text: &str) -> Option<ChunkHash> {
    let mut hash = ChunkHash([0; 32]);
    if !text.is_ascii() || text.len() != 2 * hash.0.len() {
        return None;
    }
    for (position, byte) in hash.0.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * position..2 * position + 2], 16).ok()?;
    }
    Some(hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_reads_back_and_what_is_none_is_refused() {
        let mut configuration = Configuration::of([1, 7].map(MemberId));
        configuration.learners.insert(MemberId(9));
        let beginning = Beginning { before: EntryIndex(12), term: Term(3), configuration };
        let incoming = Incoming { root: ChunkHash([0xa7; 32]), beginning };
        let text = incoming.to_text();
        assert_eq!(Incoming::parse(&text), Some(incoming));
        for wrong in [
            text.replace("incoming 0", "incoming 1"),
            text.replace("root a7", "root g7"),
            text.replace("root a7", "root \u{e4}"),
            text.replace("behind 12 3", "behind 12"),
            format!("{text}voter 0000000000000001\n"),
            format!("{text}voter 0000000000000000\n"),
            format!("{text}other 0000000000000005\n"),
        ] {
            assert_eq!(Incoming::parse(&wrong), None, "{wrong}");
        }
    }
}
