"""Looking up, merging and explaining handles; JSON; generated code."""

import json
import linecache
import random

import pytest

import whence
from harness.tables import random_table
from whence.handles import (
    HandleTable,
    HandleTableError,
    InlinedCall,
    Recorder,
    SourceRange,
)

SOURCE = "let a = 1\n\tlet ü名 = a + b\nlet c = (a +\n  b)\n"


def table_of(*kinds, top=None):
    recorder = Recorder(top=top)
    for line, kind in enumerate(kinds, 1):
        recorder.issue(SourceRange("model.ex", line), kind)
    return recorder.stop()


def two_that_share_handles():
    """Make tables of two processes, which have the same numbers."""
    one = table_of("a", "b")
    document = json.loads(one.to_json())
    document["parts"][0]["namespace"] = "ab" * 16
    document["parts"][0]["records"][0][2] = "other"
    return one, HandleTable.from_json(json.dumps(document))


class TestLookup:
    def test_what_is_no_handle_of_it(self):
        table = table_of("a")
        (handle,) = table
        assert handle in table
        for other in (handle + 1, -1, 2**80, "x", None, ("ab" * 16, handle), (1, 2)):
            assert other not in table
        with pytest.raises(KeyError, match=str(handle + 1)):
            table[handle + 1]
        with pytest.raises(KeyError):
            table.frames(handle + 1)
        for wrong in ("x", None, 1.5, ("x",), ("x", "y")):
            with pytest.raises(TypeError, match="a handle is an int or"):
                table[wrong]
            with pytest.raises(TypeError, match="a handle is an int or"):
                table.explain([wrong])

    def test_with_and_without_its_namespace(self):
        table = table_of("a")
        (handle,) = table
        assert table[table.namespace, handle] == table[handle]
        assert table.explain((table.namespace, handle)) == table.explain(handle)
        assert (table.namespace, handle) in table

    def test_an_empty_list_explains_nothing(self):
        assert table_of("a").explain([]) == ""

    def test_it_is_made_by_others_and_never_changed(self):
        with pytest.raises(TypeError, match=r"tables come from Recorder\.stop"):
            HandleTable()
        with pytest.raises(AttributeError):
            table_of("a").other = 3


class TestMerge:
    def test_nothing_is_renumbered(self):
        one, other = table_of("a", "b"), table_of("c")
        merged = HandleTable.merge(one, other)
        assert list(merged) == [
            *((one.namespace, handle) for handle in one),
            *((other.namespace, handle) for handle in other),
        ]
        assert [merged[handle].kind for handle in (*one, *other)] == ["a", "b", "c"]
        assert merged == HandleTable.merge(other, one)
        assert merged != one
        with pytest.raises(HandleTableError, match=r"has 2 namespaces: see \."):
            merged.namespace

    def test_a_bare_handle_of_two_namespaces_is_a_clear_error(self):
        one, other = two_that_share_handles()
        merged = HandleTable.merge(one, other)
        (first, second) = one
        assert first in merged
        with pytest.raises(HandleTableError) as error:
            merged[first]
        assert str(error.value) == (
            f"handle {first} is in 2 namespaces: look up (namespace, {first}) "
            f"with one of {one.namespace}, {other.namespace}"
        )
        assert merged[one.namespace, first].kind == "a"
        assert merged[other.namespace, first].kind == "other"
        text = merged.explain([first, (one.namespace, second)])
        assert "line 2" in text
        assert text.endswith(f"{error.value}\n")

    def test_tables_of_one_recorder_become_one_part(self):
        recorder = Recorder()
        recorder.issue(None, "a")
        early = recorder.stop()
        recorder.derive("split", list(early))
        late = recorder.stop()
        for tables in ((early, late), (late, early), (late, late, early)):
            assert HandleTable.merge(*tables) == late
        assert HandleTable.merge() == HandleTable.merge()
        assert len(HandleTable.merge()) == 0

    def test_parts_of_one_namespace_are_put_together(self):
        whole = table_of("a", "b", "c")
        document = json.loads(whole.to_json())
        records = document["parts"][0]["records"]
        halves = []
        for kept in (records[:2], records[1:]):
            document["parts"][0]["records"] = kept
            halves.append(HandleTable.from_json(json.dumps(document)))
        assert HandleTable.merge(*halves) == whole

    def test_a_handle_that_means_two_things_is_refused(self):
        one = table_of("a")
        document = json.loads(one.to_json())
        document["parts"][0]["records"][0][2] = "b"
        other = HandleTable.from_json(json.dumps(document))
        (handle,) = one
        with pytest.raises(HandleTableError, match=f"handle {handle} of namespace"):
            HandleTable.merge(one, other)
        with pytest.raises(TypeError, match="tables are HandleTable, not int"):
            HandleTable.merge(one, 3)

    def test_merged_tables_are_saved_and_loaded(self, tmp_path, seed):
        path = tmp_path / "all.handles"
        rng = random.Random(seed)
        merged = HandleTable.merge(*(random_table(rng) for _ in range(5)))
        merged.save(path)
        assert HandleTable.load(path) == merged
        assert HandleTable.from_json(merged.to_json()) == merged


