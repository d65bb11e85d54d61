//! Puts mutants into the sources that they change, each behind its number.

use std::collections::BTreeMap;
use std::path::Path;

use super::{Chosen, House, Mutant, Room, numbered};

/// Sources with mutants in them, by their paths from the copy's root, and the mutants that fit nowhere.
pub(super) struct MutatedSources {
    pub(super) files: BTreeMap<String, String>,
    pub(super) misfits: Vec<Misfit>,
}

/// A mutant whose code no longer stands in its file exactly once.
#[derive(Debug)]
pub(super) struct Misfit {
    /// The number that would bring it to life.
    pub(super) number: usize,
    /// A sentence that names the mutant and the remedy.
    pub(super) complaint: String,
}

impl MutatedSources {
    /// Puts all mutants of `house` into its sources below `root`, which stay as they are.
    pub(super) fn of_house(house: &House, root: &Path) -> Self {
        let mutants = numbered().filter(|(_, room, _)| room.of.package == house.package);
        Self::insert(mutants, |path| std::fs::read_to_string(root.join(path)).unwrap_or_default())
    }

    /// Puts `mutants` into the sources that `read` returns, empty where there is no such file.
    fn insert(mutants: impl Iterator<Item = Chosen>, read: impl Fn(&str) -> String) -> Self {
        let (mut files, mut misfits) = (BTreeMap::new(), Vec::new());
        for (number, room, mutant) in mutants {
            let path = room.path(mutant);
            let text = files.entry(path.clone()).or_insert_with(|| read(&path));
            match text.matches(mutant.code).count() {
                1 => *text = text.replace(mutant.code, &alternative(number, mutant)),
                places => misfits.push(Misfit { number, complaint: complaint(room, mutant, places) }),
            }
        }
        // A file that is not there must not be made by a mutant that does not fit it.
        files.retain(|_, text| !text.is_empty());
        Self { files, misfits }
    }
}

/// The text that stands in the mutant's place, where the mutant is alive under its number.
fn alternative(number: usize, mutant: &Mutant) -> String {
    mutant.mutated.replace("mutated!()", &format!("crate::is_alive({number})"))
}

fn complaint(room: &Room, mutant: &Mutant, places: usize) -> String {
    let (what, path) = (mutant.what, room.path(mutant));
    format!("the mutant \"{what}\" fits {places} places of {path}: let its code be text that stands there exactly once")
}

#[cfg(test)]
mod tests {
    use super::super::{HOUSES, PROTOCOLS, ROOMS, mutant};
    use super::*;
    use crate::step::root;

    #[test]
    fn each_mutant_fits_its_place() {
        let misfits = HOUSES.iter().flat_map(|house| MutatedSources::of_house(house, &root()).misfits);
        let complaints: Vec<String> = misfits.map(|misfit| misfit.complaint).collect();
        assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
    }

    #[test]
    fn a_mutant_that_does_not_fit_is_named_and_the_others_stay() {
        static MUTANTS: [Mutant; 3] = [
            mutant("one is two", "owner.rs", "= 1;", "= if mutated!() { 2 } else { 1 };"),
            mutant("a sum is a product", "owner.rs", "a + b", "a * b"),
            mutant("nothing is left", "gone.rs", "left", "right"),
        ];
        let room: &'static Room = &ROOMS[0];
        assert_eq!(room.of.package, PROTOCOLS.package);
        let numbered = MUTANTS.iter().enumerate().map(|(before, mutant)| (before + 1, room, mutant));
        let read = |path: &str| if path.ends_with("owner.rs") { "let one = 1;\n".to_owned() } else { String::new() };
        let mutated = MutatedSources::insert(numbered, read);
        let texts: Vec<&str> = mutated.files.values().map(String::as_str).collect();
        assert_eq!(texts, ["let one = if crate::is_alive(1) { 2 } else { 1 };\n"]);
        let numbers: Vec<usize> = mutated.misfits.iter().map(|misfit| misfit.number).collect();
        assert_eq!(numbers, [2, 3]);
        assert!(mutated.misfits[0].complaint.contains("a sum is a product"), "{:?}", mutated.misfits[0]);
    }
}
