//! What stands in the brackets of `#[actor(..)]`.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote};
use syn::parse::Parser;
use syn::spanned::Spanned;
use syn::{Error, Expr, ExprLit, Lit, LitInt, LitStr, Meta, MetaNameValue, Path, Result, Token};

use crate::names;

/// The options of one attribute; what is not written is `None`.
#[derive(Default)]
pub(crate) struct Options {
    pub(crate) kind: Option<LitStr>,
    placement: Option<LitStr>,
    idle_ms: Option<u64>,
    workers: Option<u16>,
    mailbox: Option<u32>,
    in_flight: Option<u32>,
    /// The actor as a whole is a state.
    pub(crate) persistent: bool,
    /// Its turns commit in a journal.
    pub(crate) reliable: bool,
    /// The first state of a state machine.
    pub(crate) start: Option<LitStr>,
    /// All of its states, the first one first.
    pub(crate) states: Vec<String>,
    /// Its activations carry the whole of it to other nodes.
    pub(crate) migrate: bool,
    /// Whether the optimiser moves its actors, if that does not follow from their placement.
    optimise: Option<bool>,
    save: Option<Save>,
    store: Option<LitStr>,
    /// How many instances there are over several clusters.
    instances: Option<Instances>,
    /// Whether nothing is activated while a cluster is silent.
    pessimistic: Option<bool>,
    /// Where its actors are at home.
    home: Option<LitStr>,
    /// How the instances of its versioned states agree.
    protocol: Option<LitStr>,
    /// The cluster whose instances lead.
    leader: Option<LitStr>,
    /// The version of the state's type.
    pub(crate) version: Option<u8>,
    /// The earliest version of it that is written.
    pub(crate) writes: Option<u8>,
    /// The version of the interface.
    interface: Option<u16>,
    /// The oldest version of the interface whose callers are served.
    compatible: Option<u16>,
    /// What must hold of it after each turn.
    pub(crate) invariant: Option<Path>,
    /// The options in the order in which they are written.
    written: Vec<(&'static str, Span)>,
}

impl Options {
    /// Reads `name = value, ..`.
    pub(crate) fn parse(tokens: TokenStream) -> Result<Self> {
        let metas = syn::punctuated::Punctuated::<Meta, Token![,]>::parse_terminated.parse2(tokens)?;
        let mut options = Self::default();
        for meta in &metas {
            match meta {
                Meta::Path(path) => options.set_word(path)?,
                Meta::NameValue(pair) => options.set(pair)?,
                other => return Err(misplaced(other)),
            }
        }
        let written = |wanted| options.written.iter().find(|(name, _)| *name == wanted);
        if let (Some((_, span)), [version, compatible]) = (written("compatible"), options.versions())
            && compatible > version
        {
            let message = format!(
                "`compatible` is the oldest version of the interface whose callers are served: at most {version}, which is \
                 what `interface` says"
            );
            return Err(Error::new(*span, message));
        }
        if let (Some(instances), Some((_, span))) = (options.instances, written("activation"))
            && let Some(why) = instances.refuses_activation()
        {
            return Err(Error::new(*span, why));
        }
        if let (Some(instances), Some((_, span))) = (options.instances, written("home"))
            && let Some(why) = instances.refuses_home()
        {
            return Err(Error::new(*span, why));
        }
        if let (Some(Instances::Adaptive), Some((_, span))) = (options.instances, written("workers")) {
            return Err(Error::new(*span, "workers have no state to count the uses of: leave `instances` out"));
        }
        if let (true, Some((_, span))) = (options.persistent, written("workers")) {
            let message = "`workers` does not go with `persistent`: several activations of one actor would overwrite each \
                           other's record; leave one of the two out";
            return Err(Error::new(*span, message));
        }
        if options.reliable {
            let reason = "does not go with `reliable`: the journal's partitions say where such actors are, and each turn is \
                          saved with its messages";
            if let (Some(instances), Some((_, span))) = (options.instances, written("instances"))
                && instances != Instances::PerCluster
            {
                let why = "each cluster has reliable actors of its own: write `instances = \"per_cluster\"`, or leave it out where \
                           there are no other clusters";
                return Err(Error::new(*span, why));
            }
            options.allow_only(
                &["reliable", "start", "kind", "idle", "interface", "compatible", "invariant", "instances"],
                reason,
            )?;
        } else if let Some((_, span)) = written("start") {
            return Err(Error::new(*span, "state machines are reliable actors: write `reliable, start = \"..\"`"));
        }
        if let Some((_, span)) = written("writes").filter(|_| options.writes >= Some(options.version.unwrap_or(1))) {
            let message = "`writes` is an earlier version than `version`, which the hook `write_older` writes while nodes of an \
                           older program are there";
            return Err(Error::new(*span, message));
        }
        match written("version") {
            Some((_, span)) if !options.persistent => {
                let message =
                    "`version` is that of a state: write `persistent` too, or implement `State` for the field's type";
                Err(Error::new(*span, message))
            }
            _ => Ok(options),
        }
    }