class TestEdges:
    def test_explaining_follows_them(self):
        recorder = Recorder()
        a, b = (recorder.issue(SourceRange("m.ex", n), f"op{n}") for n in (1, 2))
        fused = recorder.derive("fused", [a, b, 10**17])
        split = recorder.derive("split", fused)
        text = recorder.stop().explain(split)
        order = [
            f"Handle {split} was split from {fused}.",
            f"Handle {fused} was fused from {a}, {b}, {10**17}.",
            f"Handle {10**17} is not in the table.",
            'File "m.ex", line 1, in <top>',
            'File "m.ex", line 2, in <top>',
        ]
        places = [text.index(line) for line in order]
        assert places == sorted(places)

    def test_frames_of_a_derived_handle_are_its_own_and_its_parents(self):
        recorder = Recorder()
        a, b = (recorder.issue(SourceRange("m.ex", n), "") for n in (1, 2))
        fused = recorder.derive("fused", [a, b], range=SourceRange("f.ex", 9))
        table = recorder.stop()
        assert [frame.line for frame in table.frames(fused)] == [9, 1, 2]
        assert {frame.kind for frame in table.frames(fused)} == {"handle"}

    def test_a_file_may_lead_in_circles(self):
        recorder = Recorder()
        recorder.derive("fused", 0)
        recorder.derive("fused", 0)
        document = json.loads(recorder.stop().to_json())
        one, other = document["parts"][0]["records"]
        one[5], other[5] = [other[0], one[0]], [one[0]]
        table = HandleTable.from_json(json.dumps(document))
        text = table.explain(one[0])
        assert text.count("was fused from") == 2
        assert table.frames(one[0]) == ()

    def test_parents_may_be_of_another_recorder_of_the_process(self):
        first = table_of("a")
        recorder = Recorder()
        handle = recorder.derive("inlined", list(first))
        assert "is not in the table" in recorder.stop().explain(handle)
        merged = HandleTable.merge(first, recorder.stop())
        assert 'File "model.ex", line 1' in merged.explain(handle)
        assert len(merged.frames(handle)) == 1

    def test_a_long_chain_of_passes_leads_to_the_source(self):
        recorder = Recorder()
        first = handle = recorder.issue(SourceRange("m.ex", 1), "op")
        for _ in range(5000):
            handle = recorder.derive("rewritten", handle)
        table = recorder.stop()
        lines = table.explain(handle).splitlines()
        assert (
            lines[0] == f"Handle {handle} was rewritten from {first}, in 5,000 passes."
        )
        assert lines[2:] == ['  File "m.ex", line 1, in <top>']
        assert [frame.line for frame in table.frames(handle)] == [1]

    def test_passes_that_differ_are_told_apart(self):
        recorder = Recorder()
        handle = recorder.issue(SourceRange("m.ex", 1), "op")
        kinds = ["rewritten", "rewritten", "split", "inlined", "inlined"]
        made = [handle, *(handle := recorder.derive(kind, handle) for kind in kinds)]
        assert recorder.stop().explain(handle).splitlines()[:3] == [
            f"Handle {made[5]} was inlined from {made[3]}, in 2 passes.",
            f"Handle {made[3]} was split from {made[2]}.",
            f"Handle {made[2]} was rewritten from {made[0]}, in 2 passes.",
        ]

    def test_many_operations_after_many_passes_are_all_there(self):
        recorder = Recorder()
        made = [recorder.issue(SourceRange("m.ex", n), "op") for n in range(1, 41)]
        for kind in ("rewritten", "split", "rewritten"):
            made = [recorder.derive(kind, handle) for handle in made]
        fused = recorder.derive("fused", made)
        table = recorder.stop()
        assert [frame.line for frame in table.frames(fused)] == list(range(1, 41))
        assert "more" not in table.explain(fused)

    def test_passes_without_end_are_followed_for_a_while(self):
        recorder = Recorder()
        handle = recorder.issue(SourceRange("m.ex", 1), "op")
        for number in range(30_000):
            handle = recorder.derive(("rewritten", "split")[number % 2], handle)
        table = recorder.stop()
        assert table.explain(handle).endswith("are shown\n")
        assert table.frames(handle)[-1].kind == "truncated"


