//! The usage of one collection.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::usage::class::{Class, Event};
use crate::usage::histogram::Latencies;

/// Time and number of commands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CommandTime {
    /// Microseconds.
    pub micros: u64,
    /// Commands.
    pub count: u64,
}

impl std::ops::AddAssign for CommandTime {
    fn add_assign(&mut self, other: CommandTime) {
        self.micros += other.micros;
        self.count += other.count;
    }
}

/// The usage of one collection.
#[derive(Default)]
pub struct NamespaceUsage {
    events: [Sum; Event::ALL.len()],
    /// The part of [`Event::Command`] that changes the collection.
    writing_commands: Sum,
    latencies: Latencies,
}

#[derive(Default)]
struct Sum {
    micros: AtomicU64,
    count: AtomicU64,
}

impl Sum {
    fn add(&self, micros: u64) {
        self.micros.fetch_add(micros, Ordering::Relaxed);
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    fn spent(&self) -> CommandTime {
        let micros = self.micros.load(Ordering::Relaxed);
        CommandTime { micros, count: self.count.load(Ordering::Relaxed) }
    }
}

impl NamespaceUsage {
    /// Counts a command.
    pub fn count(&self, class: Class, micros: u64) {
        self.events[class.event as usize].add(micros);
        if class.event == Event::Command && class.writes {
            self.writing_commands.add(micros);
        }
        self.latencies.count(class.latency, micros);
    }

    /// Returns the time that `top` shows for a kind of command.
    pub fn spent(&self, event: Event) -> CommandTime {
        self.events[event as usize].spent()
    }

    /// Returns the time of commands that change the collection.
    pub fn spent_writing(&self) -> CommandTime {
        let mut sum = self.writing_commands.spent();
        for event in [Event::Insert, Event::Update, Event::Remove] {
            sum += self.spent(event);
        }
        sum
    }

    /// Returns the time of all commands.
    pub fn spent_in_all(&self) -> CommandTime {
        let mut sum = CommandTime::default();
        for event in Event::ALL {
            sum += self.spent(event);
        }
        sum
    }

    /// Returns how long they took.
    pub fn latencies(&self) -> &Latencies {
        &self.latencies
    }
}
