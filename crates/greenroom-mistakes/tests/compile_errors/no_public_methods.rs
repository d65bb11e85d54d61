#![allow(unused)]

use greenroom::prelude::*;

#[derive(Default, Actor)]
struct Private;

#[actor]
impl Private {
    async fn post(&mut self, text: String) {}
}

#[derive(Default, Actor)]
struct Nobody;

#[actor]
impl Nobody {
    pub async fn post(text: String) {}
}

fn main() {}
