"""What is said of an exception that author code raised."""

from __future__ import annotations

import traceback
from typing import Literal

from ors.core.secrets import mask

__all__ = ["ErrorDetail", "explain"]

ErrorDetail = Literal["none", "exception", "stacktrace"]

LIMIT = 60_000


def explain(exc: BaseException, detail: ErrorDetail, otherwise: str) -> str:
    """Words for an exception: nothing but `otherwise`, its type and message, or its whole traceback. Secrets masked."""
    if detail == "none":
        return otherwise
    try:
        if detail == "stacktrace":
            text = "".join(traceback.format_exception(exc)).rstrip()
        else:
            text = f"{type(exc).__name__}: {exc}" if str(exc) else type(exc).__name__
    except BaseException:  # the author's own __str__ raised
        text = f"{type(exc).__name__} (its message cannot be shown: it raised)"
    text = mask(text)
    if len(text) > LIMIT:
        half = LIMIT // 2
        text = f"{text[:half]}\n… ({len(text) - LIMIT} characters left out) …\n{text[-half:]}"
    return text.encode("utf-8", "backslashreplace").decode()
