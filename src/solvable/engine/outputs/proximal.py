r"""Labels as a learner that minimises a loss sees them: the proximal step of each, and its averages.

The learner's output on a sample left out is $\omega = \hat w\cdot x$, Gaussian together with the teacher's projection
z ~ N(0, 1): variance q, covariance m, cosine $c = m/\sqrt q$. Training on the sample moves it to z_out, the proximal
operator of the loss, and $g = (z_{out} - \omega)/V = -\partial_z l(y, z_{out})$. What state evolution needs is

    push     E[partial_{omega*} log Z_0  g] = E[z g] + m E[h]        (the second form by Gaussian integration by parts)
    power    E[g^2],      response  E[h],  h = -dg/domega,      stiffness  E[h^2],      loss  E[l(y, z_out)],

with $Z_0(y, \omega^*, V^*) = P(y | \omega)$, $\omega^* = c\,\omega/\sqrt q$ and $V^* = 1 - c^2$. Three kinds of labels
are told apart by what can be done exactly: a linear function of z plus noise leaves one Gaussian integral for any loss
of the residual; any function plus noise leaves an integral over z; finitely many labels leave an integral over omega.
`outputs.likelihood` finds the kind that a channel has. [thrampoulidis2018precise, loureiro2021learning]
"""

from __future__ import annotations

import abc
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import ndtr

from solvable.channels.losses import Loss
from solvable.channels.losses.quadrature import FieldRule, Panel, field_rule, panel
from solvable.channels.losses.samples import SampleLoss
from solvable.engine.sides import Field, Output, OutputStep, Overlap

_SMALLEST = 1e-150
CUTS = (-8.0, -4.0, -1.5, 0.0, 1.5, 4.0, 8.0)
"""Where integrals over a steep place are cut, in units of its width."""


class Averages(NamedTuple):
    """The averages of the module's docstring; `push` is a vector where m is one, of several known directions."""

    push: Any
    power: Any
    response: Any
    stiffness: Any
    loss: Any


class ProximalOutput(eqx.Module, Output):
    """Labels of a given law, seen by a learner with a loss; JAX differentiates through its numbers."""

    loss: Loss
    labels: LabelModel

    @property
    def projections(self) -> int:
        return 1

    def averages(self, m: Any, q: Any, V: Any, rule: Panel) -> Averages:
        """The averages at order parameters m, q and V (numbers), by quadrature with the nodes of `rule`."""
        return self.labels.averages(self.loss, m, q, V, rule)

    def average(self, state: Overlap) -> Field:
        found = _average(self, *(np.asarray(part, float).reshape(-1) for part in state))
        shape = np.shape(state.V)
        return Field(*(np.asarray(part).reshape(shape) for part in (found.push, found.power, found.response)))

    def denoiser(self, y: np.ndarray) -> ProximalDenoiser:
        return ProximalDenoiser(SampleLoss(self.loss, y))


@eqx.filter_jit
def _average(output: ProximalOutput, m: Any, q: Any, V: Any) -> Averages:
    return jax.vmap(lambda m, q, V: output.averages(m, q, V, panel()))(m, q, V)


class ProximalDenoiser:
    """The proximal step of a loss on the labels of one data set."""

    def __init__(self, samples: SampleLoss):
        self._samples = samples

    def __call__(self, Omega: np.ndarray, V: np.ndarray) -> OutputStep:
        _, g, h = self._samples.step(Omega[:, 0], float(V[0, 0]))
        return OutputStep(g[:, None], np.full((1, 1), np.mean(h)))


class LabelModel(eqx.Module):
    """A law of labels given z ~ N(0, 1)."""

    @abc.abstractmethod
    def averages(self, loss: Loss, m: Any, q: Any, V: Any, panel: Panel) -> Averages:
        """The averages at the order parameters m, q and V, by quadrature with the nodes of `panel`."""


