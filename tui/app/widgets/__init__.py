"""The panels: each draws one thing from a scene, and paints only the lines that differ."""
