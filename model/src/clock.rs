//! Time: blocks come, become final, or do not for a while. The only assumption on time is in [`Protocol::may_tick`].

use crate::protocol::{Action, Protocol};
use crate::rules::Rule;
use crate::state::{EPOCHS, Event, State};

impl Protocol {
    /// The next actions of the clock.
    pub(crate) fn clock_actions(&self, state: &State, actions: &mut Vec<Action>) {
        if state.has(Event::Requested) && self.may_tick(state) {
            actions.push(Action::Tick);
        }
        let is_behind = usize::from(state.final_events) < state.events().count() || state.final_time < state.now;
        if is_behind {
            actions.push(Action::Finalize);
        }
    }

    /// Time stands still while an honest holder of a certificate that can be upheld has used up its time. So the
    /// assumption is: in `hold` ticks somebody brings it to the authorities and has `upholdSequence` mined.
    fn may_tick(&self, state: &State) -> bool {
        let clock = self.setting.clock;
        // After the outcome, time matters only to those that have not read the request.
        let ends = if state.has_outcome() { clock.lag } else { clock.horizon() };
        let waits = clock.hold.is_some_and(|hold| self.is_held(state) && state.held >= hold);
        let stalls = clock.stall.is_some_and(|stall| !state.is_final(Event::Requested) && state.now >= stall);
        state.now < ends && !waits && !stalls
    }

    /// Whether an honest authority executed an order and the chain says nothing yet, so that it must be upheld.
    fn is_held(&self, state: &State) -> bool {
        let executed = state.authorities.iter().any(|authority| !authority.left && authority.executed().is_some());
        executed && state.is_final(Event::Requested) && !state.has_outcome() && state.paid().is_none()
    }

    /// A tick passes.
    pub(crate) fn tick(&self, state: &mut State) {
        state.held = if self.setting.clock.hold.is_some() && self.is_held(state) { state.held + 1 } else { 0 };
        state.now += 1;
    }

    /// All that has happened on the chain becomes final.
    pub(crate) fn finalize(state: &mut State) {
        state.final_events = state.events().count() as u8;
        state.final_time = state.now;
    }

    /// W.
    pub(crate) fn window(&self) -> u8 {
        self.setting.clock.window - u8::from(!self.rules.keep(Rule::WindowLength))
    }

    /// Whether an authority's view of the chain is older than L: it has not read the request, which is that old, or the
    /// installation after which retired keys are stolen. L is shorter than the time that they are guarded.
    pub(crate) fn is_stale(&self, state: &State, who: usize) -> bool {
        let is_retired =
            |epoch: usize| self.is_stolen(state, epoch) && epoch + 1 >= state.authorities[who].epoch.into();
        if (0..EPOCHS).any(is_retired) {
            return true;
        }
        let is_old = state.has(Event::Requested) && state.now >= self.setting.clock.lag;
        is_old && !state.first_events(state.authorities[who].read).any(|event| event == Event::Requested)
    }

    /// Whether chain time is at least t_f + W.
    pub(crate) fn has_waited(&self, state: &State, who: usize) -> bool {
        let ripe = state.authorities[who].read_at + self.window();
        state.final_time >= ripe.min(self.setting.clock.horizon())
    }
}
