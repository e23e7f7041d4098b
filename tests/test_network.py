from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from c5 import Grid, ParameterError, angular_error
from c5.ccc import locate
from c5.choices import Recipe
from c5.color import rgb_to_uv
from c5.histograms import Histograms, histogram
from c5.model import Model, load_model
from c5.model_file import read_model
from c5.training.ccc import Located, Locator
from c5.training.config import (
    BUNDLED_GRID,
    NetworkConfig,
    RealTraining,
    RollKind,
    VirtualTraining,
    configure,
    make_config,
    paper_training,
    set_fields,
    train_config_from_json,
)
from c5.training.export import ExportError, check_export, export_model
from c5.training.loop import Evaluator
from c5.training.losses import LEAST_VARIANCE, log_likelihood, roughness, smoothness
from c5.training.losses import angular_error as angular_loss
from c5.training.network import (
    Emitted,
    Network,
    ProfileNetwork,
    RepeatEdges,
    TeamNetwork,
    Upsample,
    build_network,
    fill_between,
)

SMALL = NetworkConfig(Grid(16), widths=(4, 8), n_images=4)


def on(config: NetworkConfig, **grid: Any) -> NetworkConfig:
    """The same network on another grid."""
    return replace(config, grid=replace(config.grid, **grid))


OPTIONS = [
    SMALL,
    on(SMALL, bins=32),
    replace(SMALL, grid=Grid(64), widths=(4, 4, 8, 8)),
    replace(SMALL, grid=Grid(128), widths=(2, 4, 4, 4)),
    replace(SMALL, gain=True),
    replace(SMALL, gradient=False),
    replace(SMALL, coordinates=False),
    replace(SMALL, widths=(6, 10, 12)),
    replace(SMALL, n_images=2),
    replace(on(SMALL, powers=(3, 1)), power=3, one_decoder=True, gradient=False),
    replace(on(SMALL, powers=(1, 3, 0)), power=0),
    replace(SMALL, one_decoder=True, gain=True),
    on(SMALL, strips=3),
    replace(SMALL, kind=RollKind.SEPARATE),
    replace(on(SMALL, strips=2), kind=RollKind.SEPARATE),
    replace(SMALL, grid=Grid.published(16), kind=RollKind.SEPARATE, gain=True),
    replace(SMALL, kind=RollKind.SEPARATE, gradient=False, coordinates=False, n_images=2),
    replace(SMALL, kind=RollKind.SEPARATE, gain=True, n_images=1),
    replace(SMALL, kind=RollKind.SEPARATE, widths=(2, 4, 4, 4), he_normal=True),  # down to one bin
]


def some_histograms(grid: Grid, count: int, seed: int = 0) -> list[Histograms]:
    masses = np.random.default_rng(seed).random((count, *grid.shape)) ** 40
    stacks = np.sqrt(masses / masses.sum(axis=(2, 3), keepdims=True)).astype(np.float32)
    return [Histograms(grid, stack) for stack in stacks]


def seen(histograms: Sequence[Histograms]) -> torch.Tensor:
    return torch.as_tensor(np.stack([one.seen for one in histograms]))


def a_network(*team: NetworkConfig) -> Network:
    """Random weights, with batch-norm statistics that are not the initial ones."""
    torch.manual_seed(1)
    network, config = build_network(*team), team[0]
    network.train()
    batch = seen(some_histograms(network.grid, 3 * config.n_images))
    batch = batch.unflatten(0, (3, config.n_images))  # type: ignore[no-untyped-call]
    for _ in range(3):
        network(batch[:, 0], batch[:, 1:], torch.ones(3))
    return network.eval()


BRIGHT, ALL, STRIPS = on(SMALL, powers=(3, 1)), on(SMALL, powers=(1, 0, 3)), on(SMALL, powers=(3, 1), strips=4)

