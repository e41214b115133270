"""Simulates actors, replay shards and a learner that exchange data over rate limiters.

    python -m benchmarks.distribute_model

It predicts the behaviour of more machines than one has: which process waits for which,
the age of the weights that actors use, and the load of a shard. The limiters are the
replay service's own. An actor makes a message of items and waits until its shard has
inserted them; the learner draws its share of each batch from each living shard, some
batches ahead. A shard does one thing at a time, and takes a time for each item that it
writes or samples. Networks take no time. The times and sizes of `CASES` are guesses:
for answers about a program, give a `Case` the times that it and its servers take.
"""

from __future__ import annotations

import bisect
import collections
import dataclasses
import heapq
import itertools
import random
import time
from collections.abc import Callable
from typing import Any

from tfrl.distribute.shards import home_shard, limiter_windows
from tfrl.replay_service import rate_limiters

_SLICE = 256  # Items that a shard handles before it looks at its other queue.


@dataclasses.dataclass(frozen=True)
class Case:
    """A case to simulate. Times are in seconds, sizes in bytes.

    Attributes:
      name: The difference from the other cases.
      actors: The number of actors, each of one environment.
      shards: The number of replay servers.
      batch: The number of items in an update, of all learners together.
      step_time: The time of an update.
      steps_per_second: The speed of an actor; a step makes an item.
      samples_per_insert: See `rate_limiters.SampleToInsertRatio`.
      min_size: The number of items that all shards together hold before sampling.
      error_buffer: Half of the width of the window of a limiter of all shards.
      plain_division: Whether the window is divided by the number of shards, however
        narrow that is; else by `limiter_windows.divide`.
      whole_messages: Whether a shard inserts only whole messages and samples only whole
        draws. The replay service inserts and samples as many items as its limiter
        allows.
      items_per_message: The number of items that an actor sends together.
      batches_ahead: The number of batches that are requested ahead of their use.
      write_time: A shard's time for an item that it inserts.
      sample_time: A shard's time for an item that it samples.
      item_bytes: The size of an item.
      weights_bytes: The size of the weights.
      pull_period: The time between an actor's pulls.
      publish_every: The number of updates between publications.
      dies_at: When the first shard dies; its actors move at once.
      seconds: The simulated time.
    """

    name: str
    actors: int = 1000
    shards: int = 64
    batch: int = 8192
    step_time: float = 0.045
    steps_per_second: float = 500.0
    samples_per_insert: float = 8.0
    min_size: int = 1000
    error_buffer: float = 10_000.0
    plain_division: bool = False
    whole_messages: bool = False
    items_per_message: int = 64
    batches_ahead: int = 2
    write_time: float = 9e-6
    sample_time: float = 100e-6
    item_bytes: float = 56e3
    weights_bytes: float = 5e6
    pull_period: float = 1.0
    publish_every: int = 10
    dies_at: float | None = None
    seconds: float = 20.0

    def limiter(self) -> rate_limiters.RateLimiter:
        """Returns the rate limiter of each shard."""
        whole = rate_limiters.SampleToInsertRatio(
            self.samples_per_insert, self.min_size, self.error_buffer
        )
        if self.plain_division:
            part, size = self.error_buffer / self.shards, self.min_size // self.shards
            middle = size * self.samples_per_insert
            return rate_limiters.RateLimiter(
                self.samples_per_insert, size, middle - part, middle + part
            )
        return limiter_windows.divide(
            whole,
            self.shards,
            items_per_message=self.items_per_message,
            samples_per_draw=-(-self.batch // self.shards),
        )


CASES = (
    *(Case(f"{n} actors, 1 shard", n, 1, 64, 0.005) for n in (1, 2, 4)),
    Case(
        "window divided plainly, whole messages",
        plain_division=True,
        whole_messages=True,
    ),
    Case("window divided plainly", plain_division=True),
    Case("batch 512", batch=512),
    Case("batch 8,192"),
    Case("batch 65,536", batch=65_536, step_time=0.245),
    Case(
        "small items, 1 sample per insert",
        step_time=0.025,
        samples_per_insert=1.0,
        write_time=5e-6,
        sample_time=10e-6,
        item_bytes=30.0,
    ),
    Case("batch 8,192, a shard dies at 10 s", dies_at=10.0),
)


class Model:
    """A simulation: its clock, its shards, and the statistics of actors and learner.

    Attributes:
      case: The simulated case.
      limiter: The rate limiter of each shard.
      now: The time.
      shards: The shards.
      lags: The age of an item's weights when it was inserted, in updates.
      ages: The ages of items when they were sampled.
    """

    def __init__(self, case: Case) -> None:
        """Begins at time 0, with empty shards and the first weights.

        Args:
          case: The simulated case.
        """
        self.case, self.limiter = case, case.limiter()
        self.now = 0.0
        self.random = random.Random(0)
        self.shards = [Shard(self) for _ in range(case.shards)]
        self.lags: list[int] = []
        self.ages: list[float] = []
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = itertools.count()
        self._updates = self._ready = self._requests = 0
        self._trained = self._blocked = 0.0
        self._trains = False
        self._published = [0.0]  # When; every `publish_every` updates.
        self._first_pulls = [
            self.random.uniform(0, case.pull_period) for _ in range(case.actors)
        ]
        self._waiting: dict[int, float] = {}  # Since when, by actor.
        self._homes = [
            home_shard.preferences(f"actor {actor}", case.shards)
            for actor in range(case.actors)
        ]

    def after(self, delay: float, event: Callable[[], None]) -> None:
        """Calls a function when a time has passed."""
        heapq.heappush(self._events, (self.now + delay, next(self._numbers), event))

    def run(self) -> dict[str, float]:
        """Simulates; returns the results by their names, with units."""
        case, started = self.case, time.perf_counter()
        for actor in range(case.actors):
            self._act(actor)
        for _ in range(case.batches_ahead):
            self._request()
        if case.dies_at is not None:
            self.after(case.dies_at, self._kill)
        while self._events and self._events[0][0] <= case.seconds:
            self.now, _, event = heapq.heappop(self._events)
            event()
        self.now = case.seconds
        return self._results(next(self._numbers) / (time.perf_counter() - started))

    def _act(self, actor: int) -> None:
        """Lets an actor make a message with the weights that it has now."""
        weights = self._pulled(self._last_pull(actor)) * self.case.publish_every
        seconds = self.case.items_per_message / self.case.steps_per_second
        self.after(seconds, lambda: self._write(actor, weights))

    def _write(self, actor: int, weights: int) -> None:
        shard = next(s for m in self._homes[actor] if (s := self.shards[m]).is_alive)
        self._waiting[actor] = self.now

        def inserted() -> None:
            self._blocked += self.now - self._waiting.pop(actor)
            self.lags.append(self._updates - weights)
            self._act(actor)

        shard.ask(WRITE, self.case.items_per_message, inserted)

    def _request(self) -> None:
        """Asks every living shard for its share of a batch."""
        shards = [shard for shard in self.shards if shard.is_alive]
        self._requests += 1
        least, more = divmod(self.case.batch, len(shards))
        counts = [
            least + ((m + self._requests) % len(shards) < more)
            for m in range(len(shards))
        ]
        missing = sum(count > 0 for count in counts)

        def drawn() -> None:
            nonlocal missing
            missing -= 1
            if not missing:
                self._ready += 1
                self._train()

        for shard, count in zip(shards, counts, strict=True):
            if count:
                shard.ask(DRAW, count, drawn)

    def _train(self) -> None:
        if self._trains or not self._ready:
            return
        self._trains, self._ready = True, self._ready - 1
        self._trained += min(self.case.step_time, self.case.seconds - self.now)
        self.after(self.case.step_time, self._updated)
        self._request()

    def _updated(self) -> None:
        self._trains = False
        self._updates += 1
        if self._updates % self.case.publish_every == 0:
            self._published.append(self.now)
        self._train()

    def _kill(self) -> None:
        """Kills the first shard; the others take over its requests."""
        shard, *others = self.shards
        shard.is_alive = False
        for kind, requests in shard.requests.items():
            for (left, answer), other in zip(
                requests, itertools.cycle(others), strict=False
            ):
                count = self.case.items_per_message if kind == WRITE else left
                other.ask(kind, count, answer)

    def _last_pull(self, actor: int) -> float:
        first, period = self._first_pulls[actor], self.case.pull_period
        return first + (self.now - first) // period * period

    def _pulled(self, at: float) -> int:
        """Returns the number of the weights that an actor pulls at a time."""
        return max(bisect.bisect_right(self._published, at) - 1, 0)

    def _pulls(self) -> list[float]:
        """Returns how old weights were when an actor pulled them for the first time."""
        found = []
        for actor, at in enumerate(self._first_pulls):
            had, last = 0, self._last_pull(actor)
            while at <= last:
                number = self._pulled(at)
                if number != had:
                    found.append(at - self._published[number])
                had, at = number, at + self.case.pull_period
        return found

    def _results(self, events_per_second: float) -> dict[str, float]:
        case, seconds = self.case, self.case.seconds
        inserts = sum(shard.counts.inserts for shard in self.shards)
        samples = sum(shard.counts.samples for shard in self.shards)
        busy = [shard.busy / seconds for shard in self.shards]
        differences = [
            case.samples_per_insert * shard.counts.inserts - shard.counts.samples
            for shard in self.shards
        ]
        middle = case.samples_per_insert * self.limiter.min_size_to_sample
        megabytes = case.item_bytes / case.shards / seconds / 1e6
        blocked = self._blocked + sum(seconds - at for at in self._waiting.values())
        pulls = self._pulls()
        return {
            "inserts/s": inserts / seconds,
            "samples/s": samples / seconds,
            "samples per insert": samples / max(inserts, 1),
            "inserts ahead, in samples": sum(differences) - case.shards * middle,
            "half the window asked for": case.error_buffer,
            "half the sum of windows": case.shards
            * (self.limiter.max_diff - self.limiter.min_diff)
            / 2,
            "spread of differences": max(differences) - min(differences),
            "updates/s": self._updates / seconds,
            "actors blocked, %": 100 * blocked / seconds / case.actors,
            "learner waits, %": 100 * (1 - self._trained / seconds),
            "shard busy, mean, %": 100 * sum(busy) / len(busy),
            "shard busy, most, %": 100 * max(busy),
            "MB/s into a shard": inserts * megabytes,
            "MB/s out of a shard": samples * megabytes,
            "weights, MB/s": len(pulls) * case.weights_bytes / seconds / 1e6,
            "published to pulled, s": sum(pulls) / max(len(pulls), 1),
            "policy lag, p50": quantile(self.lags, 0.5),
            "policy lag, p99": quantile(self.lags, 0.99),
            "age of samples, p50, s": quantile(self.ages, 0.5),
            "age of samples, p99, s": quantile(self.ages, 0.99),
            "events/s of this program": events_per_second,
        }


WRITE, DRAW = "write", "draw"


class Shard:
    """A server, which handles one slice of a request at a time.

    Attributes:
      counts: The counts of its rate limiter.
      busy: For how long it has worked.
      is_alive: Whether it answers.
      requests: By kind, the number of items that are left, and the function to call
        then.
    """

    def __init__(self, model: Model) -> None:
        """Creates an empty shard.

        Args:
          model: Has the case and the clock.
        """
        self.counts = rate_limiters.Counts()
        self.busy = 0.0
        self.is_alive = True
        self.requests: dict[str, collections.deque[list[Any]]] = {
            WRITE: collections.deque(),
            DRAW: collections.deque(),
        }
        self._model = model
        self._works = False
        self._inserts: list[tuple[int, float]] = []  # The count after each, and when.

    def ask(self, kind: str, count: int, answer: Callable[[], None]) -> None:
        """Adds a request; `answer` is called when it is done."""
        self.requests[kind].append([count, answer])
        self._work(kind)

    def _work(self, first: str) -> None:
        """Begins with a request that the limiter allows; prefers the kind `first`."""
        if self._works or not self.is_alive:
            return
        for kind in (first, DRAW if first == WRITE else WRITE):
            count = self._allowed(kind)
            if count:
                self._begin(kind, count)
                return

    def _begin(self, kind: str, count: int) -> None:
        """Begins with `count` items of the oldest request of a kind."""
        counts, seconds = self.counts, count * self._model.case.write_time
        self.counts = counts._replace(inserts=counts.inserts + count)
        if kind == DRAW:
            seconds = count * self._model.case.sample_time
            self.counts = counts._replace(samples=counts.samples + count)
        self._works = True
        self.busy += seconds
        self._model.after(seconds, lambda: self._finish(kind, count))

    def _allowed(self, kind: str) -> int:
        """Returns how many items of the oldest request can be handled now."""
        if not self.requests[kind]:
            return 0
        number = rate_limiters.num_inserts
        if kind == DRAW:
            number = rate_limiters.num_samples
        left, _ = self.requests[kind][0]
        if self._model.case.whole_messages:
            return left if number(self._model.limiter, self.counts, left) == left else 0
        return number(self._model.limiter, self.counts, min(left, _SLICE))

    def _finish(self, kind: str, count: int) -> None:
        self._works = False
        if not self.is_alive:
            return
        if kind == WRITE:
            self._inserts.append((self.counts.inserts, self._model.now))
        else:
            self._note_age()
        request = self.requests[kind][0]
        request[0] -= count
        if not request[0]:
            self.requests[kind].popleft()
            request[1]()
        self._work(DRAW if kind == WRITE else WRITE)

    def _note_age(self) -> None:
        """Notes the age of an item that is drawn uniformly."""
        item = self._model.random.randrange(self._inserts[-1][0])
        place = bisect.bisect_right(self._inserts, (item, float("inf")))
        self._model.ages.append(self._model.now - self._inserts[place][1])


def quantile(values: list[Any], fraction: float) -> float:
    """Returns a quantile of some values; NaN of none."""
    if not values:
        return float("nan")
    return float(sorted(values)[round(fraction * (len(values) - 1))])


def main() -> None:
    """Prints the results of all cases, a column for each."""
    for number, case in enumerate(CASES, start=1):
        print(f"{number:3}. {case.name}")
    columns = [Model(case).run() for case in CASES]
    print(" " * 26 + "".join(f"{number:10}" for number in range(1, len(CASES) + 1)))
    for name in columns[0]:
        print(f"{name:26}" + "".join(f"{column[name]:10.4g}" for column in columns))


if __name__ == "__main__":
    main()
