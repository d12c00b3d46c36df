# SPDX-License-Identifier: Apache-2.0
# The public names, once: for type checkers, and for __init__.py, which loads each when
# it is first used.
from neon8 import errors as errors
from neon8.calibrate.observation import Observation as Observation
from neon8.compile.compiler import compile_model as compile_model
from neon8.data.preprocess import Preprocess as Preprocess
from neon8.evaluate.evaluate import evaluate_model as evaluate_model
from neon8.evaluate.metrics import Evaluation as Evaluation
from neon8.formats.conversion import convert_table as convert_table
from neon8.inspection.describe import inspect_file as inspect_file
from neon8.ir.graph import Graph as Graph
from neon8.pipeline import calibrate_model as calibrate_model
from neon8.pipeline import load_graph as load_graph
from neon8.pipeline import load_observation as load_observation
from neon8.pipeline import load_table as load_table
from neon8.pipeline import merge_observations as merge_observations
from neon8.pipeline import observe_model as observe_model
from neon8.pipeline import save_model as save_model
from neon8.pipeline import save_observation as save_observation
from neon8.pipeline import save_table as save_table
from neon8.pipeline import solve_observation as solve_observation
from neon8.quant.scale_table import LayerScale as LayerScale
from neon8.quant.scale_table import ScaleTable as ScaleTable
from neon8.quant.scale_table import TensorScale as TensorScale
from neon8.refine.diagnosis import Diagnosis as Diagnosis
from neon8.refine.diagnosis import diagnose_model as diagnose_model
from neon8.report.facts import Report as Report
from neon8.report.gather import report_model as report_model
from neon8.runtime import Model as Model
from neon8.runtime import Session as Session
from neon8.runtime import ThreadPool as ThreadPool
from neon8.runtime.cut import CutModel as CutModel
from neon8.runtime.cut import CutSession as CutSession
from neon8.runtime.emulate import EmulatedModel as EmulatedModel
from neon8.settings.reader import load_settings as load_settings
from neon8.settings.stages import Settings as Settings
from neon8.version import __version__ as __version__
