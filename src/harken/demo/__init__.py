"""`harken demo`: Harken at work, told as a story.

`lake` is the main job: a million items in the lake, a stream of changes, a rule and a monitor.
`language` is the inventory of the AMOS papers on a database in memory: no Java, no Spark.
"""

from __future__ import annotations

from harken.demo import lake, language

STORIES = {"lake": lake.play, "language": language.play}
