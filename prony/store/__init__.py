"""The catalogue of results: start at `Store`."""

from prony.store.catalogue import Store
from prony.store.rows import (
    ExperimentRow,
    ExperimentStatus,
    Found,
    FoundExperiment,
    Note,
    SeenHost,
    SeriesName,
    SeriesTrial,
    StoredJudgement,
    StoredTrial,
    Unreadable,
)
from prony.store.search import Search

__all__ = [
    "ExperimentRow",
    "ExperimentStatus",
    "Found",
    "FoundExperiment",
    "Note",
    "Search",
    "SeenHost",
    "SeriesName",
    "SeriesTrial",
    "Store",
    "StoredJudgement",
    "StoredTrial",
    "Unreadable",
]
