//! What calls wait for while the clusters cannot hear each other, and how long there are two instances afterwards.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::super::sites::{Place, Sites};
use crate::cluster::Target;
use crate::driver::output_rate;
use crate::kinds::geo::{Access, Kept};

/// Cuts the network, calls, and heals it.
pub(super) async fn run(sites: &Sites) -> Result<Value, String> {
    let (here, there) = (Place::Netherlands, Place::California);
    for place in [there, here] {
        read(sites, place, "shared").await?;
    }
    sites.cut();
    let first = read(sites, here, "new").await?;
    let elsewhere = read(sites, here, "shared").await?;
    let repeat = read(sites, here, "new").await?;
    tokio::time::sleep(KNOWN_SILENT).await;
    let later = read(sites, here, "newer").await?;
    read(sites, there, "new").await?;
    let doubled = at(sites, here, "new").await? != at(sites, there, "new").await?;
    sites.heal();
    let healed = Instant::now();
    for key in ["new", "shared"] {
        while at(sites, here, key).await? != at(sites, there, key).await? {
            if healed.elapsed() > ONE_AGAIN_MAX {
                return Err(format!(
                    "there are two instances of {key:?} {ONE_AGAIN_MAX:?} after the network was healed"
                ));
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
    Ok(json!({
        "first_call_ms": output_rate(first),
        "call_to_what_was_there_ms": output_rate(elsewhere),
        "repeated_call_ms": output_rate(repeat),
        "first_call_once_known_ms": output_rate(later),
        "was_doubled": doubled,
        "one_instance_after_s": output_rate(healed.elapsed().as_secs_f64()),
    }))
}

/// Reads a volatile array; the time in ms.
async fn read(sites: &Sites, from: Place, key: &str) -> Result<f64, String> {
    let target = Target { kind: "geo_robot", key: "apart", method: "access" };
    let arguments = json!({"kept": Kept::Volatile, "key": key, "access": Access::Read});
    let time: u64 = sites.ask(from, target, &arguments).await?;
    Ok(time as f64 / 1e6)
}

/// The node that a volatile array is on, as it is seen from a place.
async fn at(sites: &Sites, from: Place, key: &str) -> Result<String, String> {
    sites.ask(from, Target { kind: "geo_bytes_volatile", key, method: "node" }, &json!({})).await
}

/// Time after which a silent cluster is known to be.
const KNOWN_SILENT: Duration = Duration::from_secs(5);
/// Time for one instance to remain.
const ONE_AGAIN_MAX: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(200);
