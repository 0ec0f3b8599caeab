"""Runs inside the LLaMA-Factory environment: presses a button of a running WebUI, as a browser would.

``press_webui.py PORT train MODEL NAME`` starts a training and stays, as an open page does; killing it
closes the page. ``press_webui.py PORT abort`` presses the abort button.
"""

import sys
from typing import Any

from gradio_client import Client

LANGUAGE, MODEL_NAME, MODEL_PATH, TEMPLATE, DATASET, EPOCHS, COMPUTE_TYPE = 0, 1, 2, 7, 12, 14, 17
SAVE_STEPS, OUTPUT_FROM_END = 24, 4


def defaults(client: Any) -> list[Any]:
    """What stands in every field of the training page."""
    components = {component["id"]: component for component in client.config["components"]}
    button = next(item for item in client.config["dependencies"] if item["api_name"] == "run_train")
    return [components[number]["props"].get("value") for number in button["inputs"]]


def main() -> None:
    port, deed, *rest = sys.argv[1:]
    client = Client(f"http://127.0.0.1:{port}/", verbose=False)
    if deed == "abort":
        client.predict(api_name="/set_abort")
        return
    model, name = rest
    values = defaults(client)
    values[LANGUAGE], values[MODEL_NAME], values[MODEL_PATH] = "en", "Custom", model
    values[TEMPLATE], values[DATASET], values[EPOCHS] = "qwen3_nothink", ["sums"], "500"
    values[COMPUTE_TYPE], values[SAVE_STEPS] = "fp32", 5000
    values[-OUTPUT_FROM_END] = name
    for _ in client.submit(*values, api_name="/run_train"):
        sys.stdout.write(".")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
