"""The diagnosis of a target: exponents, class, threshold, report and JSON."""

from __future__ import annotations

import functools
import json

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import ndtr

import solvable as sv
from solvable.core.errors import TargetError
from solvable.models.index.diagnosis import Diagnosis, Step
from solvable.targets.adapted import relevant_directions
from solvable.targets.admissible import check_admissible
from solvable.targets.landscape import landscape
from solvable.targets.rotate import rotate
from solvable.targets.target import Target

FIELDS = {
    "target",
    "noise",
    "verdict",
    "information_exponent",
    "leap_exponent",
    "generative_exponent",
    "alpha_weak",
    "staircase",
    "csq_staircase",
    "hermite",
    "label_spectrum",
    "symmetries",
    "sample_exponents",
    "uncertainty",
    "descent",
}

# target: verdict, information exponent, generative exponent, alpha_weak
KNOWN = {
    "z": ("trivial", 1, 1, 0.0),
    "sign(z)": ("trivial", 1, 1, 0.0),
    "relu(z)": ("trivial", 1, 1, 0.0),
    "he3(z)": ("trivial", 3, 1, 0.0),
    "z**3": ("trivial", 1, 1, 0.0),
    "he2(z) + he3(z)": ("trivial", 2, 1, 0.0),
    "abs(z)": ("easy", 2, 2, 0.5),
    "z**2": ("easy", 2, 2, 0.5),
    "he2(z)": ("easy", 2, 2, 0.5),
    "exp(-abs(z))": ("easy", 2, 2, 0.5),
    "he4(z)": ("easy", 4, 2, 0.6448505),
    "cos(z)": ("easy", 2, 2, 0.509097),
    "abs(z) < 1": ("easy", 2, 2, 0.9249580393),
    "z**2*exp(-z**2)": ("hard", 4, 4, np.inf),
}


diagnose = functools.cache(sv.diagnose)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("target", KNOWN)
def test_class_and_exponents(target):
    verdict, information, generative, alpha_weak = KNOWN[target]
    found = diagnose(target)
    assert (found.verdict, found.information_exponent, found.generative_exponent) == (verdict, information, generative)
    assert found.leap_exponent == information
    assert found.alpha_weak == pytest.approx(alpha_weak, abs=5e-6)
    (step,) = found.staircase
    assert step.kind == verdict and step.alpha == found.alpha_weak
    np.testing.assert_array_equal(step.directions, [[1.0]])
    assert found.target == target and found.noise == 0


@pytest.mark.sampled(1)
@pytest.mark.parametrize("threshold", [0.5, 1.5])
def test_threshold_of_a_window_in_closed_form(threshold):
    """1{|z| < k}: 1 / alpha = (2 k phi(k))^2 / (P (1 - P))."""
    P = 2 * ndtr(threshold) - 1
    phi = np.exp(-(threshold**2) / 2) / np.sqrt(2 * np.pi)
    found = diagnose(f"abs(z) < {threshold}")
    assert 1 / found.alpha_weak == pytest.approx((2 * threshold * phi) ** 2 / (P * (1 - P)), rel=1e-9)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("other", ["exp(-abs(z))", "-abs(z)", "log(1 + z**2)"])
def test_an_invertible_change_of_the_label_changes_nothing(other):
    first, second = diagnose("abs(z)"), diagnose(other)
    assert second.alpha_weak == pytest.approx(first.alpha_weak, abs=1e-8)
    assert second.generative_exponent == first.generative_exponent
    np.testing.assert_allclose(second.label_spectrum, first.label_spectrum, atol=1e-7)


@pytest.mark.parametrize("target, mirrored", [("max(z, -0.5)", "max(-z, -0.5)")])
def test_mirroring_the_input_changes_nothing_but_signs(target, mirrored):
    first, second = sv.diagnose(target), sv.diagnose(mirrored)
    np.testing.assert_allclose(second.label_spectrum, first.label_spectrum, atol=1e-9)
    for (k,), coefficient in first.hermite.items():
        assert second.hermite[k,] == pytest.approx((-1) ** k * coefficient, abs=1e-10)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("target", ["abs(z)", "relu(z)", "sign(z)", "abs(z) < 1", "he3(z)", "z**2*exp(-z**2)"])
def test_labels_say_at_least_what_their_hermite_coefficients_say(target):
    """lambda_k = E[E[h_k|y]^2] >= c_k^2 / Var(g), because g itself is one function of the label."""
    found = diagnose(target)
    c = np.array(list(found.hermite.values()))
    g = sv.Target(target).numpy(np.random.default_rng(0).standard_normal((100_000, 1)))
    assert list(found.hermite) == [(k,) for k in range(9)]
    assert found.label_spectrum[0] == pytest.approx(1, abs=1e-9)
    assert np.all(found.label_spectrum <= 1 + 1e-9)
    assert np.all(found.label_spectrum[1:] >= 0.97 * c[1:] ** 2 / np.var(g) - 1e-12)
    assert np.sum(c**2) <= 1.03 * np.mean(g**2)


