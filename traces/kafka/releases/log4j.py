"""Configure the log4j of a release like its distribution does, with one more file for the detailed levels.

Each node writes ``server.log``, ``controller.log`` and ``state-change.log`` at the levels of Kafka's own configuration,
and ``detailed.log``: everything in one file, at the levels that ``fencepost ingest --kafka-log`` needs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from .release import Release

_DETAILED: Final = {
    "kafka.cluster.Partition": "DEBUG",
    "kafka.log.Log": "TRACE",
    "kafka.log.UnifiedLog": "TRACE",
    "org.apache.kafka.storage.internals.log.UnifiedLog": "TRACE",
    "org.apache.kafka.controller.ReplicationControlManager": "DEBUG",
}
_LAYOUT: Final = "[%d] %p %m (%c)%n"


def logging_options(release: Release, directory: Path) -> tuple[str, ...]:
    """Write the configuration into `directory`; the options of a JVM that use it."""
    if release.is_older("4.0.0"):
        path = directory / "log4j.properties"
        path.write_text(_properties(release), encoding="utf-8")
        return (f"-Dlog4j.configuration=file:{path}",)
    path = directory / "log4j2.yaml"
    path.write_text(_yaml(), encoding="utf-8")
    return (f"-Dlog4j2.configurationFile={path}",)


def _properties(release: Release) -> str:
    """The log4j 1.2 configuration: state changes and the controller at TRACE before 3.0, at INFO since."""
    level = "TRACE" if release.is_older("3.0.0") else "INFO"
    lines = ["log4j.rootLogger=INFO, stdout, server, detailed"]

    def appender(name: str, kind: str, threshold: str, file: str | None = None) -> None:
        at = f"log4j.appender.{name}"
        lines.extend(
            [
                f"{at}=org.apache.log4j.{kind}",
                f"{at}.Threshold={threshold}",
                f"{at}.layout=org.apache.log4j.PatternLayout",
                f"{at}.layout.ConversionPattern={_LAYOUT}",
                *([f"{at}.File=${{kafka.logs.dir}}/{file}.log"] if file else []),
            ]
        )

    appender("stdout", "ConsoleAppender", "INFO")
    for name in ("server", "controller", "state-change"):
        appender(name, "DailyRollingFileAppender", "INFO" if name == "server" else level, name)
    appender("detailed", "DailyRollingFileAppender", "TRACE", "detailed")
    lines += [f"log4j.logger.{name}={wanted}" for name, wanted in _DETAILED.items()]
    for logger, name in (("kafka.controller", "controller"), ("state.change.logger", "state-change")):
        lines += [f"log4j.logger.{logger}={level}, {name}, detailed", f"log4j.additivity.{logger}=false"]
    lines += ["log4j.logger.kafka.request.logger=WARN", "log4j.logger.kafka.network.RequestChannel$=WARN"]
    return "\n".join(lines) + "\n"


def _yaml() -> str:
    """The log4j2 configuration, as Kafka 4 names its appenders."""
    files = {"Server": "server", "Controller": "controller", "StateChange": "state-change", "Detailed": "detailed"}
    lines = ["Configuration:", "  Appenders:", "    Console:", "      name: STDOUT", *_filter("INFO", 6), *_layout(6)]
    lines.append("    File:")
    for name, file in files.items():
        level = "TRACE" if name == "Detailed" else "INFO"
        lines += [f"      - name: {name}", f"        fileName: ${{sys:kafka.logs.dir}}/{file}.log"]
        lines += [*_filter(level, 8), *_layout(8)]
    refs = ["STDOUT", "Server", "Detailed"]
    lines += ["  Loggers:", "    Root:", "      level: INFO", "      AppenderRef:"]
    lines += [f"        - ref: {name}" for name in refs]
    lines.append("    Logger:")
    for logger, level in _DETAILED.items():
        if logger == "org.apache.kafka.controller.ReplicationControlManager":
            continue
        lines += [f"      - name: {logger}", f"        level: {level}"]
    own = {
        "kafka.controller": ("INFO", "Controller"),
        "org.apache.kafka.controller": ("INFO", "Controller"),
        "org.apache.kafka.controller.ReplicationControlManager": ("DEBUG", "Controller"),
        "state.change.logger": ("INFO", "StateChange"),
    }
    for logger, (level, name) in own.items():
        lines += [f"      - name: {logger}", f"        level: {level}", "        additivity: false"]
        lines += ["        AppenderRef:", f"          - ref: {name}", "          - ref: Detailed"]
    return "\n".join(lines) + "\n"


def _filter(level: str, indent: int) -> list[str]:
    space = " " * indent
    return [f"{space}ThresholdFilter:", f"{space}  level: {level}"]


def _layout(indent: int) -> list[str]:
    space = " " * indent
    return [f"{space}PatternLayout:", f'{space}  pattern: "{_LAYOUT}"']
