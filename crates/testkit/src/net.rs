//! A network in memory that loses, doubles, delays and reorders, and that can be cut one way.
//!
//! Time is a number that the test moves. One seed decides everything.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};
use std::ops::Range;

use bytes::Bytes;

use crate::random::Random;

/// The quality of a network.
#[derive(Clone, Debug)]
pub struct Quality {
    /// The time that a packet takes.
    pub delay: Range<u64>,
    /// One in so many packets takes ten times as long, and is overtaken.
    pub late_one_in: usize,
    /// One in so many packets is lost.
    pub lost_one_in: usize,
    /// One in so many packets comes twice.
    pub doubled_one_in: usize,
}

/// Bytes on their way from one place to another.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Packet {
    /// The sender.
    pub from: u64,
    /// The recipient.
    pub to: u64,
    /// The content.
    pub bytes: Bytes,
}

/// See the module.
pub struct SimNet {
    random: Random,
    quality: Quality,
    /// The packets by arrival; those of one moment in the order of their sending.
    under_way: BinaryHeap<Reverse<(u64, u64, Packet)>>,
    sent: u64,
    cuts: BTreeSet<(u64, u64)>,
}

impl SimNet {
    /// A network without cuts.
    pub fn new(seed: u64, quality: Quality) -> SimNet {
        let (under_way, cuts) = (BinaryHeap::new(), BTreeSet::new());
        SimNet { random: Random::new(seed), quality, under_way, sent: 0, cuts }
    }

    /// Sends a packet at `now`.
    pub fn send(&mut self, now: u64, packet: Packet) {
        if self.random.one_in(self.quality.doubled_one_in) {
            self.carry(now, packet.clone());
        }
        if !self.random.one_in(self.quality.lost_one_in) {
            self.carry(now, packet);
        }
    }

    fn carry(&mut self, now: u64, packet: Packet) {
        let span = (self.quality.delay.end - self.quality.delay.start) as usize;
        let mut delay = self.quality.delay.start + self.random.below(span) as u64;
        if self.random.one_in(self.quality.late_one_in) {
            delay *= 10;
        }
        self.sent += 1;
        self.under_way.push(Reverse((now + delay, self.sent, packet)));
    }

    /// The next packet that has arrived by `now`. Packets across a cut are lost on arrival.
    pub fn receive(&mut self, now: u64) -> Option<Packet> {
        while self.under_way.peek().is_some_and(|Reverse((at, _, _))| *at <= now) {
            let Reverse((_, _, packet)) = self.under_way.pop().expect("one was seen");
            if !self.cuts.contains(&(packet.from, packet.to)) {
                return Some(packet);
            }
        }
        None
    }

    /// Cuts the way to `to` from `from`; the other way is as before.
    pub fn cut(&mut self, from: u64, to: u64) {
        self.cuts.insert((from, to));
    }

    /// Ends all cuts.
    pub fn heal(&mut self) {
        self.cuts.clear();
    }

    /// Another quality from now on; what is under way isn't changed.
    pub fn set_quality(&mut self, quality: Quality) {
        self.quality = quality;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POOR: Quality =
        Quality { delay: 1..20, late_one_in: 10, lost_one_in: 5, doubled_one_in: 7 };

    fn packet(number: u64) -> Packet {
        Packet { from: number % 2, to: 2, bytes: Bytes::from(number.to_string()) }
    }

    fn arrived(seed: u64, cut: bool) -> Vec<(u64, Packet)> {
        let mut net = SimNet::new(seed, POOR);
        if cut {
            net.cut(1, 2);
            net.cut(2, 0);
        }
        let mut arrived = Vec::new();
        for now in 0..1_000 {
            if now < 500 {
                net.send(now, packet(now));
            }
            while let Some(packet) = net.receive(now) {
                arrived.push((now, packet));
            }
        }
        arrived
    }

    #[test]
    fn a_seed_repeats_what_is_lost_doubled_and_late() {
        let first = arrived(1, false);
        assert_eq!(first, arrived(1, false));
        assert_ne!(first, arrived(2, false));
        let count = |number| first.iter().filter(|(_, found)| *found == packet(number)).count();
        let counts: Vec<usize> = (0..500).map(count).collect();
        assert!((0..=2).all(|times| counts.contains(&times)));
        let order: Vec<usize> = first.iter().map(|(_, p)| p.bytes.len()).collect();
        assert!(!order.is_sorted());
    }

    #[test]
    fn a_cut_is_one_way() {
        let first = arrived(1, true);
        assert!(!first.is_empty());
        assert!(first.iter().all(|(_, packet)| packet.from == 0));
    }
}
