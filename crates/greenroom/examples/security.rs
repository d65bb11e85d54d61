//! Documents that only editors may write: tokens and a rule at the HTTP door, and an actor that asks on whose behalf it runs.
//!
//! Run it, and try the lines that it prints. TLS is a matter of configuration alone: see the guide's chapter on security.

use greenroom::prelude::*;
use greenroom::{Auth, Builder, Rule};

/// A text that only editors may write.
#[derive(Default, Actor)]
pub struct Document {
    text: String,
}

#[actor]
impl Document {
    /// Rules have let in who comes this far; what they cannot know is decided here.
    pub async fn write(&mut self, cx: &Cx, text: String) -> Result<(), String> {
        match cx.principal() {
            Some(who) if who.has_role("editor") => {
                self.text = text;
                Ok(())
            }
            Some(who) => Err(format!("{} is no editor", who.name())),
            None => Err("only for who has shown credentials".to_owned()),
        }
    }

    /// Everybody may read.
    pub async fn read(&self) -> String {
        self.text.clone()
    }
}

/// A node that takes the tokens of the file at `tokens`. `greenroom token` makes entries that keep no token.
pub fn guarded(tokens: &std::path::Path) -> Builder {
    let rule = |role: &str, methods: &[&str]| Rule {
        roles: vec![role.to_owned()],
        kind: "document".to_owned(),
        methods: methods.iter().map(|method| (*method).to_owned()).collect(),
        keys: "*".to_owned(),
        issuer: None,
    };
    let (auth, allow) = (
        Auth { tokens: Some(tokens.to_owned()), ..Auth::default() },
        vec![rule("*", &["write"]), rule("anonymous", &["read"])],
    );
    Node::builder()
        .http("127.0.0.1:0")
        .configure(|config| (config.auth, config.allow) = (auth, allow))
        .register::<Document>()
}

/// Tokens to try with.
pub const TOKENS: &str = r#"
[[token]]
name = "ada"
roles = ["editor"]
token = "ada-0123456789abcdef"

[[token]]
name = "bob"
roles = ["reader"]
token = "bob-0123456789abcdef"
"#;

#[tokio::main]
async fn main() -> greenroom::Result<()> {
    let file = std::env::temp_dir().join(format!("greenroom-tokens-{}.toml", std::process::id()));
    std::fs::write(&file, TOKENS).expect("the temporary folder can be written to");
    let node = guarded(&file).start().await?;
    let door = node.http_address().unwrap_or_default();
    for (who, method, arguments) in [
        ("-H 'Authorization: Bearer ada-0123456789abcdef' ", "write", "{\"text\": \"hi\"}"),
        ("-H 'Authorization: Bearer bob-0123456789abcdef' ", "write", "{\"text\": \"ho\"}"),
        ("", "write", "{\"text\": \"hm\"}"),
        ("", "read", "{}"),
    ] {
        println!("curl {who}-d '{arguments}' http://{door}/document/plan/{method}");
    }
    let ended = node.run_until_ctrl_c().await;
    // It may have been removed by hand.
    let _ = std::fs::remove_file(&file);
    ended
}
