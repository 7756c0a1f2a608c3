"""The catalogue of results. `Store` is the way in; the rest of the package is its inside."""

from prony.store.catalogue import Store
from prony.store.rows import ExperimentRow, ExperimentStatus, StoredJudgement, StoredTrial

__all__ = ["ExperimentRow", "ExperimentStatus", "Store", "StoredJudgement", "StoredTrial"]
