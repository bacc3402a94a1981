"""Every manifest against the published schemas, and every ddrun command in them against ddrun itself.

usage: manifests.py DDRUN DDRUN_RENDEZVOUS FILE ...   (needs kubernetes-validate, which brings PyYAML)
"""
import os
import subprocess
import sys

import kubernetes_validate
import yaml


def commands_in(value):
    if isinstance(value, dict):
        if isinstance(value.get("command"), list):
            yield value["command"]
        for part in value.values():
            yield from commands_in(part)
    elif isinstance(value, list):
        for part in value:
            yield from commands_in(part)


def check_command(programs, command):
    """A command with a wrong flag is refused before anything is started."""
    pod = dict(os.environ, JOB_COMPLETION_INDEX="1", HOSTNAME="train-1")
    extra = ["--print-config"] if command[0] == "ddrun" else ["--help"]
    endpoint = ["--rdzv-endpoint=train-0.train"] if command[0] == "ddrun" else []
    words = [programs[command[0]], *extra, *endpoint, *command[1:]]
    end = subprocess.run(words, env=pod, capture_output=True, text=True, timeout=20)
    if end.returncode != 0:
        sys.exit(f"{command}: {end.stderr}")


def main(ddrun, rendezvous, files):
    programs = {"ddrun": ddrun, "ddrun-rendezvous": rendezvous}
    commands = 0
    for path in files:
        with open(path, encoding="utf-8") as text:
            for resource in yaml.safe_load_all(text):
                kubernetes_validate.validate(resource, kubernetes_validate.latest_version(), strict=True)
                for command in commands_in(resource):
                    check_command(programs, command)
                    commands += 1
    print(f"{len(files)} manifests, {commands} commands")
    if commands == 0:
        sys.exit("no command was found")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
