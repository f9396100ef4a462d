"""Runs an evaluation with inspect on an environment: `with_inspect.py URL ENVIRONMENT SPLIT LIMIT LOGS`.

The last line it prints is the outcome as JSON.
"""

from __future__ import annotations

import json
import sys

from inspect_ai import Task, eval
from inspect_openreward import openreward_dataset, openreward_scorer, openreward_solver
from openreward import OpenReward

if __name__ == "__main__":
    url, name, split, limit, logs = sys.argv[1:]
    client = OpenReward()
    environment = client.environments.get(name)
    task = Task(
        dataset=openreward_dataset(environment, split, limit=int(limit)),
        solver=openreward_solver(environment),
        scorer=openreward_scorer(),
    )
    (log,) = eval(task, model="openai-api/scripted/model", log_dir=logs, display="none", max_samples=4)
    samples = [
        {
            "id": sample.id,
            "error": sample.error.message if sample.error else None,
            "score": next(iter(sample.scores.values())).value if sample.scores else None,
            "finished": next(iter(sample.scores.values())).metadata["finished"] if sample.scores else None,
        }
        for sample in log.samples or []
    ]
    metrics = {name: metric.value for name, metric in log.results.scores[0].metrics.items()} if log.results else {}
    client.close()
    print(json.dumps({"status": log.status, "samples": samples, "metrics": metrics}))
