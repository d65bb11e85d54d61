//! Starts a durable engine for trying things out, prints its URL, and stops it when standard input ends:
//! `cargo run -p greenroom-engines --example serve -- postgres` (or `redis`, `etcd`, `kafka`, `s3`).

use std::error::Error;
use std::io::Read;

use greenroom_engines::{Etcd, Kafka, Minio, Postgres, PostgresOptions, Redis, RedisOptions};

fn main() -> Result<(), Box<dyn Error>> {
    match std::env::args().nth(1).as_deref() {
        Some("postgres") => {
            let options = PostgresOptions { durable: true, ..PostgresOptions::default() };
            serve(&Postgres::start_with(options)?, Postgres::url)
        }
        Some("redis") => {
            let options = RedisOptions { durable: true, ..RedisOptions::default() };
            serve(&Redis::start_with(options)?, Redis::url)
        }
        Some("etcd") => serve(&Etcd::start()?, Etcd::url),
        Some("kafka") => serve(&Kafka::start()?, Kafka::url),
        Some("s3") => serve(&Minio::start()?, Minio::url),
        _ => Err("which engine? There are: postgres, redis, etcd, kafka, s3".into()),
    }
}

/// Dropped by the caller afterwards, which stops it.
fn serve<E>(engine: &E, url: impl Fn(&E) -> String) -> Result<(), Box<dyn Error>> {
    println!("{}", url(engine));
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}
