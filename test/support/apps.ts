import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { readJson } from '../../server/system/json-file.ts'
import { registerDeck, runningDecks, type RunningDeck } from '../../server/system/running-decks.ts'
import { isAlive, type ProcessIdentity } from '../../server/system/process-identity.ts'
import { runCliHere } from './cli-here.ts'
import { CLI, FIXTURES } from './deck.ts'
import { tempFolder } from './folder.ts'
import { until } from './until.ts'
import type { TestContext } from 'node:test'
import type { OpenRequests, Status } from '../../server/api/cluster.ts'

/**
 * A folder with several apps in its config file, and a list of running decks of its own. `t`: its decks end with it,
 * however that ends; `entry`: a file of test/fixtures; `shared`: options of all; `variables`: of the commands.
 */
export function openApps (t: Pick<TestContext, 'after'>,
  apps: Record<string, Record<string, unknown> & { entry: string }>, shared: Record<string, unknown> = {},
  variables: Record<string, string | undefined> = {})
{
  const cwd = tempFolder()
  const env: Record<string, string | undefined> = { ...process.env, PORT: undefined,
    CLUSTERDECK_RUNTIME_DIR: path.join(tempFolder(), 'running'), CLUSTERDECK_HOST_DIR: path.join(tempFolder(), 'host'),
    CLUSTERDECK_ADMIN_PORT: '0', ...variables }
  const own = Object.fromEntries(
    Object.entries(apps).map(([name, options]) => [name, { ...options, entry: path.resolve(FIXTURES, options.entry) }])
  )
  writeFileSync(path.join(cwd, 'clusterdeck.config.json'),
    JSON.stringify({ workers: 1, admin: { port: 0 }, ...shared, apps: own }))
  t.after(endAll)

  return {
    cwd,
    env,
    decks: () => runningDecks(env),
    deck: (name: string) => runningDecks(env).find((deck) => deck.name === name),

    /** Runs a command to its end. `line`: words, separated by blanks. */
    run: (line: string, folder: string = cwd) => runCliHere(line.split(' '), { env, cwd: folder }),

    /** Runs one in a process of its own, and a group of its own as a shell does. */
    spawn (line: string) {
      const child = spawn(process.execPath, [CLI, ...line.split(' ')], { cwd, env, detached: true,
        stdio: ['ignore', 'pipe', 'pipe'] })
      const output = { stdout: '', stderr: '' }
      for (const name of ['stdout', 'stderr'] as const)
        child[name].setEncoding('utf8').on('data', (text) => {
          output[name] += text
        })
      const exited = once(child, 'exit').then(([code, signal]) => ({ code, signal }))
      return {
        child,
        output,
        exited,
        /** As a terminal does it: all processes of the group get the signal. */
        interrupt: () => process.kill(-Number(child.pid), 'SIGINT'),
        /** `lines`: of either stream */
        says: (...lines: RegExp[]) =>
          until(() => lines.every((line) => line.test(output.stdout + output.stderr)), () =>
            `${lines.join(', ')} in ${output.stdout}${output.stderr}`)
      }
    },

    /** `where`: below /api/v1 */
    async ask (name: string, where: string): Promise<Status & OpenRequests> {
      const { adminUrl } = runningDecks(env).find((deck) => deck.name === name) as RunningDeck
      const token = readFileSync(path.join(String(env.CLUSTERDECK_HOST_DIR), 'admin.token'), 'utf8').trim()
      const response = await fetch(`${adminUrl}/api/v1${where}`, {
        headers: { authorization: `Bearer ${token}`, connection: 'close' }
      })
      return await response.json() as Status & OpenRequests
    },

    /** Of a deck that there is not. */
    pretend (fields: Partial<RunningDeck>) {
      registerDeck({ name: 'ghost', entry: '/srv/app.js', cwd: '/srv', dataDir: tempFolder(), configFile: null,
        adminUrl: 'http://127.0.0.1:1', fingerprint: null, version: '0.1.0', startedAt: '2026-01-31T12:00:00.000Z',
        master: { pid: process.pid, startTime: null }, keeper: null, ...fields }, env)
    }
  }

  async function endAll () {
    const processes = [...runningDecks(env).flatMap(({ keeper, master }) => [keeper, master]), ...processesOfHost()]
      .filter((each) => each !== null && each.pid !== process.pid && isAlive(each))
    // As by two signals of an operator.
    for (const signal of ['SIGTERM', 'SIGINT'] as const) for (const each of processes) kill(each?.pid, signal)
    await until(() => processes.every((each) => each === null || !isAlive(each)), 'the end of all decks')
  }

  /** It may have no app that runs. */
  function processesOfHost (): (ProcessIdentity | null)[] {
    const announced = readJson(path.join(String(env.CLUSTERDECK_HOST_DIR), 'master.json')) as
      | ProcessIdentity & { keeper: ProcessIdentity | null }
      | null
    return announced === null ? [] : [announced.keeper, { pid: announced.pid, startTime: announced.startTime }]
  }
}

function kill (pid: number | undefined, signal: NodeJS.Signals) {
  try {
    process.kill(Number(pid), signal)
  } catch {
    // ESRCH: it has ended in between.
  }
}
