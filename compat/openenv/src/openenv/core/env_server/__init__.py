"""What environments are written with, and their servers."""

from openenv._names import lazy
from openenv.core.env_server import types
from openenv.core.env_server.route_config import GetEndpointConfig
from openenv.core.env_server.types import *
from ors.openenv import environment, exceptions, mcp_types, serialization, transforms
from ors.openenv.environment import *
from ors.openenv.exceptions import *
from ors.openenv.mcp_environment import MCPEnvironment
from ors.openenv.mcp_types import *
from ors.openenv.serialization import *
from ors.openenv.transforms import *

_SERVER = ["HTTPEnvServer", "create_app", "create_fastapi_app"]

# the names of the server are not in __all__, so that importing all names starts none
__all__ = sorted(
    {
        "GetEndpointConfig",
        "MCPEnvironment",
        *types.__all__,
        *environment.__all__,
        *exceptions.__all__,
        *mcp_types.__all__,
        *serialization.__all__,
        *transforms.__all__,
    }
)
__getattr__, __dir__ = lazy(__name__, "ors.openenv", _SERVER, ["WebInterfaceManager", "create_web_interface_app"])
