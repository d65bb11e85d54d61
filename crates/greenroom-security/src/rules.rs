//! Who may call what: rules that allow, and nothing that is not allowed.

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::principal::{ADMIN, ANONYMOUS, Principal};

/// Allows some roles to call some methods of some actors.
///
/// A `*` stands for any text. In `keys`, `{name}` stands for the caller's own name: `keys = "{name}"` opens to each only
/// the actor that is called like them.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// The roles, of which the caller has at least one. `*` is everybody with credentials, `anonymous` everybody without.
    pub roles: Vec<String>,
    /// The kind.
    pub kind: String,
    /// The methods.
    pub methods: Vec<String>,
    /// The keys; all if it is left out.
    #[serde(default = "all")]
    pub keys: String,
    /// Who has named the caller: the issuer of a JWT, or `own` for the node's tokens and certificates; anybody if it is left
    /// out. Where more than one may name callers, a rule with `{name}` must say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issuer: Option<String>,
}

fn all() -> String {
    "*".to_owned()
}

/// What a call is aimed at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Target<'a> {
    /// The actor's kind.
    pub kind: &'a str,
    /// Its key.
    pub key: &'a str,
    /// The method.
    pub method: &'a str,
}

/// The rules of a node.
#[derive(Debug, Default)]
pub struct Rules(Vec<Rule>);

impl Rules {
    /// Takes the rules over.
    ///
    /// # Errors
    /// A rule that could never allow anything: a list is empty.
    pub fn new(rules: Vec<Rule>) -> Result<Self, Error> {
        for (index, rule) in rules.iter().enumerate() {
            let empty = [("roles", rule.roles.is_empty()), ("methods", rule.methods.is_empty())];
            let empty = empty.into_iter().chain([("kind", rule.kind.is_empty()), ("keys", rule.keys.is_empty())]);
            if let Some((field, _)) = empty.into_iter().find(|(_, empty)| *empty) {
                let reason =
                    format!("`{field}` is empty, so the rule allows nothing; name some, or write \"*\" for all");
                return Err(Error::Setting { setting: format!("allow, rule {}", index + 1), reason });
            }
        }
        if let Some(index) = rules.iter().position(|rule| rule.keys.matches(NAME).count() > 1) {
            let reason = "`keys` may hold {name} once".to_owned();
            return Err(Error::Setting { setting: format!("allow, rule {}", index + 1), reason });
        }
        Ok(Self(rules))
    }

    /// Checks that each rule is about callers that there are, and that a name means one of them: `issuers` name callers, and
    /// if `own`, the node's configuration does.
    ///
    /// # Errors
    /// A rule that could be about somebody else than was meant.
    pub fn check_issuers(&self, own: bool, issuers: &[&str]) -> Result<(), Error> {
        let named = || own.then_some(OWN).into_iter().chain(issuers.iter().copied());
        let all = || named().map(|issuer| format!("{issuer:?}")).collect::<Vec<_>>().join(", ");
        for (index, rule) in self.0.iter().enumerate() {
            let reason = match &rule.issuer {
                Some(issuer) if named().any(|named| named == issuer) => continue,
                Some(issuer) => format!("`issuer` is {issuer:?}, who names no callers here; these do: {}", all()),
                None if rule.keys.contains(NAME) && named().count() > 1 => format!(
                    "its `keys` hold {NAME}, and callers are named by {}, so that one name may be two callers; say whose \
                     callers are meant with `issuer`, in a rule for each",
                    all()
                ),
                None => continue,
            };
            return Err(Error::Setting { setting: format!("allow, rule {}", index + 1), reason });
        }
        Ok(())
    }

    /// Whether there are any.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether `who` (`None` without credentials) may make this call. The role `admin` may make every one.
    pub fn allow(&self, who: Option<&Principal>, target: Target<'_>) -> bool {
        who.is_some_and(|who| who.has_role(ADMIN)) || self.0.iter().any(|rule| rule.allows(who, target))
    }
}