TEAMS = [
    (SMALL, replace(SMALL, coordinates=False)),
    (replace(BRIGHT, power=3, one_decoder=True), replace(BRIGHT, power=3, coordinates=False), BRIGHT),
    (replace(ALL, widths=(4, 6)), replace(ALL, power=0, gradient=False), replace(ALL, power=3)),
    (replace(STRIPS, power=3), STRIPS),
]


@pytest.mark.parametrize("team", [*((config,) for config in OPTIONS), *TEAMS], ids=lambda team: repr(team)[15:71])
def test_torch_onnx_and_numpy_agree(team: tuple[NetworkConfig, ...], tmp_path: Path) -> None:
    network, config = a_network(*team), team[0]
    grid = config.grid
    model = Model(export_model(network, tmp_path / "m.c5", name="m", training={}))
    assert model.grid == grid
    query, *roll = some_histograms(grid, config.n_images, 5)
    with torch.no_grad():
        emitted = network(seen([query]), seen(roll)[None] if roll else None, torch.ones(1))
        located = Locator(grid)(emitted, torch.as_tensor(query.searched[None]))
    profile = model.calibrate_histograms(roll)
    filters, bias, gain = model.emit(query, profile)
    # Profiles are rounded to half precision, hence the tolerance.
    np.testing.assert_allclose(filters, emitted.filters[0], atol=0.01 * float(emitted.filters.abs().max()))
    np.testing.assert_allclose(bias, emitted.bias[0], atol=0.01 * float(emitted.bias.abs().max()))
    assert (gain is None) == (emitted.gain is None) == (not config.gain)
    estimate = model.estimate_histogram(query, profile)
    assert angular_error(estimate.illuminant, located.illuminant[0].numpy()) < 0.02
    # The CCC step alone, without rounding: torch against NumPy.
    gain_map = None if emitted.gain is None else emitted.gain[0].numpy()
    same = locate(query, emitted.filters[0].numpy(), emitted.bias[0].numpy(), gain_map)
    assert angular_error(same.illuminant, located.illuminant[0].numpy()) < 1e-3
    np.testing.assert_allclose(same.heat_map, located.log_heat[0].exp().numpy(), atol=1e-5)  # type: ignore[arg-type]


@pytest.mark.parametrize("team", [(SMALL,), (on(SMALL, strips=3),), TEAMS[3]], ids=["one", "strips", "team"])
@pytest.mark.parametrize("additional", [0, 3])
def test_evaluation_estimates_what_the_file_does(
    team: tuple[NetworkConfig, ...], additional: int, tmp_path: Path
) -> None:
    network = a_network(*team)
    model = Model(export_model(network, tmp_path / "m.c5", name="m", training={}))
    histograms = some_histograms(model.grid, 6, 3)
    stacks = np.stack([one.stack for one in histograms]).astype(np.float16)
    rolls = np.stack([(np.arange(additional) + 1 + index) % 6 for index in range(6)]).astype(np.int64)
    found = Evaluator(network, stacks).estimate(rolls)
    assert found.uncertainties is not None
    for index, roll in enumerate(rolls):
        one = model.estimate_histogram(histograms[index], model.calibrate_histograms([histograms[i] for i in roll]))
        assert angular_error(one.illuminant, found.illuminants[index]) < 0.02
        assert one.uncertainty == pytest.approx(found.uncertainties[index], abs=0.02)
    with pytest.raises(ParameterError, match="needs histograms of shape"):
        Evaluator(network, stacks[:, :1])


@pytest.mark.parametrize("gain", [False, True])
@pytest.mark.parametrize("grid", [Grid(32), Grid.published(32)])
def test_the_two_ccc_steps_agree(grid: Grid, gain: bool) -> None:
    rng = np.random.default_rng(0)
    histograms = some_histograms(grid, 4)
    maps = rng.normal(0, 5, (4, 4, 32, 32)).astype(np.float32)
    filters, bias = torch.as_tensor(maps[:, :2]), torch.as_tensor(maps[:, 2])
    emitted = Emitted(filters, bias, torch.as_tensor(maps[:, 3]) if gain else None)
    locator = Locator(grid)
    located = locator(emitted, seen(histograms))
    uncertainty = locator.uncertainty(located)
    for index in range(4):
        one = locate(histograms[index], maps[index, :2], maps[index, 2], maps[index, 3] if gain else None)
        assert angular_error(one.illuminant, located.illuminant[index].numpy()) < 1e-3
        assert one.uncertainty == pytest.approx(uncertainty[index].item(), abs=0.01)


