//! The identity of a member, and of the others: the file `set-member` of its data directory.
//!
//! A directory draws its id before it shows it to others, and keeps it: one that was lost and is
//! made anew is another member, since it doesn't know what the lost one had acknowledged. The
//! members with which the set begins are noted once all have exchanged their ids, and stay. One
//! that takes another's place notes the same, and isn't among them.
//!
//! *Form*: lines of text. `frond-set-member 0`, `set NAME`, `self HOST:PORT ID`, and for each
//! member of the set, once that is known, `member HOST:PORT ID`. Ids are 16 hexadecimal digits.

use frond_quorum::{MemberId, SetId};
use frond_store::StoreError;
use frond_store::io::Machine;
use ring::digest::{SHA256, digest};

const FILE_NAME: &str = frond_db::set::MEMBER_FILE;
const NEW_FILE_NAME: &str = "set-member.new";
const HEAD: &str = "frond-set-member 0";
const FILE_BYTES_MAX: u64 = 64 << 10;

/// See the module.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Identity {
    /// The set's name.
    pub set: String,
    /// `HOST:PORT` by which clients and members reach it.
    pub address: String,
    /// Its id.
    pub id: MemberId,
    /// The members with which the set began, in the order of their addresses; empty while that
    /// isn't known.
    pub members: Vec<(String, MemberId)>,
}

impl Identity {
    /// A new member of a set whose members aren't known yet.
    pub fn draw(machine: &Machine, set: &str, address: &str) -> Identity {
        let mut id = [0; size_of::<u64>()];
        machine.chance.fill(&mut id);
        // 0 is no member.
        let id = MemberId(u64::from_le_bytes(id).max(1));
        Identity { set: set.to_owned(), address: address.to_owned(), id, members: Vec::new() }
    }

    /// Reads the identity from the directory; `None` if it belongs to no set.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] if the file isn't what was written; what the disk says.
    pub fn read(machine: &Machine) -> Result<Option<Identity>, StoreError> {
        let Some(text) = read_file(machine, FILE_NAME)? else { return Ok(None) };
        Identity::parse(&text).map(Some).map_err(|what| StoreError::damaged(FILE_NAME, 0, &what))
    }

    /// Writes it, durably.
    ///
    /// # Errors
    /// An error of the disk.
    pub fn write(&self, machine: &Machine) -> Result<(), StoreError> {
        replace_file(machine, FILE_NAME, NEW_FILE_NAME, &self.to_text())
    }

    /// As it is stored and sent.
    pub fn to_text(&self) -> String {
        let Identity { set, address, id, members } = self;
        let mut text = format!("{HEAD}\nset {set}\nself {address} {:016x}\n", id.0);
        for (address, id) in members {
            text.push_str(&format!("member {address} {:016x}\n", id.0));
        }
        text
    }

    /// Reads what `to_text` made.
    ///
    /// # Errors
    /// Says what isn't as it should be.
    pub fn parse(text: &str) -> Result<Identity, String> {
        let mut lines = text.lines();
        if lines.next() != Some(HEAD) {
            return Err(format!("it doesn't begin with '{HEAD}'"));
        }
        let set = lines.next().and_then(|line| line.strip_prefix("set "));
        let own = lines.next().and_then(|line| member(line.strip_prefix("self ")?));
        let (Some(set), Some((address, id))) = (set, own) else {
            return Err("the set or the member has no name".to_owned());
        };
        let members = lines.map(|line| line.strip_prefix("member ").and_then(member));
        let members: Option<Vec<_>> = members.collect();
        let members = members.ok_or("a line isn't a member")?;
        Ok(Identity { set: set.to_owned(), address, id, members })
    }

    /// The set: members of one that has this name and other members aren't listened to.
    pub fn set_id(&self) -> SetId {
        let named = Identity { address: String::new(), id: MemberId(0), ..self.clone() };
        let digest = digest(&SHA256, named.to_text().as_bytes());
        let id = digest.as_ref().first_chunk().expect("it has 32 bytes");
        SetId(u64::from_le_bytes(*id))
    }
}

/// The text of a small file, if it is there.
pub(super) fn read_file(machine: &Machine, name: &str) -> Result<Option<String>, StoreError> {
    let io = |error| StoreError::io(name, error);
    if !machine.disk.list().map_err(io)?.iter().any(|found| found == name) {
        return Ok(None);
    }
    let file = machine.disk.open(name).map_err(io)?;
    let bytes = file.bytes().map_err(io)?.min(FILE_BYTES_MAX);
    let mut text = vec![0; bytes as usize];
    file.read_exact_at(0, &mut text).map_err(io)?;
    Ok(Some(String::from_utf8_lossy(&text).into_owned()))
}

/// Puts a small file in the place of one that there may be, durably, by way of `new_name`.
pub(super) fn replace_file(
    machine: &Machine,
    name: &str,
    new_name: &str,
    text: &str,
) -> Result<(), StoreError> {
    let io = |error| StoreError::io(name, error);
    let disk = &*machine.disk;
    if disk.list().map_err(io)?.iter().any(|found| found == new_name) {
        disk.remove(new_name).map_err(io)?;
    }
    let file = disk.create(new_name).map_err(io)?;
    file.write_all_at(0, text.as_bytes())
        .and_then(|()| file.sync())
        .and_then(|()| disk.rename(new_name, name))
        .and_then(|()| disk.sync_directory())
        .map_err(io)
}

fn member(text: &str) -> Option<(String, MemberId)> {
    let (address, id) = text.split_once(' ')?;
    let id = u64::from_str_radix(id, 16).ok().filter(|id| *id != 0)?;
    Some((address.to_owned(), MemberId(id)))
}

#[cfg(test)]
mod tests {
    use frond_testkit::SimDisk;

    use super::*;

    #[test]
    fn it_is_kept_over_a_crash() {
        let disk = SimDisk::new(1);
        assert_eq!(Identity::read(&disk.machine()).expect("read"), None);
        let mut own = Identity::draw(&disk.machine(), "rs0", "a:1");
        own.write(&disk.machine()).expect("written");
        let disk = disk.crash();
        assert_eq!(Identity::read(&disk.machine()).expect("read"), Some(own.clone()));
        own.members = vec![("a:1".to_owned(), own.id), ("b:1".to_owned(), MemberId(7))];
        own.write(&disk.machine()).expect("written");
        let disk = disk.crash();
        let read = Identity::read(&disk.machine()).expect("read");
        assert_eq!(read, Some(own.clone()));
        let other = Identity { address: "b:1".to_owned(), id: MemberId(7), ..own.clone() };
        assert_eq!(own.set_id(), other.set_id());
        assert_ne!(own.set_id(), Identity { set: "rs1".to_owned(), ..own }.set_id());
    }

    #[test]
    fn malformed_bytes_are_refused() {
        let head = "frond-set-member 0\nset rs0\n";
        for text in ["", "frond-set-member 1\n", head, &format!("{head}self a:1 0\n")] {
            assert!(Identity::parse(text).is_err(), "{text}");
        }
        let right = format!("{head}self a:1 0f\nmember a:1 0f\n");
        assert!(Identity::parse(&right).is_ok());
        assert!(Identity::parse(&format!("{right}other\n")).is_err());
    }
}
