//! Mutants of the explorer: its steps of time, its judges, its strategies, and what it tells.

use super::{Mutant, mutant};

pub(super) const MUTANTS: &[Mutant] = &[
    // What steps ask of the system.
    mutant(
        "clocks are the system's in steps",
        "watch/mod.rs",
        "SHOWN.set(Some(self.shown));",
        "if !mutated!() {\n            SHOWN.set(Some(self.shown));\n        }",
    )
    .noticed_by("explorer", "clocks_of_the_standard_library_show_the_schedules_time"),
    mutant(
        "clocks stand still when time passes",
        "driver/time.rs",
        "self.watch.look_at_clock();",
        "if !mutated!() {\n            self.watch.look_at_clock();\n        }",
    )
    .noticed_by("explorer", "clocks_of_the_standard_library_show_the_schedules_time"),
    mutant("calendars go on behind a schedule", "hall.rs", "sim.begin_calendars();", "if !mutated!() {\n                    sim.begin_calendars();\n                }")
        .noticed_by("explorer", "clocks_of_the_standard_library_show_the_schedules_time"),
    mutant(
        "what is noticed is not told",
        "driver.rs",
        "let Some(noticed) = self.watch.noticed() else { return Ok(()) };",
        "let Some(noticed) = self.watch.noticed().filter(|_| !mutated!()) else { return Ok(()) };",
    )
    .noticed_by("explorer", "who_lets_its_thread_sleep_is_named_at_once"),
    // The driver.
    mutant(
        "a client that panics is none",
        "driver/clients.rs",
        "Ok(Poll::Ready(())) => {}",
        "Ok(Poll::Ready(())) => {}\n            Err(_) if mutated!() => {}",
    )
    .noticed_by("explorer", "a_panic_is_a_violation"),
    mutant(
        "panics of turns are not asked for",
        "driver.rs",
        "if self.stage.has_panics() {",
        "if self.stage.has_panics() && !mutated!() {",
    )
    .noticed_by("explorer", "a_turn_that_panics_is_a_violation_though_nobody_waits_for_it"),
    mutant(
        "who waits for ever runs out of time",
        "driver/time.rs",
        "false => (BEFORE_DEADLINES, \"deadlock\".to_owned()),",
        "false if mutated!() => (PATIENCE, String::new()),\n            false => (BEFORE_DEADLINES, \"deadlock\".to_owned()),",
    )
    .noticed_by("explorer", "a_deadlock_of_three_is_found_and_says_who_waits_for_whom"),
    mutant(
        "time is no step",
        "driver.rs",
        "if !self.reach.in_time && !self.is_time_spent && self.waits_for_time() {",
        "if !self.reach.in_time && !self.is_time_spent && self.waits_for_time() && !mutated!() {",
    )
    .noticed_by("explorer", "time_may_pass_however_slow_messages_are"),
    mutant(
        "time passes however slow messages are, though it is not to",
        "driver.rs",
        "if !self.reach.in_time && !self.is_time_spent &&",
        "if (!self.reach.in_time || mutated!()) && !self.is_time_spent &&",
    )
    .noticed_by("explorer", "who_leaves_room_for_clocks_that_differ_sees_nothing_of_it"),
    mutant(
        "calls run out of time because others sleep",
        "driver/time.rs",
        "left.saturating_sub(MARGIN).min(TIME_MAX)",
        "if mutated!() { TIME_MAX } else { left.saturating_sub(MARGIN).min(TIME_MAX) }",
    )
    .noticed_by("explorer", "calls_do_not_run_out_of_time_because_others_sleep"),
    mutant(
        "nobody looks who waits for a moment beside an answer",
        "run.rs",
        "if self.reach.in_time { BTreeSet::new() }",
        "if self.reach.in_time || mutated!() { BTreeSet::new() }",
    )
    .noticed_by("explorer", "time_may_pass_however_slow_messages_are"),
    mutant(
        "more goes wrong than may",
        "driver.rs",
        "self.reach.faults.spend(fault);",
        "if !mutated!() { self.reach.faults.spend(fault); }",
    )
    .noticed_by("explorer", "no_more_goes_wrong_than_may"),
    mutant(
        "kinds together go wrong as often as each alone",
        "reach.rs",
        "self.all = self.all.saturating_sub(1);",
        "self.all = self.all.saturating_sub(u32::from(!mutated!()));",
    )
    .noticed_by("lib", "faults_have_budgets_of_their_own_and_one_together"),
    mutant(
        "actors sit on one node",
        "driver.rs",
        "self.stage.place(self.reach.nodes, placement as u64);",
        "self.stage.place(if mutated!() { 1 } else { self.reach.nodes }, placement as u64);",
    )
    .noticed_by("explorer", "a_message_between_nodes_may_be_lost_and_its_answer"),
    mutant(
        "not all get their turns in the second half",
        "driver/judged.rs",
        "self.world.is_explored() && self.steps >= self.reach.steps / 2",
        "self.world.is_explored() && self.steps >= self.reach.steps / 2 && !mutated!()",
    )
    .noticed_by("explorer", "a_monitor_that_stays_hot_while_all_get_their_turns_is_a_violation"),
    mutant(
        "the first of all gets all turns of the second half",
        "driver/judged.rs",
        "self.fair.served.get(&step.at).map_or(0, |at| at + 1);",
        "if mutated!() { 0 } else { self.fair.served.get(&step.at).map_or(0, |at| at + 1) };",
    )
    .noticed_by("explorer", "who_comes_late_gets_its_turns_beside_one_that_never_stops"),
    // Claims.
    mutant(
        "what is always is not asked",
        "driver/judged.rs",
        "When::Always if claim.judge(&now)? == Some(false) =>",
        "When::Always if claim.judge(&now)? == Some(false) && !mutated!() =>",
    )
    .noticed_by("explorer", "a_choice_of_the_test_is_explored_and_told"),
    mutant(
        "what is to be in the end is not asked",
        "driver/judged.rs",
        "if claim.judge(&now)? != Some(true) {",
        "if claim.judge(&now)? != Some(true) && !mutated!() {",
    )
    .noticed_by("explorer", "the_order_of_two_senders_is_not_taken_for_granted"),
    mutant(
        "what is to be in the end is not missed where there is none",
        "driver/judged.rs",
        "claim.when == When::AtTheEnd && !**held);",
        "claim.when == When::AtTheEnd && !**held && !mutated!());",
    )
    .noticed_by("explorer", "what_is_never_true_in_the_end_is_a_violation_if_there_is_no_end"),
    mutant(
        "what was true while all got their turns is missed where there is no end",
        "driver/judged.rs",
        "*held |= claim.when == When::AtTheEnd && claim",
        "*held |= claim.when == When::AtTheEnd && !mutated!() && claim",
    )
    .noticed_by("explorer", "what_is_true_at_some_time_is_not_missed_where_there_is_no_end"),
    mutant(
        "what never was is not told",
        "explore.rs",
        "assert!(never.is_empty(), \"never in",
        "assert!(never.is_empty() || mutated!(), \"never in",
    )
    .noticed_by("explorer", "a_test_that_proves_nothing_fails"),
    mutant(
        "what was sometimes is not seen",
        "driver/judged.rs",
        "When::Sometimes if !*seen => *seen = claim.judge(&now)? == Some(true),",
        "When::Sometimes if !*seen => *seen = claim.judge(&now)? == Some(true) && !mutated!(),",
    )
    .noticed_by("explorer", "deposits_that_are_one_turn_are_not_lost"),
    mutant(
        "claims are believed that ask for who cannot be seen",
        "now.rs",
        "(!self.is_blocked.get()).then_some(holds)",
        "(!self.is_blocked.get() || mutated!()).then_some(holds)",
    )
    .noticed_by("explorer", "a_claim_that_cannot_be_judged_in_the_end_is_a_violation"),
    mutant(
        "what `finally` says is not heard",
        "driver.rs",
        "judged?;\n        }",
        "if !mutated!() { judged?; }\n        }",
    )
    .noticed_by("explorer", "a_lost_update_is_found_and_told_and_replayed"),
    // Judges.
    mutant(
        "invariants are not asked",
        "judge/mod.rs",
        "if let Some((actor, why)) = stage.unsound() {",
        "if let Some((actor, why)) = stage.unsound().filter(|_| !mutated!()) {",
    )
    .noticed_by("explorer", "an_invariant_holds_after_each_turn"),
    mutant(
        "what a monitor says is wrong is not heard",
        "judge/mod.rs",
        "Verdict::Violated(why) => return",
        "Verdict::Violated(_) if mutated!() => {}\n                Verdict::Violated(why) => return",
    )
    .noticed_by("explorer", "a_monitor_sees_turns_and_their_arguments"),
    mutant(
        "a monitor forgets what it waits for",
        "judge/mod.rs",
        "Verdict::Warm => {}",
        "Verdict::Warm if mutated!() => *last = Verdict::Cold,\n                Verdict::Warm => {}",
    )
    .noticed_by("explorer", "a_monitor_that_is_hot_in_the_end_is_a_violation"),
    mutant(
        "a monitor may be hot in the end",
        "driver/judged.rs",
        "self.judges.end()?;",
        "if !mutated!() { self.judges.end()?; }",
    )
    .noticed_by("explorer", "a_monitor_that_is_hot_in_the_end_is_a_violation"),
    mutant(
        "a monitor may be hot for ever",
        "judge/mod.rs",
        "if *hot >= patience {",
        "if *hot >= patience && !mutated!() {",
    )
    .noticed_by("explorer", "a_monitor_that_stays_hot_while_all_get_their_turns_is_a_violation"),
    mutant(
        "monitors hear nothing",
        "judge/mod.rs",
        "|| !monitors.is_empty();",
        "|| (!monitors.is_empty() && !mutated!());",
    )
    .noticed_by("explorer", "a_monitor_hears_schedules_of_which_nothing_is_told"),
    mutant(
        "answers are not compared with those of serial runs",
        "run.rs",
        "if !self.serial(ran.program).explains(&calls) {",
        "if !self.serial(ran.program).explains(&calls) && !mutated!() {",
    )
    .noticed_by("explorer", "a_lost_update_is_found_by_the_actors_own_serial_runs"),
    mutant(
        "what went wrong is judged by runs in which nothing does",
        "run.rs",
        "&& !ran.is_given_up && !ran.has_faults {",
        "&& !ran.is_given_up && (!ran.has_faults || mutated!()) {",
    )
    .noticed_by("explorer", "what_went_wrong_is_not_judged_by_runs_in_which_nothing_does"),
    mutant(
        "an order explains answers that real time excludes",
        "judge/serial.rs",
        "other.heard < call.asked && before > at",
        "other.heard < call.asked && before > at && !mutated!()",
    )
    .noticed_by("lib", "an_order_that_real_time_excludes_explains_nothing"),
    mutant(
        "a call of which nobody knows must have come to the same",
        "judge/serial.rs",
        "|| doubtful.contains(&(one.0, one.1)))",
        "|| (doubtful.contains(&(one.0, one.1)) && !mutated!()))",
    )
    .noticed_by("lib", "a_call_of_which_nobody_knows_is_explained_by_any_answer"),
    mutant(
        "all programs of anybody are judged by the runs of one",
        "run.rs",
        "let of = (program, self.without());",
        "let of = (program.map(|program| if mutated!() { 0 } else { program }), self.without());",
    )
    .noticed_by("explorer", "each_program_of_anybody_has_serial_runs_of_its_own"),
    mutant(
        "calls of serial runs are made at once",
        "judge/serial.rs",
        "Kind::Start => (1..=CLIENTS_MAX).contains(&step.by),",
        "Kind::Start => (1..=CLIENTS_MAX).contains(&step.by) && !mutated!(),",
    )
    .noticed_by("explorer", "what_can_be_told_one_at_a_time_is_no_violation"),
    mutant(
        "no schedule runs twice",
        "search.rs",
        "if ran.violated.is_some() || tell != Tell::Nothing {",
        "if (ran.violated.is_some() || tell != Tell::Nothing) && !mutated!() {",
    )
    .noticed_by("explorer", "a_hash_map_that_decides_an_order_is_named"),
    mutant(
        "what outlives a run is taken for chance",
        "judge/twice.rs",
        "match first_difference(&other, &third) {",
        "match first_difference(&other, &third).or(mutated!().then_some(0)) {",
    )
    .noticed_by("explorer", "what_one_run_has_left_for_all_others_is_told_from_chance"),
    // How much is told.
    mutant(
        "of two runs of one schedule no steps are told",
        "run.rs",
        "Tell::Steps => self.told.push(",
        "Tell::Steps if mutated!() => {}\n            Tell::Steps => self.told.push(",
    )
    .noticed_by("explorer", "a_hash_map_that_decides_an_order_is_named"),
    mutant(
        "of two runs of one schedule nobody hears what was answered",
        "judge/mod.rs",
        "let listen = listen || tell != Tell::Nothing",
        "let listen = listen || (tell != Tell::Nothing && !(tell == Tell::Steps && mutated!()))",
    )
    .noticed_by("explorer", "what_outlives_a_run_is_named"),
    mutant(
        "what actors are is not told",
        "judge/mod.rs",
        "states: (tell == Tell::All).then(Vec::new),",
        "states: (tell == Tell::All && !mutated!()).then(Vec::new),",
    )
    .noticed_by("explorer", "a_page_shows_what_actors_are_and_nothing_in_it_is_markup"),
    mutant(
        "what was sent and answered is not told",
        "run.rs",
        "events: driver.judges.take_events(),",
        "events: if mutated!() { Vec::new() } else { driver.judges.take_events() },",
    )
    .noticed_by("explorer", "what_matters_is_said"),
    // Strategies.
    mutant(
        "priorities are not drawn anew for what races",
        "strategy/pos.rs",
        "filter(|step| step.at == chosen.at)",
        "filter(|step| step.at == chosen.at && (!mutated!() || step.number == chosen.number))",
    )
    .noticed_by("lib", "what_races_with_a_step_is_drawn_anew"),
    mutant(
        "who has the highest priority never loses it",
        "strategy/pct.rs",
        "if drops.contains(taken) {",
        "if drops.contains(taken) && !mutated!() {",
    )
    .noticed_by("lib", "who_has_the_highest_priority_acts_until_it_is_lost"),
    mutant(
        "each step is as likely, whatever comes of it",
        "strategy/urw.rs",
        "map_or(UNIT, |(sum, times)| UNIT * u64::from(*sum) / u64::from(*times))",
        "map_or(UNIT, |(sum, times)| if mutated!() { UNIT } else { UNIT * u64::from(*sum) / u64::from(*times) })",
    )
    .noticed_by("lib", "a_single_step_comes_as_often_late_as_early_beside_a_chain"),
    mutant(
        "no single step comes early",
        "strategy/deviate.rs",
        "Phase::Single(place, which) => self.early.push((place, which)),",
        "Phase::Single(place, which) => if !mutated!() { self.early.push((place, which)) },",
    )
    .noticed_by("lib", "each_single_step_comes_early_once"),
    mutant(
        "what was run does not sleep",
        "strategy/dpor.rs",
        "self.sleep.iter().any(|asleep| asleep.number == step.number)\n    }",
        "self.sleep.iter().any(|asleep| asleep.number == step.number && (!mutated!() || asleep.number == self.chosen.number))\n    }",
    )
    .noticed_by("lib", "all_traces_are_those_of_sleep_sets_alone"),
    mutant(
        "races are not reversed",
        "strategy/dpor.rs",
        "self.reverse(before, at, &steps, &past, &own);",
        "if !mutated!() { self.reverse(before, at, &steps, &past, &own); }",
    )
    .noticed_by("lib", "all_traces_are_those_of_sleep_sets_alone"),
    mutant(
        "messages that wait in the end take no part in races",
        "strategy/dpor.rs",
        ".chain(blocked.iter().copied()).collect();",
        ".chain(blocked.iter().copied().filter(|_| !mutated!())).collect();",
    )
    .noticed_by("lib", "all_traces_are_those_of_sleep_sets_alone"),
    mutant(
        "a turn that excludes others races with who it kept waiting",
        "strategy/dpor.rs",
        "step.kind == Kind::Start && if was_there { !could_come() } else { excludes }",
        "step.kind == Kind::Start && !mutated!() && if was_there { !could_come() } else { excludes }",
    )
    .noticed_by("lib", "all_traces_are_those_of_sleep_sets_alone"),
    mutant(
        "what is hit is always the first",
        "strategy/aim.rs",
        "self.aims.push((fault, random.index(most.max(1))));",
        "self.aims.push((fault, if mutated!() { 0 } else { random.index(most.max(1)) }));",
    )
    .noticed_by("lib", "what_is_hit_is_as_often_late_in_a_schedule_as_early"),
    mutant(
        "all ends when all traces were run, though more is judged",
        "search.rs",
        "if !lane.is_cut && !ran.judges_order &&",
        "if !lane.is_cut && (!ran.judges_order || mutated!()) &&",
    )
    .noticed_by("explorer", "a_claim_over_two_actors_is_judged_in_more_than_one_schedule_of_a_trace"),
    mutant(
        "all were run though some were cut off",
        "search.rs",
        "lane.is_cut |= ran.is_cut;",
        "lane.is_cut |= ran.is_cut && !mutated!();",
    )
    .noticed_by("explorer", "what_never_ends_is_cut_off_and_says_so"),
    mutant(
        "the last of several threads is believed",
        "search.rs",
        "is_none_or(|known| found.schedule < known.schedule)",
        "is_none_or(|known| found.schedule < known.schedule || mutated!())",
    )
    .noticed_by("bugs", "threads_find_the_same_schedule_first"),
    // What is told of a failure.
    mutant(
        "steps that have nothing to do with each other make a trace",
        "trace.rs",
        "let at = if step.kind == Kind::Choice { step.by } else { step.at };",
        "let at = if mutated!() { 0 } else if step.kind == Kind::Choice { step.by } else { step.at };",
    )
    .noticed_by("lib", "only_the_order_of_dependent_steps_makes_a_trace"),
    mutant(
        "time has nothing to do with other steps",
        "trace.rs",
        "if step.kind.touches_all() {",
        "if step.kind.touches_all() && !mutated!() {",
    )
    .noticed_by("lib", "only_the_order_of_dependent_steps_makes_a_trace"),
    mutant(
        "clients are not left out",
        "shrink.rs",
        "search.leave_out_clients(&mut best);",
        "if !mutated!() { search.leave_out_clients(&mut best); }",
    )
    .noticed_by("explorer", "clients_that_have_nothing_to_do_with_it_are_left_out"),
    mutant(
        "what goes wrong is not left out",
        "shrink.rs",
        "search.leave_out_faults(&mut best);",
        "if !mutated!() { search.leave_out_faults(&mut best); }",
    )
    .survives("deviations are left out behind it, what goes wrong among them: it comes first to save runs"),
    mutant(
        "deviations are not left out",
        "shrink.rs",
        "search.leave_out(&mut best);",
        "if !mutated!() { search.leave_out(&mut best); }",
    )
    .noticed_by("explorer", "what_is_made_short_has_no_deviation_too_many"),
    mutant(
        "nobody looks for fewer deviations",
        "shrink.rs",
        "search.look_for_fewer(&mut best);",
        "if !mutated!() { search.look_for_fewer(&mut best); }",
    )
    .noticed_by("explorer", "each_strategy_finds_a_lost_update_by_one_deviation"),
    mutant(
        "another violation will do",
        "shrink.rs",
        "(ran.violated.as_deref() == Some(self.violated)).then(",
        "(ran.violated.as_deref() == Some(self.violated) || (mutated!() && ran.violated.is_some())).then(",
    )
    .noticed_by("explorer", "what_is_made_short_violates_the_same"),
    mutant(
        "everything matters",
        "report/matters.rs",
        "if ran.violated.as_deref() == Some(violated) {",
        "if ran.violated.as_deref() == Some(violated) && !mutated!() {",
    )
    .noticed_by("explorer", "what_does_not_matter_is_not_said"),
    mutant(
        "nothing matters",
        "report/matters.rs",
        "if let Some(pair) = pair.filter(|pair| !found.contains(pair)) {",
        "if let Some(pair) = pair.filter(|pair| !found.contains(pair) && !mutated!()) {",
    )
    .noticed_by("explorer", "what_matters_is_said"),
    mutant(
        "a step that cannot come yet is forgotten in a replay",
        "run.rs",
        "if *from <= at => {",
        "if *from == at || (*from <= at && !mutated!()) => {",
    )
    .noticed_by("lib", "a_step_that_is_to_come_early_comes_when_it_can"),
    mutant(
        "steps of one name are one",
        "run.rs",
        "names.push(if before == 0 { own }",
        "names.push(if before == 0 || mutated!() { own }",
    )
    .noticed_by("lib", "steps_of_one_name_are_told_apart"),
    mutant(
        "pairs of turns are not counted",
        "coverage.rs",
        "self.pairs.insert((turn.0.clone(), before.clone(), turn.1.clone()));",
        "if !mutated!() { self.pairs.insert((turn.0.clone(), before.clone(), turn.1.clone())); }",
    )
    .noticed_by("explorer", "what_is_seen_is_said"),
    mutant(
        "traces that came once are not counted",
        "coverage.rs",
        "filter(|times| **times == 1)",
        "filter(|times| **times == 1 && !mutated!())",
    )
    .noticed_by("lib", "pairs_that_never_came_are_told"),
];
