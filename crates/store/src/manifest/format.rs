//! The bytes of the manifest. The authority is docs/format/manifest.md.
//!
//! ```text
//! manifest = prefix generation pack-count root-count pack* root* aside-count aside* checksum
//! ```

use std::collections::BTreeMap;

use twox_hash::XxHash3_64;

use super::{Manifest, PackEntry, PackState, ROOT_NAME_BYTES_MAX, SetAside, SetAsideReason};
use crate::chunk::{ChunkHash, HASH_BYTES};
use crate::error::StoreError;
use crate::field::{
    Magic, PREFIX_BYTES, array_at, check_prefix, checksum_holds, prefix, u8_at, u16_at, u32_at,
    u64_at,
};
use crate::location::{PackNumber, Purpose};

const MAGIC: Magic = *b"FRNDMF\x1A\n";

const OFFSET_GENERATION: usize = PREFIX_BYTES;
const OFFSET_PACK_COUNT: usize = OFFSET_GENERATION + size_of::<u64>();
const OFFSET_ROOT_COUNT: usize = OFFSET_PACK_COUNT + size_of::<u32>();
const OFFSET_PACKS: usize = OFFSET_ROOT_COUNT + size_of::<u32>();
const _: () = assert!(OFFSET_PACKS == 32); // Stored: change only with a new version.

const OFFSET_PACK_NUMBER: usize = 0;
const OFFSET_PACK_STATE: usize = OFFSET_PACK_NUMBER + size_of::<u32>();
const OFFSET_PACK_PURPOSE: usize = OFFSET_PACK_STATE + size_of::<u16>();
const OFFSET_PACK_BYTES: usize = OFFSET_PACK_PURPOSE + size_of::<u16>();
const PACK_ENTRY_BYTES: usize = OFFSET_PACK_BYTES + size_of::<u64>();
const _: () = assert!(PACK_ENTRY_BYTES == 16); // Stored: change only with a new version.

const OFFSET_ROOT_HASH: usize = 0;
const OFFSET_ROOT_NAME_BYTES: usize = OFFSET_ROOT_HASH + HASH_BYTES;
const OFFSET_ROOT_NAME: usize = OFFSET_ROOT_NAME_BYTES + size_of::<u8>();

const OFFSET_ASIDE_PACK: usize = 0;
const OFFSET_ASIDE_OFFSET: usize = OFFSET_ASIDE_PACK + size_of::<u32>();
const OFFSET_ASIDE_END: usize = OFFSET_ASIDE_OFFSET + size_of::<u32>();
const OFFSET_ASIDE_WHY: usize = OFFSET_ASIDE_END + size_of::<u32>();
const ASIDE_BYTES: usize = OFFSET_ASIDE_WHY + size_of::<u32>();
const _: () = assert!(ASIDE_BYTES == 16); // Stored: change only with a new version.

/// Returns the manifest's bytes.
pub(super) fn encode(manifest: &Manifest) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend_from_slice(&prefix(MAGIC));
    bytes.extend_from_slice(&manifest.generation.to_le_bytes());
    let count =
        |count: usize| u32::try_from(count).expect("far fewer packs and roots").to_le_bytes();
    bytes.extend_from_slice(&count(manifest.packs.len()));
    bytes.extend_from_slice(&count(manifest.roots.len()));
    for pack in &manifest.packs {
        bytes.extend_from_slice(&pack.number.0.to_le_bytes());
        bytes.extend_from_slice(&(pack.state as u16).to_le_bytes());
        bytes.extend_from_slice(&(pack.purpose as u16).to_le_bytes());
        bytes.extend_from_slice(&pack.bytes.to_le_bytes());
    }
    for (name, hash) in &manifest.roots {
        assert!(name.len() <= ROOT_NAME_BYTES_MAX);
        bytes.extend_from_slice(&hash.0);
        bytes.push(name.len() as u8);
        bytes.extend_from_slice(name.as_bytes());
    }
    bytes.extend_from_slice(&count(manifest.aside.len()));
    for ((pack, offset), SetAside { end, why }) in &manifest.aside {
        bytes.extend_from_slice(&pack.0.to_le_bytes());
        bytes.extend_from_slice(&offset.to_le_bytes());
        bytes.extend_from_slice(&end.to_le_bytes());
        bytes.extend_from_slice(&(*why as u32).to_le_bytes());
    }
    let checksum = XxHash3_64::oneshot(&bytes);
    bytes.extend_from_slice(&checksum.to_le_bytes());
    bytes
}

