//! Applies edits to several maps at once, with all processors.
//!
//! A version commit and a merge change a collection's documents and each of its indexes: trees that
//! have nothing to do with each other, so that each may have a thread. The results are those of
//! [`Tree::apply`], one tree after the other.

use std::sync::Mutex;
use std::thread;

use bytes::Bytes;
use frond_store::ChunkStore;

use crate::error::TreeError;
use crate::map::{Edit, Tree};

/// The number of threads above which they would wait for the store's one writer.
const THREADS_MAX: usize = 4;

/// Edits whose keys ascend strictly.
pub type Edits<'a> = Box<dyn Iterator<Item = Result<(Bytes, Edit), TreeError>> + Send + 'a>;

impl Tree {
    /// Applies its edits to each of `trees`; the results come in their order.
    ///
    /// # Errors
    /// As [`Tree::apply`]: of the first tree that failed. Others may have been put then.
    pub fn apply_many(
        store: &dyn ChunkStore,
        trees: Vec<(Tree, Edits<'_>)>,
    ) -> Result<Vec<Tree>, TreeError> {
        let count = trees.len();
        let processors = thread::available_parallelism().map_or(1, usize::from);
        let thread_count = count.min(processors).min(THREADS_MAX);
        if thread_count <= 1 {
            let one_by_one =
                trees.into_iter().map(|(tree, mut edits)| tree.apply(store, &mut edits));
            return one_by_one.collect();
        }
        let left = Mutex::new(trees.into_iter().enumerate());
        let next = || left.lock().expect("no panic while the lock is held").next();
        let work = || {
            let mut done = Vec::new();
            while let Some((position, (tree, mut edits))) = next() {
                done.push((position, tree.apply(store, &mut edits)));
            }
            done
        };
        let mut done = thread::scope(|scope| {
            let others: Vec<_> = (1..thread_count).map(|_| scope.spawn(work)).collect();
            let mut done = work();
            for other in others {
                // A panic of another thread is one of this.
                done.extend(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            }
            done
        });
        done.sort_unstable_by_key(|(position, _)| *position);
        done.into_iter().map(|(_, tree)| tree).collect()
    }
}
