"""One writer for each folder: a lock that ends with its process. Readers never wait."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import platform
import stat
import threading
import time
import weakref
from datetime import datetime
from pathlib import Path
from types import TracebackType

from ..errors import LangevinError

try:
    import fcntl
except ImportError:  # not POSIX: folders are not locked there
    fcntl = None  # type: ignore[assignment]

LOCK = ".langevin.lock"
"""The file that is locked; it says by whom, and stays."""
POLL = 0.1
"""Seconds between two attempts of a patient one."""
log = logging.getLogger("langevin")
held: weakref.WeakValueDictionary[tuple[int, int], FolderLock] = weakref.WeakValueDictionary()
"""The locks of this process, by device and number of their files."""
guard = threading.RLock()


class FolderLock:
    """The right to write in a folder, until it is released, forgotten, or its process ends.

    Within its process it yields to the next who asks, as in a notebook that opens a run twice; then
    `lost` is true. It does not yield while it is entered by `with`, which releases it in the end.
    """

    def __init__(self, path: Path, descriptor: int, file: tuple[int, int]) -> None:
        self.path, self.descriptor, self.file = path, descriptor, file
        self.busy, self.lost = False, False
        self.close = weakref.finalize(self, os.close, descriptor)
        held[file] = self

    @property
    def alive(self) -> bool:
        return self.close.alive and not self.lost

    def release(self) -> None:
        with guard:
            if self.alive:
                self.busy = False
                if fcntl is not None:
                    fcntl.flock(self.descriptor, fcntl.LOCK_UN)
                self.close()

    def hand_over(self) -> FolderLock:
        self.close.detach()
        self.lost = True
        return FolderLock(self.path, self.descriptor, self.file)

    def expect_folder(self) -> None:
        """Refuse to go on where the folder was moved or deleted, so that none is made anew."""
        if not is_in_place(self.path, os.fstat(self.descriptor)):
            raise LangevinError(f"{self.path.parent} was moved or deleted while this process wrote "
                                f"in it; nothing was made anew. Put it back, or go on with "
                                f"'langevin resume' where it is now")

    def __enter__(self) -> FolderLock:
        self.busy = True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.release()


def lock_folder(folder: Path, patience: float = 0.0) -> FolderLock:
    """Take the lock of a folder; whoever cannot within so many seconds is told who has it."""
    deadline = time.monotonic() + patience
    while (lock := try_lock(folder)) is None:
        if time.monotonic() >= deadline:
            raise LangevinError(
                f"expected nobody else to write in {folder}, {owner(folder / LOCK)} does; wait "
                f"until it ends, or stop it. Commands that only read need not wait"
            )
        time.sleep(POLL)
    return lock


def try_lock(folder: Path) -> FolderLock | None:
    """The lock, None while somebody else has it."""
    path = folder / LOCK
    with guard:
        while True:
            descriptor = open_lock(path)
            status = os.fstat(descriptor)
            lock = held.get((status.st_dev, status.st_ino))
            if lock is not None and lock.alive:
                os.close(descriptor)
                return None if lock.busy else lock.hand_over()
            try:
                if fcntl is not None:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(descriptor)
                return None
            except OSError as error:  # a file system without locks
                log.warning("%s cannot be locked (%s); see that no second process writes in it",
                            folder, error.strerror)
            if is_in_place(path, status):
                break
            os.close(descriptor)  # the folder was renamed meanwhile: another one is at its place
        sign(descriptor)
        return FolderLock(path, descriptor, (status.st_dev, status.st_ino))


def open_lock(path: Path) -> int:
    """The lock file, made if need be; only a file of its own, as its owner is written into it."""
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        descriptor = os.open(path, flags | getattr(os, "O_CLOEXEC", 0), 0o666)
    except OSError as error:
        raise LangevinError(f"cannot lock {path.parent} by {path}: {error.strerror}; choose a "
                            f"folder that can be written, or remove what is in the way") from None
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
        os.close(descriptor)
        raise LangevinError(f"expected a file of its own at {path}, got a link or a device; "
                            f"remove it")
    return descriptor


def is_in_place(path: Path, status: os.stat_result) -> bool:
    """Whether the path still leads to the file that was opened."""
    try:
        now = path.stat(follow_symlinks=False)
    except OSError:
        return False
    return (now.st_dev, now.st_ino) == (status.st_dev, status.st_ino)


def sign(descriptor: int) -> None:
    """Note who has the lock; whoever cannot has it all the same."""
    now = datetime.now().astimezone().isoformat(" ", "seconds")
    content = json.dumps({"pid": os.getpid(), "host": platform.node(), "since": now}).encode()
    with contextlib.suppress(OSError):
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, content, 0)


def owner(path: Path) -> str:
    """Who has the lock, in words."""
    try:
        with path.open("rb") as file:
            record = json.loads(file.read(1000))
        pid, host, since = int(record["pid"]), str(record["host"]), str(record["since"])
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"
    who = "this process" if pid == os.getpid() and host == platform.node() else f"process {pid}"
    return f"{who} on {host!a}, since {since!a},".replace("'", "")


def forget() -> None:
    """In a forked child: the locks are its parent's."""
    global guard
    guard = threading.RLock()
    for lock in list(held.values()):
        lock.lost = True
        lock.close()
    held.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=forget)
