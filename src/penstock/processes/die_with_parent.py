"""Becomes another program that the kernel ends when the parent dies: `python -m ... PPID PROGRAM ARG...`.

A parent killed with SIGKILL cannot clean up; the kernel can (PR_SET_PDEATHSIG). The setting survives
`exec`, so no process stays in between. It depends on the thread that started the child: start
children from a thread that lives as long as they should.
"""  # noqa: E501 -- the usage line stays whole

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main() -> None:
    parent, program, *arguments = sys.argv[1:]
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != int(parent):  # the parent died before the setting took effect
        sys.exit(1)
    os.execvp(program, [program, *arguments])  # noqa: S606 -- becoming the program is the point


if __name__ == "__main__":
    main()
