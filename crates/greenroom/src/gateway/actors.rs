//! Actors that are active in the cluster, page by page, as JSON.

use serde_json::Value;

use super::problem::Problem;
use super::{Door, asked};
use crate::observe::actors::{ActorsWord, told};
use crate::observe::look::{self, Whom};
use crate::observe::question::Question;
use crate::shard::listing::{Order, Place, Wish};

/// Reads `?kind=room&node=a&order=mailbox&prefix=eu-&after=..&limit=100`, of which each may be left out.
///
/// # Errors
/// Something else is asked for.
pub(super) fn wanted(query: Option<&str>) -> Result<(Wish, Whom), Problem> {
    let mut wish = Wish { limit: LIMIT_DEFAULT, ..Wish::default() };
    let mut node = None;
    let whom = asked::read(query, UNCLEAR, |name, value| {
        match name {
            "kind" => wish.kind = Some(value),
            "node" => node = Some(Whom::Named(vec![value])),
            "order" => wish.order = ORDERS.iter().find(|(name, _)| *name == value)?.1,
            "prefix" => wish.prefix = value,
            "after" => wish.after = Some(Place::read(&value)?),
            "limit" => wish.limit = value.parse().ok().filter(|limit| (1..=LIMIT_MAX).contains(limit))?,
            _ => return None,
        }
        Some(())
    })?;
    Ok((wish, node.unwrap_or(whom)))
}

/// Whether it says something of keys that a page without would not.
pub(super) fn chooses_by_key(wish: &Wish) -> bool {
    !wish.prefix.is_empty() || wish.after.is_some() || wish.order == Order::Key
}

/// A page of the actors that are wanted.
pub(super) async fn list(door: &Door, wish: Wish, whom: &Whom) -> Value {
    let (node, limit) = (&door.node, wish.limit);
    let heard = look::ask::<ActorsWord>(node, &Question::Actors { wish }, whom).await;
    let view = node.view();
    let named = heard.said.iter().filter_map(|(id, word)| Some((&*view.member(*id)?.name, word)));
    heard.with_silent(told(limit, named))
}

const ORDERS: [(&str, Order); 5] = [
    ("mailbox", Order::Mailbox),
    ("heat", Order::Heat),
    ("age", Order::Age),
    ("idle", Order::Idle),
    ("key", Order::Key),
];
const LIMIT_DEFAULT: usize = 100;
const LIMIT_MAX: usize = 500;
const UNCLEAR: &str = "write which actors are wanted as `?kind=chat_room&node=a&order=mailbox&prefix=eu-&limit=100`, each of which may be left out; \
    an order is mailbox, heat, age, idle or key, a limit at most 500, and `&after=` takes the last page's `next`";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_asked_for_by_name_and_no_more_than_may_be() {
        let (wish, whom) = wanted(Some("kind=room&node=a&order=age&after=7.room%2Fx.y&limit=500")).expect("clear");
        assert_eq!((wish.order, wish.limit, whom), (Order::Age, 500, Whom::Named(vec!["a".to_owned()])));
        assert_eq!(wish.after, Some(Place { rank: 7, actor: "room/x.y".to_owned() }));
        for wrong in ["limit=0", "limit=501", "order=size", "after=room/x", "keys=a"] {
            assert!(wanted(Some(wrong)).is_err(), "{wrong}");
        }
    }
}
