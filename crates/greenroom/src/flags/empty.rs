//! Flags and variables that are there and empty: they count as not set.

use clap::Command;
use clap::builder::Resettable;

use super::NodeFlags;

impl NodeFlags {
    /// Takes empty values out: an empty flag or variable counts as not set. Empty paths are refused as they are parsed.
    pub(super) fn without_empty(mut self) -> Self {
        let texts = [
            &mut self.name,
            &mut self.cluster,
            &mut self.listen,
            &mut self.advertise,
            &mut self.http,
            &mut self.grpc,
            &mut self.table,
            &mut self.namespace,
            &mut self.journal,
            &mut self.hosts,
        ];
        for text in texts {
            text.take_if(|text| text.is_empty());
        }
        let lists =
            [&mut self.http_hosts, &mut self.http_origins, &mut self.hide_keys, &mut self.roles, &mut self.kinds];
        for list in lists {
            list.retain(|text| !text.is_empty());
        }
        self
    }
}

/// Lets environment variables of a command and its subcommands that are set and empty, as `${NAME:-}` in a compose file makes them, count
/// as not set. Programs that make [`NodeFlags`] a part of a command of their own call it before they parse.
pub fn ignore_empty_variables(command: Command) -> Command {
    let command = command.mut_args(|arg| {
        let value = arg.get_env().and_then(std::env::var_os);
        if value.is_some_and(|value| value.is_empty()) { arg.env(Resettable::Reset) } else { arg }
    });
    let names: Vec<String> = command.get_subcommands().map(|command| command.get_name().to_owned()).collect();
    names.into_iter().fold(command, |command, name| command.mut_subcommand(name, ignore_empty_variables))
}
