"""The catalogue: what is inherited, and what is said about a file that is wrong."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from prony.errors import UsageError
from prony.server.catalogue import Catalogue, Settings

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ROOT / "servers"


def write(root: Path, name: str, text: str) -> Path:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write(tmp_path, "host/defaults.yaml", "jdk: {min: 17}\ncommand: [run, '{port}']\nenv: {A: '1', B: '1'}\n")
    write(
        tmp_path,
        "framework/defaults.yaml",
        "runtime: host\nbuild: {tool: maven, dir: ., artifact: target/app.jar}\nenv: {B: '2'}\n",
    )
    write(
        tmp_path,
        "apple/server.yaml",
        "title: An apple\nruntime: framework\nbuild: {args: [-Papple]}\nworkloads: [hello]\n"
        "ceilings: {worker_threads: 200}\n"
        "variants:\n  async:\n    env: {C: '3'}\n    ceilings: {worker_threads: 20}\n",
    )
    return tmp_path


def test_keys_are_inherited_through_all_layers(root: Path) -> None:
    spec = Catalogue.load([root]).resolve("apple")
    assert (spec.name, spec.title, spec.runtime) == ("apple", "An apple", "framework")
    assert spec.build is not None
    assert spec.build.args == ("-Papple",)
    assert spec.build.dir == str(root / "framework"), "a relative folder starts at the file that names it"
    assert spec.command == ("run", "{port}")
    assert spec.env == {"A": "1", "B": "2"}
    assert spec.jdk.min == 17
    assert spec.workloads == ("hello",)


def test_a_variant_overlays_its_server(root: Path) -> None:
    spec = Catalogue.load([root]).resolve("apple:async")
    assert (spec.name, spec.base) == ("apple:async", "apple")
    assert spec.env == {"A": "1", "B": "2", "C": "3"}
    assert spec.ceilings.workers(4) == 20
    assert spec.command == ("run", "{port}")


def test_the_first_root_wins(root: Path, tmp_path: Path) -> None:
    write(tmp_path, "mine/apple/server.yaml", "title: Mine\ncommand: [x]\n")
    catalogue = Catalogue.load([tmp_path / "mine", root])
    assert catalogue.resolve("apple").title == "Mine"
    assert catalogue.names() == ("apple",)


def test_a_server_or_a_variant_of_it_may_be_a_proxy(tmp_path: Path) -> None:
    text = "command: [x]\nvariants:\n  edge: {forwards: true}\n"
    write(tmp_path, "plum/server.yaml", text)
    catalogue = Catalogue.load([tmp_path])
    assert not catalogue.resolve("plum").forwards
    assert catalogue.resolve("plum:edge").forwards


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("aple", r"'aple'.*'apple'.*: apple$"),
        ("zebra", r"'zebra'.*: apple$"),
        ("apple:asinc", r"'apple'.*'asinc'.*'async'.*: async$"),
        ("./nowhere/server.yaml", r"nowhere/server\.yaml"),
    ],
)
def test_unknown_addresses_name_the_known_ones(root: Path, address: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Catalogue.load([root]).resolve(address)


OWN, ITS_RUNTIME = "apple/server.yaml", "host/defaults.yaml"


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        (OWN, "title: x\ncomand: [a]\n", r"{}:2: unknown key 'comand', did you mean 'command'"),
        (OWN, "runtime: framework\nceilings: {worker_thread: 1}\n",
         r"{}:2: unknown key 'ceilings.worker_thread', did you mean 'worker_threads'"),
        (OWN, "runtime: framwork\n", r"{}:1: unknown runtime 'framwork', did you mean 'framework'\?; "
         "known runtimes: framework, host"),
        (OWN, "title: x\n", r"{}:1: .*'command'"),
        (OWN, "runtime: framework\njdk: {min: 21, max: 17}\n", r"{}:2: 'jdk' is .*max .* min"),
        (OWN, "name: pear\nruntime: framework\n", r"{}:1: 'name' is 'pear'.*'apple'"),
        (OWN, "runtime: framework\nvariants:\n  async:\n    envv: {}\n",
         r"{}:4: unknown key '(variants\.async\.)?envv'.*'env'"),
        (OWN, "runtime: framework\nvariants:\n  async: 3\n", r"{}:3: .*'async' is 3"),
        (OWN, "runtime: [\n", r"{}:\d+: .*YAML"),
        (OWN, "runtime: framework\nbuild: {tool: make}\n", r"{}:2: 'build.tool' is 'make'"),
        (OWN, "command: [x]\nurl: localhost:80\n", r"{}:2: 'url' is .*expected http://HOST:PORT"),
        (ITS_RUNTIME, "jdk: {min: old}\n", r"{}:1: 'jdk.min' is 'old'"),
        (ITS_RUNTIME, "runtime: framework\n",
         r"framework -> host -> framework"),
    ],
)  # fmt: skip
def test_faults_name_file_line_and_the_nearest_key(root: Path, file: str, text: str, message: str) -> None:
    write(root, file, text)
    catalogue = Catalogue.load([root])

    def resolve_all() -> None:
        for variant in catalogue.resolve("apple").variants:
            catalogue.resolve(f"apple:{variant}")

    with pytest.raises(UsageError, match=message.replace("{}", file)):
        resolve_all()


def test_a_broken_server_harms_no_other(root: Path) -> None:
    write(root, "broken/server.yaml", "nonsense: 1\n")
    good, bad = Catalogue.load([root]).specs()
    assert [spec.name for spec in good] == ["apple", "apple:async"]
    assert len(bad) == 1
    assert "broken/server.yaml:1" in str(bad[0])


def test_a_server_of_two_keys_works_from_any_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, "theirs/server.yaml", "command: [./run.sh]\nurl: http://127.0.0.1:8080\n")
    monkeypatch.chdir(tmp_path)
    for address in ("./theirs", "theirs/server.yaml"):
        spec = Catalogue.load([]).resolve(address)
        assert (spec.name, spec.runtime, spec.url) == ("theirs", "native", "http://127.0.0.1:8080")


def test_no_servers_at_all_says_where_it_looked(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=rf"{tmp_path}.*PRONY_SERVERS"):
        Catalogue.load([tmp_path]).resolve("tomcat")


def test_every_server_of_this_checkout_can_be_read() -> None:
    good, bad = Catalogue.load([ROOMS]).specs()
    assert bad == []
    assert {"reference", "spring-jetty", "spring-tomcat", "spring-undertow"} <= {spec.name for spec in good}
    for spec in good:
        assert spec.title
        assert spec.workloads


def test_ceilings_follow_the_granted_cpus() -> None:
    undertow = Catalogue.load([ROOMS]).resolve("spring-undertow").ceilings
    assert [undertow.workers(cpus) for cpus in (1, 2, 4)] == [16, 16, 32]
    assert Catalogue.load([ROOMS]).resolve("reference").ceilings.workers(1) is None


@pytest.fixture
def varied(tmp_path: Path) -> Catalogue:
    """Two groups of variants, one of them inherited, and one variant that stands alone."""
    write(
        tmp_path,
        "host/defaults.yaml",
        "command: [run, '{java}', '{options}']\noptions: {mode: sync, threads: 200}\n"
        "settings: {workers: 1}\nceilings: {worker_threads: 200}\n"
        "variants:\n"
        "  async: {group: threads, options: {mode: async}, ceilings: {worker_threads: null}}\n"
        "  virtual: {group: threads, options: {mode: virtual}}\n",
    )
    write(
        tmp_path,
        "apple/server.yaml",
        "runtime: host\nsettings: {worker_threads: 200}\nvariants:\n"
        "  https: {group: transport, scheme: https, options: {tls: x}}\n"
        "  published: {settings: {worker_threads: 20}, options: {threads: null}}\n",
    )
    return Catalogue.load([tmp_path])


def test_variants_of_different_groups_combine_in_any_order(varied: Catalogue) -> None:
    spec = varied.resolve("apple:https+async")
    assert spec.name == "apple:async+https", "one name, however it is addressed"
    assert spec.options == {"mode": "async", "threads": 200, "tls": "x"}
    assert spec.tls
    assert spec.ceilings.worker_threads is None
    assert not varied.resolve("apple:async").tls


def test_every_way_to_address_a_server_is_listed(varied: Catalogue) -> None:
    good, bad = varied.specs()
    assert bad == []
    assert [spec.name for spec in good] == [
        "apple", "apple:https", "apple:async", "apple:virtual", "apple:async+https", "apple:virtual+https",
        "apple:published",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("apple:async+virtual", "'async' and 'virtual'"),
        ("apple:published+https", "'https' and 'published'"),
        ("apple:async+htps", "'htps'.*'https'"),
        ("apple:worker=2", r"'worker'.*'workers'.*: workers, "),
        ("apple:heap=lots", "heap .*'lots'.*512m"),
    ],
)
def test_what_does_not_go_together_is_said(varied: Catalogue, address: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        varied.resolve(address)


def test_settings_are_part_of_the_address_and_of_the_name(varied: Catalogue) -> None:
    spec = varied.resolve("apple:workers=4+async+heap=512m+jdk=25")
    assert spec.name == "apple:async+workers=4+heap=512m+jdk=25"
    assert spec.settings == {"workers": 4, "worker_threads": 200}
    assert (spec.heap, spec.jdk_asked) == ("512m", "25")
    assert varied.resolve(spec.name) == spec
    assert varied.resolve("apple:workers=4").name == "apple:workers=4"


def test_a_plan_may_set_them_as_values(varied: Catalogue) -> None:
    settings = Settings({"worker_threads": 50}, heap="1g", jvm_flags=("-XX:+UseZGC",))
    spec = varied.resolve("apple", settings)
    assert spec.jvm_flags == ("-XX:+UseZGC",)
    assert spec.name == "apple:worker_threads=50+heap=1g"
    assert spec.ceilings.workers(1) == 50, "a setting that is a ceiling moves it"
    assert varied.resolve("apple:async", settings).ceilings.workers(1) is None
    assert varied.resolve("apple:published").ceilings.workers(1) == 20


def test_a_server_without_a_jvm_has_no_heap(tmp_path: Path) -> None:
    write(tmp_path, "pear/server.yaml", "command: [x]\n")
    with pytest.raises(UsageError, match=r"'pear'.*jdk"):
        Catalogue.load([tmp_path]).resolve("pear:heap=1g")


def test_the_page_has_a_row_of_every_server() -> None:
    page = (ROOT / "docs" / "servers.md").read_text(encoding="utf-8")
    table = page.partition("\n## The catalogue\n")[2].partition("\n### ")[0]
    rows = [name for cell in re.findall(r"^\| (`.+?) \|", table, re.MULTILINE) for name in cell.split(", ")]
    assert sorted(rows) == sorted(f"`{name}`" for name in Catalogue.load([ROOMS]).names())
