//! TPC-C's five transactions in their mix, as documents with transactions and as rows in SQL.
//!
//! After the specification, revision 5.11, and Dolt's comparison with MySQL. Differences from the
//! specification: clients don't think or key (they ask as fast as they are answered), and below
//! `full` each warehouse's items, customers and orders are divided by a number that stands in the
//! rows' parameters. So a figure here is no tpmC that can be compared with audited ones; it is so
//! called because it counts the same.
//!
//! - **Documents** ([`documents`]): an order embeds its lines. On targets that aren't SQL.
//! - **Rows** ([`rows`]): the specification's tables. On targets that speak SQL.
//!
//! A transaction that lost to another is rolled back and runs again, within its latency; how often
//! that was is `abort_rate`. After each number of clients the consistency conditions 1 to 4 (3.3.2
//! of the specification) are checked on the whole database; a violation disqualifies the target.

mod check;
mod client;
mod documents;
mod input;
mod rows;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::drive::{Client, Span, closed_loop};
use crate::results::{Better, Case};
use crate::target::{Capabilities, Failure, Session};
use crate::workload::{Context, Original, Workload};

use self::client::{Counts, TpccClient};
use self::documents::Documents;
use self::input::{Input, Sizes};
use self::rows::Rows;

/// The workload.
pub struct Tpcc;

/// The form in which the transactions are written.
pub trait Form: Send + Sync {
    /// `documents` or `rows`.
    fn name(&self) -> &'static str;

    /// Makes everything, full.
    fn load(&self, session: &mut dyn Session, context: &Context<'_>) -> Result<(), Failure>;

    /// Runs one transaction to its end; whether it was committed (1 % of new orders roll back).
    fn run(&self, session: &mut dyn Session, input: &Input) -> Result<bool, Failure>;

    /// Returns the state that the consistency conditions speak of, for each district.
    fn state(&self, session: &mut dyn Session) -> Result<check::State, Failure>;
}

impl Workload for Tpcc {
    fn name(&self) -> &'static str {
        "tpcc"
    }

    fn title(&self) -> &'static str {
        "TPC-C's five transactions, as documents or as rows, consistency checked"
    }

    fn original(&self) -> Original {
        Original {
            source: "DoltHub: TPC-C on Dolt and MySQL",
            finding: "MySQL 71 times Dolt's transactions a second at first; about 2 times in 2024",
        }
    }

    fn refuses(&self, capabilities: &Capabilities) -> Option<&'static str> {
        (!capabilities.transactions).then_some("it has no transactions over several documents")
    }

    fn run(&self, context: &mut Context<'_>) -> Result<(), Failure> {
        let target = context.target()?;
        let warehouses = context.scale.pick(1, 2, 10);
        let sizes = Sizes {
            warehouses: context.parameters.number("tpcc.warehouses", warehouses)? as i64,
            divisor: context.scale.pick(100, 10, 1),
            seed: context.seed,
        };
        let form: Arc<dyn Form> = match target.about().capabilities.sql {
            true => Arc::new(Rows::new(sizes)),
            false => Arc::new(Documents::new(sizes, target)?),
        };
        let mut session = target.session()?;
        form.load(&mut *session, context)?;
        target.settle()?;
        check::check(&form.state(&mut *session)?)?;
        let own: &[u64] = context.scale.pick(&[1, 8], &[1, 8, 32, 128], &[1, 8, 32, 128]);
        for clients in context.parameters.numbers("tpcc.clients", own)? {
            measure(context, &form, sizes, clients)?;
            let checked = check::check(&form.state(&mut *session)?)?;
            context.recorder.checked(context.subject, checked);
        }
        Ok(())
    }
}

/// One number of clients.
fn measure(
    context: &mut Context<'_>,
    form: &Arc<dyn Form>,
    sizes: Sizes,
    count: u64,
) -> Result<(), Failure> {
    context.progress.say(&format!("{} clients, as {}", count, form.name()));
    let target = context.target()?;
    let seconds = context.parameters.number("tpcc.seconds", context.scale.pick(1, 3, 300))?;
    let span = Span {
        warm_up: context.scale.millis(200, 500, 30_000),
        measured: Duration::from_secs(seconds),
        seed: context.seed ^ count,
    };
    let counts = Arc::new(Counts::new(&span));
    let mut clients: Vec<Box<dyn Client>> = Vec::new();
    for position in 0..count {
        let session = target.session()?;
        let client = TpccClient::new(session, form.clone(), counts.clone(), sizes, position);
        clients.push(Box::new(client));
    }
    let case = Case::new()
        .with("warehouses", sizes.warehouses)
        .with("divisor", sizes.divisor)
        .with("clients", count)
        .with("loop", "closed");
    let measured = context.load(&case, &span, || closed_loop(&mut clients, span))?;
    let subject = context.subject;
    let recorder = &mut *context.recorder;
    let new_orders = measured.latencies.get("new order").map_or(0, |latencies| latencies.len());
    let rate = new_orders as f64 * 60.0 / measured.seconds;
    let headline = case.clone().headline();
    recorder.value(subject, &headline, "tpmC", ("new orders/min", Better::Higher), rate);
    let attempts = counts.attempts.load(Ordering::Relaxed).max(1) as f64;
    let conflicts = counts.conflicts.load(Ordering::Relaxed) as f64;
    let share = ("of attempts", Better::Lower);
    recorder.value(subject, &case, "abort_rate", share, conflicts / attempts);
    recorder.value(subject, &case, "retries", ("retries", Better::Neither), conflicts);
    Ok(())
}
