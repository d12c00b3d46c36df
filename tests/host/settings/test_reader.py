# SPDX-License-Identifier: Apache-2.0
"""Settings are the same from options, keywords and a file, and wrong ones are named."""

import argparse
import inspect
import re
from pathlib import Path

import pytest

import neon8
from neon8.cli.main import main, make_parser
from neon8.errors import DataError, SettingsError
from neon8.settings.fields import settings_of
from neon8.settings.reader import add_options, from_options, load_settings, takes
from neon8.settings.stages import DEFAULTS, STAGES, Settings, SolveSettings
from refusals import refused

FUNCTIONS = {
    "calibrate": neon8.calibrate_model,
    "observe": neon8.observe_model,
    "solve": neon8.solve_observation,
    "compile": neon8.compile_model,
    "evaluate": neon8.evaluate_model,
    "diagnose": neon8.diagnose_model,
    "report": neon8.report_model,
    "convert": neon8.convert_table,
    "inspect": neon8.inspect_file,
    "package": neon8.package_model,
}
EVERY = [(stage, name) for stage in STAGES for name in settings_of(STAGES[stage])]


TWICE = ("run", "compile", "compare", "train", "package")
ONCE = [each for each in STAGES if each not in TWICE]
"""Stages of which no two have a field of one name."""


@takes(*ONCE)
def by_keywords(*, settings):
    return settings


def by_options(*words):
    parser = argparse.ArgumentParser(exit_on_error=False)
    add_options(parser, *ONCE)
    return from_options(parser.parse_args([*map(str, words)]))


def by_file(folder, text):
    (folder / "s.toml").write_text(text)
    return load_settings(folder / "s.toml")


@pytest.mark.parametrize(
    ("words", "keywords", "text"),
    [
        (["--limit", 3], {"limit": 3}, "[data]\nlimit = 3"),
        (["--plain"], {"plain": True}, "[solve]\nplain = true"),
        (["--method", "kl"], {"method": "kl"}, "[solve]\nmethod = 'kl'"),
        (["--bits", 9], {"bits": 9}, "[solve]\nbits = 9"),
        (["--until-stable", 1], {"until_stable": 0.01}, "[observe]\nuntil_stable=0.01"),
        (["--shard", "2/8"], {"shard": (2, 8)}, "[observe]\nshard = [2, 8]"),
        (
            ["--shape", "a=1,3", "--shape", "b=2"],
            {"shapes": {"a": [1, 3], "b": (2,)}},
            "[network.shapes]\na = [1, 3]\nb = [2]",
        ),
        (
            ["--precision", "int16:a:b", "--precision", "float:c"],
            {"precision": {"a:b": "int16", "c": "float"}},
            "[solve]\nprecision = {'a:b' = 'int16', c = 'float'}",
        ),
        (
            ["--override", "r.json", "--curve", "c", "--max-cost", 1],
            {"overrides": Path("r.json"), "curve": "c", "max_cost": 1},
            "[solve]\noverrides='r.json'\n[refine]\ncurve='c'\nmax_cost=1",
        ),
        (
            ["--target", "armv7", "--cpu", "max", "--from", "ncnn"],
            {"target": "armv7", "cpu": "max", "source_format": "ncnn"},
            "[target]\ntarget='armv7'\ncpu='max'\n[convert]\nsource_format='ncnn'",
        ),
    ],
)
def test_three_ways_to_one_object(tmp_path, words, keywords, text):
    found = by_keywords(**keywords)
    assert found != DEFAULTS
    assert by_options(*words) == by_file(tmp_path, text) == found


def test_lists_and_the_settings_of_compare(tmp_path):
    words = ["compare", "a.calib", "a.onnx", "--data", "x", "--override", "r.json"]
    words += ["--methods", "kl", "mse", "--schemes", "auto"]
    found = from_options(make_parser().parse_args(words)).compare
    text = "[compare]\nmethods = ['kl', 'mse']\nschemes = ['auto']\n"
    assert by_file(tmp_path, text + "overrides = 'r.json'").compare == found


def test_two_stages_with_one_name_are_refused():
    """Keywords could not say which of them is meant."""
    with pytest.raises(ValueError, match="solve, compile have one name"):
        takes("solve", "compile")


