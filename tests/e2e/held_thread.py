"""Holds one thread of another process in the middle of its work, while the process's other threads go on."""

import ctypes
import os
import pathlib
import platform
import time

_PTRACE_PEEKUSER, _PTRACE_CONT, _PTRACE_SEIZE, _PTRACE_INTERRUPT = 3, 7, 0x4206, 0x4207
_SYSTEM_CALL = 15 * 8  # offset of orig_rax, x86-64's number of the system call that a thread is in; else -1
_ALL_KINDS = 0x40000000  # __WALL: also threads that are not the first of their process
_libc = ctypes.CDLL(None, use_errno=True)
_libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
_libc.ptrace.restype = ctypes.c_long


def hold_busiest_thread(pid):
    """Stops the thread that has used most processor time, outside of any system call, for good; returns its id.

    Whoever calls this must call await_end after the process was killed, else nobody can wait for the process.
    PermissionError where processes may not be traced, NotImplementedError on other machines than x86-64."""
    if platform.machine() != "x86_64":
        raise NotImplementedError
    tasks = pathlib.Path(f"/proc/{pid}/task").iterdir()
    thread = int(max(tasks, key=_processor_time).name)
    _trace(_PTRACE_SEIZE, thread)
    while True:
        _trace(_PTRACE_INTERRUPT, thread)
        os.waitpid(thread, _ALL_KINDS)
        if _trace(_PTRACE_PEEKUSER, thread, _SYSTEM_CALL) == -1:
            return thread
        _trace(_PTRACE_CONT, thread)
        time.sleep(0.01)


def await_end(thread):
    """Returns when the thread is dead."""
    os.waitpid(thread, _ALL_KINDS)


def _processor_time(task):
    return sum(map(int, (task / "stat").read_text().rsplit(")", 1)[1].split()[11:13]))


def _trace(request, thread, address=None):
    ctypes.set_errno(0)
    result = _libc.ptrace(request, thread, address, None)
    if ctypes.get_errno() != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result