class LinearLabels(LabelModel):
    r"""y = slope z + sqrt(noise) xi with probability `probability`, a mixture; for losses of the residual.

    The residual on a sample left out is N(0, s^2), s^2 = noise + q - 2 slope m + slope^2, and push = slope E[h].
    """

    probability: Any
    slope: Any
    noise: Any

    def averages(self, loss: Loss, m: Any, q: Any, V: Any, panel: Panel) -> Averages:
        def component(slope: Any, noise: Any) -> tuple[Any, ...]:
            variance = noise + jnp.maximum(q - 2 * slope * m + slope**2, 0.0)
            rule = field_rule(loss, 0.0, V, 0.0, jnp.sqrt(jnp.maximum(variance, _SMALLEST)), panel)
            _, *moments = slope_moments(rule)
            return moments[1], *moments

        push, *others = jax.vmap(component)(self.slope, self.noise)
        weighted = [self.probability @ part for part in (self.slope * push, *others)]
        return Averages(*weighted)


class CurvedLabels(LabelModel):
    """Any function of z plus noise, as rows of (z, y) with weights, and with those of a coarser rule.

    For a loss of the residual `y` is the label without noise and `noise` its variance, since y - omega is Gaussian
    given z; for any other loss `y` has the noise in it and `noise` is zero.
    """

    weight: Any
    coarse: Any
    z: Any
    y: Any
    noise: Any

    def averages(self, loss: Loss, m: Any, q: Any, V: Any, panel: Panel) -> Averages:
        def row(z: Any, y: Any, noise: Any) -> tuple[Any, ...]:
            mean = loss.coordinate(y, m * z)
            variance = jnp.maximum(q - m**2, 1e-14 * q) + noise
            return slope_moments(field_rule(loss, y, V, mean, jnp.sqrt(jnp.maximum(variance, _SMALLEST)), panel))

        mean_slope, *others = jax.lax.map(lambda args: row(*args), (self.z, self.y, self.noise), batch_size=32)
        weight = panel.full * self.weight + (1 - panel.full) * self.coarse
        power, response, stiffness, value = (weight @ part for part in others)
        sign = 1.0 if loss.residual else -1.0
        push = sign * (weight * self.z) @ mean_slope + m * response
        return Averages(push, power, response, stiffness, value)


class ClassLabels(LabelModel):
    """Finitely many labels: `values`, with `law` giving P(y | omega*) and its derivative in omega*.

    `mirrored` says that the first label stands for both of y and -y, at omega and -omega.
    """

    values: Any
    law: Any
    mirrored: bool = eqx.field(static=True, default=False)

    def averages(self, loss: Loss, m: Any, q: Any, V: Any, panel: Panel) -> Averages:
        root = jnp.sqrt(q)
        c = jnp.clip(m / root, -1.0, 1.0)
        V_star = jnp.maximum(1 - c**2, 1e-14)
        places, width = self.law.breaks(V_star)
        spread = (places[:, None] + width * jnp.array(CUTS)).ravel()
        cuts = root * spread / jnp.where(jnp.abs(c) > 1e-6, c, 1e-6)

        def label(k: Any) -> tuple[Any, ...]:
            y = self.values[k]
            rule = field_rule(loss, y, V, loss.coordinate(y, 0.0), root, panel, loss.coordinate(y, cuts))
            Z, dZ = self.law.probability(k, c * loss.coordinate(y, rule.field) / root, V_star)
            sign = 1.0 if loss.residual else -1.0
            push = sign * jnp.sum(rule.weight * dZ * rule.slope)
            _, *others = slope_moments(rule._replace(weight=rule.weight * Z))
            return push, *others

        kept = self.values[:1] if self.mirrored else self.values
        totals = [jnp.sum(part) for part in jax.vmap(label)(jnp.arange(len(kept)))]
        return Averages(*(2 * part for part in totals)) if self.mirrored else Averages(*totals)


