//! Turns in the trace: those that no message from another node brings are seen nowhere else.

use greenroom::{CallInfo, End, Interceptor, Outcome, Refusal};
use greenroom_sim::Sim;

/// Writes the turns of one node into the trace.
pub(crate) struct Turns {
    pub(crate) sim: Sim,
    pub(crate) node: String,
}

impl Interceptor for Turns {
    fn incoming(&self, call: &mut CallInfo<'_>) -> Result<(), Refusal> {
        let caller = call.caller().map_or_else(String::new, |caller| format!(" for {caller}"));
        self.sim.note(format_args!("{}: {}.{} begins{caller}", self.node, call.actor(), call.method()));
        Ok(())
    }

    fn finished(&self, call: &CallInfo<'_>, end: &End) {
        if !self.sim.is_alive(&self.node) {
            return;
        }
        let how = match end.outcome {
            Outcome::Ok => "ends",
            Outcome::Error => "ends with an error",
            Outcome::Refused => "is refused",
            _ => "breaks off",
        };
        self.sim.note(format_args!("{}: {}.{} {how}", self.node, call.actor(), call.method()));
    }
}
