import { spawn } from 'node:child_process'
import { once } from 'node:events'
import path from 'node:path'
import { registerDeck, type RunningDeck } from '../../server/system/running-decks.ts'
import { runCliHere } from './cli-here.ts'
import { CLI, FIXTURES } from './deck.ts'
import { tempFolder } from './folder.ts'
import { until } from './until.ts'
import { openUser } from './user.ts'
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
  const user = openUser(t, { variables })
  const own = Object.fromEntries(
    Object.entries(apps).map(([name, options]) => [name, { ...options, entry: path.resolve(FIXTURES, options.entry) }])
  )
  const cwd = user.folder('apps', { workers: 1, admin: { port: 0 }, ...shared, apps: own })
  const env: Record<string, string | undefined> = { ...process.env, ...user.env, CLUSTERDECK_ADMIN_PORT: '0' }

  return {
    cwd,
    env,
    decks: user.decks,
    deck: (name: string) => user.decks().find((deck) => deck.name === name),

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
    ask: async (name: string, where: string) =>
      (await user.ask(user.deck(name), where)).body as unknown as Status & OpenRequests,

    /** Of a deck that there is not. */
    pretend (fields: Partial<RunningDeck>) {
      registerDeck({ name: 'ghost', entry: '/srv/app.js', cwd: '/srv', dataDir: tempFolder(), configFile: null,
        adminUrl: 'http://127.0.0.1:1', fingerprint: null, version: '0.1.0', startedAt: '2026-01-31T12:00:00.000Z',
        master: { pid: process.pid, startTime: null }, keeper: null, ...fields }, env)
    }
  }
}
