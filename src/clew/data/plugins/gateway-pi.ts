// clew's gateway runs before pi asks it anything: it is started here where nobody did yet.

import { execFile } from "node:child_process"
import type { ExtensionAPI } from "@earendil-works/pi-coding-agent"

const COMMAND: string[] = ["clew"] // clew install writes here how clew is started
const GATEWAY = "@url"
const GONE = "@gone"

/** What is wrong where clew cannot be run: nothing, as long as its gateway answers. */
const missing = (): Promise<string> =>
  fetch(`${GATEWAY}/livez`).then(
    (answer) => (answer.ok ? "" : GONE),
    () => GONE,
  )

const started = (): Promise<string> => {
  const [command, ...rest] = COMMAND
  return new Promise((resolve) => {
    const child = execFile(command, [...rest, "hook", "pi-gateway"], (error, said) =>
      resolve(error ? missing() : said),
    )
    child.stdin?.on("error", () => {})
    child.stdin?.end()
  })
}

export default function (pi: ExtensionAPI) {
  pi.on("before_agent_start", async (_event, context) => {
    const why = await started()
    if (!why) return
    if (context.hasUI) context.ui.notify(why, "error")
    else console.error(why)
  })
}
