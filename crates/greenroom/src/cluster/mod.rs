//! The cluster: who is in it, where its actors are, and what its nodes tell each other.

mod accept;
mod control;
pub(crate) mod directory;
mod driver;
pub(crate) mod ending;
mod loads;
mod mesh;
mod moves;
mod part;
pub(crate) mod placement;
pub(crate) mod table;
pub(crate) mod view;
mod way;

use std::sync::Arc;

use greenroom_protocols::membership;
use greenroom_protocols::node::Member;
use greenroom_world::{Listener, Stage};
use tokio::sync::mpsc;

pub(crate) use self::control::ControlMessage;
use self::driver::Driver;
pub(crate) use self::driver::{Order, Orders};
pub(crate) use self::loads::Loads;
pub(crate) use self::part::InCluster;
use self::table::TableStore;
use crate::here::Here;

/// Starts the node's part in its cluster, as `member`: it then joins, and answers at `listener`.
pub(crate) fn start(
    node: &Arc<Here>,
    listener: Box<dyn Listener>,
    orders: mpsc::Receiver<Order>,
    table: TableStore,
    config: membership::Config,
    member: Member,
) {
    let (inbound, inbound_queue) = mpsc::channel(INBOUND_LEN_MAX);
    let driver = Driver::new(node.clone(), table, config, member);
    node.world()
        .spawn(Stage::Control, Box::pin(node.clone().vital("the control plane", driver.run(orders, inbound_queue))));
    node.world().spawn(Stage::Control, Box::pin(accept::accept(node.clone(), listener, inbound)));
}

/// Control messages of other nodes that may wait.
const INBOUND_LEN_MAX: usize = 4096;
