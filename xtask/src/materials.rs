//! What a program is made of: its crates with versions, licences and hashes, as CycloneDX has it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::process::Command;

use crate::step::{cargo, root};

/// The bill of materials of `greenroom`, built for `target` with these features, as JSON: the same bytes for the same sources.
pub(crate) fn bill(target: &str, features: &str, epoch: &str) -> Result<String, String> {
    let mut tree = cargo();
    tree.args(["tree", "--locked", "--package", "greenroom-cli", "--features", features, "--target", target]);
    tree.args(["--edges", "normal", "--prefix", "depth", "--format", "\t{p}\t{l}"]);
    let tree = said(tree.current_dir(root()))?;
    let lock = root().join("Cargo.lock");
    let lock = fs::read_to_string(&lock).map_err(|error| format!("cannot read {}: {error}", lock.display()))?;
    let time = said(Command::new("date").args(["--utc", "--date", &format!("@{epoch}"), "+%Y-%m-%dT%H:%M:%SZ"]))?;
    Ok(document(&Crates::read(&tree)?, &hashes(&lock), time.trim()))
}

fn said(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|error| format!("{command:?} does not start: {error}"))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr))),
    }
}

/// A crate's name and version.
type Name = (String, String);

#[derive(Default)]
struct Crates {
    first: Name,
    licences: BTreeMap<Name, String>,
    uses: BTreeMap<Name, BTreeSet<Name>>,
}

impl Crates {
    /// Reads what `cargo tree` says, a crate a line: its depth, its name with its version, its licence.
    fn read(tree: &str) -> Result<Self, String> {
        let mut crates = Self::default();
        let mut above: Vec<Name> = Vec::new();
        for line in tree.lines().filter(|line| !line.is_empty()) {
            let wrong = || format!("cargo tree says something else than a crate: {line}");
            let [depth, package, licence] = line.splitn(3, '\t').collect::<Vec<_>>()[..] else { return Err(wrong()) };
            let depth: usize = depth.parse().map_err(|_| wrong())?;
            let mut words = package.split(' ');
            let (Some(name), Some(version)) = (words.next(), words.next()) else { return Err(wrong()) };
            let name = (name.to_owned(), version.trim_start_matches('v').to_owned());
            above.truncate(depth);
            match above.last() {
                Some(user) => _ = crates.uses.entry(user.clone()).or_default().insert(name.clone()),
                None => crates.first = name.clone(),
            }
            above.push(name.clone());
            // What has been told already is marked so.
            crates.licences.insert(name, licence.trim_end_matches("(*)").trim().replace('/', " OR "));
        }
        Ok(crates)
    }
}

/// The SHA-256 of each crate that comes from a registry.
fn hashes(lock: &str) -> BTreeMap<Name, String> {
    let packages = lock.split("[[package]]\n").filter_map(|package| {
        let field = |name: &str| {
            let line = package.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(" = \""));
            line.map(|value| value.trim_end_matches('"').to_owned())
        };
        Some(((field("name")?, field("version")?), field("checksum")?))
    });
    packages.collect()
}

fn document(crates: &Crates, hashes: &BTreeMap<Name, String>, time: &str) -> String {
    let components = crates.licences.iter().filter(|(name, _)| **name != crates.first);
    let components: Vec<String> =
        components.map(|(name, licence)| component("library", name, licence, hashes.get(name))).collect();
    let uses = crates.licences.keys().map(|name| {
        let used = crates.uses.get(name).into_iter().flatten();
        let used: Vec<String> = used.map(|name| quoted(&address(name))).collect();
        format!("{{\"ref\":{},\"dependsOn\":[{}]}}", quoted(&address(name)), used.join(","))
    });
    let uses: Vec<String> = uses.collect();
    let first = component("application", &crates.first, &crates.licences[&crates.first], None);
    format!(
        "{{\"bomFormat\":\"CycloneDX\",\"specVersion\":\"1.6\",\"version\":1,\n\
         \"metadata\":{{\"timestamp\":{},\"component\":{first}}},\n\"components\":[\n{}\n],\n\"dependencies\":[\n{}\n]}}\n",
        quoted(time),
        components.join(",\n"),
        uses.join(",\n")
    )
}

fn component(kind: &str, name: &Name, licence: &str, hash: Option<&String>) -> String {
    let address = quoted(&address(name));
    let mut text = format!(
        "{{\"type\":\"{kind}\",\"bom-ref\":{address},\"name\":{},\"version\":{},\"purl\":{address}",
        quoted(&name.0),
        quoted(&name.1)
    );
    if !licence.is_empty() {
        _ = write!(text, ",\"licenses\":[{{\"expression\":{}}}]", quoted(licence));
    }
    if let Some(hash) = hash {
        _ = write!(text, ",\"hashes\":[{{\"alg\":\"SHA-256\",\"content\":{}}}]", quoted(hash));
    }
    text + "}"
}

fn address((name, version): &Name) -> String {
    format!("pkg:cargo/{name}@{}", version.replace('+', "%2B"))
}

/// A string as JSON has it: what is written here has no control characters.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TREE: &str = "0\tapp v1.0.0 (/here)\tMIT\n1\ta v0.1.0+x\tMIT/Apache-2.0\n2\tb v2.0.0 (proc-macro)\tISC\n1\tb v2.0.0\tISC (*)\n";

    #[test]
    fn each_crate_is_told_once_with_whom_it_uses() {
        let crates = Crates::read(TREE).expect("a tree");
        assert_eq!(crates.licences.len(), 3);
        let lock = "version = 4\n\n[[package]]\nname = \"b\"\nversion = \"2.0.0\"\nchecksum = \"00ff\"\n";
        let document = document(&crates, &hashes(lock), "2026-01-01T00:00:00Z");
        for part in [
            r#""component":{"type":"application","bom-ref":"pkg:cargo/app@1.0.0""#,
            r#""purl":"pkg:cargo/a@0.1.0%2Bx","licenses":[{"expression":"MIT OR Apache-2.0"}]}"#,
            r#""licenses":[{"expression":"ISC"}],"hashes":[{"alg":"SHA-256","content":"00ff"}]}"#,
            r#"{"ref":"pkg:cargo/app@1.0.0","dependsOn":["pkg:cargo/a@0.1.0%2Bx","pkg:cargo/b@2.0.0"]}"#,
            r#"{"ref":"pkg:cargo/a@0.1.0%2Bx","dependsOn":["pkg:cargo/b@2.0.0"]}"#,
        ] {
            assert!(document.contains(part), "{part} is not in {document}");
        }
    }

    #[test]
    fn what_is_no_crate_is_not_left_out_in_silence() {
        assert!(Crates::read("0\tapp\n").is_err_and(|why| why.contains("something else")));
    }
}
