"""Plain values → text, HTML, JSON and CI formats. Renderers compute nothing."""
