//! Builds or fetches engines that Debian has not, once: `cargo run -p greenroom-engines --example install -- [NAME]...`.
//! Without a name all of them.

use greenroom_engines::{GoEngine, Kafka};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut names: Vec<String> = std::env::args().skip(1).collect();
    let unknown = |name: &String| {
        format!("no engine is called {name:?}; there are: {}, kafka", GoEngine::ALL.map(GoEngine::name).join(", "))
    };
    let (all, named) = (names.is_empty(), names.iter().any(|name| name == "kafka"));
    if all || named {
        println!("kafka: {}", Kafka::install()?.display());
    }
    names.retain(|name| name != "kafka");
    let engines = if all {
        GoEngine::ALL.to_vec()
    } else {
        names.iter().map(|name| GoEngine::named(name).ok_or_else(|| unknown(name))).collect::<Result<_, _>>()?
    };
    for engine in engines {
        println!("{}: {}", engine.name(), engine.install()?.display());
    }
    Ok(())
}