/// Reads the manifest that is `bytes`, exactly; `file` is its name.
pub(super) fn parse(bytes: &[u8], file: &str) -> Result<Manifest, StoreError> {
    check_prefix(bytes, MAGIC, file)?;
    let end = bytes.len().saturating_sub(size_of::<u64>());
    let holds = |checksum| checksum_holds(checksum, XxHash3_64::oneshot(&bytes[..end]));
    if end < OFFSET_PACKS || !u64_at(bytes, end).is_some_and(holds) {
        return Err(StoreError::damaged(file, 0, "checksum of the manifest is wrong"));
    }
    parse_body(&bytes[..end])
        .ok_or_else(|| StoreError::damaged(file, OFFSET_PACKS as u64, "contradicts itself"))
}

fn parse_body(bytes: &[u8]) -> Option<Manifest> {
    let generation = u64_at(bytes, OFFSET_GENERATION)?;
    let pack_count = usize::try_from(u32_at(bytes, OFFSET_PACK_COUNT)?).ok()?;
    let root_count = u32_at(bytes, OFFSET_ROOT_COUNT)?;
    let (packs, mut rest) =
        bytes.get(OFFSET_PACKS..)?.split_at_checked(pack_count.checked_mul(PACK_ENTRY_BYTES)?)?;
    let packs: Vec<_> =
        packs.chunks_exact(PACK_ENTRY_BYTES).map(parse_pack).collect::<Option<_>>()?;
    let ascending = packs.windows(2).all(|pair| pair[0].number < pair[1].number);
    let open = |purpose| {
        let is_open = |pack: &&PackEntry| pack.state == PackState::Open && pack.purpose == purpose;
        packs.iter().filter(is_open).count()
    };
    let one_open_each = Purpose::ALL.into_iter().all(|purpose| open(purpose) <= 1);

    let mut roots = BTreeMap::new();
    for _ in 0..root_count {
        let hash = ChunkHash(array_at(rest, OFFSET_ROOT_HASH)?);
        let name_bytes = usize::from(u8_at(rest, OFFSET_ROOT_NAME_BYTES)?);
        let (root, after) = rest.split_at_checked(OFFSET_ROOT_NAME + name_bytes)?;
        let name = std::str::from_utf8(&root[OFFSET_ROOT_NAME..]).ok()?;
        roots.insert(name.to_owned(), hash);
        rest = after;
    }
    let aside = parse_aside(rest)?;
    let is_listed = |number: PackNumber| packs.iter().any(|entry| entry.number == number);
    let sound = ascending
        && one_open_each
        && roots.len() as u64 == u64::from(root_count)
        && aside.keys().all(|(number, _)| is_listed(*number));
    sound.then_some(Manifest { generation, packs, roots, aside })
}

fn parse_aside(bytes: &[u8]) -> Option<BTreeMap<(PackNumber, u32), SetAside>> {
    let (count, entries) = bytes.split_at_checked(size_of::<u32>())?;
    let entries = entries.chunks(ASIDE_BYTES).map(|entry| {
        let offset = u32_at(entry, OFFSET_ASIDE_OFFSET)?;
        let end = u32_at(entry, OFFSET_ASIDE_END).filter(|end| offset < *end)?;
        let why = SetAsideReason::from_stored(u32_at(entry, OFFSET_ASIDE_WHY)?)?;
        Some(((PackNumber(u32_at(entry, OFFSET_ASIDE_PACK)?), offset), SetAside { end, why }))
    });
    let aside = entries.collect::<Option<Vec<_>>>()?;
    let sound = aside.is_sorted_by(|left, right| left.0 < right.0)
        && Some(aside.len() as u64) == u32_at(count, 0).map(u64::from);
    sound.then(|| aside.into_iter().collect())
}

