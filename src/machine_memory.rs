//! Memory of the machine, or of the container that the process runs in: what the memory budget is
//! chosen by where none is set.
//!
//! Linux tells both: `/proc/meminfo`, and the limits of the process's cgroup and of those above it,
//! in the layouts of cgroup version 1 and 2. In a container `/proc/self/cgroup` may name groups as
//! the machine knows them, while only the container's own is mounted; so the root of the mount is
//! asked, too. Where nothing is known the budget is that of a machine of 4 GiB.

use std::fmt;
use std::path::{Path, PathBuf};

/// The budget is this part of the memory.
const BUDGET_PART: u64 = 4;
/// The smallest budget that is chosen.
const BUDGET_BYTES_MIN: u64 = 256 << 20;
/// Taken for the memory where it is not known.
const MEMORY_BYTES_UNKNOWN: u64 = 4 << 30;

/// A memory budget with where it comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryBudget {
    /// Bytes.
    pub bytes: u64,
    /// Who chose it.
    pub origin: BudgetOrigin,
}

/// Where a memory budget comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BudgetOrigin {
    /// The settings.
    Settings,
    /// The machine's memory.
    Machine(u64),
    /// The limit of the container, which is below the machine's memory.
    Container(u64),
    /// The memory is not known.
    Unknown,
}

impl MemoryBudget {
    /// Returns the budget that is taken where none is set: a quarter of the memory that the process
    /// may use, at least 256 MiB.
    pub fn of_machine() -> MemoryBudget {
        MemoryBudget::below(Path::new("/"))
    }

    /// Returns the budget of a machine whose files are below a directory.
    fn below(root: &Path) -> MemoryBudget {
        let machine = machine_bytes(root);
        let container = container_bytes(root);
        let origin = match (machine, container) {
            (Some(machine), Some(limit)) if limit < machine => BudgetOrigin::Container(limit),
            (Some(machine), _) => BudgetOrigin::Machine(machine),
            // Without a limit cgroups of version 1 name a number near the greatest.
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
    let text = std::fs::read_to_string(root.join("proc/meminfo")).ok()?;
    let total = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = total.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

/// Returns the lowest limit of the cgroups of the process.
fn container_bytes(root: &Path) -> Option<u64> {
    let groups = std::fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
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
            let text = std::fs::read_to_string(root.join(mount).join(group).join(file)).ok()?;
            text.trim().parse::<u64>().ok()
        };
        limits.extend(group.ancestors().filter_map(limit_of));
    }
    limits.into_iter().min()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns what is chosen where these files are there.
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
    fn a_quarter_of_the_machine() {
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
    fn limits_of_cgroups_count_where_they_are_lower() {
        let second = [
            MEMINFO,
            ("proc/self/cgroup", "0::/system.slice/bennu.service\n"),
            ("sys/fs/cgroup/system.slice/memory.max", "2147483648\n"),
            ("sys/fs/cgroup/system.slice/bennu.service/memory.max", "max\n"),
        ];
        let container = BudgetOrigin::Container(2 << 30);
        assert_eq!(chosen(&second), MemoryBudget { bytes: 512 << 20, origin: container });
        // The group is the machine's name for what is mounted as the root.
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
