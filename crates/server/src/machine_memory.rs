//! The memory that this process may have: the machine's, or the least that a control group over it
//! allows.
//!
//! Containers and service managers limit groups of processes. The kernel gives a process the name
//! of its group (`/proc/self/cgroup`), and shows groups as directories. Each group above may have a
//! limit, too, so all are asked from the process's own up; in a container the uppermost that can be
//! seen is the container's, under another name than the one given to the process.

use std::fs;
use std::path::{Path, PathBuf};

/// The part of the machine's memory that a server takes by default: five eighths. The rest is for
/// the system's cache of files, the program's own among them, and for what connections take.
const BUDGET_EIGHTHS: u64 = 5;

/// The memory of the machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MachineMemory {
    /// The machine's; `None` where the system doesn't report it.
    pub physical_bytes: Option<u64>,
    /// The memory that control groups allow, if they limit it.
    pub group_bytes: Option<u64>,
}

impl MachineMemory {
    /// Asks the system.
    pub fn read() -> MachineMemory {
        MachineMemory::read_below(Path::new("/"))
    }

    /// The least of these.
    pub fn bytes(&self) -> Option<u64> {
        self.physical_bytes.into_iter().chain(self.group_bytes).min()
    }

    /// Returns the part of it that a server takes.
    pub fn budget_bytes(&self) -> Option<u64> {
        self.bytes().map(|bytes| bytes / 8 * BUDGET_EIGHTHS)
    }

    /// As `read`, of the system whose files lie below `root`.
    fn read_below(root: &Path) -> MachineMemory {
        let physical_bytes = physical(&root.join("proc/meminfo"));
        let groups = fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
        // A limit above the machine's own memory is none: groups without a limit report an absurd
        // number.
        let is_limit = |bytes: &u64| physical_bytes.is_none_or(|physical| *bytes < physical);
        let limits = groups.lines().flat_map(|line| limits(root, line));
        MachineMemory { physical_bytes, group_bytes: limits.filter(is_limit).min() }
    }
}

/// Returns the limits of the group that a line of `/proc/self/cgroup` names: `4:memory:/path` of
/// the first version, `0::/path` of the second.
fn limits(root: &Path, line: &str) -> Vec<u64> {
    let mut parts = line.splitn(3, ':').skip(1);
    let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { return Vec::new() };
    let (base, names): (&str, &[&str]) = match controllers {
        "" => ("sys/fs/cgroup", &["memory.max", "memory.high"]),
        list if list.split(',').any(|name| name == "memory") => {
            ("sys/fs/cgroup/memory", &["memory.limit_in_bytes"])
        }
        _ => return Vec::new(),
    };
    let base = root.join(base);
    let own: PathBuf = base.join(path.trim_start_matches('/'));
    let groups = own.ancestors().take_while(|group| group.starts_with(&base));
    // Also where the process's own can't be seen.
    let read = |group: &Path| names.iter().filter_map(|name| number(&group.join(name))).min();
    groups.filter_map(read).collect()
}

/// The number in a file; `None` if there is none, as where it says `max`.
fn number(path: &Path) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// Returns the memory in the first line of `/proc/meminfo`: `MemTotal:  24683528 kB`.
fn physical(path: &Path) -> Option<u64> {
    bytes_of(&fs::read_to_string(path).ok()?, "MemTotal:")
}

/// Returns how much memory this process has now that isn't of files; `None` where the system
/// doesn't report it.
pub fn own_bytes() -> Option<u64> {
    bytes_of(&fs::read_to_string("/proc/self/status").ok()?, "RssAnon:")
}

/// Returns how much memory this process has now, and how much of it could be addressed; `None`
/// where the system doesn't report it.
pub fn resident_and_virtual_bytes() -> Option<(u64, u64)> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    Some((bytes_of(&status, "VmRSS:")?, bytes_of(&status, "VmSize:")?))
}

/// As [`own_bytes`], from the system's fastest source: it may be some pages off.
pub fn own_bytes_now() -> Option<u64> {
    let statm = fs::read_to_string("/proc/self/statm").ok()?;
    let mut pages = statm.split(' ').skip(1).map_while(|pages| pages.parse::<u64>().ok());
    let (resident, of_files) = (pages.next()?, pages.next()?);
    Some(resident.saturating_sub(of_files) * rustix::param::page_size() as u64)
}

/// What stands behind a name, in bytes: such files have kilobytes.
fn bytes_of(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1 << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads the memory of a machine whose files have this content.
    fn read(name: &str, files: &[(&str, &str)]) -> MachineMemory {
        let process = std::process::id();
        let root = std::env::temp_dir().join(format!("frond-machine-memory-{process}-{name}"));
        for (path, content) in files {
            let path = root.join(path);
            fs::create_dir_all(path.parent().expect("below the root")).expect("room");
            fs::write(path, content).expect("room");
        }
        let found = MachineMemory::read_below(&root);
        let _ = fs::remove_dir_all(&root);
        found
    }

    const MACHINE: (&str, &str) = ("proc/meminfo", "MemTotal:       4194304 kB\nMemFree: 5 kB\n");

    const FIRST: (&str, &str) = ("proc/self/cgroup", "5:cpu,cpuacct:/\n4:memory:/a/b\n0::/\n");
    const SECOND: (&str, &str) = ("proc/self/cgroup", "0::/a/b\n");

    /// A name, files, and what groups allow then.
    type Case = (&'static str, &'static [(&'static str, &'static str)], Option<u64>);

    #[test]
    fn groups_of_both_versions_limit_it() {
        let cases: [Case; 6] = [
            ("none", &[MACHINE], None),
            (
                "first",
                &[MACHINE, FIRST, ("sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", "700\n")],
                Some(700),
            ),
            (
                "above",
                &[
                    MACHINE,
                    FIRST,
                    ("sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", "9223372036854771712\n"),
                    ("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "800\n"),
                ],
                Some(800),
            ),
            (
                "container",
                &[MACHINE, FIRST, ("sys/fs/cgroup/memory/memory.limit_in_bytes", "900\n")],
                Some(900),
            ),
            (
                "second",
                &[
                    MACHINE,
                    SECOND,
                    ("sys/fs/cgroup/a/b/memory.max", "max\n"),
                    ("sys/fs/cgroup/a/memory.max", "600\n"),
                    ("sys/fs/cgroup/a/memory.high", "500\n"),
                ],
                Some(500),
            ),
            ("unlimited", &[MACHINE, SECOND, ("sys/fs/cgroup/a/b/memory.max", "max\n")], None),
        ];
        for (name, files, expected) in cases {
            let found = read(name, files);
            let physical_bytes = Some(4 << 30);
            assert_eq!(found, MachineMemory { physical_bytes, group_bytes: expected }, "{name}");
            assert_eq!(found.bytes(), expected.or(physical_bytes), "{name}");
        }
        assert_eq!(read("nothing", &[("x", "")]), MachineMemory::default());
        let memory = MachineMemory { physical_bytes: Some(8 << 30), group_bytes: Some(800) };
        assert_eq!(memory.budget_bytes(), Some(500));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_memory_of_the_process_is_measured() {
        let before = own_bytes().expect("Linux tells");
        let taken = vec![1_u8; 64 << 20];
        let after = own_bytes().expect("Linux tells");
        let now = own_bytes_now().expect("Linux tells");
        assert!(now.abs_diff(after) < 16 << 20, "{now} {after}");
        assert!(before + (48 << 20) < after, "{before} {after} {}", taken.len());
        assert!(MachineMemory::read().bytes().expect("Linux tells") > after);
    }
}
