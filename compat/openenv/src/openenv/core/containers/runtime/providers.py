"""What starts and stops environments in containers."""

from openenv._names import lazy

__all__ = [
    "ContainerProvider",
    "DockerSwarmProvider",
    "KubernetesProvider",
    "LocalDockerProvider",
    "RuntimeProvider",
]
__getattr__, __dir__ = lazy(__name__, "ors.openenv", __all__)
