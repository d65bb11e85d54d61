//! Who is in the cluster: joining, leaving, being voted out.

use std::time::Duration;

use crate::scenario::calm;

#[test]
fn a_node_that_stops_in_order_is_gone_from_every_view_within_a_second() {
    calm(
        20,
        |builder, _| builder,
        |cluster| async move {
            let [a, ..] = cluster.three();
            a.stop().await;
            let stopped = cluster.sim.now();
            cluster.settled(&["b", "c"]).await;
            assert!(cluster.sim.now() - stopped < Duration::from_secs(1));
        },
    );
}
