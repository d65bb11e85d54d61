//! Timers and reminders: a kettle that watches its temperature, and is reminded to be descaled.
//!
//! `cargo run -p greenroom --example time`

use std::time::Duration;

use greenroom::prelude::*;

/// A kettle: it heats up as long as it is in memory, and is descaled even if it is not.
#[derive(Default, Actor)]
pub struct Kettle {
    degrees: u32,
    heating: Option<Timer>,
    descaled: u32,
}

#[actor]
impl Kettle {
    /// Begins to heat, a step in each 20 ms.
    pub async fn switch_on(&mut self, cx: &Cx) -> Result<(), Refusal> {
        self.heating = Some(cx.every(Duration::from_millis(20), KettleRef::me(cx).heat())?);
        Ok(())
    }

    /// What the timer calls.
    pub async fn heat(&mut self) {
        self.degrees += 10;
        if self.degrees >= 100
            && let Some(heating) = self.heating.take()
        {
            heating.cancel();
        }
    }

    /// Has itself descaled in a while.
    pub async fn descale_later(&mut self, cx: &Cx, seconds: u64) -> Result<(), ReminderError> {
        KettleRef::me(cx).descale().after(Duration::from_secs(seconds)).named("descale").await
    }

    /// What the reminder calls.
    pub async fn descale(&mut self, cx: &Cx) {
        self.descaled += u32::from(cx.tick().is_some());
    }

    /// Degrees, and how often it was descaled.
    pub async fn look(&self) -> (u32, u32) {
        (self.degrees, self.descaled)
    }
}

#[tokio::main]
async fn main() -> greenroom::Result<()> {
    let node = Node::builder().register::<Kettle>().start().await?;
    let kettle = KettleRef::of(&node, "kitchen");
    kettle.switch_on().await.expect("one timer");
    kettle.descale_later(1).await.expect("the store is there");
    for reminder in node.reminders_of(kettle.id()).list().await.expect("the store is there") {
        println!("{} calls {} {}", reminder.name, reminder.method, reminder.schedule);
    }
    tokio::time::sleep(Duration::from_secs(2)).await;
    let (degrees, descaled) = kettle.look().await.expect("it answers");
    println!("{degrees} degrees, descaled {descaled} times");
    node.stop().await;
    Ok(())
}