class TestText:
    @pytest.fixture
    def source(self):
        lines = SOURCE.splitlines(keepends=True)
        linecache.cache["m.ex"] = (len(SOURCE), None, lines, "m.ex")
        yield SourceRange
        del linecache.cache["m.ex"]

    def explained(self, place):
        recorder = Recorder()
        handle = recorder.issue(place, "op")
        return recorder.stop().explain(handle).splitlines()[2:]

    @pytest.mark.parametrize(
        ("place", "shown"),
        [
            (("m.ex", 1), ["    let a = 1"]),
            (("m.ex", 1, 4, 1, 5), ["    let a = 1", "        ^"]),
            (("m.ex", 1, 4, None, 9), ["    let a = 1", "        ^^^^^"]),
            (("m.ex", 1, 4, 3, 2), ["    let a = 1", "        ^^^^^"]),
            (("m.ex", 2, 5, 2, 10), ["    let ü名 = a + b", "        ^^^"]),
            (("m.ex", 2, 13, 2, 18), ["    let ü名 = a + b", "              ^^^^^"]),
            (("m.ex", 1, 4, 1, 900), ["    let a = 1", "        ^^^^^"]),
            (("m.ex", 1, 900, 1, 901), ["    let a = 1"]),
            (("m.ex", 1, 5, 1, 4), ["    let a = 1"]),
            (("m.ex", 900, 1, 900, 2), []),
        ],
    )
    def test_carets_are_below_what_is_meant(self, source, place, shown):
        assert self.explained(SourceRange(*place)) == shown

    def test_names_cannot_write_to_the_terminal(self, source):
        recorder = Recorder(top="\x1b[31m")
        stack = InlinedCall("f\n", SourceRange("a\x1b\nb", 1), "\x07", "\r")
        handle = recorder.issue(SourceRange("m.ex", 1), "\x1b]0;x", stack)
        text = recorder.stop().explain(handle)
        assert text.replace("\n", "").isprintable()
        assert text.count("\n") == 5

    def test_deep_stacks_are_shown_from_both_ends(self):
        stack = None
        for number in reversed(range(30_000)):
            stack = InlinedCall(
                f"f{number}", SourceRange("m.ex", number + 1), "T", "i", stack
            )
        recorder = Recorder()
        handle = recorder.issue(SourceRange("m.ex", 99_999), "op", stack)
        table = recorder.stop()
        text = table.explain(handle)
        assert "  ... 29,000 calls are not shown\n" in text
        assert text.count("File") == 1001
        assert "line 99999, in f29999" in text
        assert text.splitlines()[-1].count("::") == 1000

    def test_frames_are_innermost_first_with_columns(self):
        recorder = Recorder(top="Model")
        stack = InlinedCall("f", SourceRange("m.ex", 1, 2, 3, 4))
        handle = recorder.issue(None, "op", stack)
        assert recorder.stop().frames(handle) == (
            whence.Frame("f", "<unknown>", None, kind="handle"),
            whence.Frame("Model", "m.ex", 1, 2, 3, 4, "handle"),
        )


