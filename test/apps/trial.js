import { readFileSync } from 'node:fs'
import path from 'node:path'
import { createOwner } from '../support/owner.js'
import { createClients } from './clients.js'
import { examineEnd } from './end.js'
import { findPlace } from './place.js'
import { aim, open } from './protocols.js'
import { createUpstream } from './upstream.js'
import { startDeck } from '../support/deck.js'
import { until } from '../support/until.js'

/** A second one of a program that goes elsewhere would do so at the very start, where the first one is quick, as under node:cluster. */
const workersOf = (/** @type {import('./programs.js').Program} */ { cannotBeReplaced }) => cannotBeReplaced ? 1 : 2

/** @typedef {Awaited<ReturnType<typeof begin>>} Trial */

/**
 * Runs a program on a deck of its own, as a user would, and does to it all that happens in a year.
 * @param {import('./programs.js').Program} program @param {string} folder where it is installed
 * @returns {Promise<Omit<import('./report.js').Row, 'name'>>}
 */
export async function tryOut (program, folder) {
  const trial = await begin(program, folder)
  try {
    await start(trial)
    await everyWorkerAnswers(trial)
    if (program.cannotBeReplaced) await failToRollOut(trial)
    else await goThroughAll(trial)
  } catch (/** @type {any} */ error) {
    trial.row.faults.push(error.message)
  } finally {
    await end(trial)
  }
  return trial.row
}

/** @param {Trial} trial */
async function goThroughAll (trial) {
  await rollOut(trial)
  await loseWorker(trial)
  await loseMaster(trial)
  await everyWorkerAnswers(trial)
}

/** @param {import('./programs.js').Program} program @param {string} folder */
async function begin (program, folder) {
  const upstream = await createUpstream()
  const place = await findPlace(folder, upstream.url)
  const mark = `GALLERY_STATE=${place.state}`
  const startedAt = performance.now()
  const deck = await launch(program, place).catch((error) => {
    upstream.close()
    throw error
  })
  /** @type {Omit<import('./report.js').Row, 'name'>} */
  const row = { faults: [] }
  return { program, workers: workersOf(program), place, upstream, mark, startedAt, deck, row, clients: /** @type {ReturnType<typeof createClients> | null} */ (null), killed: /** @type {number[]} */ ([]) }
}

/** As a user does. @param {import('./programs.js').Program} program @param {import('./place.js').Place} place */
async function launch (program, place) {
  const { entry, start = [], flags, args, env } = program
  const owner = createOwner()
  const options = {
    workers: workersOf(program),
    cwd: place.folder,
    flags: [...start, ...flags?.(place) ?? []],
    args: args?.(place) ?? [],
    env: { PORT: String(place.port), GALLERY_STATE: place.state, ...env?.(place) }
  }
  return await startDeck(owner, entry ? path.join(place.folder, entry) : null, options).catch(async (error) => {
    await owner.end()
    throw error
  })
}

/** @param {Trial} trial */
async function start (trial) {
  const { program: { asks }, place, row } = trial
  await untilReady(trial)
  row.readyMs = Math.round(performance.now() - trial.startedAt)
  await checkAddresses(trial, 'at the start')
  if (!asks) return
  const target = aim(asks, place)
  trial.clients = createClients((isFresh) => open(target, isFresh), target.expects)
}

/** @param {Trial} trial */
async function untilReady ({ deck, workers }) {
  await deck.untilStatus(({ readyWorkers, workers: rows }) => {
    if (rows.some((/** @type {any} */ { restarts, state }) => restarts > 0 || state === 'backoff')) throw new Error('does not start')
    return readyWorkers === workers
  }, `${workers} ready workers`).catch(async (error) => {
    const [exit] = await deck.history('type=worker.exited&limit=1')
    throw new Error(exit ? `${error.message}: ${exit.message}` : error.message, { cause: error })
  })
}

/** The program listens where it was told to, and nowhere else. @param {Trial} trial @param {string} when */
async function checkAddresses ({ program: { listens = ({ port }) => [String(port)] }, place, deck }, when) {
  const { app: { addresses } } = await deck.status()
  const [found, wanted] = [addresses.map(nameOf), listens(place)]
  if (!found.every((/** @type {string} */ name) => wanted.some((want) => fits(name, want))) || !wanted.every((want) => found.some((/** @type {string} */ name) => fits(name, want)))) {
    throw new Error(`${when} it listens on ${addresses.join(', ') || 'nothing'}, expected ${[...wanted].join(', ') || 'nothing'}`)
  }
}

/** @param {string} name @param {string} want with a / at its end: any path below that folder */
function fits (name, want) {
  return want.endsWith('/') ? name.startsWith(want) : name === want
}

/** @param {string} address @returns {string} its port, or its path */
function nameOf (address) {
  return /:(\d+)\/?$/.exec(address)?.[1] ?? address.replace(/^unix:/, '')
}

/** By the pids of the answers, the vitals or, where the program is asked nothing, by what it writes. @param {Trial} trial */
async function everyWorkerAnswers ({ program: { asks }, workers: wanted, deck, clients }) {
  const isHttp = (asks?.protocol ?? 'http').startsWith('http')
  const heard = clients?.pids ?? new Set()
  await until(async () => {
    const { workers } = await deck.status()
    for (const { pid, vitals } of workers) {
      if (vitals?.[isHttp ? 'requestsPerSecond' : 'openConnections'] > 0) heard.add(pid)
    }
    if (!clients) await hear(deck, heard)
    for (const pid of heard) heard.add(parentOf(pid))
    return workers.length === wanted && workers.every((/** @type {any} */ { pid }) => heard.has(pid))
  }, 'every worker to answer')
}

