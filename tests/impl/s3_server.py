"""An S3-compatible server, moto in server mode: a process of its own on a free port of this machine."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import fsspec

_TRIES = 600
CREDENTIALS = {"key": "test", "secret": "test"}


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


@contextmanager
def s3_server(bucket: str = "remote-log") -> Iterator[tuple[str, dict[str, Any]]]:
    """A server with an empty bucket: its URL, and the options of fsspec's to reach it. It ends with the block."""
    port = _free_port()
    proxies = {name: "" for name in os.environ if name.lower().endswith("_proxy")}
    process = subprocess.Popen(
        [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, **proxies, "NO_PROXY": "127.0.0.1"},
    )
    try:
        endpoint = f"http://127.0.0.1:{port}"
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        for _ in range(_TRIES):
            assert process.poll() is None, "the server has ended; moto[server] may lack a part"
            try:
                opener.open(f"{endpoint}/moto-api/", timeout=2).read()
                break
            except OSError:
                time.sleep(0.1)
        else:
            raise AssertionError(f"no server answers at {endpoint}")
        options = {**CREDENTIALS, "client_kwargs": {"endpoint_url": endpoint, "region_name": "eu-west-1"}}
        fsspec.filesystem("s3", skip_instance_cache=True, **options).mkdir(bucket)
        yield f"s3://{bucket}/tiered", options
    finally:
        process.kill()
        process.wait()
