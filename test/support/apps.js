import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { readJson } from '../../server/system/json-file.js'
import { registerDeck, runningDecks } from '../../server/system/running-decks.js'
import { isAlive } from '../../server/system/process-identity.js'
import { runCliHere } from './cli-here.js'
import { CLI, FIXTURES } from './deck.js'
import { tempFolder } from './folder.js'
import { until } from './until.js'

/** @typedef {ReturnType<typeof openApps>} AppsFolder */

/**
 * A folder with several apps in its config file, and a list of running decks of its own.
 * @param {Pick<import('node:test').TestContext, 'after'>} t its decks end with it, however that ends
 * @param {Record<string, Record<string, unknown> & { entry: string }>} apps `entry`: a file of test/fixtures
 * @param {Record<string, unknown>} [shared] options of all
 * @param {Record<string, string | undefined>} [variables] of the commands
 */
export function openApps (t, apps, shared = {}, variables = {}) {
  const cwd = tempFolder()
  /** @type {Record<string, string | undefined>} */
  const env = { ...process.env, PORT: undefined, CLUSTERDECK_RUNTIME_DIR: path.join(tempFolder(), 'running'), CLUSTERDECK_HOST_DIR: path.join(tempFolder(), 'host'), CLUSTERDECK_ADMIN_PORT: '0', ...variables }
  const own = Object.fromEntries(Object.entries(apps).map(([name, options]) => [name, { ...options, entry: path.resolve(FIXTURES, options.entry) }]))
  writeFileSync(path.join(cwd, 'clusterdeck.config.json'), JSON.stringify({ workers: 1, admin: { port: 0 }, ...shared, apps: own }))
  t.after(endAll)

  return {
    cwd,
    env,
    decks: () => runningDecks(env),
    /** @param {string} name */
    deck: (name) => runningDecks(env).find((deck) => deck.name === name),

    /** Runs a command to its end. @param {string} line words, separated by blanks @param {string} [folder] */
    run: (line, folder = cwd) => runCliHere(line.split(' '), { env, cwd: folder }),

    /** Runs one in a process of its own, and a group of its own as a shell does. @param {string} line */
    spawn (line) {
      const child = spawn(process.execPath, [CLI, ...line.split(' ')], { cwd, env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] })
      const output = { stdout: '', stderr: '' }
      for (const name of /** @type {const} */ (['stdout', 'stderr'])) child[name].setEncoding('utf8').on('data', (text) => { output[name] += text })
      const exited = once(child, 'exit').then(([code, signal]) => ({ code, signal }))
      return {
        child,
        output,
        exited,
        /** As a terminal does it: all processes of the group get the signal. */
        interrupt: () => process.kill(-Number(child.pid), 'SIGINT'),
        /** @param {RegExp[]} lines of either stream */
        says: (...lines) => until(() => lines.every((line) => line.test(output.stdout + output.stderr)), () => `${lines.join(', ')} in ${output.stdout}${output.stderr}`)
      }
    },

    /** @param {string} name @param {string} where below /api/v1 @returns {Promise<any>} */
    async ask (name, where) {
      const { adminUrl } = /** @type {import('../../server/system/running-decks.js').RunningDeck} */ (runningDecks(env).find((deck) => deck.name === name))
      const token = readFileSync(path.join(String(env.CLUSTERDECK_HOST_DIR), 'admin.token'), 'utf8').trim()
      return (await fetch(`${adminUrl}/api/v1${where}`, { headers: { authorization: `Bearer ${token}`, connection: 'close' } })).json()
    },

    /** Of a deck that there is not. @param {Partial<import('../../server/system/running-decks.js').RunningDeck>} fields */
    pretend (fields) {
      registerDeck({
        name: 'ghost',
        entry: '/srv/app.js',
        cwd: '/srv',
        dataDir: tempFolder(),
        configFile: null,
        adminUrl: 'http://127.0.0.1:1',
        fingerprint: null,
        version: '0.1.0',
        startedAt: '2026-01-31T12:00:00.000Z',
        master: { pid: process.pid, startTime: null },
        keeper: null,
        ...fields
      }, env)
    }
  }

  async function endAll () {
    const processes = [...runningDecks(env).flatMap(({ keeper, master }) => [keeper, master]), ...processesOfHost()].filter((each) => each !== null && each.pid !== process.pid && isAlive(each))
    // As by two signals of an operator.
    for (const signal of /** @type {const} */ (['SIGTERM', 'SIGINT'])) for (const each of processes) kill(each?.pid, signal)
    await until(() => processes.every((each) => each === null || !isAlive(each)), 'the end of all decks')
  }

  /** It may have no app that runs. @returns {(import('../../server/system/process-identity.js').ProcessIdentity | null)[]} */
  function processesOfHost () {
    const announced = /** @type {any} */ (readJson(path.join(String(env.CLUSTERDECK_HOST_DIR), 'master.json')))
    return announced === null ? [] : [announced.keeper, { pid: announced.pid, startTime: announced.startTime }]
  }
}

/** @param {number | undefined} pid @param {NodeJS.Signals} signal */
function kill (pid, signal) {
  try {
    process.kill(Number(pid), signal)
  } catch {
    // ESRCH: it has ended in between.
  }
}
