//! A checked plan made ready to run: addresses resolved, requests written, expectations compiled.
//! Shared by all threads and never changed while the load runs.

mod http2;
mod quota;
mod servers;
mod shape;
mod step;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use rand::SeedableRng;
use rand::rngs::SmallRng;

use crate::check::{PlanError, ms_to_ns, refuse};
use crate::fault::Faults;
use crate::http::expect::Expectation;
use crate::log::Log;
use crate::net::address::Address;
use crate::pace::ramp::Ramp;
use crate::pace::share::{Part, Share};
use crate::pace::think::ThinkTime;
use crate::plan::{Close, Plan, RatesPlan, Reuse, SlowestPlan};
use crate::population::Populations;
use crate::report::Responses;
use crate::scenario::capture::Look;
use crate::scenario::compile::{Scenarios, Server};
use crate::scenario::request::RenderContext;
use crate::scenario::vars::Vars;
use crate::script::{Language, Script};
use crate::sources;
use crate::target::{MAX_ADDRESSES, ResolvedTarget};
use crate::tls::config::ClientTls;

pub use http2::Http2Job;
pub use quota::Quota;
pub use servers::ServerJob;
pub use shape::OpenJob;
pub use step::{StepJob, WRITTEN_ANEW};

/// A plan that is ready to run.
#[derive(Debug)]
pub struct Job {
    /// Of all servers, one after the other.
    pub addresses: Arc<[Address]>,
    /// Addresses of their names that were left out: nobody answered on their family.
    pub unanswered: Vec<Address>,
    /// The target, and the plan's other servers.
    pub servers: Vec<ServerJob>,
    pub sources: Arc<[Address]>,
    /// How TLS is spoken; without it requests go out in plain.
    pub tls: Option<Arc<ClientTls>>,
    /// How users share connections of HTTP/2; `None`: another version is spoken.
    pub http2: Option<Http2Job>,
    pub fixed: Arc<[Vec<u8>]>,
    pub steps: Vec<StepJob>,
    pub scenarios: Scenarios,
    pub populations: Populations,
    /// This engine's of everything that is counted: users, arrivals, numbers of a sequence.
    pub part: Part,
    /// Places for users, of all engines: in a closed load all of them are taken.
    pub users: u32,
    /// With the end of the run, before which it lies.
    pub ramp_down: Ramp,
    pub open: Option<OpenJob>,
    /// Close a connection after so many requests.
    pub max_requests: u32,
    /// A user of an open load closes its connection when it leaves.
    pub per_session: bool,
    /// So many requests go out together.
    pub pipeline: u32,
    pub close: Close,
    pub connect_timeout_ns: u64,
    pub tls_timeout_ns: u64,
    pub request_timeout_ns: u64,
    pub max_head_bytes: usize,
    /// What the unfinished responses of one thread may take together.
    pub partial_response_bytes: u64,
    /// Bodies are files.
    pub reads_files: bool,
    /// Whether the time of each request is taken apart.
    pub parts: bool,
    /// Which of the slowest requests are listed.
    pub slowest: Option<SlowestPlan>,
    /// Whether the kernel is asked when it took in what is read.
    pub receive_stamps: bool,
    /// One row per request, where it is asked for.
    pub log: Option<Log>,
    /// The first responses, where they are asked for.
    pub responses: Option<Responses>,
    pub interval_ns: u64,
    pub after_ns: Option<u64>,
    /// Rising.
    pub marks: Vec<u64>,
    pub seed: u64,
    /// Faults that the client carries on request.
    pub faults: Faults,
    /// What says what is sent, in place of the plan's step; its threads are the steps.
    pub script: Option<Script>,
    /// One that stands beside the scenarios, whose blocks call it.
    pub called_script: Option<Script>,
    /// By thread of the script, where it says where its connections go.
    pub script_addresses: Vec<usize>,
    pub rates: Option<RatesPlan>,
    pub quota: Quota,
    /// Completed requests of all threads, counted only until the last mark.
    pub completed: AtomicU64,
}

