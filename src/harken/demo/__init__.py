"""`harken demo`: Harken at work, told as a story.

`lake` is the main job: a million items in the lake, a stream of changes, a rule and a monitor.
It ends with `telling`: a continual query over a database and a page, and its messages.
`language` is the inventory of the AMOS papers on a database in memory: no Java, no Spark.
"""

from __future__ import annotations

from harken.demo import lake, language, telling

STORIES = {"lake": lake.play, "language": language.play, "telling": telling.play}
