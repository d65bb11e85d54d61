//! What a run should have come to, beside what it has.

use serde_json::{Value, json};

/// Goals and what was seen.
#[derive(Default)]
pub(crate) struct Goals(Vec<Value>);

impl Goals {
    /// What was seen should be at most so much.
    pub(crate) fn at_most(&mut self, what: &str, seen: f64, goal: f64) {
        self.add(what, seen, format!("<= {goal}"), seen <= goal);
    }

    /// What was seen should be at least so much.
    pub(crate) fn at_least(&mut self, what: &str, seen: f64, goal: f64) {
        self.add(what, seen, format!(">= {goal}"), seen >= goal);
    }

    fn add(&mut self, what: &str, seen: f64, goal: String, met: bool) {
        let met = if met { "yes" } else { "no" };
        self.0.push(json!({"goal": what, "seen": (seen * 1e3).round() / 1e3, "wanted": goal, "met": met}));
    }

    /// One row each.
    pub(crate) fn rows(self) -> Value {
        self.0.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_goal_is_met_up_to_its_bound() {
        let mut goals = Goals::default();
        goals.at_most("a", 2.0, 2.0);
        goals.at_most("b", 2.1, 2.0);
        goals.at_least("c", 20.0, 20.0);
        goals.at_least("d", 19.0, 20.0);
        let met: Vec<Value> = goals.0.iter().map(|row| row["met"].clone()).collect();
        assert_eq!(met, ["yes", "no", "yes", "no"]);
    }
}
