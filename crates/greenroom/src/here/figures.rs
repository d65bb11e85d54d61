//! What is measured at a node, for who shows it: each figure with its name and a word of help, said once.

/// The figures of a node's parts.
#[derive(Default)]
pub(crate) struct Figures(Vec<Figure>);

/// Something that a feature of a node has measured; [`Node::figures`](crate::Node::figures) has all of them.
#[derive(Clone, Debug)]
pub struct Figure {
    name: &'static str,
    help: &'static str,
    value: f64,
}

impl Figures {
    /// Adds one.
    pub(crate) fn put(&mut self, name: &'static str, help: &'static str, value: f64) {
        self.0.push(Figure { name, help, value });
    }

    /// Adds one that counts.
    pub(crate) fn count(&mut self, name: &'static str, help: &'static str, count: u64) {
        self.put(name, help, count as f64);
    }

    pub(crate) fn into_all(self) -> Vec<Figure> {
        self.0
    }
}

impl Figure {
    /// Its name among the metrics: with `_total` at its end if it only rises, and the unit before that, if it has one.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// What it is, for people.
    pub fn help(&self) -> &'static str {
        self.help
    }

    /// How much it is now.
    pub fn value(&self) -> f64 {
        self.value
    }

    /// Whether it only rises, as long as the node lives.
    pub fn only_rises(&self) -> bool {
        self.name.ends_with("_total")
    }
}
