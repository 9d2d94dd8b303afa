"""What the documents promise and what must never be in the tree."""

import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from redline import __version__
from redline.cli.app import app
from redline.study.layers import shipped
from redline.study.spec import load

ROOT = Path(__file__).parents[1]
DOCUMENTS = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
DOCUMENTS += sorted(ROOT.glob("docs/**/*.md"))


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_every_link_of_a_document_leads_somewhere(path):
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", path.read_text("utf-8")):
        assert (path.parent / target).exists(), target


def test_every_verb_of_the_readme_is_a_command():
    text = (ROOT / "README.md").read_text("utf-8")
    verbs = {shlex.split(line)[1] for line in re.findall(r"^redline .*$", text, re.MULTILINE)}
    assert {"plan", "run", "retry", "status", "bench", "doctor"} <= verbs
    assert verbs <= set(app)


def test_the_study_of_the_readme_loads(tmp_path):
    text = (ROOT / "README.md").read_text("utf-8")
    own, axes = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
    path = tmp_path / "own.toml"
    path.write_text(own + axes, "utf-8")
    study = load(path)
    assert study.fields["data.corpus"] == str(tmp_path / "my-text.jsonl")
    assert len(study.axes["model.qk_norm"]) == 3


def test_every_shipped_study_is_in_the_readme_and_loads():
    text = (ROOT / "README.md").read_text("utf-8")
    for name in shipped():
        assert f"`{name}`" in text
        assert load(name).title == name


def test_the_version_is_one():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["version"] == __version__
    assert f"## {__version__}" in (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert f"version: {__version__}" in (ROOT / "CITATION.cff").read_text("utf-8")


def test_every_dependency_is_pinned():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    wanted = project["dependencies"] + project["optional-dependencies"]["dev"]
    names = {re.match(r"[\w-]+", line)[0].lower().replace("-", "_") for line in wanted}
    lines = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    pinned = {line.partition("==")[0].lower().replace("-", "_") for line in lines if "==" in line}
    assert names <= pinned


def test_no_file_names_a_registry_or_a_path_of_a_machine():
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("not a git checkout")
    # Spelled in parts, so that this file does not name them either.
    forbidden = re.compile("index" + r"[-_]url|(?<![\w.])/(?:root|wo" + r"rk)/|/" + r"tmp/[a-z]")
    for name in listed.stdout.split():
        text = (ROOT / name).read_text("utf-8", errors="ignore") if (ROOT / name).exists() else ""
        assert not forbidden.search(text), name


def test_importing_the_package_loads_nothing_heavy():
    script = (
        "import sys, redline.study.spec, redline.execute.worker;"
        "heavy = {'torch', 'polars', 'numpy', 'redline.train', 'redline.data'} & set(sys.modules);"
        "assert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
