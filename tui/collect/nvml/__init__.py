"""NVML, the driver's own library, read through its official binding: the only importer of ``pynvml``.

Any call may hang in the kernel, so nothing but a helper process uses this package:
``collect/gpu_worker.py`` starts one for the program, ``jobs/sampler.py`` is one for a job.
"""

from tui.collect.nvml.session import NvmlSession

__all__ = ["NvmlSession"]
