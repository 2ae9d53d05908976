"""Parquet: a directory of tables, for DuckDB, Polars, pandas and the like."""

from __future__ import annotations

from pathlib import Path

from whence._recording import has_memory
from whence.export import _parquet_memory
from whence.export._output import ExportError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, Self

    from whence._recording import Recording

_ROWS = 1 << 20  # in a row group


def write(recording: Recording, directory: str) -> None:
    """Write the tables; those that may be large in pieces."""
    try:
        import pyarrow as pa  # noqa: PLC0415
        from pyarrow import parquet  # noqa: PLC0415
    except ImportError:
        message = "Parquet needs pyarrow: pip install 'whence[parquet]'"
        raise ExportError(message) from None
    folder = Path(directory)
    folder.mkdir()
    schema = _plain_schema(recording, pa)
    with _Table(folder, "call", schema, pa, parquet) as calls:
        for batch in _batches(recording, schema, pa):
            calls.add(batch)
    _write_memory(recording, folder, pa, parquet)
    for name, rows in _tables(recording).items():
        columns = {key: [row[key] for row in rows] for key in _SCHEMAS[name]}
        table = pa.table(columns, schema=_schema(name, pa))
        parquet.write_table(table, folder / f"{name}.parquet", compression="zstd")


class _Table:
    """A table that is written in pieces: batches wait until they fill a row group."""

    def __init__(
        self, folder: Path, name: str, schema: Any, pa: Any, parquet: Any
    ) -> None:
        path = folder / f"{name}.parquet"
        self._pa = pa
        self._schema = schema
        self._writer = parquet.ParquetWriter(path, schema, compression="zstd")
        self._waiting: list[Any] = []
        self._rows = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._write()
        self._writer.close()

    def add(self, batch: Any) -> None:
        self._waiting.append(batch)
        self._rows += batch.num_rows
        if self._rows >= _ROWS:
            self._write()

    def add_columns(self, columns: dict[str, Any], process: int) -> None:
        """Add columns as arrays or lists, and the process beside them."""
        rows = len(next(iter(columns.values())))
        columns["process"] = [process] * rows
        pa, array = self._pa, self._pa.Array
        arrays = [
            column.cast(field.type)
            if isinstance(column := columns[field.name], array)
            else pa.array(column, field.type)
            for field in self._schema
        ]
        self.add(pa.RecordBatch.from_arrays(arrays, schema=self._schema))

    def _write(self) -> None:
        if self._waiting:
            table = self._pa.Table.from_batches(self._waiting, self._schema)
            self._writer.write_table(table)
        self._waiting, self._rows = [], 0


def _write_memory(recording: Recording, folder: Path, pa: Any, parquet: Any) -> None:
    with (
        _Table(folder, "alloc", _schema("alloc", pa), pa, parquet) as allocs,
        _Table(folder, "stack", _schema("stack", pa), pa, parquet) as stacks,
    ):
        for process in recording.processes:
            part = recording.slice(processes=[process.id])
            if not has_memory(part):
                continue
            blocks = _parquet_memory.Blocks(part)
            for columns in blocks.batches(pa):
                allocs.add_columns(columns, process.id)
            for columns in _parquet_memory.stacks_of(part, blocks.stacks):
                stacks.add_columns(columns, process.id)


def _schema(name: str, pa: Any) -> Any:
    types = (_SCHEMAS | _parquet_memory.SCHEMAS)[name]
    return pa.schema([(key, getattr(pa, type_)()) for key, type_ in types.items()])


def _plain_schema(recording: Recording, pa: Any) -> Any:
    """Return the columns of calls, without dictionaries, and the process beside them.

    Dictionaries are others in every batch: texts are not.
    """
    stream = pa.RecordBatchReader.from_stream(recording.slice(processes=[]).calls())
    fields = [
        pa.field(f.name, f.type.value_type if _is_dictionary(f) else f.type)
        for f in stream.schema
    ]
    place = stream.schema.get_field_index("thread")
    return pa.schema([*fields[:place], ("process", pa.uint32()), *fields[place:]])


def _batches(recording: Recording, schema: Any, pa: Any) -> Iterator[Any]:
    for process in recording.processes:
        calls = recording.slice(processes=[process.id]).calls()
        for batch in pa.RecordBatchReader.from_stream(calls):
            id_ = pa.repeat(pa.scalar(process.id, pa.uint32()), batch.num_rows)
            columns = dict(zip(batch.schema.names, batch.columns, strict=True))
            columns["process"] = id_
            yield pa.RecordBatch.from_arrays(
                [columns[field.name].cast(field.type) for field in schema],
                schema=schema,
            )


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
    "process": {
        "id": "uint32",
        "pid": "uint32",
        "program": "string",
        "python": "string",
        "start": "int64",
        "end": "int64",
    },
    "thread": {
        "id": "uint32",
        "process": "uint32",
        "os_id": "uint64",
        "name": "string",
        "start": "int64",
        "end": "int64",
    },
    "task": {
        "id": "uint64",
        "process": "uint32",
        "name": "string",
        "parent": "uint64",
        "function": "string",
        "start": "int64",
    },
    "span": {
        "name": "string",
        "process": "uint32",
        "thread": "uint32",
        "start": "int64",
        "duration": "int64",
        "error": "bool_",
        "open": "bool_",
        "tags": "string",
    },
    "counter": {
        "name": "string",
        "process": "uint32",
        "thread": "uint32",
        "time": "int64",
        "value": "float64",
    },
    "gc": {
        "process": "uint32",
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
        "process": "uint32",
        "thread": "uint32",
        "function": "string",
        "filename": "string",
        "line": "int64",
    },
    **{name: _parquet_memory.SCHEMAS[name] for name in ("usage", "resident")},
}


def _tables(recording: Recording) -> dict[str, list[dict[str, Any]]]:
    import json  # noqa: PLC0415

    tables: dict[str, list[dict[str, Any]]] = {name: [] for name in _SCHEMAS}
    tables["function"] += [each._asdict() for each in recording.functions]
    for process in recording.processes:
        part = recording.slice(processes=[process.id])
        tables["process"].append(process._asdict())
        for name, events in (
            ("thread", part.threads),
            ("task", part.tasks),
            ("span", part.spans),
            ("counter", part.counters),
            ("gc", part.gc),
            ("exception", part.exceptions),
        ):
            tables[name] += [{"process": process.id, **e._asdict()} for e in events]
        for name, rows in _parquet_memory.usage_of(part).items():
            tables[name] += [{"process": process.id, **row} for row in rows]
    for span in tables["span"]:
        span["tags"] = json.dumps(span["tags"], default=str)
    return {name: [_clean(row) for row in rows] for name, rows in tables.items()}


def _clean(row: dict[str, Any]) -> dict[str, Any]:
    """Replace lone surrogates, which are no UTF-8."""
    return {
        key: value.encode("utf-8", "replace").decode()
        if isinstance(value, str)
        else value
        for key, value in row.items()
    }
