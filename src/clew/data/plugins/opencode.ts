// opencode's own store keeps every message; here it is decided which of them a request has.

const UNSEEN = 8_000 // tokens for a system prompt that was not seen yet
const LARGEST_ANSWER = 32_000 // tokens that opencode keeps free for an answer, unless the model has fewer
const DONE = "Answer with the one word: done" // what the model says is replaced by clew's summary

export const ClewPlugin = async ({ client, directory }: any) => {
  const warned = new Set<string>()
  const warn = (message: string) => {
    if (warned.has(message)) return
    warned.add(message)
    void client.app.log({ body: { service: "clew", level: "warn", message } }).catch(() => {})
  }
  const clew = new Clew("opencode", directory, warn)
  const systems = new Map<string, string>() // of each session, as last sent
  const tools = new Map<string, Told>()
  const models = new Map<string, { model: string; window: number }>() // of each session
  const parents = new Map<string, string>()
  const summaries = new Map<string, string>() // that clew wrote, until opencode has them; "": its model writes
  const skipped = new Set<string>() // sessions whose next messages are for a summary that clew wrote

  /** The tokens that a request may have before opencode compacts by itself. */
  const room = async (provider: string, id: string): Promise<number> => {
    const { data } = await client.config.providers()
    const limit = data?.providers?.find((one: any) => one.id === provider)?.models?.[id]?.limit
    if (!limit?.context) return 0
    const answer = Math.min(limit.output || LARGEST_ANSWER, LARGEST_ANSWER)
    return limit.input ? limit.input - Math.min(20_000, answer) : limit.context - answer
  }

  const learned = async (session: string, messages: any[]) => {
    const last = messages.findLast((message) => message.info.role === "user")?.info.model
    if (!last) return
    const known = models.get(session)
    if (known?.model === last.modelID) return
    models.set(session, { model: last.modelID, window: await room(last.providerID, last.modelID) })
    const { data } = await client.session.get({ path: { id: session } })
    if (data?.parentID) parents.set(session, data.parentID)
  }

  const about = (session: string): Told => {
    const { model, window } = models.get(session) ?? { model: "", window: 0 }
    const system = systems.get(session)
    return {
      session,
      model,
      parent: parents.get(session),
      window: Math.max(0, window && window - (system === undefined ? Math.min(UNSEEN, window >> 2) : 0)),
      system,
      folder: directory,
    }
  }

  /** What must never be the end of a session, but for secrets that clew was told to refuse. */
  const safely = async (work: () => Promise<void>) => {
    try {
      await work()
    } catch (error) {
      if (String((error as Error)?.message).startsWith("clew: ")) throw error
      warn(`clew: ${error}`)
    }
  }

  return {
    dispose: async () => clew.close(),
    "tool.definition": async ({ toolID }: any, { description, jsonSchema }: any) => {
      tools.set(toolID, { name: toolID, description, schema: jsonSchema })
    },
    "experimental.chat.system.transform": async ({ sessionID }: any, { system }: any) => {
      if (sessionID && !summaries.has(sessionID)) systems.set(sessionID, system.join("\n"))
    },
    "experimental.chat.messages.transform": async (_: any, output: any) =>
      safely(async () => {
        const session = output.messages[0]?.info.sessionID
        if (!session) return
        if (skipped.delete(session)) {
          // Nobody need read them, but the newest answer may be in none of the views so far.
          const told = await clew.ask("summary", { ...about(session), tools: [...tools.values()], messages: output.messages })
          if (told?.text) summaries.set(session, told.text)
          return void output.messages.splice(0)
        }
        await learned(session, output.messages)
        const told = await clew.ask("view", { ...about(session), tools: [...tools.values()], messages: output.messages })
        const messages = chosen<any>(output.messages, told?.messages)
        if (messages) output.messages.splice(0, Infinity, ...messages)
      }),
    "tool.execute.after": async ({ tool, sessionID, callID, args }: any, output: any) =>
      safely(async () => {
        if (typeof output?.output !== "string" || tool.startsWith("clew_")) return
        const asked = { ...about(sessionID), tool, call: callID, given: args, text: output.output }
        const told = await clew.ask("result", asked)
        if (told?.text) output.output = told.text
      }),
    "experimental.session.compacting": async ({ sessionID }: any, output: any) =>
      safely(async () => {
        const told = await clew.ask("summary", about(sessionID))
        if (told?.text || told?.own) summaries.set(sessionID, told.text ?? "")
        if (!told?.text) return
        skipped.add(sessionID)
        output.prompt = DONE
      }),
    "experimental.text.complete": async ({ sessionID, messageID }: any, output: any) =>
      safely(async () => {
        if (!summaries.has(sessionID)) return
        const { data } = await client.session.message({ path: { id: sessionID, messageID } })
        if (data ? data.info.summary !== true : !summaries.get(sessionID)) return
        const summary = summaries.get(sessionID)
        summaries.delete(sessionID)
        const told = summary ? undefined : await clew.ask("summary", { ...about(sessionID), words: output.text })
        output.text = summary || told?.text || output.text
      }),
  }
}
