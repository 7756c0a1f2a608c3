//! Figures per address of the target, kept only where there are several. Plain counters.

sums! {
    /// What went to one address.
    #[derive(Copy)]
    AddressFigures {
        connect_attempts: u64,
        connections_opened: u64,
        sent: u64,
    }
}
