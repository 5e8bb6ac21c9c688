//! How servers that were started by themselves, as `mongod --replSet NAME` is, become the members
//! of one set: `replSetInitiate` with several members, sent to one of them.
//!
//! 1. A server that is started so on a new directory waits ([`waits`]): until the command it takes
//!    no writes, or clients that know several such servers would write to each of them.
//! 2. Only servers that hold nothing: what one of them has the others would lack.
//! 3. The one that got the command asks the others whether they can be members, has them note the
//!    set in their data directories ([`BegunSet::write`]), and then begin ([`Step`]). Where one
//!    can't note it, all forget it. The streams are as those between members ([`super::channel`]).
//!    If the asking server dies in between, or one of them forgets nothing: who has noted a set
//!    begins when a member of it calls, and a member that hasn't met the others yet agrees to its
//!    own set again.
//! 4. To begin, each starts again. What every server writes is there, and a member, which takes the
//!    set's times from its first entry on, can't begin with it: [`empty`] looks again whether the
//!    directory holds nothing and empties it. From there on all is as with `--members`.
//!
//! The key of these streams, and of the set, is made of what all were started with: a key file, or,
//! where no client needs to log in either, the set's name.
//!
//! *Form* of the file `set-begins`, and of a message after its first line, which is the step: lines
//! of text, `frond-set-begins 0`, `set NAME`, `self HOST:PORT`, and `member HOST:PORT` for each
//! member. An empty file `set-empties` is there while the directory is being emptied, and an empty
//! file `set-waits` while the server waits.

use std::fs::{self, File};
use std::io::{self, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

use frond_db::{Error, FrondOptions};
use frond_store::StoreError;
use frond_store::io::{Disk, Machine};

use super::channel::{Receiver, Sender, Side, connect, secure};
use super::identity::Identity;
use super::key::ClusterKey;

const FILE_NAME: &str = "set-begins";
const NEW_FILE_NAME: &str = "set-begins.new";
const EMPTYING_FILE_NAME: &str = "set-empties";
const WAITING_FILE_NAME: &str = "set-waits";
const HEAD: &str = "frond-set-begins 0";
const YES: &str = "yes";
/// Why a server can't be a member.
pub const HOLDS_DATA: &str = "it holds data, and a replica set begins with empty data \
     directories: import what another server has exported";
/// Why a server that is in a set can't be one. Programs that start sets take it for done.
pub const ALREADY_INITIALIZED: &str = "already initialized";
/// The time that a server has for an answer.
const ANSWER_WAIT_MAX: Duration = Duration::from_secs(5);

/// What a server needs that may become a member.
#[derive(Clone, Debug)]
pub struct SetBeginning {
    /// The key that all have.
    pub key: ClusterKey,
    /// Begins the process anew; it doesn't return.
    pub restart: fn(),
}

/// A set that begins, as one of its members has it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BegunSet {
    /// The set's name.
    pub set: String,
    /// The address of this member.
    pub own: String,
    /// The addresses of all.
    pub members: Vec<String>,
}

/// What a server is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// To say whether it can be a member.
    Look,
    /// To note the set.
    Note,
    /// To become one.
    Begin,
    /// To forget a set that it has noted.
    Forget,
}

impl Step {
    const ALL: [Step; 4] = [Step::Look, Step::Note, Step::Begin, Step::Forget];

    fn name(self) -> &'static str {
        match self {
            Step::Look => "look",
            Step::Note => "note",
            Step::Begin => "begin",
            Step::Forget => "forget",
        }
    }
}

