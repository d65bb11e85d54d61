//! Many tenants in one cluster: each call says whose it is, and none takes more than its share.

// anchor: recipe
use greenroom::prelude::*;
use greenroom::{CallInfo, Interceptor};
use serde::{Deserialize, Serialize};

/// Lets nobody through who does not say whose call it is.
pub struct SaysTenant;

impl Interceptor for SaysTenant {
    fn incoming(&self, call: &mut CallInfo<'_>) -> Result<(), Refusal> {
        match call.context().get("tenant") {
            Some(_) => Ok(()),
            None => Err(Refusal::Denied { message: "say whose call it is: set `tenant`".to_owned() }),
        }
    }
}

/// What a tenant has, by the tenant's name as key.
#[derive(Default, Serialize, Deserialize, Actor)]
pub struct Quota {
    bytes: u64,
}

#[actor(persistent, save = "turn")]
impl Quota {
    /// Takes room for `bytes`, or tells how much is left.
    pub async fn reserve(&mut self, bytes: u64) -> Result<(), u64> {
        let left = BYTES_MAX - self.bytes;
        if bytes > left {
            return Err(left);
        }
        self.bytes += bytes;
        Ok(())
    }
}

/// A document. Tenants' documents are apart, as the tenant's name is a part of the key: `acme/plan`.
#[derive(Default, Serialize, Deserialize, Actor)]
pub struct Document {
    text: String,
}

#[actor(persistent, save = "turn")]
impl Document {
    /// Writes at the end.
    pub async fn append(&mut self, cx: &Cx, text: String) -> Result<usize, String> {
        let tenant = cx.context().get("tenant").unwrap_or_default().to_owned();
        if !cx.key().as_str().starts_with(&format!("{tenant}/")) {
            return Err(format!("{} is not {tenant}'s", cx.key()));
        }
        let reserved = QuotaRef::of(cx, tenant).reserve(text.len() as u64).await;
        reserved.map_err(|error| format!("no room: {error}"))?;
        self.text.push_str(&text);
        Ok(self.text.len())
    }
}

/// Bytes that a tenant may have.
const BYTES_MAX: u64 = 1000;
// end: recipe

#[cfg(test)]
mod tests {
    use greenroom_test::Cluster;

    use super::*;

    #[test]
    fn a_tenant_has_its_own_documents_and_its_own_room() {
        let kinds = |builder: greenroom::Builder| {
            builder.register::<Quota>().register::<Document>().intercept_kind("document", SaysTenant)
        };
        Cluster::of(2, kinds).seeds(10, |cluster| async move {
            let node = cluster.node("a");
            let write = |key: &str, bytes: usize| DocumentRef::of(&node, key).append("x".repeat(bytes));
            assert!(matches!(write("acme/plan", 1).await, Err(CallError::Refused(Refusal::Denied { .. }))));
            assert_eq!(write("acme/plan", 600).with("tenant", "acme").await, Ok(600));
            assert!(matches!(write("acme/plan", 1).with("tenant", "evil").await, Err(CallError::Actor(_))));
            let full = write("acme/notes", 600).with("tenant", "acme").await;
            assert!(matches!(&full, Err(CallError::Actor(why)) if why.contains("400")), "{full:?}");
            assert_eq!(write("beta/plan", 600).with("tenant", "beta").await, Ok(600));
        });
    }
}
