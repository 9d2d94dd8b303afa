import json
import random
import re

import pytest
from fakes import MANIFEST, TOKENS, make_store, make_trial, record

from redline.config import identity
from redline.files import UserError
from redline.store import claims, tables
from redline.store.layout import Store

RESERVED = {"con", "prn", "aux", "nul", *(f"{n}{i}" for n in ("com", "lpt") for i in range(10))}


def test_a_trial_reads_back_as_it_was_put(tmp_path):
    store = Store(tmp_path).create()
    trial = make_trial(seed=3, qk_norm={"kind": "l2"}, n_layer=4)
    name = store.put_trial(trial, TOKENS)
    assert name == identity.trial_id(trial, TOKENS)
    assert store.read_trial(name) == (trial, TOKENS)
    assert store.ids() == [name]


def test_putting_a_known_trial_or_corpus_touches_no_file(tmp_path):
    store, ids = make_store(tmp_path, seeds=[0])
    before = [path.stat() for path in sorted(tmp_path.rglob("*.json"))]
    assert store.put_trial(make_trial(), TOKENS) == ids[0]
    store.put_corpus(MANIFEST | {"bigram_loss": 0.0})
    assert [path.stat() for path in sorted(tmp_path.rglob("*.json"))] == before
    assert store.corpus(TOKENS.token_sha256) == MANIFEST


def test_the_last_study_and_every_study_are_kept(tmp_path):
    store = Store(tmp_path).create()
    store.put_study("1" * 16, "title = 'one'\n")
    store.put_study("2" * 16, "title = 'two'\n")
    assert (tmp_path / "study.toml").read_text() == "title = 'two'\n"
    assert (tmp_path / "studies" / f"{'1' * 16}.toml").read_text() == "title = 'one'\n"


def test_a_directory_without_trials_is_no_store(tmp_path):
    assert not Store(tmp_path).exists
    assert Store(tmp_path).ids() == []
    assert Store(tmp_path).create().exists


def test_an_edited_trial_is_refused_by_name_and_file(tmp_path):
    store, (name,) = make_store(tmp_path, seeds=[0])
    path = store.trial(name)
    path.write_text(path.read_text().replace('"seed": 0', '"seed": 1'))
    with pytest.raises(UserError, match=f"trial {name} was edited") as error:
        store.read_trial(name)
    assert str(path) in str(error.value)


def test_a_field_that_an_old_trial_lacks_has_its_legacy_value(tmp_path, monkeypatch):
    monkeypatch.setitem(identity.LEGACY, "train.z_loss", 0.0)
    store, (name,) = make_store(tmp_path, seeds=[0])
    path = store.trial(name)
    content = json.loads(path.read_text())
    del content["trial"]["train"]["z_loss"]
    path.write_text(json.dumps(content))
    assert store.read_trial(name)[0].train.z_loss == 0.0


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("{", "damaged JSON"),
        ("[]", "not the file of a trial"),
        ('{"trial": {}}', "not the file of a trial|protocol"),
        ('{"trial": {"seed": "x"}, "tokens": {}}', "model: Field required|seed|protocol"),
    ],
)
def test_a_damaged_trial_file_is_one_clear_sentence(tmp_path, content, reason):
    store, (name,) = make_store(tmp_path, seeds=[0])
    store.trial(name).write_text(content)
    with pytest.raises(UserError, match=reason) as error:
        store.read_trial(name)
    assert str(store.trial(name)) in str(error.value)


def test_an_unknown_trial_or_corpus_is_one_clear_sentence(tmp_path):
    store = Store(tmp_path).create()
    with pytest.raises(UserError, match="no trial 0123"):
        store.read_trial("0123")
    with pytest.raises(UserError, match="no manifest"):
        store.corpus("0123")


def test_case_s15_seeding_the_global_generator_changes_no_name(tmp_path):
    """Tools that draw ids from the seeded generator give two runs one name. Ours come from content
    (trials) and from the system (claims)."""
    store, (name,) = make_store(tmp_path, seeds=[0])
    tokens = set()
    for _ in range(2):
        random.seed(0)
        with claims.claim(store, name) as held:
            tokens.add(held.token)
        assert store.put_trial(make_trial(), TOKENS) == name
    assert len(tokens) == 2


def test_case_s22_every_path_is_legal_on_every_system(tmp_path):
    """Colons from timestamps and reserved names made files that Windows cannot hold."""
    store, ids = make_store(tmp_path, seeds=range(3))
    store.put_study("1" * 16, "title = 'one'\n")
    record(store, ids[0])
    tables.load(store, ids)
    (store.checkpoints(ids[1])).mkdir()
    (store.checkpoints(ids[1]) / "step-00000400.bin").touch()
    with claims.claim(store, ids[1]):
        paths = [path.relative_to(tmp_path) for path in tmp_path.rglob("*")]
    assert len(paths) > 20
    assert len({str(path).lower() for path in paths}) == len(paths)
    for path in paths:
        assert len(str(path)) <= 180
        for part in path.parts:
            assert re.fullmatch(r"[A-Za-z0-9._-]+", part)
            assert part[-1] not in ". "
            assert part.partition(".")[0].lower() not in RESERVED


def test_a_component_added_later_is_read_whole_and_not_closed_by_its_legacy(tmp_path, monkeypatch):
    """A legacy value of None and a stored component meet at one path: the stored one counts."""
    monkeypatch.setitem(identity.LEGACY, "model.qk_norm", None)
    store = Store(tmp_path).create()
    trials = [make_trial(qk_norm={"kind": "l2"}), make_trial()]
    names = [store.put_trial(trial, TOKENS) for trial in trials]
    assert [store.read_trial(name)[0] for name in names] == trials


def drop_option(store, name, option):
    content = json.loads(store.trial(name).read_text())
    del content["trial"]["model"]["qk_norm"][option]
    store.trial(name).write_text(json.dumps(content))


def test_an_option_added_later_opens_no_component_that_is_absent(tmp_path, monkeypatch):
    monkeypatch.setitem(identity.LEGACY, "model.qk_norm.eps", 1e-6)
    store = Store(tmp_path).create()
    trials = [make_trial(qk_norm={"kind": "l2"}), make_trial()]
    names = [store.put_trial(trial, TOKENS) for trial in trials]
    drop_option(store, names[0], "eps")
    assert [store.read_trial(name)[0] for name in names] == trials


def test_a_component_with_a_missing_option_is_the_same_trial_or_refused(tmp_path):
    """Options have defaults: a filled one must not turn a trial into another without a word."""
    store = Store(tmp_path).create()
    trial = make_trial(qk_norm={"kind": "l2"})
    name = store.put_trial(trial, TOKENS)
    drop_option(store, name, "gain")
    assert store.read_trial(name)[0] == trial
    drop_option(store, name, "kind")
    with pytest.raises(UserError, match=f"trial {name} was edited"):
        store.read_trial(name)
