//! Figures per address of the target, kept only where there are several. Plain counters.

/// What went to one address.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AddressFigures {
    pub connect_attempts: u64,
    pub connections_opened: u64,
    pub sent: u64,
}

/// Adds figures up, address by address.
pub fn add_all(sum: &mut Vec<AddressFigures>, more: &[AddressFigures]) {
    if sum.len() < more.len() {
        sum.resize(more.len(), AddressFigures::default());
    }
    for (mine, theirs) in sum.iter_mut().zip(more) {
        mine.connect_attempts += theirs.connect_attempts;
        mine.connections_opened += theirs.connections_opened;
        mine.sent += theirs.sent;
    }
}
