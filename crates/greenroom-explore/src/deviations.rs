//! A schedule as people write it down: where it leaves the default order.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use crate::run::Told;

/// A step that comes before its time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Deviation {
    /// The number of the step, from 1, at which it is to come: later, if it cannot come yet.
    pub(crate) at: usize,
    pub(crate) name: String,
}

impl fmt::Display for Deviation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.at, self.name)
    }
}

/// All of a schedule.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Deviations(pub(crate) Vec<Deviation>);

impl Deviations {
    /// Where a schedule leaves the default order.
    pub(crate) fn of(told: &[Told]) -> Self {
        let left = told.iter().enumerate().filter(|(_, step)| step.instead_of.is_some());
        Self(left.map(|(at, step)| Deviation { at: at + 1, name: step.name.clone() }).collect())
    }
}

impl Deviations {
    /// The same as it is written where these clients are left out.
    pub(crate) fn without(&self, clients: &BTreeSet<u32>) -> Self {
        let left_out = clients.iter().map(|number| Deviation { at: 0, name: format!("{WITHOUT}{number}") });
        Self(left_out.chain(self.0.iter().cloned()).collect())
    }

    /// Takes the clients out that are left out.
    pub(crate) fn take_left_out(&mut self) -> BTreeSet<u32> {
        let left_out = self.0.extract_if(.., |step| step.at == 0);
        left_out.filter_map(|step| step.name.strip_prefix(WITHOUT)?.parse().ok()).collect()
    }
}

impl fmt::Display for Deviations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: Vec<String> = self.0.iter().map(Deviation::to_string).collect();
        f.write_str(&all.join("; "))
    }
}

impl FromStr for Deviations {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let one = |part: &str| {
            let (at, name) = part.split_once(':').ok_or_else(|| format!("{part:?} is not `number:step`"))?;
            let at = at.trim().parse().map_err(|_| format!("{at:?} is not the number of a step"))?;
            Ok(Deviation { at, name: name.trim().to_owned() })
        };
        let parts = text.split("; ").map(str::trim).filter(|part| !part.is_empty());
        parts.map(one).collect::<Result<_, _>>().map(Self)
    }
}

/// What a client that is left out is written behind.
const WITHOUT: &str = "without client ";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schedule_is_read_as_it_was_written() {
        let text = "5:client 2; 9:account/ada.set<teller/1#2";
        let read: Deviations = text.parse().expect("it is well formed");
        assert_eq!((read.0.len(), read.to_string().as_str()), (2, text));
        assert_eq!("".parse(), Ok(Deviations::default()));
        assert!("client 2".parse::<Deviations>().is_err_and(|error| error.contains("number:step")));
        assert!("x:client 2".parse::<Deviations>().is_err());
    }
    #[test]
    fn clients_that_are_left_out_are_written_first() {
        let steps: Deviations = "5:client 2".parse().expect("it is well formed");
        let without = BTreeSet::from([1, 4]);
        let text = steps.without(&without).to_string();
        assert_eq!(text, "0:without client 1; 0:without client 4; 5:client 2");
        let mut read: Deviations = text.parse().expect("it is well formed");
        assert_eq!((read.take_left_out(), read), (without, steps));
    }
}
