"""Parquet: a directory of tables, for DuckDB, Polars, pandas and the like."""

from __future__ import annotations

from pathlib import Path

from whence.export._output import ExportError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from whence._recording import Recording

_ROWS = 1 << 20  # in a row group


def write(recording: Recording, directory: str) -> None:
    """Write the tables; ``call`` in pieces, the others are small."""
    try:
        import pyarrow as pa  # noqa: PLC0415
        from pyarrow import parquet  # noqa: PLC0415
    except ImportError:
        message = "Parquet needs pyarrow: pip install 'whence[parquet]'"
        raise ExportError(message) from None
    folder = Path(directory)
    folder.mkdir()
    _write_calls(recording, folder / "call.parquet", pa, parquet)
    for name, rows in _tables(recording).items():
        columns = {key: [row[key] for row in rows] for key in _SCHEMAS[name]}
        schema = pa.schema([(k, getattr(pa, t)()) for k, t in _SCHEMAS[name].items()])
        table = pa.table(columns, schema=schema)
        parquet.write_table(table, folder / f"{name}.parquet", compression="zstd")


def _write_calls(recording: Recording, path: Path, pa: Any, parquet: Any) -> None:
    reader = pa.RecordBatchReader.from_stream(recording.calls())
    plain = pa.schema(
        [
            pa.field(f.name, f.type.value_type if _is_dictionary(f) else f.type)
            for f in reader.schema
        ]
    )
    with parquet.ParquetWriter(path, plain, compression="zstd") as writer:
        waiting: list[Any] = []
        rows = 0
        for batch in reader:  # dictionaries grow from batch to batch: texts do not
            waiting.append(batch.cast(plain))
            rows += batch.num_rows
            if rows >= _ROWS:
                writer.write_table(pa.Table.from_batches(waiting, plain))
                waiting, rows = [], 0
        if waiting:
            writer.write_table(pa.Table.from_batches(waiting, plain))


def _is_dictionary(field: Any) -> bool:
    return hasattr(field.type, "value_type")


_SCHEMAS = {
    "function": {
        "name": "string",
        "filename": "string",
        "line": "int64",
        "calls": "uint64",
        "total": "uint64",
        "own": "uint64",
    },
    "thread": {
        "id": "uint32",
        "os_id": "uint64",
        "name": "string",
        "start": "int64",
        "end": "int64",
    },
    "task": {
        "id": "uint64",
        "name": "string",
        "parent": "uint64",
        "function": "string",
        "start": "int64",
    },
    "span": {
        "name": "string",
        "thread": "uint32",
        "start": "int64",
        "duration": "int64",
        "error": "bool_",
        "open": "bool_",
        "tags": "string",
    },
    "counter": {
        "name": "string",
        "thread": "uint32",
        "time": "int64",
        "value": "float64",
    },
    "gc": {
        "thread": "uint32",
        "start": "int64",
        "duration": "int64",
        "generation": "uint64",
        "collected": "uint64",
        "uncollectable": "uint64",
    },
    "exception": {
        "type": "string",
        "kind": "string",
        "time": "int64",
        "thread": "uint32",
        "function": "string",
        "filename": "string",
        "line": "int64",
    },
}


def _tables(recording: Recording) -> dict[str, list[dict[str, Any]]]:
    import json  # noqa: PLC0415

    spans = [span._asdict() for span in recording.spans]
    for span in spans:
        span["tags"] = json.dumps(span["tags"], default=str)
    tables = {
        "function": [each._asdict() for each in recording.functions],
        "thread": [each._asdict() for each in recording.threads],
        "task": [each._asdict() for each in recording.tasks],
        "span": spans,
        "counter": [each._asdict() for each in recording.counters],
        "gc": [each._asdict() for each in recording.gc],
        "exception": [each._asdict() for each in recording.exceptions],
    }
    return {name: [_clean(row) for row in rows] for name, rows in tables.items()}


def _clean(row: dict[str, Any]) -> dict[str, Any]:
    """Replace lone surrogates, which are no UTF-8."""
    return {
        key: value.encode("utf-8", "replace").decode()
        if isinstance(value, str)
        else value
        for key, value in row.items()
    }