class PiecewiseClasses(eqx.Module):
    r"""Labels decided by the interval that z, or z plus noise of variance `blur` on it, falls into.

    `edges` (k) are the ends of the intervals, `share` (labels, k + 1) the probability of each label in each. With
    $s^2 = V^* + blur$, $P(y|\omega^*) = \sum_i share_i [\Phi((b_{i+1} - \omega^*)/s) - \Phi((b_i - \omega^*)/s)]$.
    """

    edges: Any
    share: Any
    blur: Any

    def breaks(self, V_star: Any) -> tuple[Any, Any]:
        return self.edges, jnp.sqrt(V_star + self.blur)

    def probability(self, k: Any, omega_star: Any, V_star: Any) -> tuple[Any, Any]:
        s = jnp.sqrt(V_star + self.blur)
        share = self.share[k]
        step = jnp.diff(share)
        x = (omega_star[..., None] - self.edges) / s
        density = jnp.exp(-(x**2) / 2) / jnp.sqrt(2 * jnp.pi) / s
        return share[0] + ndtr(x) @ step, density @ step

    def flip(self, share: Any) -> PiecewiseClasses:
        """Two labels, a share of which is turned into the other."""
        return PiecewiseClasses(self.edges, (1 - share) * self.share + share * self.share[::-1], self.blur)


class LogisticClasses(eqx.Module):
    r"""y = 1 with probability 1 / (1 + exp(-gain z)), y = -1 otherwise; a share `flipped` has its sign turned.

    The average over z ~ N(omega*, V*) is a trapezoidal sum over z where the sigmoid is wide, and over the logistic
    noise before the sign, y = sign(z + e / gain), where it is narrow: both converge exponentially.
    """

    gain: Any
    flipped: Any

    def breaks(self, V_star: Any) -> tuple[Any, Any]:
        return jnp.zeros(1), jnp.sqrt(V_star + (1.8 / self.gain) ** 2)

    def probability(self, k: Any, omega_star: Any, V_star: Any) -> tuple[Any, Any]:
        y, s = jnp.where(k == 0, 1.0, -1.0), jnp.sqrt(V_star)
        wide = self.gain * s < 2.0
        x = 0.5 * jnp.arange(-13, 14)
        weight = jnp.exp(-(x**2) / 2)
        z = omega_star[..., None] + jnp.where(wide, s, 0.0) * x
        sigma = jax.nn.sigmoid(y * self.gain * z)
        Z_wide = sigma @ weight / weight.sum()
        dZ_wide = y * self.gain * (sigma * (1 - sigma)) @ weight / weight.sum()
        e = 0.5 * jnp.arange(-48, 49)  # steps of one would leave an error of 3e-7
        weight = 0.5 * jax.nn.sigmoid(e) * jax.nn.sigmoid(-e)
        t = (omega_star[..., None] + e / self.gain) / jnp.where(wide, 1.0, s)
        Z_narrow = ndtr(y * t) @ weight
        dZ_narrow = y * (jnp.exp(-(t**2) / 2) / jnp.sqrt(2 * jnp.pi)) @ weight / jnp.where(wide, 1.0, s)
        Z, dZ = jnp.where(wide, Z_wide, Z_narrow), jnp.where(wide, dZ_wide, dZ_narrow)
        return self.flipped + (1 - 2 * self.flipped) * Z, (1 - 2 * self.flipped) * dZ

    def flip(self, share: Any) -> LogisticClasses:
        """The same, a share of the labels turned."""
        return LogisticClasses(self.gain, self.flipped + (1 - 2 * self.flipped) * share)


def slope_moments(rule: FieldRule) -> tuple[Any, Any, Any, Any, Any]:
    """E f', E f'^2, E h, E h^2 and E f."""
    weight, slope, response = rule.weight, rule.slope, rule.response
    parts = (slope, slope**2, response, response**2, rule.value)
    return tuple(jnp.sum(weight * part) for part in parts)  # pyright: ignore[reportReturnType]
