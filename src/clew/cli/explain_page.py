"""The page of `clew explain --html`: the timeline of a run as a picture, in one file that needs nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape

from clew.verify.explain.explanation import Explanation, Recovery, Story, Unexplained, clock
from clew.verify.explain.words import NUMBERS, end_words, recovery_words, story_numbers, verdict_lines

_WIDTH, _LEFT, _LANE, _TOP = 1000, 150, 34, 46
_BINS = 400
_STYLE = """
:root { --ink: #1c2430; --soft: #667085; --back: #ffffff; --line: #e4e7ec; --kept: #2f6f9f; --lost: #c8442f;
  --again: #d99a26; --life: #dbe7f0; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ee; --soft: #98a2b3; --back: #14181f; --line: #2b323d;
  --kept: #6fb1e0; --lost: #f07763; --again: #e9b454; --life: #22303d; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--back); margin: 2rem auto;
  max-width: 68rem; padding: 0 1rem; }
h1 { font-size: 1.35rem; } h2 { font-size: 1.05rem; margin-top: 2rem; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: .3rem .6rem; border-bottom: 1px solid var(--line); }
th:first-child, td:first-child { text-align: left; }
th { color: var(--soft); font-weight: 500; }
.picture { overflow-x: auto; } svg { min-width: 46rem; width: 100%; height: auto; }
svg text { fill: var(--ink); font: 12px system-ui, sans-serif; } svg .soft { fill: var(--soft); }
.verdict { border-left: 4px solid var(--kept); padding: .4rem 1rem; } .verdict.bad { border-color: var(--lost); }
.key span { display: inline-block; margin-right: 1.4rem; color: var(--soft); }
.key i { display: inline-block; width: .8rem; height: .8rem; margin-right: .4rem; vertical-align: -1px; }
time { color: var(--soft); font-variant-numeric: tabular-nums; } li { margin-bottom: .6rem; }
"""


def page(title: str, found: Explanation | Unexplained) -> str:
    """The whole page."""
    body = _refusal(found) if isinstance(found, Unexplained) else _story(found)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{_STYLE}</style></head>\n'
        f"<body><h1>How {escape(title)} can be explained</h1>\n{''.join(body)}</body></html>\n"
    )


def _refusal(found: Unexplained) -> Iterator[str]:
    yield '<p class="verdict bad">There is no failure-free explanation. The first step that cannot be explained:<br>\n'
    yield f"<b>{escape(found.step)}</b><br>{escape(found.why)}</p>\n"


def _story(found: Explanation) -> Iterator[str]:
    yield f'<p class="verdict">{"<br>".join(map(escape, verdict_lines(found)))}</p>\n'
    yield f'<div class="picture">{picture(found)}</div>\n'
    yield (
        '<p class="key"><span><i style="background:var(--kept)"></i>steps of the explanation</span>'
        '<span><i style="background:var(--lost)"></i>discarded steps</span>'
        '<span><i style="background:var(--again)"></i>time without this replica</span></p>\n'
    )
    yield "<h2>What happened</h2>\n<ol>\n"
    for each in found.recoveries:
        who = escape(", ".join(each.died or each.who))
        what = "died" if each.died else "ended in order"
        words = "<br>".join(map(escape, recovery_words(each, found.mode)))
        yield f"<li><time>{clock(each.last_seen)}</time> <b>{who}</b> {what}<br>{words}</li>\n"
    yield f"<li><time>{clock(found.ended)}</time> {escape(end_words(found))}</li>\n</ol>\n"
    yield "<h2>Replicas</h2>\n<table><tr>"
    word = "incarnations" if found.mode == "log" else "generations"
    yield "".join(f"<th>{head}</th>" for head in ("replica", word, *NUMBERS)) + "</tr>\n"
    for name, story in found.stories.items():
        cells = "".join(f"<td>{number:,}</td>" for number in story_numbers(story))
        yield f"<tr><td>{escape(name)}</td>{cells}</tr>\n"
    yield "</table>\n"


def picture(found: Explanation) -> str:
    """The timeline: a lane for each replica, its commits as bars, its failures as gaps."""
    scale = _Scale(found.began, found.ended)
    height = _TOP + _LANE * len(found.stories) + 12
    parts = [f'<svg viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="timeline of the run">']
    parts += _axis(scale, height)
    if found.mode != "log":
        parts += [_mark(scale.x(each.back), height, f"generation {each.incarnation}") for each in found.recoveries]
    for lane, (name, story) in enumerate(found.stories.items()):
        top = _TOP + lane * _LANE
        parts.append(f'<text x="0" y="{top + 18}">{escape(name[:22])}</text>')
        parts += _lives(scale, story, top)
        parts += _bars(scale, story, top)
        parts += _deaths(scale, found.recoveries, name, top)
    return "\n".join([*parts, "</svg>"])


class _Scale:
    def __init__(self, began: float, ended: float) -> None:
        self.began = began
        self.seconds = max(ended - began, 0.001)

    def x(self, moment: float) -> float:
        share = min(max((moment - self.began) / self.seconds, 0.0), 1.0)
        return round(_LEFT + share * (_WIDTH - _LEFT - 10), 1)


def _axis(scale: _Scale, height: int) -> Iterator[str]:
    for part in range(6):
        moment = scale.began + scale.seconds * part / 5
        x = scale.x(moment)
        anchor = "end" if part == 5 else "middle" if part else "start"
        yield f'<line x1="{x}" x2="{x}" y1="26" y2="{height}" stroke="var(--line)"/>'
        yield f'<text class="soft" x="{x}" y="18" text-anchor="{anchor}">+{moment - scale.began:.2f} s</text>'


def _mark(x: float, height: int, title: str) -> str:
    line = f'<line x1="{x}" x2="{x}" y1="26" y2="{height}" stroke="var(--lost)" stroke-dasharray="4 3">'
    return f"{line}<title>{escape(title)}</title></line>"


def _lives(scale: _Scale, story: Story, top: int) -> Iterator[str]:
    for number, began, seen, _ in story.lives:
        left, right = scale.x(began), scale.x(seen)
        yield (
            f'<rect x="{left}" y="{top + 4}" width="{max(right - left, 1):.1f}" height="22" rx="2" fill="var(--life)">'
            f"<title>number {number}: {clock(began)} to {clock(seen)}</title></rect>"
        )


def _bars(scale: _Scale, story: Story, top: int) -> Iterator[str]:
    """Commits that are close together are one bar; the taller, the more steps."""
    bins: dict[tuple[int, bool], int] = {}
    for moment, steps, is_kept in story.moments:
        at = min(int((moment - scale.began) / scale.seconds * _BINS), _BINS - 1)
        bins[at, is_kept] = bins.get((at, is_kept), 0) + steps
    most = max(bins.values(), default=1)
    width = round((_WIDTH - _LEFT - 10) / _BINS, 2)
    for (at, is_kept), steps in sorted(bins.items(), key=lambda each: (not each[0][1], each[0][0])):
        tall = round(max(20 * (steps / most) ** 0.5, 3.0), 1)
        x = round(_LEFT + at * width, 1)
        colour = "kept" if is_kept else "lost"
        yield (
            f'<rect x="{x}" y="{top + 26 - tall}" width="{max(width, 2.0)}" height="{tall}" fill="var(--{colour})">'
            f"<title>{steps:,} steps{'' if is_kept else ', discarded'}</title></rect>"
        )


def _deaths(scale: _Scale, recoveries: Iterable[Recovery], name: str, top: int) -> Iterator[str]:
    for each in recoveries:
        if name not in (each.died or each.who):
            continue
        left, right = scale.x(each.last_seen), scale.x(each.back)
        what = "died" if each.died else "ended in order"
        yield (
            f'<rect x="{left}" y="{top + 4}" width="{max(right - left, 2):.1f}" height="22" fill="var(--again)" '
            f'opacity="0.6"><title>{what} at {clock(each.last_seen)}, back after {each.seconds:.2f} s</title></rect>'
            f'<path d="M{left - 4} {top + 1}l8 8m0 -8l-8 8" stroke="var(--lost)" stroke-width="2"/>'
        )
