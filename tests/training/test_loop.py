"""The loop in memory: exactness under interruption, early stopping, warm-up, divergence."""

import dataclasses
import itertools
import math
import pickle

import numpy as np
import pytest
import torch
from tests.journals import MemoryJournal
from tests.objectives.specs import SPECS, small

from wiseale import config
from wiseale.data.dataset import Rows
from wiseale.errors import DivergenceError
from wiseale.likelihoods import GaussianSettings, TableSettings
from wiseale.networks.model import Model, seeded
from wiseale.objectives import make_objective
from wiseale.runs.checkpoint import load_newest
from wiseale.spaces import Column, MixedSpace, plain_space
from wiseale.training.batches import Batches
from wiseale.training.learner import Learner
from wiseale.training.loop import fit
from wiseale.training.settings import Constant, Cosine, Plan, Step

N, FEATURES = 50, 6


def rows(seed=0, n=N):
    return Rows(np.random.default_rng(seed).normal(size=(n, FEATURES)).astype(np.float32))


def plan(**changes):
    settings = {
        "batch_size": 8,
        "max_epochs": 3,
        "lr": 1e-2,
        "lr_schedule": Constant(),
        "checkpoint_every": 1000,
        "seed": 3,
    }
    return Plan(**settings | changes)


def fresh(objective="wise_ale", seed=0):
    made = make_objective(objective)
    with seeded(seed):
        model = Model(
            config.build("network", "mlp:hidden=16"), plain_space((FEATURES,)), 2, GaussianSettings(), made.stochastic
        )
        return Learner.fresh(model, made.build(model.space, 2), 1e-2)


def state(learner):
    states = [optimizer.state_dict()["state"] for _, optimizer in sorted(learner.optimizers.items())]
    moments = [state[number][name] for state in states for number in sorted(state) for name in sorted(state[number])]
    return [*learner.modules.state_dict().values(), *moments]


def same(left, right):
    return all(torch.equal(a, b) for a, b in zip(state(left), state(right), strict=True))


@pytest.mark.parametrize("objective", SPECS)
def test_interrupted_and_continued_equals_uninterrupted(objective, tmp_path):
    """Stopped at the start and the end of the first of three epochs of 6 steps, in the second and in the last."""
    objective = small(objective)
    chosen = plan(patience=5, prior_warmup=1.5, lr_schedule=Cosine(), max_grad_norm=0.5)
    train, held_out = Batches(rows()), Batches(rows(1, 20))
    whole = fresh(objective)
    complete = MemoryJournal()
    assert fit(whole, train, held_out, chosen, complete)
    assert len(complete.records) == 3

    for step in (1, 6, 7, 17):
        first = fresh(objective)
        stopped = MemoryJournal(stop_after=(step,), directory=tmp_path / str(step))
        assert not fit(first, train, held_out, chosen, stopped)
        second = fresh(objective, seed=99)  # other weights: all must come from the checkpoint
        load_newest(tmp_path / str(step), second, lambda history: None)
        assert second.progress.step == step
        rest = MemoryJournal()
        assert fit(second, train, held_out, chosen, rest)
        assert same(whole, second), step
        assert without_times(stopped.records + rest.records) == without_times(complete.records), step
        assert whole.progress == second.progress, step
        assert all(torch.equal(whole.best[name], second.best[name]) for name in whole.best), step


def without_times(records):
    return [dataclasses.replace(record, seconds=0.0, cpu_seconds=0.0, samples=0) for record in records]


def test_saving_changes_nothing(tmp_path):
    outcomes = []
    for every in (1000, 2):
        learner = fresh()
        fit(learner, Batches(rows()), None, plan(checkpoint_every=every), MemoryJournal(directory=tmp_path))
        outcomes.append(learner)
    assert same(*outcomes)


def test_every_epoch_sees_every_row_at_most_once_in_another_order():
    seen = []

    class Spy(Batches):
        def read(self, positions, counter=0):
            seen.append(positions.tolist())
            return super().read(positions, counter)

    learner = fresh()
    fit(learner, Spy(rows()), None, plan(max_epochs=2), MemoryJournal())
    first, second = (list(itertools.chain(*part)) for part in (seen[:6], seen[6:]))
    assert len(first) == len(set(first)) == 48
    assert len(set(second)) == 48
    assert first != second


