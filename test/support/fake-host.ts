import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import path from 'node:path'
import { registerDeck, withdrawDeck } from '../../server/system/running-decks.ts'
import { startHostAdmin, TOKEN } from './admin.ts'
import { runCliHere } from './cli-here.ts'
import { tempFolder } from './folder.ts'
import type { TestContext } from 'node:test'
import type { ChildProcess } from 'node:child_process'
import type { Socket } from 'node:net'
import type { AppView } from '../../server/host/api-apps.ts'
import type { AppOrder } from '../../server/config/orders.ts'

export type FakeHost = Awaited<ReturnType<typeof startFakeHost>>

/** Which states have no pages. */
const CLOSED: unknown[] = ['waiting', 'stopped', 'failed']

/**
 * The real port of a host whose apps have no processes, in folders that tell commands of it.
 * @param apps by name, which run unless they say otherwise
 */
export async function startFakeHost (t: TestContext, apps: Record<string, Partial<AppView>> = {}) {
  const folder = tempFolder()
  const env = { CLUSTERDECK_HOST_DIR: folder, CLUSTERDECK_RUNTIME_DIR: path.join(tempFolder(), 'running') }
  const { apps: known, admin, clock, url, port } = await startHostAdmin(t, { names: [] })
  const about = known.about()
  /** What it says of itself, one after the other; the last one stays. */
  let abouts: object[] = [{}]
  known.about = () => ({ ...about, ...abouts.length > 1 ? abouts.shift() : abouts[0] })
  let played: ChildProcess | null = null
  const { stopHost } = known
  known.stopHost = (by) => {
    stopHost(by)
    played?.kill()
    withdraw(folder)
    admin.close()
  }
  announce(folder, { adminUrl: url })
  writeFileSync(path.join(folder, 'admin.token'), TOKEN, { mode: 0o600 })
  known.onChange(announceAll)
  for (const [name, fields] of Object.entries(apps)) put(name, fields)

  return {
    url,
    folder,
    env,
    apps: known,
    /** What was to be done, oldest first. */
    orders: () => known.orders.map(({ type, name }) => `${type} ${name}`.trim()),
    /** The orders that have come for apps, oldest first. */
    added: () => known.orders.flatMap(({ type, more }) => type === 'add' ? [more as AppOrder] : []),
    connections: countConnections(t, port),
    put,
    view: (name: string): AppView | undefined => known.identity(name) === null ? undefined : known.view(name),
    deck: known.deck,
    whenStarted: known.whenStarted,
    /** Says that it is another process, which it ends when it is stopped. */
    playFor (child: ChildProcess) {
      announce(folder, { adminUrl: url, pid: child.pid })
      played = child
    },
    /** `next`: what it says of itself from now on, one after the other */
    changeAbout (...next: object[]) {
      abouts = next
    },
    /** Without a word, as by SIGKILL. */
    async die () {
      const closed = admin.close()
      clock.advance(60_000)
      await closed
    },
    /** `line`: words, separated by blanks */
    cli: (line: string, place: { cwd?: string, env?: Record<string, string | undefined> } = {}) =>
      runCliHere(line.split(' ').filter(Boolean), { cwd: place.cwd ?? tempFolder(), env: { ...env, ...place.env } })
  }

  /** A new app, or other words about one: it runs unless they say otherwise. */
  function put (name: string, fields: Partial<AppView> = {}) {
    if (CLOSED.includes(fields.state)) known.closeApp(name, fields)
    else known.open(name, fields)
  }

  function announceAll () {
    for (const { name, state, cwd, dataDir, entry, path: place, startedAt } of known.list()) {
      if (dataDir === null) continue
      const master = { pid: process.pid, startTime: null }
      if (CLOSED.includes(state)) {
        withdraw(dataDir)
        withdrawDeck({ dataDir, master }, env)
        continue
      }
      mkdirSync(dataDir, { recursive: true, mode: 0o700 })
      announce(dataDir, { adminUrl: `${url}${place}`, host: folder })
      registerDeck({ name, entry: String(entry), cwd, dataDir, configFile: null, adminUrl: `${url}${place}`,
        fingerprint: null, version: '0.1.0', startedAt: String(startedAt), master, keeper: null }, env)
    }
  }
}

function announce (folder: string, fields: object) {
  writeFileSync(path.join(folder, 'master.json'),
    JSON.stringify({ pid: process.pid, startTime: null, keeper: null, startedAt: '2026-01-01T00:00:00.000Z',
      ...fields }), { mode: 0o600 })
}

function withdraw (folder: string) {
  rmSync(path.join(folder, 'master.json'), { force: true })
}

function countConnections (t: TestContext, port: number) {
  let count = 0
  const onSocket = (message: unknown) => {
    if ((message as { socket: Socket }).socket.localPort === port) count++
  }
  subscribe('net.server.socket', onSocket)
  t.after(() => unsubscribe('net.server.socket', onSocket))
  return () => count
}
