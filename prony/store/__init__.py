"""The catalogue of results. `Store` is the way in; the rest of the package is its inside."""

from prony.store.catalogue import Store
from prony.store.rows import ExperimentRow, StoredJudgement, StoredTrial

__all__ = ["ExperimentRow", "Store", "StoredJudgement", "StoredTrial"]
