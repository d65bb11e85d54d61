//! What a page has its reader type, and what it says will come.
//!
//! Blocks marked `console` are typed. `$ ` begins a command, which goes on in the next line behind a `\`; `^C` and `^\` are keys; all
//! other lines are what comes. A block with a title, as in `console title="Terminal 1"`, is a terminal of its own, whose last command
//! goes on running.

/// A page with something to type.
pub(crate) struct Page {
    /// Its file's name without the ending.
    pub(crate) name: String,
    /// The folder where its commands are typed, seen from the repository's root.
    pub(crate) folder: String,
    /// What is typed, in order.
    pub(crate) blocks: Vec<Block>,
}

impl Page {
    /// Whether a command of it begins so.
    pub(crate) fn types(&self, beginning: &str) -> bool {
        let mut lines = self.blocks.iter().flat_map(|block| &block.lines);
        lines.any(|line| matches!(&line.typed, Typed::Command(command) if command.starts_with(beginning)))
    }
}

/// A block of lines that are typed.
pub(crate) struct Block {
    /// The terminal's title, if it is not the one for all that ends.
    pub(crate) terminal: Option<String>,
    /// What is typed in it.
    pub(crate) lines: Vec<Line>,
}

/// Something typed, and what comes of it.
pub(crate) struct Line {
    /// Its line in the page, from 1.
    pub(crate) number: usize,
    /// What is typed.
    pub(crate) typed: Typed,
    /// What the page says will come.
    pub(crate) said: Vec<String>,
}

/// What a reader types.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Typed {
    /// A command for the shell.
    Command(String),
    /// A key that the terminal makes a signal of.
    Signal(&'static str),
}

/// The blocks of a page.
pub(crate) fn blocks(text: &str) -> Result<Vec<Block>, String> {
    let mut blocks = Vec::new();
    let mut lines = text.lines().enumerate().map(|(index, line)| (index + 1, line));
    while let Some((number, line)) = lines.next() {
        let Some(info) = line.strip_prefix("```") else { continue };
        let inside: Vec<(usize, &str)> = lines.by_ref().take_while(|(_, line)| *line != "```").collect();
        let Some(rest) = info.strip_prefix("console") else { continue };
        let terminal = match rest.trim().strip_prefix("title=\"").and_then(|title| title.strip_suffix('"')) {
            Some(title) => Some(title.to_owned()),
            None if rest.trim().is_empty() => None,
            None => return Err(format!(":{number}: a block for a terminal is `console` or `console title=\"..\"`")),
        };
        blocks.push(Block { terminal, lines: typed(&inside)? });
    }
    Ok(blocks)
}

fn typed(inside: &[(usize, &str)]) -> Result<Vec<Line>, String> {
    let mut lines: Vec<Line> = Vec::new();
    let mut goes_on = false;
    for &(number, line) in inside {
        let signal = SIGNALS.iter().find(|(key, _)| *key == line);
        if goes_on && let Some(Line { typed: Typed::Command(command), .. }) = lines.last_mut() {
            command.push('\n');
            command.push_str(line);
            goes_on = line.ends_with('\\');
        } else if let Some(command) = line.strip_prefix("$ ") {
            lines.push(Line { number, typed: Typed::Command(command.to_owned()), said: Vec::new() });
            goes_on = line.ends_with('\\');
        } else if let Some((_, signal)) = signal {
            lines.push(Line { number, typed: Typed::Signal(signal), said: Vec::new() });
        } else if let Some(last) = lines.last_mut() {
            last.said.push(line.to_owned());
        } else {
            return Err(format!(":{number}: a block for a terminal begins with `$ ` and a command, or a key"));
        }
    }
    Ok(lines)
}

/// Keys, and the signals that they send.
const SIGNALS: &[(&str, &str)] = &[("^C", "INT"), ("^\\", "QUIT")];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_what_is_typed_and_what_comes() {
        let page = "text\n```console title=\"Terminal 1\"\n$ run \\\n  --fast\nready\n```\n```rust\n$ no\n```\n```console\n^C\nbye\n```\n";
        let blocks = blocks(page).expect("it is a page");
        let [first, second] = &blocks[..] else { panic!("two blocks, not {}", blocks.len()) };
        assert_eq!(first.terminal.as_deref(), Some("Terminal 1"));
        assert_eq!(first.lines[0].typed, Typed::Command("run \\\n  --fast".to_owned()));
        assert_eq!((first.lines[0].number, &first.lines[0].said[..]), (3, &["ready".to_owned()][..]));
        assert_eq!(
            (&second.lines[0].typed, &second.lines[0].said[..]),
            (&Typed::Signal("INT"), &["bye".to_owned()][..])
        );
    }

    #[test]
    fn output_without_a_command_is_a_mistake_of_the_page() {
        assert!(blocks("```console\nready\n```\n").is_err_and(|why| why.starts_with(":2: ")));
    }
}