impl Job {
    pub fn new(plan: &Plan, threads: usize, language: &Language) -> Result<Self, PlanError> {
        let mut target = ResolvedTarget::resolve(plan)?;
        let others = ResolvedTarget::resolve_others(plan)?;
        let faults = Faults::new(&plan.injected_faults);
        let populations = Populations::new(plan);
        let (script, called_script) = load_script(plan, &target, threads, language)?;
        let script_addresses = script_addresses(script.as_ref(), &mut target)?;
        let tls = servers::tls(plan, &target, &others)?;
        let per_thread = script
            .as_ref()
            .map(|script| one_step_per_thread(plan, script));
        let plan = per_thread.as_ref().unwrap_or(plan);
        let all = std::iter::once(&target).chain(&others);
        let unanswered = all.flat_map(|one| one.unanswered.clone()).collect();
        let (servers, addresses) = servers::together(target, others)?;
        let hosts: Vec<Server<'_>> = servers.iter().map(ServerJob::written).collect();
        let scenarios = Scenarios::compile(plan, &hosts)?;
        let reads_files = scenarios.steps.iter().any(|step| step.request.has_file());
        let shows = script.as_ref().is_some_and(|script| script.looks);
        let mut fixed = Vec::new();
        let mut steps = Vec::new();
        let all = plan.scenarios.iter().flat_map(|scenario| {
            let think = plan.think_of(&scenario.name).unwrap_or(*plan.load.think());
            let steps = scenario.requests().into_iter();
            steps.map(move |step| (step, step.think.unwrap_or(think)))
        });
        for (place, ((step, think), compiled)) in all.zip(&scenarios.steps).enumerate() {
            let said = script.as_ref().and_then(|script| script.fixed(place));
            let (staying, closing) = if let Some((bytes, _)) = said {
                fixed.push(bytes.clone());
                let index = fixed.len() as u32 - 1;
                (index, index)
            } else if script.is_some() {
                (WRITTEN_ANEW, WRITTEN_ANEW)
            } else if compiled.request.is_fixed() && step.follow_redirects == 0 {
                let index = fixed.len() as u32;
                for last in [false, true] {
                    let mut context = RenderContext {
                        shared: &scenarios.shared,
                        vars: &mut Vars::default(),
                        rng: &mut SmallRng::seed_from_u64(plan.seed),
                    };
                    let written = compiled.request.write(last, &mut context, Vec::new());
                    fixed.push(written.into_spare());
                }
                (index, index + 1)
            } else {
                (WRITTEN_ANEW, WRITTEN_ANEW)
            };
            let follows = step.follow_redirects > 0;
            let looks = compiled.look.is_some() || shows || follows || plan.responses;
            steps.push(StepJob {
                staying,
                closing,
                target: step.target,
                head_request: said.map_or(step.method == "HEAD", |said| said.1[0].head),
                expectation: Expectation::new(&step.expect),
                judges: looks || step.expect.max_ms.is_some(),
                captures: scenarios.depends_on(compiled),
                alone: compiled.request.expects_continue() || compiled.request.has_file(),
                ends_group: follows || !step.end_on.is_empty() || step.think.is_some(),
                max_redirects: step.follow_redirects,
                keeps_method: step.redirects_keep_method,
                end_on: step.end_on.clone(),
                ends_run_on_error: step.ends_run_on_error,
                max_ns: step.expect.max_ms.map(ms_to_ns),
                looks,
                looks_at_body: compiled.look.as_ref().is_some_and(Look::needs_body)
                    || shows
                    || plan.responses,
                think: ThinkTime::new(&think),
            });
        }
        let sent = |step: &StepJob| fixed.get(step.staying as usize).map(Vec::as_slice);
        let log = Log::create(plan, &steps.iter().map(sent).collect::<Vec<_>>())?;
        let part = Part::of(plan);
        let mut marks = plan.marks.clone();
        for mark in &mut marks {
            *mark = part.count(*mark).max(1);
        }
        marks.sort_unstable();
        marks.dedup();
        Ok(Self {
            sources: Arc::from(sources::resolve(&plan.target.source_addresses, &addresses)?),
            addresses,
            unanswered,
            servers,
            tls,
            http2: Http2Job::new(plan),
            fixed: Arc::from(fixed),
            steps,
            scenarios,
            users: populations.users(),
            populations,
            ramp_down: shape::ramp_down(&plan.load),
            per_session: plan.connection.reuse == Reuse::PerSession,
            max_requests: match plan.connection.reuse {
                Reuse::KeepAlive | Reuse::PerSession => {
                    plan.connection.max_requests.unwrap_or(u32::MAX)
                }
                Reuse::PerRequest => 1,
            },
            pipeline: plan.connection.pipeline,
            close: plan.connection.close,
            connect_timeout_ns: ms_to_ns(plan.timeouts.connect_ms),
            tls_timeout_ns: ms_to_ns(plan.timeouts.tls_ms.unwrap_or(plan.timeouts.connect_ms)),
            request_timeout_ns: ms_to_ns(plan.timeouts.request_ms),
            parts: plan.parts,
            slowest: plan.slowest,
            receive_stamps: plan.receive_stamps,
            log,
            responses: plan.responses.then(Responses::default),
            max_head_bytes: plan.limits.header_bytes as usize,
            partial_response_bytes: plan.limits.partial_response_bytes,
            reads_files,
            interval_ns: ms_to_ns(plan.interval_ms),
            after_ns: plan.stop.after_ms.map(ms_to_ns),
            open: OpenJob::new(&plan.load, faults),
            script,
            called_script,
            script_addresses,
            rates: plan.rates,
            marks,
            seed: plan.seed,
            faults,
            quota: Quota::new(
                plan.stop.total_requests.map(|total| part.count(total)),
                threads as u64,
            ),
            part,
            completed: AtomicU64::new(0),
        })
    }

