import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import net from 'node:net'
import path from 'node:path'
import { test, type TestContext } from 'node:test'
import { attempt } from '../../server/errors.ts'
import { get } from '../support/asking.ts'
import { findProcesses } from '../support/leftovers.ts'
import { lacksSmallDisk, smallDisk } from '../support/small-disk.ts'
import { rareOnly, rareTest } from '../support/rare.ts'
import { until, untilFound } from '../support/until.ts'
import { openUser, type User } from '../support/user.ts'
import type { AppView } from '../../server/host/api-apps.ts'
import type { NewAdoption } from '../../server/host/api.ts'
import type { Status } from '../../server/api/cluster.ts'
import type { Setting } from '../../server/api/shapes.ts'
import type { RolloutInFull } from '../../server/rollouts/api.ts'

/** How a master may start. `container`: `clusterdeck start` as its command, with the data folder of the one before. */
const WAYS = ['death of the master', 'death of master and keeper', 'boot', 'planned restart', 'upgrade', 'start',
  'death in the foreground', 'container', 'adoption'] as const
type Way = typeof WAYS[number]
/** What has happened before. */
type Column = keyof typeof EXPECTED
/** What runs afterwards, as cellOf says it. */
type Cells = Record<Way, string>

/** Begins the words why there is no such case. */
const NONE = 'none: '
const ENDED = `${NONE}the deck has ended with its app`
const NO_DECK = `${NONE}no deck is there to be adopted`

/** A start that nobody has ordered goes on with what ran. `cells`: of the ordered ones, or where it is another one */
const goesOn = (ran: string, cells: Partial<Cells> = {}): Cells => ({
  ...Object.fromEntries(WAYS.map((way) => [way, ran])) as Cells,
  ...cells
})

const EXPECTED = { deployed: goesOn('r2 two a ×1'), 'deploy failed': goesOn('r1 one a ×1'),
  'rolled back': goesOn('r1 one a ×1'), scaled: goesOn('r1 one a ×2, 1234 ms'),
  stopped: goesOn('stopped', { start: 'r1 one a ×1', 'death in the foreground': ENDED, container: 'r1 one a ×1',
    adoption: 'r1 one a ×1' }),
  failed: goesOn('failed', { 'death in the foreground': ENDED, container: 'ended', adoption: NO_DECK }),
  finished: goesOn('finished, run 1', { start: 'finished, run 2', container: 'finished, run 2',
    adoption: 'finished, run 2' }),
  'order changed': goesOn('r1 one a ×1', { start: 'r2 one b ×1, 1234 ms', container: 'r2 one b ×1, 1234 ms',
    adoption: 'r2 one b ×1, 1234 ms' }),
  'disk full': goesOn('r1 one a ×2', { container: 'r1 one a ×1',
    adoption: `${NONE}it is refused, as its history cannot be written` }), 'code broken since': goesOn('r1 one a ×1'),
  'options broken since': goesOn('r1 one a ×1'),
  'broken in place': goesOn('r1 crash-loops', { 'death of the master': 'r1 crash-loops, beside one a',
    'death of master and keeper': 'r1 crash-loops, beside one a',
    'death in the foreground': 'r1 crash-loops, beside one a', start: 'r3 crash-loops', container: 'r3 crash-loops',
    adoption: `${NONE}it is refused, as its workers are not ready` }) } satisfies Record<string, Cells>

const THROWS = 'throw new Error("not today")'
const MARK_MS = 1234
/** By which the workers of the apps of a user are found. */
const MARK = 'OF_USER'
const PATIENCE_MS = 30_000

type App = Awaited<ReturnType<typeof openApps>>[number]

