"""``kdoctor fleet manifest``."""

import re
from pathlib import Path
from typing import Annotated

import typer

from kdoctor.cli.completion import beginning_with
from kdoctor.cli.deliver import wrote
from kdoctor.cli.options import option
from kdoctor.cli.stderr import show
from kdoctor.errors import UsageError, one_of
from kdoctor.output import write_atomically
from kdoctor_fleet.commands.common import program_words
from kdoctor_fleet.manifest import KINDS, Wanted, render_manifest

_DNS_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,50}[a-z0-9])?")
"""Names of jobs: 52 characters, so that those of their pods fit."""
_LABEL = re.compile(r"(?P<key>[A-Za-z0-9./_-]{1,317})=(?P<value>[A-Za-z0-9._-]{0,63})")


def manifest(
    check_options: Annotated[
        list[str] | None,
        typer.Argument(metavar="[-- CHECK OPTIONS]", help="Options of kdoctor check in the container."),
    ] = None,
    *,
    image: Annotated[str, option("Image with kdoctor and the job's environment.")],
    kind: Annotated[
        str,
        typer.Option(
            metavar="|".join(KINDS),
            help="What to print.",
            autocompletion=lambda incomplete: beginning_with(incomplete, KINDS),
        ),
    ] = "job",
    nodes: Annotated[int, typer.Option(min=1, help="How many nodes a job or cronjob checks.")] = 1,
    gpus: Annotated[int, typer.Option(min=0, help="GPUs to request on each node.")] = 8,
    resource: Annotated[str, typer.Option(help="The resource that a GPU is.")] = "nvidia.com/gpu",
    selector: Annotated[list[str] | None, option("Label of the nodes (repeatable).", metavar="KEY=VALUE")] = None,
    name: Annotated[str, typer.Option(help="Name of the object, and value of its label.")] = "kdoctor",
    namespace: Annotated[str | None, option("Namespace of the object.")] = None,
    program: Annotated[
        str, typer.Option("--kdoctor", metavar="COMMAND", help="How kdoctor is started in the container.")
    ] = "kdoctor",
    schedule: Annotated[str, typer.Option(metavar="CRON", help="When a cronjob runs.")] = "0 6 * * *",
    every: Annotated[int, typer.Option(min=60, help="Seconds between the checks of a daemonset.")] = 3600,
    node_timeout: Annotated[int, typer.Option(min=60, help="Time limit for each node, in seconds.")] = 1800,
    runtime_class: Annotated[str | None, option("Runtime class of a daemonset, such as nvidia.")] = None,
    output: Annotated[Path | None, option("Write to FILE.", "--output", "-o", metavar="FILE")] = None,
) -> None:
    """Print a manifest of Kubernetes that checks nodes. Nothing is applied."""
    for flag, value in (("--name", name), ("--namespace", namespace)):
        if value is not None and _DNS_LABEL.fullmatch(value) is None:
            raise UsageError(f"{flag} {value}: expected lower case letters, digits and hyphens, at most 52")
    labels = [_LABEL.fullmatch(item) for item in selector or ()]
    for item, found in zip(selector or (), labels, strict=True):
        if found is None:
            raise UsageError(f"--selector {item}: expected KEY=VALUE", hint="Example: --selector pool=gpu")
    if not image or image.isspace() or any(not character.isprintable() for character in image):
        raise UsageError(f"--image {image!r}: not the name of an image")
    text = render_manifest(
        Wanted(
            kind=one_of("--kind", kind, KINDS),
            image=image,
            options=tuple(check_options or ()),
            program=program_words(program),
            name=name,
            namespace=namespace,
            nodes=nodes,
            gpus=gpus,
            resource=resource,
            selector={found["key"]: found["value"] for found in labels if found},
            schedule=schedule,
            every_s=every,
            limit_s=node_timeout,
            runtime_class=runtime_class,
        )
    )
    if output:
        write_atomically(output, text)
        wrote(output)
    else:
        show(text)
