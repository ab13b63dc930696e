"""The files for Docker, Compose, Kubernetes and Slurm: what can be checked where none of them runs.
Kubernetes' own objects are validated by its schemas, those of operators by what their version asks
for, with the pods inside them again by Kubernetes'."""

from __future__ import annotations

import fnmatch
import json
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from live_server import live
from patience import LONG
from typer.testing import CliRunner

from dragoman.server.app import create_app
from dragoman.server.fleet import Fleet
from dragoman.server.guard import Guard, Limits

kubernetes_validate = pytest.importorskip(
    "kubernetes_validate", reason="kubernetes-validate is not installed"
)
ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
VERSION = "1.31"  # preStop's sleep is in it
GRACE = 30 + 120 + 1  # seconds in which the service finishes what it has accepted

_NAME = {"type": "object", "required": ["name"]}
JOBSET = {
    "type": "object",
    "required": ["apiVersion", "kind", "metadata", "spec"],
    "additionalProperties": False,
    "properties": {
        "apiVersion": {"const": "jobset.x-k8s.io/v1alpha2"},
        "kind": {"const": "JobSet"},
        "metadata": _NAME,
        "spec": {
            "type": "object",
            "required": ["replicatedJobs"],
            "additionalProperties": False,
            "properties": {
                "failurePolicy": {
                    "type": "object",
                    "additionalProperties": False,
                    "properties": {"maxRestarts": {"type": "integer", "minimum": 0}},
                },
                "network": {
                    "type": "object",
                    "additionalProperties": False,
                    "properties": {
                        "enableDNSHostnames": {"type": "boolean"},
                        "subdomain": {"type": "string"},
                        "publishNotReadyAddresses": {"type": "boolean"},
                    },
                },
                "replicatedJobs": {
                    "type": "array",
                    "minItems": 1,
                    "items": {
                        "type": "object",
                        "required": ["name", "template"],
                        "additionalProperties": False,
                        "properties": {
                            "name": {"type": "string"},
                            "replicas": {"type": "integer", "minimum": 1},
                            "template": {"type": "object", "required": ["spec"]},
                        },
                    },
                },
            },
        },
    },
}
_REPLICAS = {
    "type": "object",
    "required": ["replicas", "template"],
    "additionalProperties": False,
    "properties": {
        "replicas": {"type": "integer", "minimum": 1},
        "restartPolicy": {"enum": ["Always", "OnFailure", "Never", "ExitCode"]},
        "template": {"type": "object", "required": ["spec"]},
    },
}
PYTORCHJOB = {
    "type": "object",
    "required": ["apiVersion", "kind", "metadata", "spec"],
    "additionalProperties": False,
    "properties": {
        "apiVersion": {"const": "kubeflow.org/v1"},
        "kind": {"const": "PyTorchJob"},
        "metadata": _NAME,
        "spec": {
            "type": "object",
            "required": ["pytorchReplicaSpecs"],
            "additionalProperties": False,
            "properties": {
                "nprocPerNode": {"type": "string", "pattern": r"^(auto|cpu|gpu|\d+)$"},
                "runPolicy": {
                    "type": "object",
                    "additionalProperties": False,
                    "properties": {
                        "backoffLimit": {"type": "integer", "minimum": 0},
                        "cleanPodPolicy": {"enum": ["All", "Running", "None"]},
                    },
                },
                "pytorchReplicaSpecs": {
                    "type": "object",
                    "required": ["Master"],
                    "additionalProperties": False,
                    "properties": {"Master": _REPLICAS, "Worker": _REPLICAS},
                },
            },
        },
    },
}


def loaded(name: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((DEPLOY / name).read_text(encoding="utf-8")))


def check_pod(template: dict[str, Any], restart: str = "Never") -> None:
    """Validate the template of a pod, as part of a job that is Kubernetes' own."""
    spec = {"restartPolicy": restart, **template["spec"]}
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "x"},
        "spec": {"template": {**template, "spec": spec}},
    }
    kubernetes_validate.validate(job, VERSION, strict=True)


def options_of(words: list[str]) -> list[str]:
    """The words after `dragoman`."""
    return words[words.index("dragoman") + 1 :]


def check_command(words: list[str]) -> None:
    """Whether the command line knows all the options of a command."""
    from dragoman.cli.main import app

    command, *rest = words
    known = CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "200"}).output
    for word in rest:
        if word.startswith("--"):
            assert word.partition("=")[0] in known, word


# Docker


def instructions() -> list[tuple[str, str]]:
    """The instructions of the Dockerfile, each on one line."""
    text = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    joined = "\n".join(lines).replace("\\\n", " ")
    found = []
    for line in filter(str.strip, joined.splitlines()):
        word, _, rest = line.partition(" ")
        found.append((word, rest.strip()))
    return found


def last(word: str) -> str:
    return [rest for name, rest in instructions() if name == word][-1]


def test_what_the_image_copies_exists_and_is_not_ignored() -> None:
    patterns = (ROOT / ".dockerignore").read_text().splitlines()
    let_in = [pattern[1:] for pattern in patterns if pattern.startswith("!")]
    copied = [rest.split()[:-1] for word, rest in instructions() if word == "COPY"]
    sources = [name for names in copied if "--from=build" not in names for name in names]
    assert "dragoman" in sources
    for name in sources:
        assert (ROOT / name).exists(), name
        assert any(fnmatch.fnmatch(name, pattern) for pattern in let_in), name
    assert {"pyproject.toml", "README.md", "LICENSE", "NOTICE"} <= set(sources)


