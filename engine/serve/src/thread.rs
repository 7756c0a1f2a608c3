//! What the connections of a serving thread share.

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;
use std::sync::Arc;

use super::behaviour::Settings;
use super::counters::Counters;
use super::random::Random;
use super::routes::Routes;
use super::shared::Shared;
use super::template::Template;
use super::timers::Timers;

const READ_BYTES: usize = 64 * 1024;

#[derive(Debug)]
pub struct Thread {
    pub shared: Arc<Shared>,
    pub counters: Arc<Counters>,
    pub routes: RefCell<Routes>,
    pub random: RefCell<Random>,
    pub timers: Rc<Timers>,
    /// Connections so far.
    pub connections: Cell<u32>,
    /// What the bare loop answers, and where it reads.
    pub template: Template,
    pub buffer: RefCell<Vec<u8>>,
}

impl Thread {
    /// Of this number among the threads.
    pub fn new(shared: Arc<Shared>, number: usize) -> io::Result<Self> {
        let behaviour = &shared.behaviour;
        Ok(Self {
            counters: Arc::clone(&shared.counters[number]),
            routes: RefCell::new(Routes::new(behaviour.settings.clone())),
            random: RefCell::new(Random::new(behaviour.seed, number as u64)),
            timers: Rc::new(Timers::new(shared.clock)?),
            connections: Cell::new(0),
            template: Template::new(&match shared.bare {
                true => behaviour.settings.clone(),
                false => Settings::default(),
            }),
            buffer: RefCell::new(vec![0; READ_BYTES]),
            shared,
        })
    }
}
