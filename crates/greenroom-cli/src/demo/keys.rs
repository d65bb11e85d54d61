//! The keys that the demo hears: those of its terminal, one by one, or the bytes of a pipe.

use std::io::{IsTerminal, Read};

use rustix::process::getpgrp;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcgetpgrp, tcsetattr};
use tokio::sync::mpsc;

/// Keys as they are pressed. Dropping it gives the terminal back as it was.
pub(super) struct Keys {
    pressed: mpsc::Receiver<u8>,
    before: Option<Termios>,
}

impl Keys {
    /// Listens to standard input. A terminal that belongs to another program is left alone.
    pub(super) fn listen() -> Self {
        let (told, pressed) = mpsc::channel(PRESSED_LEN_MAX);
        let input = std::io::stdin();
        let is_ours = !input.is_terminal() || tcgetpgrp(&input).is_ok_and(|group| group == getpgrp());
        let before = (is_ours && input.is_terminal()).then(|| one_by_one().ok()).flatten();
        if is_ours {
            // It ends with the process: nobody waits for a key.
            std::thread::spawn(move || {
                let mut key = [0];
                while matches!(std::io::stdin().read(&mut key), Ok(1)) && told.blocking_send(key[0]).is_ok() {}
            });
        }
        Self { pressed, before }
    }

    /// The next key; never if there are none any more.
    pub(super) async fn next(&mut self) -> u8 {
        match self.pressed.recv().await {
            Some(key) => key,
            None => std::future::pending().await,
        }
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            // A terminal that is gone needs nothing back.
            let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, before);
        }
    }
}

/// Lets the terminal hand over each key at once and unseen; those that it makes signals of stay signals. How it was before.
fn one_by_one() -> rustix::io::Result<Termios> {
    let before = tcgetattr(std::io::stdin())?;
    let mut now = before.clone();
    now.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
    tcsetattr(std::io::stdin(), OptionalActions::Now, &now)?;
    Ok(before)
}

/// Keys that wait to be heard; who presses more waits.
const PRESSED_LEN_MAX: usize = 16;
