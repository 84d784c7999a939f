// clew's gateway runs before opencode asks it anything: it is started here where nobody did yet.

import { execFile } from "node:child_process"

const COMMAND: string[] = ["clew"] // clew install writes here how clew is started

export const ClewGateway = async ({ client }: any) => {
  const [command, ...rest] = COMMAND
  const why = await new Promise<string>((resolve) => {
    const started = execFile(command, [...rest, "hook", "opencode-gateway"], (error, said) =>
      resolve(error ? `clew cannot be started (${error.message}): @gone` : said),
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
