//! Defects that tests plant in a member.

use super::{Member, Role};
use crate::configuration::Change;

impl Member {
    pub(super) fn act_on_defect(&mut self) {
        let leads = self.role() == Role::Leader;
        if leads && self.defect == Some(crate::defect::Defect::PriorTermCommit) {
            let (held, _) = self.raw.raft.mut_prs().maximal_committed_index();
            if self.raw.raft.raft_log.committed < held {
                self.raw.raft.raft_log.commit_to(held);
            }
        }
    }

    pub(super) fn change_with_defect(&self, change: Change) -> Change {
        let leads = self.role() == Role::Leader;
        match change {
            Change::AddLearner(member)
                if leads && self.defect == Some(crate::defect::Defect::LearnerCounted) =>
            {
                Change::Promote(member)
            }
            other => other,
        }
    }
}