    /// The version of the interface, and the oldest one whose callers are served: all of them if nothing is said.
    pub(crate) fn versions(&self) -> [u16; 2] {
        [self.interface.unwrap_or(1), self.compatible.unwrap_or(1)]
    }

    /// Takes an option that stands alone.
    fn set_word(&mut self, path: &Path) -> Result<()> {
        let Some(&name) = WORDS.iter().find(|word| path.is_ident(word)) else {
            return Err(misplaced(&Meta::Path(path.clone())));
        };
        if self.written.iter().any(|(earlier, _)| *earlier == name) {
            return Err(Error::new_spanned(path, format!("`{name}` is written twice")));
        }
        self.written.push((name, path.span()));
        match name {
            "persistent" => self.persistent = true,
            "reliable" => self.reliable = true,
            "migrate" => self.migrate = true,
            _ if self.optimise.is_some() => {
                let message =
                    "`pinned` actors stay where they are, and those with `optimise` do not: write one of the two";
                return Err(Error::new_spanned(path, message));
            }
            _ => self.optimise = Some(name == "optimise"),
        }
        Ok(())
    }

    fn set(&mut self, pair: &MetaNameValue) -> Result<()> {
        let written = pair.path.get_ident().map(ToString::to_string).unwrap_or_default();
        let Some(&name) = KNOWN.iter().find(|known| **known == written) else {
            return Err(unknown(&pair.path, KNOWN));
        };
        if WORDS.contains(&name) {
            return Err(Error::new_spanned(pair, format!("write `{name}` alone")));
        }
        if self.written.iter().any(|(earlier, _)| *earlier == name) {
            return Err(Error::new_spanned(pair, format!("`{name}` is written twice")));
        }
        self.written.push((name, pair.path.get_ident().map_or_else(Span::call_site, syn::Ident::span)));
        match name {
            "kind" => self.kind = Some(kind(text(&pair.value)?)?),
            "placement" => self.placement = Some(placement(text(&pair.value)?)?),
            "idle" => self.idle_ms = Some(duration_ms(&text(&pair.value)?)?),
            "workers" => self.workers = Some(count(&pair.value, "leave `workers` out for an ordinary actor")?),
            "save" => self.save = Some(save(&text(&pair.value)?)?),
            "start" => self.start = Some(text(&pair.value)?),
            "store" => self.store = Some(text(&pair.value)?),
            "instances" => self.instances = Some(instances(&text(&pair.value)?)?),
            "activation" => self.pessimistic = Some(either(&text(&pair.value)?, "optimistic", "pessimistic")?),
            "home" => self.home = Some(home(text(&pair.value)?)?),
            "protocol" => self.protocol = Some(text(&pair.value)?),
            "leader" => self.leader = Some(text(&pair.value)?),
            "version" => self.version = Some(count(&pair.value, "versions begin with 1")?),
            "writes" => self.writes = Some(count(&pair.value, "versions begin with 1")?),
            "interface" => self.interface = Some(count(&pair.value, "versions begin with 1")?),
            "compatible" => self.compatible = Some(count(&pair.value, "versions begin with 1")?),
            "invariant" => self.invariant = Some(invariant(&text(&pair.value)?)?),
            "in_flight" => {
                self.in_flight = Some(count(&pair.value, "leave `in_flight` out for a kind without a bound")?)
            }
            _ => self.mailbox = Some(count(&pair.value, "an actor without a mailbox gets no messages")?),
        }
        Ok(())
    }

