"""`redline bench`: this machine in ratios."""

from typing import Annotated

from cyclopts import Parameter

from redline.cli import show
from redline.files import to_json
from redline.session import open_session


def bench(
    study: str = "pilot",
    *,
    as_json: Annotated[bool, Parameter("--json", help="Print JSON alone.")] = False,
) -> int:
    """How fast this machine trains the first trial of a study, as ratios of paired runs."""
    from redline.train.bench import compare

    trial = open_session(study).trials[0]
    found = compare(trial)
    if as_json:
        print(to_json(found, indent=1))
        return 0
    console = show.console()
    console.print(
        f"plain nanoGPT-style loop, one thread: {show.large(found['plain_tokens_per_s'])} tokens/s"
    )
    console.print(f"one optimiser step of ours over one of it: {found['update_over_plain']:.3f}x")
    console.print(
        "one worker, probes, evaluations and records included, over it without any: "
        f"{found['worker_over_plain']:.3f}x"
    )
    console.print(f"share of probes and evaluations: {found['measuring_share']:.1%}")
    console.print(f"two workers over one: {found['two_over_one']:.2f}x")
    return 0
