//! Gathers the chapters, so that a new one is compiled without being named anywhere.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let chapters = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide").canonicalize()?;
    println!("cargo::rerun-if-changed={}", chapters.display());
    let mut files: Vec<PathBuf> = fs::read_dir(&chapters)?.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
    files.retain(|file| file.extension().is_some_and(|extension| extension == "md"));
    files.sort();
    let mut modules = String::new();
    for file in files {
        let name = file.file_stem().unwrap_or_default().to_string_lossy().replace('-', "_");
        modules.push_str(&format!("#[doc = include_str!({file:?})]\npub mod {name} {{}}\n"));
    }
    let out = env::var_os("OUT_DIR").ok_or_else(|| io::Error::other("cargo sets OUT_DIR"))?;
    fs::write(Path::new(&out).join("chapters.rs"), modules)
}