class TestSources:
    """A table from a file opens nothing that it names."""

    def loaded(self, filename):
        recorder = Recorder()
        handle = recorder.issue(SourceRange(filename, 1), "op")
        table = recorder.stop()
        return handle, table, HandleTable.from_json(table.to_json())

    def test_only_own_tables_and_root_open_files(self, tmp_path, run_python):
        (tmp_path / "secret.ex").write_text("let secret = 1\n")
        out = run_python(f"""
            import sys
            from whence.handles import HandleTable, Recorder, SourceRange
            recorder = Recorder()
            handle = recorder.issue(SourceRange({str(tmp_path / "secret.ex")!r}, 1), "")
            own = recorder.stop()
            loaded = HandleTable.from_json(own.to_json())
            opened = []
            sys.addaudithook(
                lambda event, args: opened.append(args[0]) if event == "open" else None
            )
            print("secret = 1" in loaded.explain(handle), opened)
            print("secret = 1" in loaded.explain(handle, root={str(tmp_path)!r}))
            print("secret = 1" in own.explain(handle))
            print("secret = 1" in loaded.explain(handle))  # in linecache since then
        """)
        assert out == "False []\nTrue\nTrue\nTrue\n"

    @pytest.mark.parametrize("name", ["../secret.ex", "link.ex", "a\0b", "folder", ""])
    def test_root_is_not_left(self, tmp_path, name):
        (tmp_path / "secret.ex").write_text("let secret = 1\n")
        root = tmp_path / "root"
        (root / "folder").mkdir(parents=True)
        (root / "link.ex").symlink_to(tmp_path / "secret.ex")
        handle, _, loaded = self.loaded(name)
        assert "secret" not in loaded.explain(handle, root=root).replace(name, "")

    def test_relative_names_are_below_root(self, tmp_path):
        (tmp_path / "lib").mkdir()
        (tmp_path / "lib" / "m.ex").write_bytes(b"let \xff = 1\r\n")
        handle, _, loaded = self.loaded("lib/m.ex")
        assert "    let \ufffd = 1\n" in loaded.explain(handle, root=tmp_path)


