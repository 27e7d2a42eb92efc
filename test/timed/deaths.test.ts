import assert from 'node:assert/strict'
import { once } from 'node:events'
import { rm, writeFile } from 'node:fs/promises'
import http from 'node:http'
import net from 'node:net'
import path from 'node:path'
import { after, test, type TestContext } from 'node:test'
import { errorReason } from '../../server/errors.ts'
import { above } from '../support/event-log.ts'
import { startDeck } from '../support/deck.ts'
import { startDeckHere, startReadyHere } from '../support/deck-here.ts'
import { tempFolder } from '../support/folder.ts'
import { hang } from '../support/hang.ts'
import { present } from '../support/present.ts'
import type { DeckEvent } from '../../server/events/stream.ts'
import type { DeckClient } from '../support/deck-client.ts'

/** The table of deaths: what the history and the crash record say of each, checked one by one. */
type Death = {
  name: string,
  cause: string,
  /** of the crash record; without one there must be none */
  kind?: string,
  code: number | null,
  signal: string | null,
  errorName?: string | null,
  /** function of the topmost frame in the app, or its file where it has none */
  top?: string,
  actor?: string | null
}

const told: string[] = []
after(() =>
  console.log(
    `table of deaths: ${told.length} right of ${told.length + wrong.length}${
      wrong.length > 0 ? `; wrong: ${wrong.join(', ')}` : ''
    }`
  )
)
const wrong: string[] = []

const BY_REQUEST: (Death & { path: string })[] = [{ name: 'throw in a timer', path: '/throw-in-timer', cause: 'crash',
  kind: 'exception', code: 1, signal: null, errorName: 'RangeError', top: 'throwsError' }, { name: 'throw in a request',
  path: '/throw-in-request', cause: 'crash', kind: 'exception', code: 1, signal: null, errorName: 'RangeError',
  top: 'throwsError' }, { name: 'string thrown', path: '/throw-string', cause: 'crash', kind: 'exception', code: 1,
  signal: null, errorName: 'string' }, { name: 'error with cause', path: '/throw-with-cause', cause: 'crash',
  kind: 'exception', code: 1, signal: null, errorName: 'Error', top: 'throwsWithCause' }, { name: 'rejection unhandled',
  path: '/reject', cause: 'crash', kind: 'unhandled-rejection', code: 1, signal: null, errorName: 'RangeError',
  top: '/reject' }, { name: 'process.exit(0)', path: '/exit-0', cause: 'crash', kind: 'exit-code', code: 0,
  signal: null }, { name: 'process.exit(42)', path: '/exit-42', cause: 'crash', kind: 'exit-code', code: 42,
  signal: null }, { name: 'process.abort()', path: '/abort', cause: 'crash', kind: 'signal', code: null,
  signal: 'SIGABRT' }, { name: 'SIGKILL', path: '/kill', cause: 'killed', kind: 'signal', code: null,
  signal: 'SIGKILL' }, { name: 'SIGSEGV', path: '/segv', cause: 'crash', kind: 'signal', code: null,
  signal: 'SIGSEGV' }, { name: 'SIGTERM from outside', path: '/term', cause: 'killed', kind: 'signal', code: null,
  signal: 'SIGTERM' }, { name: 'SIGINT from outside', path: '/int', cause: 'killed', kind: 'signal', code: null,
  signal: 'SIGINT' }, { name: 'heap out of memory', path: '/heap', cause: 'out-of-memory', kind: 'heap-out-of-memory',
  code: null, signal: 'SIGABRT' }]

test('the table of deaths: workers that serve, and those that can leave no note, as after they have dropped their privileges', async (t) => {
  const flags = ['--restart-min-delay-ms', '1', '--restart-max-delay-ms', '1', '--crash-grace-ms', '50', '--exec-argv',
    '--max-old-space-size=32']
  const deck = await startDeckHere(t, 'dies-on-request.cjs', { workers: 1, flags })
  let { id } = (await deck.until({ ready: 1 })).workers[0]
  for (const death of BY_REQUEST) {
    await ask(`${await deck.appUrl()}${death.path}`)
    await check(t, deck, death, id)
    id = Number((await deck.untilEvent('worker.ready', { worker: above(id) })).worker)
  }
  await t.test('its groups are as many as there are faults', async () => {
    const { body } = await deck.api('/crashes')
    assert.deepEqual(body.items.map(({ count }) => count), BY_REQUEST.map(() => 1))
  })
  await rm(path.join(deck.folder, 'crashes'), { recursive: true })
  for (const death of BY_REQUEST.filter(({ errorName }) => errorName)) {
    await ask(`${await deck.appUrl()}${death.path}`)
    await check(t, deck, { ...death, name: `${death.name}, without a note` }, id)
    id = Number((await deck.untilEvent('worker.ready', { worker: above(id) })).worker)
  }
})

