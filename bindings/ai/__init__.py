"""The AI binding: the client of the inference daemon, and its protocol."""

from belem.bindings.ai.binding import AIBinding, RunAnswer
from belem.bindings.ai.client import InferenceClient
from belem.bindings.ai.errors import AIError
from belem.bindings.ai.rest import RestAnswer, rest_run

__all__ = ["AIBinding", "AIError", "InferenceClient", "RestAnswer", "RunAnswer", "rest_run"]
