//! Whether a node could run with what is in a folder.

use std::os::unix::fs::PermissionsExt;

use greenroom_security::files::NodeTls;
use greenroom_security::identity::{Identity, Who};
use greenroom_security::link::Links;

use super::files::Folder;

pub(super) fn run(folder: &Folder) -> Result<(), String> {
    let files = NodeTls::in_folder(folder.path());
    if !folder.has("node.pem") {
        let hint = format!("issue a certificate: greenroom certs node {}", folder.shown(""));
        return Err(format!("{} is not there; {hint}", folder.shown("node.pem")));
    }
    let cluster = identity(folder)?.cluster;
    // Whatever a node would refuse is refused here, in the same words.
    let links = Links::secure(&files, &cluster).map_err(|error| error.to_string())?;
    let certificates = links.certificates().ok_or("no certificates")?.current();
    let identity = certificates.identity();
    let whose = match &identity.who {
        Who::Node(name) => format!("node {name:?}"),
        _ => "any node".to_owned(),
    };
    let days = certificates.seconds_left() / (24 * 3600);
    println!("{} is for {whose} of cluster {:?}: {identity}", folder.shown("node.pem"), identity.cluster);
    println!("valid for {days} days more, its key fits, and it leads to {}", folder.shown("ca.pem"));
    for key in ["node.key", "ca.key"] {
        let Ok(found) = std::fs::metadata(folder.path().join(key)) else { continue };
        let mode = found.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            println!("warning: others may read {0} (mode {mode:03o}); chmod 600 {0}", folder.shown(key));
        }
    }
    if folder.has("ca.key") {
        println!("note: the authority's own key lies here too; a node does not need it");
    }
    Ok(())
}

fn identity(folder: &Folder) -> Result<Identity, String> {
    Identity::of_pem(&folder.read("node.pem")?).map_err(|reason| format!("{}: {reason}", folder.shown("node.pem")))
}
