//! `greenroom config`: what a node would run by.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use greenroom::Config;
use greenroom::flags::NodeFlags;
use greenroom_store::url::{StoreUrl, redact};
use toml::{Table, Value};

use crate::node;

/// What to do with a configuration. No node is started, and no store is opened.
#[derive(Args)]
pub(crate) struct ConfigCommand {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Say whether a node would take the file; what the environment says does not count
    Check {
        /// TOML file with any of the configuration's fields
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// Leave out the example and workload kinds, as `greenroom node --without-examples` does
        #[arg(long)]
        without_examples: bool,
    },
    /// Print, as TOML and without passwords, the configuration that a node with these flags, this environment and this file has; flags of
    /// `greenroom node` alone, as --grpc-services, are no part of it
    Print {
        #[command(flatten)]
        flags: Box<NodeFlags>,
        /// Leave out the example and workload kinds, as `greenroom node --without-examples` does
        #[arg(long)]
        without_examples: bool,
    },
}

/// Checks or prints.
pub(crate) fn run(command: &ConfigCommand) -> Result<(), String> {
    match &command.what {
        What::Check { file, without_examples } => {
            let flags = NodeFlags { config: Some(file.clone()), ..NodeFlags::default() };
            let config = checked(&flags, *without_examples)?;
            for (setting, url) in stores(&config)? {
                greenroom_stores::check(&url).map_err(|error| format!("{setting}: {error}"))?;
            }
            println!("{} can be used", file.display());
        }
        What::Print { flags, without_examples } => print!("{}", shown(&checked(flags, *without_examples)?)?),
    }
    Ok(())
}

/// The configuration, if a node would take it as far as can be told without opening anything.
fn checked(flags: &NodeFlags, without_examples: bool) -> Result<Config, String> {
    let builder = node::builder();
    let builder = if without_examples { builder } else { node::with_examples(builder) };
    let builder = node::hosted(flags, builder).map_err(|error| error.to_string())?;
    let config = builder.check().map_err(|error| error.to_string())?.clone();
    stores(&config)?;
    Ok(config)
}

/// The stores that a configuration names, by their settings.
fn stores(config: &Config) -> Result<Vec<(String, StoreUrl)>, String> {
    let named = config.stores.iter().map(|(name, url)| (format!("stores.{name}"), url));
    let fixed = [("table", &config.table), ("store", &config.store), ("reliable.journal", &config.reliable.journal)];
    let all = fixed.map(|(setting, url)| (setting.to_owned(), url)).into_iter().chain(named);
    // Empty stands for the setting's default.
    let all = all.filter(|(_, url)| !url.is_empty());
    let parsed = |(setting, url): (String, &String)| match url.parse() {
        Ok(url) => Ok((setting, url)),
        Err(error) => Err(format!("{setting}: {error}")),
    };
    all.map(parsed).collect()
}

fn shown(config: &Config) -> Result<String, String> {
    let mut fields = Table::try_from(config).map_err(|error| error.to_string())?;
    fields.iter_mut().for_each(|(_, value)| hide(value));
    toml::to_string(&fields).map_err(|error| error.to_string())
}

/// Takes the passwords out of all URLs, wherever they stand.
fn hide(value: &mut Value) {
    match value {
        Value::String(text) => *text = redact(text),
        Value::Array(values) => values.iter_mut().for_each(hide),
        Value::Table(fields) => fields.iter_mut().for_each(|(_, value)| hide(value)),
        Value::Integer(_) | Value::Float(_) | Value::Boolean(_) | Value::Datetime(_) => {}
    }
}