/** Puts the files of all apps into their folders, which run nowhere yet. */
async function openApps (t: TestContext, user: User) {
  const squatter = net.createServer().listen(0, '127.0.0.1')
  await once(squatter, 'listening')
  t.after(() => squatter.close())
  const { port } = squatter.address() as net.AddressInfo
  const disk = lacksSmallDisk ? null : smallDisk(t)
  const columns = (Object.keys(EXPECTED) as Column[]).filter((column) => column !== 'disk full' || disk)
  return columns.map((column) => {
    const name = column.replaceAll(' ', '-')
    const config = (more: object = {}) =>
      user.folder(name, { name, entry: 'app.js', workers: 1, admin: { port: 0 },
        releases: { mode: column === 'broken in place' ? 'live' : 'folder' },
        ...(column === 'disk full' && { dataDir: path.join(String(disk?.folder), 'data') }),
        restart: { policy: column === 'finished' ? 'on-failure' : 'always', minDelayMs: 20,
          intensity: { restarts: 2 } }, ...more })
    const cwd = config()
    const app = {
      name,
      column,
      cwd,
      disk,
      config,
      write: (code: string) => writeFileSync(path.join(cwd, 'app.js'), code),
      says (text: string, listensOn: string = '0') {
        app.write(`require('node:http').createServer(({ url }, response) => {
          response.statusCode = url === '/none' ? 503 : 200
          response.end(\`${text} \${process.env.LEVEL}\`)
        }).listen(${listensOn})`)
      },
      /** `where`: below /api/v1 of the app */
      async ask<T> (where: string, method = 'GET', body?: object): Promise<T> {
        const { status, body: answer } = await user.ask(user.deck(name), where, { method, headers: { 'if-match': '*' },
          body: body && JSON.stringify(body) })
        if (status >= 400) throw new Error(`${name}: ${method} ${where}: ${status} ${answer.detail}`)
        return answer as T
      },
      async rollOut (kind: string): Promise<string> {
        const { id } = await app.ask<RolloutInFull>('/rollouts', 'POST', { kind })
        return (await app.ask<RolloutInFull>(`/rollouts/${id}?wait=60s`)).state
      },
      begun: () => readFileSync(path.join(cwd, 'begun'), 'utf8').length
    }
    if (column === 'failed') app.says('one', `${port}, '127.0.0.1'`)
    else if (column === 'finished') {
      app.write(`require('node:fs').appendFileSync(${JSON.stringify(path.join(cwd, 'begun'))}, 'x')
        setTimeout(() => process.exit(0), 20)`)
    } else app.says('one')
    return app
  })
}

/** What happens before the starts. */
const BEFORE: Partial<Record<Column, (app: App) => Promise<unknown> | void>> = { async deployed (app) {
  app.says('two')
  assert.equal(await app.rollOut('deploy'), 'succeeded')
}, async 'deploy failed' (app) {
  app.write(THROWS)
  assert.equal(await app.rollOut('deploy'), 'failed')
}, async 'rolled back' (app) {
  app.says('two')
  assert.equal(await app.rollOut('deploy'), 'succeeded')
  assert.equal(await app.rollOut('rollback'), 'succeeded')
}, async scaled (app) {
  await app.ask('/scale', 'PUT', { workers: 2 })
  await app.ask('/config', 'PATCH', { 'drain.deadlineMs': MARK_MS })
}, 'order changed' (app) {
  app.config({ drain: { deadlineMs: MARK_MS } })
}, async 'disk full' (app) {
  app.disk?.fill()
  // In the foreground its data folder has all that is to be stored.
  await app.ask('/scale', 'PUT', { workers: 2 }).catch((error) => assert.match(error.message, /507 this is done, but/))
}, 'code broken since' (app) {
  app.write(THROWS)
}, 'options broken since' (app) {
  app.config({ ready: { path: '/none', timeoutMs: 700 } })
}, async 'broken in place' (app) {
  app.write(THROWS)
  assert.equal(await app.rollOut('deploy'), 'failed')
} }

