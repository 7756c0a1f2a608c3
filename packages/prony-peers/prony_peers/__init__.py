"""Adapters for other load generators: each builds its tool's command and parses the figures it reports."""

from prony_peers.ab import Ab
from prony_peers.artillery import Artillery
from prony_peers.base import Claim, Command, LoadGenerator, NotOffered, Offered, PeerLoad
from prony_peers.h2load import H2load
from prony_peers.jmeter import Jmeter
from prony_peers.oha import Oha
from prony_peers.wrk import Wrk

PEERS: tuple[LoadGenerator, ...] = (Wrk(), Ab(), H2load(), Oha(), Jmeter(), Artillery())

__all__ = ["PEERS", "Claim", "Command", "LoadGenerator", "NotOffered", "Offered", "PeerLoad"]
