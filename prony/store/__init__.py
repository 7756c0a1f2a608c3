"""The catalogue of results: start at `Store`."""

from prony.store.catalogue import Store
from prony.store.rows import ExperimentRow, ExperimentStatus, StoredJudgement, StoredTrial

__all__ = ["ExperimentRow", "ExperimentStatus", "Store", "StoredJudgement", "StoredTrial"]
