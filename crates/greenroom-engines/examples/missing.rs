//! Says which engines the tests would skip, one on a line: `cargo run -p greenroom-engines --example missing`. Nothing is
//! said if all are there.

use greenroom_engines::{Certificate, Error, GoEngine, Kafka, Postgres, Redis};

fn main() {
    let started = [Postgres::start().map(drop), Redis::start().map(drop), Certificate::make().map(drop)];
    let built = GoEngine::ALL.into_iter().map(|engine| engine.installed().map(drop));
    let fetched = Kafka::installed().map(drop);
    for error in started.into_iter().chain(built).chain([fetched]).filter_map(Result::err) {
        match error {
            Error::Missing { .. } => println!("{error}"),
            // It is there: its tests will say what ails it.
            other => eprintln!("{other}"),
        }
    }
}
