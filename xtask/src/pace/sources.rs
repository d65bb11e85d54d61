//! The crates that are measured.

use std::fmt::Write;

/// What a crate is made of.
pub(super) struct Source {
    pub(super) name: &'static str,
    pub(super) folder: &'static str,
    /// What it stands on; sources that stand on the same share what is built of it.
    pub(super) ground: &'static Ground,
    pub(super) text: fn() -> String,
    /// A line in the body of a method, and what an edit makes of it.
    pub(super) before: &'static str,
    pub(super) after: &'static str,
}

/// What sources stand on.
pub(super) struct Ground {
    pub(super) folder: &'static str,
    pub(super) dependencies: &'static str,
}

/// All of them.
pub(super) const SOURCES: &[Source] = &[
    Source {
        name: "hello world, Greenroom",
        folder: "greenroom-hello",
        ground: &GREENROOM,
        text: || kinds(1, HELLO),
        before: "self.greeted += 1;",
        after: "self.greeted += 2;",
    },
    Source {
        name: "one kind of 5 methods",
        folder: "greenroom-one",
        ground: &GREENROOM,
        text: || kinds(1, KIND),
        before: "self.count += count;",
        after: "self.count += 2 * count;",
    },
    Source {
        name: "five kinds of 5 methods",
        folder: "greenroom-five",
        ground: &GREENROOM,
        text: || kinds(5, KIND),
        before: "self.count += count;",
        after: "self.count += 2 * count;",
    },
    Source {
        name: "hello world, Greenroom without features",
        folder: "greenroom-bare",
        ground: &Ground {
            folder: "bare",
            dependencies: "greenroom = { path = \"LIBRARY\", default-features = false }\n\
                tokio = { version = \"1\", features = [\"rt-multi-thread\", \"macros\"] }",
        },
        text: || kinds(1, HELLO),
        before: "self.greeted += 1;",
        after: "self.greeted += 2;",
    },
    Source {
        name: "hello world, ractor",
        folder: "ractor-hello",
        ground: &Ground {
            folder: "ractor",
            dependencies: "ractor = \"0.16\"\ntokio = { version = \"1\", features = [\"rt-multi-thread\", \"macros\"] }",
        },
        text: || RACTOR.to_owned(),
        before: "*greeted += 1;",
        after: "*greeted += 2;",
    },
    Source {
        name: "hello world, kameo",
        folder: "kameo-hello",
        ground: &Ground {
            folder: "kameo",
            dependencies: "kameo = \"0.22\"\ntokio = { version = \"1\", features = [\"rt-multi-thread\", \"macros\"] }",
        },
        text: || KAMEO.to_owned(),
        before: "self.greeted += 1;",
        after: "self.greeted += 2;",
    },
];

/// A program of so many kinds, which it registers and calls.
pub(super) fn kinds(count: usize, kind: (&str, &str)) -> String {
    let (declared, called) = kind;
    let mut text = "use greenroom::prelude::*;\n".to_owned();
    let (mut registered, mut calls) = (String::new(), String::new());
    for number in 0..count {
        let name = format!("Kind{number}");
        text.push_str(&declared.replace("KIND", &name));
        // A string takes all that is written to it.
        let _ = write!(registered, ".register::<{name}>()");
        calls.push_str(&called.replace("KIND", &name));
    }
    let _ = write!(
        text,
        "#[tokio::main]\nasync fn main() -> greenroom::Result<()> {{\n    let node = Node::builder(){registered}.start().await?;\n\
         {calls}    node.stop().await;\n    Ok(())\n}}\n"
    );
    text
}

const GREENROOM: Ground = Ground {
    folder: "greenroom",
    dependencies: "greenroom = { path = \"LIBRARY\" }\n\
        tokio = { version = \"1\", features = [\"rt-multi-thread\", \"macros\"] }",
};

pub(super) const HELLO: (&str, &str) = (
    r#"
#[derive(Default, Actor)]
pub struct KIND { greeted: u64 }
#[actor]
impl KIND {
    pub async fn greet(&mut self, name: String) -> String {
        self.greeted += 1;
        format!("Hello, {name}: you are guest {}.", self.greeted)
    }
}
"#,
    "    println!(\"{:?}\", KINDRef::of(&node, \"desk\").greet(\"Ada\").await);\n",
);

pub(super) const KIND: (&str, &str) = (
    r#"
#[derive(Default, Actor)]
pub struct KIND { messages: Vec<String>, count: u64 }
#[actor]
impl KIND {
    pub async fn post(&mut self, user: String, text: String) { self.messages.push(format!("{user}: {text}")) }
    pub async fn read(&self) -> Vec<String> { self.messages.clone() }
    pub async fn add(&mut self, count: u64) -> u64 {
        self.count += count;
        self.count
    }
    pub async fn at(&self, place: u32) -> Option<String> { self.messages.get(place as usize).cloned() }
    pub async fn set(&mut self, count: Option<u64>, all: Vec<u64>) -> Result<bool, String> {
        self.count = count.ok_or("there is none")? + all.len() as u64;
        Ok(true)
    }
}
"#,
    r#"    let one = KINDRef::of(&node, "one");
    println!("{:?}", one.post("ada", "hello").await);
    println!("{:?}", one.read().await);
    println!("{:?}", one.add(1_u64).await);
    println!("{:?}", one.at(0_u32).await);
    println!("{:?}", one.set(None, vec![]).await);
"#,
);

const RACTOR: &str = r#"
use ractor::{Actor, ActorProcessingErr, ActorRef, RpcReplyPort, call};

struct Greeter;

enum Message {
    Greet(String, RpcReplyPort<String>),
}

impl Actor for Greeter {
    type Msg = Message;
    type State = u64;
    type Arguments = ();

    async fn pre_start(&self, _: ActorRef<Message>, (): ()) -> Result<u64, ActorProcessingErr> {
        Ok(0)
    }

    async fn handle(&self, _: ActorRef<Message>, message: Message, greeted: &mut u64) -> Result<(), ActorProcessingErr> {
        let Message::Greet(name, reply) = message;
        *greeted += 1;
        Ok(reply.send(format!("Hello, {name}: you are guest {greeted}."))?)
    }
}

#[tokio::main]
async fn main() {
    let (greeter, _) = Actor::spawn(None, Greeter, ()).await.expect("an actor starts");
    println!("{:?}", call!(greeter, Message::Greet, "Ada".to_owned()));
}
"#;

const KAMEO: &str = r#"
use kameo::Actor;
use kameo::actor::Spawn;
use kameo::message::{Context, Message};

#[derive(Actor)]
struct Greeter {
    greeted: u64,
}

struct Greet(String);

impl Message<Greet> for Greeter {
    type Reply = String;

    async fn handle(&mut self, Greet(name): Greet, _: &mut Context<Self, Self::Reply>) -> String {
        self.greeted += 1;
        format!("Hello, {name}: you are guest {}.", self.greeted)
    }
}

#[tokio::main]
async fn main() {
    let greeter = Greeter::spawn(Greeter { greeted: 0 });
    println!("{:?}", greeter.ask(Greet("Ada".to_owned())).await);
}
"#;
