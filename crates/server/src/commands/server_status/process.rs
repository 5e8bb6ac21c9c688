//! Sections about the process, as the system counts it.

use frond_doc::{DocumentBuilder, Value};

use crate::commands::reply;
use crate::machine_memory;
use crate::process_counts::ProcessCounts;
use crate::shared::Shared;

/// Appends how much memory the process has, in megabytes; not supported where the system doesn't
/// report it.
pub(super) fn append_mem(answer: &mut DocumentBuilder, _: &Shared) {
    let bits = usize::BITS as i32;
    answer.begin_document("mem").append("bits", Value::Int32(bits));
    let memory = machine_memory::resident_and_virtual_bytes();
    if let Some((resident, addressed)) = memory {
        answer
            .append("resident", reply::number(resident >> 20))
            .append("virtual", reply::number(addressed >> 20));
    }
    answer.append("supported", Value::Boolean(memory.is_some())).end();
}

/// Appends what the system counts of the process.
pub(super) fn append_extra_info(answer: &mut DocumentBuilder, _: &Shared) {
    answer.begin_document("extra_info").append("note", Value::String("fields vary by platform"));
    if let Some(counts) = ProcessCounts::read() {
        for (name, count) in [
            ("user_time_us", counts.user_micros),
            ("system_time_us", counts.system_micros),
            ("maximum_resident_set_kb", counts.resident_peak_bytes >> 10),
            ("page_reclaims", counts.minor_faults),
            ("page_faults", counts.major_faults),
            ("threads", counts.threads),
        ] {
            answer.append(name, Value::Int64(reply::long(count)));
        }
    }
    answer.end();
}
