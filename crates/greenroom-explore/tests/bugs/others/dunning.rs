//! An invoice whose timer is gone with its node.

use std::time::Duration;

use greenroom_explore::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Default, Debug, Serialize, Deserialize, Actor)]
struct Invoice {
    is_repaired: bool,
    is_sent: bool,
    is_dunned: bool,
}

#[actor(persistent, save = "turn")]
impl Invoice {
    async fn activated(&mut self, cx: &Cx) -> Result<(), Refusal> {
        // The mistake is what is not done here.
        if self.is_repaired && self.is_sent && !self.is_dunned {
            cx.after(DUE_IN, InvoiceRef::me(cx).dun())?;
        }
        Ok(())
    }

    pub async fn send_out(&mut self, cx: &Cx, is_repaired: bool) -> Result<(), Refusal> {
        (self.is_sent, self.is_repaired) = (true, is_repaired);
        cx.after(DUE_IN, InvoiceRef::me(cx).dun()).map(drop)
    }

    pub async fn dun(&mut self) {
        self.is_dunned = true;
    }

    pub async fn how_it_is(&self) -> (bool, bool) {
        (self.is_sent, self.is_dunned)
    }
}

async fn who_does_not_pay_is_dunned(world: World, is_repaired: bool) {
    let invoice = InvoiceRef::of(&world, "7");
    world.client(async move { drop(invoice.send_out(is_repaired).await) });
    world.finally(|world| async move {
        let invoice = InvoiceRef::of(&world, "7");
        invoice.how_it_is().await.expect("it answers");
        tokio::time::sleep(DUE_IN * 2).await;
        let (is_sent, is_dunned) = invoice.how_it_is().await.expect("it answers");
        assert_eq!(is_dunned, is_sent, "who does not pay is dunned");
    });
}

#[test]
fn a_reminder_that_is_not_armed_again() {
    let explore = Explore::of(|builder| builder.register::<Invoice>()).faults("crash");
    super::is_told_apart("dunning", &explore, who_does_not_pay_is_dunned);
}

const DUE_IN: Duration = Duration::from_secs(1);
