//! Desks sell the seats of a concert. The test asks whether a seat can be sold twice.

use greenroom::prelude::*;

// anchor: hall
/// A concert, and its seats.
#[derive(Default, Debug, Actor)]
struct Hall {
    seats: u32,
}

#[actor]
impl Hall {
    /// Puts up more seats.
    pub async fn open(&mut self, seats: u32) {
        self.seats += seats;
    }

    /// The seats that are free.
    pub async fn free(&self) -> u32 {
        self.seats
    }

    /// Takes a seat; `false` if there is none.
    pub async fn take(&mut self) -> bool {
        let free = self.seats > 0;
        self.seats = self.seats.saturating_sub(1);
        free
    }
}
// end: hall

/// Where seats are sold.
#[derive(Default, Debug, Actor)]
struct Desk {
    sold: u32,
}

// anchor: mistake
#[cfg(feature = "mistake")]
#[actor]
impl Desk {
    /// Sells a seat; `false` if there is none.
    pub async fn sell(&mut self, cx: &Cx) -> bool {
        let hall = HallRef::of(cx, "concert");
        if hall.free().await == Ok(0) {
            return false;
        }
        let _ = hall.take().await;
        self.sold += 1;
        true
    }
}
// end: mistake

// anchor: mended
#[cfg(not(feature = "mistake"))]
#[actor]
impl Desk {
    /// Sells a seat; `false` if there is none.
    pub async fn sell(&mut self, cx: &Cx) -> bool {
        if HallRef::of(cx, "concert").take().await != Ok(true) {
            return false;
        }
        self.sold += 1;
        true
    }
}
// end: mended

#[tokio::main]
async fn main() -> greenroom::Result<()> {
    Node::builder().register::<Hall>().register::<Desk>().run_from_args().await
}

// anchor: test
#[cfg(test)]
mod tests {
    use greenroom_explore::prelude::*;

    use super::*;

    #[explore(Hall, Desk)]
    async fn no_seat_is_sold_twice(world: World) {
        HallRef::of(&world, "concert").open(1).await.expect("it answers");
        for desk in ["north", "south"] {
            let desk = DeskRef::of(&world, desk);
            world.client(async move { _ = desk.sell().await });
        }
        world.always("one seat is sold at most", |now| now.all::<Desk>().map(|(_, desk)| desk.sold).sum::<u32>() <= 1);
    }
}
// end: test
