"""The page in a real browser, from a file and without a network."""

import math

import pytest
from sweeps import parting, report

from redline.analysis.cautions import cautions
from redline.report.page import write

PHONE, DESK = 400, 1280
LOST = 'figure.loss a [aria-label^="off, peak LR 0.1, seed 0:"]'


def loss(arm, n_layer, rate, seed):
    """One trial lost, one without a result."""
    special = {("off", 1e-1, 0): math.nan, ("on", 1e-1, 2): None}
    return special.get((arm, rate, seed), parting(arm, n_layer, rate, seed))


@pytest.fixture(scope="module")
def page_file(tmp_path_factory):
    made = report(depths=(2, 4), loss=loss)
    made.warnings.extend(cautions(made.findings))
    return write(made, tmp_path_factory.mktemp("report"), "sweep")


@pytest.fixture
def visit(browser):
    """Open a page; afterwards nothing was said on the console and nothing was requested."""
    opened = []

    def run(file, width=DESK, scheme="light", fragment=""):
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, offline=True
        )
        page = context.new_page()
        said, asked = [], []
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        opened.append((context, said, asked, file))
        page.goto(f"{file.as_uri()}{fragment}")
        return page

    yield run
    for context, said, asked, file in opened:
        context.close()
        assert said == []
        assert [url for url in asked if not url.startswith((file.as_uri(), "data:"))] == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [PHONE, DESK])
def test_the_page_fits_and_is_legible(visit, page_file, width, scheme):
    page = visit(page_file, width, scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator(".rule").first.is_visible()
    ground, ink = page.evaluate(
        "[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]"
    )
    assert (luminance(ground) > luminance(ink)) == (scheme == "light")
    # The pictures take the colours of the page: text in them must not stay dark on dark.
    label = page.locator("figure svg text").first
    in_picture = label.evaluate("node => getComputedStyle(node).fill")
    assert abs(luminance(in_picture) - luminance(ground)) > 60


def luminance(colour):
    red, green, blue = (float(part) for part in colour[4:-1].split(",")[:3])
    return 0.21 * red + 0.72 * green + 0.07 * blue


def test_a_mark_opens_its_trial(visit, page_file):
    page = visit(page_file)
    page.locator(LOST).first.click()
    page.wait_for_selector("dialog[data-drawn]")
    assert page.locator("#trial-title").inner_text() == "off, n_layer 2, peak LR 0.1, seed 0"
    titles = page.locator("#trial-curves h4").all_inner_texts()
    assert titles == [
        "Loss",
        "Gradient norm before clipping",
        "Update norm",
        "Max attention logit per layer",
        "Attention entropy per layer, normalised",
        "Activation outliers per layer, max / median",
    ]
    assert page.locator("#trial-curves svg path").count() > 12
    command = page.locator("#trial-command").inner_text()
    assert command.startswith("redline run study.toml --store replica --only 0")
    page.keyboard.press("Escape")
    assert not page.locator("#trial").is_visible()
    assert "#" not in page.url


def test_the_keyboard_opens_a_trial_from_the_table(visit, page_file):
    page = visit(page_file)
    page.locator("section[aria-labelledby=trials] a").nth(3).focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("dialog[data-drawn]")
    assert page.locator("#trial-title").inner_text()


def test_a_lost_value_is_a_red_mark_in_the_curves(visit, page_file):
    page = visit(page_file)
    row = page.locator("section[aria-labelledby=trials] tr", has_text="non_finite").first
    row.locator("a").click()
    page.wait_for_selector("dialog[data-drawn]")
    assert "non_finite" in page.locator("#trial-outcome").inner_text()
    lost = page.locator('#trial-curves [aria-label$=": nan"]').first
    assert float(lost.get_attribute("opacity")) == 1


def test_a_link_to_a_trial_opens_it(visit, page_file):
    page = visit(page_file, fragment=f"#trial={'0' * 16}")
    page.wait_for_selector("dialog[data-drawn]")


def test_a_link_to_no_trial_opens_nothing(visit, page_file):
    page = visit(page_file, fragment="#trial=nothing")
    assert not page.locator("#trial").is_visible()


def test_a_mark_under_the_pointer_says_what_it_is(visit, page_file):
    page = visit(page_file)
    page.locator(LOST).first.hover()
    tip = page.locator("#tip")
    assert tip.inner_text() == "off, peak LR 0.1, seed 0: non_finite, no loss"
    page.mouse.move(1, 1)
    assert not tip.is_visible()


def test_the_marks_of_lost_and_missing_trials_are_there(visit, page_file):
    page = visit(page_file)
    labels = page.locator('figure.loss [role="graphics-symbol"]').evaluate_all(
        "nodes => nodes.map(node => node.getAttribute('aria-label'))"
    )
    assert sum("non_finite" in label for label in labels) == 2
    assert sum(label.endswith(": missing") for label in labels) == 2
    legend = page.locator(".legend").first.inner_text()
    assert "non-finite (2)" in legend
    assert "missing (2)" in legend


def test_the_page_prints(visit, page_file):
    page = visit(page_file)
    page.emulate_media(media="print")
    assert len(page.pdf()) > 20_000


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_screen_reader_and_a_keyboard_can_use_it(visit, page_file, scheme):
    from axe_playwright_python.sync_playwright import Axe

    page = visit(page_file, scheme=scheme)
    found = Axe().run(page).response["violations"]
    assert [(v["id"], v["nodes"][0]["html"]) for v in found] == []


def test_a_thousand_trials_open_whole(visit, tmp_path):
    made = report(depths=(1, 2, 3, 4), n_seed=25, loss=loss, n_step=100)
    file = write(made, tmp_path, "large")
    page = visit(file)
    assert made.findings.n_expected == 1000
    # Shown with -s; docs/measurements.md holds the figure.
    opened_ms = page.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd")
    print(f"{file.stat().st_size / 1e6:.1f} MB, open in {opened_ms:.0f} ms")
    page.evaluate(f"location.hash = 'trial={'0' * 16}'")
    page.wait_for_selector("dialog[data-drawn]")
    assert page.locator("section[aria-labelledby=trials] tbody tr").count() == 1000
