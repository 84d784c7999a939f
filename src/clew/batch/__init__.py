"""Archives of any size: one pure function per conversation, through processes."""

from clew.batch.acts import BatchCompress, BatchSearch
from clew.batch.folder import BatchTotals
from clew.batch.running import Run, begin, finish

__all__ = ["BatchCompress", "BatchSearch", "BatchTotals", "Run", "begin", "finish"]
