//! `greenroom generate`: OpenAPI, and typed clients of kinds. The same descriptions give the same bytes.

mod go;
mod proto;
mod python;
#[cfg(test)]
mod tests;
mod typescript;

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use greenroom_describe::Description;

use crate::door::NodeAddress;
use crate::interfaces;

/// What to write, and where.
#[derive(Args)]
pub(crate) struct GenerateCommand {
    /// What to write: openapi.json, or a file a kind for the SDK of a language
    #[arg(long, value_enum)]
    lang: Language,
    /// The folder to write into; made if it is not there
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Only this kind; may be given more than once
    #[arg(long = "kind", value_name = "KIND")]
    kinds: Vec<String>,
    #[command(flatten)]
    node: NodeAddress,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Language {
    Go,
    Openapi,
    Proto,
    Python,
    #[value(alias = "typescript")]
    Ts,
}

/// Asks the node for its kinds, and writes files.
pub(crate) fn run(command: &GenerateCommand) -> Result<(), String> {
    let door = command.node.door(TIMEOUT)?;
    let files = match command.lang {
        Language::Openapi => {
            let mut document = door.get_json("/openapi.json")?;
            if let Some(paths) = document["paths"].as_object_mut().filter(|_| !command.kinds.is_empty()) {
                paths.retain(|path, _| command.kinds.iter().any(|kind| path.starts_with(&format!("/{kind}/"))));
            }
            vec![("openapi.json".to_owned(), format!("{document:#}\n"))]
        }
        language => {
            let kinds = if command.kinds.is_empty() { interfaces::names(&door)? } else { command.kinds.clone() };
            let folder = command.out.file_name().and_then(|name| name.to_str()).unwrap_or("actors");
            let mut files = Vec::new();
            if language == Language::Proto {
                files.push(("greenroom_kind.proto".to_owned(), proto::OPTIONS.to_owned()));
            }
            for kind in kinds {
                let (description, _) = interfaces::describe(&door, &kind)?;
                files.push(match language {
                    Language::Go => (format!("{}.go", file_name(&kind)), go::file(&description, folder)),
                    Language::Proto => {
                        let name = format!("{}.proto", file_name(&kind));
                        let before = fs::read_to_string(command.out.join(&name)).unwrap_or_default();
                        (name, proto::file(&description, &before))
                    }
                    Language::Ts => (format!("{}.ts", file_name(&kind)), typescript::module(&description)),
                    _ => (format!("{}.py", file_name(&kind)), python::module(&description)),
                });
            }
            files
        }
    };
    for (name, text) in files {
        let path = command.out.join(name);
        let folder = path.parent().unwrap_or(&command.out);
        fs::create_dir_all(folder).map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
        fs::write(&path, text).map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        println!("{}", path.display());
    }
    Ok(())
}

/// A kind's name as that of a file and a module.
fn file_name(kind: &str) -> String {
    identifier(kind)
}

/// A name with `_` for what no language has in names.
fn identifier(name: &str) -> String {
    let mut identifier: String =
        name.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' }).collect();
    if identifier.starts_with(|first: char| first.is_ascii_digit()) {
        identifier.insert(0, '_');
    }
    identifier
}

/// `chat_room` as `ChatRoom`.
fn camel(name: &str) -> String {
    let words = name.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let camel: String = words
        .map(|word| {
            let (first, rest) = word.split_at(1);
            format!("{}{rest}", first.to_ascii_uppercase())
        })
        .collect();
    identifier(&camel)
}

/// Whether a name is one that both languages take as it is.
fn is_identifier(name: &str) -> bool {
    !name.is_empty() && identifier(name) == name
}

/// The first lines of a file, after what begins a comment.
fn head(description: &Description, comment: &str) -> String {
    format!(
        "{comment} Actors of kind {}, version {}. Written by `greenroom generate`: do not edit.\n{comment} Digest {}.\n",
        description.kind,
        description.version,
        description.digest()
    )
}

const TIMEOUT: Duration = Duration::from_secs(10);
