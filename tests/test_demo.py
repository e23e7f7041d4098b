"""The demo pictures: the laws of the light and the cameras, and statistics like those of photographs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from c5.color import Float64s, angular_error, rgb_to_uv
from c5.colorimetry.spectra import black_body, daylight, read_spectra, xyz
from c5.demo import LIGHTS, SCENE_LIGHTS, SCENES, Photo, VirtualCamera, render_photo, render_roll
from c5.demo.canvas import Canvas, tile
from c5.errors import ParameterError

SMALL = (64, 96)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def chromaticity(spectrum: Float64s) -> Float64s:
    total = xyz(spectrum)
    return np.asarray(total[:2] / total.sum())


@pytest.fixture(scope="module")
def rolls() -> list[list[Photo]]:
    return [render_roll(VirtualCamera.random(rng(seed)), 12, rng(seed), SMALL) for seed in range(6)]


def test_black_body_at_2856_k_is_illuminant_a() -> None:
    np.testing.assert_allclose(chromaticity(black_body(2856)), [0.4476, 0.4074], atol=0.001)


def test_daylight_at_6504_k_is_d65() -> None:
    np.testing.assert_allclose(chromaticity(daylight(6504)), [0.3127, 0.3290], atol=0.002)


@pytest.mark.parametrize("kelvin", [0, 900, 1e6, float("nan")])
def test_temperatures_out_of_range_are_refused(kelvin: float) -> None:
    with pytest.raises(ParameterError):
        black_body(kelvin)
    with pytest.raises(ParameterError):
        daylight(kelvin)


@pytest.mark.parametrize("kind", ["chart", "tcs", "surface"])
def test_no_surface_reflects_more_light_than_falls_on_it(kind: str) -> None:
    table = np.stack(list(read_spectra(kind).values()))
    assert table.min() >= 0
    assert table.max() <= 1


@pytest.mark.parametrize("family", LIGHTS)
def test_lights_are_positive_and_of_luminance_one(family: str) -> None:
    for seed in range(5):
        light = LIGHTS[family](rng(seed))
        assert light.family == family
        assert (light.spectrum >= 0).all()
        assert (light.fill >= 0).all()
        assert xyz(light.spectrum)[1] == pytest.approx(1)
        assert xyz(light.fill)[1] == pytest.approx(1)


def test_daylight_is_where_real_cameras_have_it_and_differs_between_cameras() -> None:
    whites = np.stack([VirtualCamera.random(rng(seed)).respond(daylight(5500)) for seed in range(40)])
    ratios = whites[:, [0, 2]] / whites[:, 1:2]
    assert (ratios >= [0.35, 0.5]).all()
    assert (ratios <= [0.8, 1.0]).all()
    assert (rgb_to_uv(whites).std(axis=0) > 0.1).all()


def test_warmer_light_is_redder_on_every_camera() -> None:
    for seed in range(20):
        camera = VirtualCamera.random(rng(seed))
        lights = [black_body(2400), black_body(3400), daylight(5000), daylight(9000)]
        u, v = rgb_to_uv([camera.respond(light) for light in lights]).T
        assert (np.diff(u) > 0).all()
        assert (np.diff(v) < 0).all()


@pytest.mark.parametrize("kelvin", [2856, 6504])
def test_color_matrix_keeps_white_and_is_scaled_as_in_a_dng(kelvin: float) -> None:
    camera = VirtualCamera.random(rng(3))
    light = black_body(kelvin) if kelvin < 4000 else daylight(kelvin)
    matrix = camera.color_matrix(kelvin)
    assert angular_error(matrix @ xyz(light), camera.respond(light)) < 1e-4
    assert (matrix @ [0.9642, 1.0, 0.8251]).max() == pytest.approx(1)


def test_color_matrix_predicts_the_chart() -> None:
    camera = VirtualCamera.nikon_d5100()
    seen = np.stack(list(read_spectra("chart").values())) * daylight(6504)
    errors = angular_error(xyz(seen) @ camera.color_matrix(6504).T, camera.respond(seen))
    assert errors.mean() < 3


def test_a_camera_that_cannot_exist_is_refused() -> None:
    camera = VirtualCamera.nikon_d5100()
    with pytest.raises(ParameterError, match="order"):
        replace(camera, black_level=20000)
    with pytest.raises(ParameterError, match="shape"):
        replace(camera, sensitivities=camera.sensitivities[:2])
    with pytest.raises(ParameterError, match="noise"):
        replace(camera, read_noise=-1.0)


def test_sensor_noise_has_the_stated_variance_and_mean() -> None:
    camera = VirtualCamera("test", VirtualCamera.nikon_d5100().sensitivities, 512, 15871, 1e-4, 1e-3)
    numbers = camera.expose(np.full((200, 200, 3), 0.25, np.float32), rng())
    signal = (numbers - 512.0) / (15871 - 512)
    assert signal.mean() == pytest.approx(0.25, abs=1e-4)
    assert signal.var() == pytest.approx(1e-4 * 0.25 + 1e-6, rel=0.03)


@pytest.mark.parametrize("scene", SCENES)
def test_a_scene_renders_in_every_light_it_is_met_in(scene: str) -> None:
    camera = VirtualCamera.random(rng(1))
    for family in SCENE_LIGHTS[scene]:
        photo = render_photo(camera, scene, LIGHTS[family](rng(2)), rng(3), SMALL)
        assert photo.raw.shape == (*SMALL, 3)
        assert camera.black_level < np.median(photo.raw) < camera.white_level
        assert photo.raw.max() <= camera.white_level
        assert photo.image.counts.mean() > 0.4
        span = camera.white_level - camera.black_level
        expected = np.clip((photo.raw.astype(float) - camera.black_level) / span, 0, 1)
        np.testing.assert_allclose(photo.image.rgb, expected, atol=1e-6)
        assert np.linalg.norm(photo.illuminant) == pytest.approx(1)


def test_the_same_seed_gives_the_same_roll() -> None:
    first, second, other = (render_roll(VirtualCamera.random(rng(7)), 5, rng(seed), SMALL) for seed in (8, 8, 9))
    for a, b in zip(first, second, strict=True):
        np.testing.assert_array_equal(a.raw, b.raw)
        np.testing.assert_array_equal(a.illuminant, b.illuminant)
        assert (a.scene, a.light, a.image.source) == (b.scene, b.light, b.image.source)
    assert any((a.raw != c.raw).any() for a, c in zip(first, other, strict=True))


@pytest.mark.parametrize("scene", SCENES)
def test_a_scene_has_the_same_layout_at_every_size(scene: str) -> None:
    camera = replace(VirtualCamera.random(rng(1)), shot_noise=0.0, read_noise=0.0)
    light = LIGHTS[SCENE_LIGHTS[scene][0]](rng(2))
    small, large = (render_photo(camera, scene, light, rng(5), (h, h * 3 // 2)).image.rgb for h in (64, 128))
    coarse = large.reshape(64, 2, 96, 2, 3).mean(axis=(1, 3))
    assert np.corrcoef(np.log(small + 0.02).ravel(), np.log(coarse + 0.02).ravel())[0, 1] > 0.8


@pytest.mark.parametrize("family", ["sun", "overcast", "tungsten", "fluorescent", "led"])
def test_neutral_patches_have_the_color_of_the_illuminant(family: str) -> None:
    camera = replace(VirtualCamera.random(rng(4)), shot_noise=0.0, read_noise=0.0)
    light = LIGHTS[family](rng(5))
    scene = next(name for name, lights in SCENE_LIGHTS.items() if family in lights)
    photo = render_photo(camera, scene, light, rng(6), (256, 384), chart=True)
    neutral = camera.respond(np.stack(list(read_spectra("chart").values())[19:23]) * light.spectrum)
    pixels = photo.image.rgb[~photo.image.mask & ~photo.image.clipped].astype(np.float64)
    for patch in neutral:
        assert angular_error(patch, photo.illuminant) < 1.5
        # Most of a patch has its exact color; its edges mix with the frame.
        assert (angular_error(pixels, patch) < 0.25).sum() > 100


def test_a_perfect_white_on_the_canvas_has_the_color_of_the_illuminant() -> None:
    camera, light = VirtualCamera.random(rng(4)), LIGHTS["sun"](rng(5))
    canvas = Canvas.new(camera, light, SMALL, np.array([0, -1, 0], np.float32))
    canvas.paint(1.0, {"white": 1.0}, 1.0)
    assert angular_error(canvas.rgb[:, 0, 0], camera.illuminant(light.spectrum)) < 1e-3
    canvas.paint(1.0, {"white": 1.0}, 0.0)
    assert angular_error(canvas.rgb[:, 0, 0], camera.illuminant(light.fill)) < 1e-3


def test_the_shadows_of_the_sun_are_bluer_than_its_light() -> None:
    camera, light = VirtualCamera.nikon_d5100(), LIGHTS["sun"](rng(1))
    lit, shadow = rgb_to_uv([camera.respond(light.spectrum), camera.respond(light.fill)])
    assert shadow[0] > lit[0]
    assert shadow[1] < lit[1]


def test_exactly_one_photo_of_a_roll_has_a_chart_and_its_mask_hides_it(rolls: list[list[Photo]]) -> None:
    for roll in rolls:
        (charted,) = (photo for photo in roll if not photo.image.mask.all())
        assert 0.02 < (~charted.image.mask).mean() < 0.25
    assert all(photo.image.mask.all() for photo in render_roll(VirtualCamera.nikon_d5100(), 3, rng(), SMALL))


def test_a_roll_is_varied_and_every_photo_has_its_own_name(rolls: list[list[Photo]]) -> None:
    for roll in rolls:
        assert {photo.scene for photo in roll} == set(SCENES)
        assert len({photo.light for photo in roll}) > 6
        assert len({photo.image.source for photo in roll}) == len(roll)
        assert len({photo.image.camera for photo in roll}) == 1


def test_some_highlights_clip_and_are_flagged(rolls: list[list[Photo]]) -> None:
    photos = [photo for roll in rolls for photo in roll]
    share = np.array([photo.image.clipped.mean() for photo in photos])
    assert (share > 0).mean() > 0.2
    assert share.max() < 0.6
    for photo in photos:
        np.testing.assert_array_equal(photo.image.clipped, (photo.image.rgb >= 1).any(axis=-1))


def test_gray_world_is_as_wrong_as_on_photographs(rolls: list[list[Photo]]) -> None:
    errors = [
        angular_error(photo.image.rgb[photo.image.counts].mean(axis=0), photo.illuminant)
        for roll in rolls
        for photo in roll
    ]
    assert 1.5 < np.mean(errors) < 9
    assert np.median(errors) < np.mean(errors)  # a long tail, as photographs have


def test_unknown_scenes_and_tiny_sizes_are_refused() -> None:
    camera, light = VirtualCamera.nikon_d5100(), LIGHTS["sun"](rng())
    with pytest.raises(ParameterError, match="street"):
        render_photo(camera, "moon", light, rng())
    with pytest.raises(ParameterError, match="16"):
        render_photo(camera, "street", light, rng(), (8, 400))


def test_noise_fields_have_variance_one_and_tiles_no_seam() -> None:
    camera, light = VirtualCamera.nikon_d5100(), LIGHTS["sun"](rng())
    canvas = Canvas.new(camera, light, (256, 384), np.array([0, -1, 0], np.float32))
    assert canvas.noise(rng(1), 16, 4).std() == pytest.approx(1, abs=0.1)
    texture = tile(rng(2), 16, 3)
    assert texture.std() == pytest.approx(1, abs=0.15)
    inner = np.abs(np.diff(texture, axis=0)).mean()
    assert np.abs(texture[0] - texture[-1]).mean() < 2 * inner


def test_blur_keeps_the_light_and_takes_the_contrast() -> None:
    camera, light = VirtualCamera.nikon_d5100(), LIGHTS["sun"](rng())
    canvas = Canvas.new(camera, light, (128, 192), np.array([0, -1, 0], np.float32))
    for sigma in (0.5, 2.0, 8.0):  # pixels
        canvas.rgb[...] = 0
        canvas.rgb[:, 64, 96] = 1
        canvas.blur(sigma * canvas.pixel)
        spot = canvas.rgb[0].astype(np.float64)
        assert spot.sum() == pytest.approx(1, rel=0.02)
        rows = np.arange(128) - 64
        # Blocks stand on a fixed grid, so the spread of a single point is right on average only.
        assert np.sqrt((spot.sum(axis=1) * rows**2).sum()) == pytest.approx(sigma, rel=0.4)