def test_options_win_over_the_file_and_keywords_over_the_object(tmp_path):
    (tmp_path / "s.toml").write_text("[solve]\nmethod = 'kl'\nbits = 9\n")
    wanted = SolveSettings(method="kl", bits=10)
    path = tmp_path / "s.toml"
    assert by_options("--settings", path, "--bits", 10).solve == wanted
    assert by_keywords(settings=load_settings(path), bits=10).solve == wanted
    path.write_text("[solve]\nplain = true\n")
    assert by_options("--settings", path).solve.plain
    assert not by_options("--settings", path, "--no-plain").solve.plain


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[solver]\nbits = 8", "[solver] is unknown; did you mean 'solve'"),
        ("solve = 3", "[solve] is no table of settings"),
        ("[solve]\nmethd = 'kl'", "[solve] methd is unknown; did you mean 'method'?"),
        ("[solve]\nmethod = 'kk'", "[solve] method: method 'kk' is unknown"),
        ("[solve]\nmethod = 3", "[solve] method: 3 is not a text"),
        ("[solve]\nscheme = 'autto'", "'autto' is unknown; did you mean 'auto'?"),
        ("[solve]\nbits = true", "bits: True is unknown; there are 7, 8, 9"),
        ("[solve]\nplain = 1", "[solve] plain: 1 is not True or False"),
        ("[data]\nlimit = 0", "limit: 0 is not a whole number of 1 or more"),
        ("[data]\nlimit = 1.0", "limit: 1.0 is not a whole number"),
        ("[data]\npreprocess = ''", "preprocess: is empty"),
        ("[data]\npreprocess = 3", "preprocess: 3 is not a path"),
        ("[refine]\ntarget_sqnr = nan", "nan is not a number of dB above 0 and up to"),
        ("[refine]\nmax_cost = 0.9", "max_cost: 0.9 is not a cost from 1 on"),
        ("[observe]\nuntil_stable = 2", "2 is not a percentage above 0 and up to 1"),
        ("[observe]\nshard = [3, 2]", "shard: there is no piece 3 of 2"),
        ("[observe]\nengine = 'x'", "'x' is not of the form dask://HOST:PORT"),
        ("[network]\nshapes = 3", "shapes: 3 is not a table"),
        ("[network.shapes]\na = 3", "shapes: 3 is not a list"),
        ("[solve.precision]\na = 'int8'", "precision: 'int8' is unknown"),
        ("[compare]\nmethods = 'kl'", "methods: 'kl' is not a list"),
        ("[solve]\nfast = true\nbits = 9", "fast needs activations of 7 or 8 bits"),
    ],
)
def test_what_is_wrong_in_a_file_is_named(tmp_path, text, said):
    with refused(SettingsError, f"{tmp_path / 's.toml'}: [", said):
        by_file(tmp_path, text)


def test_what_is_no_file_of_settings(tmp_path):
    with pytest.raises(DataError, match="is not TOML"):
        by_file(tmp_path, "[solve")
    with pytest.raises(DataError, match="cannot be read"):
        load_settings(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--limit", "0"], "argument --limit: 0 is not a whole number of 1 or more"),
        (["--limit", "x"], "argument --limit: 'x' is not a whole number of 1 or more"),
        (["--shape", "a"], "argument --shape: 'a' is not of the form NAME="),
        (["--shape", "a=1", "--shape", "a=2"], "--shape: 'a' is given two values"),
        (["--max-sqnr-loss", "3"], "--max-sqnr-loss means nothing without --fast"),
        (["--curve", "c"], "without --target-sqnr or --max-cost or --max-ms"),
        (["--settings", "no.toml"], "argument --settings: no.toml: cannot be read"),
    ],
)
def test_what_is_wrong_in_an_option_is_named(capsys, words, said):
    assert main(["calibrate", "a.onnx", "--data", "x.npz", "-o", "t", *words]) == 2
    assert said in capsys.readouterr().err


def test_what_is_wrong_in_a_keyword_is_named():
    with pytest.raises(TypeError, match=r"no argument 'limt'; did you mean 'limit'\?"):
        neon8.calibrate_model("a.onnx", [], limt=3)
    with pytest.raises(SettingsError, match="limit: 0 is not a whole number"):
        neon8.calibrate_model("a.onnx", [], limit=0)
    with pytest.raises(SettingsError, match="bits: 3 is unknown"):
        SolveSettings(bits=3)


@pytest.mark.parametrize("command", FUNCTIONS)
def test_help_signature_and_docstring_show_every_field(command, capsys):
    with pytest.raises(SystemExit):
        make_parser().parse_args([command, "--help"])
    shown = capsys.readouterr().out
    function = FUNCTIONS[command]
    keywords = inspect.signature(function).parameters
    said = " ".join(inspect.getdoc(function).split())
    stages = [stage for stage in STAGES if f"[{stage}]:" in shown]
    assert stages
    for stage in stages:
        for name, each in settings_of(STAGES[stage]).items():
            assert each.option in shown
            assert keywords[name].default == each.default
            assert f"{name}: {each.help}" in said


COMMANDS = next(a.choices for a in make_parser()._actions if a.dest == "command")
ACTIONS = [action for command in COMMANDS.values() for action in command._actions]


@pytest.mark.parametrize(("stage", "name"), EVERY)
def test_every_field_is_of_some_command(stage, name):
    option = settings_of(STAGES[stage])[name].option
    assert any(
        option in action.option_strings and action.dest == f"{stage}.{name}"
        for action in ACTIONS
    )


def test_a_repr_shows_what_was_chosen():
    assert repr(Settings()) == "Settings()"
    assert repr(by_keywords(skip=2)) == (
        "Settings(data=DataSettings(preprocess=None, limit=None, skip=2))"
    )


def test_the_file_of_the_page(tmp_path):
    page = Path(__file__).resolve().parents[3] / "docs" / "howto" / "settings.md"
    (text,) = re.findall(
        r"^```toml\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL
    )
    found = by_file(tmp_path, text)
    assert (found.solve.precision, found.data.limit) == ({"conv1": "int16"}, 200)
