"""The language of content triggers: text to syntax."""