impl Rule {
    fn allows(&self, who: Option<&Principal>, Target { kind, key, method }: Target<'_>) -> bool {
        let role = |role: &String| match who {
            Some(who) => role == "*" || who.has_role(role),
            None => role == ANONYMOUS,
        };
        self.roles.iter().any(role)
            && self.issuer.as_ref().is_none_or(|issuer| who.is_some_and(|who| who.issuer().unwrap_or(OWN) == issuer))
            && matches(&self.kind, kind)
            && self.methods.iter().any(|pattern| matches(pattern, method))
            && self.matches_key(key, who)
    }

    fn matches_key(&self, key: &str, who: Option<&Principal>) -> bool {
        // What stands for a name is matched letter by letter, whatever the name holds.
        match (self.keys.split_once(NAME), who) {
            (None, _) => matches(&self.keys, key),
            (Some(_), None) => false,
            (Some((before, after)), Some(who)) => (0..=key.len()).any(|at| {
                let own = !who.name().is_empty() && key.is_char_boundary(at);
                let rest = if own { key[at..].strip_prefix(who.name()) } else { None };
                rest.is_some_and(|rest| matches(before, &key[..at]) && matches(after, rest))
            }),
        }
    }
}

/// Whether `text` is what `pattern` says, in which `*` is any text.
pub fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// The rule that would allow what was not, as it would stand in the configuration.
pub fn missing(who: &Principal, Target { kind, method, .. }: Target<'_>) -> String {
    let role = who.roles().next().unwrap_or("*");
    format!("{{ roles = [{role:?}], kind = {kind:?}, methods = [{method:?}] }}")
}

