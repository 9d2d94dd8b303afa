"""The command line: verbs, their help, and the exit codes.

Verbs are imported when they are called, so that `redline --help` loads no torch, polars or scipy.
Exit codes: 0 all trials finished (diverged ones included), 1 some crashed, 2 bad input, 130 Ctrl-C.
"""

import io
import os
import sys

from cyclopts import App, CycloptsError

from redline import __version__
from redline.files import UserError

app = App(
    name="redline",
    version=__version__,
    suppress_keyboard_interrupt=False,  # `call` says how to go on
    help="When does a small language model need QK-norm? A paired sweep answers with evidence.",
)
for verb, about in {
    "plan": "What a study will train, what it costs, what is done, and what it can decide.",
    "run": "Train what is missing of a study; the same command resumes.",
    "retry": "Train again what crashed or ran out of time; a diverged trial is finished.",
    "status": "One screen: done, running, failed with the reason, and the time left.",
    "report": "The verdict in words, and a page with its figures and tables.",
    "advise": "Is QK-norm needed at a depth, width and peak LR, and what to run if unknown.",
    "doctor": "Self-tests of this installation, and a replay of recorded nanoGPT numbers.",
    "bench": "How fast this machine trains, as ratios against a plain nanoGPT-style loop.",
}.items():
    app.command(f"redline.cli.{verb}:{verb}", name=verb, help=about)
app.command(
    "redline.cli.import_:import_",  # the verb is a keyword of Python
    name="import",
    help="Keep the results of a sweep that another tool ran, to analyse them.",
)


def main() -> None:
    """Run one command and leave with its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a title may hold what the terminal cannot show
    sys.exit(call(sys.argv[1:]))


def call(arguments: list[str]) -> int:
    """The exit code of one command line; bad input is one clear sentence and 2."""
    try:
        code = app(arguments, exit_on_error=False, result_action="return_value")
    except CycloptsError:
        return 2  # cyclopts has said what was wrong
    except UserError as error:
        print(f"redline: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        # The reader has left, as `head` does; a second complaint at exit helps nobody.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except OSError as error:
        print(f"redline: {error.filename or 'the system'}: {error.strerror}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("redline: interrupted; the same command continues", file=sys.stderr)
        return 130
    return code or 0
