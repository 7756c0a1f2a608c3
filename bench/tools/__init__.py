"""An adapter per load generator: its command for a case, and its claim afterwards."""

from bench.cases import EVIDENCE
from bench.tools.prony import Prony
from bench.tools.vegeta import Vegeta
from prony_peers.ab import Ab
from prony_peers.base import Claim, Command, LoadGenerator, NotOffered, PeerLoad
from prony_peers.h2load import H2load
from prony_peers.oha import Oha
from prony_peers.wrk import Wrk

TOOLS: tuple[LoadGenerator, ...] = (
    *(Wrk(), Ab(), H2load(), Oha(), Vegeta(), Prony("io_uring"), Prony("epoll")),
    *(Prony("io_uring", evidence) for evidence in EVIDENCE),
    *(Prony("epoll", evidence) for evidence in EVIDENCE),
)

__all__ = ["TOOLS", "Claim", "Command", "LoadGenerator", "NotOffered", "PeerLoad"]