    /// Whether TLS is spoken with the server at this address.
    #[inline]
    pub fn is_secure(&self, address: u16) -> bool {
        let Some(tls) = &self.tls else { return false };
        tls.name(usize::from(address)).is_some()
    }

    /// So many connections to a server a user may have at once.
    fn width(&self) -> usize {
        let program = self.scenarios.program.as_ref();
        program.map_or(1, |program| program.width() as usize)
    }

    /// Places of so many users and their lanes.
    pub fn places(&self, users: usize) -> usize {
        users * self.width()
    }

    /// Connections that so many users may have at once, to all servers together.
    pub fn connections(&self, users: usize) -> usize {
        self.places(users) * self.servers.len()
    }

    /// Whether several requests of a user may be under way on a connection.
    pub fn queues_requests(&self) -> bool {
        let script = self.script.as_ref();
        self.pipeline > 1 || script.is_some_and(Script::sends_several)
    }

    /// The script of the run, whatever its part.
    pub fn any_script(&self) -> Option<&Script> {
        self.script.as_ref().or(self.called_script.as_ref())
    }

    /// The thread of the script (0 without one) that this user of a measuring thread belongs to.
    pub fn script_thread(&self, index: usize, place: &Share) -> u16 {
        let Some(script) = &self.script else {
            return 0;
        };
        let here = place.of(script.threads() as u32);
        place.number((index % here) as u64) as u16
    }

    /// What one of so many threads has of everything.
    pub fn share(&self, thread: usize, threads: usize) -> Share {
        Share {
            thread,
            threads,
            part: self.part.clone(),
        }
    }
}

/// A script that writes the requests, or one that blocks call.
fn load_script(
    plan: &Plan,
    target: &ResolvedTarget,
    threads: usize,
    language: &Language,
) -> Result<(Option<Script>, Option<Script>), PlanError> {
    let Some(script) = &plan.script else {
        return Ok((None, None));
    };
    let tasks = plan.tasks();
    if !tasks.is_empty() {
        return Script::beside(script, &tasks, threads, language)
            .map(|script| (None, Some(script)));
    }
    let [scenario] = &plan.scenarios[..] else {
        return Ok((None, None));
    };
    let written = Script::load(script, scenario.requests()[0], target, threads, language)?;
    Ok((Some(written), None))
}

/// Where each thread of the script connects to, once the script has said it for any.
fn script_addresses(
    script: Option<&Script>,
    target: &mut ResolvedTarget,
) -> Result<Vec<usize>, PlanError> {
    let said: Vec<Option<Address>> = script.map_or_else(Vec::new, |script| {
        (0..script.threads())
            .map(|thread| script.address(thread).map(Address::new))
            .collect()
    });
    if said.iter().all(Option::is_none) {
        return Ok(Vec::new());
    }
    let usual = target.addresses[0].clone();
    let mut all: Vec<Address> = Vec::new();
    let places = said.into_iter().map(|address| {
        let address = address.unwrap_or_else(|| usual.clone());
        let known = all.iter().position(|known| *known == address);
        known.unwrap_or_else(|| {
            all.push(address);
            all.len() - 1
        })
    });
    let places = places.collect();
    refuse_if! {
        all.len() > MAX_ADDRESSES =>
            "the script connects to {} addresses, expected at most {MAX_ADDRESSES}", all.len();
    }
    target.addresses = all;
    Ok(places)
}

/// The same plan with the step once per thread of the script; their figures are one row.
fn one_step_per_thread(plan: &Plan, script: &Script) -> Plan {
    let mut plan = plan.clone();
    let step = plan.scenarios[0].steps[0].clone();
    plan.scenarios[0].steps = vec![step; script.threads()];
    plan
}
