//! A workflow: each step is tried again until it works, and what was done is undone when one cannot.

// anchor: recipe
use std::time::Duration;

use greenroom::prelude::*;

/// A trip that is booked: first a flight, then a room.
#[derive(Default, Actor)]
pub struct Trip {
    tries: Register<u32>,
}

#[actor(reliable, start = "New")]
impl Trip {
    /// Begins. To begin twice is to begin once.
    #[on(book, state = ["New", "Cancelled"], ignore = ["Flight", "Room", "Booked"])]
    async fn book(&mut self, cx: &Cx) {
        self.step(cx, "Flight");
    }

    /// The agency has booked what was asked for.
    #[on(booked, state = "Flight", ignore = "Cancelled")]
    async fn flight_is_booked(&mut self, cx: &Cx, what: String) {
        if what == "Flight" {
            self.step(cx, "Room");
        }
    }

    #[on(booked, state = "Room", ignore = "Booked")]
    async fn room_is_booked(&mut self, cx: &Cx, what: String) {
        if what == "Room" {
            cx.cancel_timer("again");
            cx.jump("Booked");
        }
    }

    /// Nobody has answered in time: ask again, later each time, and give up after five.
    #[on(again, state = ["Flight", "Room"], ignore = ["Booked", "Cancelled"])]
    async fn again(&mut self, cx: &Cx, what: String) {
        if cx.machine_state().as_deref() != Some(what.as_str()) {
            return;
        }
        if *self.tries.get() < TRIES_MAX {
            return self.ask(cx, &what);
        }
        self.undo(cx);
    }

    /// The traveller stays at home.
    #[on(cancel, state = ["Flight", "Room", "Booked"], ignore = ["New", "Cancelled"])]
    async fn cancel(&mut self, cx: &Cx) {
        self.undo(cx);
    }

    /// Where it is.
    pub async fn look(&self, cx: &Cx) -> String {
        cx.machine_state().unwrap_or_default().to_string()
    }

    fn step(&mut self, cx: &Cx, what: &str) {
        self.tries.set(0);
        match what {
            "Flight" => cx.jump("Flight"),
            _ => cx.jump("Room"),
        }
        self.ask(cx, what);
    }

    fn undo(&mut self, cx: &Cx) {
        for what in ["Flight", "Room"] {
            AgencyRef::of(cx, "agency").cancel(cx.key().to_string(), what.to_owned()).send();
        }
        cx.cancel_timer("again");
        cx.jump("Cancelled");
    }

    fn ask(&mut self, cx: &Cx, what: &str) {
        *self.tries.get_mut() += 1;
        AgencyRef::of(cx, "agency").book(TripRef::me(cx), what.to_owned()).send();
        let pause = Duration::from_secs(1 << *self.tries.get());
        TripRef::me(cx).again(what.to_owned()).after(pause).named("again").send();
    }
}

const TRIES_MAX: u32 = 5;

/// Stands for a service that is not yours: it may be slow, and may not answer. It takes repeats for one.
#[derive(Default, Actor)]
pub struct Agency {
    /// Requests that it will not hear.
    deaf: u32,
    booked: std::collections::BTreeSet<(String, String)>,
}

#[actor]
impl Agency {
    /// Will not hear the next requests.
    pub async fn be_deaf(&mut self, requests: u32) {
        self.deaf = requests;
    }

    /// Books, and sends word.
    pub async fn book(&mut self, cx: &Cx, trip: TripRef, what: String) {
        if self.deaf > 0 {
            self.deaf -= 1;
            return;
        }
        let trip = trip.bind(cx);
        self.booked.insert((trip.key().to_string(), what.clone()));
        trip.booked(what).send();
    }

    /// Cancels.
    pub async fn cancel(&mut self, trip: String, what: String) {
        self.booked.remove(&(trip, what));
    }

    /// What is booked.
    pub async fn bookings(&self) -> usize {
        self.booked.len()
    }
}
// end: recipe

#[cfg(test)]
mod tests {
    use greenroom_test::Cluster;

    use super::*;

    fn kinds(builder: greenroom::Builder) -> greenroom::Builder {
        builder.register::<Trip>().register::<Agency>()
    }

    async fn ends(cluster: &Cluster, deaf: u32) -> (String, usize) {
        let node = cluster.node("a");
        AgencyRef::of(&node, "agency").be_deaf(deaf).await.expect("it is told");
        let trip = TripRef::of(&node, "rome");
        trip.book().await.expect("it begins");
        trip.book().send();
        tokio::time::sleep(Duration::from_secs(120)).await;
        let bookings = AgencyRef::of(&node, "agency").bookings().await.expect("it answers");
        (trip.look().await.expect("it answers"), bookings)
    }

    #[test]
    fn an_agency_that_is_deaf_for_a_while_books_in_the_end() {
        Cluster::of(2, kinds).seeds(10, |cluster| async move {
            assert_eq!(ends(&cluster, 3).await, ("Booked".to_owned(), 2));
        });
    }

    #[test]
    fn a_trip_that_nobody_books_is_cancelled_and_leaves_nothing_booked() {
        Cluster::of(2, kinds).seeds(10, |cluster| async move {
            assert_eq!(ends(&cluster, 100).await, ("Cancelled".to_owned(), 0));
        });
    }
}
