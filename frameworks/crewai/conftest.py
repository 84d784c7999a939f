"""crewAI, kept from the network and from files of whoever runs the tests."""

import os
import tempfile

HOME = tempfile.mkdtemp(prefix="clew-crewai-")
os.environ |= {
    "CREWAI_DISABLE_TELEMETRY": "true",
    "CREWAI_DISABLE_TRACKING": "true",
    "CREWAI_TESTING": "true",
    "CREWAI_TRACING_ENABLED": "false",
    "OTEL_SDK_DISABLED": "true",
    "HOME": HOME,
    "XDG_DATA_HOME": HOME,
    "CREWAI_STORAGE_DIR": f"{HOME}/crewai",
}
