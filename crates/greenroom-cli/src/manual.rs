//! `greenroom completions` and `greenroom manual`: what shells, `man` and the documentation know of this program.

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;

use clap::{Arg, ArgGroup, Args, Command};
use clap_complete::Shell;

use crate::output::unwritten;

/// For which shell.
#[derive(Args)]
pub(crate) struct CompletionsCommand {
    /// The shell that is to read them, as `source <(greenroom completions bash)`
    #[arg(value_enum)]
    shell: Shell,
}

/// Where to.
#[derive(Args)]
pub(crate) struct ManualCommand {
    /// The folder; what it has of these pages is written anew
    folder: PathBuf,
    /// One page of Markdown with all commands, `commands.md`, in place of man pages
    #[arg(long)]
    markdown: bool,
}

/// Prints a script for the shell.
pub(crate) fn complete(command: &CompletionsCommand, mut program: Command) -> Result<(), String> {
    let mut script = Vec::new();
    clap_complete::generate(command.shell, &mut program, "greenroom", &mut script);
    io::stdout().lock().write_all(&script).and_then(|()| io::stdout().flush()).map_err(|error| unwritten(&error))
}

/// Writes one page for the program, and one for each of its commands; or one for all.
pub(crate) fn write(command: &ManualCommand, mut program: Command) -> Result<(), String> {
    let folder = &command.folder;
    let written = fs::create_dir_all(folder).and_then(|()| match command.markdown {
        true => {
            program.build();
            fs::write(folder.join("commands.md"), page(&program))
        }
        false => clap_mangen::generate_to(program, folder),
    });
    written.map_err(|error| format!("cannot write into {}: {error}", folder.display()))
}

/// All commands as one page.
fn page(program: &Command) -> String {
    let mut page = HEAD.to_owned();
    let mut all = vec![program];
    for command in shown(program) {
        all.push(command);
        all.extend(shown(command));
    }
    for (title, groups) in SHARED {
        let taker = all.iter().find(|command| shared(command, groups).next().is_some());
        let rows: Vec<String> = taker.iter().flat_map(|command| shared(command, groups)).map(row).collect();
        page += &format!("\n## {title}\n{}", table(&rows));
    }
    all.into_iter().for_each(|command| section(&mut page, command));
    page
}

/// A command's purpose and usage, and a row for each of its arguments.
fn section(page: &mut String, command: &Command) {
    let name = command.get_bin_name().unwrap_or_else(|| command.get_name());
    let about = command.get_long_about().or_else(|| command.get_about()).map(ToString::to_string).unwrap_or_default();
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ");
    *page += &format!("\n## {name}\n\n{}\n\n```text\n{usage}\n```\n", sentence(&about));
    let taken: Vec<_> = SHARED.iter().filter(|(_, groups)| shared(command, groups).next().is_some()).collect();
    let is_shared = |argument: &Arg| taken.iter().any(|(_, groups)| shared(command, groups).any(|one| one == argument));
    let own = command.get_arguments().filter(|argument| is_own(command, argument) && !is_shared(argument));
    page.push_str(&table(&own.map(row).collect::<Vec<_>>()));
    for (title, _) in taken {
        *page += &format!("\nIt takes the arguments of [{}](#{}), too.\n", title.to_lowercase(), anchor(title));
    }
}

fn shown(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|command| !command.is_hide_set() && command.get_name() != "help")
}

/// The arguments of a command that are in one of `groups`.
fn shared<'a>(command: &'a Command, groups: &'a [&'a str]) -> impl Iterator<Item = &'a Arg> {
    let groups = command.get_groups().filter(|group| groups.contains(&group.get_id().as_str()));
    let ids: Vec<_> = groups.flat_map(ArgGroup::get_args).collect();
    command.get_arguments().filter(move |argument| ids.contains(&argument.get_id()) && !argument.is_hide_set())
}

/// Whether the argument is the command's, and not one that all of them take.
fn is_own(command: &Command, argument: &Arg) -> bool {
    let everywhere = argument.is_global_set() && command.get_bin_name().is_some_and(|name| name.contains(' '));
    !argument.is_hide_set() && !everywhere && !["help", "version"].contains(&argument.get_id().as_str())
}

fn table(rows: &[String]) -> String {
    match rows {
        [] => String::new(),
        rows => format!("\n| argument | what it is | default | variable |\n|---|---|---|---|\n{}\n", rows.join("\n")),
    }
}

/// A heading's anchor, as the site makes it.
fn anchor(title: &str) -> String {
    title.to_lowercase().replace(' ', "-")
}

fn row(argument: &Arg) -> String {
    let help = argument.get_long_help().or_else(|| argument.get_help()).map(ToString::to_string).unwrap_or_default();
    let values = argument.get_default_values().iter().map(|value| value.to_string_lossy());
    let (mut help, mut default) = match help.split_once(" [default: ") {
        Some((help, said)) => (help.to_owned(), said.trim_end_matches(']').to_owned()),
        None => (help, values.collect::<Vec<_>>().join(" ")),
    };
    let takes_value = argument.get_action().takes_values();
    if !takes_value {
        default.clear();
    }
    let choices: Vec<String> =
        argument.get_possible_values().iter().map(|choice| format!("`{}`", choice.get_name())).collect();
    if takes_value && !choices.is_empty() {
        help = format!("{help}: {}", choices.join(", "));
    }
    let variable = argument.get_env().map(|name| format!("`{}`", name.to_string_lossy())).unwrap_or_default();
    let code = |text: &str| if text.is_empty() { String::new() } else { format!("`{text}`") };
    format!("| {} | {} | {} | {variable} |", code(&cell(&argument.to_string())), cell(&sentence(&help)), code(&default))
}

/// Text that ends like a sentence.
fn sentence(text: &str) -> String {
    let text = text.trim();
    if text.is_empty() || text.ends_with(['.', '!', '?']) { text.to_owned() } else { format!("{text}.") }
}

/// Text that may stand in a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

/// Arguments that several commands take, by the structs that they are flattened from.
const SHARED: &[(&str, &[&str])] = &[
    ("How a node runs", &["NodeFlags"]),
    ("Whom a command asks", &["NodeAddress", "Credentials"]),
    ("Which store", &["Location"]),
];

const HEAD: &str = "\
# Commands

For who looks a command of `greenroom` up, or one of its flags. The program itself has written this page, by `greenroom manual --markdown`; `greenroom help COMMAND` says the
same at a terminal. A flag wins over its variable, and that over the configuration's file.
";
