"""All arms on a text, in the order in which they need each other."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from safetensors.torch import load_file, save_file

from langevin.errors import LangevinError

from .counted import PPMD_ORDERS, CountsPredictor, chosen_counts, ppmd_nll
from .foreseeing import Predictor, observed
from .one_network import NetworksPredictor, Plan, Trained, Weights, train, train_several
from .ours import measure_text
from .pooled import PooledPredictor, read_on, weigh
from .records import Record, Records, about, clocked
from .text_scores import last_of, mean_nll, of_nll, score_arm
from .text_sets import SCRATCH, Splits, TextSet, open_set
from .transformer import Transformer, TransformerPredictor, train_transformer

OPTIMISERS, SCHEDULES, RUNS = ("adam", "rmsprop", "sgd"), ("cosine", "plateau"), 4
SINGLE = tuple(f"{name}-{schedule}" for name in OPTIMISERS for schedule in SCHEDULES)
NETWORKS = (*SINGLE, "snapshots", "short-runs", "transformer")


@dataclass
class Bench:
    """One set with one seed."""

    chosen: TextSet
    seed: int
    data: Splits
    records: Records

    @property
    def steps(self) -> int:
        return max(RUNS, round(self.chosen.epochs * self.data.task.batches_per_epoch))

    def best(self, arms: Sequence[str]) -> Record:
        """Of those that are there, by validation."""
        held = [self.records.find(self.chosen.name, self.seed, arm) for arm in arms]
        if not any(held):
            raise LangevinError(f"expected a record of one of {', '.join(arms)} on "
                                f"{self.chosen.name}, seed {self.seed}; run that arm first")
        return min(filter(None, held), key=lambda record: float(record["valid_nll"]))

    def tuned_before(self, arm: str) -> Record | None:
        """The record of another seed, whose choice is kept."""
        found = [record for (name, seed, own), record in self.records.held.items()
                 if name == self.chosen.name and own == arm and seed != self.seed
                 and record["trials"]]
        return found[0] if found else None

    def rates(self, arm: str, kind: str) -> tuple[float, ...]:
        before = self.tuned_before(arm)
        return (before["recipe"]["rate"],) if before else self.chosen.rates[kind]

    def valid_nll(self, predictor: Predictor) -> float:
        log_p = observed(predictor, self.data.valid, self.data.vocabulary.start)
        return mean_nll(log_p) if bool(log_p.isfinite().all()) else float("inf")

    def keep(self, arm: str, weights: Sequence[Weights]) -> None:
        path = SCRATCH / "weights" / f"{self.chosen.name}-{self.seed}-{arm}.safetensors"
        path.parent.mkdir(parents=True, exist_ok=True)
        save_file({f"{n}/{name}": weight for n, own in enumerate(weights)
                   for name, weight in own.items()}, path)

    def kept(self, arm: str) -> list[Weights]:
        """Weights of an arm that was run here before."""
        path = SCRATCH / "weights" / f"{self.chosen.name}-{self.seed}-{arm}.safetensors"
        if not path.exists():
            raise LangevinError(f"expected the weights of {arm} in {path}, they are gone; remove "
                                f"its record and run it again")
        found: dict[int, Weights] = {}
        for name, weight in load_file(path).items():
            number, _, own = name.partition("/")
            found.setdefault(int(number), {})[own] = weight
        return [found[number] for number in sorted(found)]

    def predictor(self, arm: str) -> Predictor:
        """An arm of networks as its record says."""
        weights = self.kept(arm)
        if arm == "transformer":
            model = Transformer(self.data.size)
            model.load_state_dict(weights[0])
            return TransformerPredictor(model, self.data.vocabulary.start)
        return NetworksPredictor(self.data.task, weights)


def counts(bench: Bench) -> Record:
    """Order by validation; then validation is counted too."""
    with clocked() as clock:
        choice = chosen_counts(bench.data, bench.chosen)
        held_out = chosen_counts(bench.data, bench.chosen).counts
        choice.counts.add(bench.data.valid)
    scores = score_arm(CountsPredictor(choice.counts), bench.data, bench.chosen,
                       CountsPredictor(held_out))
    trials = [{"order": order, "valid_nll": nll} for order, nll in choice.nll.items()]
    return scores | {"recipe": {"order": choice.counts.order}, "seconds": clock.cpu / 2,
                     "valid_nll": min(choice.nll.values()), "trials": trials}


def counts_reading_on(bench: Bench) -> Record:
    choice = chosen_counts(bench.data, bench.chosen)
    with clocked() as clock:
        choice.counts.add(bench.data.valid)
        nll = -choice.counts.log_probs(bench.data.test, adapt=True)
    return of_nll(nll, bench.chosen) | {
        "recipe": {"order": choice.counts.order}, "seconds": clock.cpu, "networks": 1,
        "trials": [{"order": order, "valid_nll": own} for order, own in choice.nll.items()],
    }  # fmt: skip


def ppmd(bench: Bench) -> Record:
    """What the test needs after the rest; the order is chosen by what validation needs."""
    decode = bench.data.vocabulary.decode
    train, valid, test = (decode(part.tolist()) for part in
                          (bench.data.train, bench.data.valid, bench.data.test))
    with clocked() as clock:
        trials = [{"order": order, "valid_nll": ppmd_nll(train, valid, order)}
                  for order in PPMD_ORDERS]
        order = int(min(trials, key=lambda trial: trial["valid_nll"])["order"])
        nll = ppmd_nll(train + valid, test, order)
    told = of_nll(torch.full((len(test),), nll), bench.chosen) | {"blocks": None}
    return told | {"recipe": {"order": order}, "seconds": clock.cpu, "trials": trials, "networks": 0}


def tune(bench: Bench, arm: str, kind: str, train_at: Callable[[float], Trained],
         predictor_of: Callable[[Trained], Predictor]) -> tuple[Trained, Record]:  # fmt: skip
    """Train at each rate, keep what validation prefers."""
    trials, best, least = list[Record](), None, float("inf")
    rates = bench.rates(arm, kind)
    for rate in rates:
        trained = train_at(rate)
        nll = bench.valid_nll(predictor_of(trained))
        trials.append({"rate": rate, "valid_nll": nll if nll < float("inf") else None,
                       "seconds": round(trained.seconds, 2)})
        say(f"  {arm} at {rate:g}: validation {nll:.4f}, {trained.seconds:.0f} s")
        if nll < least or best is None:
            best, least, rate_of_best = trained, nll, rate
    assert best is not None
    about_it = {"valid_nll": least, "trials": trials if len(rates) > 1 else [],
                "seconds": best.seconds, "recipe": {"rate": rate_of_best, "steps": bench.steps}}
    return best, about_it


def one_network(bench: Bench, optimiser: str, schedule: str) -> Record:
    arm, task = f"{optimiser}-{schedule}", bench.data.task

    def train_at(rate: float) -> Trained:
        return train(task, Plan(optimiser, schedule, rate, bench.steps, bench.seed))

    best, told = tune(bench, arm, optimiser, train_at,
                      lambda trained: NetworksPredictor(task, [trained.end]))
    bench.keep(arm, [best.end])
    if schedule == "plateau":
        bench.keep(f"{arm}-along", best.snapshots)
    return told | score_arm(NetworksPredictor(task, [best.end]), bench.data, bench.chosen)


def snapshots(bench: Bench) -> Record:
    """Of the best optimiser's plateau run; how many of the last, validation says."""
    source = bench.best([f"{name}-plateau" for name in OPTIMISERS])
    along = bench.kept(f"{source['arm']}-along")
    log_p = observed(NetworksPredictor(bench.data.task, along), bench.data.valid,
                     bench.data.vocabulary.start)
    count = last_of(log_p)
    bench.keep("snapshots", along[-count:])
    scores = score_arm(NetworksPredictor(bench.data.task, along[-count:]), bench.data, bench.chosen)
    return scores | {"valid_nll": mean_nll(log_p[-count:]), "seconds": source["seconds"],
                     "recipe": {"of": source["arm"], "last": count}, "trials": source["trials"]}


