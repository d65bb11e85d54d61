use greenroom::prelude::*;

#[actor]
trait ChatRoomApi {
    fn post(&mut self, text: String);

    async fn read(&self) -> Vec<String> {
        Vec::new()
    }

    async fn other(&self) -> Option<Self>;
}

fn main() {}
