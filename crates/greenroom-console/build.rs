//! Packs the console's pages into the program: each gzipped, and all under one folder whose name is a hash of their bytes.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::{env, fs, io};

use flate2::{Compression, write::GzEncoder};
use sha2::{Digest, Sha256};

fn main() -> io::Result<()> {
    let assets = Path::new("assets");
    println!("cargo::rerun-if-changed=assets");
    let mut files = BTreeMap::new();
    read(assets, "", &mut files)?;
    for (name, bytes) in &mut files {
        if name.starts_with("vendor/") {
            *bytes = with_paths(std::mem::take(bytes));
        }
    }
    let mut hash = Sha256::new();
    for (name, bytes) in &files {
        hash.update(name.as_bytes());
        hash.update((bytes.len() as u64).to_le_bytes());
        hash.update(bytes);
    }
    let hash: String = hash.finalize()[..6].iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"));
    let out = env::var("OUT_DIR").map_err(io::Error::other)?;
    let mut table = format!("const FOLDER: &str = \"{hash}\";\nconst FILES: &[(&str, &str, &[u8])] = &[\n");
    for (number, (name, mut bytes)) in files.into_iter().enumerate() {
        if name == "index.html" {
            let page = String::from_utf8(bytes).map_err(io::Error::other)?;
            bytes = page.replace("{folder}", &hash).into_bytes();
        }
        let packed = Path::new(&out).join(format!("{number}.gz"));
        let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
        gzip.write_all(&bytes)?;
        fs::write(&packed, gzip.finish()?)?;
        let kind = content_type(&name)?;
        writeln!(table, "    ({name:?}, {kind:?}, include_bytes!({packed:?})),").map_err(io::Error::other)?;
    }
    table.push_str("];\n");
    fs::write(Path::new(&out).join("files.rs"), table)
}

fn read(folder: &Path, prefix: &str, files: &mut BTreeMap<String, Vec<u8>>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.file_type()?.is_dir() {
            read(&entry.path(), &format!("{name}/"), files)?;
        } else if !name.starts_with("vendor/") || name.ends_with(".mjs") {
            files.insert(name, fs::read(entry.path())?);
        }
    }
    Ok(())
}

/// Libraries name each other as packages, which a browser finds only by an inline map of imports, and the security
/// policy takes nothing inline: the names become paths here, and the files in the repository stay as published.
fn with_paths(bytes: Vec<u8>) -> Vec<u8> {
    let Ok(mut text) = String::from_utf8(bytes) else { panic!("a library is not UTF-8") };
    for (package, path) in [
        ("preact/hooks", "./hooks.mjs"),
        ("@preact/signals-core", "./signals-core.mjs"),
        ("preact", "./preact.mjs"),
        ("htm", "./htm.mjs"),
    ] {
        text = text.replace(&format!("from\"{package}\""), &format!("from\"{path}\""));
    }
    text.into_bytes()
}

fn content_type(name: &str) -> io::Result<&'static str> {
    Ok(match name.rsplit_once('.').map_or("", |(_, end)| end) {
        "html" => "text/html; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "svg" => "image/svg+xml",
        _ => return Err(io::Error::other(format!("{name}: say in build.rs what type it has"))),
    })
}
