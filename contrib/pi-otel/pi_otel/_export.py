"""A tracer provider of our own, which sends spans to a collector."""

from __future__ import annotations

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor


def provider_for(endpoint: str | None) -> TracerProvider:
    """Return a provider whose spans go to a collector over HTTP; what is left is sent when the process ends.

    :param endpoint: address without ``/v1/traces``; ``None`` takes it, like everything else, from the environment.
    """
    address = None if endpoint is None else f"{endpoint.rstrip('/')}/v1/traces"
    resource = Resource.create()
    if str(resource.attributes[SERVICE_NAME]).startswith("unknown_service"):
        resource = resource.merge(Resource({SERVICE_NAME: "pi"}))
    provider = TracerProvider(resource=resource)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=address)))
    return provider