    /// Refuses every option but those in `allowed`, with `reason`.
    pub(crate) fn allow_only(&self, allowed: &[&str], reason: &str) -> Result<()> {
        match self.written.iter().find(|(name, _)| !allowed.contains(name)) {
            Some((name, span)) => Err(Error::new(*span, format!("`{name}` {reason}"))),
            None => Ok(()),
        }
    }
}

/// What is wrong with something that is neither `name = value` nor a word that stands alone.
fn misplaced(meta: &Meta) -> Error {
    let path = meta.path();
    match KNOWN.iter().find(|known| path.is_ident(known)) {
        None => unknown(path, KNOWN),
        Some(name) if WORDS.contains(name) => Error::new_spanned(meta, format!("write `{name}` alone")),
        Some(name) => Error::new_spanned(meta, format!("`{name}` wants a value: write `{name} = ..`")),
    }
}

/// What is wrong with the option at `path`, which is none of `known`.
pub(crate) fn unknown(path: &Path, known: &[&str]) -> Error {
    let written = path.to_token_stream().to_string().replace(' ', "");
    let remedy = match names::nearest(&written, known) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("the options are {}", known.join(", ")),
    };
    Error::new_spanned(path, format!("unknown option `{written}`; {remedy}"))
}

/// When states are saved.
#[derive(Clone, Copy)]
enum Save {
    Explicit,
    EachTurn,
    Every(u64),
}

/// How many instances of an actor there are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Instances {
    Single,
    PerCluster,
    Adaptive,
}

impl Instances {
    fn refuses_activation(self) -> Option<&'static str> {
        match self {
            Self::Single => None,
            Self::PerCluster => Some("an instance of each cluster asks no other cluster: leave `activation` out"),
            Self::Adaptive => Some(
                "the number of instances changes without waiting for a silent cluster: leave `activation` out, or write \
                 `instances = \"single\"`",
            ),
        }
    }

    fn refuses_home(self) -> Option<&'static str> {
        match self {
            Self::Single => None,
            Self::PerCluster => Some("each cluster has an instance, which is at home there: leave `home` out"),
            Self::Adaptive => {
                Some("its uses say where it is at home: leave `home` out, or write `instances = \"single\"`")
            }
        }
    }
}

