// clew's gateway runs before pi asks it anything.

import type { ExtensionAPI } from "@earendil-works/pi-coding-agent"

export default function (pi: ExtensionAPI) {
  pi.on("before_agent_start", async (_event, context) => {
    const why = await started("pi")
    if (!why) return
    if (context.hasUI) context.ui.notify(why, "error")
    else console.error(why)
  })
}
