//! The twin of a device: what it should be, what it says it is, and whether it is there.

// anchor: recipe
use std::time::Duration;

use greenroom::prelude::*;
use serde::{Deserialize, Serialize};

/// What is known of a device.
#[derive(Clone, Default, PartialEq, Debug, Serialize, Deserialize)]
pub struct Shadow {
    /// Degrees that somebody wants.
    pub wanted: Option<f64>,
    /// Degrees that the device has reported last.
    pub reported: Option<f64>,
    /// Whether it has reported within the last 30 s.
    pub online: bool,
}

/// A thermostat, by its serial number as key.
#[derive(Default, Serialize, Deserialize, Actor)]
pub struct Thermostat {
    shadow: Shadow,
    #[serde(skip)]
    silence: Option<Timer>,
}

#[actor(persistent, save = "5s", idle = "10m")]
impl Thermostat {
    async fn activated(&mut self) {
        self.shadow.online = false;
    }

    /// The device reports; hears what it should be, if that is something else.
    pub async fn report(&mut self, cx: &Cx, degrees: f64) -> Result<Option<f64>, Refusal> {
        self.shadow.reported = Some(degrees);
        self.shadow.online = true;
        match &self.silence {
            Some(timer) => timer.rearm(SILENCE),
            None => self.silence = Some(cx.after(SILENCE, ThermostatRef::me(cx).silent())?),
        }
        Ok(self.shadow.wanted.filter(|wanted| *wanted != degrees))
    }

    /// Somebody wants it otherwise.
    pub async fn set(&mut self, degrees: f64) {
        self.shadow.wanted = Some(degrees);
    }

    /// What is known of it.
    pub async fn look(&self) -> Shadow {
        self.shadow.clone()
    }

    /// It has not reported for a while.
    pub async fn silent(&mut self) {
        self.shadow.online = false;
        self.silence = None;
    }
}

const SILENCE: Duration = Duration::from_secs(30);
// end: recipe

#[cfg(test)]
mod tests {
    use greenroom_test::Cluster;

    use super::*;

    #[test]
    fn a_device_is_online_until_it_has_been_silent_for_half_a_minute() {
        Cluster::of(2, |builder| builder.register::<Thermostat>()).seeds(10, |cluster| async move {
            let node = cluster.node("a");
            let device = ThermostatRef::of(&node, "t-1");
            device.set(21.0).await.expect("it is wanted");
            assert_eq!(device.report(19.5).await, Ok(Some(21.0)));
            tokio::time::sleep(Duration::from_secs(20)).await;
            assert_eq!(device.report(21.0).await, Ok(None));
            tokio::time::sleep(Duration::from_secs(20)).await;
            assert!(device.look().await.expect("it answers").online);
            tokio::time::sleep(Duration::from_secs(20)).await;
            let known = Shadow { wanted: Some(21.0), reported: Some(21.0), online: false };
            assert_eq!(device.look().await, Ok(known));
        });
    }
}