/** What answers may be a child of the worker. @param {number} pid @returns {number} 0: it has none, or has ended */
function parentOf (pid) {
  try {
    return Number(/^PPid:\s*(\d+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1])
  } catch {
    // ENOENT: it has ended.
    return 0
  }
}

/** @param {import('../support/deck.js').Deck} deck @param {Set<number>} heard */
async function hear (deck, heard) {
  const { body } = await deck.api('/logs?stream=stdout&lines=10')
  for (const { text } of body.items) heard.add(Number(/\bpid (\d+)/.exec(text)?.[1]))
}

/** @param {Trial} trial */
async function rollOut (trial) {
  const { deck, row } = trial
  for (const kind of /** @type {const} */ (['deploy', 'deploy', 'restart'])) {
    const { state, reason } = await deck.rollout(kind)
    if (state !== 'succeeded') row.faults.push(`${kind} ${state}: ${reason}`)
    await deck.until({ ready: trial.workers })
  }
  await countFailuresInRollouts(trial)
}

/** @param {Trial} trial */
async function countFailuresInRollouts (trial) {
  const failures = await failuresUntilNow(trial)
  trial.row.failedInRollouts = failures.length
  blame(trial, 'in rollouts', failures)
  await checkAddresses(trial, 'after rollouts')
}

/** The old workers stay, and nobody notices. @param {Trial} trial */
async function failToRollOut (trial) {
  const { deck, row } = trial
  const pids = async () => (await deck.status()).workers.map((/** @type {any} */ { pid }) => pid).join()
  const before = await pids()
  const { state, reason } = await deck.rollout('restart')
  await deck.until({ ready: trial.workers })
  if (state !== 'failed' || !reason) row.faults.push(`a restart ${state}, expected it to fail with a reason`)
  if (await pids() !== before) row.faults.push('its workers are others')
  await countFailuresInRollouts(trial)
}

/** @param {Trial} trial */
async function loseWorker (trial) {
  const { deck, row } = trial
  const { workers: [{ pid }] } = await deck.status()
  const killedAt = performance.now()
  process.kill(pid, 'SIGKILL')
  trial.killed.push(pid)
  await deck.untilEvent((event) => event.type === 'worker.exited' && event.pid === pid, `worker ${pid} to be gone`)
  const goneAt = performance.now()
  await deck.until({ ready: trial.workers })
  const { lost, others } = divide(await failuresUntilNow(trial), killedAt, goneAt)
  row.lostWithWorker = lost.length
  blame(trial, 'though the killed worker did not have them', others)
}

/**
 * What a process has accepted nobody else can answer: what it was asked before it was killed and, on connections that it
 * had, one request each before their clients could know.
 * @param {import('./clients.js').Failure[]} failures @param {number} killedAt @param {number} goneAt
 */
function divide (failures, killedAt, goneAt) {
  const clients = new Set()
  /** @type {Record<'lost' | 'others', import('./clients.js').Failure[]>} */
  const parts = { lost: [], others: [] }
  for (const failure of failures) {
    const couldBeThere = failure.endedAt >= killedAt && failure.startedAt <= (failure.isFresh ? killedAt : goneAt) && !clients.has(failure.client)
    if (couldBeThere) clients.add(failure.client)
    parts[couldBeThere ? 'lost' : 'others'].push(failure)
  }
  return parts
}

/** @param {Trial} trial */
async function loseMaster (trial) {
  const { deck, row } = trial
  await deck.loseMaster()
  await deck.until({ ready: trial.workers })
  const failures = await failuresUntilNow(trial)
  row.failedWithMaster = failures.length
  blame(trial, 'as the master died', failures)
}

/** @param {Trial} trial */
async function failuresUntilNow (trial) {
  await trial.clients?.settle()
  return takeFaults(trial)
}

/** @param {Trial} trial @returns {import('./clients.js').Failure[]} those of all failures that are a fault */
function takeFaults ({ clients, program, row }) {
  const failures = clients?.takeFailures() ?? []
  if (!program.keptMayFail) return failures
  const faults = failures.filter(({ isFresh }) => isFresh)
  row.failedOnKept = (row.failedOnKept ?? 0) + failures.length - faults.length
  return faults
}

/** @param {Trial} trial @param {string} when @param {import('./clients.js').Failure[]} failures */
function blame ({ row }, when, failures) {
  if (failures.length === 0) return
  const counts = new Map()
  for (const { isFresh, reason } of failures) {
    const what = `${reason} (${isFresh ? 'new' : 'kept'} connection)`
    counts.set(what, (counts.get(what) ?? 0) + 1)
  }
  row.faults.push(`${failures.length} failed ${when}: ${[...counts].map(([what, count]) => `${count} × ${what}`).join(', ')}`)
}

/** @param {Trial} trial */
async function end (trial) {
  const { deck, row, clients, upstream } = trial
  await clients?.stop()
  if (clients) {
    row.requests = clients.count()
    blame(trial, 'at the end', takeFaults(trial))
  }
  const startedAt = performance.now()
  const exit = await deck.stop()
  row.stopMs = Math.round(performance.now() - startedAt)
  if (exit.code !== 0) row.faults.push(`the deck ended with ${exit.signal ?? `code ${exit.code}`}`)
  row.faults.push(...examineEnd(trial))
  upstream.close()
}