def test_the_loss_goes_down_and_terms_add_up():
    journal = MemoryJournal()
    learner = fresh("beta_vae:beta=0.1")
    fit(learner, Batches(rows()), Batches(rows(1)), plan(max_epochs=20), journal)
    first, last = journal.records[0].train, journal.records[-1].train
    assert last["loss"] < first["loss"]
    assert last["loss"] == pytest.approx(last["reconstruction"] + 0.1 * last["prior"], rel=1e-5)
    assert last["elbo"] == pytest.approx(-last["reconstruction"] - last["kl_posterior_prior"], rel=1e-9)


@pytest.mark.parametrize("held", [1, 5 * 8 * 2, 1 << 20], ids=["each step", "some steps", "the epoch"])
def test_steps_are_logged_alike_however_many_wait(held, monkeypatch):
    """AEVB's prior is the KL that is logged beside every objective, computed for all waiting steps at once."""
    monkeypatch.setattr("wiseale.training.step._MOST_ENTRIES", held)
    reports = []
    journal = MemoryJournal()
    journal.step = lambda *report: reports.append(report)
    fit(fresh("aevb"), Batches(rows()), None, plan(max_epochs=1), journal)
    steps_waiting = min(6, max(1, held // (8 * 2)))
    assert len(reports) == math.ceil(6 / steps_waiting)
    train = journal.records[0].train
    assert train["kl_posterior_prior"] == pytest.approx(train["prior"], rel=1e-6)
    assert train["loss"] == pytest.approx(train["reconstruction"] + train["prior"], rel=1e-6)


def test_warm_up_starts_without_the_prior():
    """In the first step of a warm-up the encoder's sigma bias feels the reconstruction alone."""
    with_prior, without = fresh("aevb"), fresh("beta_vae:beta=1e-30")
    one_step = {"max_epochs": 1, "batch_size": 50}
    fit(with_prior, Batches(rows()), None, plan(prior_warmup=4.0, **one_step), MemoryJournal())
    fit(without, Batches(rows()), None, plan(**one_step), MemoryJournal())
    assert same(with_prior, without)


def test_early_stopping_keeps_the_best_epoch():
    journal = MemoryJournal()
    learner = fresh("beta_vae:beta=0.01")
    chosen = plan(max_epochs=400, patience=3, lr=3e-2, batch_size=16)
    fit(learner, Batches(rows(n=32)), Batches(rows(5, 32)), chosen, journal)
    losses = [record.held_out["loss"] for record in journal.records]
    assert len(losses) < 400
    assert learner.progress.best_epoch == int(np.argmin(losses)) + 1
    assert len(losses) == learner.progress.best_epoch + 3
    shorter = dataclasses.replace(chosen, max_epochs=learner.progress.best_epoch)
    finished = fresh("beta_vae:beta=0.01")
    fit(finished, Batches(rows(n=32)), None, shorter, MemoryJournal())
    found = finished.modules.state_dict()
    assert all(torch.equal(learner.best[name], found[name]) for name in found)


def test_the_order_of_the_rows_in_a_file_does_not_change_what_a_held_out_batch_means():
    """The aggregate of neighbours in a sorted file would be far from the prior, that of a random batch is not."""
    x = np.random.default_rng(5).normal(size=(512, 1)) * np.ones(FEATURES)
    found = []
    for held_out in (x, np.sort(x, axis=0)):
        learner = fresh()
        with torch.no_grad():  # codes in the order of the rows, posteriors much narrower than their spread
            learner.model.linear.encoder.weight.fill_(1 / FEATURES)
            learner.model.head.sigma.bias.fill_(-3)
        journal, chosen = MemoryJournal(), plan(max_epochs=1, lr=1e-9, batch_size=32)
        fit(learner, Batches(rows()), Batches(Rows(held_out.astype(np.float32))), chosen, journal)
        found.append(journal.records[-1].held_out["prior"])
    assert found[1] == pytest.approx(found[0], rel=0.05)


def test_divergence_names_the_step_and_the_term():
    learner = fresh()
    poisoned = rows()
    poisoned.x[::2] = 1e30  # its square overflows float32
    with pytest.raises(DivergenceError, match=r"step 1 \(epoch 1\): reconstruction .*\blr\b") as e:
        fit(learner, Batches(poisoned), None, plan(), MemoryJournal())
    error = e.value
    assert (error.term, error.step, error.epoch, error.held_out) == ("reconstruction", 1, 1, False)
    assert not math.isfinite(error.value)
    message = error.message(lambda setting: f"--{setting.replace('_', '-')}")
    assert all(setting in message for setting in ("--lr", "--max-grad-norm", "sigma_min in --network"))
    assert str(pickle.loads(pickle.dumps(error))) == str(error)  # as from a worker of a parallel grid search


def test_divergence_on_held_out_rows_says_so():
    poisoned = rows(1, 20)
    poisoned.x[:] = 1e30
    with pytest.raises(DivergenceError, match="held-out batch 0: reconstruction"):
        fit(fresh(), Batches(rows()), Batches(poisoned), plan(), MemoryJournal())


def test_no_checkpoint_of_broken_weights(tmp_path):
    """The update of step 4 overflows the weights while its loss is finite: step 3 stays the newest checkpoint."""

    def leap(epoch, max_epochs):
        return 1.0 if epoch < 3 / 6 else 1e45

    learner, journal = fresh(), MemoryJournal(directory=tmp_path)
    with pytest.raises(DivergenceError, match="step 4: the weights"):
        fit(learner, Batches(rows()), None, plan(checkpoint_every=1, lr_schedule=leap), journal)
    assert journal.saved == [1, 2, 3]
    saved = fresh(seed=99)
    load_newest(tmp_path, saved, lambda history: None)
    assert saved.progress.step == 3
    assert all(bool(value.isfinite().all()) for value in saved.modules.state_dict().values())


@pytest.mark.parametrize(
    ("schedule", "epoch", "expected"),
    [
        (Constant(), 7.5, 1.0),
        (Step(epochs=(30,), factor=0.5), 29.99, 1.0),
        (Step(epochs=(30,), factor=0.5), 30.0, 0.5),
        (Step(epochs=(2, 4), factor=0.1), 4.5, 0.01),
        (Cosine(final=0.2), 0.0, 1.0),
        (Cosine(final=0.2), 5.0, 0.6),
        (Cosine(final=0.2), 10.0, 0.2),
    ],
)
def test_schedules(schedule, epoch, expected):
    assert schedule(epoch, 10) == pytest.approx(expected)


def test_bf16_stays_close_to_fp32():
    losses = []
    for precision in ("fp32", "bf16"):
        journal = MemoryJournal()
        fit(fresh(), Batches(rows()), None, plan(precision=precision, max_epochs=5), journal)
        losses.append(journal.records[-1].train["loss"])
    assert math.isclose(*losses, rel_tol=0.02)
    assert losses[0] != losses[1]


def test_critic_and_encoder_steps_see_the_cells_that_the_main_step_sees(monkeypatch):
    """Of a table's rows some cells are hidden in training; a critic of complete rows would judge other codes."""
    made = make_objective("aae")
    with seeded(0):
        space = MixedSpace.of([Column(str(i)) for i in range(FEATURES)])
        model = Model(config.build("network", "mlp:hidden=16"), space, 2, TableSettings())
        learner = Learner.fresh(model, made.build(model.space, 2), 1e-2)
    seen = []
    encode = model.encode
    monkeypatch.setattr(model, "encode", lambda x: seen.append(x.isnan()) or encode(x))
    fit(learner, Batches(rows(n=8)), None, plan(max_epochs=1), MemoryJournal())
    main, critic, encoder = seen
    assert main.any()
    assert torch.equal(main, critic)
    assert torch.equal(main, encoder)


class Scripted:
    """Learns as AEVB does, while its held-out losses are given: at the start, then after every epoch."""

    couples_batch = needs_whole_batch = False

    def __init__(self, losses):
        self.inner, self.losses = make_objective("aevb"), iter(losses)

    def __call__(self, batch):
        terms = self.inner(batch)
        if torch.is_grad_enabled():
            return terms
        return dataclasses.replace(
            terms, reconstruction=torch.full_like(terms.reconstruction, next(self.losses)), weight=0.0
        )


@pytest.mark.parametrize(
    ("losses", "warmup", "best", "last"),
    [
        ([5, 4, 4, 4, 9], 0, 1, 3),  # the first of equal losses is kept, and two epochs are waited for
        ([5, 4, 4.5, 3, 9, 9, 0], 0, 3, 5),
        ([1, 2, 3, 0], 0, 0, 2),  # the start is a candidate
        ([5, 1, 1, 3, 9, 9, 0], 3, 3, 5),  # in the warm-up the loss is another one
        ([1, 9, 9, 9, 9, 9, 0], 3, 0, 5),  # and patience begins at its end
        ([1, 9, 9, 9, 9, 9, 0], 2.5, 0, 5),
    ],
)
def test_early_stopping_on_given_losses(losses, warmup, best, last):
    learner, journal = fresh(), MemoryJournal()
    before = {name: value.clone() for name, value in learner.modules.state_dict().items()}
    learner.objective = Scripted(losses)
    chosen = plan(max_epochs=9, patience=2, prior_warmup=warmup)
    fit(learner, Batches(rows()), Batches(rows(1, 8)), chosen, journal)
    assert (learner.progress.best_epoch, learner.progress.kept_epoch, len(journal.records)) == (best, best, last)
    finished = learner.finish().state_dict()
    at_start = all(torch.equal(finished[name.removeprefix("model.")], value) for name, value in before.items())
    assert at_start == (best == 0)


def test_without_held_out_rows_the_last_epoch_is_kept():
    learner = fresh()
    fit(learner, Batches(rows()), None, plan(), MemoryJournal())
    assert learner.progress.kept_epoch == learner.progress.epoch == 3


def test_the_loss_is_watched_when_it_is_due_and_at_the_end():
    journal = MemoryJournal()
    fit(fresh(), Batches(rows()), Batches(rows(1, 8)), plan(max_epochs=5, watch_every=2), journal)
    assert [record.held_out is not None for record in journal.records] == [False, True, False, True, True]


def test_the_warm_up_grows_by_the_step_and_ends_at_1():
    """Over 1.5 epochs of 6 steps; a record has the factor of its epoch's last step."""
    journal = MemoryJournal()
    fit(fresh(), Batches(rows()), None, plan(prior_warmup=1.5, max_epochs=4), journal)
    assert [record.warmup for record in journal.records] == pytest.approx([5 / 9, 1, 1, 1])


def test_a_clipped_gradient_is_small():
    """Adam's steps do not follow the gradient's size, unless it is far below its eps of 1e-8."""
    moved = []
    for norm in (None, 1e-12):
        learner = fresh()
        before = torch.cat([p.detach().flatten() for p in learner.modules.parameters()])
        fit(learner, Batches(rows()), None, plan(max_grad_norm=norm, max_epochs=1), MemoryJournal())
        after = torch.cat([p.detach().flatten() for p in learner.modules.parameters()])
        moved.append(float((after - before).abs().max()))
    assert moved[0] > 1e-2
    assert moved[1] < 1e-3 * moved[0]


def test_checkpoints_are_saved_when_due_and_the_newest_two_kept(tmp_path):
    journal = MemoryJournal(directory=tmp_path)
    fit(fresh(), Batches(rows()), None, plan(checkpoint_every=4), journal)
    assert journal.saved == [4, 8, 12, 16]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["000012", "000016"]


def test_every_step_has_noise_of_its_own_and_the_held_out_rows_always_the_same(monkeypatch):
    learner, noise, generators = fresh(), [], []
    forward, call = learner.model.forward, type(learner.objective).__call__
    monkeypatch.setattr(learner.model, "forward", lambda x, epsilon: noise.append(epsilon) or forward(x, epsilon))
    monkeypatch.setattr(
        type(learner.objective),
        "__call__",
        lambda objective, batch: generators.append(batch.generator.initial_seed()) or call(objective, batch),
    )
    fit(learner, Batches(rows()), Batches(rows(1, 8)), plan(max_epochs=2, patience=9), MemoryJournal())
    held_out, training = noise[::7], [epsilon for step, epsilon in enumerate(noise) if step % 7]
    assert len(held_out) == 3
    assert len(training) == len({tuple(epsilon.flatten().tolist()) for epsilon in training}) == 12
    assert len({tuple(epsilon.flatten().tolist()) for epsilon in held_out}) == 1
    assert not any(torch.equal(held_out[0], epsilon) for epsilon in training)
    assert len(set(generators[1:7] + generators[8:14])) == 12


def test_a_fifth_of_the_cells_is_hidden_in_training_and_none_when_the_loss_is_watched(monkeypatch):
    objective = make_objective("wise_ale")
    with seeded(0):
        space = MixedSpace.of([Column(str(i)) for i in range(FEATURES)])
        model = Model(config.build("network", "mlp:hidden=16"), space, 2, TableSettings())
        learner = Learner.fresh(model, objective.build(model.space, 2), 1e-2)
    hidden = []
    encode = model.encode
    monkeypatch.setattr(model, "encode", lambda x: hidden.append(x.isnan()) or encode(x))
    chosen = plan(max_epochs=1, patience=9, batch_size=100)
    fit(learner, Batches(rows(n=400)), Batches(rows(1, 100)), chosen, MemoryJournal())
    start, *steps, end = hidden
    assert not start.any()
    assert not end.any()
    assert len(steps) == 4
    share = torch.stack(steps).double().mean()
    assert abs(share - 0.2) < 4 * math.sqrt(0.2 * 0.8 / (400 * FEATURES))
    assert len({tuple(cells.flatten().tolist()) for cells in steps}) == 4