/** What runs of an app, in words. `view`: of the host; null: it is in the foreground */
async function cellOf (app: App, view: AppView | null): Promise<string> {
  if (view && view.state !== 'running' && view.state !== 'starting')
    return view.state === 'failed' && view.nextTryAt === null ? 'given up' : view.state
  const { release, workers, readyWorkers, desiredWorkers, app: { addresses } } = await app.ask<Status>('/status')
  const isServedByOrphan = workers.some(({ orphan }) => orphan)
  if (workers.every(({ state }) => state === 'finished')) return `finished, run ${app.begun()}`
  if (workers.some(({ crashLooping }) => crashLooping))
    return `${release.id} crash-loops${isServedByOrphan ? `, beside ${await get(addresses[0])}` : ''}`
  if (isServedByOrphan) return 'an old worker is there'
  if (readyWorkers < desiredWorkers) return `${readyWorkers} of ${desiredWorkers} are ready`
  const { items } = await app.ask<{ items: Setting[] }>('/config')
  const isMarked = items.some(({ name, value }) => name === 'drain.deadlineMs' && value === MARK_MS)
  return `${release.id} ${await get(addresses[0])} ×${desiredWorkers}${isMarked ? `, ${MARK_MS} ms` : ''}`
}

const isCase = (way: Way) => ({ column }: App) => !EXPECTED[column][way].startsWith(NONE)

/** Waits until all that runs is as expected. */
async function check (way: Way, apps: App[], look: (app: App) => Promise<string>) {
  const cases = apps.filter(isCase(way))
  const expected = Object.fromEntries(cases.map(({ column }) => [column, EXPECTED[column][way]]))
  const see = (app: App) => look(app).catch((error) => `asked in vain: ${error.message}`)
  for (const app of cases) {
    await until(async () => await see(app) === expected[app.column], way, { patienceMs: PATIENCE_MS }).catch(async () =>
      assert.deepEqual({ [app.column]: await see(app) }, { [app.column]: expected[app.column] }, way)
    )
  }
  // What has failed is tried again now and then.
  const seen = await Promise.all(
    cases.map(async (app) => [app.column, expected[app.column] === 'failed' ? 'failed' : await see(app)])
  )
  assert.deepEqual(Object.fromEntries(seen), expected, way)
}

function kill (pids: Iterable<number>, signal: NodeJS.Signals = 'SIGKILL') {
  for (const pid of pids) {
    // ESRCH: it has ended with another one.
    attempt(() => process.kill(pid, signal))
  }
}

/** As a power cut does. */
function killAll (user: User) {
  const workers = findProcesses(`${MARK}=${user.home}`)
  kill([...user.processes(), ...workers.map(({ pid }) => pid)])
}