def test_a_model_that_sees_bright_pixels_is_the_same_in_a_file(tmp_path: Path) -> None:
    """From pictures on; half-precision weights change next to nothing."""
    grid = Grid(32, powers=(3, 1))
    config = NetworkConfig(grid, power=3, widths=(4, 8), gain=True, one_decoder=True, coordinates=False)
    network = a_network(config)
    path = tmp_path / "m.c5"
    export_model(network, path, name="m", training={})
    model = load_model(path)
    assert model.grid == config.grid
    rng = np.random.default_rng(2)
    pictures = (rng.uniform(0.02, 0.9, (4, 24, 36, 3)) * rng.uniform(0.3, 1, (4, 1, 1, 3))).astype(np.float32)
    histograms = seen([histogram(picture, grid) for picture in pictures])
    found = model.estimate(pictures[0], model.calibrate(list(pictures[1:])))
    with torch.no_grad():
        query, roll = histograms[:1], histograms[None, 1:]
        expected = Locator(grid)(network(query, roll, torch.ones(1)), query).illuminant[0].numpy()
    assert angular_error(found.illuminant, expected) < 0.1  # of a heat map that spreads over 39 degrees


@pytest.mark.parametrize("team", [(SMALL,), TEAMS[1]], ids=len)
def test_order_duplicates_and_size_of_the_roll(team: tuple[NetworkConfig, ...], tmp_path: Path) -> None:
    network = a_network(*team)
    model = Model(export_model(network, tmp_path / "m.c5", name="m", training={}))
    query, *roll = some_histograms(network.grid, 41)
    base = model.calibrate_histograms(roll)
    shuffled = [roll[i] for i in np.random.default_rng(3).permutation(40)]
    for other in (shuffled, roll + roll[:7], roll[::-1] + [roll[3]] * 90):
        again = model.calibrate_histograms(other)
        for a, b in zip(base.features, again.features, strict=True):
            np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(
            model.estimate_histogram(query, base).illuminant, model.estimate_histogram(query, again).illuminant
        )
    fewer = model.calibrate_histograms(roll[:2])
    assert any(not np.array_equal(a, b) for a, b in zip(base.features, fewer.features, strict=True))
    none = model.calibrate_histograms([])
    np.testing.assert_array_equal(
        model.estimate_histogram(query, none).illuminant, model.estimate_histogram(query).illuminant
    )


@pytest.mark.parametrize("team", [(SMALL,), TEAMS[1]], ids=len)
def test_the_profile_never_sees_the_query(team: tuple[NetworkConfig, ...]) -> None:
    network = a_network(*team)
    assert isinstance(network, ProfileNetwork if len(team) == 1 else TeamNetwork)
    histograms = seen(some_histograms(network.grid, 5))
    with torch.no_grad():
        together = network(histograms[:1], histograms[None, 1:], torch.ones(1))
        profile = [level.amax(dim=0, keepdim=True) for level in network.encode(histograms[1:])]
        apart = network.emit(histograms[:1], profile)
        nothing = network(histograms[:1], histograms[None, 1:], torch.zeros(1))
        empty = network.emit(histograms[:1], [torch.zeros_like(level) for level in profile])
    torch.testing.assert_close(together.filters, apart.filters)
    torch.testing.assert_close(nothing.bias, empty.bias)


