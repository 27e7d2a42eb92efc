import type { Entry, State } from './log-tail.ts'

/**
 * Follows the output of several hosts or apps, which have no stream together: it asks again and again for what came
 * since. The clocks of hosts differ, so it asks for a little more, and leaves out what it has had.
 */
/** `at`: when this host has answered, by its clock, in ms since the epoch */
type Answer = { items: Entry[], silent: string[], at: number }

const EVERY_MS = 3000
const OVERLAP_MS = 5000

export function createFleetTail ({ url, since, seen, onEntries, onState, ask = askJson, timers = globalThis }: {
  /** of the API, to which a parameter can be added */
  url: string,
  /** when the newest line was written that is shown */
  since: string,
  /** the lines that are shown, see `nameOf` */
  seen: string[],
  onEntries: (entries: (Entry | { note: string })[]) => void,
  onState: (state: State) => void,
  ask?: (url: string) => Promise<Answer>,
  timers?: Pick<typeof globalThis, 'setTimeout' | 'clearTimeout'>
}) {
  let known = new Set(seen)
  let silent = null as string[] | null
  let timer: ReturnType<typeof setTimeout> | undefined
  let turn = 0

  return { start () {
    if (timer === undefined) askAgain(++turn)
  }, stop () {
    turn++
    timers.clearTimeout(timer)
    timer = undefined
  } }

  /** `own`: the turn that asks: it ends as soon as there is a later one */
  async function askAgain (own: number) {
    timer = timers.setTimeout(() => askAgain(own), EVERY_MS)
    try {
      const answer = await ask(`${url}since=${new Date(Date.parse(since) - OVERLAP_MS).toISOString()}`)
      if (own !== turn) return
      takeAnswer(answer)
      onState('live')
    } catch {
      if (own === turn) onState('lost')
    }
  }

  function takeAnswer ({ items, silent: now, at }: Answer) {
    const fresh = items.filter((item) => !known.has(nameOf(item)))
    const missing = silent === null ? [] : now.filter((member) => !silent?.includes(member))
    silent = now
    if (items.length > 0) known = new Set(items.map(nameOf))
    // A host whose clock is ahead must not hide what the others write until then.
    const latest = new Date(at).toISOString()
    for (const { arrivedAt } of items)
      if (arrivedAt && arrivedAt > since)
        since = arrivedAt < latest ? arrivedAt : latest
    onEntries([...fresh, ...missing.map((member) => ({ note: `${member} does not answer, its lines are left out` }))])
  }
}

/** @returns the same as in the link of a line */
function nameOf ({ member, app, place }: Entry): string {
  return `${member ?? app}:${place}`
}

async function askJson (url: string): Promise<Answer> {
  const response = await fetch(url, { headers: { Accept: 'application/json' } })
  if (!response.ok) throw new Error(`the answer has the status ${response.status}`)
  const { items, hosts, apps = hosts } = await response.json() as { items: Entry[] } & Record<'hosts' | 'apps',
    { silent: string[] }>
  return { items, silent: apps.silent, at: Date.parse(String(response.headers.get('date'))) || Date.now() }
}
