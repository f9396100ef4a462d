"""OpenEnv: episodes over WebSockets and HTTP, tools by JSON-RPC."""

from ors.faces.openenv.face import OpenEnvFace
from ors.faces.openenv.sessions import FaceOptions

__all__ = ["FaceOptions", "OpenEnvFace"]
