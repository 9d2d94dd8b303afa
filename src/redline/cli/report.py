"""`redline report`: the verdict in words, and the page, figures and tables behind it."""

from redline.cli import show
from redline.cli.run import Store
from redline.session import report as write_reports


def report(study: str, *, store: Store = None) -> int:
    """Write the page, figures and tables of what has finished, and say the verdict.

    STUDY is a shipped name, a TOML file or a store directory; tables that `redline import` keeps in
    the store get a page each. Everything lies in STORE/report and may be deleted.
    """
    console = show.console()
    for reported in write_reports(study, store):
        console.print(f"{reported.title}: {reported.findings.state}")
        for verdict in reported.findings.verdicts:
            console.print(str(verdict))
        for found in reported.findings.base_hypotheses:
            console.print(f"off against {found.arm}, {found}")
        console.print(f"page: {reported.page}", soft_wrap=True)
    return 0
