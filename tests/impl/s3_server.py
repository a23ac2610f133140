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
from importlib.util import find_spec
from typing import Any

import fsspec
from fencepost.model.core.errors import BadInput

_TRIES = 600
CREDENTIALS = {"key": "test", "secret": "test"}


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


def require_s3() -> None:
    """Raises ``BadInput`` where a server, or what reaches it, is not installed."""
    for module, package in (("moto", "moto[server]"), ("s3fs", "s3fs")):
        if find_spec(module) is None:
            raise BadInput(
                f"{module} is not installed, and there is no S3 server without it", "s3", _installing(package)
            )


def _installing(package: str) -> str:
    return f"pip install -c constraints.txt '{package}', or use a folder"


@contextmanager
def s3_server(bucket: str = "remote-log") -> Iterator[tuple[str, dict[str, Any]]]:
    """A server with an empty bucket: its URL, and the options of fsspec's to reach it. It ends with the block.

    Raises ``BadInput`` where there is none on this machine.
    """
    require_s3()
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
            if process.poll() is not None:
                raise BadInput("moto has ended; it may lack what its server needs", "s3", _installing("moto[server]"))
            try:
                opener.open(f"{endpoint}/moto-api/", timeout=2).read()
                break
            except OSError:
                time.sleep(0.1)
        else:
            raise BadInput(f"no server answers at {endpoint}", "s3", "try again, or use a folder")
        options = {**CREDENTIALS, "client_kwargs": {"endpoint_url": endpoint, "region_name": "eu-west-1"}}
        fsspec.filesystem("s3", skip_instance_cache=True, **options).mkdir(bucket)
        yield f"s3://{bucket}/tiered", options
    finally:
        process.kill()
        process.wait()
