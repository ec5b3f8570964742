"""The numbers of a model or a learner by name, also those inside the modules that its fields hold.

A number of an inner module goes by its dotted path (`loss.scale`), by its own name (`scale`) where no other number has
it, and by the field that holds the module (`penalty`) where the module has no other number.
"""

from __future__ import annotations

import dataclasses
import numbers
from typing import Any

import numpy as np

Path = tuple[str | int, ...]


def is_number(value: Any) -> bool:
    """Whether a field holds a single real number (booleans are not numbers here)."""
    if isinstance(value, numbers.Real):
        return not isinstance(value, bool)
    return getattr(value, "ndim", None) == 0 and np.asarray(value).dtype.kind in "iuf"


def number_paths(module: Any) -> dict[str, Path]:
    """The path to every number, by each name that it goes by."""
    own = {field.name: getattr(module, field.name) for field in dataclasses.fields(module)}
    found: dict[str, Path] = {name: (name,) for name, value in own.items() if is_number(value)}
    alone: dict[str, list[Path]] = {}
    for name, value in own.items():
        parts = _modules(value)
        for where, part in parts.items():
            leaves = _inner_numbers(part)
            prefix = name if len(parts) == 1 else f"{name}.{where[0]}"
            for leaf in leaves:
                found[f"{prefix}.{leaf}"] = (name, *where, leaf)
                alone.setdefault(leaf, []).append((name, *where, leaf))
            if len(parts) == 1 and len(leaves) == 1:
                found[name] = (name, *where, leaves[0])
    for leaf, paths in alone.items():
        if len(paths) == 1 and leaf not in own:
            found[leaf] = paths[0]
    return found


def field_names(module: Any) -> list[str]:
    """The fields of a module and, under the shortest of their names, the numbers inside them."""
    own = [field.name for field in dataclasses.fields(module)]
    shortest: dict[Path, str] = {}
    for name, path in number_paths(module).items():
        if len(path) > 1 and name not in own and (path not in shortest or len(name) < len(shortest[path])):
            shortest[path] = name
    return [*own, *shortest.values()]


def has_field(module: Any, name: str) -> bool:
    """Whether a name is a field of the module or a number inside it."""
    return name in number_paths(module) or name in [field.name for field in dataclasses.fields(module)]


def get_field(module: Any, name: str) -> Any:
    """The number of that name, or else the field."""
    value = module
    for key in number_paths(module).get(name, (name,)):
        value = value[key] if isinstance(key, int) else getattr(value, key)
    return value


def replaced(module: Any, path: Path, value: Any) -> Any:
    """A copy with the value at the path; every module on the way is made anew, and so checks its fields."""
    if not path:
        return value
    key, *rest = path
    if isinstance(key, int):
        return tuple(replaced(part, tuple(rest), value) if k == key else part for k, part in enumerate(module))
    return dataclasses.replace(module, **{key: replaced(getattr(module, key), tuple(rest), value)})


def _modules(value: Any) -> dict[Path, Any]:
    """The modules that a field holds: itself, or the parts of a tuple of them."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {(): value}
    if isinstance(value, tuple) and value and all(dataclasses.is_dataclass(part) for part in value):
        return {(k,): part for k, part in enumerate(value)}
    return {}


def _inner_numbers(module: Any) -> list[str]:
    shown = [
        f for f in dataclasses.fields(module) if not f.name.startswith("_") and not f.metadata.get("static", False)
    ]
    return [field.name for field in shown if is_number(getattr(module, field.name))]
