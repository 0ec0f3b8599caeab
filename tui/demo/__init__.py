"""The demo: simulated cards, and a real supervised child that prints a LLaMA-Factory-shaped log.

Nothing of it lies among the user's jobs, and all of it ends with the demo, however that ends.
"""
