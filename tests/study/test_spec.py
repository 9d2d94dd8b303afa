import string
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from redline.config.cost import cost
from redline.config.trial import QKNorm
from redline.files import UserError
from redline.study.expand import expand
from redline.study.layers import shipped
from redline.study.spec import WINDOWS_DEVICES, load, slug

COMPLETE = 'seed = 0\n[model]\nqk_norm = "on"\n[train]\npeak_lr = "1e-3"\n'
OTHERS = """
[axes]
n_layer = [2, 4]
qk_norm = ["off", { kind = "l2", gain = "frozen" }]
[around_base]
pos = ["rope"]
weight_decay = [0.0, 0.01]
untied = { tied_head = false, z_loss = 1e-4 }
[[extra_axes]]
n_layer = [3]
peak_lr = { from = 1e-3, to = 1e-1, per_decade = 3 }
"""


def test_the_protocol_lies_under_the_file(study):
    loaded = study("n_step = 100\n")
    assert loaded.fields["train.n_step"] == 100
    assert loaded.fields["train.beta2"] == 0.95
    assert loaded.fields["model.qk_norm"] is None
    assert loaded.analysis.delta == (0.1, 0.3)


@pytest.mark.parametrize("name", shipped())
def test_a_shipped_study_loads_expands_and_is_named_as_its_file(name):
    loaded = load(name)
    trials = expand(loaded, "cpu")
    assert loaded.title == name
    assert len(set(trials)) == len(trials)
    assert {trial.model.arm for trial in trials} >= {"off", "on"}


def test_core_is_the_24_run_matrix():
    trials = expand(load("core"), "cpu")
    assert len(trials) == 24
    for trial in trials:
        assert 10e6 < cost(trial).n_param < 15e6
        assert 100e6 < cost(trial).tokens_seen < 150e6
        assert cost(trial).tokens_seen <= trial.data.n_train_token, "no token is seen twice"


def test_core_measures_in_less_than_a_tenth_of_its_time():
    trial = expand(load("core"), "cpu")[0]
    n_eval = 1 + trial.train.n_step // trial.measure.eval_every
    n_probe = 1 + trial.train.n_step // trial.measure.probe_every
    probe_tokens = trial.measure.n_probe_row * trial.model.block_size
    # A forward pass is a third of a training step; a probe's explicit attention is taken as a step.
    measured = n_eval * trial.data.n_eval_token / 3 + n_probe * probe_tokens
    assert measured < 0.1 * cost(trial).tokens_seen


def test_depth_holds_core_and_adds_two_depths():
    core, depth = set(expand(load("core"), "cpu")), set(expand(load("depth"), "cpu"))
    assert core < depth
    assert {trial.model.n_layer for trial in depth - core} == {3, 12}


def test_controls_hold_the_pilot_and_change_one_control_at_a_time():
    pilot, controls = set(expand(load("pilot"), "cpu")), set(expand(load("controls"), "cpu"))
    assert pilot < controls
    frozen = {trial for trial in controls if trial.model.qk_norm == QKNorm(gain="frozen")}
    assert len(frozen) == len(pilot) / 2, "the frozen gain is a control of one arm"
    assert len(controls - frozen) == 9 * len(pilot)


def test_an_explicit_study_loads_back_as_itself(study, tmp_path):
    first = study(OTHERS)
    path = tmp_path / "store" / "study.toml"
    path.parent.mkdir()
    path.write_text(first.to_toml(), "utf-8")
    for reference in (path, path.parent, str(path.parent)):
        again = load(reference)
        assert again == first
        assert again.digest == first.digest
        assert again.to_toml() == first.to_toml()
        assert expand(again, "cpu") == expand(first, "cpu")


def test_an_explicit_study_names_every_field(study):
    explicit = study("").explicit
    trial = expand(study(""), "cpu")[0]
    for section in ("model", "data", "train", "measure"):
        assert set(explicit[section]) == set(type(getattr(trial, section)).model_fields)
    assert explicit["model"]["qk_norm"] == "off"


def test_the_digest_follows_the_study_and_not_the_place_of_its_corpus(study, tmp_path):
    loaded = study(OTHERS)
    moved = replace(loaded, fields={**loaded.fields, "data.corpus": "/elsewhere/text.txt"})
    assert moved.digest == loaded.digest
    stricter = loaded.analysis.model_copy(update={"m_nec": 0.2})
    assert replace(loaded, analysis=stricter).digest != loaded.digest
    assert replace(loaded, axes={}).digest != loaded.digest
    assert loaded.pinned("cpu").digest != loaded.digest
    assert loaded.pinned("cpu").pinned("cuda") == loaded.pinned("cpu")


