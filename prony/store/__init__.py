"""The catalogue of results: start at `Store`."""

from prony.store.catalogue import Store as Store
from prony.store.rows import ExperimentRow as ExperimentRow
from prony.store.rows import ExperimentStatus as ExperimentStatus
from prony.store.rows import Found as Found
from prony.store.rows import FoundExperiment as FoundExperiment
from prony.store.rows import Note as Note
from prony.store.rows import StoredJudgement as StoredJudgement
from prony.store.rows import StoredTrial as StoredTrial
from prony.store.search import Search as Search
