"""Archives of any size: one pure function per conversation, through processes."""

from clew.batch.acts import BatchCompress, BatchSearch
from clew.batch.folder import BatchTotals
from clew.batch.running import Run, begin, finish
from clew.core.lazy import gone

__all__ = ["BatchCompress", "BatchSearch", "BatchTotals", "Run", "begin", "finish"]

__getattr__ = gone(__name__, BatchScore="`BatchCompress` says what went; `clew audit` tells of session files")
