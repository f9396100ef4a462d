"""What a server can do beyond the text of the standard, as its `/version` says."""

from __future__ import annotations

import json
from dataclasses import dataclass

__all__ = ["Abilities"]


@dataclass(frozen=True, slots=True)
class Abilities:
    """client_call_ids: it takes the ids that clients give their calls. idempotent_create: a `/create` may be repeated.
    secrets_in_body: the place that the standard names; one server takes the header only and refuses the body.
    """

    client_call_ids: bool = False
    idempotent_create: bool = False
    secrets_in_body: bool = True

    @classmethod
    def read(cls, body: bytes) -> Abilities:
        """What the answer of `/version` says; of an answer that is none of ours, nothing."""
        try:
            said = json.loads(body)
        except ValueError:
            return cls()
        if not isinstance(said, dict) or "version" not in said:
            return cls()
        listed = said.get("capabilities")
        if not isinstance(listed, list):
            # openreward's server: it has the route, and reads secrets from the header alone
            return cls(secrets_in_body=False)
        return cls(client_call_ids="client_call_ids" in listed, idempotent_create="idempotent_create" in listed)