// That an ES module could not be loaded is a rejected promise to Node.
const AT_BOOT: (Death & { app: string, source?: string, flags?: string[] })[] = [{ name: 'throw at load',
  app: 'throws-at-load.js', cause: 'boot-failure', kind: 'unhandled-rejection', code: 1, signal: null,
  errorName: 'TypeError', top: 'throws-at-load.js' }, { name: 'syntax error at load', app: 'broken.js',
  source: 'const broken = ;\n', cause: 'boot-failure', kind: 'exception', code: 1, signal: null,
  errorName: 'SyntaxError', top: 'broken.js' }, { name: 'exit before listening', app: 'exits-before-listening.js',
  cause: 'boot-failure', kind: 'exit-code', code: 3, signal: null }, { name: 'address in use',
  app: 'listens-on-a-taken-port.js', cause: 'boot-failure', kind: 'exception', code: 1, signal: null,
  errorName: 'Error' }, { name: 'never ready', app: 'never-listens.js',
  flags: ['--ready-timeout-ms', '300', '--ready-signal', 'listening'], cause: 'boot-failure', kind: 'boot-failure',
  code: 0, signal: null, actor: 'system' }]

for (const death of AT_BOOT) {
  test(`the table of deaths: ${death.name}`, async (t) => {
    const taken = net.createServer().listen(0)
    await once(taken, 'listening')
    t.after(() => taken.close())
    let app = death.app
    if (death.source) {
      app = path.join(tempFolder(), death.app)
      await writeFile(app, death.source)
    }
    const deck = await startDeckHere(t, app, { workers: 1, flags: death.flags,
      env: { TAKEN_PORT: String((taken.address() as net.AddressInfo).port) } })
    await check(t, deck, death, 1)
  })
}

const HANGS: [how: string, name: string, top: string][] = [['loop', 'endless loop', 'spinForever'], ['regex',
  'endless loop in a native regex', 'matchForever'], ['wait', 'deadlocked Atomics.wait', 'waitForever']]

test('the table of deaths: those who hang', async (t) => {
  const folder = tempFolder()
  const deck = await startDeckHere(t, 'hangs.js', { workers: HANGS.length, flags: ['--watchdog-timeout-ms', '2000'],
    env: { FOLDER: folder } })
  const { workers } = await deck.until({ ready: HANGS.length })
  const url = await deck.appUrl()
  const pids: number[] = []
  for (const [how] of HANGS) pids.push(await hang(url, folder, how))
  for (const [index, [, name, top]] of HANGS.entries()) {
    const { id: worker } = present(workers.find(({ pid }) => pid === pids[index]))
    await check(t, deck, { name, cause: 'hung', kind: 'hung', code: null, signal: 'SIGKILL', errorName: 'Unresponsive',
      top, actor: 'system' }, worker)
  }
})

test('the table of deaths: those who reach a limit, and one that an operator kills', async (t) => {
  const limits = ['--recycle-max-rss-bytes', String(110 * 1024 * 1024), '--recycle-max-requests', '20',
    '--drain-idle-grace-ms', '100']
  const deck = await startReadyHere(t, 'grows.js', { workers: 1, flags: limits })
  const url = await deck.appUrl()
  await deck.post('/workers/1/kill')
  await check(t, deck, { name: 'operator', cause: 'operator', kind: undefined, code: null, signal: 'SIGKILL',
    actor: 'the owner\'s token' }, 1)
  await deck.until({ ready: 1 })
  const recycled = { code: 0, signal: null, actor: 'system' }
  for (let n = 0; n < 20; n++) await ask(url)
  await check(t, deck, { name: 'max requests', cause: 'max-requests', ...recycled }, 2)
  await ask(`${url}/grow`)
  await check(t, deck, { name: 'memory limit', cause: 'memory-limit', ...recycled }, 3)
})

