//! The disk under a directory: durable appends, and the rate of writing.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::report;

/// Appends of 4 KiB, each made durable: nanoseconds and counts.
pub(super) fn syncs(dir: &Path, time: Duration) -> io::Result<Vec<(u64, u64)>> {
    let mut file = scratch(dir)?;
    let block = [0x5A; 4096];
    let mut latency = report::histogram();
    let begun = Instant::now();
    while begun.elapsed() < time {
        let start = Instant::now();
        file.write_all(&block)?;
        file.sync_data()?;
        report::add(&mut latency, start.elapsed().as_nanos() as u64, 1);
    }
    Ok(report::buckets(&latency))
}

/// Megabytes (10^6 bytes) a second, written in order and made durable at the end.
pub(super) fn writes(dir: &Path, time: Duration) -> io::Result<f64> {
    let mut file = scratch(dir)?;
    let block = vec![0x5A; 1 << 20];
    let begun = Instant::now();
    let mut written = 0;
    while begun.elapsed() < time && written < WRITTEN_MAX {
        file.write_all(&block)?;
        written += block.len();
    }
    file.sync_data()?;
    Ok(written as f64 / 1e6 / begun.elapsed().as_secs_f64())
}

fn scratch(dir: &Path) -> io::Result<File> {
    tempfile::tempfile_in(dir)
}

/// Bytes after which writing ends early, so that a fast disk is not filled.
const WRITTEN_MAX: usize = 1 << 30;