/// The runtime's `Options`, as an expression.
impl ToTokens for Options {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        let placement = self.placement.as_ref().map_or_else(|| "balanced".to_owned(), LitStr::value);
        let workers = self.workers.unwrap_or(0);
        let idle = optional(self.idle_ms.map(|ms| quote!(::core::time::Duration::from_millis(#ms))));
        let mailbox = optional(self.mailbox);
        let in_flight = optional(self.in_flight);
        let (persistent, reliable) = (self.persistent, self.reliable);
        // A turn's answer waits for its end.
        let saving = match self.save.unwrap_or(if reliable { Save::EachTurn } else { Save::Explicit }) {
            Save::Explicit => quote!(Explicit),
            Save::EachTurn => quote!(EachTurn),
            Save::Every(ms) => quote!(Every(::core::time::Duration::from_millis(#ms))),
        };
        let store = self.store.as_ref().map_or_else(String::new, LitStr::value);
        let instances = match (self.instances, self.pessimistic) {
            (Some(Instances::PerCluster), _) => quote!(PerCluster),
            (_, Some(true)) => quote!(Pessimistic),
            _ => quote!(Optimistic),
        };
        let adaptive = self.instances == Some(Instances::Adaptive);
        let optimise = optional(self.optimise);
        let [protocol, leader] =
            [&self.protocol, &self.leader].map(|said| said.as_ref().map_or_else(String::new, LitStr::value));
        let home = self.home.as_ref().map_or_else(String::new, LitStr::value);
        tokens.extend(quote! {
            ::greenroom::__private::Options {
                placement: #placement,
                workers: #workers,
                idle: #idle,
                mailbox: #mailbox,
                in_flight: #in_flight,
                persistent: #persistent,
                reliable: #reliable,
                saving: ::greenroom::__private::Saving::#saving,
                store: #store,
                instances: ::greenroom::__private::Instances::#instances,
                adaptive: #adaptive,
                home: #home,
                protocol: #protocol,
                leader: #leader,
                optimise: #optimise,
            }
        });
    }
}

fn optional(value: Option<impl ToTokens>) -> TokenStream {
    match value {
        Some(value) => quote!(::core::option::Option::Some(#value)),
        None => quote!(::core::option::Option::None),
    }
}

pub(crate) fn text(value: &Expr) -> Result<LitStr> {
    match value {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Ok(text.clone()),
        other => Err(Error::new_spanned(other, "write a string in quotes")),
    }
}

fn instances(value: &LitStr) -> Result<Instances> {
    match value.value().as_str() {
        "single" => Ok(Instances::Single),
        "per_cluster" => Ok(Instances::PerCluster),
        "adaptive" => Ok(Instances::Adaptive),
        _ => Err(Error::new_spanned(value, "write \"single\", \"per_cluster\" or \"adaptive\"")),
    }
}

/// Which of two words it is: true for the second.
fn either(value: &LitStr, one: &str, other: &str) -> Result<bool> {
    match value.value() {
        word if word == one => Ok(false),
        word if word == other => Ok(true),
        _ => Err(Error::new_spanned(value, format!("write \"{one}\" or \"{other}\""))),
    }
}

fn count<N: std::str::FromStr<Err: std::fmt::Display> + PartialEq + From<u8>>(value: &Expr, zero: &str) -> Result<N> {
    let number: &LitInt = match value {
        Expr::Lit(ExprLit { lit: Lit::Int(number), .. }) => number,
        other => return Err(Error::new_spanned(other, "write a whole number")),
    };
    let count: N = number.base10_parse()?;
    if count == N::from(0) {
        return Err(Error::new_spanned(value, format!("write 1 or more; {zero}")));
    }
    Ok(count)
}

fn kind(name: LitStr) -> Result<LitStr> {
    let value = name.value();
    let plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | '.');
    // A path reads `-`, `.` and `..` as something else.
    if !value.chars().any(|letter| letter.is_ascii_alphanumeric()) || !value.chars().all(plain) {
        let message = "a kind is a name of ASCII letters, digits, `_`, `-` and `.`, with a letter or digit among them: \
                       it stands in URLs";
        return Err(Error::new_spanned(name, message));
    }
    Ok(name)
}

fn invariant(written: &LitStr) -> Result<Path> {
    written.parse().map_err(|_| {
        let message = "name a function `fn(&self) -> Result<(), String>`, such as \"Self::sound\"";
        Error::new_spanned(written, message)
    })
}

fn home(written: LitStr) -> Result<LitStr> {
    match written.value().as_str() {
        "lease" => Ok(written),
        other if other.strip_prefix("lease:").is_some_and(|cluster| !cluster.is_empty()) => Ok(written),
        _ => {
            let message = "write \"lease\", or \"lease:NAME\" for actors that are all at home in the cluster NAME";
            Err(Error::new_spanned(written, message))
        }
    }
}

fn placement(name: LitStr) -> Result<LitStr> {
    if matches!(name.value().trim(), "" | "role:") {
        let message =
            "name a placement: \"balanced\", \"local\", \"random\", \"hash\", \"role:NAME\", or one of your own";
        return Err(Error::new_spanned(name, message));
    }
    Ok(name)
}

fn save(written: &LitStr) -> Result<Save> {
    match written.value().as_str() {
        "explicit" => Ok(Save::Explicit),
        "turn" => Ok(Save::EachTurn),
        _ => duration_ms(written).map(Save::Every).map_err(|_| {
            let message = "write \"explicit\", \"turn\", or a duration such as \"5s\": at most so often";
            Error::new_spanned(written, message)
        }),
    }
}

fn duration_ms(written: &LitStr) -> Result<u64> {
    let bad = || {
        Error::new_spanned(written, "write a duration above zero such as \"500ms\", \"30s\", \"5m\", \"2h\" or \"1d\"")
    };
    let value = written.value();
    let unit_at = value.find(|letter: char| !letter.is_ascii_digit()).ok_or_else(bad)?;
    let (number, unit) = value.split_at(unit_at);
    let unit_ms: u64 = match unit {
        "ms" => 1,
        "s" => 1000,
        "m" => 60 * 1000,
        "h" => 60 * 60 * 1000,
        "d" => 24 * 60 * 60 * 1000,
        _ => return Err(bad()),
    };
    let number: u64 = number.parse().map_err(|_| bad())?;
    number.checked_mul(unit_ms).filter(|ms| *ms > 0).ok_or_else(bad)
}

/// Options that stand alone.
const WORDS: &[&str] = &["persistent", "reliable", "migrate", "pinned", "optimise"];

const KNOWN: &[&str] = &[
    "kind",
    "placement",
    "idle",
    "workers",
    "mailbox",
    "in_flight",
    "persistent",
    "reliable",
    "start",
    "migrate",
    "pinned",
    "optimise",
    "save",
    "store",
    "protocol",
    "leader",
    "version",
    "writes",
    "interface",
    "compatible",
    "instances",
    "activation",
    "home",
    "invariant",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn error(options: TokenStream) -> String {
        Options::parse(options).err().map(|error| error.to_string()).unwrap_or_default()
    }

    #[test]
    fn durations_have_a_unit() {
        let duration = |text: &str| duration_ms(&LitStr::new(text, Span::call_site())).ok();
        assert_eq!(duration("500ms"), Some(500));
        assert_eq!(duration("5m"), Some(300_000));
        assert_eq!(duration("1d"), Some(86_400_000));
        for bad in ["", "5", "m", "5 m", "-5m", "0s", "5weeks", "99999999999999999999d", "9999999999999999d"] {
            assert_eq!(duration(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn an_unknown_option_is_refused_with_the_nearest_one() {
        assert_eq!(error(quote!(placment = "hash")), "unknown option `placment`; did you mean `placement`?");
        assert_eq!(error(quote!(persistant)), "unknown option `persistant`; did you mean `persistent`?");
        assert_eq!(error(quote!(persist = true)), "unknown option `persist`; did you mean `persistent`?");
        assert_eq!(error(quote!(reliabel, start = "A")), "unknown option `reliabel`; did you mean `reliable`?");
        assert_eq!(error(quote!(workers(8))), "`workers` wants a value: write `workers = ..`");
        assert_eq!(error(quote!(idle)), "`idle` wants a value: write `idle = ..`");
        assert_eq!(error(quote!(persistent(true))), "write `persistent` alone");
        assert_eq!(error(quote!(pinned = true)), "write `pinned` alone");
        assert_eq!(error(quote!(migrate, migrate)), "`migrate` is written twice");
        assert!(error(quote!(pinned, optimise)).ends_with("write one of the two"));
        assert!(error(quote!(reliable, start = "A", pinned)).starts_with("`pinned` does not go with `reliable`"));
        assert!(error(quote!(colour = "red")).contains(
            "the options are kind, placement, idle, workers, mailbox, in_flight, persistent, reliable, start, migrate, pinned, \
             optimise, save, store, protocol, leader, version, writes, interface, compatible, instances, activation, home, \
             invariant"
        ));
        assert!(error(quote!(invariant = "1 + 1")).contains("Self::sound"));
    }

    #[test]
    fn values_out_of_range_are_refused() {
        assert!(error(quote!(workers = 0)).starts_with("write 1 or more"));
        assert!(!error(quote!(workers = 70_000)).is_empty());
        assert!(error(quote!(mailbox = 0)).starts_with("write 1 or more"));
        assert!(error(quote!(interface = 0)).contains("versions begin with 1"));
        assert!(error(quote!(interface = 2, compatible = 3)).contains("at most 2"));
        assert!(error(quote!(compatible = 2)).contains("at most 1"));
        assert!(error(quote!(persistent, version = 2, writes = 2)).contains("an earlier version"));
        assert_eq!(error(quote!(persistent, version = 2, writes = 1)), "");
        for name in ["chat room", "", "-", "..", "a/b"] {
            assert!(error(quote!(kind = #name)).starts_with("a kind is a name"), "{name:?}");
        }
        assert!(error(quote!(idle = "5m", idle = "6m")).contains("twice"));
        assert!(error(quote!(placement = "role:")).starts_with("name a placement"));
        assert!(error(quote!(instances = "double")).contains("write \"single\", \"per_cluster\" or \"adaptive\""));
        assert!(error(quote!(instances = "adaptive", activation = "pessimistic")).contains("leave `activation` out"));
        assert!(error(quote!(instances = "adaptive", home = "lease")).contains("leave `home` out"));
        assert!(error(quote!(instances = "adaptive", workers = 2)).contains("leave `instances` out"));
        assert!(error(quote!(persistent, workers = 2)).starts_with("`workers` does not go with `persistent`"));
        assert!(error(quote!(reliable, workers = 2)).starts_with("`workers` does not go with `reliable`"));
        assert!(error(quote!(reliable, persistent)).starts_with("`persistent` does not go with `reliable`"));
        assert!(error(quote!(instances = "per_cluster", activation = "pessimistic")).contains("no other cluster"));
        assert!(error(quote!(instances = "per_cluster", home = "lease")).contains("leave `home` out"));
        assert!(error(quote!(home = "eu")).contains("lease:NAME"));
    }

    #[test]
    fn what_is_not_written_is_left_to_the_node() {
        let options = Options::parse(TokenStream::new()).map(|options| options.to_token_stream().to_string());
        let written = options.unwrap_or_default();
        assert!(written.contains("placement : \"balanced\""), "{written}");
        assert!(written.contains("workers : 0u16"), "{written}");
        assert!(written.contains("idle : :: core :: option :: Option :: None"), "{written}");
    }
}
