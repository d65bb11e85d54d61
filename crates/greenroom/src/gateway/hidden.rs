//! Keys that viewers do not see: wherever one would be told, a hash stands in its place.
//!
//! What is told is gone through as a whole, so that no page has to think of it. A text that holds an actor's name is a name, or is
//! written by us and has the name within it: there the names of the same object are known, and what is not known is cut.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

use serde_json::Value;

use super::path::{decode, encode};
use super::problem::Problem;

/// The kinds whose keys are hidden.
#[derive(Default)]
pub(super) struct Hidden {
    kinds: Vec<String>,
    /// Drawn when the door opens: nobody can try keys against the hashes.
    secret: RandomState,
}

impl Hidden {
    pub(super) fn new(kinds: &[String]) -> Self {
        Self { kinds: kinds.to_vec(), secret: RandomState::new() }
    }

    /// What stands in place of a key: the same for as long as the door is open.
    pub(super) fn hash(&self, kind: &str, key: &str) -> String {
        format!("#{:016x}", self.secret.hash_one((kind, key)))
    }

    /// Takes the keys out of what is told.
    pub(super) fn hide(&self, told: &mut Value) {
        if !self.kinds.is_empty() {
            self.walk(told, &mut Vec::new());
        }
    }

    /// Refuses who may not see keys and chooses by one.
    ///
    /// # Errors
    /// The keys of `kind` are hidden, or those of one of all kinds.
    pub(super) fn check(&self, kind: Option<&str>) -> Result<(), Problem> {
        let hidden = match kind {
            Some(kind) => self.kinds.iter().find(|hidden| *hidden == kind),
            None => self.kinds.first(),
        };
        hidden.map_or(Ok(()), |kind| Err(Problem::hidden_keys(kind)))
    }

    fn walk(&self, told: &mut Value, names: &mut Vec<String>) {
        match told {
            Value::String(text) => *text = self.without_key(text, names),
            Value::Array(items) => items.iter_mut().for_each(|item| self.walk(item, names)),
            Value::Object(members) => {
                let known = names.len();
                members.iter().for_each(|(name, value)| self.learn(name, value, names));
                let all = std::mem::take(members).into_iter();
                *members = all
                    .map(|(name, mut value)| {
                        match &mut value {
                            Value::String(link) if name == LINK => *link = self.without_keys_in_path(link),
                            Value::String(text) if PROSE.contains(&&*name) => *text = self.without_keys(text, names),
                            other => self.walk(other, names),
                        }
                        (self.without_key(&name, names), value)
                    })
                    .collect();
                names.truncate(known);
            }
            _ => {}
        }
    }

    /// Learns the names of hidden actors that stand in a member or below it.
    fn learn(&self, member: &str, value: &Value, names: &mut Vec<String>) {
        match value {
            Value::String(text) if member != LINK && !PROSE.contains(&member) && self.kind_of(text).is_some() => {
                names.push(text.clone())
            }
            Value::Object(members) => members.iter().for_each(|(name, value)| self.learn(name, value, names)),
            _ => {}
        }
    }

    /// The hidden kind whose actor's name `text` is.
    fn kind_of(&self, text: &str) -> Option<&str> {
        let (kind, _) = text.split_once('/')?;
        self.kinds.iter().map(String::as_str).find(|hidden| *hidden == kind)
    }

    /// A name without its key; or a text.
    fn without_key(&self, text: &str, names: &[String]) -> String {
        match self.kind_of(text) {
            Some(kind) => format!("{kind}/{}", self.hash(kind, &text[kind.len() + 1..])),
            None => self.without_keys(text, names),
        }
    }

    /// A text in which names may stand, those of `names` or others: those are cut with all that follows.
    fn without_keys(&self, text: &str, names: &[String]) -> String {
        let (mut hidden, mut rest) = (String::new(), text);
        while let Some((at, kind)) = self.first_in(rest, hidden.chars().last()) {
            let (before, from) = rest.split_at(at);
            hidden.push_str(before);
            let ends = |name: &&String| {
                let next = from[name.len()..].chars().next();
                next.is_none_or(|next| next.is_whitespace() || ",;:)\"'".contains(next))
            };
            let known = names.iter().filter(|name| from.starts_with(name.as_str())).max_by_key(|name| name.len());
            let Some(name) = known.filter(ends) else {
                return format!("{hidden}{kind}/…");
            };
            hidden.push_str(&format!("{kind}/{}", self.hash(kind, &name[kind.len() + 1..])));
            rest = &from[name.len()..];
        }
        hidden + rest
    }

