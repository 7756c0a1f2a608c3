"""Other load generators, one adapter each: its command, and what it claims. An adapter must not know what was
measured about it.
"""

from prony.peers.ab import Ab
from prony.peers.artillery import Artillery
from prony.peers.base import Claim, Command, LoadGenerator, NotOffered, Offered, PeerLoad
from prony.peers.h2load import H2load
from prony.peers.jmeter import Jmeter
from prony.peers.oha import Oha
from prony.peers.wrk import Wrk

PEERS: tuple[LoadGenerator, ...] = (Wrk(), Ab(), H2load(), Oha(), Jmeter(), Artillery())

__all__ = ["PEERS", "Claim", "Command", "LoadGenerator", "NotOffered", "Offered", "PeerLoad"]
