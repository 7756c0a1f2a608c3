"""A server of the catalogue, started fresh for each trial on CPUs of its own."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from prony.evidence.host import CpuPartition
from prony.evidence.server import ServerIdentity
from prony.evidence.trial import Ceiling
from prony.plan.load import ClosedLoad
from prony.plan.target import Launch
from prony.plan.trial import TrialPlan
from prony.server.build import Built, build, lacking
from prony.server.catalogue import Catalogue, Settings
from prony.server.launch import RunningServer, identity_of, launch
from prony.server.spec import ServerSpec
from prony.targets.base import OnLine, ServerUnderTest


@dataclass(slots=True)
class LaunchedServer(ServerUnderTest):
    spec: ServerSpec
    built: Built | None = None
    """Set by `prepare`."""
    host: str = "127.0.0.1"
    """Listening address."""
    log_dir: Path | None = None
    """Of its output; None: the cache."""
    owned: bool = True
    unix: str | None = None
    destinations: int = 1

    @classmethod
    def of(cls, asked: Launch, catalogue: Catalogue) -> LaunchedServer:
        """Raises UsageError for an unknown server or setting."""
        settings = Settings(dict(asked.settings), asked.heap, asked.jvm_flags, asked.jdk)
        spec = catalogue.resolve(asked.address, settings, asked.folder)
        return cls(spec if asked.known_as is None else spec.model_copy(update={"name": asked.known_as}))

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def identity(self) -> ServerIdentity:
        return identity_of(self.built or Built(self.spec))

    @property
    def https(self) -> bool:
        return self.spec.tls

    @property
    def http_version(self) -> str | None:
        return None if self.spec.http_version == "1.1" else self.spec.http_version

    @property
    def closes_after(self) -> int | None:
        return self.spec.ceilings.closes_after

    @property
    def max_connections(self) -> int | None:
        return self.spec.ceilings.max_connections

    @property
    def has_services(self) -> bool:
        return bool(self.spec.services)

    @property
    def workloads(self) -> tuple[str, ...]:
        return tuple(self.spec.workloads)

    def lacking(self) -> str | None:
        return lacking(self.spec)

    def prepare(self, on_line: OnLine) -> None:
        if self.built is None:
            (self.built,) = build([self.spec], on_line=on_line)

    def ceilings(self, plan: TrialPlan, cpus: int) -> tuple[Ceiling, ...]:
        """Declared workers ÷ declared delay, users ÷ declared delay."""
        delay_ms = plan.workload.delay_ms
        if delay_ms is None:
            return ()
        closed = isinstance(plan.load, ClosedLoad)
        at_once = {
            "users": plan.load.users if isinstance(plan.load, ClosedLoad) else None,
            "connections": None if closed else self.max_connections,
            "worker threads": self.spec.ceilings.workers(cpus),
        }
        return tuple(
            Ceiling(
                name=name,
                per_s=many / (delay_ms / 1000),
                explanation=f"{many} {name} ÷ {delay_ms:g} ms that every response takes by design",
            )
            for name, many in at_once.items()
            if many is not None
        )

    def start(self, partition: CpuPartition) -> RunningServer:
        """Raises EnvironmentFault."""
        assert self.built is not None, "prepare() comes first"
        return launch(
            self.built,
            cpus=partition.server,
            service_cpus=partition.services,
            host=self.host,
            log_dir=self.log_dir,
        )