@pytest.mark.parametrize("team", TEAMS, ids=len)
def test_the_heat_map_of_a_team_is_the_geometric_mean_of_its_members(team: tuple[NetworkConfig, ...]) -> None:
    """Each of which emits what it would by itself, for the histograms that it looks at."""
    network = a_network(*team)
    assert isinstance(network, TeamNetwork)
    histograms = seen(some_histograms(network.grid, 5))
    query, roll = histograms[:1], histograms[None, 1:]
    logs = []
    with torch.no_grad():
        heat = Locator(network.grid)(network(query, roll, torch.ones(1)), query).log_heat.exp()
        for config, member in zip(team, network.members, strict=True):
            looked_at = [config.grid.powers.index(config.power), *([-1] if config.gradient else [])]
            ((emitted, own),) = member.lessons(query, roll, torch.ones(1))  # type: ignore[operator]
            torch.testing.assert_close(own, query[:, looked_at], rtol=0, atol=0)
            logs.append(Locator(config.grid)(emitted, own).log_heat)
    mean = torch.stack(logs).mean(dim=0).exp()
    torch.testing.assert_close(heat, mean / mean.sum())
    assert not torch.allclose(logs[0], logs[1], atol=0.1)


def test_likelihood_is_that_of_the_normal_distribution() -> None:
    rng = np.random.default_rng(0)
    maps = torch.as_tensor(rng.normal(size=(6, 64, 64)) * 2)
    log_heat = torch.log_softmax(maps.flatten(1), dim=1).reshape(-1, 64, 64)
    truth = torch.nn.functional.normalize(torch.as_tensor(rng.random((6, 3)) + 0.2))
    locator = Locator(Grid()).double()
    found = log_likelihood(Located(truth, log_heat), truth, locator)
    v, u = torch.meshgrid(locator.v, locator.u, indexing="ij")
    points = torch.stack([u, v], dim=-1).reshape(-1, 2)
    for index, heat in enumerate(log_heat.exp().flatten(1)):
        mean = heat @ points
        covariance = (points - mean).T @ (heat[:, None] * (points - mean)) + LEAST_VARIANCE * torch.eye(2)
        where = torch.as_tensor(rgb_to_uv(truth[index].numpy()))
        normal = torch.distributions.MultivariateNormal(mean, covariance)
        expected = normal.log_prob(where) + math.log(2 * math.pi)  # type: ignore[no-untyped-call]
        torch.testing.assert_close(found[index], expected)


def test_likelihood_wants_heat_maps_as_wide_as_their_error() -> None:
    """For a heat map around the wrong place the best width is the distance, and its gradient is finite when narrow."""
    locator = Locator(Grid())
    truth = torch.nn.functional.normalize(torch.tensor([[math.exp(-0.3), 1, math.exp(0.3)]]))  # at (0.3, -0.3)
    distance = locator.u[None, :].square() + locator.v[:, None].square()
    widths = torch.tensor([0.01, 0.05, 0.1, 0.2, 0.3, 0.5, 0.9], requires_grad=True)
    log_heat = torch.log_softmax((-distance / (2 * widths[:, None, None].square())).flatten(1), dim=1)
    likely = log_likelihood(Located(truth, log_heat.reshape(-1, 64, 64)), truth.expand(7, 3), locator)
    assert likely.argmax() == 4
    likely.sum().backward()  # type: ignore[no-untyped-call]
    assert widths.grad is not None
    assert widths.grad.isfinite().all()


def test_upsampling_is_the_library_s() -> None:
    x = torch.randn(2, 3, 8, 8)
    expected = torch.nn.functional.interpolate(x, scale_factor=2, mode="bilinear", align_corners=True)
    torch.testing.assert_close(Upsample(8)(x), expected)


