//! The generator's own cost: both loops with clients that do nothing.

use std::time::Duration;

use crate::drive::{Client, Operation, Span, closed_loop, open_loop};
use crate::random::Random;
use crate::results::GeneratorCost;
use crate::scale::Scale;
use crate::target::Failure;

const CONNECTIONS: usize = 500;
const RATE: f64 = 2_000.0;

struct Nothing;

impl Client for Nothing {
    fn operate(&mut self, _: &mut Random) -> Result<Operation, Failure> {
        Ok("nothing")
    }
}

/// Measures both.
pub fn cost(scale: Scale) -> Result<GeneratorCost, Failure> {
    let span = Span {
        warm_up: Duration::from_millis(100),
        measured: scale.millis(200, 1_000, 3_000),
        seed: 1,
    };
    let closed = closed_loop(&mut [Box::new(Nothing)], span)?;
    let clients = (0..CONNECTIONS).map(|_| Box::new(Nothing) as Box<dyn Client>);
    let mut clients: Vec<_> = clients.collect();
    let open = open_loop(&mut clients, RATE, span)?.all_latencies();
    Ok(GeneratorCost {
        closed_nanos: 1e9 / closed.rate(),
        open_micros: [0.5, 0.95, 0.999].map(|at| open.value_at_quantile(at) as f64),
    })
}
