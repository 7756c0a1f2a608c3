"""Changes of every series, one entry per experiment, for page and feed; cached per state."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from dataclasses import dataclass
from uuid import NAMESPACE_URL, UUID, uuid5

from prony.store import Store
from prony_serve.trends.reading import HEADLINES, trend_of
from prony_serve.trends.series import ChangePoint, Difference, TrendTrial, TrendView, change_words
from prony_serve.trends.stored import SeriesName, series_names, series_trials
from prony_serve.web.cache import Cache

log = logging.getLogger("prony_serve.web")

MOST_SERIES = 200
"""Only the newest series are searched."""
MOST_ENTRIES = 100
KEPT_S = 300.0


@dataclass(frozen=True, slots=True)
class LevelChange:
    """A change of a series, with all figures that show it, headlines first."""

    points: tuple[tuple[TrendView, ChangePoint], ...]

    @property
    def trend(self) -> TrendView:
        """The trend of the first figure."""
        return self.points[0][0]

    @property
    def trial(self) -> TrendTrial:
        """First trial of the new level."""
        return self.points[0][1].trial

    @property
    def differences(self) -> tuple[Difference, ...]:
        """Differences between the last trial before and the first after."""
        return self.points[0][1].differences

    @property
    def id(self) -> UUID:
        """Stable: derived from the series and the first experiment of the new level."""
        view = self.trend
        return uuid5(
            NAMESPACE_URL, "|".join((view.server, view.workload, view.load, self.trial.experiment_id))
        )

    @property
    def words(self) -> str:
        """All figures that changed, in a sentence."""
        return "; ".join(change_words(view, point) for view, point in self.points)


class Changes:
    """The change points of a store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: Cache[tuple[LevelChange, ...]] = Cache(2 * MOST_SERIES)

    def newest(self) -> tuple[LevelChange, ...]:
        """Changes of the headline figures in the newest series, newest first."""
        return tuple(
            sorted(self._all(), key=lambda change: change.trial.started, reverse=True)[:MOST_ENTRIES]
        )

    def note(self) -> str:
        """Why changes cannot be searched for; else empty."""
        from prony_serve.trends import otava

        return "" if otava.is_installed() else f"Apache Otava is not installed: {otava.INSTALL}"

    def _all(self) -> Iterator[LevelChange]:
        names = sorted(series_names(self._store), key=lambda name: name.newest, reverse=True)
        for name in names[:MOST_SERIES]:
            yield from self._known.get(_state(name), lambda name=name: self._of_series(name))  # type: ignore[misc]

    def _of_series(self, name: SeriesName) -> tuple[LevelChange, ...]:
        """Empty for a series with unreadable rows, so that the others are shown."""
        grouped: dict[str, list[tuple[TrendView, ChangePoint]]] = {}
        try:
            series = series_trials(self._store, name.server, name.workload, name.load_name)
            for figure in HEADLINES:
                view = trend_of(self._store, series, name.server, name.workload, name.load_name, figure)
                for point in view.changes:
                    grouped.setdefault(point.trial.experiment_id, []).append((view, point))
        except Exception:
            log.warning("not searched for changes: %s, %s, %s", *_state(name)[:3], exc_info=True)
            return ()
        return tuple(LevelChange(tuple(points)) for points in grouped.values())


def _state(name: SeriesName) -> tuple[str, str, str, int, str, int]:
    """Cache key: changes with every trial, and every KEPT_S for trials judged again."""
    age = int(time.monotonic() / KEPT_S)
    return name.server, name.workload, name.load_name, name.trials, name.newest.isoformat(), age
