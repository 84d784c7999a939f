// Starts clew's gateway where nobody did yet.

import { execFile } from "node:child_process"

const COMMAND: string[] = ["clew"] // clew install writes here how clew is started
const GATEWAY = "@url"
const GONE = "@gone"

/** What is wrong where clew cannot be run: nothing, as long as its gateway answers. */
const missing = (): Promise<string> =>
  fetch(`${GATEWAY}/livez`).then(
    (answer) => (answer.ok ? "" : GONE),
    () => GONE,
  )

/** What is wrong, if anything is, once the gateway runs. */
const started = (client: string): Promise<string> =>
  new Promise((resolve) => {
    const [command, ...rest] = COMMAND
    const child = execFile(command, [...rest, "hook", `${client}-gateway`], (error, said) =>
      resolve(error ? missing() : said),
    )
    child.stdin?.on("error", () => {})
    child.stdin?.end()
  })
