//! What fail_over.mjs does, with the Rust driver. It is built with docbench, which has the driver
//! already.

use std::collections::{HashMap, HashSet};
use std::error::Error;
use std::time::{Duration, Instant};

use bson::{Bson, Document, doc};
use futures_util::TryStreamExt;
use futures_util::future::join_all;
use mongodb::error::ErrorKind;
use mongodb::options::{
    ClientOptions, ReadConcern, ReadPreference, SelectionCriteria, WriteConcern,
};
use mongodb::{Client, Collection};

const LANES: i32 = 4;
const LIST_LENGTH: i32 = 32;
const ACCOUNTS: i32 = 4;
const MONEY: i32 = 100;
const DUPLICATE_KEY: &str = "E11000";

type Done<T = ()> = Result<T, Box<dyn Error + Send + Sync>>;

/// The outcomes that one client was given.
#[derive(Default)]
struct Outcomes {
    inserts: Vec<String>,
    appends: Vec<(String, i32)>,
    moves: usize,
    reads: usize,
    unknown: usize,
}

#[tokio::main]
async fn main() -> Done {
    let mut arguments = std::env::args().skip(1);
    let usage = "usage: fail-over URI SECONDS";
    let (uri, seconds) = (arguments.next().ok_or(usage)?, arguments.next().ok_or(usage)?);
    let mut options = ClientOptions::parse(uri).await?;
    options.connect_timeout = Some(Duration::from_secs(2));
    options.server_selection_timeout = Some(Duration::from_secs(120));
    options.write_concern = Some(WriteConcern::majority());
    let client = Client::with_options(options)?;
    let accounts = collection(&client, "accounts");
    accounts.insert_many((0..ACCOUNTS).map(|it| doc! { "_id": it, "money": MONEY })).await?;
    let end = Instant::now() + Duration::from_secs_f64(seconds.parse()?);
    let lanes = (0..LANES).map(|lane| run(client.clone(), lane, end));
    let all: Vec<Outcomes> = join_all(lanes).await.into_iter().collect::<Done<_>>()?;
    report(&client, &all).await
}

fn collection(client: &Client, name: &str) -> Collection<Document> {
    client.database("rust").collection(name)
}

async fn run(client: Client, lane: i32, end: Instant) -> Done<Outcomes> {
    let mut outcomes = Outcomes::default();
    let mut number = 0;
    while Instant::now() < end {
        if let Err(error) = step(&client, lane, number, &mut outcomes).await {
            let of_driver = error.downcast_ref::<mongodb::error::Error>();
            let is_wrong = of_driver.is_none_or(|it| match &*it.kind {
                ErrorKind::Write(failure) => format!("{failure:?}").contains(DUPLICATE_KEY),
                _ => false,
            });
            if is_wrong {
                return Err(error);
            }
            // What became of it isn't known.
            outcomes.unknown += 1;
        }
        number += 1;
    }
    Ok(outcomes)
}

async fn step(client: &Client, lane: i32, number: i32, outcomes: &mut Outcomes) -> Done {
    let id = format!("{lane}-{number}");
    collection(client, "documents").insert_one(doc! { "_id": &id }).await?;
    outcomes.inserts.push(id.clone());
    let list = format!("{lane}-{}", number / LIST_LENGTH);
    let push = doc! { "$push": { "numbers": number } };
    collection(client, "lists").update_one(doc! { "_id": &list }, push).upsert(true).await?;
    outcomes.appends.push((list, number));
    move_money(client, number % ACCOUNTS, (number + 1) % ACCOUNTS).await?;
    outcomes.moves += 1;
    read_own_write(client, &id, number).await?;
    outcomes.reads += 1;
    Ok(())
}

async fn move_money(client: &Client, from: i32, to: i32) -> Done {
    let accounts = collection(client, "accounts");
    let mut session = client.start_session().await?;
    let transaction = session
        .start_transaction()
        .read_concern(ReadConcern::snapshot())
        .write_concern(WriteConcern::majority());
    let moved = transaction.and_run2(async |inside| {
        for (account, amount) in [(from, -1), (to, 1)] {
            let add = doc! { "$inc": { "money": amount } };
            accounts.update_one(doc! { "_id": account }, add).session(&mut *inside).await?;
        }
        Ok(())
    });
    Ok(moved.await?)
}

async fn read_own_write(client: &Client, id: &str, number: i32) -> Done {
    let documents = collection(client, "documents");
    let mut session = client.start_session().causal_consistency(true).await?;
    let set = doc! { "$set": { "number": number } };
    documents.update_one(doc! { "_id": id }, set).session(&mut session).await?;
    let secondary = ReadPreference::SecondaryPreferred { options: Default::default() };
    let read = documents
        .find_one(doc! { "_id": id })
        .selection_criteria(SelectionCriteria::ReadPreference(secondary))
        .session(&mut session)
        .await?;
    match read.as_ref().and_then(|read| read.get("number")) {
        Some(Bson::Int32(found)) if *found == number => Ok(()),
        _ => Err(format!("its own write isn't read: {read:?}").into()),
    }
}

async fn report(client: &Client, all: &[Outcomes]) -> Done {
    let read = async |name| -> Done<Vec<Document>> {
        Ok(collection(client, name).find(doc! {}).await?.try_collect().await?)
    };
    let documents = read("documents").await?;
    let there: HashSet<&str> = documents.iter().filter_map(|it| it.get_str("_id").ok()).collect();
    let lists = read("lists").await?;
    let mut numbers: HashMap<(&str, i32), usize> = HashMap::new();
    for list in &lists {
        for number in list.get_array("numbers")?.iter().filter_map(Bson::as_i32) {
            *numbers.entry((list.get_str("_id")?, number)).or_default() += 1;
        }
    }
    let accounts = read("accounts").await?;
    let money: i32 = accounts.iter().filter_map(|it| it.get_i32("money").ok()).sum();
    let lost_inserts = all.iter().flat_map(|it| &it.inserts).filter(|id| !there.contains(&***id));
    let appends = all.iter().flat_map(|it| &it.appends);
    let lost_appends = appends.filter(|(list, it)| !numbers.contains_key(&(&**list, *it)));
    let lost = lost_inserts.count() + lost_appends.count();
    let twice = numbers.values().filter(|count| 1 < **count).count();
    let sum = |of: fn(&Outcomes) -> usize| all.iter().map(of).sum::<usize>();
    let (moves, reads) = (sum(|it| it.moves), sum(|it| it.reads));
    println!(
        "Rust's driver: {} inserts, {} appends, {moves} transactions, {reads} causal reads: {lost} \
         lost, {twice} twice, {money} of {} money; {} not known",
        sum(|it| it.inserts.len()),
        sum(|it| it.appends.len()),
        ACCOUNTS * MONEY,
        sum(|it| it.unknown),
    );
    match lost + twice == 0 && money == ACCOUNTS * MONEY && 0 < moves && 0 < reads {
        true => Ok(()),
        false => Err("something is lost, or there twice, or nothing was done".into()),
    }
}
