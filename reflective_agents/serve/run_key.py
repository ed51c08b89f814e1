"""The ids of responses and their items: each names the run that it is of, since nothing else is stored of them."""

import base64
from typing import NamedTuple
from uuid import UUID

from reflective_agents.serve.refusals import Refused


class RunKey(NamedTuple):
    """A run on a thread."""

    thread_id: str
    run_id: str

    def id(self, kind: str) -> str:
        """Return the id of what is of this run, such as `resp_...`."""
        code = UUID(self.thread_id).bytes + UUID(self.run_id).bytes
        return f"{kind}_{base64.urlsafe_b64encode(code).decode().rstrip('=')}"

    @classmethod
    def of(cls, key: str, kind: str, param: str | None = None) -> "RunKey":
        """Return the run that an id names.

        Args:
            key: The id.
            kind: What it has to be of.
            param: Where the request names it.

        Raises:
            Refused: if this server did not give the id.
        """
        try:
            code = base64.b64decode(key.removeprefix(f"{kind}_") + "=", altchars=b"-_", validate=True)
            return cls(str(UUID(bytes=code[:16])), str(UUID(bytes=code[16:])))
        except ValueError:
            raise unknown_response(key, param) from None


def unknown_response(key: str, param: str | None = None) -> Refused:
    """Return the refusal of an id that names nothing here."""
    reason = "it was deleted, is another's, or is older than the release that keeps responses: send the conversation"
    return Refused(f"there is no {key!r}: {reason}", param, status=404, code="not_found")
