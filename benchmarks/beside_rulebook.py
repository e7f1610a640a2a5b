"""Observations that match a rule and do nothing, in ansible-rulebook: the same contents, from a source in its process.

ANSIBLE_RULEBOOK names the program (from PyPI, with Java 17 and the collection ansible.eda). Without it, that is said.
Nothing is stored there: what it had taken is lost with its process.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

SECONDS_MAX = 300
WARM = 2_000
"""Events before those that are measured: Java compiles what runs often."""
SOURCE = f"""
import json, resource, time

def cpu():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime

async def say(queue, targets, status):
    for target in targets:
        await queue.put({{"target": target, "status": status, "signal": "bench"}})

async def main(queue, args):
    targets = [f"custom/app{{n}}" for n in range(args["targets"])]
    await say(queue, targets[:{WARM}], "Healthy")
    began, before = time.perf_counter(), cpu()
    for number in range(args["rounds"]):
        await say(queue, targets, "Healthy" if number % 2 else "Unhealthy")
    figures = {{"seconds": time.perf_counter() - began, "cpu": cpu() - before}}
    with open(args["to"], "w") as out:
        json.dump(figures, out)
    await queue.put({{"last": True}})
"""
RULEBOOK = """
- name: bench
  hosts: all
  sources: [{{observations: {{targets: {targets}, rounds: {rounds}, to: "{to}"}}}}]
  rules:
  - {{name: observed, condition: event.status is defined, action: {{none: {{}}}}}}
  - {{name: last, condition: event.last is defined, action: {{shutdown: {{delay: 0, kind: now}}}}}}
"""


def in_ansible_rulebook(targets: int, rounds: int) -> dict[str, float | str]:
    """Give how many a second it takes of so many targets in so many rounds, and the CPU of each; or why not."""
    program = shutil.which(os.environ.get("ANSIBLE_RULEBOOK", ""))
    if program is None:
        return {"skipped": "ANSIBLE_RULEBOOK names no program"}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "observations.py").write_text(SOURCE, "utf-8")
        (folder / "inventory.yaml").write_text("all: {hosts: {localhost: {}}}", "utf-8")
        book = RULEBOOK.format(targets=targets, rounds=rounds, to=folder / "figures.json")
        (folder / "rulebook.yaml").write_text(book, "utf-8")
        path = f"{Path(program).parent}{os.pathsep}{os.environ['PATH']}"  # it looks for ansible-galaxy there
        done = subprocess.run(
            [program, "-r", "rulebook.yaml", "-i", "inventory.yaml", "-S", "."], cwd=folder, timeout=SECONDS_MAX,
            env=os.environ | {"PATH": path}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
        )  # fmt: skip
        if not (found := folder / "figures.json").exists():
            return {"skipped": f"ansible-rulebook ended with {done.returncode}: {done.stdout[-300:]}"}
        figures = json.loads(found.read_text("utf-8"))
    count = targets * rounds
    return {
        "per_second": round(count / figures["seconds"], 1),
        "cpu_us": round(figures["cpu"] / count * 1e6, 1),
    }
