//! The metadata chunks of a data directory, from which all others are reached: its state, the base
//! map, the base of each tree, and the system tree with the runs over it. If one of them is lost,
//! everything below it is lost, too. So each has a second copy ([`frond_store::Copies`]), which the
//! publication of a state adds.
//!
//! Below a chunk that has a copy all have: a publication looks at what is new alone.

use frond_store::{Chunk, ChunkHash};
use frond_tree::{Tree, TreeError};

use super::format::{EngineState, decode_base};
use crate::error::EngineError;

/// Chunks that are read together.
const BATCH: usize = 256;

/// Gets chunks by their names, and nothing in the place of those that are to be passed over.
pub type GetSome<'a, E> = &'a mut dyn FnMut(&[ChunkHash]) -> Result<Vec<Option<Chunk>>, E>;

/// The role of a metadata chunk.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    State,
    BaseMap,
    Base,
    Tree,
    /// The filter of a run: nothing is found by it but what the run has.
    Filter,
}

/// Calls `take` with the chunks by which the others of the state `root` are found, each before
/// those below it. `get` returns what it is asked for, or nothing for what is to be passed over
/// with all below it. The cost is that of these chunks.
///
/// # Errors
/// `Damaged` if a chunk isn't what it should be; as `get`.
pub(crate) fn walk<E: From<EngineError>>(
    root: ChunkHash,
    get: GetSome<'_, E>,
    take: &mut dyn FnMut(Chunk),
) -> Result<(), E> {
    // Each with whether it belongs to the system tree, or leads there: tree 1 comes first in the
    // base map.
    let mut level = vec![(root, Part::State, true)];
    while !level.is_empty() {
        let above = std::mem::take(&mut level);
        for batch in above.chunks(BATCH) {
            let hashes: Vec<ChunkHash> = batch.iter().map(|(hash, ..)| *hash).collect();
            for ((_, part, is_system), chunk) in batch.iter().zip(get(&hashes)?) {
                let Some(chunk) = chunk else { continue };
                let below = below(&chunk, *part).map_err(EngineError::from)?;
                level.extend(below.into_iter().enumerate().filter_map(|(at, (hash, below))| {
                    let is_first = at == 0 || matches!(part, Part::Base | Part::Tree);
                    let is_system = *is_system && is_first;
                    let is_found = is_system || !matches!(below, Part::Tree | Part::Filter);
                    is_found.then_some((hash, below, is_system))
                }));
                take(chunk);
            }
        }
    }
    Ok(())
}

/// Returns the chunks directly below a chunk.
fn below(chunk: &Chunk, part: Part) -> Result<Vec<(ChunkHash, Part)>, TreeError> {
    let all = |hashes: Vec<ChunkHash>, part| hashes.into_iter().map(|it| (it, part)).collect();
    Ok(match part {
        Part::State => vec![(EngineState::decode(chunk)?.bases.root, Part::BaseMap)],
        Part::Base => {
            let base = decode_base(chunk)?;
            let runs = base.runs.iter();
            let runs =
                runs.flat_map(|run| [(run.tree.root, Part::Tree), (run.filter, Part::Filter)]);
            std::iter::once((base.tree.root, Part::Tree)).chain(runs).collect()
        }
        Part::Tree => all(Tree::children(chunk)?, Part::Tree),
        Part::Filter => Vec::new(),
        Part::BaseMap => match Tree::children(chunk)? {
            children if children.is_empty() => all(chunk.references().collect(), Part::Base),
            children => all(children, Part::BaseMap),
        },
    })
}
