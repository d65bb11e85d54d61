//! `greenroom certs`: a development authority, the certificates that it issues, and whether they will do.

mod check;
mod files;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use greenroom_security::identity::Who;
use greenroom_security::issue::{Authority, Issued};

use self::files::{Folder, Mode};

/// What to do with certificates.
#[derive(Args)]
pub(crate) struct CertsCommand {
    #[command(subcommand)]
    command: Certs,
}

#[derive(Subcommand)]
enum Certs {
    /// Make an authority for the certificates of one cluster: DIR/ca.pem and DIR/ca.key
    Ca {
        /// Where its files go
        #[arg(value_name = "DIR")]
        folder: PathBuf,
        /// The cluster's name: certificates of another one are refused
        #[arg(long, default_value = "greenroom")]
        cluster: String,
        /// Replace an authority that is there; the certificates of the old one are worth nothing then
        #[arg(long)]
        force: bool,
    },
    /// Issue a node's certificate: node.pem and node.key in DIR, or in DIR/NAME with a name
    Node {
        /// The authority's folder
        #[arg(value_name = "DIR")]
        folder: PathBuf,
        /// The node's name, for a certificate that no other node can use
        #[arg(long)]
        name: Option<String>,
        /// A name or address by which clients reach its HTTP door, besides localhost; may be repeated
        #[arg(long = "host", value_name = "HOST")]
        hosts: Vec<String>,
        #[command(flatten)]
        issue: Issue,
    },
    /// Issue a client's certificate for the HTTP door: client.pem and client.key in DIR/NAME
    Client {
        /// The authority's folder
        #[arg(value_name = "DIR")]
        folder: PathBuf,
        /// The client's name: its roles are in the node's configuration, under `auth.certificates`
        #[arg(long)]
        name: String,
        #[command(flatten)]
        issue: Issue,
    },
    /// Trust the authorities of other clusters, for connections between clusters alone: DIR/clusters.pem
    Trust {
        /// The folder of a node, or of this cluster's authority
        #[arg(value_name = "DIR")]
        folder: PathBuf,
        /// The authorities of the other clusters, all of them: their ca.pem, never their ca.key
        #[arg(value_name = "CA.PEM", required = true)]
        others: Vec<PathBuf>,
    },
    /// Say whom the certificates in DIR are for, how long, and whether a node could use them
    Check {
        /// The folder of a node
        #[arg(value_name = "DIR")]
        folder: PathBuf,
    },
}

#[derive(Args)]
struct Issue {
    /// How long the certificate is valid
    #[arg(long, default_value_t = 90)]
    days: u16,
    /// Replace a certificate that is there: running nodes take the new one up by themselves
    #[arg(long)]
    force: bool,
}

/// Does it, and says what to run next.
pub(crate) fn run(command: &CertsCommand) -> Result<(), String> {
    match &command.command {
        Certs::Ca { folder, cluster, force } => make_authority(folder.into(), cluster, Mode::of(*force)),
        Certs::Node { folder, name, hosts, issue } => issue_node(folder.into(), name.as_deref(), hosts, issue),
        Certs::Client { folder, name, issue } => issue_client(folder.into(), name, issue),
        Certs::Trust { folder, others } => trust(&folder.into(), others),
        Certs::Check { folder } => check::run(&folder.into()),
    }
}

fn make_authority(folder: Folder, cluster: &str, mode: Mode) -> Result<(), String> {
    if cluster.is_empty() {
        return Err("a cluster has a name; say it with --cluster".to_owned());
    }
    let authority = Authority::new(cluster)?;
    folder.create()?;
    folder.write_pair("ca", authority.pem(), mode)?;
    println!("made an authority for cluster {cluster:?}: {} and ca.key", folder.shown("ca.pem"));
    println!("keep ca.key to yourself; next: greenroom certs node {}", folder.shown(""));
    Ok(())
}

