"""A receiver of OpenTelemetry's spans, on this machine."""

from aiohttp import web
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from reflective_agents.testing.serve import LocalServer


class Collector(LocalServer):
    """Receives spans by OTLP over HTTP."""

    def __init__(self) -> None:
        super().__init__()
        self.bodies: list[bytes] = []

    @property
    def spans(self) -> list[Span]:
        requests = [ExportTraceServiceRequest.FromString(body) for body in self.bodies]
        return [
            span
            for request in requests
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]

    @property
    def services(self) -> set[str]:
        """The names of the services that have sent spans."""
        requests = [ExportTraceServiceRequest.FromString(body) for body in self.bodies]
        attributes = [it for request in requests for sent in request.resource_spans for it in sent.resource.attributes]
        return {attribute.value.string_value for attribute in attributes if attribute.key == "service.name"}

    def routes(self) -> list[web.RouteDef]:
        return [web.post("/v1/traces", self._receive)]

    async def _receive(self, http: web.Request) -> web.Response:
        self.bodies.append(await http.read())
        return web.Response()