const NAME: &str = "{name}";
/// Who names the callers with the node's own tokens and certificates.
const OWN: &str = "own";

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(roles: &[&str], kind: &str, methods: &[&str], keys: &str) -> Rule {
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        Rule { roles: owned(roles), kind: kind.into(), methods: owned(methods), keys: keys.into(), issuer: None }
    }

    fn rules() -> Rules {
        Rules::new(vec![
            rule(&["user"], "chat_room", &["post", "read*"], "*"),
            rule(&["*"], "account", &["*"], "{name}"),
            rule(&["team"], "document", &["edit"], "team-*/{name}/*"),
            rule(&["anonymous"], "status", &["read"], "public"),
        ])
        .unwrap()
    }

    fn allowed(who: Option<&Principal>, path: &str) -> bool {
        let (kind, rest) = path.split_once(':').unwrap();
        let (key, method) = rest.rsplit_once(':').unwrap();
        rules().allow(who, Target { kind, key, method })
    }

    #[test]
    fn what_no_rule_allows_is_denied() {
        let ada = Principal::new("ada", ["user"]);
        for path in ["chat_room:lobby:post", "chat_room:lobby:read", "chat_room:x:read_all", "account:ada:close"] {
            assert!(allowed(Some(&ada), path), "{path}");
        }
        for path in [
            "chat_room:lobby:delete",
            "chat_room:lobby:reads".replace("reads", "rea").as_str(),
            "chat_rooms:lobby:post",
            "account:bob:close",
            "account:adam:close",
            "status:public:read",
            "document:team-a/ada/x:edit",
        ] {
            assert!(!allowed(Some(&ada), path), "{path}");
        }
        assert!(!Rules::default().allow(Some(&ada), Target { kind: "a", key: "b", method: "c" }));
    }

    #[test]
    fn without_credentials_only_what_is_for_everybody_is_allowed() {
        assert!(allowed(None, "status:public:read"));
        for path in ["status:private:read", "account::read", "chat_room:lobby:post"] {
            assert!(!allowed(None, path), "{path}");
        }
        // Who names a role so gains nothing by it.
        assert!(!allowed(None, "account:anonymous:read"));
    }

    #[test]
    fn an_admin_may_do_everything() {
        assert!(allowed(Some(&Principal::new("root", ["admin"])), "whatever:x:y"));
        assert!(!allowed(Some(&Principal::new("admin", [])), "whatever:x:y"));
    }

    #[test]
    fn a_name_opens_its_own_keys_letter_by_letter() {
        let star = Principal::new("*", ["team"]);
        assert!(allowed(Some(&star), "account:*:close") && !allowed(Some(&star), "account:bob:close"));
        let ada = Principal::new("ada", ["team"]);
        for (key, open) in [
            ("team-a/ada/x", true),
            ("team-/ada/", true),
            ("team-ada/ada/ada", true),
            ("team-a/bob/ada", false),
            ("team-a/ada", false),
            ("a/team-a/ada/x", false),
            ("team-é/ada/x", true),
            ("team-a/adada/ada/", true),
        ] {
            assert_eq!(allowed(Some(&ada), &format!("document:{key}:edit")), open, "{key}");
        }
        // An empty name is nobody's.
        assert!(!allowed(Some(&Principal::new("", ["team"])), "account:x:close"));
    }

    #[test]
    fn a_rule_is_for_the_callers_of_its_issuer() {
        let rules = |issuer: &str| {
            let own = Rule { issuer: Some(issuer.into()), ..rule(&["*"], "account", &["*"], "{name}") };
            Rules::new(vec![own]).unwrap()
        };
        let own = Principal::new("ada", []);
        let theirs = own.issued_by("https://id");
        let target = Target { kind: "account", key: "ada", method: "close" };
        for (issuer, who, allowed) in [
            ("own", &own, true),
            ("own", &theirs, false),
            ("https://id", &theirs, true),
            ("https://id", &own, false),
            ("https://id", &own.issued_by("https://other"), false),
        ] {
            assert_eq!(rules(issuer).allow(Some(who), target), allowed, "{issuer} {who:?}");
        }
        let anonymous = Rule { issuer: Some("own".into()), ..rule(&["anonymous"], "*", &["*"], "*") };
        assert!(!Rules::new(vec![anonymous]).unwrap().allow(None, target));
    }

    #[test]
    fn a_rule_about_names_says_whose_where_several_give_them() {
        let check = |keys: &str, issuer: Option<&str>, own: bool, issuers: &[&str]| {
            let rule = Rule { issuer: issuer.map(str::to_owned), ..rule(&["*"], "account", &["*"], keys) };
            Rules::new(vec![rule]).unwrap().check_issuers(own, issuers).map_err(|error| error.to_string())
        };
        for (own, issuers) in [(true, &[][..]), (false, &["https://id"]), (false, &[])] {
            assert_eq!(check("{name}", None, own, issuers), Ok(()), "{own} {issuers:?}");
        }
        for (own, issuers) in [(true, &["https://id"][..]), (false, &["https://id", "https://other"])] {
            let error = check("{name}", None, own, issuers).unwrap_err();
            assert!(error.contains("rule 1") && error.contains("`issuer`"), "{error}");
            assert_eq!(check("{name}", Some("https://id"), own, issuers), Ok(()));
            assert_eq!(check("*", None, own, issuers), Ok(()));
        }
        let error = check("*", Some("https://idd"), true, &["https://id"]).unwrap_err();
        assert!(error.contains("\"https://idd\"") && error.contains("\"own\", \"https://id\""), "{error}");
    }

    #[test]
    fn a_star_is_any_text() {
        for (pattern, text, fits) in [
            ("*", "", true),
            ("", "", true),
            ("", "a", false),
            ("a*", "a", true),
            ("*a", "ba", true),
            ("a*a", "a", false),
            ("a*b*c", "a--b--c", true),
            ("a*b*c", "acb", false),
            ("**", "x", true),
            ("*ab", "aab", true),
        ] {
            assert_eq!(matches(pattern, text), fits, "{pattern} {text}");
        }
    }

    #[test]
    fn a_rule_that_allows_nothing_is_an_error() {
        for rule in [rule(&[], "a", &["b"], "*"), rule(&["a"], "", &["b"], "*"), rule(&["a"], "b", &[], "*")] {
            let error = Rules::new(vec![rule]).unwrap_err().to_string();
            assert!(error.contains("rule 1") && error.contains("allows nothing"), "{error}");
        }
    }

    #[test]
    fn the_missing_rule_is_one_that_can_be_used() {
        let target = Target { kind: "chat_room", key: "lobby", method: "post" };
        let ada = Principal::new("ada", ["user"]);
        let missing = missing(&ada, target);
        let table: toml::Table = format!("allow = [{missing}]").parse().unwrap();
        let rules: Vec<Rule> = table["allow"].clone().try_into().unwrap();
        assert!(Rules::new(rules).unwrap().allow(Some(&ada), target));
    }
}
