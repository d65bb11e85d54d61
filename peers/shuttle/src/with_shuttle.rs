//! Shuttle: the account is a task, or a thread with Shuttle's own channels.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use shuttle::scheduler::RandomScheduler;
use shuttle::{Config, Runner};

use crate::Run;
use crate::clock::Clock;

/// Runs a program that gives the balance in the end.
fn run(schedules: u64, program: fn() -> i64) -> Run {
    let lost = Arc::new(AtomicU64::new(0));
    let counted = lost.clone();
    let clock = Clock::start();
    let runner = Runner::new(RandomScheduler::new(schedules as usize), Config::default());
    let ran = runner.run(move || _ = counted.fetch_add(u64::from(program() != 20), Ordering::Relaxed));
    let took = clock.took();
    assert_eq!(ran as u64, schedules);
    Run { took, lost: lost.load(Ordering::Relaxed) as f64 * 100.0 / schedules as f64 }
}

/// Tasks and channels that Shuttle does not see: it chooses where a task awaits something, and nowhere else.
pub fn tasks(schedules: u64) -> Run {
    run(schedules, by_tasks::program)
}

/// Threads and Shuttle's channels: it chooses at each sending and receiving, too.
pub fn threads(schedules: u64) -> Run {
    run(schedules, by_threads::program)
}

mod by_tasks {
    use futures_channel::{mpsc, oneshot};
    use futures_util::StreamExt;
    use shuttle::future::{block_on, spawn};

    enum Message {
        Balance(oneshot::Sender<i64>),
        Set(i64, oneshot::Sender<()>),
    }

    pub fn program() -> i64 {
        let (sender, mailbox) = mpsc::unbounded();
        let account = spawn(account(mailbox));
        let clients = [(), ()].map(|()| spawn(client(sender.clone())));
        drop(sender);
        block_on(async {
            for client in clients {
                client.await.expect("it ends");
            }
            account.await.expect("it ends")
        })
    }

    async fn account(mut mailbox: mpsc::UnboundedReceiver<Message>) -> i64 {
        let mut balance = 0;
        while let Some(message) = mailbox.next().await {
            match message {
                Message::Balance(reply) => reply.send(balance).expect("the client waits"),
                Message::Set(other, reply) => {
                    balance = other;
                    reply.send(()).expect("the client waits");
                }
            }
        }
        balance
    }

    async fn client(account: mpsc::UnboundedSender<Message>) {
        let (reply, balance) = oneshot::channel();
        account.unbounded_send(Message::Balance(reply)).expect("it is there");
        let balance = balance.await.expect("it answers");
        let (reply, done) = oneshot::channel();
        account.unbounded_send(Message::Set(balance + 10, reply)).expect("it is there");
        done.await.expect("it answers");
    }
}

mod by_threads {
    use shuttle::sync::mpsc::{Receiver, Sender, channel};
    use shuttle::thread::spawn;

    enum Message {
        Balance(Sender<i64>),
        Set(i64, Sender<()>),
    }

    pub fn program() -> i64 {
        let (sender, mailbox) = channel();
        let account = spawn(move || account(&mailbox));
        let clients = [(), ()].map(|()| {
            let account = sender.clone();
            spawn(move || client(&account))
        });
        drop(sender);
        for client in clients {
            client.join().expect("it ends");
        }
        account.join().expect("it ends")
    }

    fn account(mailbox: &Receiver<Message>) -> i64 {
        let mut balance = 0;
        while let Ok(message) = mailbox.recv() {
            match message {
                Message::Balance(reply) => reply.send(balance).expect("the client waits"),
                Message::Set(other, reply) => {
                    balance = other;
                    reply.send(()).expect("the client waits");
                }
            }
        }
        balance
    }

    fn client(account: &Sender<Message>) {
        let (reply, answer) = channel();
        account.send(Message::Balance(reply)).expect("it is there");
        let balance = answer.recv().expect("it answers");
        let (reply, done) = channel();
        account.send(Message::Set(balance + 10, reply)).expect("it is there");
        done.recv().expect("it answers");
    }
}