impl BegunSet {
    /// Reads what the data directory `directory` was told; `None` if nothing.
    ///
    /// # Errors
    /// Says what of the file is wrong.
    pub fn read(directory: &Path) -> Result<Option<BegunSet>, String> {
        let path = directory.join(FILE_NAME);
        let wrong = |what: &dyn std::fmt::Display| format!("{}: {what}", path.display());
        match fs::read_to_string(&path) {
            Ok(text) => BegunSet::parse(&text).map(Some).map_err(|what| wrong(&what)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(wrong(&error)),
        }
    }

    /// Notes it in a data directory, durably.
    ///
    /// # Errors
    /// An error of the disk.
    pub fn write(&self, directory: &Path) -> io::Result<()> {
        let beside = directory.join(NEW_FILE_NAME);
        let mut file = File::create(&beside)?;
        file.write_all(self.to_text().as_bytes())?;
        file.sync_all()?;
        fs::rename(&beside, directory.join(FILE_NAME))?;
        File::open(directory)?.sync_all()
    }

    /// Removes it from a data directory, durably, if that has noted it.
    ///
    /// # Errors
    /// An error of the disk; says what of the file is wrong.
    pub fn forget(&self, directory: &Path) -> io::Result<()> {
        match BegunSet::read(directory).map_err(io::Error::other)?.as_ref() == Some(self) {
            true => remove(directory, FILE_NAME),
            false => Ok(()),
        }
    }

    /// Whether a member belongs to it, and isn't this one.
    pub fn has_other(&self, member: &Identity) -> bool {
        let address = &member.address;
        self.set == member.set && self.own != *address && self.members.contains(address)
    }

    /// Whether another has the same members, and is the same one of them.
    pub fn is_same(&self, other: &BegunSet) -> bool {
        let sorted = |set: &BegunSet| {
            let mut members = set.members.clone();
            members.sort_unstable();
            members
        };
        (&self.set, &self.own, sorted(self)) == (&other.set, &other.own, sorted(other))
    }

    /// The same set, as another member has it.
    #[must_use]
    pub fn of(&self, member: &str) -> BegunSet {
        BegunSet { own: member.to_owned(), ..self.clone() }
    }

    fn to_text(&self) -> String {
        let mut text = format!("{HEAD}\nset {}\nself {}\n", self.set, self.own);
        for member in &self.members {
            text.push_str(&format!("member {member}\n"));
        }
        text
    }

    fn parse(text: &str) -> Result<BegunSet, &'static str> {
        let mut lines = text.lines();
        if lines.next() != Some(HEAD) {
            return Err("it doesn't begin with 'frond-set-begins 0'");
        }
        let mut named = |name: &str| lines.next().and_then(|line| line.strip_prefix(name));
        let (Some(set), Some(own)) = (named("set "), named("self ")) else {
            return Err("the set or the member has no name");
        };
        let (set, own) = (set.to_owned(), own.to_owned());
        let members = lines.map(|line| line.strip_prefix("member ").map(str::to_owned));
        let members: Vec<String> = members.collect::<Option<_>>().ok_or("a line isn't a member")?;
        match members.contains(&own) {
            true => Ok(BegunSet { set, own, members }),
            false => Err("it isn't a member of its set"),
        }
    }
}

/// Whether a server that is started as `mongod --replSet NAME` on `directory` waits for
/// `replSetInitiate`: from when it is first started, which is noted before anything else is there.
///
/// # Errors
/// An error of the disk.
pub fn waits(directory: &Path) -> io::Result<bool> {
    fs::create_dir_all(directory)?;
    let mut is_new = true;
    for file in fs::read_dir(directory)? {
        let name = file?.file_name();
        if name == WAITING_FILE_NAME {
            return Ok(true);
        }
        is_new &= name.to_str().is_none_or(|name| !is_content(name));
    }
    if is_new {
        File::create(directory.join(WAITING_FILE_NAME))?.sync_all()?;
        File::open(directory)?.sync_all()?;
    }
    Ok(is_new)
}

/// Notes in a data directory, durably, that its server doesn't wait any more.
///
/// # Errors
/// An error of the disk.
pub fn end_wait(directory: &Path) -> io::Result<()> {
    remove(directory, WAITING_FILE_NAME)
}

