//! Builds engines that no package manager has, once: `cargo run -p greenroom-engines --example install -- [NAME]...`.
//! Without a name it builds all.

use greenroom_engines::GoEngine;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let names: Vec<String> = std::env::args().skip(1).collect();
    let unknown = |name: &String| {
        format!("no engine is called {name:?}; there are: {}", GoEngine::ALL.map(GoEngine::name).join(", "))
    };
    let engines = if names.is_empty() {
        GoEngine::ALL.to_vec()
    } else {
        names.iter().map(|name| GoEngine::named(name).ok_or_else(|| unknown(name))).collect::<Result<_, _>>()?
    };
    for engine in engines {
        println!("{}: {}", engine.name(), engine.install()?.display());
    }
    Ok(())
}
