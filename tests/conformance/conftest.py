"""The option that names another directory of scenarios and goldens."""

from pathlib import Path

import pytest

HERE = Path(__file__).parent


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--conformance-dir",
        metavar="DIR",
        help="play the scenarios/ of DIR against its golden/ instead of the ones beside the tests",
    )


def conformance_dir(config: pytest.Config) -> Path:
    """The directory whose scenarios are played.

    :raises pytest.UsageError: it has no scenarios or no goldens.
    """
    given = config.getoption("conformance_dir", default=None)
    directory = HERE if given is None else Path(given)
    for name in ("scenarios", "golden"):
        if not any((directory / name).glob("*.json")):
            raise pytest.UsageError(f"--conformance-dir: there are no .json files in {directory / name}")
    return directory


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "scenario_path" in metafunc.fixturenames:
        paths = sorted((conformance_dir(metafunc.config) / "scenarios").glob("*.json"))
        metafunc.parametrize("scenario_path", paths, ids=[path.stem for path in paths])


@pytest.fixture
def scenario_paths(request: pytest.FixtureRequest) -> list[Path]:
    return sorted((conformance_dir(request.config) / "scenarios").glob("*.json"))
