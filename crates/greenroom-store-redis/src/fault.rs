//! Redis's errors in the store's terms, with the remedy; never a password.

use greenroom_store::StoreError;
use redis::{RedisError, ServerError, Value};

use crate::FORMAT;
use crate::target::Target;

/// Whether the server answers so before it runs anything of a script, so that nothing is or will be applied. An error
/// from the middle of a script (which a user's rights, looked at when the store was opened, or keys of another program
/// may cause) leaves open what was applied before it.
pub(crate) fn is_without_effect(error: &ServerError) -> bool {
    let said = error.details().unwrap_or_default();
    // Nothing had been written yet, as only the first command that needs memory is refused.
    let out_of_memory = error.code() == "OOM" || said.contains("OOM command not allowed");
    let denied = error.code() == "NOPERM" && said.contains("evalsha");
    out_of_memory || denied || BEFORE.contains(&error.code())
}

/// What the server's answer `error` means for the operation on `key`, when it has had no effect.
pub(crate) fn of_answer(target: &Target, key: &str, error: &ServerError) -> StoreError {
    let (store, said) = (target.name.clone(), said(error));
    let unavailable =
        |remedy: &str| StoreError::Unavailable { store: store.clone(), reason: format!("{said}; {remedy}") };
    let lacks_rights = said.contains("can't run this command") || said.contains("can't access");
    match error.code() {
        _ if said.contains("OOM command not allowed") => StoreError::Full { store, reason: said },
        "OOM" => StoreError::Full { store, reason: said },
        "MISCONF" => StoreError::Full { store, reason: format!("{said} (look at the server's log and disk)") },
        "WRONGPASS" | "NOAUTH" => {
            let remedy = "look at its user and password (password_file, password_env)";
            StoreError::Denied { store, reason: format!("{said}; {remedy}") }
        }
        "NOPERM" => StoreError::Denied { store, reason: format!("{said}; {}", remedy_for_rights(target)) },
        _ if lacks_rights => StoreError::Denied { store, reason: format!("{said}; {}", remedy_for_rights(target)) },
        "MOVED" | "ASK" | "CROSSSLOT" | "CLUSTERDOWN" => cluster(target),
        "READONLY" => unavailable("it is a replica; name the primary"),
        "LOADING" => unavailable("it is still reading its files; try again in a moment"),
        "NOREPLICAS" => unavailable("too few replicas are connected for its min-replicas-to-write; look at them"),
        "BUSY" => unavailable("another program's script does not end; look for it (SCRIPT KILL)"),
        "NOSCRIPT" => StoreError::NotApplied { key: key.to_owned(), reason: format!("{said}; try again") },
        _ if said.contains("DB index is out of range") => {
            let reason = format!("{said}; name a database below the server's `databases`");
            StoreError::Configuration { store, reason }
        }
        _ => unavailable("look at the server's log"),
    }
}

/// What `error` means when a connection is opened or prepared.
pub(crate) fn of_opening(target: &Target, error: &RedisError) -> StoreError {
    let said = error.to_string();
    if let Ok(server) = ServerError::try_from(error.clone()) {
        return of_answer(target, "", &server);
    }
    if error.kind() == redis::ErrorKind::AuthenticationFailed {
        let reason = format!(
            "it refuses the password of user {:?} ({said}); look at its user and password (password_file, password_env)",
            target.user()
        );
        return StoreError::Denied { store: target.name.clone(), reason };
    }
    StoreError::Unavailable { store: target.name.clone(), reason: format!("{said}; {LOOK}") }
}

/// What the end of a connection means for a read.
pub(crate) fn of_connection(target: &Target, error: &RedisError) -> StoreError {
    let reason = format!("the connection has failed ({error}); try again");
    StoreError::Unavailable { store: target.name.clone(), reason }
}

/// An answer that no script of this program gives.
pub(crate) fn strange(target: &Target, value: &Value) -> StoreError {
    let kind = match value {
        Value::Nil => "nothing",
        Value::Array(_) => "another list",
        _ => "something else",
    };
    let reason = format!(
        "a script was answered by {kind}: the keys under {:?} are not this program's; name another prefix",
        target.prefix
    );
    StoreError::Format { store: target.name.clone(), reason }
}

/// What is said of a format that is not this program's; empty if there is none.
pub(crate) fn format(target: &Target, found: &str) -> StoreError {
    let reason = if found.is_empty() {
        "its data are gone: it was flushed, or restarted without having kept them; what was acknowledged is lost, so \
         stop all nodes, restore a backup or start anew, and turn appendonly on"
            .to_owned()
    } else {
        format!("its format is {found}, this program knows {FORMAT}; use the newer Greenroom that wrote it")
    };
    StoreError::Format { store: target.name.clone(), reason }
}

/// What is said of a server in cluster mode.
pub(crate) fn cluster(target: &Target) -> StoreError {
    let reason = "it is in cluster mode, where a script cannot reach every key, so it is not supported; use a server \
        (with replicas, if you like) outside a cluster";
    StoreError::Configuration { store: target.name.clone(), reason: reason.to_owned() }
}

fn remedy_for_rights(target: &Target) -> String {
    let (user, prefix) = (target.user(), &target.prefix);
    format!(
        "give it rights: ACL SETUSER {user} ~{prefix}* +@read +@write +@scripting +@connection +info +config|get +wait"
    )
}

fn said(error: &ServerError) -> String {
    match error.details() {
        Some(details) => format!("{} {details}", error.code()),
        None => error.code().to_owned(),
    }
}

/// Answers that come before a script has begun.
const BEFORE: [&str; 12] = [
    "NOSCRIPT",
    "MISCONF",
    "READONLY",
    "NOREPLICAS",
    "LOADING",
    "NOAUTH",
    "BUSY",
    "MASTERDOWN",
    "MOVED",
    "ASK",
    "CROSSSLOT",
    "CLUSTERDOWN",
];

pub(crate) const LOOK: &str = "is the server running, and are host, port, TLS and firewall right?";
