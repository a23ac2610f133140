"""The reference page on Apache Kafka's classes; these tests need no Kafka."""

from __future__ import annotations

import re

from fencepost.conformance.kafka.jars import TRIED

from .kafka_matrix import UNDER, driven, of_classes, of_kafka, page, rows
from .kafka_planted import FOUND, LATER, SOURCES, planted


def test_page_lists_each_protocol_row_and_defect() -> None:
    text = page()
    for wanted in (*driven(), *rows(), *(defect for drives in SOURCES for defect in planted(drives))):
        assert re.search(rf"\b{re.escape(wanted)}\b", text), wanted


def test_it_has_each_protocol_that_the_registry_has_a_system_for() -> None:
    assert set(driven()) == set(UNDER) and {of.drives for of in UNDER.values()} == set(SOURCES)
    assert {drives for all_ in TRIED.values() for drives in all_} == set(SOURCES)


def test_each_planted_defect_is_demanded_by_one_test_or_another() -> None:
    for drives in SOURCES:
        assert {*FOUND[drives], *LATER[drives]} == planted(drives).keys()
        assert not set(FOUND[drives]) & set(LATER[drives])
    assert sum(map(len, FOUND.values())) >= 25


def test_the_rows_are_read_and_the_tests_that_name_them() -> None:
    assert {"K1", "K11", "K12", "V1", "V7", "F1", "F24"} <= rows().keys()
    assert not of_classes("`FetchRequest.json`, KIP-631") and of_classes("`FetchRequest.json`, `ApiKeys`")
    assert of_classes("`kafka.cluster.Partition.makeLeader`") and not of_classes("KIP-631")
    named = {name: rows for _, name, rows in of_kafka()}
    assert named["test_v7_metadata_goes_back_once_a_broker_has_not_known_the_topic"] == {"V7"}
    assert named["test_what_breaks_the_protocol_is_found_by_draw"] == {"K11", "K12"}
    assert named["test_what_kafka_throws_is_told"] == set()


def test_each_row_has_a_test() -> None:
    named = {row for _, _, rows_ in of_kafka() for row in rows_} | {"V1"}
    assert named >= rows().keys() >= {"O1", "O13", "L8", "TK10", "H1", "A5"}