fn parse_pack(entry: &[u8]) -> Option<PackEntry> {
    Some(PackEntry {
        number: PackNumber(u32_at(entry, OFFSET_PACK_NUMBER)?),
        state: PackState::from_stored(u16_at(entry, OFFSET_PACK_STATE)?)?,
        purpose: Purpose::from_stored(u16_at(entry, OFFSET_PACK_PURPOSE)?)?,
        bytes: u64_at(entry, OFFSET_PACK_BYTES)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Manifest {
        let pack = |number, state, purpose, bytes| PackEntry {
            number: PackNumber(number),
            state,
            purpose,
            bytes,
        };
        let packs = vec![
            pack(1, PackState::Sealed, Purpose::Packed, 5000),
            pack(4, PackState::Open, Purpose::Lasting, 16),
            pack(5, PackState::Sealed, Purpose::Lasting, 70),
            pack(6, PackState::Open, Purpose::Brief, 90),
        ];
        let root = |byte| ChunkHash([byte; HASH_BYTES]);
        let roots = [("engine".to_owned(), root(1)), (String::new(), root(2))].into();
        let (damaged, torn) = (SetAsideReason::Damaged, SetAsideReason::DamagedOrTorn);
        let aside =
            [(4, 16, damaged), (5, 16, torn), (5, 40, damaged)].map(|(number, offset, why)| {
                ((PackNumber(number), offset), SetAside { end: offset + 9, why })
            });
        let aside = aside.into();
        Manifest { generation: 7, packs, roots, aside }
    }

    #[test]
    fn a_manifest_comes_back_and_any_change_is_seen() {
        for manifest in [sample(), Manifest::default()] {
            let good = encode(&manifest);
            assert_eq!(parse(&good, "m").unwrap(), manifest);
            for bit in 0..good.len() * 8 {
                let mut bad = good.clone();
                bad[bit / 8] ^= 1 << (bit % 8);
                parse(&bad, "m").expect_err("a changed bit");
            }
            for bytes in 0..good.len() {
                parse(&good[..bytes], "m").expect_err("cut short");
            }
        }
    }

    #[test]
    fn contradictions_with_a_right_checksum_are_refused() {
        let aside = |end| SetAside { end, why: SetAsideReason::Damaged };
        let broken: [&dyn Fn(&mut Manifest); 5] = [
            &|m| m.packs.swap(0, 1),
            &|m| m.packs.swap(2, 3),
            &|m| m.packs[2].state = PackState::Open,
            &|m| m.aside.extend([((PackNumber(7), 16), aside(17))]),
            &|m| m.aside.extend([((PackNumber(4), 16), aside(16))]),
        ];
        for make in broken {
            let mut manifest = sample();
            make(&mut manifest);
            parse(&encode(&manifest), "m").expect_err("a contradiction");
        }
        for count_offset in [OFFSET_PACK_COUNT, OFFSET_ROOT_COUNT] {
            for count in [0, 3, 5, u32::MAX] {
                let mut bytes = encode(&sample());
                bytes.truncate(bytes.len() - size_of::<u64>());
                bytes[count_offset..count_offset + 4].copy_from_slice(&u32::to_le_bytes(count));
                let checksum = XxHash3_64::oneshot(&bytes);
                bytes.extend(checksum.to_le_bytes());
                parse(&bytes, "m").expect_err("a wrong count");
            }
        }
    }
}
