//! News for all who follow somebody.

// anchor: recipe
use std::collections::{BTreeMap, VecDeque};

use greenroom::prelude::*;
use greenroom::{Subscription, Topic};

/// Somebody's page: what those say whom they follow. By their name as key.
#[derive(Default, Actor)]
pub struct Feed {
    following: BTreeMap<String, Subscription>,
    posts: VecDeque<String>,
}

#[actor(idle = "1h")]
impl Feed {
    /// Follows somebody.
    pub async fn follow(&mut self, cx: &Cx, author: String) {
        let topic = Topic::<String>::of(cx, format!("posts/{author}"));
        let subscription = topic.subscribe(cx, FeedRef::me(cx), |me, post| me.take(post));
        self.following.insert(author, subscription);
    }

    /// Follows them no more.
    pub async fn unfollow(&mut self, author: String) {
        if let Some(subscription) = self.following.remove(&author) {
            subscription.cancel();
        }
    }

    /// Somebody whom they follow has said something.
    pub async fn take(&mut self, post: String) {
        self.posts.push_front(post);
        self.posts.truncate(100);
    }

    /// The latest, newest first.
    pub async fn read(&self) -> Vec<String> {
        self.posts.iter().cloned().collect()
    }
}

/// Somebody who says things, by their name as key.
#[derive(Default, Actor)]
pub struct Author {}

#[actor]
impl Author {
    /// Says something to all who follow. It is answered when the topic has taken it.
    pub async fn say(&self, cx: &Cx, text: String) -> Result<(), String> {
        let topic = Topic::<String>::of(cx, format!("posts/{}", cx.key()));
        topic.publish(&format!("{}: {text}", cx.key())).await.map(drop).map_err(|error| error.to_string())
    }
}
// end: recipe

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use greenroom_test::Cluster;

    use super::*;

    #[test]
    fn who_follows_hears_and_who_does_not_does_not() {
        let kinds = |builder: greenroom::Builder| builder.register::<Feed>().register::<Author>();
        Cluster::of(3, kinds).seeds(10, |cluster| async move {
            let node = cluster.node("a");
            let feed = |name: &str| FeedRef::of(&node, name);
            for follower in ["bob", "eve"] {
                feed(follower).follow("ada".to_owned()).await.expect("they follow");
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
            AuthorRef::of(&node, "ada").say("hello".to_owned()).await.expect("she says it");
            AuthorRef::of(&node, "zoe").say("psst".to_owned()).await.expect("she says it");
            tokio::time::sleep(Duration::from_secs(1)).await;
            for follower in ["bob", "eve"] {
                assert_eq!(feed(follower).read().await, Ok(vec!["ada: hello".to_owned()]));
            }
            feed("eve").unfollow("ada".to_owned()).await.expect("she unfollows");
            tokio::time::sleep(Duration::from_secs(1)).await;
            AuthorRef::of(&node, "ada").say("again".to_owned()).await.expect("she says it");
            tokio::time::sleep(Duration::from_secs(1)).await;
            assert_eq!(feed("eve").read().await.map(|posts| posts.len()), Ok(1));
            assert_eq!(feed("bob").read().await.map(|posts| posts.len()), Ok(2));
        });
    }
}
