//! Chat rooms.

use greenroom::prelude::*;

/// A room and what was said in it. It is in memory, as long as somebody calls it now and then.
#[derive(Default, Actor)]
pub struct ChatRoom {
    messages: Vec<String>,
}

#[actor]
impl ChatRoom {
    /// Says something; how much has been said.
    pub async fn post(&mut self, user: String, text: String) -> usize {
        self.messages.push(format!("{user}: {text}"));
        self.messages.len()
    }

    /// What has been said.
    pub async fn read(&self) -> Vec<String> {
        self.messages.clone()
    }
}

#[cfg(test)]
mod tests {
    use greenroom_test::Cluster;

    use super::*;

    #[test]
    fn callers_of_all_nodes_are_in_one_room() {
        Cluster::of(3, |builder| builder.register::<ChatRoom>()).seeds(20, |cluster| async move {
            let (a, b) = (cluster.node("a"), cluster.node("b"));
            assert_eq!(ChatRoomRef::of(&a, "lobby").post("ada", "hi").await, Ok(1));
            assert_eq!(
                ChatRoomRef::of(&b, "lobby").post("bob", "hello").await,
                Ok(2)
            );
            assert_eq!(
                ChatRoomRef::of(&a, "lobby")
                    .read()
                    .await
                    .map(|said| said.len()),
                Ok(2)
            );
        });
    }
}
