"""What a leader refuses of a producer because its topic is compacted (``LogValidator`` in Kafka): INVALID_RECORD.

A record with no key, which no cleaner could keep. And, under the strategy ``header``, a record whose last header of
that name is not 8 bytes long: KIP-280 says that it "must be of type long - 8 bytes", and not what becomes of one that
is not. Refused here, its producer hears of it while the record can still be mended. A record without the header is
taken: the text has a rule for it.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..log.batch import Batch
from ..log.errors import CorruptBatch
from .config import CompactionConfig
from .strategy import HEADER_BYTES, Kind


def refused(config: CompactionConfig, batches: Iterable[Batch]) -> str | None:
    """Why a compacted topic does not take these, in one line; ``None`` where it does."""
    name = config.strategy.header
    wanted = name if config.strategy.kind is Kind.HEADER else None
    for batch in batches:
        try:
            records = batch.records()
        except CorruptBatch as error:
            return str(error)
        for number, record in enumerate(records):
            if record.key is None:
                return f"record {number}: no key; give it one, or send it to a topic that is not compacted"
            found = [value for key, value in record.headers if key == wanted]
            if found and (found[-1] is None or len(found[-1]) != HEADER_BYTES):
                size = "null" if found[-1] is None else f"{len(found[-1])} bytes long"
                return f"record {number}: header {name!r:.80} is {size}; give it an int64 of {HEADER_BYTES} bytes"
    return None
