use greenroom::prelude::*;

#[derive(Default, Actor)]
struct Cell<T>(T);

#[actor]
impl<T> Cell<T> {
    pub async fn take(&mut self) {}
}

fn main() {}
