"""The plugins that ship with the framework; each uses only what a third-party plugin can use."""
