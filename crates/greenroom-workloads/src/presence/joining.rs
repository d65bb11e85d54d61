//! A node that joins while players play: how soon as many actors live there as on the others, and what that costs.

use serde_json::Value;

use super::rounded;
use super::series::Second;

/// What is told of a node that joins in the second `at`: the last one of those that were counted.
pub(super) fn figures(seconds: &[Second], at: usize) -> Vec<(&'static str, Value)> {
    let since = seconds.get(at..).unwrap_or_default();
    let reached = since.iter().position(|second| part_of_mean(second) >= AT_THE_MEAN);
    let meanwhile = Second::sum(&since[..reached.map_or(since.len(), |after| after + 1)]);
    let mut figures = vec![
        ("joined_part_of_mean", rounded(since.last().map_or(0.0, part_of_mean)).into()),
        ("remote_while_joining", rounded(meanwhile.remote()).into()),
    ];
    if let Some(after) = reached {
        figures.push(("joined_at_the_mean_after_s", after.into()));
    }
    figures
}

/// The activations of the node that joined last, by the mean of all.
fn part_of_mean(second: &Second) -> f64 {
    let Some((joined, others)) = second.activations.split_last() else { return 0.0 };
    let all = (others.iter().sum::<u64>() + joined) as f64;
    *joined as f64 * second.activations.len() as f64 / all.max(1.0)
}

/// Balance leaves a node alone that differs by less.
const AT_THE_MEAN: f64 = 0.95;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::presence::Ways;

    #[test]
    fn a_node_has_joined_when_it_has_as_much_as_the_mean_and_what_was_remote_until_then_counts() {
        let second = |activations: &[u64], away| Second {
            activations: activations.to_vec(),
            ways: Ways { near: 10 - away, beside: 0, away },
            ..Second::default()
        };
        let seconds = [
            second(&[30, 30], 9),
            second(&[30, 30, 0], 1),
            second(&[22, 23, 15], 3),
            second(&[20, 21, 19], 2),
            second(&[20, 20, 20], 9),
        ];
        let of = |seconds: &[Second], name| {
            figures(seconds, 1).into_iter().find(|(known, _)| *known == name).map(|(_, value)| value)
        };
        assert_eq!(of(&seconds, "joined_at_the_mean_after_s"), Some(2.into()));
        assert_eq!(of(&seconds, "remote_while_joining"), Some(0.2.into()));
        assert_eq!(of(&seconds, "joined_part_of_mean"), Some(1.0.into()));
        assert_eq!(of(&seconds[..3], "joined_at_the_mean_after_s"), None);
    }
}
