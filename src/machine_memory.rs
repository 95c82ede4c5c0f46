//! Memory of the machine or the container, from which the default memory budget is computed.
//!
//! On Linux it is read from `/proc/meminfo` and from the limits of the process's cgroup and its
//! ancestors, in the layouts of cgroup version 1 and 2. In a container `/proc/self/cgroup` may
//! have the host's path of the group while only the container's own is mounted; so the root of
//! the mount is read, too. If nothing can be read, the budget is that of a machine of 4 GiB.

use std::fmt;
use std::path::{Path, PathBuf};

use store::env::process::read_text;

/// Divisor of the memory that gives the budget.
const BUDGET_PART: u64 = 4;
/// Minimum of the default budget.
const BUDGET_BYTES_MIN: u64 = 256 << 20;
/// Assumed memory if it cannot be read.
const MEMORY_BYTES_UNKNOWN: u64 = 4 << 30;

/// A memory budget with its origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryBudget {
    /// Bytes.
    pub bytes: u64,
    /// The origin of the number.
    pub origin: BudgetOrigin,
}

/// Origin of a memory budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BudgetOrigin {
    /// The settings.
    Settings,
    /// A share of the machine's memory, which is given.
    Machine(u64),
    /// A share of the container's limit, which is given and below the machine's memory.
    Container(u64),
    /// The memory could not be read.
    Unknown,
}

impl MemoryBudget {
    /// Returns the default budget: a quarter of the memory available to the process, at least 256
    /// MiB.
    pub fn of_machine() -> MemoryBudget {
        MemoryBudget::below(Path::new("/"))
    }

    /// Returns the budget of a machine with `root` as its root directory.
    fn below(root: &Path) -> MemoryBudget {
        let machine = machine_bytes(root);
        let container = container_bytes(root);
        let origin = match (machine, container) {
            (Some(machine), Some(limit)) if limit < machine => BudgetOrigin::Container(limit),
            (Some(machine), _) => BudgetOrigin::Machine(machine),
            // Without a limit, cgroup version 1 has a number near the maximum.
            (None, Some(limit)) if limit < 1 << 60 => BudgetOrigin::Container(limit),
            (None, _) => BudgetOrigin::Unknown,
        };
        let memory = match origin {
            BudgetOrigin::Machine(bytes) | BudgetOrigin::Container(bytes) => bytes,
            BudgetOrigin::Settings | BudgetOrigin::Unknown => MEMORY_BYTES_UNKNOWN,
        };
        MemoryBudget { bytes: (memory / BUDGET_PART).max(BUDGET_BYTES_MIN), origin }
    }
}

impl fmt::Display for MemoryBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mib = |bytes: u64| bytes >> 20;
        write!(f, "{}MB", mib(self.bytes))?;
        match self.origin {
            BudgetOrigin::Settings => Ok(()),
            BudgetOrigin::Machine(bytes) => {
                write!(f, " by default, of the machine's {}MB", mib(bytes))
            }
            BudgetOrigin::Container(bytes) => {
                write!(f, " by default, of the container's {}MB", mib(bytes))
            }
            BudgetOrigin::Unknown => write!(f, " by default"),
        }
    }
}

fn machine_bytes(root: &Path) -> Option<u64> {
    let text = read_text(root.join("proc/meminfo")).ok()?;
    let total = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = total.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

/// Returns the lowest limit among the cgroups of the process.
fn container_bytes(root: &Path) -> Option<u64> {
    let groups = read_text(root.join("proc/self/cgroup")).unwrap_or_default();
    let mut limits = Vec::new();
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(group)) = (fields.next(), fields.next()) else { continue };
        let (mount, file) = match controllers {
            "" => ("sys/fs/cgroup", "memory.max"),
            _ if controllers.split(',').any(|name| name == "memory") => {
                ("sys/fs/cgroup/memory", "memory.limit_in_bytes")
            }
            _ => continue,
        };
        let group: PathBuf = Path::new(group)
            .components()
            .filter(|part| matches!(part, std::path::Component::Normal(_)))
            .collect();
        let limit_of = |group: &Path| {
            let text = read_text(root.join(mount).join(group).join(file)).ok()?;
            text.trim().parse::<u64>().ok()
        };
        limits.extend(group.ancestors().filter_map(limit_of));
    }
    limits.into_iter().min()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the budget of a root directory with these files.
    fn chosen(files: &[(&str, &str)]) -> MemoryBudget {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        MemoryBudget::below(root.path())
    }

    const MEMINFO: (&str, &str) =
        ("proc/meminfo", "MemTotal:       16777216 kB\nMemFree:         1000 kB\n");

    #[test]
    fn default_memory_is_quarter_of_machine() {
        let budget = chosen(&[MEMINFO]);
        let machine = BudgetOrigin::Machine(16 << 30);
        assert_eq!(budget, MemoryBudget { bytes: 4 << 30, origin: machine });
        assert_eq!(budget.to_string(), "4096MB by default, of the machine's 16384MB");
        let small = chosen(&[("proc/meminfo", "MemTotal: 500000 kB\n")]);
        assert_eq!(small.bytes, 256 << 20);
        let unknown = MemoryBudget { bytes: 1 << 30, origin: BudgetOrigin::Unknown };
        assert_eq!(chosen(&[]), unknown);
        assert_eq!(chosen(&[("proc/meminfo", "MemTotal: lots\n")]), unknown);
    }

    #[test]
    fn lower_cgroup_limit_determines_default_memory() {
        let second = [
            MEMINFO,
            ("proc/self/cgroup", "0::/system.slice/bennu.service\n"),
            ("sys/fs/cgroup/system.slice/memory.max", "2147483648\n"),
            ("sys/fs/cgroup/system.slice/bennu.service/memory.max", "max\n"),
        ];
        let container = BudgetOrigin::Container(2 << 30);
        assert_eq!(chosen(&second), MemoryBudget { bytes: 512 << 20, origin: container });
        // The group has the host's path of the mounted root.
        let first = [
            MEMINFO,
            ("proc/self/cgroup", "5:cpu,cpuacct:/docker/ab\n4:memory:/docker/ab\n"),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "2147483648\n"),
        ];
        assert_eq!(chosen(&first), MemoryBudget { bytes: 512 << 20, origin: container });
        let unlimited = [
            ("proc/self/cgroup", "4:memory:/\n"),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
        ];
        assert_eq!(chosen(&unlimited).origin, BudgetOrigin::Unknown);
        let machine = chosen(&[&[MEMINFO][..], &unlimited].concat());
        assert_eq!(machine.origin, BudgetOrigin::Machine(16 << 30));
    }
}
