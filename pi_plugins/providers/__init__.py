"""Providers: one plugin per wire protocol, and what they share.

A provider turns a context into a request (``_*_request``) and the events of the answer into stream events
(``_*_decode``). What is the same for every protocol lives in the modules named after it: transport and retries
(``_http``, ``_transport``), framing (``_sse``), the course of a response (``_stream``), histories (``_history``),
failures (``_errors``), tokens and prices (``_tokens``, ``_usage``), thinking levels (``_thinking``).
"""
