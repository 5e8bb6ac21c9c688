//! The lines of descent beside a log, as git draws them.
//!
//! A *lane* is a column that waits for a commit: the one that a child drew above named as its
//! parent. A commit stands in its lane (the first that waits for it, or a new one at the right),
//! which then waits for its first parent. Further parents get lanes beside it (`|\`), unless one
//! waits for them already; two lanes that wait for the same commit become one (`|/`).

/// The graph's part of a commit.
#[derive(Debug, PartialEq, Eq)]
pub struct GraphLines {
    /// Beside the commit itself.
    pub commit: String,
    /// Lines between it and the next one.
    pub below: Vec<String>,
}

/// The lanes between one commit and the next.
#[derive(Default)]
pub struct Graph {
    lanes: Vec<String>,
}

impl Graph {
    /// Draws the next commit of a log in which no parent comes before its child.
    pub fn commit(&mut self, id: &str, parents: &[&str]) -> GraphLines {
        let place = self.lanes.iter().position(|waited| waited == id);
        let place = place.unwrap_or_else(|| {
            self.lanes.push(id.to_owned());
            self.lanes.len() - 1
        });
        let mark = |lane: usize| if lane == place { "*" } else { "|" };
        let commit = (0..self.lanes.len()).map(mark).collect::<Vec<_>>().join(" ");
        let mut below = Vec::new();
        let Some((first, others)) = parents.split_first() else {
            self.lanes.remove(place);
            if place < self.lanes.len() {
                below.push(self.shifted(place));
            }
            return GraphLines { commit, below };
        };
        self.lanes[place] = (*first).to_owned();
        for other in others {
            if !self.lanes.iter().any(|waited| waited == other) {
                self.lanes.insert(place + 1, (*other).to_owned());
                below.push(self.opened(place));
            } else if let Some(lane) = self.lanes.iter().position(|waited| waited == other) {
                below.push(self.joined(place.min(lane), place.max(lane), '.'));
            }
        }
        while let Some((left, right)) = self.twins() {
            below.push(self.joined(left, right, '/'));
            self.lanes.remove(right);
        }
        GraphLines { commit, below }
    }

    /// Two lanes that wait for the same commit.
    fn twins(&self) -> Option<(usize, usize)> {
        let later = |lane: usize| {
            let same = |right: &usize| self.lanes[*right] == self.lanes[lane];
            (lane + 1..self.lanes.len()).find(same).map(|right| (lane, right))
        };
        (0..self.lanes.len()).find_map(later)
    }

    /// A lane was opened at the right of `place`: all behind it move to the right.
    fn opened(&self, place: usize) -> String {
        let before = "| ".repeat(place);
        let moved = vec!["\\"; self.lanes.len() - place - 1].join(" ");
        format!("{before}|{moved}")
    }

    /// A lane ended at `place`: all behind it move to the left.
    fn shifted(&self, place: usize) -> String {
        let before = "| ".repeat(place);
        let moved = vec!["/"; self.lanes.len() - place].join(" ");
        format!("{before} {moved}").trim_end().to_owned()
    }

    /// The lane `right` leads to `left`; behind it, those that move with it when it ends.
    fn joined(&self, left: usize, right: usize, end: char) -> String {
        let mut line = String::new();
        for lane in 0..self.lanes.len() {
            if lane < right {
                line.push('|');
                line.push(match lane {
                    _ if lane + 1 == right && end == '/' => '/',
                    _ if left <= lane => '_',
                    _ => ' ',
                });
            } else if end == '/' {
                line.push(' ');
                line.push(if lane + 1 < self.lanes.len() { '/' } else { ' ' });
            } else {
                line.push_str(if lane == right { ". " } else { "| " });
            }
        }
        line.trim_end().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draw(history: &[(&str, &[&str])]) -> String {
        let mut graph = Graph::default();
        let mut text = String::new();
        for (id, parents) in history {
            let drawn = graph.commit(id, parents);
            text.push_str(&format!("{} {id}\n", drawn.commit));
            for line in drawn.below {
                text.push_str(&format!("{line}\n"));
            }
        }
        text
    }

    #[test]
    fn lines() {
        assert_eq!(draw(&[("b", &["a"]), ("a", &[])]), "* b\n* a\n");
    }

    #[test]
    fn a_merge_opens_a_lane_that_joins_again() {
        let history: &[(&str, &[&str])] =
            &[("m", &["c", "s"]), ("s", &["a"]), ("c", &["b"]), ("b", &["a"]), ("a", &[])];
        assert_eq!(draw(history), "* m\n|\\\n| * s\n* | c\n* | b\n|/\n* a\n");
    }

    #[test]
    fn histories_of_their_own() {
        let history: &[(&str, &[&str])] =
            &[("m", &["b", "y"]), ("y", &["x"]), ("b", &["a"]), ("a", &[]), ("x", &[])];
        assert_eq!(draw(history), "* m\n|\\\n| * y\n* | b\n* | a\n /\n* x\n");
    }
}
