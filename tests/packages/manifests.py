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


# The fields of kinds that come with an add-on, for which no schema is published as a package: paths, with
# [] for the entries of a list. What they embed of Kubernetes itself is given to its own schemas.
ADD_ONS = {
    "JobSet": """metadata.name spec.network.enableDNSHostnames spec.network.publishNotReadyAddresses
        spec.network.subdomain spec.failurePolicy.maxRestarts spec.failurePolicy.rules[].name
        spec.failurePolicy.rules[].action spec.failurePolicy.rules[].onJobFailureReasons[]
        spec.replicatedJobs[].name spec.replicatedJobs[].replicas spec.replicatedJobs[].template""",
    "TrainJob": """metadata.name spec.runtimeRef.name spec.trainer.image spec.trainer.command[]
        spec.trainer.args[] spec.trainer.numNodes spec.trainer.numProcPerNode spec.trainer.env
        spec.trainer.resourcesPerNode""",
    "PyTorchJob": """metadata.name spec.runPolicy.cleanPodPolicy spec.runPolicy.backoffLimit
        spec.pytorchReplicaSpecs.Master.replicas spec.pytorchReplicaSpecs.Master.restartPolicy
        spec.pytorchReplicaSpecs.Master.template spec.pytorchReplicaSpecs.Worker.replicas
        spec.pytorchReplicaSpecs.Worker.restartPolicy spec.pytorchReplicaSpecs.Worker.template""",
}


def check_fields(value, path, known):
    if path in known:
        return
    if isinstance(value, dict):
        for key, part in value.items():
            check_fields(part, f"{path}.{key}" if path else key, known)
    elif isinstance(value, list):
        for part in value:
            check_fields(part, path + "[]", known)
    else:
        sys.exit(f"unknown field {path}")


def pod(spec):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "part"}, "spec": spec}


def kubernetes_parts(resource):
    spec = resource["spec"]
    if resource["kind"] == "JobSet":
        for job in spec["replicatedJobs"]:
            yield {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": job["name"]}, **job["template"]}
    elif resource["kind"] == "TrainJob":
        trainer = spec["trainer"]
        container = {"name": "node", "image": trainer["image"], "command": trainer["command"],
                     "env": trainer["env"], "resources": trainer["resourcesPerNode"]}
        yield pod({"containers": [container]})
    else:
        for replica in spec["pytorchReplicaSpecs"].values():
            yield pod(replica["template"]["spec"])


def check_resource(resource):
    parts = [resource]
    if resource["kind"] in ADD_ONS:
        fields = {key: value for key, value in resource.items() if key not in ("apiVersion", "kind")}
        check_fields(fields, "", ADD_ONS[resource["kind"]].split())
        parts = kubernetes_parts(resource)
    for part in parts:
        kubernetes_validate.validate(part, kubernetes_validate.latest_version(), strict=True)


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
                check_resource(resource)
                for command in commands_in(resource):
                    check_command(programs, command)
                    commands += 1
    print(f"{len(files)} manifests, {commands} commands")
    if commands == 0:
        sys.exit("no command was found")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
