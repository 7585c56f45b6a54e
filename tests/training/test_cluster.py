"""Clusters that are none, without a token, out of reach; nodes that differ: one line each, before
anything is made."""

import re
import socket
import sys

import pytest

from langevin.errors import LangevinError
from langevin.training import cluster
from langevin.training.cluster import compare_node, seen_file
from langevin.training.jobs import Job
from langevin.training.node import sight
from langevin.training.ray_jobs import RayEngine


@pytest.mark.parametrize("on", ["cluster", "ray://", "host", "ftp://host:1", "host:port", ""])
def test_what_names_no_engine_is_refused_before_anything_is_made(cli, text_file, tmp_path, on):
    code, _, said = cli("train", "--text", text_file, "--out", tmp_path / "r", "--chains", 2, "--on", on)
    assert (code, "expected --on local, ray, ray://HOST:PORT" in said) == (2, True)
    assert not (tmp_path / "r").exists()


def test_ray_that_is_not_installed_is_told_how_to_get(cli, text_file, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    code, _, said = cli("train", "--text", text_file, "--out", tmp_path / "r", "--chains", 2, "--on", "ray")
    assert (code, "pip install 'langevin[cluster]'" in said) == (2, True)
    assert not (tmp_path / "r").exists()


def test_one_run_has_no_use_for_a_cluster(cli, text_file, finished_run):
    assert "ask for some by --chains" in cli("train", "--text", text_file, "--on", "ray")[2]
    code, _, said = cli("resume", finished_run, "--on", "ray")
    assert (code, "expected chains for --on" in said) == (2, True)


@pytest.mark.parametrize("scheme", ["", "ray://"])
def test_an_address_where_nothing_listens_is_refused_at_once(cli, text_file, tmp_path, monkeypatch, scheme):
    monkeypatch.setenv("RAY_AUTH_TOKEN", "a" * 64)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    arguments = ("--text", text_file, "--out", tmp_path / "r", "--chains", 2)
    code, _, said = cli("train", *arguments, "--on", f"{scheme}127.0.0.1:{port}")
    assert (code, "Connection refused" in said) == (2, True)
    assert not (tmp_path / "r").exists()


def test_what_listens_and_is_no_cluster_is_given_up_in_time(cli, text_file, tmp_path, monkeypatch):
    monkeypatch.setenv("RAY_AUTH_TOKEN", "a" * 64)
    monkeypatch.setattr(cluster, "LIMIT", 3.0)
    with socket.create_server(("127.0.0.1", 0)) as server:
        on = f"127.0.0.1:{server.getsockname()[1]}"
        code, _, said = cli("train", "--text", text_file, "--out", tmp_path / "r", "--chains", 2, "--on", on)
    assert (code, "no answer in 3 seconds" in said) == (2, True)


def test_a_cluster_needs_its_token(cli, text_file, tmp_path, monkeypatch):
    for name in ("RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH", "RAY_AUTH_MODE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    code, _, said = cli("train", "--text", text_file, "--chains", 2, "--on", "somewhere:6379")
    assert (code, "expected the token of the Ray cluster at somewhere:6379, found none" in said) == (2, True)


OURS = ({"langevin": "0.1.0", "torch": "2.13.0", "source": "ab"}, ["secret"])


@pytest.mark.parametrize(("versions", "seen", "told"), [
    ({"langevin": "0.2.0"}, "secret", "expected langevin 0.1.0 on all nodes, as here, node two has 0.2.0"),
    ({"torch": "2.9.0"}, "secret", "expected torch 2.13.0 on all nodes, as here, node two has 2.9.0"),
    ({"source": "cd"}, "secret", "node two has another edit of version 0.1.0"),
    ({}, "no such folder", "node two sees no such folder there"),
    ({}, "another folder of that name", "node two sees another folder of that name there"),
    ({}, "secre7", "node two sees another folder of that name there"),
])  # fmt: skip
def test_a_node_that_differs_is_named(versions, seen, told):
    with pytest.raises(LangevinError, match=re.escape(told)):
        compare_node("two", (OURS[0] | versions, [seen]), OURS, [("/mnt", "x")])
    compare_node("two", OURS, OURS, [("/mnt", "x")])


def test_a_folder_is_told_apart_from_another_of_its_name(tmp_path):
    with seen_file(tmp_path) as (folder, name):
        content = sight(folder, name)
        assert len(content) == 32
        assert sight(str(tmp_path / "absent"), name) == "no such folder"
        (tmp_path / "empty").mkdir()
        assert sight(str(tmp_path / "empty"), name) == "another folder of that name"
    assert not list(tmp_path.glob(".*"))


def test_what_no_node_could_run_is_refused(tmp_path):
    engine = RayEngine(None, [{"Resources": {"CPU": 2.0}}, {"Resources": {"CPU": 4.0, "GPU": 1.0}}])
    for job, told in [(Job("chain-3", [], tmp_path / "log", cpus=5), "5 CPUs for chain-3, the largest of the cluster has 4"),
                      (Job("chain-3", [], tmp_path / "log", gpus=1.5), "1.5 GPUs for chain-3")]:
        with pytest.raises(LangevinError, match=told):
            engine([job], None)
