//! A control group that limits a process's memory, the file system's cache of what it reads and
//! writes included.
//!
//! The kernel's first version of groups is used where it has the memory controller, else the
//! second. Either needs the rights to make a group, which is to say root. The group is gone when
//! its owner lets go; no process may be in it then.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::target::Failure;

const FIRST_VERSION: &str = "/sys/fs/cgroup/memory";
const SECOND_VERSION: &str = "/sys/fs/cgroup";
/// The file that lists a group's processes, in both versions of control groups.
const PROCESSES: &str = "cgroup.procs";

/// A group without members.
pub struct MemoryGroup(PathBuf);

impl MemoryGroup {
    /// Makes a group whose members may use so much together.
    pub fn new(bytes: u64) -> Result<MemoryGroup, Failure> {
        MemoryGroup::make(bytes).map_err(|error| {
            format!("can't limit memory: {error}; it takes root and a memory controller").into()
        })
    }

    fn make(bytes: u64) -> io::Result<MemoryGroup> {
        let is_first = Path::new(FIRST_VERSION).join("memory.limit_in_bytes").exists();
        let (root, limit) = match is_first {
            true => (Path::new(FIRST_VERSION), "memory.limit_in_bytes"),
            false => (Path::new(SECOND_VERSION), "memory.max"),
        };
        if !is_first {
            fs::write(root.join("cgroup.subtree_control"), "+memory")?;
        }
        let path = root.join(format!("frond-engine-bench-{}", std::process::id()));
        fs::create_dir(&path)?;
        let group = MemoryGroup(path);
        fs::write(group.0.join(limit), bytes.to_string())?;
        Ok(group)
    }

    /// Returns where it is, for entering it.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir(&self.0) {
            eprintln!("{} can't be removed: {error}", self.0.display());
        }
    }
}

/// Puts this process into the group at `path`. Its use so far isn't counted there.
pub fn enter(path: &Path) -> Result<(), Failure> {
    Ok(fs::write(path.join(PROCESSES), std::process::id().to_string())?)
}
