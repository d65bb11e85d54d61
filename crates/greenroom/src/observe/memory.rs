//! How much memory this process has, and how much it may have.

use std::fs;

/// Memory of this process that is in RAM, in bytes; `None` where the system does not tell.
pub(crate) fn resident() -> Option<u64> {
    let statm = fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = statm.split_ascii_whitespace().nth(1)?.parse().ok()?;
    // SAFETY: asks for a constant of the system.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    Some(pages * u64::try_from(page).ok()?)
}

/// The bytes of memory at which the system ends this process: its container's bound, or else what the machine has; `None` where the
/// system does not tell.
pub(crate) fn limit() -> Option<u64> {
    let read = |path: &str| fs::read_to_string(path).ok();
    let within = read("/proc/self/cgroup").and_then(|text| folder_of(&text).map(str::to_owned)).unwrap_or_default();
    let bounds = [
        format!("/sys/fs/cgroup{within}/memory.max"),
        "/sys/fs/cgroup/memory.max".to_owned(),
        "/sys/fs/cgroup/memory/memory.limit_in_bytes".to_owned(),
    ];
    let bounds = bounds.iter().filter_map(|path| read(path)?.trim().parse().ok());
    bounds.chain(read("/proc/meminfo").as_deref().and_then(total)).min()
}

/// The folder of the process's group among those of the second version.
fn folder_of(groups: &str) -> Option<&str> {
    groups.lines().find_map(|line| line.strip_prefix("0::")).filter(|folder| *folder != "/")
}

/// The machine's memory in bytes, by `/proc/meminfo`.
fn total(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    Some(line.trim().strip_suffix("kB")?.trim_end().parse::<u64>().ok()? << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_systems_files_are_read() {
        assert_eq!(
            folder_of("12:memory:/old\n0::/system.slice/greenroom.service\n"),
            Some("/system.slice/greenroom.service")
        );
        assert_eq!(folder_of("0::/\n"), None);
        assert_eq!(total("MemTotal:       16384 kB\nMemFree: 1 kB\n"), Some(16 << 20));
        assert_eq!(total("MemFree: 1 kB\n"), None);
    }
}
