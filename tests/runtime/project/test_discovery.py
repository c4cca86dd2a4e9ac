import pytest

from belem.runtime.project.discovery import worker_name_from


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("hello", "hello"),
        ("My Worker.v2", "my-worker-v2"),
        ("été", "ete"),
        ("Belém", "belem"),
        ("東京", "worker"),
        ("x" * 70, "x" * 63),
    ],
)
def test_a_worker_is_named_like_its_folder_in_the_letters_of_host_names(
    text: str, name: str
) -> None:
    assert worker_name_from(text) == name
