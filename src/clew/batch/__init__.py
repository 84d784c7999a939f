"""Archives of any size: one pure function per conversation, through processes here or through Ray on many machines."""

from clew.batch.acts import Audit, Compress, Score, Search
from clew.batch.folder import Totals
from clew.batch.running import Run, begin, finish

__all__ = ["Audit", "Compress", "Run", "Score", "Search", "Totals", "begin", "finish"]
