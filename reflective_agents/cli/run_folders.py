"""Where the runs of `reflect eval` lie, and how they are found again by name."""

from pathlib import Path

from reflective_agents.cli.database import home_folder
from reflective_agents.evals.results import RUN


def cache_file() -> Path:
    """Return the file of the replies that `--cache` keeps."""
    return home_folder().expanduser() / "replies.sqlite"


def runs_folder() -> Path:
    """Return the folder for runs that were given no other."""
    return home_folder().expanduser() / "evals"


def noted_runs() -> Path:
    """Return the folder that says where runs of `--out` lie: a file for each, with its name."""
    return home_folder().expanduser() / "runs"


def note_run(folder: Path, name: str) -> str:
    """Keep where a run lies that is not in the data folder, and return the name under which it is found there; empty
    if that folder cannot be written, which the run does not need."""
    try:
        noted_runs().mkdir(parents=True, exist_ok=True)
        (noted_runs() / name).write_text(str(folder.absolute()), "utf-8")
    except OSError:
        return ""
    return name


def folders_of(name: str) -> list[Path]:
    """Return the folder of that name, else those in the data folder, or noted there, whose names begin so."""
    if Path(name).exists():
        return [Path(name)]
    folders: dict[str, Path] = {}
    for file in noted_runs().glob("*"):
        folder = Path(file.read_text("utf-8"))
        if (folder / RUN).exists():
            folders[file.name] = folder
    for file in runs_folder().glob(f"*/{RUN}"):
        folders[file.parent.name] = file.parent
    if name in folders:
        return [folders[name]]
    beginning_so = [folder for each, folder in sorted(folders.items()) if each.startswith(name)]
    return beginning_so or [Path(name)]
