use greenroom::prelude::*;

#[derive(Default, Actor)]
struct NoStart {
    opened: bool,
}

#[actor(reliable)]
impl NoStart {
    #[on(open, state = "Shut")]
    async fn open(&mut self) {
        self.opened = true;
    }
}

#[derive(Default, Actor)]
struct OtherStart {
    opened: bool,
}

#[actor(reliable, start = "Shutt")]
impl OtherStart {
    #[on(open, state = "Shut")]
    async fn open(&mut self) {
        self.opened = true;
    }
}

#[derive(Default, Actor)]
struct Twice {
    opened: bool,
}

#[actor(reliable, start = "Shut")]
impl Twice {
    #[on(open, state = "Shut")]
    async fn open(&mut self) {
        self.opened = true;
    }

    #[on(open, state = "Ajar", defer = "Shut")]
    async fn open_wide(&mut self) {
        self.opened = true;
    }

    #[on(shut, state = "Open")]
    async fn shut(&mut self) {
        self.opened = false;
    }

    #[on(shut, state = "Ajar")]
    async fn shut_softly(&mut self, softly: bool) {
        self.opened = softly;
    }
}

#[derive(Default, Actor)]
struct NotReliable {
    opened: bool,
}

#[actor(start = "Shut")]
impl NotReliable {
    #[on(open, state = "Shut")]
    async fn open(&mut self) {
        self.opened = true;
    }
}

fn main() {}
