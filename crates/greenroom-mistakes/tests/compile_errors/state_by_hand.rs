use greenroom::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Default, Serialize, Deserialize)]
struct Profile {
    name: String,
}

impl State for Profile {}

#[derive(Default)]
struct User {
    profile: Stored<Profile>,
}

impl Actor for User {}

#[actor]
impl User {
    pub async fn rename(&mut self, cx: &Cx, name: String) -> Result<(), StateError> {
        self.profile.name = name;
        self.profile.save(cx).await
    }
}

fn main() {}
