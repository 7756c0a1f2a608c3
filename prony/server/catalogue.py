"""The catalogue of servers: finds their `server.yaml`, resolves inheritance, and explains errors."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from prony.errors import UsageError
from prony.plan.catalogue_roots import roots as catalogue_roots
from prony.plan.target import divided, is_image, is_path
from prony.plan.yamlfile import nearest, read_mapping, validate
from prony.server.command_line import image_of, server_of
from prony.server.spec import Ceilings, Layer, ServerSpec, Value, Variant, overlay

SERVER_FILE = "server.yaml"
DEFAULTS_FILE = "defaults.yaml"
Lines = dict[tuple[object, ...], int]
"""Of each key, see `prony.plan.yamlfile.read_mapping`."""


GENERAL = ("heap", "jdk")
"""Of every server on a JVM."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Values replace the server's `settings`, flags follow its own."""

    values: dict[str, Value] = field(default_factory=dict)
    heap: str | None = None
    jvm_flags: tuple[str, ...] = ()
    jdk: str | None = None
    """Major version or directory."""


@dataclass(frozen=True, slots=True)
class Catalogue:
    """Servers below some directories. Files are read on demand, so a broken one harms no other."""

    roots: tuple[Path, ...]
    files: Mapping[str, Path]
    """Name -> its server.yaml; the first root with that name wins."""

    @classmethod
    def load(cls, roots: Sequence[Path] | None = None) -> Catalogue:
        """By default from `prony.plan.catalogue_roots`."""
        places = tuple(catalogue_roots("servers") if roots is None else roots)
        files: dict[str, Path] = {}
        for root in places:
            for file in sorted(root.glob(f"*/{SERVER_FILE}")):
                files.setdefault(file.parent.name, file)
        return cls(places, files)

    def names(self) -> tuple[str, ...]:
        """Sorted, without variants."""
        return tuple(sorted(self.files))

    def specs(self) -> tuple[list[ServerSpec], list[UsageError]]:
        """Every readable server, each followed by its variants and their combinations; and the errors."""
        good: list[ServerSpec] = []
        bad: list[UsageError] = []
        for name in self.names():
            try:
                good += [self.resolve(address) for address in self.resolve(name).addresses()]
            except UsageError as fault:
                bad.append(fault)
        return good, bad

    def resolve(
        self, address: str, settings: Settings | None = None, folder: Path | None = None
    ) -> ServerSpec:
        """The server addressed as `name`, `name:variant+variant+setting=value`, by the path of a server.yaml
        or its folder, `image:NAME`, or with `folder` by the command line to run there. Raises UsageError:
        unknown names with the nearest known one, faults in a file with its line.
        """
        if folder is not None or is_image(address):
            spec = image_of(address) if folder is None else server_of(address, folder)
            return spec if settings is None else configure(spec, settings)
        name, rest = divided(address)
        words = [word for word in rest.split("+") if word]
        file = self._file(name)
        data, lines = read_mapping(file)
        shown = name if name in self.files else file.parent.name
        if data.get("name", file.parent.name) != file.parent.name:
            raise UsageError(
                f"{file}:{lines[('name',)]}: 'name' is {data['name']!r}, but the folder is "
                f"'{file.parent.name}': leave the key out"
            )
        own = _layer(file, {key: value for key, value in data.items() if key != "name"}, lines)
        merged = overlay(self._inherited(file, own, lines, ()), own)
        variants: dict[str, dict[str, object]] = merged.pop("variants")  # type: ignore[assignment]
        chosen = _chosen(shown, variants, [word for word in words if "=" not in word])
        for variant in chosen:
            merged = overlay(merged, {key: keys for key, keys in variants[variant].items() if key != "group"})
        build = merged.get("build")
        if isinstance(build, dict):
            merged["build"] = {"dir": str(file.parent.resolve())} | build
        merged |= {
            "name": ":".join(filter(None, (shown, "+".join(chosen)))),
            "file": file,
            "variants": variants,
        }
        spec = validate(ServerSpec, merged, file, lines)
        spec = configure(spec, parse([word for word in words if "=" in word]))
        return spec if settings is None else configure(spec, settings)

    def _file(self, name: str) -> Path:
        if name in self.files:
            return self.files[name]
        if is_path(name):
            path = Path(name)
            path = path / SERVER_FILE if path.is_dir() else path
            if not path.is_file():
                raise UsageError(
                    f"no file {path}; name a server of the catalogue or the directory of a {SERVER_FILE}"
                )
            return path.resolve()
        if not self.files:
            where = ", ".join(map(str, self.roots)) or "no folder"
            raise UsageError(f"unknown server '{name}': no servers in {where}; set PRONY_SERVERS")
        here = f", did you mean './{name}'?" if (Path(name) / SERVER_FILE).is_file() else ""
        raise UsageError(
            f"unknown server '{name}'{here or nearest(name, self.names())}; known servers: "
            f"{', '.join(self.names())}"
        )

    def _inherited(
        self, file: Path, keys: Mapping[str, object], lines: Lines, seen: tuple[str, ...]
    ) -> dict[str, object]:
        """The defaults of the runtime named in `keys`, with what it inherits itself."""
        runtime = keys.get("runtime")
        if not isinstance(runtime, str):
            return {}
        defaults = self._defaults(file, runtime)
        if defaults is None:
            known = sorted(
                {path.parent.name for root in self._places(file) for path in root.glob(f"*/{DEFAULTS_FILE}")}
            )
            raise UsageError(
                f"{file}:{lines.get(('runtime',), 1)}: unknown runtime '{runtime}'{nearest(runtime, known)}; "
                f"known runtimes: {', '.join(known) or 'none'}"
            )
        if runtime in seen:
            raise UsageError(f"{file}: circular inheritance of runtimes: {' -> '.join((*seen, runtime))}")
        data, below_lines = read_mapping(defaults)
        below = _layer(defaults, data, below_lines)
        merged = overlay(self._inherited(defaults, below, below_lines, (*seen, runtime)), below)
        return merged | {"runtime": runtime}

    def _places(self, file: Path) -> tuple[Path, ...]:
        return (file.parent.parent, *self.roots)

    def _defaults(self, file: Path, runtime: str) -> Path | None:
        candidates = (place / runtime / DEFAULTS_FILE for place in self._places(file))
        return next((path for path in candidates if path.is_file()), None)


