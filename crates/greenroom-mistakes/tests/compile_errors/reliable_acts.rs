use std::time::Duration;

use greenroom::prelude::*;

#[derive(Default, Actor)]
struct Clock {
    ticks: u64,
}

#[actor(reliable, start = "Stopped")]
impl Clock {
    #[on(begin, state = "Stopped")]
    async fn begin(&mut self, cx: &Cx) {
        let _ = cx.every(Duration::from_secs(1), ClockRef::me(cx).tick());
        cx.jump("Runing");
    }

    #[on(tick, state = "Running", ignore = "Stopped")]
    async fn tick(&mut self, cx: &Cx) {
        self.ticks += 1;
        cx.spawn(Clock::default());
        tokio::spawn(async {});
    }
}

fn main() {}
