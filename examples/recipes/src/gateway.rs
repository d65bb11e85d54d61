//! A gateway: browsers' WebSockets, joined to actors.

// anchor: recipe
use std::collections::VecDeque;

use futures_util::{StreamExt, stream};
use greenroom::prelude::*;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

/// What somebody says to a user.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Message {
    /// From 1, without gaps.
    pub number: u64,
    /// Who says it.
    pub from: String,
    /// What is said.
    pub text: String,
}

/// A user, by their name as key: what they were told last, and where they are connected.
#[derive(Default, Serialize, Deserialize, Actor)]
pub struct User {
    told: u64,
    messages: VecDeque<Message>,
    #[serde(skip)]
    connections: Vec<(String, mpsc::Sender<Message>)>,
}

#[actor(persistent)]
impl User {
    /// Tells them something, wherever they are. It is in the store when the caller hears its number.
    pub async fn tell(&mut self, cx: &Cx, from: String, text: String) -> Result<u64, StateError> {
        self.told += 1;
        let message = Message { number: self.told, from, text };
        self.messages.push_back(message.clone());
        if self.messages.len() > MESSAGES_MAX {
            self.messages.pop_front();
        }
        cx.save(self).await?;
        // Who is too slow is cut off: it connects again, and gets the rest of what is kept.
        self.connections.retain(|(_, connection)| connection.try_send(message.clone()).is_ok());
        Ok(message.number)
    }

    /// What they are told behind number `after`. A device is connected as long as its stream is.
    pub async fn connect(&mut self, device: String, after: u64) -> impl Stream<Item = Message> {
        let (connection, messages) = mpsc::channel(WAITING_MAX);
        self.connections.retain(|(_, connection)| !connection.is_closed());
        self.connections.push((device, connection));
        let kept: Vec<_> = self.messages.iter().filter(|message| message.number > after).cloned().collect();
        let to_come = stream::unfold(messages, |mut messages| async { Some((messages.recv().await?, messages)) });
        stream::iter(kept).chain(to_come)
    }

    /// The devices by which they are connected now.
    pub async fn devices(&self) -> Vec<String> {
        let living = self.connections.iter().filter(|(_, connection)| !connection.is_closed());
        living.map(|(device, _)| device.clone()).collect()
    }
}

const MESSAGES_MAX: usize = 100;
const WAITING_MAX: usize = 64;
// end: recipe

// anchor: gateway
use std::sync::Arc;
use std::time::Duration;

use futures_util::SinkExt;
use serde_json::json;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::time::{interval, sleep, timeout};
use tokio_tungstenite::tungstenite::Message as Frame;
use tokio_tungstenite::tungstenite::handshake::server::{ErrorResponse, Request, Response};
use tokio_tungstenite::tungstenite::http::StatusCode;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::{WebSocketStream, accept_hdr_async_with_config};

/// Who comes by a socket.
pub struct Visitor {
    /// The user.
    pub user: String,
    /// Which of their devices it is.
    pub device: String,
    /// The number of the last message that the device has.
    pub after: u64,
}

/// What a browser says.
#[derive(Serialize, Deserialize)]
pub struct Say {
    /// To which user.
    pub to: String,
    /// What.
    pub text: String,
}

/// Takes sockets. `who` says who comes by a request, from its cookie say; nobody, if they may not.
pub async fn gateway<W>(node: Node, listener: TcpListener, who: W)
where
    W: Fn(&Request) -> Option<Visitor> + Clone + Send + Sync + 'static,
{
    let places = Arc::new(Semaphore::new(SOCKETS_MAX));
    while let Ok(place) = places.clone().acquire_owned().await {
        let Ok((connection, _)) = listener.accept().await else {
            // Out of open files, say.
            sleep(PAUSE).await;
            continue;
        };
        let (node, who) = (node.clone(), who.clone());
        tokio::spawn(async move {
            let _place = place;
            let mut visitor = None;
            #[expect(clippy::result_large_err, reason = "the library asks for this type")]
            let look = |request: &Request, response: Response| {
                visitor = who(request);
                let mut refused = ErrorResponse::default();
                *refused.status_mut() = StatusCode::UNAUTHORIZED;
                visitor.is_some().then_some(response).ok_or(refused)
            };
            let config = WebSocketConfig::default().max_message_size(Some(TEXT_LEN_MAX));
            let socket = timeout(PATIENCE, accept_hdr_async_with_config(connection, look, Some(config))).await;
            if let (Ok(Ok(socket)), Some(visitor)) = (socket, visitor) {
                serve(&node, visitor, socket).await;
            }
        });
    }
}

