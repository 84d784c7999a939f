"""Archives of any size: one pure function per conversation, through processes."""

from clew.batch.acts import BatchAudit, BatchCompress, BatchScore, BatchSearch
from clew.batch.folder import BatchTotals
from clew.batch.running import Run, begin, finish

__all__ = ["BatchAudit", "BatchCompress", "BatchScore", "BatchSearch", "BatchTotals", "Run", "begin", "finish"]