def test_the_digest_does_not_depend_on_the_order_of_keys(study):
    lines = ["seed = [0, 1]", "n_layer = [2, 4]", 'qk_norm = ["off"]']
    there = study("[axes]\n" + "\n".join(lines))
    back = study("[axes]\n" + "\n".join(reversed(lines)))
    assert there.digest == back.digest


def test_a_file_lies_over_what_it_extends(write):
    write(COMPLETE + "n_step = 100\nz_loss = 1e-4\n[axes]\nn_layer = [2, 4]\n", "first.toml")
    write('extends = "first.toml"\n[axes]\nmodel.n_layer = [8]\nbatch_size = [4]\n', "second.toml")
    last = write('extends = "second.toml"\n[train]\nn_step = 50\nbatch_size = 8\n', "third.toml")
    study = load(last)
    assert study.fields["train.n_step"] == 50
    assert study.fields["train.z_loss"] == 1e-4
    assert study.axes == {"model.n_layer": (8,)}, "a field set by a nearer file ends its axis"
    assert study.fields["train.batch_size"] == 8


def test_a_circle_of_extends_is_refused(write):
    write('extends = "b.toml"\n', "a.toml")
    path = write('extends = "a.toml"\n', "b.toml")
    with pytest.raises(UserError, match=r"circle: .*b\.toml -> .*a\.toml -> .*b\.toml"):
        load(path)


def test_a_relative_corpus_is_seen_from_the_file_that_names_it(write, tmp_path):
    (tmp_path / "deep").mkdir()
    write(COMPLETE + '[data]\ncorpus = "text/mine.txt"\n', "deep/base.toml")
    child = write('extends = "deep/base.toml"\n')
    assert load(child).fields["data.corpus"] == str(tmp_path / "deep" / "text" / "mine.txt")
    plain = write(COMPLETE + '[data]\ncorpus = "mine.jsonl"\n')
    assert load(plain).fields["data.corpus"] == str(tmp_path / "mine.jsonl")
    named = write(COMPLETE + '[data]\ncorpus = "fineweb-edu"\n')
    assert load(named).fields["data.corpus"] == "fineweb-edu"


def test_a_shipped_name_wins_over_a_directory_of_that_name(tmp_path, monkeypatch):
    (tmp_path / "pilot").mkdir()
    monkeypatch.chdir(tmp_path)
    assert load("pilot").title == "pilot"
    with pytest.raises(UserError, match=r"there is no file pilot.study\.toml"):
        load("./pilot")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[model]\nn_layr = 2\n", "model.n_layr: no such key (allowed: n_layer, n_head"),
        ("[model]\nn_layr = 2\n", 'did you mean "n_layer"?'),
        ("[modle]\nn_layer = 2\n", 'did you mean "model"?'),
        ("[model]\npeak_lr = 1\n", 'model.peak_lr: no such key; did you mean "train.peak_lr"?'),
        ("n_layer = 2\n", 'n_layer: no such key; did you mean "model.n_layer"?'),
        ("model = 2\n", "model: this is a section"),
        ("axes = 2\n", "axes = 2 must be a valid dictionary"),
        ('[model]\nn_layer = "two"\n', 'model.n_layer: "two" must be a valid integer'),
        ("[model]\nn_layer = [2, 4]\n", "several belong in [axes]"),
        ('[model]\npos = "rop"\n', "model.pos: \"rop\" must be 'learned' or 'rope'; did you"),
        ("[train]\npeak_lr = -1\n", "train.peak_lr: -1 must be greater than 0"),
        ("[train]\npeak_lr = nan\n", "train.peak_lr: NaN must be a finite number"),
        ("[train]\npeak_lr = 1979-05-27\n", 'train.peak_lr: "1979-05-27" must be a valid number'),
        ("[axes]\npeak_lr = [1e-3, true]\n", "axes.peak_lr: a number is needed, not true"),
        ("[axes]\nlayers = [1]\n", "axes.layers: no such key (allowed: "),
        ("[axes]\nmodel.n_layr = [1]\n", "axes.model.n_layr: no such key"),
        ("[axes]\nseed = []\n", "axes.seed: an axis needs at least one value"),
        ('[axes]\npeak_lr = [1]\n"train.peak_lr" = [2]\n', "train.peak_lr is given twice"),
        ('[axes]\ncorpus = ["a", "b"]\n', "axes.corpus: a study has one value of this"),
        ("[around_base]\nposs = ['rope']\n", "around_base.poss: no such key"),
        ("[around_base]\ng = { pos = 3 }\n", "around_base.g.pos: 3 must be"),
        ("[around_base]\ng = {}\n", "around_base.g: a group needs at least one field"),
        ("[[extra_axes]]\nn_layr = [3]\n", "extra_axes.0.n_layr: no such key"),
        ("[analysis]\ndetla = [0.1]\n", "analysis.detla: no such key"),
        ("[analysis]\ndelta = [0.3, 'x']\n", 'analysis.delta: 1 = "x" must be a valid number'),
        ("[axes\n", "this is not TOML: Expected ']'"),
        ('extends = "pilto"\n', 'did you mean "pilot"?'),
    ],
)
def test_a_mistake_is_told_with_file_key_value_and_the_nearest_valid_name(refusal, text, said):
    message = refusal(text)
    assert "tiny.toml: " in message
    assert said in message


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("delta = [0.3, 0.1]", "delta = [0.3, 0.1] must ascend"),
        ("m_eq = 0.2", "m_eq = 0.2 lies above m_nec = 0.1"),
        ("delta = []", "at least 1 item"),
    ],
)
def test_analysis_settings_that_contradict_each_other_are_refused(refusal, text, said):
    assert said in refusal(COMPLETE + f"[analysis]\n{text}\n")