/// Serves one socket until it ends.
pub async fn serve(node: &Node, visitor: Visitor, socket: WebSocketStream<impl AsyncRead + AsyncWrite + Unpin>) {
    let Visitor { user, device, mut after } = visitor;
    let (mut out, mut heard) = socket.split();
    let (answers, mut answered) = mpsc::channel(1);
    let hear = async {
        // A browser answers pings, so a socket that says nothing for so long has nobody behind it.
        while let Ok(Some(Ok(frame))) = timeout(3 * PATIENCE, heard.next()).await {
            if let Frame::Text(text) = frame {
                let answer = match serde_json::from_str::<Say>(&text) {
                    Ok(say) => match UserRef::of(node, say.to).tell(user.clone(), say.text).by(PATIENCE).await {
                        Ok(number) => json!({ "told": number }),
                        Err(error) => json!({ "error": error.to_string() }),
                    },
                    Err(error) => json!({ "error": error.to_string() }),
                };
                let _ = answers.send(answer).await;
            }
        }
    };
    let say = async {
        let mut ticks = interval(PATIENCE);
        loop {
            // The user's actor may move and its node may die: then connect again, and go on behind what the device has.
            let Ok(mut messages) = UserRef::of(node, &user).connect(device.clone(), after).by(PATIENCE).await else {
                sleep(PAUSE).await;
                continue;
            };
            loop {
                let frame = tokio::select! {
                    message = messages.next() => match message {
                        Some(Ok(message)) => {
                            after = message.number;
                            Frame::text(json!(message).to_string())
                        }
                        _ => break,
                    },
                    Some(answer) = answered.recv() => Frame::text(answer.to_string()),
                    _ = ticks.tick() => Frame::Ping(Default::default()),
                };
                if !matches!(timeout(PATIENCE, out.send(frame)).await, Ok(Ok(()))) {
                    return;
                }
            }
            sleep(PAUSE).await;
        }
    };
    tokio::select! {
        () = hear => {}
        () = say => {}
    }
}

const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(100);
const SOCKETS_MAX: usize = 10_000;
const TEXT_LEN_MAX: usize = 65_536;
// end: gateway

#[cfg(test)]
mod tests {
    use greenroom_test::Cluster;
    use tokio::io::DuplexStream;
    use tokio_tungstenite::tungstenite::protocol::Role;

    use super::*;

    type Browser = WebSocketStream<DuplexStream>;

    /// A browser whose socket comes to the gateway on a node.
    async fn browser(cluster: &Cluster, at: &str, user: &str, device: &str, after: u64) -> Browser {
        let (here, there) = tokio::io::duplex(4096);
        let visitor = Visitor { user: user.to_owned(), device: device.to_owned(), after };
        let socket = WebSocketStream::from_raw_socket(there, Role::Server, None).await;
        let node = cluster.node(at);
        cluster.sim().spawn(async move { serve(&node, visitor, socket).await });
        WebSocketStream::from_raw_socket(here, Role::Client, None).await
    }

    /// The next text, for as long as it takes.
    async fn hears(browser: &mut WebSocketStream<impl AsyncRead + AsyncWrite + Unpin>) -> serde_json::Value {
        loop {
            if let Frame::Text(text) = browser.next().await.expect("the socket lives").expect("it works") {
                return serde_json::from_str(&text).expect("it is JSON");
            }
        }
    }

