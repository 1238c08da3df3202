"""A model that runs on this machine: fetches or takes a GGUF file and serves it on loopback when it is needed."""

__version__ = "0.1.0"