def test_every_mistake_of_a_file_has_its_line(refusal):
    message = refusal("[train]\nn_step = 'x'\nbeta3 = 1\n[axes]\nseed = []\npeak_lr = [0]\n")
    assert [line.split(": ")[1] for line in message.splitlines()] == [
        "train.n_step",
        "train.beta3",
        "axes.seed",
        "axes.peak_lr",
    ]


def test_what_neither_protocol_nor_study_gives_is_asked_for(refusal):
    message = refusal("")
    for path in ("model.qk_norm", "train.peak_lr", "seed"):
        assert f"{path}: a value is needed, here or as an axis" in message


@pytest.mark.parametrize(
    ("head", "said"),
    [
        ('protocol = "nanogpt"\n', "title: a study needs one"),
        ('title = "t"\n', "protocol: a study needs one"),
        ('title = "t"\nprotocol = "nanogtp"\n', 'did you mean "nanogpt"?'),
        ('title = ""\n', "at least 1 character"),
        (f'title = "{"t" * 81}"\n', "at most 80 characters"),
        ('title = "a\\nb"\n', "printable"),
    ],
)
def test_a_study_needs_a_title_and_a_known_protocol(refusal, head, said):
    assert said in refusal(COMPLETE, head=head)


def test_a_file_with_a_byte_order_mark_is_read_and_other_encodings_are_refused(tmp_path):
    text = f'title = "t"\nprotocol = "nanogpt"\n{COMPLETE}'
    path = tmp_path / "windows.toml"
    path.write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    assert load(path).title == "t"
    path.write_bytes(text.encode("utf-16"))
    with pytest.raises(UserError, match="not UTF-8"):
        load(path)


@pytest.mark.parametrize("reference", ["pilto", "nowhere/pilto.toml"])
def test_a_missing_study_names_the_shipped_ones(reference):
    with pytest.raises(UserError, match=r'shipped studies are .*did you mean "pilot"'):
        load(reference)


SAFE = set(string.ascii_lowercase + string.digits + "-")


@given(st.text(min_size=1, max_size=80))
@settings(max_examples=50, deadline=None)
def test_case_c09_any_title_is_one_safe_directory_name(title):
    """C09: a run's name held "/" or a whole note, made nested directories and broke shells.

    Whatever the title, the name is short, flat and legal on every system.
    """
    name = slug(title)
    assert 1 <= len(name) <= 60
    assert set(name) <= SAFE
    assert name not in WINDOWS_DEVICES
    assert slug(name) == name


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("pilot", "pilot"),
        ("/a/b c", "a-b-c"),
        ("x:y*?", "x-y"),
        ("n" * 400, "n" * 60),
        ("CON", "study-con"),
        ("Épreuve n° 2", "epreuve-n-2"),
    ],
)
def test_case_c09_a_slug_keeps_what_is_safe(title, name):
    """C09: path characters of a label entered the file system as they were."""
    assert slug(title) == name


def test_titles_without_any_safe_letter_stay_apart():
    assert slug("学習") != slug("深さ")
