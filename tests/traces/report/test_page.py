"""The page of a story, as text: what it holds, and what nobody can smuggle into it."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from fencepost.model.core.view import LogView
from fencepost.traces.report.page import asset, embedded, page_data, policy, render_page
from fencepost.traces.run_report import Breach, Call, Moment, Story

HOSTILE = "</script><script>window.pwned = 1</script><!--<script> ]]> & \" ' <img src=x onerror=alert(1)> \u2028\x00"


class Outline(HTMLParser):
    """The tags of a page, and the text of its script and style elements."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.raw: list[tuple[str, dict[str, str | None], str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1][0] in ("script", "style") and self.cdata_elem is not None:
            self.raw.append((*self.tags[-1], data))


def outline(page: str) -> Outline:
    parser = Outline()
    parser.feed(page)
    parser.close()
    return parser


def hostile(story: Story) -> Story:
    state = {"leo[0]": 1, "record_id[0][0]": HOSTILE, "record_epoch[0][0]": 0, HOSTILE: HOSTILE}
    moment = Moment(
        0,
        HOSTILE,
        {HOSTILE: HOSTILE, "leader": HOSTILE},
        state,
        (Call(HOSTILE, {HOSTILE: HOSTILE}),),
        (Breach(HOSTILE, HOSTILE, (HOSTILE,)),),
        (HOSTILE,),
    )
    return replace(
        story,
        protocol=HOSTILE,
        variant=HOSTILE,
        constants={HOSTILE: HOSTILE},
        violated=HOSTILE,
        headline=HOSTILE,
        source={HOSTILE: HOSTILE},
        promises={HOSTILE: HOSTILE},
        moments=(moment,),
    )


def test_the_page_is_one_file_that_loads_nothing(lost_record: Story) -> None:
    found = outline(render_page(lost_record))
    assert not [tag for tag, attributes in found.tags if {"src", "href", "style"} & attributes.keys()]
    assert not [name for _, attributes in found.tags for name in attributes if name.startswith("on")]
    assert not {"link", "img", "iframe", "object", "base", "form"} & {tag for tag, _ in found.tags}
    style = next(text for tag, _, text in found.raw if tag == "style")
    assert "url(" not in style
    assert "@import" not in style


def test_the_policy_names_exactly_the_script_and_the_style_in_the_page(lost_record: Story) -> None:
    found = outline(render_page(lost_record))
    csp = next(
        attributes["content"]
        for tag, attributes in found.tags
        if tag == "meta" and attributes.get("http-equiv") == "Content-Security-Policy"
    )
    assert csp is not None
    assert csp.startswith("default-src 'none'; ")
    assert "unsafe" not in csp
    hashes = {
        kind: base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        for kind, attributes, text in found.raw
        if attributes.get("type") != "application/json"
    }
    assert f"script-src 'sha256-{hashes['script']}'" in csp
    assert f"style-src 'sha256-{hashes['style']}'" in csp
    assert policy(script="a", style="b") != policy(script="a ", style="b")


def test_the_data_block_is_the_story(lost_record: Story) -> None:
    found = outline(render_page(lost_record))
    block = next(text for _, attributes, text in found.raw if attributes.get("type") == "application/json")
    assert json.loads(block) == page_data(lost_record)


def test_hostile_strings_stay_text(lost_record: Story) -> None:
    page = render_page(hostile(lost_record))
    plain, bad = outline(render_page(lost_record)), outline(page)
    assert [tag for tag, _ in bad.tags] == [tag for tag, _ in plain.tags]
    assert "window.pwned" in page
    assert not any("<script>window" in line for line in page.splitlines())
    assert "\x00" not in page
    page.encode("utf-8")


def test_embedded_json_has_nothing_that_html_reads() -> None:
    text = embedded([HOSTILE, {"<": ">"}])
    assert not set("<>&") & set(text)
    assert text.isascii()
    assert json.loads(text) == [HOSTILE, {"<": ">"}]
    with pytest.raises(ValueError, match="JSON compliant"):
        embedded(float("nan"))


def test_what_the_script_is_given(lost_record: Story) -> None:
    shown = page_data(lost_record)
    assert shown["breach"] == 12
    assert shown["promise"] == lost_record.promises["strong_isr"]
    moments = shown["moments"]
    assert isinstance(moments, list)
    last = json.loads(json.dumps(moments[12]))
    assert last["route"] == {"source": "@controller", "target": 2, "from": 9, "consults": None}
    assert ["log[2][0]", "0@e0", "empty"] in last["changes"]
    assert [each["invariant"] for each in last["broken"]] == ["weak_isr", "strong_isr"]
    eighth = json.loads(json.dumps(moments[8]))
    assert [call["text"] for call in eighth["enabled"] if call["taken"]] == ["controller_elect_leader(new_leader=1)"]
    assert len(eighth["enabled"]) == len(lost_record.moments[8].enabled) > 1


def test_a_story_without_logs_or_controller_has_a_page_too(lost_record: Story) -> None:
    shown = page_data(replace(lost_record, view=LogView(), replicas=()))
    assert (shown["hasLogs"], shown["hasController"]) == (False, False)
    assert "initial state" in render_page(replace(lost_record, view=LogView(), replicas=()))


def test_the_same_story_gives_the_same_page(lost_record: Story) -> None:
    assert render_page(lost_record) == render_page(lost_record)


def luminance(colour: str) -> float:
    """Relative luminance of #rgb or #rrggbb, as WCAG 2.2 defines it."""
    digits = colour[1:] if len(colour) == 7 else "".join(each * 2 for each in colour[1:])
    parts = [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    linear = [each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_text_on_every_epoch_colour_can_be_read() -> None:
    pairs = re.findall(r'\["(#[0-9a-f]{6})", "(#[0-9a-f]{3})"\]', asset("diagram.js"))
    assert len(pairs) == 8
    assert min(contrast(fill, ink) for fill, ink in pairs) >= 4.5


@pytest.mark.parametrize("sheet", ["story.css", "tables.css"])
@pytest.mark.parametrize("scheme", [0, 1])
def test_text_can_be_read_in_light_and_dark(sheet: str, scheme: int) -> None:
    found = re.findall(r"--([\w-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\)", asset(sheet))
    colours = {name: pair[scheme] for name, *pair in found}
    for ink in ("ink", "soft", "alarm"):
        for paper in ("paper", "panel"):
            assert contrast(colours[ink], colours[paper]) >= 4.5, (ink, paper)
    assert contrast(colours["alarm"], colours["alarm-soft"]) >= 4.5
