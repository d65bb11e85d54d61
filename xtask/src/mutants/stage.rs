//! Mutants of the stage: the library's hooks for the explorer, what it holds back, and what goes wrong there.

use super::{Mutant, mutant};

pub(super) const MUTANTS: &[Mutant] = &[
    mutant(
        "messages are not held back",
        "shard/rehearsal/mod.rs",
        "if !rehearsal.on || rehearsal.passes.take() {",
        "if !rehearsal.on || rehearsal.passes.take() || mutated!() {",
    )
    .noticed_by("explorer", "a_lost_update_is_found_and_told_and_replayed"),
    mutant(
        "answers are not held back",
        "shard/rehearsal/mod.rs",
        "if !rehearsal.on || rehearsal.passes.take() || rehearsal.falls.get() {",
        "if !rehearsal.on || rehearsal.passes.take() || rehearsal.falls.get() || mutated!() {",
    )
    .noticed_by("explorer", "a_message_between_nodes_may_be_lost_and_its_answer"),
    mutant(
        "a call of a free neighbour begins on its caller's stack",
        "shard/submit.rs",
        "if shard != self.id() || self.is_rehearsed() || !self.may_begin_inline() {",
        "if shard != self.id() || (self.is_rehearsed() && !mutated!()) || !self.may_begin_inline() {",
    )
    .noticed_by("explorer", "a_call_by_a_reference_that_knows_the_way_is_a_step"),
    mutant(
        "what is sent to a free neighbour begins on its sender's stack",
        "shard/one_way.rs",
        "if shard != self.id() || self.is_rehearsed() {",
        "if shard != self.id() || (self.is_rehearsed() && !mutated!()) {",
    )
    .noticed_by("explorer", "a_send_by_a_reference_that_knows_the_way_is_a_step"),
    mutant(
        "turns that were woken go on by themselves",
        "shard/round.rs",
        "let turn = if self.is_rehearsed() { None }",
        "let turn = if self.is_rehearsed() && !mutated!() { None }",
    )
    .noticed_by("explorer", "who_is_woken_by_time_goes_on_in_a_step_of_its_own"),
    mutant(
        "messages of one sender overtake each other",
        "shard/rehearsal/stage.rs",
        "let is_behind = || *queue != 0 && held",
        "let is_behind = || *queue != 0 && !mutated!() && held",
    )
    .noticed_by("explorer", "messages_of_one_sender_keep_their_order"),
    mutant(
        "turns begin beside one that excludes others",
        "shard/rehearsal/mod.rs",
        "activation.clone().is_free(self, access)\n",
        "activation.clone().is_free(self, access) || mutated!()\n",
    )
    .noticed_by("explorer", "a_turn_that_excludes_others_keeps_their_messages_waiting"),
    mutant(
        "reads wait for each other",
        "shard/rehearsal/mod.rs",
        "if method.is_some_and(|method| method.read) { Access::Read }",
        "if method.is_some_and(|method| method.read && !mutated!()) { Access::Read }",
    )
    .noticed_by("explorer", "reads_of_one_actor_begin_beside_each_other"),
    mutant(
        "who calls itself waits for ever",
        "shard/rehearsal/mod.rs",
        "|| self.cycle(link, activation.id()).is_some()",
        "|| (self.cycle(link, activation.id()).is_some() && !mutated!())",
    )
    .noticed_by("explorer", "who_calls_itself_is_told_so_and_waits_for_nobody"),
    mutant(
        "workers wait for each other",
        "shard/rehearsal/mod.rs",
        "|| self.port.node.kinds().workers(target.id.kind) > 0",
        "|| (self.port.node.kinds().workers(target.id.kind) > 0 && !mutated!())",
    )
    .noticed_by("explorer", "workers_begin_beside_each_other"),
    mutant(
        "panics of turns are not told",
        "shard/rehearsal/mod.rs",
        "if let Some(message) = panic {",
        "if let Some(message) = panic.filter(|_| !mutated!()) {",
    )
    .noticed_by("explorer", "a_turn_that_panics_is_a_violation_though_nobody_waits_for_it"),
    mutant(
        "what one schedule has saved is there in the next",
        "shard/rehearsal/reset.rs",
        "forget.into_iter().for_each(|forget| forget());",
        "forget.into_iter().filter(|_| !mutated!()).for_each(|forget| forget());",
    )
    .noticed_by("lib", "what_one_schedule_has_saved_is_not_met_by_the_next_one"),
    mutant(
        "timers of one schedule go off in the next",
        "shard/rehearsal/reset.rs",
        "shard.timers.replace(Timers::default());",
        "if !mutated!() { shard.timers.replace(Timers::default()); }",
    )
    .survives("activations take their timers with them as they are forgotten"),
    mutant(
        "what outlives a shard is not noted",
        "shard/rehearsal/reset.rs",
        "self.rehearsal.is_stained.set(true);",
        "self.rehearsal.is_stained.set(!mutated!());",
    )
    .noticed_by("lib", "what_may_be_left_of_a_schedule_is_not_met_by_the_next_one"),
    mutant(
        "no message comes back from a schedule that is forgotten",
        "shard/rehearsal/reset.rs",
        "shard.rehearsal.falls.set(true);",
        "shard.rehearsal.falls.set(!mutated!());",
    )
    .survives("what is held back meanwhile is forgotten behind it"),
    mutant(
        "`maybe` is never true",
        "shard/rehearsal/maybe.rs",
        "choose.is_some_and(|choose| choose(what))",
        "choose.is_some_and(|choose| choose(what) && !mutated!())",
    )
    .noticed_by("explorer", "what_is_not_up_to_an_actor_is_chosen"),
    mutant(
        "claims look at actors that were not made yet",
        "shard/rehearsal/look.rs",
        "Ok(actor) => Some((key, Ref::filter_map(actor, Option::as_ref).ok())),\n                Err(_) => Some((key, None)),",
        "Ok(actor) => Some((key, Ref::filter_map(actor, Option::as_ref).ok())),\n                Err(_) if mutated!() => None,\n                Err(_) => Some((key, None)),",
    )
    .noticed_by("explorer", "a_claim_that_cannot_be_judged_in_the_end_is_a_violation"),
    mutant(
        "actors outlive their nodes",
        "shard/rehearsal/faults.rs",
        "self.cut_turns(&activation);\n            activation.vanish(self);",
        "if mutated!() { continue; }\n            self.cut_turns(&activation);\n            activation.vanish(self);",
    )
    .noticed_by("explorer", "a_crash_takes_what_actors_have_in_memory_and_the_calls_that_are_under_way"),
    mutant(
        "answers outlive the node that gave them",
        "shard/rehearsal/faults.rs",
        "let from_there = |held: &&Held| matches!(",
        "let from_there = |held: &&Held| !mutated!() && matches!(",
    )
    .noticed_by("explorer", "an_answer_goes_with_the_node_that_gave_it"),
    mutant(
        "a node that sleeps loses what it had sent",
        "shard/rehearsal/faults.rs",
        "(is_on(from) && !sleeps)",
        "(is_on(from) && (!sleeps || mutated!()))",
    )
    .noticed_by("explorer", "what_a_sleeping_node_had_sent_comes_after_what_its_actors_send_elsewhere"),
    mutant(
        "what a sleeping node had sent keeps its place",
        "shard/rehearsal/faults.rs",
        "What::Message { from, .. } if is_on(from)));",
        "What::Message { from, .. } if is_on(from) && !mutated!()));",
    )
    .noticed_by("explorer", "what_a_sleeping_node_had_sent_comes_after_what_its_actors_send_elsewhere"),
    mutant(
        "what was sent to an actor keeps its place when that moves",
        "shard/rehearsal/faults.rs",
        "shard.let_overtake(|held| held.at == activation.id().stable_hash());",
        "shard.let_overtake(|held| held.at == activation.id().stable_hash() && !mutated!());",
    )
    .noticed_by("explorer", "what_was_sent_to_an_actor_before_it_moved_comes_after_what_is_sent_then"),
    mutant(
        "messages within a node are lost",
        "shard/rehearsal/labels.rs",
        "Party::Actor(one) => self.of(one.stable_hash()) != self.of(other.stable_hash()),",
        "Party::Actor(one) => self.of(one.stable_hash()) != self.of(other.stable_hash()) || mutated!(),",
    )
    .noticed_by("explorer", "what_stays_on_a_node_is_not_lost"),
    mutant(
        "clients lose nothing",
        "shard/rehearsal/labels.rs",
        "Party::Client(_) => true,",
        "Party::Client(_) => !mutated!(),",
    )
    .noticed_by("explorer", "no_more_goes_wrong_than_may"),
    mutant(
        "a call is late before its turn as it is while that runs",
        "shard/rehearsal/faults.rs",
        "Fault::Late => shard.expired(Default::default()).into(),",
        "Fault::Late if !mutated!() => shard.expired(Default::default()).into(),",
    )
    .noticed_by("explorer", "a_deadline_passes_before_a_turn_or_while_it_runs"),
    mutant(
        "a turn is gone when its caller has given up",
        "shard/rehearsal/faults.rs",
        "let hit = if waits { Hit::Held(asked.message) } else { Hit::Running(asked.call) };",
        "if !waits && mutated!() { continue; }\n                        let hit = if waits { Hit::Held(asked.message) } else { Hit::Running(asked.call) };",
    )
    .noticed_by("explorer", "a_deadline_passes_before_a_turn_or_while_it_runs"),
    mutant(
        "idle actors stay",
        "shard/rehearsal/faults.rs",
        "activation.check_idle(shard, shard.now() + LONG);",
        "if !mutated!() || kind == Fault::Move { activation.check_idle(shard, shard.now() + LONG); }",
    )
    .noticed_by("explorer", "an_actor_may_be_idle_at_any_moment"),
    mutant(
        "actors without a state move",
        "shard/rehearsal/faults.rs",
        "found.is_some_and(|kind| kind.travels() == Travels::ByStore)",
        "found.is_some_and(|kind| kind.travels() == Travels::ByStore || mutated!())",
    )
    .noticed_by("explorer", "an_actor_that_has_no_state_does_not_move"),
    mutant(
        "stores do what they are asked, or refuse",
        "shard/rehearsal/stored.rs",
        "true => &[Self::Refused, Self::NotApplied, Self::Applied, Self::AppliedLater],",
        "true if mutated!() => &[Self::Refused],\n            true => &[Self::Refused, Self::NotApplied, Self::Applied, Self::AppliedLater],",
    )
    .noticed_by("explorer", "each_outcome_of_a_write_comes"),
    mutant(
        "operations on stores are no steps",
        "shard/rehearsal/stored.rs",
        "let shard = shard.filter(|shard| shard.rehearsal.is_on() && !shard.rehearsal.falls.get())?;",
        "let shard = shard.filter(|shard| shard.rehearsal.is_on() && !shard.rehearsal.falls.get() && !mutated!())?;",
    )
    .noticed_by("explorer", "a_write_that_a_store_refuses_is_a_schedule"),
    mutant(
        "what was under way to a store is written though its node is gone",
        "shard/rehearsal/faults.rs",
        "if is_on(&one.by)));",
        "if is_on(&one.by) && !mutated!()));",
    )
    .survives("nobody is left to be told of it, and what would be written was not: who writes does so behind the await that is gone"),
    mutant(
        "nothing comes twice",
        "shard/rehearsal/faults.rs",
        "kind == Fault::Repeat && shard.repeat(number)",
        "kind == Fault::Repeat && !mutated!() && shard.repeat(number)",
    )
    .noticed_by("explorer", "what_is_promised_at_least_once_comes_twice"),
    mutant(
        "what is promised once comes twice",
        "shard/rehearsal/faults.rs",
        "deed.delivery == Delivery::AtLeastOnce)",
        "deed.delivery == Delivery::AtLeastOnce || mutated!())",
    )
    .noticed_by("explorer", "what_is_committed_is_delivered_once_whatever_crashes"),
    mutant(
        "what is committed is lost between nodes",
        "shard/rehearsal/faults.rs",
        "What::Deed(deed) => deed.delivery == Delivery::BestEffort && ",
        "What::Deed(deed) => (deed.delivery == Delivery::BestEffort || mutated!()) && ",
    )
    .noticed_by("explorer", "what_is_committed_is_delivered_once_whatever_crashes"),
    mutant(
        "what was committed for an actor is gone with its node",
        "reliable/company.rs",
        "if letter.from.is_some() {\n                let number",
        "if letter.from.is_some() && !mutated!() {\n                let number",
    )
    .noticed_by("explorer", "what_is_committed_is_delivered_once_whatever_crashes"),
    mutant(
        "a crash leaves the commit of a turn that it has undone",
        "reliable/company.rs",
        "shard.drop_deeds(StepKind::Commit, *hash);",
        "if !mutated!() { shard.drop_deeds(StepKind::Commit, *hash); }",
    )
    .survives("a commit without its turn finds nothing to make true"),
    mutant(
        "a turn's effects are true before its commit",
        "reliable/company.rs",
        "if !is_seen {\n            return self.commit",
        "if !is_seen || mutated!() {\n            return self.commit",
    )
    .noticed_by("explorer", "what_a_reliable_turn_has_done_comes_true_in_a_step_of_its_own"),
    mutant(
        "a turn begins before the one before it is committed",
        "reliable/company.rs",
        "shard.occupy(who.hash, true);",
        "if !mutated!() { shard.occupy(who.hash, true); }",
    )
    .noticed_by("explorer", "what_is_committed_is_delivered_once_whatever_crashes"),
    mutant(
        "no turn runs twice",
        "reliable/company.rs",
        "let rerun = always || entry",
        "let rerun = always || !mutated!() && entry",
    )
    .noticed_by("explorer", "what_a_turn_decides_by_volatile_fields_is_found"),
    mutant(
        "a call with a key that was answered runs again",
        "reliable/company.rs",
        "if let Some(known) = self.known_answer(&entry) {",
        "if let Some(known) = self.known_answer(&entry).filter(|_| !mutated!()) {",
    )
    .noticed_by("explorer", "the_most_frequent_word_is_found"),
    mutant(
        "timers of reliable actors do not go off",
        "reliable/company.rs",
        "extract_if(.., |due| due.at <= now)",
        "extract_if(.., |due| due.at <= now && !mutated!())",
    )
    .noticed_by("explorer", "a_timer_that_is_committed_fires_once"),
    mutant(
        "messages come in another order than they were committed in",
        "shard/rehearsal/deed.rs",
        "let queue = if is_ordered {",
        "let queue = if is_ordered && !mutated!() {",
    )
    .noticed_by("explorer", "what_one_reliable_actor_sends_another_comes_in_its_order"),
    mutant(
        "all items of a stream come at once",
        "stream/pump.rs",
        "if is_staged() {",
        "if is_staged() && !mutated!() {",
    )
    .noticed_by("explorer", "a_turn_may_come_between_two_items_of_a_stream"),
    mutant(
        "a stream's first item is there as soon as it is asked for",
        "shard/rehearsal/beside.rs",
        "std::mem::replace(&mut self.0, true) || !is_staged()",
        "std::mem::replace(&mut self.0, true) || !is_staged() || mutated!()",
    )
    .noticed_by("explorer", "an_item_may_be_made_after_what_was_sent_when_it_was_asked_for"),
    mutant(
        "nobody waits for an event that is delivered again",
        "shard/rehearsal/beside.rs",
        "self.insists(Insists::Rests, |_| true)",
        "self.insists(Insists::Rests, |_| !mutated!())",
    )
    .noticed_by("explorer", "an_event_whose_answer_is_lost_comes_again"),
    mutant(
        "an event never comes twice",
        "shard/rehearsal/beside.rs",
        "self.insists(Insists::Tries, |maker| maker.at == held.at)",
        "self.insists(Insists::Tries, |maker| maker.at == held.at && !mutated!())",
    )
    .noticed_by("explorer", "an_event_may_come_twice"),
    mutant(
        "a tick never comes twice",
        "shard/rehearsal/ticks.rs",
        "self.activation(came.slot).is_none_or(",
        "!mutated!() && self.activation(came.slot).is_none_or(",
    )
    .noticed_by("explorer", "a_tick_comes_again_to_who_has_lost_its_memory_of_it"),
    mutant(
        "ticks come again though their reminder is cancelled",
        "shard/rehearsal/ticks.rs",
        "came.borrow_mut().retain(is_others);",
        "came.borrow_mut().retain(|came| is_others(came) || mutated!());",
    )
    .noticed_by("explorer", "no_tick_comes_again_once_its_reminder_is_cancelled"),
    mutant(
        "a stream that is told is spent",
        "shard/rehearsal/events.rs",
        "TELLS.replace(true)",
        "TELLS.replace(!mutated!())",
    )
    .noticed_by("explorer", "items_of_two_streams_come_in_any_order"),
];