def test_roughness_is_the_sobel_filters() -> None:
    maps = torch.randn(3, 2, 9, 9, dtype=torch.float64)
    kernel = torch.tensor([[-1.0, 0, 1], [-2, 0, 2], [-1, 0, 1]], dtype=torch.float64)
    expected = torch.zeros((), dtype=torch.float64)
    for direction in (kernel, kernel.T):
        filtered = torch.nn.functional.conv2d(maps.flatten(0, 1)[:, None], direction[None, None])
        expected += filtered.square().unflatten(0, (3, 2)).mean(dim=(0, 2, 3, 4)).sum()  # type: ignore[no-untyped-call]
    torch.testing.assert_close(roughness(maps), expected)
    flat = Emitted(torch.ones(1, 2, 8, 8), torch.full((1, 8, 8), 3.0), torch.ones(1, 8, 8))
    assert smoothness(flat, 0.15, 0.02) == 0
    assert smoothness(flat._replace(gain=torch.eye(8)[None]), 0.15, 0.02) > 0


def test_angular_loss_is_the_angle_and_its_gradient_is_finite_everywhere() -> None:
    rng = np.random.default_rng(0)
    a, b = (torch.nn.functional.normalize(torch.as_tensor(rng.random((50, 3)))) for _ in range(2))
    np.testing.assert_allclose(angular_loss(a, b), angular_error(a.numpy(), b.numpy()), atol=1e-4)
    same = a[:1].clone().requires_grad_()
    angular_loss(same, a[:1]).sum().backward()  # type: ignore[no-untyped-call]
    assert same.grad is not None
    assert torch.isfinite(same.grad).all()
    assert torch.autograd.gradcheck(lambda x: angular_loss(x, b), (a.clone().requires_grad_(),), atol=1e-4)


def test_a_wrong_export_is_not_written(tmp_path: Path) -> None:
    file = export_model(a_network(SMALL), tmp_path / "m.c5", name="m", training={})
    torch.manual_seed(99)
    with pytest.raises(ExportError, match="differs"):
        check_export(build_network(SMALL).eval(), file)


def test_a_network_that_has_hardly_been_trained_can_be_written(tmp_path: Path) -> None:
    """Its light depends on the last digits of its input, in torch as well."""
    (config,) = set_fields(paper_training(1), ["G=true"]).networks
    for seed in range(2):
        torch.manual_seed(seed)
        export_model(build_network(config).eval(), tmp_path / f"{seed}.c5", name="m", training={})
    with pytest.raises(ExportError, match="differs"):
        check_export(build_network(config).eval(), read_model(tmp_path / "1.c5"))


def test_configurations_survive_json_and_refuse_nonsense() -> None:
    for config in OPTIONS:
        assert NetworkConfig.from_json(config.to_json()) == config
    own = (paper_training(7), RealTraining(networks=TEAMS[2], shift_bins=2), VirtualTraining(networks=TEAMS[3]))
    for training in (*(make_config(recipe) for recipe in Recipe), *own):
        assert train_config_from_json(training.to_json()) == training
    begun_earlier = VirtualTraining().to_json() | {"mixed_queries": 0, "balance": 0.0}
    assert train_config_from_json(begun_earlier) == VirtualTraining()
    with pytest.raises(ParameterError, match="widths"):
        NetworkConfig(Grid(16), widths=(4, 4, 4, 4, 4))
    with pytest.raises(ParameterError, match="shift_bins"):
        RealTraining(networks=(SMALL,), shift_bins=8)
    with pytest.raises(ParameterError, match="n_images"):
        NetworkConfig(n_images=0)
    with pytest.raises(ParameterError, match="power"):
        NetworkConfig(power=3)
    for wrong in ({"gain": True}, {"kind": RollKind.SEPARATE}, {"grid": Grid(32)}, {"n_images": 3}):
        with pytest.raises(ParameterError, match="of a team"):
            RealTraining(networks=(SMALL, replace(SMALL, **wrong)), shift_bins=2)
    with pytest.raises(ParameterError, match="likelihood"):
        RealTraining(likelihood=-1)


