"""clew hook: what coding agents run at their own events, as `clew install` has told them to."""
