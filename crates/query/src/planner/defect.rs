//! Defects that tests plant, to prove that comparing what plans find would notice them.

/// A planted defect.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Defect {
    /// Two fields below one array are bounded together, though two elements may fulfil them.
    TwoElements,
    /// Two conditions on a path in arrays are intersected.
    ManyAsOne,
    /// Two conditions on a path in an element are intersected though that may be an array.
    ElementsAsOne,
    /// A sparse index is used though no field must be there.
    SparseForAll,
    /// A partial index is used though the filter doesn't imply its own.
    PartialForAll,
    /// A number on a path counts as a field's name.
    NumberAsField,
    /// The demands of other paths are forgotten once one decides exactly.
    ExactByOne,
    /// A field in arrays gives an order.
    ArraysInOrder,
    /// A wildcard is used though an element may lack the path.
    AbsentElement,
    /// A wildcard is used for documents as wholes.
    WholeDocuments,
    /// A document's keys are taken for one.
    OnceEach,
    /// The opposite of inexact intervals is used.
    OppositeOfInexact,
    /// An expression's comparison bounds a path with arrays on it.
    ArraysInExpressions,
    /// Ranges that are each in order are taken for ordered together.
    RangesInOrder,
    /// A check of a descending part isn't inverted.
    AscendingChecks,
}

#[cfg(test)]
thread_local! {
    static PLANTED: std::cell::Cell<Option<Defect>> = const { std::cell::Cell::new(None) };
}

/// Whether a defect is planted: never outside of this crate's tests.
pub(crate) fn is_planted(defect: Defect) -> bool {
    #[cfg(test)]
    return PLANTED.get() == Some(defect);
    #[cfg(not(test))]
    {
        let _ = defect;
        false
    }
}

/// Plants a defect for what this thread plans from now on.
#[cfg(test)]
pub(crate) fn plant(defect: Option<Defect>) {
    PLANTED.set(defect);
}
