//! Auctions, of which there is one instance in all clusters together.

use greenroom::prelude::*;

/// An auction. While another cluster does not answer, none is opened that might be open there.
#[derive(Default, Actor)]
pub struct Auction {
    highest: u64,
}

#[actor(activation = "pessimistic")]
impl Auction {
    /// Bids; whether it is the highest bid so far.
    pub async fn bid(&mut self, amount: u64) -> bool {
        let is_highest = amount > self.highest;
        if is_highest {
            self.highest = amount;
        }
        is_highest
    }

    /// The highest bid so far.
    pub async fn highest(&self) -> u64 {
        self.highest
    }
}

#[cfg(test)]
mod tests {
    use greenroom_test::Cluster;

    use super::*;

    #[test]
    fn one_auction_hears_the_bids_of_all_nodes() {
        Cluster::of(3, |builder| builder.register::<Auction>()).seeds(20, |cluster| async move {
            let (a, b) = (cluster.node("a"), cluster.node("b"));
            assert_eq!(AuctionRef::of(&a, "vase").bid(10).await, Ok(true));
            assert_eq!(AuctionRef::of(&b, "vase").bid(7).await, Ok(false));
            assert_eq!(AuctionRef::of(&b, "vase").highest().await, Ok(10));
        });
    }
}