class TestJson:
    def test_300_random_tables_survive(self, seed):
        for number in range(300):
            table = random_table(random.Random(f"{seed}:{number}"))
            again = HandleTable.from_json(table.to_json())
            assert again == table, f"--seed {seed}, table {number}"

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (lambda d: d.clear(), "the JSON is no table of handles: give what"),
            (lambda d: d.update(whence_handles=2), "the JSON is of version 2, this"),
            (lambda d: d.update(parts=3), "the JSON is no table of handles: TypeError"),
            (
                lambda d: d.update(parts=d["parts"] * 2),
                "the JSON has a namespace twice",
            ),
            (
                lambda d: d["parts"][0].pop("top"),
                "the JSON is no table of handles: Key",
            ),
            (lambda d: d["parts"][0].update(top=3), ".*top must be a str, not 3"),
            (lambda d: d["parts"][0].update(namespace=3), ".*: 3 is no namespace"),
            (
                lambda d: d["parts"][0]["records"][0].__setitem__(0, -1),
                ".*-1 is no hand",
            ),
            (
                lambda d: d["parts"][0]["records"][0].__setitem__(1, 7),
                ".*7 is no place",
            ),
            (
                lambda d: d["parts"][0]["records"][0].__setitem__(1, -1),
                ".*-1 is no pla",
            ),
            (lambda d: d["parts"][0]["records"][0].__setitem__(2, 3), ".*TypeError"),
            (lambda d: d["parts"][0]["records"][0].append("fused"), ".*ValueError"),
            (
                lambda d: d["parts"][0]["records"][0].extend(["melted", []]),
                ".*ValueError",
            ),
            (
                lambda d: d["parts"][0]["records"][0].extend(["fused", [-3]]),
                ".*ValueError",
            ),
            (lambda d: d["parts"][0]["ranges"][0].__setitem__(1, 0), ".*line must be"),
            (
                lambda d: d["parts"][0]["calls"].append(["f", None, None, None, 0]),
                ".*0 is no place in a list of 0",
            ),
        ],
    )
    def test_every_bad_text_is_one_clear_line(self, change, message):
        document = json.loads(table_of("a").to_json())
        change(document)
        with pytest.raises(HandleTableError, match=f"^{message}") as error:
            HandleTable.from_json(json.dumps(document))
        assert "\n" not in str(error.value)

    @pytest.mark.parametrize(
        "namespace",
        [
            "",
            "ab",
            "ab" * 17,
            "AB" * 16,
            "ab " * 16,
            "ab\n" * 16,
            "ab" * 16 + "\n",
            " " + "ab" * 16,
            "5f 05" + "ab" * 14,
            "0x" + "ab" * 15,
            "ag" * 16,
            "\u0661\u0662" * 16,  # digits, but of another script
            None,
            ["ab" * 16],
        ],
    )
    def test_a_namespace_has_one_spelling(self, namespace):
        document = json.loads(table_of("a").to_json())
        document["parts"][0]["namespace"] = namespace
        with pytest.raises(HandleTableError) as error:
            HandleTable.from_json(json.dumps(document))
        assert str(error.value) == (
            f"the JSON is no table of handles: ValueError: {namespace!r} "
            "is no namespace: it has 32 digits out of 0-9 and a-f"
        )

    def test_a_long_namespace_is_shown_in_part(self):
        document = json.loads(table_of("a").to_json())
        document["parts"][0]["namespace"] = "ab" * 10**6
        with pytest.raises(HandleTableError, match="is no namespace") as error:
            HandleTable.from_json(json.dumps(document))
        assert len(str(error.value)) < 300

    def test_what_is_no_json_is_one_clear_line(self):
        for text in ("", "{", "[" * 100_000, "3"):
            with pytest.raises(HandleTableError, match=r"the (text is no )?JSON"):
                HandleTable.from_json(text)


class TestGeneratedCode:
    def test_a_line_map_names_the_source_in_stacks(self):
        recorder = Recorder(top="Model")
        stack = InlinedCall("f", SourceRange("m.ex", 4))
        handle = recorder.issue(SourceRange("m.ex", 7, 2), "div", stack)
        table = recorder.stop()
        namespace = {"capture": whence.capture}
        source = "def kernel():\n    return capture()\n"
        exec(compile(source, "<kernel of handles>", "exec"), namespace)
        table.line_map("<kernel of handles>", {1: -1, 2: handle})
        frames = namespace["kernel"]().frames
        whence.generated.unregister("<kernel of handles>")
        found = [(f.name, f.filename, f.line, f.kind) for f in frames[1:3]]
        assert found == [
            ("f", "m.ex", 7, "generated"),
            ("Model", "m.ex", 4, "generated"),
        ]

    @pytest.mark.parametrize("lines", [[1], [(1, 0)], 3, None, "x"])
    def test_lines_are_a_mapping(self, lines):
        message = "lines must map lines to handles, as a dict does, not "
        with pytest.raises(TypeError, match=f"^{message}{type(lines).__name__}$"):
            table_of("a").line_map("<none of handles>", lines)

    def test_an_unknown_handle_registers_nothing(self):
        with pytest.raises(KeyError):
            table_of("a").line_map("<none of handles>", {1: 10**17})
        with pytest.raises(ValueError, match="no line map is registered"):
            whence.generated.unregister("<none of handles>")


def test_repr_tells_what_it_is():
    one, other = table_of("a"), table_of("b", "c")
    assert repr(one) == f"<HandleTable, 1 handle, namespace {one.namespace}>"
    assert (
        repr(HandleTable.merge(one, other))
        == "<HandleTable, 3 handles of 2 namespaces>"
    )
