"""What is kept in the user's cache: the index of models, fetched weights, templates, and the files of servers."""

from __future__ import annotations

import dataclasses
import json
import os
import platform
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from filelock import FileLock

from pi_core import ConfigError

from .catalog import KNOWN

DIRECTORY_VARIABLE: Final = "PI_LOCAL_DIR"
TEMPLATES: Final = Path(__file__).with_name("templates")
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_MAGIC: Final = b"GGUF"


@dataclass(frozen=True, slots=True)
class StoredModel:
    """A model that can be served.

    :param path: the GGUF file.
    :param size: its bytes when it was added.
    :param owned: whether the file lies in the cache and goes with the record.
    :param template: a chat template: the name of one shipped here, or the place of the user's inside the cache, which
        has a slash; ``None`` is the one inside the GGUF file.
    :param default: whether it is taken when no model is named.
    """

    name: str
    path: Path
    size: int
    owned: bool
    template: str | None = None
    default: bool = False


class Store:
    """The cache of one user; safe to use from several processes.

    :param root: the directory, made when something is written.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._index = root / "models.json"

    @property
    def weights(self) -> Path:
        """Where fetched and copied files are."""
        return self.root / "weights"

    @property
    def run_dir(self) -> Path:
        """Where the servers of this machine keep their files, the cache may be shared between machines."""
        return self.root / "run" / (platform.node() or "localhost")

    def pull_dir(self, name: str) -> Path:
        """Where an unfinished fetch is kept."""
        return self.root / "pull" / name

    def models(self) -> list[StoredModel]:
        """All models, in the order they were added.

        :raises ConfigError: the index cannot be read.
        """
        return self._read()

    def get(self, name: str) -> StoredModel | None:
        """The model of a name."""
        return next((model for model in self._read() if model.name == name), None)

    def default(self) -> StoredModel | None:
        """The model to take when none is named; ``None`` when its file, or every model, is missing."""
        found = next((model for model in self._read() if model.default), None)
        return found if found is not None and found.path.is_file() else None

    def template_path(self, model: StoredModel) -> Path | None:
        """The chat template file of a model."""
        if model.template is None:
            return None
        return self.root / model.template if "/" in model.template else TEMPLATES / f"{model.template}.jinja"

    def add(
        self, file: Path, *, name: str | None = None, template: Path | str | None = None, copy: bool = False
    ) -> StoredModel:
        """Register a GGUF file.

        :param name: model id; made from the file name when absent.
        :param template: a Jinja file, which is copied, or the name of one shipped here.
        :param copy: copy the file into the cache instead of referring to where it is.
        :raises ConfigError: it is no GGUF file, the name is unusable or taken, or the template is missing.
        """
        file = file.expanduser().resolve()
        _check_gguf(file)
        name = _model_name(file.stem if name is None else name, given=name is not None)
        if name in KNOWN:
            raise ConfigError(f"'{name}' is what 'pi local pull' fetches: choose another name with --name")
        with self._locked() as models:
            if any(model.name == name for model in models):
                raise ConfigError(f"There is a model '{name}' already: use --name, or 'pi local rm {name}' first")
            kept = None if template is None else self._keep_template(name, template)
            path = self._copy(file, name) if copy else file
            return _append(models, StoredModel(name, path, path.stat().st_size, owned=copy, template=kept))

    def adopt(self, name: str, path: Path, template: str) -> StoredModel:
        """Record a fetched file that lies in the cache and was verified."""
        with self._locked() as models:
            models[:] = [model for model in models if model.name != name]
            return _append(models, StoredModel(name, path, path.stat().st_size, owned=True, template=template))

    def remove(self, name: str) -> StoredModel | None:
        """Forget a model, and delete what the cache holds of it: its file, its template, an unfinished fetch.

        Its servers have to be ended before.

        :returns: the model; ``None`` when only an unfinished fetch was there.
        :raises ConfigError: nothing has that name.
        """
        with self._locked() as models:
            found = next((model for model in models if model.name == name), None)
            unfinished = self.pull_dir(name)
            if found is None and not (name in KNOWN and unfinished.is_dir()):
                raise ConfigError(f"There is no model '{name}'. {_list(models)}")
            shutil.rmtree(unfinished, ignore_errors=True)
            if found is None:
                return None
            models.remove(found)
            if found.default and models:
                models[0] = dataclasses.replace(models[0], default=True)
        shutil.rmtree(self.run_dir / name, ignore_errors=True)
        if found.owned:
            found.path.unlink(missing_ok=True)
        if found.template is not None and "/" in found.template:
            (self.root / found.template).unlink(missing_ok=True)
        return found

    def set_default(self, name: str) -> None:
        """Make a model the one that is taken when none is named.

        :raises ConfigError: nothing has that name.
        """
        with self._locked() as models:
            if all(model.name != name for model in models):
                raise ConfigError(f"There is no model '{name}'. {_list(models)}")
            models[:] = [dataclasses.replace(model, default=model.name == name) for model in models]

    def _copy(self, file: Path, name: str) -> Path:
        self.weights.mkdir(parents=True, exist_ok=True)
        target = self.weights / f"{name}.gguf"
        partial = target.with_suffix(".copying")
        try:
            shutil.copyfile(file, partial)
            os.replace(partial, target)
        except OSError as error:
            raise ConfigError(f"Cannot copy {file} to {target}: {error.strerror or error}") from error
        finally:
            partial.unlink(missing_ok=True)
        return target

    def _keep_template(self, name: str, template: Path | str) -> str:
        if str(template) in shipped_templates():
            return str(template)
        try:
            text = Path(template).expanduser().read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(
                f"Cannot read the template {template}: {error}. Give a Jinja file, or the name of a shipped one: "
                + ", ".join(shipped_templates())
            ) from error
        place = f"templates/{name}.jinja"
        (self.root / "templates").mkdir(exist_ok=True)
        write_atomically(self.root / place, text)
        return place

    def _read(self) -> list[StoredModel]:
        try:
            text = self._index.read_text(encoding="utf-8")
        except FileNotFoundError:
            return []
        except OSError as error:
            raise ConfigError(f"Cannot read {self._index}: {error.strerror or error}") from error
        try:
            return [_from_json(entry) for entry in json.loads(text)["models"]]
        except (ValueError, KeyError, TypeError) as error:
            raise ConfigError(
                f"{self._index} is damaged ({type(error).__name__}: {error}): delete it, then add or pull again"
            ) from error

    @contextmanager
    def _locked(self) -> Iterator[list[StoredModel]]:
        """Hold the index; what the list holds at the end is written, unless the body raises."""
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            lock = FileLock(self.root / "models.lock")
            with lock:
                models = self._read()
                yield models
                write_atomically(self._index, json.dumps({"models": [_to_json(model) for model in models]}, indent=2))
        except OSError as error:
            raise ConfigError(
                f"Cannot write to {self.root}: {error.strerror or error}. {DIRECTORY_VARIABLE} names another directory"
            ) from error


def open_store() -> Store:
    """The store of this user: ``PI_LOCAL_DIR``, else ``pi-local`` in the user's cache directory."""
    given = os.environ.get(DIRECTORY_VARIABLE)
    if given:
        return Store(Path(given).expanduser().absolute())
    from platformdirs import user_cache_path

    return Store(user_cache_path("pi-local", appauthor=False))