@pytest.mark.slow
def test_generative_exponent_is_never_above_the_information_exponent():
    for target in (*KNOWN, "sin(2*z)", "he5(z) + 1", "abs(abs(z) - 1)"):
        found = diagnose(target)
        assert found.generative_exponent <= found.information_exponent, target


def test_exponents_agree_where_everything_is_tiny():
    found = sv.diagnose("sin(3*z)**2")
    assert found.generative_exponent <= found.information_exponent


def test_noise_moves_the_threshold_and_not_the_class(noise=0.1):
    clean, noisy = diagnose("abs(z)"), diagnose("abs(z)", noise=noise)
    assert noisy.alpha_weak > clean.alpha_weak and noisy.noise == noise
    for field in ("verdict", "information_exponent", "generative_exponent", "hermite"):
        assert getattr(noisy, field) == getattr(clean, field)


@pytest.mark.parametrize(
    "target, noise, exact, digits",
    [
        ("abs(z)", 0.0, 0.5, 1e-12),
        ("abs(z)", 0.1, 0.6042876814, 1e-10),
        ("z**2", 0.25, 0.5416441748, 1e-10),
        ("z**2", 1.0, 0.6465905984, 1e-10),
        ("abs(z) < 1", 0.0, 0.92495803926, 1e-11),
    ],
)
def test_uncertainty_covers_the_error(target, noise, exact, digits):
    """Exact: dense grids over y by code that does not use the library, the same to the digits given when doubled."""
    found = diagnose(target, noise=noise)
    assert abs(found.alpha_weak - exact) < 5 * found.uncertainty + 1e-8 + digits
    assert found.uncertainty < 1e-5


def test_doubling_the_nodes_agrees_within_the_uncertainty():
    model = sv.MultiIndex("z**2", noise=0.25)
    found, law = diagnose("z**2", noise=0.25), model.channel.label_law(fineness=2.0)
    assert abs(1 / (law.weight @ law.G[:, 0, 0] ** 2) - found.alpha_weak) < 5 * found.uncertainty


@pytest.mark.slow
def test_threshold_agrees_with_the_state_evolution():
    assert diagnose("abs(z)").alpha_weak == sv.thresholds(sv.MultiIndex("abs(z)"))["weak_recovery"]


def test_anything_a_model_takes_can_be_diagnosed():
    by_text = diagnose("abs(z)")

    def folded(z):
        return jnp.abs(z[0])

    for same in (sv.Target("abs(z)"), sv.MultiIndex("abs(z)"), folded, sv.channels.Absolute()):
        found = sv.diagnose(same)
        assert found.alpha_weak == pytest.approx(by_text.alpha_weak, abs=1e-9)
        assert (found.verdict, found.generative_exponent) == ("easy", 2)
    assert sv.diagnose(folded).target == "folded"
    assert sv.diagnose(sv.channels.Probit(noise=0.5)).verdict == "trivial"
    assert sv.diagnose(sv.MultiIndex("z**2", noise=0.25)).noise == 0.25


@pytest.mark.parametrize("target, noise", [("abs(z)", 0.0), ("he3(z)", 0.0), ("z**2*exp(-z**2)", 0.0), ("z**2", 0.25)])
def test_the_dictionary_is_strict_json(target, noise):
    found = diagnose(target, noise=noise)
    plain = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert set(plain) == FIELDS
    assert plain["verdict"] == found.verdict and plain["target"] == target and plain["noise"] == noise
    assert float(plain["alpha_weak"]) == found.alpha_weak
    assert float(plain["staircase"][0]["alpha"]) == found.alpha_weak
    assert plain["staircase"][0]["directions"] == [[1.0]]
    assert plain["hermite"]["2"] == found.hermite[2,] and len(plain["hermite"]) == 9
    assert plain["label_spectrum"] == found.label_spectrum.tolist()


def test_infinite_numbers_are_written_as_text():
    plain = diagnose("z**2*exp(-z**2)").to_dict()
    assert plain["alpha_weak"] == plain["staircase"][0]["alpha"] == "inf"


def test_report_of_an_easy_target():
    assert str(diagnose("abs(z)")).splitlines() == [
        "y = abs(z): easy",
        "  learned for n > 0.5 d samples",
        "  weak-recovery threshold   0.5",
        "  information exponent      2   (gradient methods on the label)",
        "  generative exponent       2   (after any transformation of it)",
        "  samples for all           online SGD: d log d, best CSQ: d, AMP: d",
        "  a neuron escapes by       one-pass SGD: about 1.6 d log d samples",
        "  unchanged under           z -> -z",
        "  Hermite coefficients      +0.7979 h0 +0.5642 h2 -0.1629 h4 +0.0892 h6 -0.0596 h8",
    ]


