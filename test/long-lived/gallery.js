// Programs that have something of a client in a worker's memory: what of it is lost in deploys, in a restart, with a worker and with the master.
//   node test/long-lived/gallery.js [mcp-everything hocuspocus …] [--how shared,sticky,by] [--workers 2] [--flag=…]
import { setTimeout as wait } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { install } from '../apps/installation.js'
import { findPlace } from '../apps/place.js'
import { toTable } from '../apps/report.js'
import { startDeck } from '../support/deck.js'
import { createOwner } from '../support/owner.js'
import { countBy } from './count-by.js'
import { PROGRAMS } from './programs.js'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { how: { type: 'string', default: 'shared,sticky,by' }, workers: { type: 'string', default: '2' }, flag: { type: 'string', multiple: true, default: [] } }
})
const WORKERS = Number(values.workers)
const CLIENTS = 8
const ASKS_EVERY_MS = 200
/** Long enough for each client to meet what has changed. */
const SETTLE_MS = 3000
const STEPS = ['start', 'deploys', 'restart', 'worker', 'master', 'stop']

/** @typedef {typeof PROGRAMS[0]} Program */
/** @typedef {{ step: string, kind: 'asked' | 'failed' | 'lost', reason: string }} Fact */

/** @type {(string | number)[][]} */
const rows = []
for (const program of PROGRAMS.filter(({ name }) => positionals.length === 0 || positionals.includes(name))) {
  for (const how of values.how.split(',').filter((each) => each !== 'by' || program.stickyBy.length > 0)) {
    const facts = await tryOut(program, how).catch((error) => [{ step: 'start', kind: /** @type {const} */ ('failed'), reason: error.message }])
    rows.push([program.name, how, ...STEPS.map((step) => describe(facts.filter((fact) => fact.step === step)))])
    process.stderr.write(`${rows.at(-1)?.join(' | ')}\n${reasons(facts)}`)
  }
}
console.log(`${CLIENTS} clients and ${WORKERS} workers; answers / that failed / sessions that were lost\n`)
console.log(toTable(['program', 'dispatch', 'start', 'two deploys', 'restart', 'a worker killed', 'the master killed', 'stop'], rows))
process.exit()

/** @param {Program} program @param {string} how @returns {Promise<Fact[]>} */
async function tryOut (program, how) {
  const { folder } = await install(program)
  const place = await findPlace(folder, '')
  const dispatch = how === 'by' ? program.stickyBy : ['--dispatch', how]
  const owner = createOwner()
  const deck = await startDeck(owner, `${folder}/${program.entry}`, {
    workers: WORKERS, cwd: folder, flags: [...dispatch, ...values.flag], args: program.args?.(place) ?? [], env: { PORT: String(place.port) }
  })
  try {
    await deck.until({ ready: WORKERS })
    return await goThrough(program, deck, { port: place.port, folder })
  } finally {
    await owner.end()
  }
}

/** @param {Program} program @param {import('../support/deck.js').Deck} deck @param {{ port: number, folder: string }} where */
async function goThrough (program, deck, where) {
  /** @type {Fact[]} */
  const facts = []
  let step = 'start'
  const clients = Array.from({ length: CLIENTS }, (_, number) => keepAsking(program, { ...where, number }, (kind, reason = '') => facts.push({ step, kind, reason })))
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

/** @param {import('../support/deck.js').Deck} deck @returns {Record<string, () => Promise<unknown>>} */
function stepsOf (deck) {
  return {
    async deploys () {
      for (let n = 0; n < 2; n++) await deck.rollout('deploy')
    },
    restart: () => deck.rollout('restart'),
    async worker () {
      const { workers } = await deck.status()
      const { pid } = workers.find((/** @type {any} */ { state }) => state === 'ready')
      process.kill(pid, 'SIGKILL')
      await deck.untilEvent((event) => event.type === 'worker.exited' && event.pid === pid, 'its end')
      await deck.untilStatus(({ readyWorkers }) => readyWorkers === WORKERS, 'its successor')
    },
    async master () {
      await deck.loseMaster()
      await deck.untilStatus(({ readyWorkers }) => readyWorkers === WORKERS, 'new workers')
    }
  }
}

/** @param {Program} program @param {Omit<import('./programs.js').Joining, 'onLost'>} who @param {(kind: Fact['kind'], reason?: string) => void} tell */
function keepAsking (program, who, tell) {
  /** @type {import('./programs.js').Session | null} */
  let session = null
  const over = new AbortController()
  let comesBack = true
  run()
  return {
    /** A session that is lost from now on is the last one. */
    beginNoMore () { comesBack = false },

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
      } catch (/** @type {any} */ error) {
        if (!over.signal.aborted) tell('failed', error.message)
      }
      await wait(ASKS_EVERY_MS)
    }
  }

  async function begin () {
    let isLost = false
    const begun = await program.join({
      ...who,
      onLost (reason) {
        if (over.signal.aborted || isLost) return
        isLost = true
        tell('lost', reason)
        session?.close()
        session = null
      }
    })
    return begun
  }
}

/** @param {Fact[]} facts */
function describe (facts) {
  const { asked = 0, failed = 0, lost = 0 } = countBy(facts, ({ kind }) => kind)
  return `${asked} / ${failed} / ${lost}`
}

/** @param {Fact[]} facts */
function reasons (facts) {
  const counts = countBy(facts.filter(({ kind }) => kind !== 'asked'), ({ step, kind, reason }) => `${step}, ${kind}: ${reason.slice(0, 100)}`)
  return Object.entries(counts).map(([what, count]) => `  ${count} × ${what}\n`).join('')
}
