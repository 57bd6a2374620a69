import hashlib
import socket
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest

from charax.data import DATASETS, DataError, Source, fetch, load_dataset
from charax.data.sources._fetching import download

CONTENT = b"the real thing"


class _Handler(SimpleHTTPRequestHandler):
    def log_message(self, format, *args):  # noqa: A002
        pass


@pytest.fixture
def server(tmp_path, monkeypatch):
    """A web server on this machine: `good/` serves the file, `bad/` an altered one."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    for folder, content in (("good", CONTENT), ("bad", CONTENT[:-1])):
        (tmp_path / "www" / folder).mkdir(parents=True)
        (tmp_path / "www" / folder / "file.gz").write_bytes(content)
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, directory=str(tmp_path / "www"))) as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{running.server_port}/"
        running.shutdown()
        thread.join()


def source(*mirrors: str) -> Source:
    md5 = hashlib.md5(CONTENT, usedforsecurity=False).hexdigest()
    files = {"file.gz": md5}
    return Source("toy", "a toy", "here", train=1, test=1, shape=(1,), read=never, files=files, mirrors=mirrors)


def never(folder):
    raise AssertionError("downloading does not read")


def closed_address() -> str:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{free.getsockname()[1]}/"


def test_the_next_mirror_is_tried_when_one_is_down_empty_or_altered(server, tmp_path):
    mirrors = (closed_address(), f"{server}nothing/", f"{server}bad/", f"{server}good/")
    path = download(source(*mirrors), "file.gz", tmp_path / "cache")
    assert path == tmp_path / "cache/file.gz"
    assert path.read_bytes() == CONTENT


def test_an_altered_download_is_refused_and_not_kept(server, tmp_path):
    with pytest.raises(DataError, match=r"file\.gz of toy .*bad/ \(its file has another MD5\)"):
        download(source(f"{server}bad/"), "file.gz", tmp_path / "cache")
    assert not list((tmp_path / "cache").glob("*"))


def test_a_missing_network_is_a_sentence_that_says_where_to_put_the_file(tmp_path, monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("CHARAX_DATA", str(tmp_path))
    with pytest.raises(DataError, match=r"check the network .* put the file into .*toy") as caught:
        download(source(closed_address(), closed_address()), "file.gz", tmp_path / "cache")
    assert str(caught.value).count("ConnectionError") == 2
    assert "\n" not in str(caught.value)


def test_files_under_charax_data_are_used_as_they_are(official):
    assert fetch("mnist") == official / "mnist"


def test_files_in_the_cache_are_used(official, monkeypatch, tmp_path):
    monkeypatch.delenv("CHARAX_DATA")
    monkeypatch.setattr("pooch.os_cache", lambda project: official)
    assert fetch("svhn") == official / "svhn"
    assert len(load_dataset("svhn").test.targets) == 10


def test_a_name_or_folder_that_does_not_exist_is_a_sentence(monkeypatch, tmp_path):
    with pytest.raises(DataError, match="no data set 'imagenet'; the names are digits, mnist, cifar10, svhn"):
        fetch("imagenet")
    monkeypatch.setenv("CHARAX_DATA", str(tmp_path / "typo"))
    with pytest.raises(DataError, match=r"CHARAX_DATA is set to .*typo, which is not a folder"):
        fetch("mnist")


def test_every_file_of_the_catalogue_has_an_md5_and_a_place():
    for entry in DATASETS.values():
        assert all(len(md5) == 32 for md5 in entry.files.values())
        assert bool(entry.files) == bool(entry.mirrors)
        assert all(mirror.endswith("/") for mirror in entry.mirrors)
