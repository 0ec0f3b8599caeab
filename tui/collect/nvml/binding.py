"""The official binding of NVML, imported once, and what several files need of it."""

import warnings
from typing import TypeAlias

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # the deprecated package of the same name warns at import
    import pynvml

Handle: TypeAlias = pynvml.c_nvmlDevice_t

LOST = (pynvml.NVML_ERROR_GPU_IS_LOST, pynvml.NVML_ERROR_RESET_REQUIRED)
MAX_DETAIL = 200
"""Characters kept of the library's own words."""

__all__ = ["LOST", "MAX_DETAIL", "Handle", "pynvml"]
