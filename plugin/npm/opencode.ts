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
  const summaries = new Map<string, string>() // that clew wrote, until opencode has them
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
        if (told?.messages) output.messages.splice(0, Infinity, ...chosen(output.messages, told.messages))
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
        if (!told?.text) return
        summaries.set(sessionID, told.text)
        skipped.add(sessionID)
        output.prompt = DONE
      }),
    "experimental.text.complete": async ({ sessionID, messageID }: any, output: any) =>
      safely(async () => {
        const summary = summaries.get(sessionID)
        if (!summary) return
        const { data } = await client.session.message({ path: { id: sessionID, messageID } })
        if (data && data.info.summary !== true) return
        summaries.delete(sessionID)
        output.text = summary
      }),
  }
}

// Asks a clew of its own, which runs as long as this program, one JSON object a line. Whatever goes wrong there,
// the answer is undefined, and the program goes on as it would without clew. Nor does it wait while clew starts, as long
// as what is asked is so small that nothing would be changed: clew hears of it all the same.

import { spawn, type ChildProcess } from "node:child_process"

const COMMAND: string[] = ["uvx", "clew"] // clew install writes here how clew is started
const PATIENCE = 20_000 // milliseconds for one answer
const SPARED = ["view", "result"] // what need not be answered where it is small
const STARTS = 3 // times that clew is started again after it ended by itself

type Told = Record<string, any>

class Clew {
  private child: ChildProcess | undefined
  private waiting = new Map<number, (told: Told | undefined) => void>()
  private number = 0
  private starts = 0
  private rest = ""
  private isUp = false // it has answered
  private plain: Promise<boolean> = Promise.resolve(false) // whether nobody wants what is small changed
  private tell: (plain: boolean) => void = () => {}

  constructor(
    private readonly client: string,
    private readonly folder: string,
    private readonly warn: (text: string) => void,
  ) {
    this.running() // it takes a moment: by the first question it is there
  }

  /** What clew answers. Throws only where clew is set to refuse secrets and found one. */
  async ask(act: string, asked: Told): Promise<Told | undefined> {
    const child = this.running()
    if (!child?.stdin) return undefined
    const id = ++this.number
    const line = JSON.stringify({ id, act, ...asked }) + "\n"
    const late = setTimeout(() => this.settle(id, undefined, "clew did not answer in time"), PATIENCE)
    const answer = new Promise<Told | undefined>((resolve) => {
      this.waiting.set(id, (told) => {
        clearTimeout(late)
        if (told?.failed && typeof told.failed === "string") this.warn(`clew: ${told.failed}`)
        resolve(told)
      })
    })
    child.stdin.write(line)
    // A token has at least one byte: this is far below the window.
    const isSmall = SPARED.includes(act) && Buffer.byteLength(line) <= (asked.window ?? 0)
    if (isSmall && !this.isUp && (await this.plain) && !this.isUp) {
      late.unref() // the program may end before clew has begun
      return undefined
    }
    const told = await answer
    if (told?.refused) throw new Error(`clew: ${told.refused}`)
    return told
  }

  close(): void {
    this.child?.stdin?.end()
    this.child = undefined
  }

  private settle(id: number, told: Told | undefined, why = ""): void {
    const resolve = this.waiting.get(id)
    this.waiting.delete(id)
    if (resolve && why) this.warn(why)
    resolve?.(told)
  }

  private running(): ChildProcess | undefined {
    if (this.child) return this.child
    if (this.starts >= STARTS) return undefined
    this.starts += 1
    this.isUp = false
    this.plain = new Promise((resolve) => (this.tell = resolve))
    const [command, ...rest] = COMMAND
    const child = spawn(command, [...rest, "plugin", this.client], {
      cwd: this.folder,
      stdio: ["pipe", "pipe", "ignore"],
      windowsHide: true,
    })
    const ended = (why: string) => {
      if (this.child !== child) return
      this.child = undefined
      this.rest = ""
      this.tell(false)
      this.warn(`clew ended (${why}); going on without it`)
      for (const id of [...this.waiting.keys()]) this.settle(id, undefined)
    }
    child.on("error", (error) => ended(error.message))
    child.on("exit", (code) => ended(`exit code ${code}`))
    child.stdin.on("error", () => {}) // it ended: exit says so
    child.stdout.setEncoding("utf8")
    child.stdout.on("data", (text: string) => {
      const lines = (this.rest + text).split("\n")
      this.rest = lines.pop() ?? ""
      for (const line of lines) {
        try {
          const told = JSON.parse(line)
          this.tell(told.plain === true) // the first line says so
          if (told.id === undefined) continue
          this.isUp = true
          this.settle(told.id, told)
        } catch {
          // Not a line of ours.
        }
      }
    })
    // The program may end while clew waits for more.
    child.unref()
    for (const pipe of [child.stdin, child.stdout]) (pipe as any).unref?.()
    return (this.child = child)
  }
}

/** The messages that clew chose: places of own ones, and new ones. */
function chosen<Message>(own: Message[], view: (number | Message)[]): Message[] {
  return view.map((one) => (typeof one === "number" ? own[one] : one))
}
