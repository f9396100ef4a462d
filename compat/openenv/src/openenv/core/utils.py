"""Small things that environments and programs use."""

from ors.openenv.utils import convert_to_ws_url, hf_space_subdomain, run_async_safely

__all__ = ["convert_to_ws_url", "hf_space_subdomain", "run_async_safely"]
