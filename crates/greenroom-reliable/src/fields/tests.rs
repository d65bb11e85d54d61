use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

/// What a journal holds of one field.
#[derive(Default)]
struct Entries(BTreeMap<String, Bytes>);

impl Entries {
    fn apply(&mut self, changes: Vec<Change>) -> usize {
        let count = changes.len();
        for Change { entry, value } in changes {
            match value {
                Some(value) => _ = self.0.insert(entry, value),
                None => _ = self.0.remove(&entry),
            }
        }
        count
    }

    fn load<F: Field + Default>(&self) -> F {
        let entries: Vec<_> = self.0.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        let mut field = F::default();
        field.load(&entries).expect("it was written by the same type");
        field
    }
}

#[derive(Clone, Debug)]
enum Step {
    Put(u8, u16),
    Take(u8),
    Change(u8, u16),
    Clear,
    Commit,
    /// What is not committed is lost.
    Crash,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0..8_u8, any::<u16>()).prop_map(|(key, value)| Step::Put(key, value)),
        3 => (0..8_u8).prop_map(Step::Take),
        2 => (0..8_u8, any::<u16>()).prop_map(|(key, value)| Step::Change(key, value)),
        1 => Just(Step::Clear),
        3 => Just(Step::Commit),
        1 => Just(Step::Crash),
    ];
    proptest::collection::vec(step, 0..60)
}

proptest! {
    #[test]
    fn a_map_is_after_a_crash_what_it_was_at_its_last_commit(steps in steps()) {
        let (mut map, mut entries) = (Map::<u8, u16>::default(), Entries::default());
        let (mut model, mut committed) = (BTreeMap::new(), BTreeMap::new());
        for step in steps {
            match step {
                Step::Put(key, value) => prop_assert_eq!(map.insert(key, value), model.insert(key, value)),
                Step::Take(key) => prop_assert_eq!(map.remove(&key), model.remove(&key)),
                Step::Change(key, value) => {
                    map.get_mut(&key).into_iter().for_each(|known| *known = value);
                    model.get_mut(&key).into_iter().for_each(|known| *known = value);
                }
                Step::Clear => { map.clear(); model.clear() }
                Step::Commit => {
                    entries.apply(map.changes().unwrap());
                    committed = model.clone();
                }
                Step::Crash => {
                    map = entries.load();
                    model = committed.clone();
                }
            }
            prop_assert!(map.iter().eq(model.iter()));
            prop_assert_eq!(map.len(), model.len());
        }
        entries.apply(map.changes().unwrap());
        prop_assert_eq!(entries.0.len(), model.len(), "nothing is left behind in the journal");
    }

    #[test]
    fn a_queue_is_after_a_crash_what_it_was_at_its_last_commit(steps in steps()) {
        let (mut queue, mut entries) = (Queue::<u16>::default(), Entries::default());
        let (mut model, mut committed) = (std::collections::VecDeque::new(), std::collections::VecDeque::new());
        for step in steps {
            match step {
                Step::Put(_, value) => { queue.push(value); model.push_back(value) }
                Step::Take(_) => prop_assert_eq!(queue.pop(), model.pop_front()),
                Step::Change(_, value) => {
                    queue.front_mut().into_iter().for_each(|known| *known = value);
                    model.front_mut().into_iter().for_each(|known| *known = value);
                }
                Step::Clear => { queue.clear(); model.clear() }
                Step::Commit => {
                    entries.apply(queue.changes().unwrap());
                    committed = model.clone();
                }
                Step::Crash => {
                    queue = entries.load();
                    model = committed.clone();
                }
            }
            prop_assert!(queue.iter().eq(model.iter()));
        }
        entries.apply(queue.changes().unwrap());
        prop_assert_eq!(entries.0.len(), model.len(), "nothing is left behind in the journal");
    }
}

#[test]
fn only_what_a_turn_changed_is_written() {
    let mut entries = Entries::default();
    let mut words = Map::default();
    for number in 0..1000_u32 {
        words.insert(format!("word {number}"), number);
    }
    assert_eq!(entries.apply(words.changes().unwrap()), 1000);
    *words.get_mut("word 7").unwrap() += 1;
    assert!(words.get("word 8").is_some() && words.get_mut("no such word").is_none());
    assert_eq!(entries.apply(words.changes().unwrap()), 1);
    assert_eq!(words.changes().unwrap(), []);

    let mut target = Register::new(Some(7));
    assert_eq!(target.changes().unwrap(), [], "what it begins with is not written");
    target.set(None);
    assert_eq!(target.changes().unwrap().len(), 1);
}

#[test]
fn a_set_holds_each_value_once_and_writes_only_news() {
    let mut votes = Set::default();
    assert!(votes.insert("ada".to_owned()));
    votes.changes().unwrap();
    assert!(!votes.insert("ada".to_owned()));
    assert_eq!(votes.changes().unwrap(), [], "it is there already");
    assert!(votes.remove("ada") && !votes.remove("ada"));
    let gone = votes.changes().unwrap();
    assert!(gone.len() == 1 && gone[0].value.is_none());
}

#[test]
fn a_key_that_no_journal_could_hold_fails_the_turn() {
    let mut map = Map::default();
    map.insert("k".repeat(1000), ());
    assert!(matches!(map.changes(), Err(FieldError::LongKey { bytes: 1005 })), "{:?}", map.changes());
}

#[test]
fn what_another_type_has_written_is_an_error_that_names_the_entry() {
    let mut entries = Entries::default();
    let mut register = Register::new(String::new());
    register.set("text".to_owned());
    entries.apply(register.changes().unwrap());
    let stored: Vec<_> = entries.0.into_iter().collect();
    let error = Register::<u64>::default().load(&stored).unwrap_err();
    assert!(matches!(error, FieldError::Unreadable { .. }), "{error}");
}

#[test]
fn entries_are_written_as_they_always_were() {
    let mut map = Map::default();
    map.insert("a".to_owned(), 1_u8);
    let [Change { entry, value: Some(value) }] = &map.changes().unwrap()[..] else { panic!("one entry is new") };
    assert_eq!((entry.as_str(), &value[..]), ("0101a161", &[1, 1, 0x92, 0xa1, b'a', 1][..]));
    let mut queue = Queue::default();
    queue.push(true);
    let [Change { entry, value: Some(value) }] = &queue.changes().unwrap()[..] else { panic!("one entry is new") };
    assert_eq!((entry.as_str(), &value[..]), ("0000000000000000", &[1, 1, 0xc3][..]));
}

#[test]
fn a_queue_that_was_emptied_writes_what_one_that_is_loaded_writes() {
    let (mut queue, mut entries) = (Queue::<u8>::default(), Entries::default());
    queue.push(1);
    entries.apply(queue.changes().unwrap());
    queue.pop();
    entries.apply(queue.changes().unwrap());
    let mut loaded: Queue<u8> = entries.load();
    queue.push(2);
    loaded.push(2);
    assert_eq!(queue.changes().unwrap(), loaded.changes().unwrap());
}