def test_a_table_sets_whatever_a_configuration_holds() -> None:
    config = VirtualTraining()
    changed = configure(config, {"epochs": 3, "likelihood": 2, "network": {"widths": [4, 8], "n_images": 5}})
    assert changed == replace(
        config,
        epochs=3,
        likelihood=2.0,
        networks=tuple(replace(network, widths=(4, 8), n_images=5) for network in config.networks),
    )
    team = configure(config, {"networks": [{"power": 0, "grid": {"strips": 1}}, {"grid": {"strips": 1}}]})
    assert [network.power for network in team.networks] == [0, 1]
    assert team.grid == Grid(powers=(0, 1), pixels=BUNDLED_GRID.pixels)
    one = configure(RealTraining(), {"shift_bins": 2, "network": {"kind": "separate", "grid": {"bins": 32}}})
    assert one.networks[0] == replace(NetworkConfig(Grid(32)), kind=RollKind.SEPARATE)
    for wrong, message in (
        ({"magic": 1}, "no field 'magic'"),
        ({"steps_per_epoch": "many"}, "must be int"),
        ({"network": {"kind": "magic"}}, "one of profile, separate"),
        ({"network": {"grid": {"bins": 33}}}, "bins"),
        ({"networks": {}}, "tables"),
        ({"epochs": True}, "must be int"),
    ):
        with pytest.raises(ParameterError, match=message):
            configure(config, wrong)


def test_the_paper_s_recipe_is_the_paper_s() -> None:
    paper = paper_training()
    assert (paper.epochs, paper.learning_rate, paper.weight_decay) == (60, 5e-4, 5e-4)
    assert (paper.smooth_filters, paper.smooth_bias) == (0.15, 0.02)
    assert paper.networks[0].kind is RollKind.SEPARATE
    assert paper.n_images == 9
    assert paper.shift_bins == 0


def test_the_paper_s_network_starts_as_the_published_code_lets_it() -> None:
    torch.manual_seed(0)
    network = build_network(*paper_training(3).networks)
    for module in network.modules():
        if isinstance(module, torch.nn.Conv2d):
            assert module.bias is not None
            assert not module.bias.any()
            if module.weight.numel() > 1000:  # normal, with the variance of He et al.
                wide = (2 / module.weight[0].numel()) ** 0.5
                assert float(module.weight.detach().std()) == pytest.approx(wide, rel=0.1)
                assert float(module.weight.detach().abs().max()) > 2.5 * wide  # as no uniform distribution


def test_an_encoder_alone_has_nothing_to_merge() -> None:
    (config,) = set_fields(paper_training(1), ["n=16"]).networks
    assert not list(build_network(config).get_submodule("merges").parameters())
    assert config.widths == (8, 16, 32, 32)  # four levels: 16, 8, 4, 2 bins, and one


def test_networks_are_exported_on_several_threads_at_once(tmp_path: Path) -> None:
    network = a_network(SMALL)

    def export(number: int) -> str:
        return export_model(network, tmp_path / f"{number}.c5", name="m", training={}).identity

    with ThreadPoolExecutor(4) as pool:
        assert len(set(pool.map(export, range(8)))) == 1


@pytest.mark.parametrize("size", [(1, 1), (1, 4), (2, 2), (4, 4), (5, 9)])
def test_edges_and_their_gradient_are_those_of_torch(size: tuple[int, int]) -> None:
    torch.manual_seed(0)
    x = torch.randn(2, 3, *size, requires_grad=True)
    ours = RepeatEdges.apply(x)  # type: ignore[no-untyped-call]
    theirs = torch.nn.functional.pad(x, (1, 1, 1, 1), mode="replicate")
    assert torch.equal(ours, theirs)
    share = torch.randn_like(theirs)
    (found,), (expected,) = (torch.autograd.grad((padded * share).sum(), x) for padded in (ours, theirs))
    torch.testing.assert_close(found, expected)


def test_groups_with_zeros_between_are_one_convolution() -> None:
    torch.manual_seed(0)
    x, weight = torch.randn(2, 6, 5, 5), torch.randn(12, 2, 3, 3)
    expected = torch.nn.functional.conv2d(x, weight, groups=3)
    torch.testing.assert_close(torch.nn.functional.conv2d(x, fill_between(weight, 3)), expected)
