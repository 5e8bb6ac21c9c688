"""Which operator any_plan.py has asked of which index in which state of storage."""

from collections import Counter

# Where documents lie when they are asked for.
STATES = ["in memory", "after a checkpoint", "after a commit", "of a commit itself", "above 32 KB", "on a branch",
          "through a view", "in a time series"]
# What isn't an operator, though it begins like one.
NO_OPERATORS = {"$", "$[]", "$natural"}


def operators(request):
    """The operators of a request: of filters, updates and expressions, and stages."""
    found = set()

    def walk(value):
        if isinstance(value, dict):
            for name, inner in value.items():
                if name.startswith("$") and name not in NO_OPERATORS:
                    found.add(name)
                walk(inner)
        elif isinstance(value, list):
            for inner in value:
                walk(inner)

    walk({name: value for name, value in request.items() if name not in ("document", "collation")})
    if request["kind"] in ("find", "count", "distinct") and not found:
        found.add("equality")
    return found


class Coverage:
    """How often each operator was asked of each index, by the state of storage."""

    def __init__(self):
        self.counts = Counter()

    def note(self, request, place, state, is_commit):
        """A request that was asked of a collection, or of its commit; `state`: what happened to the data last."""
        kinds = {"large": "above 32 KB", "branch": "on a branch", "view": "through a view",
                 "series": "in a time series"}
        states = ["of a commit itself" if is_commit else state]
        states += [told for name, told in kinds.items() if place.get(name)]
        for operator in operators(request):
            for told in states:
                self.counts[operator, place["index"], told] += 1

    def told(self, indexes, series):
        """Lines for people: the cells that were reached, by state, and the operators that reached fewest of them."""
        all_operators = sorted({operator for operator, _, _ in self.counts})
        lines = [f"  {len(all_operators)} operators by {len(indexes)} indexes:"]
        for state in STATES:
            allowed = series if state == "in a time series" else indexes
            reached = {(operator, index) for operator, index, told in self.counts if told == state}
            lines.append(f"    {state}: {len(reached)} of {len(all_operators) * len(allowed)}")
        by_operator = Counter(operator for operator, _, _ in self.counts)
        least = ", ".join(f"{name} {count}" for name, count in by_operator.most_common()[:-11:-1])
        lines.append(f"    asked of the fewest: {least}")
        return "\n".join(lines)