def short_runs(bench: Bench) -> Record:
    """Averaged; each has a quarter of the steps."""
    before = bench.tuned_before("short-runs")
    best_plateau = bench.best([f"{name}-plateau" for name in OPTIMISERS])["arm"]
    optimiser = before["recipe"]["optimiser"] if before else best_plateau.split("-")[0]
    task = bench.data.task

    def train_at(rate: float) -> Trained:
        return train_several(task, Plan(optimiser, "plateau", rate, bench.steps, bench.seed), RUNS)

    best, told = tune(bench, "short-runs", optimiser, train_at,
                      lambda trained: NetworksPredictor(task, trained.snapshots))
    told["recipe"] |= {"optimiser": optimiser, "runs": RUNS}
    bench.keep("short-runs", best.snapshots)
    return told | score_arm(NetworksPredictor(task, best.snapshots), bench.data, bench.chosen)


def transformer(bench: Bench) -> Record:
    """For as many seconds as one recurrent network took here."""
    seconds = bench.best(SINGLE)["seconds"]
    steps = list[int]()

    def train_at(rate: float) -> Trained:
        trained, taken = train_transformer(bench.data, rate, bench.seed, seconds)
        steps.append(taken)
        return trained

    def predictor_of(trained: Trained) -> Predictor:
        model = Transformer(bench.data.size)
        model.load_state_dict(trained.end)
        return TransformerPredictor(model, bench.data.vocabulary.start)

    best, told = tune(bench, "transformer", "transformer", train_at, predictor_of)
    told["recipe"]["steps"] = steps
    bench.keep("transformer", [best.end])
    return told | score_arm(predictor_of(best), bench.data, bench.chosen)