def shipped_templates() -> list[str]:
    """Names of the chat templates that come with this distribution."""
    return sorted(path.stem for path in TEMPLATES.glob("*.jinja"))


def write_atomically(path: Path, text: str, *, mode: int = 0o644) -> None:
    """Write a small file so that every reader sees the old text or the new one, whatever happens in between."""
    partial = path.with_name(f"{path.name}.{os.getpid()}.new")
    try:
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def _append(models: list[StoredModel], model: StoredModel) -> StoredModel:
    added = dataclasses.replace(model, default=not any(other.default for other in models))
    models.append(added)
    return added


def _list(models: list[StoredModel]) -> str:
    return f"Models: {', '.join(model.name for model in models)}" if models else "No model is stored"


def _check_gguf(file: Path) -> None:
    try:
        with file.open("rb") as stream:
            magic = stream.read(len(_MAGIC))
    except OSError as error:
        raise ConfigError(f"Cannot read {file}: {error.strerror or error}") from error
    if magic != _MAGIC:
        raise ConfigError(f"{file} is no GGUF file: it does not start with 'GGUF'")


def _model_name(text: str, *, given: bool) -> str:
    name = text if given else re.sub(r"[^a-z0-9._-]+", "-", text.lower()).strip("-._")[:64]
    if not _NAME.fullmatch(name):
        raise ConfigError(
            f"'{name}' cannot be a model name: use lower-case letters, digits, '.', '_' and '-', "
            "starting with a letter or digit, at most 64" + ("" if given else "; give one with --name")
        )
    return name


def _to_json(model: StoredModel) -> dict[str, Any]:
    return {
        "name": model.name,
        "path": str(model.path),
        "size": model.size,
        "owned": model.owned,
        "template": model.template,
        "default": model.default,
    }


def _from_json(data: dict[str, Any]) -> StoredModel:
    return StoredModel(
        name=str(data["name"]),
        path=Path(data["path"]),
        size=int(data["size"]),
        owned=bool(data["owned"]),
        template=None if data["template"] is None else str(data["template"]),
        default=bool(data["default"]),
    )


__all__ = ["DIRECTORY_VARIABLE", "Store", "StoredModel", "open_store", "shipped_templates", "write_atomically"]