fn remove(directory: &Path, name: &str) -> io::Result<()> {
    match fs::remove_file(directory.join(name)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    File::open(directory)?.sync_all()
}

/// Empties the data directory of a server that held nothing, for the member that it becomes. After
/// a crash the rest of it is done.
///
/// # Errors
/// `BadValue` if it holds something; if it can't be opened; an error of the disk.
pub fn empty(machine: &Machine, options: FrondOptions) -> Result<(), Error> {
    let disk = &*machine.disk;
    let io = |error| Error::from(StoreError::io("the directory", error));
    let is_emptying = disk.list().map_err(io)?.iter().any(|name| name == EMPTYING_FILE_NAME);
    if !is_emptying {
        check_empty(machine, options)?;
    }
    disk.lock().map_err(io)?;
    let emptied = remove_content(disk, is_emptying).map_err(io);
    disk.unlock();
    emptied
}

fn check_empty(machine: &Machine, options: FrondOptions) -> Result<(), Error> {
    let frond = frond_vcs::open_on(machine, options)?;
    let is_empty = frond.holds_nothing()?;
    frond.close()?;
    match is_empty {
        true => Ok(()),
        false => Err(Error::bad_value(format!(
            "{HOLDS_DATA}; or remove {FILE_NAME}, and it is a server by itself"
        ))),
    }
}

fn remove_content(disk: &dyn Disk, is_emptying: bool) -> io::Result<()> {
    if !is_emptying {
        disk.create(EMPTYING_FILE_NAME)?.sync()?;
        disk.sync_directory()?;
    }
    for name in disk.list()?.iter().filter(|name| is_content(name)) {
        disk.remove(name)?;
    }
    disk.sync_directory()?;
    disk.remove(EMPTYING_FILE_NAME)?;
    disk.sync_directory()
}

/// Whether a file is the database's own. A log file or a certificate may lie beside these.
fn is_content(name: &str) -> bool {
    const BEGINNINGS: [&str; 6] =
        ["MANIFEST", "COPIES", "RESERVE", "UNSYNCED", "log-", "spare-log-"];
    const ENDS: [&str; 2] = [".pack", ".index"];
    BEGINNINGS.iter().any(|beginning| name.starts_with(beginning))
        || ENDS.iter().any(|end| name.ends_with(end))
}

/// Asks the server that is to be `set.own` for `step`.
///
/// # Errors
/// An error of the socket; why it refuses.
pub fn ask(set: &BegunSet, step: Step, key: &ClusterKey) -> io::Result<()> {
    let (mut sender, mut receiver) = stream(connect(&set.own)?, key, Side::Caller)?;
    sender.send(format!("{}\n{}", step.name(), set.to_text()).as_bytes())?;
    match &*String::from_utf8_lossy(&receiver.receive()?) {
        YES => Ok(()),
        why => Err(io::Error::other(why.to_owned())),
    }
}

/// The question of another server to one that waits.
pub enum Question {
    /// A server that makes a set.
    Step(Step, BegunSet),
    /// A member of a set that has begun.
    Member(Identity),
}

/// Answers a server that asks: `decide` says whether, or why not. Returns what was agreed to. A
/// member gets no answer: it calls again.
///
/// # Errors
/// An error of the socket; `InvalidData` if it asks for something else.
pub fn answer(
    called: TcpStream,
    key: &ClusterKey,
    decide: impl FnOnce(&Question) -> Result<(), String>,
) -> io::Result<Option<Question>> {
    let (mut sender, mut receiver) = stream(called, key, Side::Called)?;
    let message = String::from_utf8_lossy(&receiver.receive()?).into_owned();
    let question = match (read_step(&message), Identity::parse(&message)) {
        (Some((step, set)), _) => Question::Step(step, set),
        (None, Ok(member)) => Question::Member(member),
        (None, Err(what)) => return Err(io::Error::new(io::ErrorKind::InvalidData, what)),
    };
    let decided = decide(&question);
    if let Question::Step(..) = question {
        send_decision(&mut sender, &decided)?;
    }
    Ok(decided.ok().map(|()| question))
}

/// Reads the message of a server that makes a set; `None`: it is another's.
pub fn read_step(message: &str) -> Option<(Step, BegunSet)> {
    let (name, text) = message.split_once('\n')?;
    let step = Step::ALL.into_iter().find(|step| step.name() == name)?;
    Some((step, BegunSet::parse(text).ok()?))
}

/// Answers that message.
///
/// # Errors
/// An error of the socket.
pub fn send_decision(sender: &mut Sender, decided: &Result<(), String>) -> io::Result<()> {
    sender.send(decided.as_ref().map_or_else(String::as_bytes, |()| YES.as_bytes()))
}

fn stream(stream: TcpStream, key: &ClusterKey, side: Side) -> io::Result<(Sender, Receiver)> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(ANSWER_WAIT_MAX))?;
    stream.set_write_timeout(Some(ANSWER_WAIT_MAX))?;
    secure(stream, key, side)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread;

    use frond_db::Durability;
    use frond_doc::document;
    use frond_testkit::SimDisk;

    use super::*;

    fn set(own: &str) -> BegunSet {
        let members = vec![own.to_owned(), "b:2".to_owned()];
        BegunSet { set: "rs0".to_owned(), own: own.to_owned(), members }
    }

    #[test]
    fn it_is_noted() {
        let directory = std::env::temp_dir().join(format!("frond-begins-{}", std::process::id()));
        fs::create_dir(&directory).expect("made");
        assert_eq!(BegunSet::read(&directory), Ok(None));
        set("a:1").write(&directory).expect("written");
        assert_eq!(BegunSet::read(&directory), Ok(Some(set("a:1"))));
        for text in ["", "frond-set-begins 0\nset rs0\nself a:1\nmember b:2\n"] {
            fs::write(directory.join(FILE_NAME), text).expect("written");
            assert!(BegunSet::read(&directory).is_err(), "{text}");
        }
        fs::remove_dir_all(&directory).expect("removed");
    }

    #[test]
    fn a_new_directory_waits_until_its_wait_is_ended() {
        let directory = std::env::temp_dir().join(format!("frond-waits-{}", std::process::id()));
        for _ in 0..2 {
            assert!(waits(&directory).expect("noted"));
            fs::write(directory.join("MANIFEST-a"), "").expect("written");
        }
        end_wait(&directory).expect("noted");
        assert!(!waits(&directory).expect("read"), "it has data");
        end_wait(&directory).expect("nothing to note");
        set("a:1").write(&directory).expect("written");
        set("b:2").forget(&directory).expect("another's is passed over");
        assert_eq!(BegunSet::read(&directory), Ok(Some(set("a:1"))));
        set("a:1").forget(&directory).expect("removed");
        assert_eq!(BegunSet::read(&directory), Ok(None));
        fs::remove_dir_all(&directory).expect("removed");
    }

    #[test]
    fn a_directory_that_holds_nothing_is_emptied() {
        let (disk, options) = (SimDisk::new(1), FrondOptions::default());
        let frond = frond_vcs::open_on(&disk.machine(), options).expect("opened");
        // What a server notes in its first seconds.
        frond.accept_clock().expect("noted");
        assert_ne!(frond.operation_time().0, 0);
        frond.close().expect("closed");
        drop(frond);
        disk.create("ca.pem").expect("created");
        empty(&disk.machine(), options).expect("emptied");
        let mut names = disk.list().expect("listed");
        names.retain(|name| name != "LOCK");
        assert_eq!(names, ["ca.pem"]);
    }

    #[test]
    fn a_directory_that_holds_something_stays() {
        let (disk, options) = (SimDisk::new(1), FrondOptions::default());
        let open = || frond_vcs::open_on(&disk.machine(), options).expect("opened");
        let frond = open();
        let shop = frond.database("shop").expect("named");
        let report = shop.insert("items", &[document! { "_id": 1_i32 }], true, Durability::Synced);
        assert!(report.expect("it is there").errors.is_empty());
        frond.close().expect("closed");
        drop((frond, shop));
        let error = empty(&disk.machine(), options).expect_err("it holds a document");
        assert!(error.to_string().contains("it holds data"), "{error}");
        assert!(!open().holds_nothing().expect("read"), "it is still there");
    }

    #[test]
    fn a_crash_while_it_is_emptied_is_followed_by_the_rest() {
        let (disk, options) = (SimDisk::new(1), FrondOptions::default());
        frond_vcs::open_on(&disk.machine(), options).expect("opened").close().expect("closed");
        disk.create(EMPTYING_FILE_NAME).expect("created");
        // Without this one nothing can be opened any more.
        for name in disk.list().expect("listed").iter().filter(|name| name.starts_with("MAN")) {
            disk.remove(name).expect("removed");
        }
        empty(&disk.machine(), options).expect("emptied");
        frond_vcs::open_on(&disk.machine(), options).expect("opened as a new one");
    }

    /// Asks a server that has the key of `theirs` and refuses to begin.
    fn answer_to(step: Step, ours: &str, theirs: &str) -> Result<(), String> {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let own = listener.local_addr().expect("it has one").to_string();
        let [ours, theirs] = [ours, theirs].map(|secret| ClusterKey::derived(secret.as_bytes()));
        thread::scope(|scope| {
            scope.spawn(|| {
                let called = listener.accept().expect("it comes").0;
                let _ = answer(called, &theirs, |question| match question {
                    Question::Step(Step::Look, set) if set.set == "rs0" => Ok(()),
                    _ => Err("it holds data".to_owned()),
                });
            });
            ask(&set(&own), step, &ours).map_err(|error| error.to_string())
        })
    }

    #[test]
    fn a_server_agrees_or_says_why_not() {
        assert_eq!(answer_to(Step::Look, "secret", "secret"), Ok(()));
        assert_eq!(answer_to(Step::Begin, "secret", "secret"), Err("it holds data".to_owned()));
        assert!(answer_to(Step::Look, "secret", "another").is_err());
    }
}
