"""How to start a container with the driver."""

from kdoctor.commands.shell import quoted
from kdoctor.facts import Host, Unavailable


def with_runtime(host: Host | Unavailable) -> str:
    """Docker's command with the NVIDIA runtime, for this container's image if it is known."""
    image = quoted((host.image if isinstance(host, Host) else None) or "<image>")
    return f"docker run --gpus all -e NVIDIA_DRIVER_CAPABILITIES=compute,utility {image} '<command>'"
