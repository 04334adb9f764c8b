# Copyright 2026 macvo_ros contributors
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.

"""docs/troubleshooting.md knows every sentence the node can say, so that a search for it finds its cure."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from emitted_sentences import Sentence, refusal_kinds, sentences

PAGE = (Path(__file__).resolve().parent.parent / "docs" / "troubleshooting.md").read_text()
TEXT = " ".join(PAGE.split())
WORDS = 4


def is_there(sentence: Sentence) -> bool:
    """Whether the first words of any part of the sentence are on the page."""
    openings = (part.strip(" ;:,.()").split() for part in sentence.parts)
    return any(len(words) >= 2 and " ".join(words[:WORDS]) in TEXT for words in openings)


@pytest.mark.parametrize("sentence", sentences(), ids=lambda sentence: sentence.where)
def test_every_sentence_is_explained(sentence: Sentence) -> None:
    assert is_there(sentence), f"docs/troubleshooting.md does not explain: {' … '.join(sentence.parts)}"


@pytest.mark.parametrize("kind", sorted(refusal_kinds()))
def test_every_kind_of_refusal_is_explained(kind: str) -> None:
    assert re.search(rf"`{kind}[:`]", PAGE), f"docs/troubleshooting.md does not mention the kind {kind!r}"


def test_the_search_finds_what_it_should() -> None:
    """The test above would be empty if the sources were written another way; these must be among what it finds."""
    found = " ".join(" ".join(sentence.parts) for sentence in sentences())
    for words in ("stamps never pair", "they come faster", "agree on the motion", "lens covered", "no camera_info has"):
        assert words in found
    assert len(sentences()) > 80
    assert {"image", "calibration", "transform", "stamp", "camera_info", "internal error"} <= refusal_kinds()
    assert not is_there(Sentence("nowhere", ("the flux capacitor is empty",)))
