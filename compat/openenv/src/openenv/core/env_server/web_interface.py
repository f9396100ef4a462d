"""What is said of an environment. The web page itself is not there yet."""

from openenv._names import lazy
from ors.openenv.metadata import load_environment_metadata
from ors.openenv.models import EnvironmentMetadata

__all__ = ["EnvironmentMetadata", "load_environment_metadata"]
__getattr__, __dir__ = lazy(
    __name__,
    "ors.openenv",
    [],
    ["ActionLog", "EpisodeState", "WebInterfaceManager", "create_web_interface_app", "get_quick_start_markdown"],
)
