//! Goal: branches that merge each other again and again keep every change. Method: a model. Each
//! branch knows how many writes of each other one it has merged; counters under the delta rule must
//! be the sum of these, and a field that one branch alone writes must be what that branch wrote
//! last of them.

use frond_db::collection::UpdateStatement;
use frond_db::{Durability, Frond};
use frond_doc::{DocumentBuf, DocumentBuilder, Value, document};
use frond_testkit::random::{Random, for_seeds};
use frond_vcs::Repository;
use frond_vcs::{FieldRule, MergeOutcome, MergeRequest, MergeRules};

use super::{all, insert, new, shop};

const BRANCHES: usize = 3;

struct Model {
    _frond: Frond,
    branches: Vec<Repository>,
    /// The numbers that each branch wrote into its own field, in order.
    written: Vec<Vec<i32>>,
    /// The number of another one's writes that each branch has.
    known: Vec<[usize; BRANCHES]>,
}

fn update(database: &Repository, update: DocumentBuf) {
    let statement = UpdateStatement::new(document! { "_id": 1_i32 }, update);
    let report = database.update("n", &[statement], true, Durability::Relaxed).unwrap();
    assert_eq!(report.modified, 1);
}

impl Model {
    fn new() -> Model {
        let frond = new();
        let main = shop(&frond, "");
        let first = document! { "_id": 1_i32, "n": 0_i32, "f0": 0_i32, "f1": 0_i32, "f2": 0_i32 };
        insert(&main, "n", &[first]);
        let rules = document! { "fields": &document! { "n": "delta" } };
        main.set_merge_rules("n", Some(rules.view())).unwrap();
        main.commit("first", "").unwrap();
        let mut branches = vec![main];
        for name in ["one", "two"] {
            branches[0].create_branch(name, None).unwrap();
            branches.push(shop(&frond, name));
        }
        let (written, known) = (vec![vec![0]; BRANCHES], vec![[1; BRANCHES]; BRANCHES]);
        Model { _frond: frond, branches, written, known }
    }

    fn write(&mut self, branch: usize, value: i32) {
        let mut set = DocumentBuilder::new();
        set.begin_document("$set");
        set.append(&format!("f{branch}"), Value::Int32(value));
        // So that no two writes are equal.
        set.append(&format!("c{branch}"), Value::Int32(self.written[branch].len() as i32));
        set.end().begin_document("$inc").append("n", Value::Int32(1)).end();
        update(&self.branches[branch], set.build());
        self.branches[branch].commit("write", "").unwrap();
        self.written[branch].push(value);
        self.known[branch][branch] += 1;
    }

    fn head(&self, branch: usize) -> String {
        self.branches[branch].log(Some(1), None).unwrap()[0].id.to_string()
    }

    /// Merges what branch `from` was, when its head was `head` and it knew `known`, into another
    /// one.
    fn merge(&mut self, into: usize, head: &str, known: [usize; BRANCHES]) {
        let mut rules = MergeRules::default();
        rules.fields.insert("n".to_owned(), [("n".to_owned(), FieldRule::Delta)].into());
        let merge_in = head.to_owned();
        let request = MergeRequest { merge_in, rules, ..MergeRequest::default() };
        let outcome = self.branches[into].merge(&request).unwrap();
        assert!(!matches!(outcome, MergeOutcome::Conflicts { .. }), "{outcome:?}");
        for (mine, theirs) in self.known[into].iter_mut().zip(known) {
            *mine = (*mine).max(theirs);
        }
    }

    fn check(&self) {
        for (branch, known) in self.branches.iter().zip(&self.known) {
            let found = all(branch, "n").remove(0);
            let writes: usize = known.iter().map(|known| known - 1).sum();
            assert_eq!(found.get("n"), Some(Value::Int32(writes as i32)), "{known:?} {found:?}");
            for (writer, known) in known.iter().enumerate() {
                let wanted = self.written[writer][known - 1];
                let field = found.get(&format!("f{writer}"));
                assert_eq!(field, Some(Value::Int32(wanted)), "{writer} {known} {found:?}");
            }
        }
    }

    /// Some branches merge what each other was at the same moment.
    fn cross(&mut self, random: &mut Random) {
        let heads: Vec<_> =
            (0..BRANCHES).map(|branch| (self.head(branch), self.known[branch])).collect();
        for into in 0..BRANCHES {
            for (from, (head, known)) in heads.iter().enumerate() {
                if into != from && random.below(4) > 0 {
                    self.merge(into, head, *known);
                }
            }
        }
    }
}

#[test]
fn many_rounds_of_criss_cross_keep_every_change() {
    for_seeds(12, |mut random| {
        let mut model = Model::new();
        for _ in 0..8 {
            for branch in 0..BRANCHES {
                if random.below(3) > 0 {
                    model.write(branch, random.below(3) as i32);
                }
            }
            model.cross(&mut random);
            model.check();
        }
    });
}

/// Two clones merge each other's head, over and over.
#[test]
fn two_branches_that_always_cross() {
    let mut model = Model::new();
    for round in 0..12 {
        model.write(0, round % 2);
        model.write(1, 1 - round % 2);
        let heads = [(model.head(0), model.known[0]), (model.head(1), model.known[1])];
        model.merge(0, &heads[1].0, heads[1].1);
        model.merge(1, &heads[0].0, heads[0].1);
        model.check();
    }
}
