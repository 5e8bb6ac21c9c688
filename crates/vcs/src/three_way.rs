//! A merge's three sides as one value.

/// A value on each side of a merge: what both sides began with, and what each made of it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct ThreeWay<T> {
    pub base: T,
    pub ours: T,
    pub theirs: T,
}

/// A side of a merge: whose value counts where ours and theirs conflict.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Side {
    Ours,
    Theirs,
    /// As if neither side had decided: how several bases are merged into one.
    Base,
}

impl<T> ThreeWay<T> {
    pub fn new(base: T, ours: T, theirs: T) -> ThreeWay<T> {
        ThreeWay { base, ours, theirs }
    }

    /// Applies `change` to each.
    pub fn map<U>(self, mut change: impl FnMut(T) -> U) -> ThreeWay<U> {
        ThreeWay { base: change(self.base), ours: change(self.ours), theirs: change(self.theirs) }
    }

    /// The value of one side.
    pub fn on(self, side: Side) -> T {
        match side {
            Side::Ours => self.ours,
            Side::Theirs => self.theirs,
            Side::Base => self.base,
        }
    }
}

impl<T> ThreeWay<Option<T>> {
    /// A reference to each value that is there.
    pub fn as_ref(&self) -> ThreeWay<Option<&T>> {
        ThreeWay::new(self.base.as_ref(), self.ours.as_ref(), self.theirs.as_ref())
    }
}

impl<T: PartialEq> ThreeWay<T> {
    /// The value that is agreed on, compared as a whole; `None` if both sides changed it
    /// differently.
    pub fn agreed(self) -> Option<T> {
        if self.ours == self.theirs || self.theirs == self.base {
            Some(self.ours)
        } else if self.ours == self.base {
            Some(self.theirs)
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_sided_changes_count_and_equal_changes_agree() {
        for (base, ours, theirs, agreed) in [
            (1, 1, 1, Some(1)),
            (1, 2, 1, Some(2)),
            (1, 1, 3, Some(3)),
            (1, 2, 2, Some(2)),
            (1, 2, 3, None),
        ] {
            assert_eq!(ThreeWay::new(base, ours, theirs).agreed(), agreed);
        }
        let sides = ThreeWay::new(1, 2, 3).map(|side| side * 10);
        assert_eq!([Side::Base, Side::Ours, Side::Theirs].map(|side| sides.on(side)), [10, 20, 30]);
    }
}
