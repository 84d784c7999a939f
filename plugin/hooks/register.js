// Claude Code keeps its own session file; here it is decided with which messages a session goes on that is compacted.
// On any doubt the client compacts as it does by itself.

const COMMAND = ["uvx", "clew"] // clew install writes here how clew is started
const PATIENCE = 9_000 // milliseconds for one answer: the client gives a mod ten seconds
const GOES_ON = "[clew: older messages were compacted here, at your client's request; go on where you were]"
const UNDO = /^\s*(clew\s+)?undo\s*$/i

/** What clew answers; undefined: nothing that could be used. */
const ask = async ($, act, asked) => {
  try {
    const [session, model, folder, usage] = await Promise.all([
      $.session.id(),
      $.session.model(),
      $.session.cwd(),
      $.session.usage().catch(() => undefined),
    ])
    const context = usage?.context ?? {}
    const line = { id: 1, act, session, folder, model: String(model?.id ?? model ?? ""), window: context.window, ...asked }
    if (asked.agentId) Object.assign(line, { session: `${session}-${asked.agentId}`, parent: session })
    const ran = await $.process.run([...COMMAND, "plugin", "claude"], {
      stdin: JSON.stringify(line) + "\n",
      cwd: folder,
      timeoutMs: PATIENCE,
    })
    const told = JSON.parse(ran.stdout.trim().split("\n").at(-1) || "{}")
    if (told.failed || told.refused) $.ui.log(`clew: ${told.failed ?? told.refused}`)
    return told.id === 1 && !told.failed && !told.refused ? { ...told, used: context.tokens } : undefined
  } catch (error) {
    $.ui.log(`clew: ${error?.message ?? error}`, { to: "debug" })
    return undefined
  }
}

const short = (tokens) => (tokens < 10_000 ? `${tokens}` : `${Math.round(tokens / 1_000)}k`)

/**
 * Own messages by their places, and new ones; undefined where that is not all that it should be.
 *
 * All are handed back as new ones, without the handles by which the client would know its own: with those come thoughts, which
 * are bound to what stood before them, and parents by which a resumed session would have its whole history again. What the
 * client attached to them it attaches anew. An answer that is under way would have to begin with its thoughts: so a line of
 * the user's side ends it.
 */
const chosen = (own, view) => {
  const rows = view.map((one) => {
    const { handle, ...row } = typeof one === "number" ? own[one] ?? {} : one
    return row
  })
  if (!rows.length || !rows.every((row) => row.role === "user" || row.role === "assistant")) return undefined
  if (rows.at(-1).toolResults?.length && !rows.at(-1).text) rows.push({ role: "user", text: GOES_ON, toolUses: [] })
  return rows
}

export const register = (on) => {
  on("session.compact", async ($, e, next) => {
    const asked = { messages: e.messages, agentId: e.agentId, focus: e.instructions }
    if (e.trigger === "manual" && UNDO.test(e.instructions ?? "")) {
      const told = await ask($, "undo", asked)
      const rows = told?.messages && chosen(e.messages, told.messages)
      if (!rows) return { skip: "clew has nothing to undo here" }
      $.ui.log(`clew: the compaction is undone, ${short(told.before)} -> ${short(told.after)} tokens`)
      return { messages: rows, tokensBefore: told.before, tokensAfter: told.after }
    }
    if (e.trigger === "precompute") {
      // What its own model writes ahead comes from next() at the time: with clew's part in it there would be two of them.
      const told = await ask($, "compact", { agentId: e.agentId, ahead: true })
      return told?.skip ? { skip: told.skip } : next(e)
    }
    const told = await ask($, "compact", asked)
    if (told?.own) {
      const made = await next(e)
      if (!made?.messages?.length) return made
      const own = new Map(e.messages.map((row, place) => [row.handle ?? place, place]))
      const at = made.messages.findIndex((row) => row.text && !own.has(row.handle))
      const kept = made.messages.map((row) => own.get(row.handle)).filter((place) => place !== undefined)
      const beside = await ask($, "beside", { ...asked, kept, words: made.messages[at]?.text ?? "" })
      if (!beside?.text) return made
      const part = { role: "user", text: beside.text, toolUses: [] }
      return { ...made, messages: chosen(e.messages, made.messages.toSpliced(at + 1, 0, part)) ?? made.messages }
    }
    const rows = told?.messages && chosen(e.messages, told.messages)
    if (!rows) return next(e)
    const beside = Math.max(0, (told.used ?? told.before) - told.before) // system prompt and tools
    const [before, after] = [told.before + beside, told.after + beside]
    $.ui.log(`clew: ${short(before)} -> ${short(after)} tokens, nothing lost, no model asked; /compact undo takes it back`)
    return { messages: rows, tokensBefore: before, tokensAfter: after }
  }).catch(($, e, next) => next(e))
}
