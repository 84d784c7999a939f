"""What the compactions of other agents kept, lost, and made them look up again; read from their session files."""

from clew.audit.compactions import CompactionAudit, KindCount, audited
from clew.audit.kinds import FACT_KINDS, FactKind
from clew.audit.lookups import LOOKUP_KINDS, LookupKind
from clew.audit.reading import read_files, session_files, usual_folders
from clew.audit.report import AuditReport, AuditTotals, FileAudit

__all__ = [
    "FACT_KINDS",
    "LOOKUP_KINDS",
    "AuditReport",
    "AuditTotals",
    "CompactionAudit",
    "FactKind",
    "FileAudit",
    "KindCount",
    "LookupKind",
    "audited",
    "read_files",
    "session_files",
    "usual_folders",
]
