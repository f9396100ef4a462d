"""What starts and stops environments."""

from openenv._names import lazy

__all__ = [
    "ContainerProvider",
    "DockerSwarmProvider",
    "KubernetesProvider",
    "LocalDockerProvider",
    "LocalProcessProvider",
    "RuntimeProvider",
    "UVProvider",
]
__getattr__, __dir__ = lazy(__name__, "ors.openenv", __all__)