    /// A link, in which names stand percent-encoded as parts of a path: all that follows a hidden kind is hashed, and so are names in one part.
    fn without_keys_in_path(&self, link: &str) -> String {
        let mut of = None;
        let parts = link.split_inclusive(['/', '?', '&', '=']).map(|part| {
            let (part, end) = part.split_at(part.trim_end_matches(['/', '?', '&', '=']).len());
            let Ok(said) = decode(part) else { return "…".to_owned() + end };
            let told = match of {
                Some(kind) if !said.is_empty() => self.hash(kind, &said),
                _ => self.without_key(&said, &[]),
            };
            of = of.or_else(|| self.kinds.iter().find(|kind| **kind == said).map(String::as_str));
            let part = if told == said { part.to_owned() } else { encode(&told) };
            part + end
        });
        parts.collect()
    }

    /// Where a name of a hidden kind begins in `text`, which stands behind `before`.
    fn first_in(&self, text: &str, before: Option<char>) -> Option<(usize, &str)> {
        let begins = |at: usize| {
            let before = text[..at].chars().last().or(before);
            before.is_none_or(|before| !before.is_alphanumeric() && before != '_')
        };
        let found = self.kinds.iter().filter_map(|kind| {
            let name = format!("{kind}/");
            text.match_indices(&name).map(|(at, _)| at).find(|at| begins(*at)).map(|at| (at, kind.as_str()))
        });
        found.min()
    }
}

/// Members that are written for people, and may have names anywhere.
const PROSE: [&str; 6] = ["text", "title", "what", "why", "detail", "error"];
/// The member that leads to one of the console's pages.
const LINK: &str = "page";

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn hidden() -> Hidden {
        Hidden::new(&["user".to_owned()])
    }

    #[test]
    fn a_hash_stands_in_place_of_a_key_wherever_it_is_told() {
        let hidden = hidden();
        let name = format!("user/{}", hidden.hash("user", "ada lovelace"));
        let mut told = json!({
            "actor": "user/ada lovelace",
            "callers": ["user/ada lovelace", "room/lobby", "superuser/ada"],
            "subject": { "actor": "user/ada lovelace" },
            "text": "user/ada lovelace is asked to go to node b",
            "page": "#/actor/user/ada%20lovelace",
            "user/ada lovelace": 1,
        });
        hidden.hide(&mut told);
        assert_eq!(told["actor"], name);
        assert_eq!(told["callers"], json!([name, "room/lobby", "superuser/ada"]));
        assert_eq!(told["text"], format!("{name} is asked to go to node b"));
        let linked = hidden.hash("user", "ada lovelace").replace('#', "%23");
        assert_eq!(told["page"], format!("#/actor/user/{linked}"), "a link leads to the same name");
        assert!(!told.to_string().contains("ada lovelace"), "{told}");
    }

    #[test]
    fn no_key_is_in_a_link_and_links_to_others_stay() {
        let hidden = hidden();
        let hashed = |key: &str| hidden.hash("user", key).replace('#', "%23");
        for (link, shown) in [
            ("#/actor/room/a%2Fb?at=7&of=user", "#/actor/room/a%2Fb?at=7&of=user".to_owned()),
            ("#/actor/user/a%2Fb", format!("#/actor/user/{}", hashed("a/b"))),
            ("#/state/user/self/ada", format!("#/state/user/{}/{}", hashed("self"), hashed("ada"))),
            ("#/actors?kind=user&prefix=ada", format!("#/actors?kind=user&{}={}", hashed("prefix"), hashed("ada"))),
            ("#/find?of=user%2Fada", format!("#/find?of=user%2F{}", hashed("ada"))),
            ("#/actor/%ff/ada", "#/actor/…/ada".to_owned()),
        ] {
            let mut told = json!({ "page": link });
            hidden.hide(&mut told);
            assert_eq!(told["page"], shown, "{link}");
        }
    }

    #[test]
    fn a_key_that_goes_on_behind_a_known_one_is_cut() {
        let mut told = json!({ "subject": { "actor": "user/ad" }, "text": "user/ada waits for user/bob" });
        hidden().hide(&mut told);
        assert_eq!(told["text"], "user/…");
    }

    #[test]
    fn who_does_not_see_keys_chooses_by_none_of_them() {
        let hidden = hidden();
        assert!(hidden.check(Some("user")).is_err() && hidden.check(None).is_err());
        assert!(hidden.check(Some("room")).is_ok() && Hidden::default().check(None).is_ok());
    }

    #[test]
    fn another_door_has_other_hashes() {
        assert_ne!(hidden().hash("user", "ada"), hidden().hash("user", "ada"));
    }
}