def _layer(file: Path, data: dict[str, object], lines: Lines) -> dict[str, object]:
    """Checked by themselves, so that an error names the file they are in; every `build.dir` absolute."""
    variants = data.get("variants") or {}
    if not isinstance(variants, dict):
        raise UsageError(
            f"{file}:{lines[('variants',)]}: 'variants' is {variants!r}: expected names with keys below each"
        )
    layers: dict[str, object] = {}
    for name, keys in variants.items():
        if not isinstance(keys, dict | None):
            raise UsageError(
                f"{file}:{lines[('variants', name)]}: the variant '{name}' is {keys!r}: "
                "expected keys with values"
            )
        layers[str(name)] = _checked(Variant, file, keys or {}, lines, ("variants", name))
    own = _checked(Layer, file, {key: value for key, value in data.items() if key != "variants"}, lines, ())
    return own | {"variants": layers}


def _checked(
    model: type[Layer], file: Path, data: dict[str, object], lines: Lines, at: tuple[object, ...]
) -> dict[str, object]:
    below = {
        key[len(at) :]: line for key, line in lines.items() if key[: len(at)] == at and len(key) > len(at)
    }
    validate(model, data, file, below)
    build = data.get("build")
    if isinstance(build, dict) and isinstance(build.get("dir"), str):
        return data | {"build": build | {"dir": str((file.parent / build["dir"]).resolve())}}
    return data


def _chosen(server: str, variants: Mapping[str, Mapping[str, object]], words: Sequence[str]) -> list[str]:
    """The named variants, in the order of the file. Raises UsageError for unknown ones and exclusive ones."""
    for word in words:
        if word not in variants:
            listed = f"its variants: {', '.join(sorted(variants))}" if variants else "it has no variants"
            hint = nearest(word, list(variants))
            raise UsageError(f"server '{server}' has no variant '{word}'{hint}; {listed}")
    chosen = [name for name in variants if name in words]
    for at, variant in enumerate(chosen):
        for other in chosen[at + 1 :]:
            groups = [variants[name].get("group") for name in (variant, other)]
            if None in groups or groups[0] == groups[1]:
                raise UsageError(
                    f"variants '{variant}' and '{other}' of '{server}' exclude each other; name one of them"
                )
    return chosen


def parse(words: list[str]) -> Settings:
    """From the words `name=value` of an address."""
    pairs = dict(word.split("=", 1) for word in words)
    heap, jdk = pairs.pop("heap", None), pairs.pop("jdk", None)
    return Settings({name: _number(text) for name, text in pairs.items()}, heap=heap, jdk=jdk)


def configure(spec: ServerSpec, settings: Settings) -> ServerSpec:
    """With these settings in its name (flags aside). One named like a ceiling sets it, too. Raises
    UsageError.
    """
    for name in settings.values:
        if name not in spec.settings:
            known = [*spec.settings, *(GENERAL if spec.on_jvm else ())]
            raise UsageError(
                f"server '{spec.base}' has no setting '{name}'{nearest(name, known)}; "
                f"its settings: {', '.join(known) or 'none'}"
            )
    if not spec.on_jvm and (settings.heap or settings.jvm_flags or settings.jdk):
        raise UsageError(
            f"server '{spec.base}' does not run on a JVM: heap, jvm_flags and jdk do not apply to it"
        )
    if settings.heap is not None and not re.fullmatch(r"[1-9]\d*[kmgKMG]", settings.heap):
        raise UsageError(
            f"the heap of '{spec.base}' is '{settings.heap}': expected a size such as 512m or 8g"
        )
    said = [f"{name}={value}" for name, value in settings.values.items()]
    said += [f"{name}={value}" for name, value in (("heap", settings.heap), ("jdk", settings.jdk)) if value]
    name = "+".join((spec.name, *said))
    values = spec.settings | settings.values
    return spec.model_copy(
        update={
            "name": name if ":" in spec.name else name.replace("+", ":", 1),
            "settings": values,
            "ceilings": bounded(spec.ceilings, values),
            "heap": settings.heap or spec.heap,
            "jvm_flags": (*spec.jvm_flags, *settings.jvm_flags),
            "jdk_asked": settings.jdk or spec.jdk_asked,
        }
    )


def bounded(ceilings: Ceilings, values: dict[str, Value]) -> Ceilings:
    """Ceilings that are also settings take their values."""
    declared = ceilings.model_dump(exclude_none=True)
    return ceilings.model_copy(
        update={name: values[name] for name in declared if type(values.get(name)) is int}
    )


def _number(text: str) -> Value:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
