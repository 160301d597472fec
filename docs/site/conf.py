"""Sphinx's configuration of the reference site, whose source pages build.py writes."""
project = "Proa"
author = "the Proa authors"
extensions = ["myst_parser"]
html_theme = "furo"
html_title = "Proa"
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4
highlight_language = "text"
toc_object_entries = False
