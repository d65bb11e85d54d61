//! What is in a project: files of `templates`, with its names filled in.

use std::path::Path;

use super::{Language, With};

/// Files of a project, by their paths in it.
pub(super) type Files = Vec<(&'static str, String)>;

macro_rules! template {
    ($file:literal) => {
        include_str!(concat!("../../templates/", $file))
    };
}

/// A program in Rust, whose actor shows what `with` says.
pub(super) fn rust(name: &str, with: Option<With>, checkout: Option<&Path>) -> Files {
    let shown = Shown::of(name, with);
    let depends = |package: &str| match checkout {
        Some(folder) => {
            let path = folder.join("crates").join(package);
            format!("{{ path = {} }}", toml::Value::from(path.to_string_lossy().into_owned()))
        }
        None => format!("\"{VERSION}\""),
    };
    let serde = if with == Some(With::Persistent) { SERDE } else { "" };
    let fill = |text: &str| {
        filled(
            &text.replace("{{settings}}\n", &shown.settings),
            &[
                ("name", name),
                ("module", shown.module),
                ("actor", shown.actor),
                ("try", shown.try_it),
                ("next", shown.next),
                ("greenroom", &depends("greenroom")),
                ("greenroom-test", &depends("greenroom-test")),
            ],
        )
    };
    vec![
        ("Cargo.toml", fill(&template!("rust/Cargo.toml.in").replace("{{serde}}\n", serde))),
        ("src/main.rs", fill(template!("rust/main.rs.in"))),
        (shown.file, shown.source.to_owned()),
        ("greenroom.toml", fill(template!("rust/greenroom.toml.in"))),
        ("Containerfile", fill(template!("rust/Containerfile.in"))),
        (CI, fill(template!("rust/ci.yml.in"))),
        (".gitignore", fill(template!("rust/gitignore.in"))),
        ("README.md", fill(template!("rust/README.md.in"))),
    ]
}

/// A host in another language.
pub(super) fn host(name: &str, language: Language, checkout: Option<&Path>) -> Files {
    let sdk = |folder: &str| checkout.map(|sources| sources.join("sdk").join(folder).to_string_lossy().into_owned());
    let (greenroom, own): (String, &[(&'static str, &str)]) = match language {
        Language::Python => (
            sdk("python").unwrap_or_else(|| format!("greenroom=={VERSION}")),
            &[
                ("room.py", template!("python/room.py.in")),
                ("test_room.py", template!("python/test_room.py.in")),
                ("requirements.txt", template!("python/requirements.txt.in")),
                ("Containerfile", template!("python/Containerfile.in")),
                (CI, template!("python/ci.yml.in")),
                (".gitignore", template!("python/gitignore.in")),
                ("README.md", template!("python/README.md.in")),
            ],
        ),
        Language::Typescript => (
            sdk("typescript").map_or_else(|| VERSION.to_owned(), |folder| format!("file:{folder}")),
            &[
                ("src/room.ts", template!("typescript/room.ts.in")),
                ("src/room.test.ts", template!("typescript/room.test.ts.in")),
                ("package.json", template!("typescript/package.json.in")),
                ("tsconfig.json", template!("typescript/tsconfig.json.in")),
                ("Containerfile", template!("typescript/Containerfile.in")),
                (CI, template!("typescript/ci.yml.in")),
                (".gitignore", template!("typescript/gitignore.in")),
                ("README.md", template!("typescript/README.md.in")),
            ],
        ),
        Language::Go => (
            sdk("go").map_or_else(String::new, |folder| format!("\nreplace greenroom => {folder}")),
            &[
                ("main.go", template!("go/main.go.in")),
                ("main_test.go", template!("go/main_test.go.in")),
                ("go.mod", template!("go/go.mod.in")),
                ("go.sum", include_str!("../../../../sdk/go/go.sum")),
                ("Containerfile", template!("go/Containerfile.in")),
                (CI, template!("go/ci.yml.in")),
                (".gitignore", template!("go/gitignore.in")),
                ("README.md", template!("go/README.md.in")),
            ],
        ),
    };
    let values = [("name", name), ("greenroom", greenroom.as_str())];
    let own = own.iter().map(|(path, text)| (*path, filled(text, &values)));
    own.chain([("greenroom.toml", filled(template!("greenroom.toml.in"), &values))]).collect()
}

/// What the templates in Rust differ by.
struct Shown {
    module: &'static str,
    file: &'static str,
    actor: &'static str,
    source: &'static str,
    /// More lines of `greenroom.toml`.
    settings: String,
    try_it: &'static str,
    next: &'static str,
}

impl Shown {
    fn of(name: &str, with: Option<With>) -> Self {
        match with {
            None => Self {
                module: "room",
                file: "src/room.rs",
                actor: "ChatRoom",
                source: template!("rust/room.rs"),
                settings: String::new(),
                try_it: r#"curl -d '{"user": "ada", "text": "hi"}' localhost:7070/chat_room/lobby/post"#,
                next: "Next: a table that several nodes share (docs/guide/stores.md), and state that outlives them (docs/guide/persistence.md).",
            },
            Some(With::Persistent) => Self {
                module: "account",
                file: "src/account.rs",
                actor: "Account",
                source: template!("rust/account.rs"),
                settings: format!("name = \"node-0\"\ntable = \"sqlite:{name}.db\"\n"),
                try_it: r#"curl -d '{"amount": 5}' localhost:7070/account/ada/deposit       # and again after a restart"#,
                next: "Next: other stores (docs/guide/stores.md), and when to save (docs/guide/persistence.md).",
            },
            Some(With::Reliable) => Self {
                module: "wallet",
                file: "src/wallet.rs",
                actor: "Wallet",
                source: template!("rust/wallet.rs"),
                settings: format!(
                    "name = \"node-0\"\ntable = \"sqlite:{name}.db\"\n\n[reliable]\njournal = \"sqlite:{name}-journal.db\"\n"
                ),
                try_it: r#"curl -H 'Idempotency-Key: 1' -d '{"to": "bob", "amount": 5}' localhost:7070/wallet/ada/pay"#,
                next: "Next: what is promised and what is refused (docs/guide/reliable.md).",
            },
            Some(With::Geo) => Self {
                module: "auction",
                file: "src/auction.rs",
                actor: "Auction",
                source: template!("rust/auction.rs"),
                settings: format!(
                    "\n# All clusters, this one included; raise the epoch with each change.\n[geo]\ngateway = \"127.0.0.1:7300\"\nepoch = 1\n\n\
                     [geo.clusters.{name}]\ngateways = [\"127.0.0.1:7300\"]\n"
                ),
                try_it: r#"curl -d '{"amount": 5}' localhost:7070/auction/vase/bid"#,
                next: "Next: a second cluster (docs/guide/geo.md), and how many instances there are to be (docs/guide/geo-choosing.md).",
            },
        }
    }
}

/// `text` with each `{{name}}` as its value.
fn filled(text: &str, values: &[(&str, &str)]) -> String {
    values.iter().fold(text.to_owned(), |text, (name, value)| text.replace(&format!("{{{{{name}}}}}"), value))
}

const CI: &str = ".github/workflows/ci.yml";

const SERDE: &str = "serde = { version = \"1\", features = [\"derive\"] }\n";

const VERSION: &str = env!("CARGO_PKG_VERSION");
