"""The only place that knows LLaMA-Factory: environment, config, command, processes, log, output."""