test('what runs in a host after each way of its start', async (t) => {
  const user = openUser(t)
  const apps = await openApps(t, user)
  await user.startHost()
  const env = (LEVEL: string) => ({ PATH: String(process.env.PATH), [MARK]: user.home, LEVEL })
  const askHost = async <T>(where: string, method: string, body?: object) => {
    const { status, body: answer } = await user.askHost(where, { method, body: body && JSON.stringify(body) })
    assert.ok(status < 400, `${where}: ${status} ${answer.detail}`)
    return answer as T
  }
  const view = (app: App) => askHost<AppView>(`/apps/${app.name}`, 'GET')
  const isUp = ({ state, health, workers }: AppView) =>
    state === 'failed' || (state === 'running' && workers?.ready === workers?.desired && health !== null)
  const pid = async () => (await askHost<{ pid: number }>('/host', 'GET').catch(() => null))?.pid
  for (const { name, cwd } of apps) await askHost('/apps', 'POST', { name, cwd, env: env('a') })
  await Promise.all(apps.map((app) => until(async () => isUp(await view(app)), app.name)))
  await Promise.all(apps.map((app) => BEFORE[app.column]?.(app)))
  for (const { name, column } of apps) {
    if (column === 'order changed') await askHost(`/apps/${name}/variables`, 'PUT', { env: env('b') })
    if (column === 'stopped') await askHost(`/apps/${name}/stop`, 'POST')
  }
  await until(
    async () => apps.every(({ column }) => column !== 'stopped' || !user.decks().some(({ name }) => name === column)),
    'the stop'
  )
  const look = async (app: App) => await cellOf(app, await view(app))
  const untilAnother = async (before: number | undefined) =>
    await untilFound(async () => (await pid() ?? before) !== before, 'the next master of the host')

  await t.test('death of the master', async () => {
    const before = await pid()
    kill(user.masters())
    await untilAnother(before)
    await check('death of the master', apps, look)
  })
  await t.test('death of master and keeper', { skip: rareOnly }, async () => {
    kill(user.managers())
    await user.startHost()
    await check('death of master and keeper', apps, look)
  })
  await t.test('boot', async () => {
    killAll(user)
    await user.startHost()
    await check('boot', apps, look)
  })
  await t.test('planned restart', async () => {
    kill(user.decks().map(({ keeper }) => Number(keeper?.pid)).slice(0, 1), 'SIGTERM')
    await until(() => user.processes().length === 0, 'the end of the host')
    await user.startHost()
    await check('planned restart', apps, look)
  })
  await t.test('upgrade', { skip: rareOnly }, async () => {
    const before = await pid()
    await askHost('/host/upgrade', 'POST', {})
    await untilAnother(before)
    await check('upgrade', apps, look)
  })
  await t.test('start', async () => {
    for (const { name } of apps) await askHost(`/apps/${name}/stop`, 'POST')
    for (const app of apps) await until(async () => (await view(app)).state === 'stopped', `${app.name} to stop`)
    for (const { name } of apps) await askHost(`/apps/${name}/start`, 'POST')
    await check('start', apps, look)
  })
})

rareTest(
  'what runs in the foreground of a container whose data folder is kept, and of a host that such a deck moves into',
  async (t) => {
    const user = openUser(t)
    const apps = await openApps(t, user)
    const begin = ({ cwd }: App, LEVEL: string) => user.start(cwd, ['start'], { env: { [MARK]: user.home, LEVEL } })
    const isThere = ({ name }: App) => user.decks().some((deck) => deck.name === name)
    const look = async (app: App) => isThere(app) ? await cellOf(app, null) : 'ended'
    for (const app of apps) begin(app, 'a')
    for (const app of apps) {
      const first = app.column === 'failed' ? 'ended' : app.column === 'finished' ? 'finished, run 1' : 'r1 one a ×1'
      await until(async () => await look(app).catch(() => null) === first, app.name)
    }
    await Promise.all(apps.map((app) => BEFORE[app.column]?.(app)))

    const [stopped] = apps.filter(({ column }) => column === 'stopped')
    kill([Number(user.deck(stopped.name).keeper?.pid)], 'SIGTERM')
    await until(() => !isThere(stopped), 'the stop')

    await t.test('death in the foreground', async () => {
      const before = user.decks()
      kill(user.masters())
      await user.untilNextMaster(before)
      await check('death in the foreground', apps, look)
    })
    await t.test('container', async () => {
      killAll(user)
      for (const app of apps) begin(app, app.column === 'order changed' ? 'b' : 'a')
      await check('container', apps, look)
    })
    await t.test('adoption', async () => {
      await user.startHost()
      const ask = async (where: string, method: string, body?: object) =>
        (await user.askHost(where, { method, body: body && JSON.stringify(body) })).body
      for (const app of apps.filter(isCase('adoption'))) {
        const { path, secret } = await ask('/host/adoptions', 'POST', {}) as unknown as NewAdoption
        await app.ask('/move', 'POST', { path, secret })
      }
      await check('adoption', apps, async (app) =>
        await cellOf(app, await ask(`/apps/${app.name}`, 'GET') as unknown as AppView))
    })
  }
)
