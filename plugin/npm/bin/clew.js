#!/usr/bin/env node
// Runs clew as it is installed here, else as uv fetches it.
const { spawnSync } = require("node:child_process")
const words = process.argv.slice(2)
for (const [command, ...first] of [["clew"], ["uvx", "clew"]]) {
  const ran = spawnSync(command, [...first, ...words], { stdio: "inherit", shell: process.platform === "win32" })
  if (ran.error?.code === "ENOENT") continue
  process.exit(ran.status ?? 1)
}
console.error("clew: neither clew nor uvx is here; install uv first: https://docs.astral.sh/uv/")
process.exit(127)
