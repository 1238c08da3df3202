"""The modes, as processes of their own with the scripted provider."""
