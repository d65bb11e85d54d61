//! A shopping cart whose order is made once, however often the button is pressed.

// anchor: recipe
use greenroom::prelude::*;
use serde::{Deserialize, Serialize};

/// What a customer wants, by the customer's name as key.
#[derive(Default, Actor)]
pub struct Cart {
    items: Map<String, u32>,
    orders: Register<u32>,
}

/// Why there is no order.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum NoOrder {
    /// There is nothing in the cart.
    Empty,
}

#[actor(reliable)]
impl Cart {
    /// Wants `count` of an article; 0 takes it out.
    pub async fn put(&mut self, article: String, count: u32) {
        match count {
            0 => drop(self.items.remove(&article)),
            _ => drop(self.items.insert(article, count)),
        }
    }

    /// What is in it.
    pub async fn look(&self) -> Vec<(String, u32)> {
        self.items.iter().map(|(article, count)| (article.clone(), *count)).collect()
    }

    /// Orders what is in it; tells the order's key. The cart is empty, and the order is there, or neither.
    pub async fn order(&mut self, cx: &Cx) -> Result<String, NoOrder> {
        if self.items.is_empty() {
            return Err(NoOrder::Empty);
        }
        *self.orders.get_mut() += 1;
        let key = format!("{}-{}", cx.key(), self.orders.get());
        let items = self.items.iter().map(|(article, count)| (article.clone(), *count)).collect();
        OrderRef::of(cx, &key).place(items).send();
        self.items.clear();
        Ok(key)
    }
}

/// An order.
#[derive(Default, Actor)]
pub struct Order {
    items: Register<Vec<(String, u32)>>,
}

#[actor(reliable)]
impl Order {
    /// Is placed.
    pub async fn place(&mut self, items: Vec<(String, u32)>) {
        self.items.set(items);
    }

    /// What was ordered.
    pub async fn items(&self) -> Vec<(String, u32)> {
        self.items.get().clone()
    }
}
// end: recipe

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use greenroom_test::{Cluster, Moment};

    use super::*;

    #[test]
    fn a_button_that_is_pressed_until_it_answers_orders_once() {
        let kinds = |builder: greenroom::Builder| builder.register::<Cart>().register::<Order>();
        Cluster::of(3, kinds).seeds(30, |cluster| async move {
            let cart = || CartRef::of(&cluster.any(), "ada");
            cluster.eventually(|| cart().put("tea".to_owned(), 2).idempotent("tea")).await;
            let mut random = cluster.sim().random();
            cluster.crash_at("b", Moment::ALL[random.index(Moment::ALL.len())], 1 + random.below(8));
            let patience = Duration::from_secs(3);
            let order = cluster.eventually(|| cart().order().idempotent("click 1").by(patience)).await;
            assert_eq!(order, "ada-1");
            assert_eq!(cluster.eventually(|| cart().look()).await, []);
            tokio::time::sleep(Duration::from_secs(60)).await;
            let items = cluster.eventually(|| OrderRef::of(&cluster.any(), "ada-1").items()).await;
            assert_eq!(items, [("tea".to_owned(), 2)]);
        });
    }
}
