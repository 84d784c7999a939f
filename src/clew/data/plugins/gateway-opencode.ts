// clew's gateway runs before opencode asks it anything: it is started here where nobody did yet.

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

export const ClewGateway = async ({ client }: any) => {
  const [command, ...rest] = COMMAND
  const why = await new Promise<string>((resolve) => {
    const started = execFile(command, [...rest, "hook", "opencode-gateway"], (error, said) =>
      resolve(error ? missing() : said),
    )
    started.stdin?.on("error", () => {})
    started.stdin?.end()
  })
  if (why) {
    console.error(why)
    setTimeout(() => client.tui.showToast({ body: { message: why, variant: "error" } }).catch(() => {}), 1_000)
  }
  return {}
}
