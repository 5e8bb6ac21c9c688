//! A member that lacks what no log has any more gets a copy of what the leader has, and goes on
//! behind that.
//!
//! It lacks that if its directory is new and the set isn't, if its log of entries is damaged or has
//! lost what it had acknowledged, or if the leader has cut off what it needs next. Meanwhile it
//! shows nothing, and takes no part, but where its log is whole.
//!
//! 1. The leader takes an image of its visible state, and says behind which entry to go on: all up
//!    to there is in the image, and what it has beyond is passed over when it is applied.
//! 2. Chunks that the member lacks are brought. Chunks that came stay when that is cut short.
//! 3. A member that doesn't know all that it had acknowledged becomes another: it draws a new id.
//! 4. The copy is noted, and installed when the process has begun anew ([`Incoming::install`]).

use std::sync::Arc;
use std::time::Duration;

use frond_store::StoreError;
use frond_store::io::Machine;
use frond_vcs::remote::{DataImage, copy_image};

use super::follow::applied;
use crate::replica::identity::Identity;
use crate::replica::image::{Offer, RemoteImage};
use crate::replica::incoming::Incoming;
use crate::replica::{Replica, lock};
use crate::shared::Shared;

/// The wait after no member had an image.
const ASK_AGAIN: Duration = Duration::from_secs(1);
/// The time for its log lines to be written, before it ends.
const RESTART_WAIT: Duration = Duration::from_millis(100);

/// Says whether a member that got a copy goes on under the same id.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AfterCopy {
    /// It knows all that it has acknowledged, or has acknowledged nothing.
    Same,
    /// It doesn't.
    Another,
}

/// Returns the copy that a leader offers.
///
/// # Errors
/// Why it has none.
pub fn offer(replica: &Replica, server: &Shared) -> Result<Offer, String> {
    let (Some(running), true) = (replica.running(), replica.is_primary()) else {
        return Err("it doesn't lead".to_owned());
    };
    let log = replica.quorum_log.get().ok_or("the set hasn't begun")?;
    let image = DataImage::take(&server.frond).map_err(|error| error.to_string())?;
    // While the log isn't cut.
    let _cutting = lock(&replica.cutting);
    let (status, own) = (running.status(), replica.identity().id);
    let held = status.held.iter().find(|(id, _)| *id == own);
    let (_, held) = held.ok_or("it no longer leads")?;
    let readable = (*held).min(status.committed).max(log.before());
    let beginning = applied(&**log, readable, image.moment())
        .and_then(|before| log.behind(before))
        .map_err(|error| error.to_string())?;
    let incoming = Incoming { root: image.root(), beginning };
    Ok(Offer { image: Box::new(image), incoming })
}

/// Asks the others for a copy until this member has one; then its process begins anew. The leader
/// may be one of whom it hears now: where its directory was lost, it knows those with which the set
/// began.
pub fn copy_until_stopped(replica: &Arc<Replica>, server: &Shared, keep_going: AfterCopy) {
    replica.show_nothing(server);
    let mut reported: Option<String> = None;
    while !replica.is_stopped() {
        if let Err(error) = replica.call_others() {
            replica.log_line(&format!("not all members are called: {error}"));
        }
        for address in replica.called() {
            match copy_from(replica, server, &address, keep_going) {
                Ok(()) => return,
                Err(Failed::NoImage) => {}
                Err(Failed::Because(why)) if reported.as_ref() == Some(&why) => {}
                Err(Failed::Because(why)) => {
                    replica.log_line(&format!("no copy from {address}: {why}"));
                    reported = Some(why);
                }
            }
        }
        std::thread::sleep(ASK_AGAIN);
    }
}

enum Failed {
    /// It isn't there, or doesn't lead.
    NoImage,
    Because(String),
}

fn copy_from(
    replica: &Replica,
    server: &Shared,
    address: &str,
    keep_going: AfterCopy,
) -> Result<(), Failed> {
    let because = |error: &dyn std::fmt::Display| Failed::Because(error.to_string());
    let image = RemoteImage::ask(replica, address).map_err(|_| Failed::NoImage)?;
    replica.log_line(&format!("it gets a copy of what {address} has"));
    let copied = copy_image(&server.frond, &image, &mut |_| {}).map_err(|error| because(&error))?;
    let machine: &Machine = replica.machine.get().expect("it was opened");
    if let Some(running) = replica.running() {
        // From here on its log stays as it is.
        running.stop();
    }
    let (chunks, bytes) = (copied.moved.chunks, copied.moved.bytes);
    let before = image.incoming.beginning.before.0;
    match note(replica, machine, &image.incoming, keep_going) {
        Ok(()) => replica.log_line(&format!(
            "{chunks} chunks of {bytes} bytes came from {address}; it continues after entry \
             {before}"
        )),
        Err(error) => replica.log_line(&format!("the copy from {address} can't be noted: {error}")),
    }
    replica.begin_anew(RESTART_WAIT);
    Ok(())
}

fn note(
    replica: &Replica,
    machine: &Machine,
    incoming: &Incoming,
    keep_going: AfterCopy,
) -> Result<(), StoreError> {
    if keep_going == AfterCopy::Another {
        let identity = replica.identity();
        let drawn = Identity::draw(machine, &identity.set, &identity.address);
        Identity { members: identity.members, ..drawn }.write(machine)?;
    }
    incoming.write(machine)
}

/// Has the stream of a member that asks for an image get one.
pub fn offer_to_others(replica: &Arc<Replica>, server: &Arc<Shared>) {
    let (of, from) = (Arc::downgrade(replica), Arc::downgrade(server));
    let _ = replica.offers.set(Box::new(move || match (of.upgrade(), from.upgrade()) {
        (Some(replica), Some(server)) => offer(&replica, &server),
        _ => Err("it stops".to_owned()),
    }));
}
