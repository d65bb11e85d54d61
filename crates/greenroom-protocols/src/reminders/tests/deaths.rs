//! Ticks whose turns take their process down.

use super::*;

impl Scene {
    /// Another node comes to own the range, as this one has died, or has left.
    fn owner_changes(&mut self, after_death: bool) {
        self.play(Event::Lose);
        self.now += 5_000;
        self.play(Event::Own { after_death });
    }
}

#[test]
fn a_tick_that_takes_down_other_processes_is_parked_after_three_deaths() {
    let mut scene = Scene::new();
    scene.how = Delivered::Died;
    scene.rows.register(1, 1_001_000, 400);
    scene.note(1_001_000);
    scene.pass(600_000);
    assert_eq!((scene.failed_at.len(), scene.alone), (3, 1), "{:?}", scene.failed_at);
    assert_eq!(scene.parked, [(1, 3)]);
    let record = &scene.rows.records[&1].record;
    assert!(record.is_parked() && record.plan == Ok(Beat(400)), "{record:?}");
    scene.owner_changes(true);
    scene.pass(600_000);
    assert_eq!(scene.failed_at.len(), 3, "what is parked does not come up, whoever owns the range");
}

#[test]
fn a_parked_reminder_that_is_registered_anew_ticks() {
    let mut scene = Scene::new();
    scene.how = Delivered::Died;
    scene.rows.register(1, 1_001_000, 0);
    scene.note(1_001_000);
    scene.pass(60_000);
    assert_eq!(scene.parked, [(1, 3)]);
    scene.how = Delivered::Ran;
    let due = scene.now + 1_000;
    scene.rows.register(1, due, 0);
    scene.note(due);
    scene.pass(2_000);
    assert_eq!(scene.ticks, [(1, due, 0)]);
    assert_eq!(scene.rows.hints.len(), 1, "the hint of the parked record is gone");
}

#[test]
fn a_tick_that_takes_down_its_owner_each_time_is_parked_after_three_deaths() {
    let mut scene = Scene::new();
    scene.dies = true;
    scene.rows.register(1, 1_001_000, 0);
    scene.note(1_001_000);
    for _ in 0..10 {
        scene.pass(5_000);
        scene.owner_changes(true);
    }
    assert_eq!(scene.failed_at.len(), 3, "{:?}", scene.failed_at);
    assert_eq!(scene.parked, [(1, 3)]);
}

#[test]
fn a_tick_that_takes_down_now_its_owner_and_now_another_process_is_parked_after_three_deaths() {
    let mut scene = Scene::new();
    scene.rows.register(1, 1_001_000, 0);
    scene.note(1_001_000);
    scene.how = Delivered::Died;
    scene.pass(1_100);
    scene.dies = true;
    scene.pass(5_000);
    scene.dies = false;
    scene.owner_changes(true);
    scene.pass(60_000);
    assert_eq!((scene.failed_at.len(), &scene.parked[..]), (3, &[(1, 3)][..]), "{:?}", scene.failed_at);
}

#[test]
fn a_tick_that_is_not_taken_is_no_suspect_however_often_its_owner_changes() {
    let mut scene = Scene::new();
    scene.how = Delivered::Again;
    scene.rows.register(1, 1_001_000, 0);
    scene.note(1_001_000);
    for _ in 0..10 {
        scene.pass(70_000);
        scene.owner_changes(false);
    }
    assert_eq!(scene.parked, []);
    scene.how = Delivered::Ran;
    scene.pass(120_000);
    assert_eq!(scene.ticks.len(), 1);
}

#[test]
fn a_tick_that_was_overdue_when_its_owner_died_is_parked_after_two_more_deaths() {
    let mut scene = Scene::new();
    scene.how = Delivered::Died;
    scene.rows.register(1, 1_001_000, 0);
    scene.owner_changes(true);
    scene.pass(60_000);
    assert_eq!((scene.failed_at.len(), &scene.parked[..]), (2, &[(1, 3)][..]));
}

#[test]
fn deaths_are_those_of_one_due_time() {
    let mut scene = Scene::new();
    scene.rows.register(1, 1_001_000, 10_000);
    scene.note(1_001_000);
    for _ in 0..5 {
        scene.how = Delivered::Died;
        scene.pass(1_100);
        scene.how = Delivered::Ran;
        scene.pass(8_900);
    }
    assert_eq!((scene.ticks.len(), &scene.parked[..]), (5, &[][..]), "{:?}", scene.ticks);
    assert_eq!(scene.rows.records[&1].record.attempt, None);
}

#[test]
fn a_tick_whose_deaths_are_not_counted_takes_down_process_after_process() {
    let mut scene = Scene::under(Checks { tick_deaths: false, ..Checks::default() });
    scene.how = Delivered::Died;
    scene.rows.register(1, 1_001_000, 0);
    scene.note(1_001_000);
    scene.pass(60_000);
    assert!(scene.failed_at.len() > 10 && scene.parked.is_empty(), "{:?}", scene.failed_at);
}