    /// Says something until the gateway answers that it was told.
    async fn says(browser: &mut Browser, to: &str, text: &str) -> u64 {
        loop {
            let say = json!({ "to": to, "text": text }).to_string();
            browser.send(Frame::text(say)).await.expect("it is sent");
            if let Some(number) = hears(browser).await["told"].as_u64() {
                return number;
            }
        }
    }

    async fn devices(cluster: &Cluster, wanted: &[&str]) {
        let mut tries = 0;
        loop {
            let mut devices = cluster.eventually(|| UserRef::of(&cluster.any(), "ada").devices()).await;
            devices.sort();
            if devices == wanted {
                return;
            }
            tries += 1;
            assert!(tries < 60, "{devices:?} are connected, not {wanted:?}");
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }

    #[test]
    fn a_user_hears_everything_once_on_each_device_whichever_node_dies() {
        Cluster::of(4, |builder| builder.register::<User>()).seeds(20, |cluster| async move {
            let mut phone = browser(&cluster, "a", "ada", "phone", 0).await;
            let mut laptop = browser(&cluster, "b", "ada", "laptop", 0).await;
            let mut bob = browser(&cluster, "a", "bob", "tablet", 0).await;
            devices(&cluster, &["laptop", "phone"]).await;
            assert_eq!(says(&mut bob, "ada", "one").await, 1);
            let one = json!({ "number": 1, "from": "bob", "text": "one" });
            assert_eq!((hears(&mut phone).await, hears(&mut laptop).await), (one.clone(), one));

            // The actor may be on any node. Those of `c` and `d` move, the one of `b` too, whose sockets are gone with it.
            for node in ["c", "d", "b"] {
                cluster.kill(node);
                cluster.settled().await;
            }
            drop(laptop);
            devices(&cluster, &["phone"]).await;
            says(&mut bob, "ada", "two").await;
            let mut laptop = browser(&cluster, "a", "ada", "laptop", 1).await;
            let two = hears(&mut phone).await;
            assert_eq!((&two["number"], &two["text"]), (&json!(2), &json!("two")));
            assert_eq!(hears(&mut laptop).await, two, "and `one` does not come again");
            devices(&cluster, &["laptop", "phone"]).await;
            drop(phone);
            devices(&cluster, &["laptop"]).await;
        });
    }

    #[test]
    fn a_socket_with_nobody_behind_it_is_no_presence() {
        Cluster::of(2, |builder| builder.register::<User>()).seeds(3, |cluster| async move {
            // It is open, and nobody reads what comes.
            let _silent = browser(&cluster, "a", "ada", "phone", 0).await;
            devices(&cluster, &["phone"]).await;
            devices(&cluster, &[]).await;
        });
    }

    #[tokio::test]
    async fn a_socket_comes_to_the_user_whom_the_gateway_takes_it_for() {
        let node = Node::builder().register::<User>().start().await.expect("it starts");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("there is a port");
        let address = listener.local_addr().expect("it has one");
        let who = |request: &Request| {
            let user = request.uri().path().strip_prefix("/as/")?;
            Some(Visitor { user: user.to_owned(), device: "phone".to_owned(), after: 0 })
        };
        let open = async |path: &str| {
            let connection = tokio::net::TcpStream::connect(address).await.expect("it listens");
            tokio_tungstenite::client_async(format!("ws://{address}{path}"), connection).await
        };
        let serving = tokio::spawn(gateway(node.clone(), listener, who));
        assert!(open("/nobody").await.is_err());
        let (mut ada, _) = open("/as/ada").await.expect("she may");
        UserRef::of(&node, "ada").tell("bob".to_owned(), "hello".to_owned()).await.expect("she is told");
        assert_eq!(hears(&mut ada).await["text"], "hello");
        serving.abort();
        node.stop().await;
    }
}
