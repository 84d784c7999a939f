// pi's session file keeps every entry; here it is decided which messages a request has.

import { compact, convertToLlm, type ExtensionAPI, type ExtensionContext } from "@earendil-works/pi-coding-agent"
import { Type } from "typebox"

const RESERVE = 16_384 // tokens that pi keeps free unless its settings say otherwise

export default function (pi: ExtensionAPI) {
  const warned = new Set<string>()
  let ui: ExtensionContext["ui"] | undefined
  const warn = (text: string) => {
    if (warned.has(text)) return
    warned.add(text)
    if (ui) ui.notify(text, "warning")
    else console.error(text)
  }
  let clew: Clew | undefined

  const started = (context: ExtensionContext): Clew => {
    ui = context.hasUI ? context.ui : undefined
    return (clew ??= new Clew("pi", context.cwd, warn))
  }

  const about = (context: ExtensionContext): Told => ({
    session: context.sessionManager.getSessionId(),
    model: context.model?.id ?? "",
    window: Math.max(0, (context.model?.contextWindow ?? 0) - RESERVE),
    system: context.getSystemPrompt(),
    folder: context.cwd,
  })

  const declared = () => {
    const active = new Set(pi.getActiveTools())
    return pi
      .getAllTools()
      .filter((tool) => active.has(tool.name))
      .map(({ name, description, parameters }) => ({ name, description, schema: parameters }))
  }

  /** What must never be the end of a session, but for secrets that clew was told to refuse. */
  const safely = async <Result>(work: () => Promise<Result | undefined>): Promise<Result | undefined> => {
    try {
      return await work()
    } catch (error) {
      if (String((error as Error)?.message).startsWith("clew: ")) throw error
      warn(`clew: ${error}`)
      return undefined
    }
  }

  // As pi sends them; one that it does not send is an empty one, so that places stay what they are.
  const sent = (messages: any[]) => messages.map((message) => convertToLlm([message])[0] ?? {})

  pi.on("session_start", async (_event, context) => {
    started(context)
  })

  pi.on("context", (event, context) =>
    safely(async () => {
      const asked = { ...about(context), tools: declared(), messages: sent(event.messages) }
      const told = await started(context).ask("view", asked)
      const messages = chosen(event.messages, told?.messages)
      return messages && { messages }
    }),
  )

  pi.on("tool_result", (event, context) =>
    safely(async () => {
      if (event.toolName === "recall" || event.toolName === "search_history") return undefined
      const text = event.content.map((part) => (part.type === "text" ? part.text : "")).join("\n")
      const asked = { ...about(context), tool: event.toolName, call: event.toolCallId, given: event.input, text }
      const told = await started(context).ask("result", asked)
      if (!told?.text) return undefined
      return { content: [{ type: "text", text: told.text }, ...event.content.filter((part) => part.type !== "text")] }
    }),
  )

  pi.on("session_before_compact", (event, context) =>
    safely(async () => {
      const { messagesToSummarize, turnPrefixMessages, firstKeptEntryId, tokensBefore } = event.preparation
      const messages = sent([...messagesToSummarize, ...turnPrefixMessages])
      const asked = { ...about(context), tools: declared(), messages, focus: event.customInstructions }
      const told = await started(context).ask("summary", asked)
      if (told?.text) return { compaction: { summary: told.text, firstKeptEntryId, tokensBefore } }
      const { model, modelRegistry } = context
      const auth = told?.own && model ? await modelRegistry.getApiKeyAndHeaders(model) : undefined
      if (!model || !auth?.ok) return undefined
      // What pi does itself, so that clew's part can stand behind it.
      const { apiKey, baseUrl, env, headers } = auth as Told
      const asks = baseUrl ? { ...model, baseUrl } : model
      const { customInstructions: focus, preparation, signal } = event
      const level = pi.getThinkingLevel()
      const made = await compact(preparation, asks, apiKey, headers, focus, signal, level, undefined, env)
      const whole = await started(context).ask("summary", { ...asked, words: made.summary })
      return { compaction: whole?.text ? { ...made, summary: whole.text } : made }
    }),
  )

  const offer = (name: string, label: string, description: string, parameters: any) =>
    pi.registerTool({
      name,
      label,
      description,
      parameters,
      async execute(_id, given, _signal, _update, context) {
        const told = await started(context).ask("tool", { ...about(context), name, given })
        const text = told?.text ?? "clew cannot be asked now"
        return { content: [{ type: "text", text }], details: {} }
      },
    })

  offer("recall", "Recall", "@recall", Type.Object({
    id: Type.String(),
    lines: Type.Optional(Type.String()),
    pattern: Type.Optional(Type.String()),
  }))
  offer("search_history", "Search history", "@search_history", Type.Object({ query: Type.String() }))

  pi.on("session_shutdown", async () => {
    clew?.close()
    clew = undefined
  })
}
