// Asks a clew of its own, which runs as long as this program, one JSON object a line. Whatever goes wrong there,
// the answer is undefined, and the program goes on as it would without clew. Nor does it wait while clew starts, as long
// as what is asked is so small that nothing would be changed: clew hears of it all the same.

import { spawn, type ChildProcess } from "node:child_process"

const COMMAND: string[] = ["clew"] // clew install writes here how clew is started
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
    return told && typeof told.text !== "string" ? { ...told, text: undefined } : told
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

/** The messages that clew chose: places of own ones, and new ones; undefined where they are not all messages. */
function chosen<Message>(own: Message[], view: unknown): Message[] | undefined {
  const all: any[] = Array.isArray(view) ? view.map((one) => (typeof one === "number" ? own[one] : one)) : []
  return all.length && all.every((one) => (one?.info ?? one)?.role) ? all : undefined
}
