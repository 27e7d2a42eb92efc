// Programs that have something of a client in a worker's memory: what of it is lost in deploys, in a restart, with a
// worker and with the master.
//   node test/long-lived/gallery.ts [mcp-everything hocuspocus …] [--how shared,sticky,by] [--workers 2] [--flag=…]
import { setTimeout as wait } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { install } from '../apps/installation.ts'
import { findPlace } from '../apps/place.ts'
import { toTable } from '../apps/report.ts'
import { errorText } from '../../server/errors.ts'
import { startDeck, type Deck } from '../support/deck.ts'
import { createOwner } from '../support/owner.ts'
import { present } from '../support/present.ts'
import { countBy } from './count-by.ts'
import { PROGRAMS, type Joining, type Session } from './programs.ts'

const { values, positionals } = parseArgs({ allowPositionals: true,
  options: { how: { type: 'string', default: 'shared,sticky,by' }, workers: { type: 'string', default: '2' },
    flag: { type: 'string', multiple: true, default: [] } } })
const WORKERS = Number(values.workers)
const CLIENTS = 8
const ASKS_EVERY_MS = 200
/** Long enough for each client to meet what has changed. */
const SETTLE_MS = 3000
const STEPS = ['start', 'deploys', 'restart', 'worker', 'master', 'stop']

type Program = typeof PROGRAMS[0]
type Fact = { step: string, kind: 'asked' | 'failed' | 'lost', reason: string }

const rows: (string | number)[][] = []
for (const program of PROGRAMS.filter(({ name }) => positionals.length === 0 || positionals.includes(name))) {
  for (const how of values.how.split(',').filter((each) => each !== 'by' || program.stickyBy.length > 0)) {
    const facts = await tryOut(program, how).catch((
      error
    ) => [{ step: 'start', kind: 'failed' as const, reason: error.message }])
    rows.push([program.name, how, ...STEPS.map((step) => describe(facts.filter((fact) => fact.step === step)))])
    process.stderr.write(`${rows.at(-1)?.join(' | ')}\n${reasons(facts)}`)
  }
}
console.log(`${CLIENTS} clients and ${WORKERS} workers; answers / that failed / sessions that were lost\n`)
console.log(
  toTable(['program', 'dispatch', 'start', 'two deploys', 'restart', 'a worker killed', 'the master killed', 'stop'],
    rows)
)
process.exit()

async function tryOut (program: Program, how: string): Promise<Fact[]> {
  const { folder } = await install(program)
  const place = await findPlace(folder, '')
  const dispatch = how === 'by' ? program.stickyBy : ['--dispatch', how]
  const owner = createOwner()
  const deck = await startDeck(owner, `${folder}/${program.entry}`, { workers: WORKERS, cwd: folder,
    flags: [...dispatch, ...values.flag], args: program.args?.(place) ?? [], env: { PORT: String(place.port) } })
  try {
    await deck.until({ ready: WORKERS })
    return await goThrough(program, deck, { port: place.port, folder })
  } finally {
    await owner.end()
  }
}

async function goThrough (program: Program, deck: Deck, where: { port: number, folder: string }) {
  const facts: Fact[] = []
  let step = 'start'
  const clients = Array.from({ length: CLIENTS },
    (_, number) => keepAsking(program, { ...where, number }, (kind, reason = '') => facts.push({ step, kind, reason })))
  await wait(SETTLE_MS)
  for (const [name, work] of Object.entries(stepsOf(deck))) {
    step = name
    await work()
    await wait(SETTLE_MS)
  }
  step = 'stop'
  for (const client of clients) client.beginNoMore()
  await deck.stop()
  await wait(SETTLE_MS)
  for (const client of clients) client.stop()
  return facts
}

function stepsOf (deck: Deck): Record<string, () => Promise<unknown>> {
  return { async deploys () {
    for (let n = 0; n < 2; n++) await deck.rollout('deploy')
  }, restart: () => deck.rollout('restart'), async worker () {
    const { workers } = await deck.status()
    const pid = present(workers.find(({ state }) => state === 'ready')?.pid)
    process.kill(pid, 'SIGKILL')
    await deck.untilEvent((event) => event.type === 'worker.exited' && event.pid === pid, 'its end')
    await deck.untilStatus(({ readyWorkers }) => readyWorkers === WORKERS, 'its successor')
  }, async master () {
    await deck.loseMaster()
    await deck.untilStatus(({ readyWorkers }) => readyWorkers === WORKERS, 'new workers')
  } }
}

function keepAsking (program: Program, who: Omit<Joining, 'onLost'>,
  tell: (kind: Fact['kind'], reason?: string) => void)
{
  let session: Session | null = null
  const over = new AbortController()
  let comesBack = true
  run()
  return {
    /** A session that is lost from now on is the last one. */
    beginNoMore () {
      comesBack = false
    },

    stop () {
      over.abort()
      session?.close()
    }
  }

  async function run () {
    while (!over.signal.aborted) {
      try {
        if (!session && !comesBack) return
        session ??= await begin()
        await session.ask()
        if (!over.signal.aborted) tell('asked')
      } catch (error) {
        if (!over.signal.aborted) tell('failed', errorText(error))
      }
      await wait(ASKS_EVERY_MS)
    }
  }

  async function begin () {
    let isLost = false
    const begun = await program.join({ ...who, onLost (reason) {
      if (over.signal.aborted || isLost) return
      isLost = true
      tell('lost', reason)
      session?.close()
      session = null
    } })
    return begun
  }
}

function describe (facts: Fact[]) {
  const { asked = 0, failed = 0, lost = 0 } = countBy(facts, ({ kind }) => kind)
  return `${asked} / ${failed} / ${lost}`
}

function reasons (facts: Fact[]) {
  const counts = countBy(facts.filter(({ kind }) => kind !== 'asked'),
    ({ step, kind, reason }) => `${step}, ${kind}: ${reason.slice(0, 100)}`)
  return Object.entries(counts).map(([what, count]) => `  ${count} × ${what}\n`).join('')
}