test('the table of deaths: one that has served long enough', async (t) => {
  const deck = await startDeckHere(t, 'answers-with-pid.js', { workers: 1, flags: ['--recycle-max-age-ms', '1000'] })
  await check(t, deck, { name: 'max age', cause: 'max-age', code: 0, signal: null, actor: 'system' }, 1)
})

test('the table of deaths: what the master means to end leaves no crash, nor does its own death', async (t) => {
  const deck = await startDeck(t, 'answers-with-pid.js', { workers: 1 })
  const [{ id }] = (await deck.until({ ready: 1 })).workers
  const planned = { code: 0, signal: null }
  await deck.rollout('deploy')
  await check(t, deck, { name: 'deploy', cause: 'deploy', actor: 'the owner\'s token', ...planned }, id)
  await deck.rollout('restart')
  await check(t, deck, { name: 'restart', cause: 'restart', actor: 'the owner\'s token', ...planned }, id + 1)
  await deck.put('/scale', { workers: 2 })
  await deck.until({ ready: 2 })
  await deck.put('/scale', { workers: 1 })
  await check(t, deck, { name: 'scale-down', cause: 'scale-down', actor: 'the owner\'s token', ...planned }, id + 3)
  const [orphan] = (await deck.until({ ready: 1 })).workers
  await deck.loseMaster()
  await check(t, deck, { name: 'master lost', cause: 'master-lost', actor: 'system', ...planned }, orphan.id)
  const [left] = (await deck.until({ ready: 1 })).workers
  await deck.stop()
  const next = await startDeckHere(t, 'answers-with-pid.js', { workers: 1, dataDir: deck.folder })
  await check(t, next, { name: 'shutdown', cause: 'shutdown', actor: 'signal', ...planned }, left.id)
})

function check (t: TestContext, deck: DeckClient, death: Death, worker: number) {
  return t.test(death.name, async () => {
    wrong.push(death.name)
    const [exit] = await exitsOf(deck, worker)
    const { name, cause, kind, code, signal, errorName = null, top, actor = null } = death
    assert.deepEqual({ cause: exit.cause, code: exit.code, signal: exit.signal, actor: exit.actor }, { cause, code,
      signal, actor })
    assert.match(String(exit.release), /^r\d$/)
    if (kind === undefined) assert.equal(exit.detail?.crash, undefined)
    else await checkRecord(deck, exit, { kind, errorName, top })
    wrong.splice(wrong.indexOf(name), 1)
    told.push(name)
  })
}

async function checkRecord (deck: DeckClient, exit: DeckEvent,
  { kind, errorName, top }: { kind: string, errorName: string | null, top: string | undefined })
{
  const { crash, crashGroup } = present(exit.detail)
  const { body: record } = await deck.api(`/crashes/${Number(crashGroup)}/occurrences/${Number(crash)}`)
  const facts = ({ cause, code, signal, release, slot, worker, pid, uptimeMs }: typeof record | DeckEvent) => ({ cause,
    code, signal, release, slot, worker, pid, uptimeMs })
  assert.deepEqual(facts(record), facts(exit))
  assert.deepEqual({ kind: record.kind, errorName: record.errorName }, { kind, errorName })
  assert.equal(record.nodeVersion, process.version)
  // What Node itself says of its end, on the file of that slot.
  if (kind === 'exception' || kind === 'unhandled-rejection')
    assert.ok(record.stderr.join('\n').includes(String(record.errorMessage)), record.stderr.join('\n'))
  const frame = record.frames.find(({ isInApp }) => isInApp)
  const shown = frame && [frame.function, frame.file]
  if (top === undefined) assert.equal(frame, undefined)
  else assert.ok(shown?.some((part) => part?.split(/[ .]/).includes(top) || part === top || part?.endsWith(top)),
      `${top} among ${JSON.stringify(shown)}`)
}

async function exitsOf (deck: DeckClient, id: number) {
  const isExit = ({ type, worker }: DeckEvent) => type === 'worker.exited' && worker === id
  const [known] = await deck.history(`type=worker.exited&worker=${id}&limit=1`)
  return [known ?? await deck.untilEvent(isExit, `the exit of worker ${id}`)]
}

/** @returns status or what went wrong */
function ask (url: string): Promise<number | string> {
  return new Promise((resolve) => {
    http.get(url, { agent: false },
      (response) =>
        response.resume().on('end', () => resolve(response.statusCode ?? 0)).on('error', ({ message }) =>
          resolve(message))).on('error', (error) => resolve(errorReason(error)))
  })
}