def test_reports_say_what_the_class_means():
    assert "y = he3(z): trivial\n  learned at any alpha > 0, in one step of AMP" in str(diagnose("he3(z)"))
    hard = str(diagnose("z**2*exp(-z**2)"))
    assert "not learned from n = alpha d; n of order d^2 is needed" in hard and "threshold   inf" in hard
    assert str(diagnose("z**2", noise=0.25)).startswith("y = z**2 + N(0, 0.25): easy")


def test_an_exponent_beyond_the_search_is_reported_as_a_bound():
    hard = Step(np.eye(1), np.inf, "hard")
    found = Diagnosis("?", 0.0, "hard", np.inf, np.inf, np.inf, np.inf, [hard], [], {}, np.ones(1), [], {}, 0.0)
    assert "information exponent      > 24" in str(found) and "Hermite coefficients      none" in str(found)
    assert json.dumps(found.to_dict(), allow_nan=False)


@pytest.mark.parametrize("noise", [-1.0, np.nan, "much"])
def test_bad_noise_is_refused(noise):
    with pytest.raises(ValueError, match="noise = .* is not allowed: noise must be a variance"):
        sv.diagnose("abs(z)", noise=noise)


def test_bad_targets_are_refused():
    with pytest.raises(sv.TargetError, match="unknown function 'foo'"):
        sv.diagnose("foo(z)")
    with pytest.raises(sv.TargetError, match="constant: there is nothing to learn"):
        sv.diagnose("z - z")
    with pytest.raises(sv.TargetError, match="constant: there is nothing to learn"):
        sv.diagnose("z1*z2 - z2*z1")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("z2 + (z1**-2 > 0)", r"the part 0\*\*\(-2\) has no finite value"),
        ("he0(1/z1) + z2", "the part 1/0 has no finite value"),
        pytest.param(
            "step(min((he(20, z4))**0.5, tan(z)))",
            "undefined .NaN. on a set of positive probability",
            marks=pytest.mark.slow,
        ),
        ("z2*(log(z1) > 0)", "log.z. is undefined .NaN. on a set of positive probability"),
    ],
)
def test_a_part_without_a_value_is_refused_as_a_bad_target(text, reason):
    with pytest.raises(TargetError, match=reason):
        sv.diagnose(text)


def test_a_part_without_a_value_that_is_not_reached_is_allowed():
    check_admissible(Target("where(z1 > 0, where(log(z1) > 0, z2, z1), 0)"))
    check_admissible(Target("where(z1 > 0, abs(log(z1) + z2), 0)"))


ATOMS = ("z1", "z2", "z", "1", "0.5", "0", "pi")
CALLS = (
    "abs({})",
    "sign({})",
    "step({})",
    "log({})",
    "sqrt({})",
    "1/({})",
    "({})**-2",
    "({})**0.5",
    "tan({})",
    "he0({})",
)
CALLS += ("he3({})", "tanh({})", "exp({})", "relu({})", "({} > 0)")
PAIRS = ("({}) + ({})", "({}) - ({})", "({})*({})", "({})/({})", "min({}, {})", "max({}, {})", "({} < {})")


def random_formula(generator, depth):
    if depth == 0:
        return str(generator.choice(ATOMS))
    if generator.random() < 0.5:
        return str(generator.choice(CALLS)).format(random_formula(generator, depth - 1))
    return str(generator.choice(PAIRS)).format(*(random_formula(generator, depth - 1) for _ in range(2)))


def first_look(text):
    """What a diagnosis looks at before anything takes long."""
    model = sv.MultiIndex(text)
    if model.projections == 1:
        landscape(model.target)
        return
    check_admissible(model.target)
    relevant = relevant_directions(model.target)
    if relevant.shape[1] < model.projections:
        rotated = rotate(model.target, relevant)
        if rotated.projections == 1:
            landscape(rotated)


@pytest.mark.parametrize(("seed", "count"), [(0, 15), *(pytest.param(k, 40, marks=pytest.mark.slow) for k in range(8))])
def test_random_formulas_are_taken_or_refused_by_an_error_of_our_own(seed, count):
    generator = np.random.default_rng(seed)
    taken = 0
    for _ in range(count):
        text = random_formula(generator, int(generator.integers(1, 4)))
        try:
            first_look(text)
            taken += 1
        except TargetError:
            continue
        except Exception as error:
            pytest.fail(f"{text!r}: {type(error).__name__}: {error}")
    assert 3 <= taken < count
