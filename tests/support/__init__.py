"""What several tests need: real processes, a stand-in NVML library, waiting with a deadline."""