fn authority(folder: &Folder) -> Result<Authority, String> {
    let hint = |error: String| format!("{error}; make an authority first: greenroom certs ca {}", folder.shown(""));
    let (cert, key) = (folder.read("ca.pem").map_err(hint)?, folder.read("ca.key").map_err(hint)?);
    Authority::open(&cert, &key)
}

fn issue_node(folder: Folder, name: Option<&str>, hosts: &[String], issue: &Issue) -> Result<(), String> {
    let authority = authority(&folder)?;
    let who = name.map_or(Who::AnyNode, |name| Who::Node(name.to_owned()));
    let mut all: Vec<String> = ["localhost", "127.0.0.1", "::1"].map(String::from).into();
    all.extend(hosts.iter().filter(|host| !["localhost", "127.0.0.1", "::1"].contains(&host.as_str())).cloned());
    let issued = authority.issue(who, &all, (-1, i64::from(issue.days)))?;
    let target = place(&folder, name, &authority, "node", &issued, issue)?;
    let (whose, named) = match name {
        Some(name) => (format!("node {name:?}"), format!(" --name {name}")),
        None => ("any node".to_owned(), String::new()),
    };
    let cluster = authority.cluster();
    println!(
        "issued a certificate for {whose} of cluster {cluster:?}, {} days: {}",
        issue.days,
        target.shown("node.pem")
    );
    let cluster = if cluster == "greenroom" { String::new() } else { format!(" --cluster {cluster}") };
    println!("next: greenroom node --tls-dir {}{cluster}{named} --http 127.0.0.1:7070", target.shown(""));
    Ok(())
}

/// Writes the authorities of all clusters into one file: this one's first.
fn trust(folder: &Folder, others: &[PathBuf]) -> Result<(), String> {
    let mut all = folder.read("ca.pem")?;
    for other in others {
        let read =
            std::fs::read_to_string(other).map_err(|error| format!("cannot read {}: {error}", other.display()))?;
        if read.contains("PRIVATE KEY") {
            return Err(format!(
                "{} holds a private key, which is its cluster's own; name its ca.pem",
                other.display()
            ));
        }
        if !read.contains("BEGIN CERTIFICATE") {
            return Err(format!("{} holds no certificate; name the ca.pem of another cluster", other.display()));
        }
        all.push('\n');
        all += &read;
    }
    folder.write("clusters.pem", &all, Mode::Replace, 0o644)?;
    println!("connections between clusters trust {} authorities: {}", others.len() + 1, folder.shown("clusters.pem"));
    println!("next: greenroom node --tls-dir {} --config FILE, with `[geo]` in it", folder.shown(""));
    Ok(())
}

fn issue_client(folder: Folder, name: &str, issue: &Issue) -> Result<(), String> {
    let authority = authority(&folder)?;
    let issued = authority.issue(Who::Client(name.to_owned()), &[], (-1, i64::from(issue.days)))?;
    let target = place(&folder, Some(name), &authority, "client", &issued, issue)?;
    println!("issued a certificate for client {name:?}, {} days: {}", issue.days, target.shown("client.pem"));
    println!("its roles are in the node's configuration: [auth.certificates] {name:?} = [\"user\"]");
    let curl = ["ca.pem", "client.pem", "client.key"].map(|file| target.shown(file));
    println!("next: curl --cacert {} --cert {} --key {} https://localhost:7070/", curl[0], curl[1], curl[2]);
    Ok(())
}

/// Writes what was issued into the authority's folder, or into one of its own beside a copy of the authority's
/// certificate: that folder is all that the holder needs.
fn place(
    folder: &Folder,
    name: Option<&str>,
    authority: &Authority,
    stem: &str,
    issued: &Issued,
    issue: &Issue,
) -> Result<Folder, String> {
    let Some(name) = name else {
        folder.write_pair(stem, issued, Mode::of(issue.force))?;
        return Ok(folder.clone());
    };
    let own = folder.inside(name)?;
    own.create()?;
    own.write_pair(stem, issued, Mode::of(issue.force))?;
    own.write("ca.pem", &authority.pem().cert, Mode::Replace, 0o644)?;
    Ok(own)
}
