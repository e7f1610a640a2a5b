"""Reads the settings from a YAML file and the environment, and reports what cannot be used there."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin
from urllib.parse import urlsplit

import pydantic_settings
import yaml
from pydantic import BaseModel, ValidationError
from pydantic_settings import EnvSettingsSource

from reactor.runtime.errors import SettingsError
from reactor.runtime.textfiles import text_of
from rules.core.errors import Problem
from rules.rulefile.yaml import read_yaml, show

PREFIX = "REACTOR_"
NATS_SCHEMES = ("nats", "tls", "ws", "wss")


class Environment(EnvSettingsSource):
    """Environment variables that begin with `REACTOR_`, each under the key that the file would use.

    pydantic-settings takes an alias without the prefix: NAME and BUS of any environment would be settings.
    """

    def __init__(self, settings_cls: type[pydantic_settings.BaseSettings]) -> None:
        super().__init__(settings_cls)
        self.env_vars = {name: value for name, value in self.env_vars.items() if name.upper().startswith(PREFIX)}

    def __call__(self) -> dict[str, Any]:
        """Give what the environment says."""
        return by_alias(self.settings_cls, super().__call__())


def is_nats(url: str) -> bool:
    """True if this can be the address of a NATS server: with another the client would try for seconds, or break."""
    try:
        parts = urlsplit(url if "://" in url else f"nats://{url}")
        return parts.scheme in NATS_SCHEMES and bool(parts.hostname) and parts.port != 0
    except ValueError:  # the port is no number, or none that there is
        return False


def by_alias(model: type[BaseModel], given: Mapping[str, Any]) -> dict[str, Any]:
    """Give the same with one name for each key: `rule_files` and `ruleFiles` would be two settings where they meet."""
    out: dict[str, Any] = {}
    for key, value in given.items():
        field = model.model_fields.get(key)
        name = field.alias if field is not None and field.alias and field.alias not in given else key
        known = field or next((one for one in model.model_fields.values() if one.alias == key), None)
        out[name] = _inner(known.annotation, value) if known is not None else value
    return out


def _inner(annotation: Any, value: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return by_alias(annotation, value)
    of = get_args(annotation)
    if get_origin(annotation) is Annotated:  # one of several models, by its kind: each knows its own keys
        for model in get_args(of[0]):
            value = _inner(model, value)
        return value
    # dict[str, …]: its names are the operator's own
    return {name: _inner(of[1], one) for name, one in value.items()} if len(of) == 2 else value


def read_file(path: Path) -> dict[str, Any]:
    """Give what the file says. Raises SettingsError with its place."""
    if not path.is_file():
        raise SettingsError(f"{path}: {'it is a folder: name a file' if path.is_dir() else 'no such file'}")
    try:
        value = yaml.safe_load(text := text_of(path))
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise SettingsError(
            f"{path}:{line}: not UTF-8: byte 0x{error.object[error.start]:02x}; save it as UTF-8"
        ) from error
    except OSError as error:
        raise SettingsError(f"{path}: cannot be read: {error.strerror or error}") from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        at = f":{mark.line + 1}:{mark.column + 1}" if mark is not None else ""
        raise SettingsError(f"{path}{at}: not YAML: {error.problem or error.context}") from error
    except RecursionError as error:
        raise SettingsError(f"{path}: nested too deep: settings have a few levels") from error
    except (yaml.YAMLError, ValueError) as error:  # ValueError: a date that is none
        raise SettingsError(f"{path}: not YAML: {' '.join(str(error).split())}") from error
    if value is None:
        return {}
    if not isinstance(value, dict):
        first = next((n for n, line in enumerate(text.splitlines(), 1) if line.strip() and line.strip()[0] != "#"), 1)
        raise SettingsError(f"{path}:{first}: settings are keys with values, as in `logLevel: debug`: here is none")
    return {str(key): one for key, one in value.items()}


def in_words(error: ValidationError, path: Path | None) -> str:
    """Give a line for each key that is wrong: the environment's variable that says so, or its place in the file."""
    return "\n".join(dict.fromkeys(_lines(error, path)))


def _lines(error: ValidationError, path: Path | None) -> Iterator[str]:
    document = read_yaml(path.read_text("utf-8"), str(path))[0] if path is not None else None
    for one in error.errors(include_input=False, include_url=False):
        at = _untagged(one["loc"])
        said = str(one["msg"]).removeprefix("Value error, ")
        if one["type"] == "extra_forbidden":
            said = "there is no such key: `reactor schema settings` prints all"
        if (variable := _variable(at)) is not None:
            yield f"{variable}: {said}"
            continue
        key = at
        while document is not None and key and key not in document.keys:
            key = key[:-1]
        if document is None or not key:
            yield f"{path or 'settings'}: {show(at)}: {said}"
        else:
            yield str(Problem(str(path), *document.keys[key], show(at), said))


def _untagged(at: tuple[str | int, ...]) -> tuple[str | int, ...]:
    """Give the place without the kind, which pydantic puts where one of several models was taken by it."""
    return at[:2] + at[3:] if at[:1] == ("loadBalancers",) else at


def _variable(at: tuple[str | int, ...]) -> str | None:
    """Give the variable that sets the value at this place or around it; the environment beats the file."""
    place = [str(part).replace("_", "").lower() for part in at]
    for name in sorted(os.environ, key=len, reverse=True):
        words = [word.replace("_", "").lower() for word in name[len(PREFIX) :].split("__")]
        if name.upper().startswith(PREFIX) and place[: len(words)] == words:
            return name
    return None


def unreadable(error: pydantic_settings.SettingsError) -> SettingsError:
    """Give ours for a variable whose value cannot be read: lists and whole sections are JSON there."""
    cause = error.__cause__
    if not isinstance(cause, json.JSONDecodeError):
        return SettingsError(f"environment: {error}")
    names = [name for name, value in os.environ.items() if name.upper().startswith(PREFIX) and value == cause.doc]
    name = names[0] if names else f"{PREFIX}…"
    return SettingsError(f"""{name}: not JSON ({cause.msg}): lists are JSON, as in REACTOR_RULE_FILES='["a.yaml"]'""")