def best_pooled(bench: Bench) -> Record:
    """What validation prefers of all networks, pooled with counts; static, and reading on."""
    source = bench.best(NETWORKS)
    network, choice = bench.predictor(source["arm"]), chosen_counts(bench.data, bench.chosen)
    weights = weigh(network, choice.counts, bench.data)
    share = weights.network
    held_out = PooledPredictor(network, chosen_counts(bench.data, bench.chosen).counts, share)
    choice.counts.add(bench.data.valid)
    pooled = PooledPredictor(network, choice.counts, share)
    scores = score_arm(pooled, bench.data, bench.chosen, held_out)
    on = of_nll(read_on(network, choice.counts, weights, bench.data), bench.chosen)
    return scores | {
        "valid_nll": None, "seconds": source["seconds"], "trials": source["trials"],
        "recipe": {"of": source["arm"], "share": share, "order": choice.counts.order},
        "also": {"reading on": on},
    }  # fmt: skip


ARMS: dict[str, Callable[[Bench], Record]] = {
    "counts": counts, "counts-reading-on": counts_reading_on, "ppmd": ppmd,
    **{f"{name}-{schedule}": partial(one_network, optimiser=name, schedule=schedule)
       for name in OPTIMISERS for schedule in SCHEDULES},
    "snapshots": snapshots, "short-runs": short_runs, "transformer": transformer,
    "best-pooled": best_pooled,
    "ours": lambda bench: measure_text(bench.chosen, bench.seed, bench.data),
}  # fmt: skip


def run_texts(sets: Sequence[TextSet], seeds: Sequence[int], arms: Sequence[str],
              records: Records) -> None:  # fmt: skip
    """What is not there yet, one after the other."""
    for chosen in sets:
        for seed in seeds:
            missing = [arm for arm in ARMS if arm in arms
                       and not records.find(chosen.name, seed, arm)
                       and not (arm == "ppmd" and chosen.level != "byte")]
            if not missing:
                continue
            bench = Bench(chosen, seed, open_set(chosen, seed), records)
            for arm in missing:
                say(f"{chosen.name}, seed {seed}: {arm}")
                record = {"set": chosen.name, "seed": seed, "arm": arm} | ARMS[arm](bench) | about()
                records.put(record)
                say(f"  {record['nll']:.4f} nats")


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
