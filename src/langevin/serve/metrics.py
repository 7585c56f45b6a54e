"""Counts of what was asked and how long it took, as Prometheus reads them."""

from __future__ import annotations

from collections import Counter

BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Of the histogram of seconds."""


class Metrics:
    """Memory does not grow with requests: labels are names of routes and models, never of a client."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, int]] = Counter()
        self.slower: Counter[tuple[str, float]] = Counter()
        self.seconds: Counter[str] = Counter()
        self.batches: Counter[str] = Counter()
        self.items: Counter[str] = Counter()
        self.queues: dict[str, int] = {}

    def request(self, route: str, status: int, seconds: float) -> None:
        self.requests[route, status] += 1
        self.seconds[route] += seconds  # type: ignore[assignment]  # a sum of floats
        for bound in BOUNDS:
            if seconds <= bound:
                self.slower[route, bound] += 1

    def batch(self, name: str, items: int) -> None:
        self.batches[name] += 1
        self.items[name] += items

    def queue(self, name: str, length: int) -> None:
        self.queues[name] = length

    def text(self) -> str:
        """The page at /metrics."""
        lines = ["# TYPE langevin_requests_total counter"]
        for (route, status), count in sorted(self.requests.items()):
            lines.append(f'langevin_requests_total{{route="{route}",status="{status}"}} {count}')
        lines.append("# TYPE langevin_request_seconds histogram")
        for route in sorted(self.seconds):
            total = sum(count for (own, _), count in self.requests.items() if own == route)
            for bound in BOUNDS:
                count = self.slower[route, bound]
                lines.append(
                    f'langevin_request_seconds_bucket{{route="{route}",le="{bound:g}"}} {count}'
                )
            lines.append(
                f'langevin_request_seconds_bucket{{route="{route}",le="+Inf"}} {total}'
            )
            lines.append(
                f'langevin_request_seconds_sum{{route="{route}"}} {self.seconds[route]:.6f}'
            )
            lines.append(f'langevin_request_seconds_count{{route="{route}"}} {total}')
        for title, counts in (("batches", self.batches), ("batched_items", self.items)):
            lines.append(f"# TYPE langevin_{title}_total counter")
            lines += [f'langevin_{title}_total{{queue="{name}"}} {count}'
                      for name, count in sorted(counts.items())]  # fmt: skip
        lines.append("# TYPE langevin_queue_length gauge")
        lines += [f'langevin_queue_length{{queue="{name}"}} {length}'
                  for name, length in sorted(self.queues.items())]  # fmt: skip
        return "\n".join(lines) + "\n"
