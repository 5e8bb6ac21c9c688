//! The monthly cost of a bucket, by the requests that a server counted since it started.
//!
//! The prices are those of S3 Standard (us-east-1, from a machine in the same region: reads cost
//! their request alone); other prices are set by `--store-prices`. Lists cost what puts do, deletes
//! nothing.

use std::str::FromStr;

use frond_doc::{Document, Value};

use super::Report;
use crate::failure::Failure;

const MONTH_SECONDS: f64 = 30.0 * 24.0 * 3600.0;
const MILLION: f64 = 1e6;
const GIGABYTE: f64 = 1e9;

/// The prices, in dollars.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Prices {
    /// A million objects put, or lists.
    put: f64,
    /// A million objects or parts read.
    get: f64,
    /// A gigabyte stored for a month.
    gigabyte: f64,
    /// A gigabyte read, beside its requests.
    out: f64,
}

impl Default for Prices {
    fn default() -> Self {
        Prices { put: 5.0, get: 0.4, gigabyte: 0.023, out: 0.0 }
    }
}

impl FromStr for Prices {
    type Err = String;

    fn from_str(text: &str) -> Result<Prices, String> {
        let mut prices = Prices::default();
        for part in text.split(',').filter(|part| !part.is_empty()) {
            let (name, price) =
                part.split_once('=').ok_or_else(|| format!("{part}: NAME=DOLLARS"))?;
            let price = price.parse::<f64>().ok().filter(|it| (0.0..1e9).contains(it));
            let price = price.ok_or_else(|| format!("{part}: not a number of dollars"))?;
            match name {
                "put" => prices.put = price,
                "get" => prices.get = price,
                "gigabyte" => prices.gigabyte = price,
                "out" => prices.out = price,
                _ => return Err(format!("{name}: there are put, get, gigabyte and out")),
            }
        }
        Ok(prices)
    }
}

/// How a month is reckoned.
#[derive(clap::Args)]
pub struct Plan {
    /// With --uri of a server that has a --store: prices of its bucket, in dollars for a million
    /// requests, for a gigabyte a month and for a gigabyte read
    #[arg(long, value_name = "PRICES", default_value = "put=5,get=0.4,gigabyte=0.023,out=0")]
    store_prices: Prices,

    /// Estimate for this many times as many writes and reads
    #[arg(long, value_name = "NUMBER", default_value = "1", requires = "uri")]
    store_times: f64,

    /// Estimate for this many gigabytes in the bucket
    #[arg(long, value_name = "NUMBER", requires = "uri")]
    store_gigabytes: Option<f64>,
}

/// The requests that a server made to its bucket.
#[derive(Clone, Copy, Debug, Default)]
struct BucketUsage {
    puts: f64,
    gets: f64,
    bytes_got: f64,
    bytes_stored: f64,
    seconds: f64,
}

/// Dollars a month.
#[derive(Clone, Copy, Debug)]
struct Month {
    puts: f64,
    gets: f64,
    request_dollars: f64,
    storage_dollars: f64,
}

impl Plan {
    fn month(&self, usage: &BucketUsage) -> Month {
        let prices = &self.store_prices;
        let times = self.store_times * MONTH_SECONDS / usage.seconds.max(1.0);
        let gigabytes = self.store_gigabytes.unwrap_or(usage.bytes_stored / GIGABYTE);
        let (puts, gets) = (usage.puts * times, usage.gets * times);
        let out = usage.bytes_got * times / GIGABYTE * prices.out;
        let request_dollars = (puts * prices.put + gets * prices.get) / MILLION + out;
        Month { puts, gets, request_dollars, storage_dollars: gigabytes * prices.gigabyte }
    }
}

impl Report<'_> {
    /// Prints what the bucket of a server costs, by its `serverStatus.frond.store`; nothing where
    /// it has none.
    ///
    /// # Errors
    /// [`Failure::ReaderGone`] if nothing reads the output.
    pub fn price(&mut self, store: Document<'_>, seconds: u64, plan: &Plan) -> Result<(), Failure> {
        let Some(Value::Document(requests)) = store.get("requests") else { return Ok(()) };
        let number = |document: Document<'_>, name: &str| {
            document.get(name).and_then(|value| value.as_integer()).unwrap_or(0) as f64
        };
        let usage = BucketUsage {
            puts: number(requests, "put") + number(requests, "list"),
            gets: number(requests, "get"),
            bytes_got: number(requests, "bytesGot"),
            bytes_stored: number(store, "bytesStored"),
            seconds: seconds as f64,
        };
        let Month { puts, gets, request_dollars, storage_dollars } = plan.month(&usage);
        self.finding(
            "store",
            &format!(
                "${:.2} a month at the rate of the last {seconds} s: ${request_dollars:.2} for {puts:.0} PUT and \
                 {gets:.0} GET, ${storage_dollars:.2} for what lies there",
                request_dollars + storage_dollars
            ),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: f64 = 24.0 * 3600.0;

    fn plan(store_times: f64, store_gigabytes: Option<f64>) -> Plan {
        Plan { store_prices: Prices::default(), store_times, store_gigabytes }
    }

    #[test]
    fn a_month_is_reckoned_from_what_was_counted() {
        let usage = BucketUsage {
            puts: 2_880.0,
            gets: 100_000.0,
            bytes_stored: 5e9,
            seconds: DAY,
            ..BucketUsage::default()
        };
        let month = plan(1.0, None).month(&usage);
        assert!((month.puts - 86_400.0).abs() < 1e-6);
        assert!((month.request_dollars - (0.432 + 1.2)).abs() < 1e-9, "{month:?}");
        assert!((month.storage_dollars - 0.115).abs() < 1e-9, "{month:?}");
        let more = plan(10.0, Some(100_000.0)).month(&usage);
        assert!(
            (more.request_dollars - 16.32).abs() < 1e-9
                && (more.storage_dollars - 2_300.0).abs() < 1e-9
        );
    }

    /// An idle server asks nothing but at its start, once a day say.
    #[test]
    fn an_idle_month_costs_less_than_a_dollar() {
        let usage = BucketUsage {
            puts: 2.0,
            gets: 3.0,
            bytes_stored: 1e9,
            seconds: DAY,
            ..BucketUsage::default()
        };
        let month = plan(1.0, None).month(&usage);
        assert!(month.request_dollars + month.storage_dollars < 1.0, "{month:?}");
    }

    #[test]
    fn prices_are_read_by_name() {
        let prices: Prices = "put=4.5,out=0.09".parse().expect("right");
        assert_eq!(prices, Prices { put: 4.5, out: 0.09, ..Prices::default() });
        for wrong in ["put", "put=", "put=-1", "post=1", "get=NaN"] {
            assert!(wrong.parse::<Prices>().is_err(), "{wrong}");
        }
    }
}
