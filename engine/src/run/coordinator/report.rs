//! The end of a run: why it ended, and its report.

use super::Coordinator;
use crate::report::{Event, Finished, Reason, Responses, ScriptReport};
use crate::run::window::Names;
use crate::script::Script;
use crate::units::{ms, seconds};

impl Coordinator<'_> {
    /// When every thread has handed over its last segment.
    pub(super) fn report(self) {
        // Without an order the threads stop for one reason only: their own deadline.
        let deadline_ns = self
            .prepared
            .job
            .after_ns
            .map_or(u64::MAX, |after| self.started_ns + after);
        let (reason, stopped_ns) = match self.ending {
            Some((reason, at_ns)) if at_ns < deadline_ns => (reason, at_ns),
            _ => (Reason::Duration, deadline_ns),
        };
        let in_order = !matches!(reason, Reason::Signal | Reason::StdinClosed);
        let names = Names {
            steps: &self.prepared.job.scenarios.figures,
            addresses: &self.prepared.job.addresses,
        };
        let elapsed_ns = stopped_ns.saturating_sub(self.started_ns);
        let rates = self.collector.rates();
        let script = self.prepared.job.any_script().map(|script| {
            script.done(self.collector.summary(elapsed_ns));
            ScriptReport::new(script, script.figures(), script.printed())
        });
        let (totals, window) = self
            .collector
            .finish(stopped_ns, in_order, &self.threads, &names);
        // Every thread has handed over its rows before its last segment.
        let log = match (&self.prepared.job.log, self.log) {
            (Some(log), Some(writer)) => {
                log.end();
                writer.join().ok()
            }
            _ => None,
        };
        self.output.write(&Event::Finished(Box::new(Finished {
            reason,
            elapsed_ms: ms(elapsed_ns),
            totals,
            window,
            log,
            reader_cpu_s: self
                .load_threads
                .read_ahead
                .cpu_ns()
                .map(|ns| seconds(ns.into())),
            rates: self.prepared.job.rates.map(|_| rates.into_iter().collect()),
            script,
            values: self.prepared.job.scenarios.reported.values(),
            responses: self.prepared.job.responses.as_ref().map(Responses::all),
            injected_faults: self.injected_faults,
        })));
    }

    /// Why threads end that no command ended.
    pub(super) fn own_reason(&self) -> Reason {
        let script = self.prepared.job.any_script();
        if script.is_some_and(|script| script.error().is_some()) {
            Reason::Script
        } else if script.is_some_and(Script::stopped_itself) {
            Reason::Stopped
        } else if self.prepared.job.quota.is_used_up() {
            Reason::TotalRequests
        } else if self.prepared.job.open.is_some() {
            Reason::Schedule
        } else {
            Reason::Iterations
        }
    }
}
