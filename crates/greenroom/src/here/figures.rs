//! What is measured at a node, for who shows it: each figure with its name and a word of help, said once.

/// The figures of a node's parts.
#[derive(Default)]
pub(crate) struct Figures(Vec<Figure>);

/// One of them.
pub(crate) struct Figure {
    /// Its name among the metrics: with `_total` at its end if it only rises, and the unit before that, if it has one.
    pub(crate) name: &'static str,
    /// What it is, for people.
    pub(crate) help: &'static str,
    pub(crate) value: f64,
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

    pub(crate) fn all(&self) -> impl Iterator<Item = &Figure> {
        self.0.iter()
    }
}

impl Figure {
    /// Whether it only rises, as long as the node lives.
    pub(crate) fn only_rises(&self) -> bool {
        self.name.ends_with("_total")
    }
}