def test_the_image_holds_the_models_and_runs_as_somebody_else() -> None:
    assert list((ROOT / "dragoman" / "shipped-models").glob("*/model*.safetensors"))
    user = last("USER")
    assert re.fullmatch(r"[1-9]\d+:[1-9]\d+", user)
    names = [word for word, _ in instructions()]
    assert names.index("ENTRYPOINT") > len(names) - 1 - names[::-1].index("USER")
    assert f"useradd --uid {user.partition(':')[0]}" in last("RUN")
    assert [word for word, _ in instructions() if word == "FROM"] == ["FROM", "FROM"]
    assert last("STOPSIGNAL") == "SIGTERM"
    assert json.loads(last("ENTRYPOINT")) == ["dragoman"]
    check_command(json.loads(last("CMD")))


def test_the_health_check_tells_a_service_from_none(fleet_of: Callable[..., Fleet]) -> None:
    _, _, command = last("HEALTHCHECK").partition("CMD ")
    words = json.loads(command)
    assert words[0] == "python"
    with live(create_app(fleet_of(), Guard(Limits()))) as url:
        port = url.rpartition(":")[2]
        check = [sys.executable, *(word.replace(":5000", f":{port}") for word in words[1:])]
        assert ":5000" in words[-1]
        assert subprocess.run(check, timeout=LONG).returncode == 0
    assert subprocess.run(check, timeout=LONG, stderr=subprocess.DEVNULL).returncode != 0


def test_compose() -> None:
    (file,) = loaded("compose.yaml")
    service = file["services"]["dragoman"]
    build = service["build"]
    assert (DEPLOY / build["context"]).resolve() == ROOT
    assert (DEPLOY / build["context"] / build["dockerfile"]).exists()
    check_command(service["command"])
    assert int(service["stop_grace_period"].rstrip("s")) > GRACE
    volumes = {volume.partition(":")[0] for volume in service["volumes"]}
    assert volumes == set(file["volumes"])


# Kubernetes


def test_the_service_on_kubernetes() -> None:
    objects = loaded("kubernetes.yaml")
    for one in objects:
        kubernetes_validate.validate(one, VERSION, strict=True)
    deployment, service, budget = objects
    pod = deployment["spec"]["template"]
    (container,) = pod["spec"]["containers"]
    check_command(container["args"])
    stop = container["lifecycle"]["preStop"]["sleep"]["seconds"]
    assert pod["spec"]["terminationGracePeriodSeconds"] > GRACE + stop
    assert pod["spec"]["securityContext"]["runAsUser"] == int(last("USER").partition(":")[0])
    labels = pod["metadata"]["labels"]
    assert service["spec"]["selector"] == labels
    assert budget["spec"]["selector"]["matchLabels"] == labels
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert f"--port={ports[service['spec']['ports'][0]['targetPort']]}" in container["args"]
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert container[probe]["httpGet"]["path"] == "/health"


def test_the_validator_finds_mistakes() -> None:
    deployment = loaded("kubernetes.yaml")[0]
    deployment["spec"]["template"]["spec"]["containers"][0]["readinesProbe"] = {}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(deployment, VERSION, strict=True)


def test_training_as_a_jobset() -> None:
    (jobset,) = loaded("train-jobset.yaml")
    jsonschema.validate(jobset, JOBSET)
    (job,) = jobset["spec"]["replicatedJobs"]
    kubernetes_validate.validate(
        {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "x"}} | job["template"],
        VERSION,
        strict=True,
    )
    (container,) = job["template"]["spec"]["template"]["spec"]["containers"]
    words = container["command"]
    check_command(options_of(words))
    name = jobset["metadata"]["name"]
    assert f"--master-addr={name}-{job['name']}-0-0.{name}" in words
    assert f"--nnodes={job['template']['spec']['completions']}" in words


def test_training_as_a_pytorchjob() -> None:
    (job,) = loaded("train-pytorchjob.yaml")
    jsonschema.validate(job, PYTORCHJOB)
    replicas = job["spec"]["pytorchReplicaSpecs"]
    commands = []
    for kind in ("Master", "Worker"):
        check_pod(replicas[kind]["template"])
        (container,) = replicas[kind]["template"]["spec"]["containers"]
        assert container["name"] == "pytorch"  # the operator looks for it
        commands.append(container["command"])
    assert commands[0] == commands[1]
    check_command(options_of(commands[0]))


@pytest.mark.parametrize(
    ("schema", "path"), [(JOBSET, "train-jobset.yaml"), (PYTORCHJOB, "train-pytorchjob.yaml")]
)
def test_the_schemas_find_mistakes(schema: dict[str, Any], path: str) -> None:
    (job,) = loaded(path)
    job["spec"]["replicas"] = 2
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(job, schema)


# Slurm


def test_training_with_slurm() -> None:
    path = DEPLOY / "train.slurm"
    subprocess.run(["bash", "-n", str(path)], check=True)
    text = path.read_text(encoding="utf-8")
    assert text.startswith("#!/bin/bash\n#SBATCH ")
    command = text[text.index("-m dragoman") :].replace("\\\n", " ").rstrip().rstrip('"')
    words = shlex.split(command)
    check_command(options_of(words))
    assert "--auto-resume" in words
    assert "--requeue" in text
