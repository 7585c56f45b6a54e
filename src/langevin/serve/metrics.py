"""Counts of what was asked and how long it took, as Prometheus reads them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping

from ..process import resident_memory

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
SIZES = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
"""Bounds of the histograms of seconds and of requests in a batch."""


class Histogram:
    """How many values were at most as large as each bound."""

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds, self.counts = bounds, [0] * len(bounds)
        self.count, self.sum = 0, 0.0

    def add(self, value: float) -> None:
        self.count += 1
        self.sum += value
        for place, bound in enumerate(self.bounds):
            self.counts[place] += value <= bound

    def lines(self, name: str, label: str) -> Iterator[str]:
        for bound, count in zip(self.bounds, self.counts, strict=True):
            yield f'{name}_bucket{{{label},le="{bound:g}"}} {count}'
        yield f'{name}_bucket{{{label},le="+Inf"}} {self.count}'
        yield f"{name}_sum{{{label}}} {self.sum:.6f}"
        yield f"{name}_count{{{label}}} {self.count}"


class Metrics:
    """Memory does not grow with requests: labels are names of routes and models, never of a
    client."""

    def __init__(self) -> None:
        self.requests = Counter[tuple[str, int]]()
        self.seconds = defaultdict[str, Histogram](lambda: Histogram(SECONDS))
        self.batches = defaultdict[str, Histogram](lambda: Histogram(SIZES))
        self.queues: dict[str, int] = {}

    def request(self, route: str, status: int, seconds: float) -> None:
        self.requests[route, status] += 1
        self.seconds[route].add(seconds)

    def batch(self, name: str, items: int) -> None:
        self.batches[name].add(items)

    def queue(self, name: str, length: int) -> None:
        self.queues[name] = length

    def text(self) -> str:
        """The page at /metrics."""
        return "\n".join(self.lines()) + "\n"

    def lines(self) -> Iterator[str]:
        yield "# HELP langevin_requests_total Requests by route and status."
        yield "# TYPE langevin_requests_total counter"
        for (route, status), count in sorted(self.requests.items()):
            yield f'langevin_requests_total{{route="{route}",status="{status}"}} {count}'
        yield from histograms("langevin_request_seconds", "Seconds of a request.", "route",
                              self.seconds)  # fmt: skip
        yield from histograms("langevin_batch_requests", "Requests answered by one batch.", "queue",
                              self.batches)  # fmt: skip
        yield "# HELP langevin_queue_length Requests that wait."
        yield "# TYPE langevin_queue_length gauge"
        for name, length in sorted(self.queues.items()):
            yield f'langevin_queue_length{{queue="{name}"}} {length}'
        held = resident_memory()
        if held is not None:
            yield "# HELP process_resident_memory_bytes Memory that the process holds."
            yield "# TYPE process_resident_memory_bytes gauge"
            yield f"process_resident_memory_bytes {held}"


def histograms(
    name: str, told: str, label: str, found: Mapping[str, Histogram]
) -> Iterator[str]:
    yield f"# HELP {name} {told}"
    yield f"# TYPE {name} histogram"
    for value, histogram in sorted(found.items()):
        yield from histogram.lines(name, f'{label}="{value}"')
