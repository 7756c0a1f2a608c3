//! A driver whose thread carries the injected faults of [`Config::faults`]. It only hands calls on;
//! the thread asks [`Driver::faults`], which every other driver answers with a constant, so that a
//! run without faults pays nothing.

use std::io;

use super::sys::Waker;
use super::{Config, ConnId, Driver, NetEvent, Payload, Received};
use crate::fault::Faults;

/// The driver `D`, with faults.
pub struct Faulty<D> {
    driver: D,
    faults: Faults,
}

impl<D: Driver> Driver for Faulty<D> {
    const NAME: &'static str = D::NAME;
    const SEND_GROUP: usize = D::SEND_GROUP;
    const STAMPS_EACH_READ: bool = D::STAMPS_EACH_READ;
    const SECURES: bool = D::SECURES;

    fn new(config: Config) -> io::Result<Self> {
        let faults = config.faults;
        D::new(config).map(|driver| Self { driver, faults })
    }

    fn faults(&self) -> Faults {
        self.faults
    }

    fn connect(&mut self, conn: ConnId, address: usize) {
        self.driver.connect(conn, address);
    }

    fn send(&mut self, conn: ConnId, payload: Payload) {
        self.driver.send(conn, payload);
    }

    fn spare(&mut self) -> Vec<u8> {
        self.driver.spare()
    }

    fn flush(&mut self) -> io::Result<()> {
        self.driver.flush()
    }

    fn is_sending(&self, conn: ConnId) -> bool {
        self.driver.is_sending(conn)
    }

    fn accepted_ns(&self, conn: ConnId) -> Option<u64> {
        self.driver.accepted_ns(conn)
    }

    fn take_put_off(&mut self) -> u64 {
        self.driver.take_put_off()
    }

    fn close(&mut self, conn: ConnId) {
        self.driver.close(conn);
    }

    fn forget_client(&mut self, conn: ConnId) {
        self.driver.forget_client(conn);
    }

    fn send_last(&mut self, conn: ConnId, payload: Payload) {
        self.driver.send_last(conn, payload);
    }

    fn wait(&mut self, until_ns: Option<u64>) -> io::Result<()> {
        self.driver.wait(until_ns)
    }

    fn next(&mut self) -> Option<NetEvent> {
        self.driver.next()
    }

    fn bytes(&self, received: &Received) -> &[u8] {
        self.driver.bytes(received)
    }

    fn arrived_ns(&self, received: &Received) -> Option<u64> {
        self.driver.arrived_ns(received)
    }

    fn release(&mut self, received: Received) {
        self.driver.release(received);
    }

    fn waker(&self) -> Waker {
        self.driver.waker()
    }

    fn now_ns(&self) -> u64 {
        self.driver.now_ns()
    }
}
