import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import http from 'node:http'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { tempFolder } from './folder.js'

const CLI = fileURLToPath(new URL('../../server/cli.js', import.meta.url))
const FIXTURES = fileURLToPath(new URL('../fixtures/', import.meta.url))
const PATIENCE_MS = 40_000

/** @typedef {Awaited<ReturnType<typeof startDeck>>} Deck */
/** @typedef {Pick<import('node:test').TestContext, 'after'>} TestOwner */
/**
 * Who starts it, where that is not the test itself.
 * @typedef {object} Launch
 * @property {string[]} [through] a program and its arguments, which starts what follows
 * @property {number[]} [descriptors] to be passed on, from number 3 on
 * @property {Record<string, string>} [env]
 * @property {(child: { pid?: number }) => number | undefined} [pidOf] the process to signal, where it is not the one that was spawned
 */

/**
 * Runs `clusterdeck start` on a fixture as a user would, in a process of its own, and speaks the language of the tests.
 * Everything is waited for by event: the deck's own event stream.
 * @param {TestOwner} t the test that owns it; the deck ends with the test, however that ends
 * @param {string} app a file of test/fixtures, or an absolute path
 * @param {object} [options]
 * @param {number} [options.workers]
 * @param {string[]} [options.flags] further flags of `start`
 * @param {string[]} [options.args] the app's own
 * @param {Record<string, string | undefined>} [options.env]
 * @param {string} [options.dataDir]
 * @param {string} [options.cli] the command line of another installation
 * @param {string} [options.cwd] default: the folder of the app
 * @param {Launch} [options.launch]
 */
export async function startDeck (t, app, { workers = 2, flags = [], args = [], env = {}, dataDir, cli = CLI, cwd = path.dirname(path.resolve(FIXTURES, app)), launch = {} } = {}) {
  const folder = dataDir ?? tempFolder()
  const before = await readMaster(folder)
  const { through = [], descriptors = [], pidOf = ({ pid }) => pid } = launch
  const [program, ...words] = [
    ...through, process.execPath, cli, 'start', path.resolve(FIXTURES, app), '--workers', String(workers), '--admin-port', '0', '--data-dir', folder, ...flags,
    ...(args.length > 0 ? ['--', ...args] : [])
  ]
  const child = /** @type {import('node:child_process').ChildProcessByStdio<null, import('node:stream').Readable, import('node:stream').Readable>} */ (spawn(program, words, {
    env: { ...process.env, PORT: undefined, ...launch.env, ...env }, stdio: ['ignore', 'pipe', 'pipe', ...descriptors], cwd
  }))
  const output = collectOutput(child)
  const exited = once(child, 'exit').then(([code, signal]) => ({ code, signal }))
  const events = createEventLog()
  /** @type {Promise<{ code: number | null, signal: string | null }> | undefined} */
  let stopping
  /** Known once the master has announced itself. */
  const access = { pid: 0, adminUrl: '', token: '' }

  const deck = {
    /** The keeper, or the master where there is none. */
    child,
    folder,
    output,
    exited,
    /** Of the newest master that this helper has waited for. */
    get masterPid () { return access.pid },
    get adminUrl () { return access.adminUrl },
    get token () { return access.token },

    /** @param {string} where path below /api/v1 @param {RequestInit} [init] */
    async api (where, init = {}) {
      const headers = { authorization: `Bearer ${access.token}`, ...(init.body ? { 'content-type': 'application/json' } : {}), ...init.headers }
      const response = await fetch(`${access.adminUrl}/api/v1${where}`, { ...init, headers })
      return { status: response.status, headers: response.headers, body: /** @type {any} */ (await response.json()) }
    },

    /** @returns {Promise<any>} */
    async status () { return (await deck.api('/status')).body },

    /** @param {string} query @returns {Promise<any[]>} newest first */
    async history (query = '') { return (await deck.api(`/events?${query}`)).body.items },

    /** The first address of the app. */
    async appUrl () {
      const { app: { addresses } } = await deck.status()
      return String(addresses[0])
    },

    /** @param {(event: any) => boolean} matches @param {string} what waits for an event that has come or is to come */
    untilEvent: (matches, what) => deadline(events.until(matches), what, deck),

    /** Asks again after each event, until the status is as wanted. @param {(status: any) => boolean} isWanted @param {string} what */
    async untilStatus (isWanted, what) {
      return await deadline((async () => {
        for (;;) {
          const seen = events.count()
          const status = await deck.status()
          if (isWanted(status)) return status
          await events.untilMoreThan(seen)
        }
      })(), what, deck)
    },

    /** @param {{ ready: number }} wanted that many ready workers, and no others */
    until: ({ ready }) => deck.untilStatus(({ readyWorkers, workers: rows }) => readyWorkers === ready && rows.length === ready, `${ready} ready workers`),

    /** Starts a rollout and waits for its end. @param {'restart' | 'deploy'} kind @returns {Promise<any>} the rollout */
    async rollout (kind) {
      const { status, body } = await deck.api('/rollouts', { method: 'POST', body: JSON.stringify({ kind }) })
      if (status !== 202) throw new Error(`expected 202, received ${status}: ${JSON.stringify(body)}`)
      return (await deck.api(`/rollouts/${body.id}?wait=60s`)).body
    },

    /**
     * SIGKILLs the master, and whatever else is named, and waits for the next one.
     * @param {number[]} [others] pids that die in the same instant
     */
    async loseMaster (others = []) {
      const lost = access.pid
      for (const pid of [lost, ...others]) process.kill(pid, 'SIGKILL')
      await meet(lost)
    },

    /** Waits for a master other than the one known. */
    nextMaster: () => meet(access.pid),

    /** @param {NodeJS.Signals} signal */
    signal: (signal) => kill(signal),

    /** Ends the master; the exit of the first call is given to every other. */
    stop: () => (stopping ??= stop())
  }
  t.after(deck.stop)

  await meet(before?.pid)
  return deck

  /** @param {number | undefined} other the pid of a master that is not meant */
  async function meet (other) {
    const { pid, adminUrl } = await deadline(untilMaster(folder, other, exited), 'the master to announce itself', deck)
    Object.assign(access, { pid, adminUrl, token: (await readFile(path.join(folder, 'admin.token'), 'utf8')).trim() })
    events.follow(`${adminUrl}/api/v1/events/stream`, access.token)
  }

  function kill (/** @type {NodeJS.Signals} */ signal) {
    const pid = pidOf(child)
    try {
      return pid !== undefined && process.kill(pid, signal)
    } catch (/** @type {any} */ error) {
      // It has ended in between.
      if (error.code !== 'ESRCH') throw error
      return false
    }
  }

  async function stop () {
    events.close()
    if (child.exitCode === null && child.signalCode === null) kill('SIGTERM')
    const timer = setTimeout(() => kill('SIGKILL'), PATIENCE_MS)
    const result = await exited
    clearTimeout(timer)
    return result
  }
}

/**
 * Runs `clusterdeck` with any arguments to its end.
 * @param {string[]} args @param {{ env?: Record<string, string | undefined>, cwd?: string, launch?: Launch }} [options]
 */
export async function runCli (args, { env = {}, cwd, launch: { through = [], descriptors = [], env: more } = {} } = {}) {
  const [program, ...words] = [...through, process.execPath, CLI, ...args]
  const child = spawn(program, words, { env: { ...process.env, ...more, ...env }, cwd, stdio: ['ignore', 'pipe', 'pipe', ...descriptors] })
  const output = collectOutput(child)
  const [code] = await once(child, 'close')
  return { code, stdout: output.stdout, stderr: output.stderr }
}

/** @param {import('node:child_process').ChildProcess} child */
function collectOutput (child) {
  const output = { stdout: '', stderr: '' }
  for (const name of /** @type {const} */ (['stdout', 'stderr'])) {
    child[name]?.setEncoding('utf8').on('data', (text) => { output[name] += text })
  }
  return output
}

/** @param {string} folder @returns {Promise<{ pid: number, adminUrl: string } | null>} */
async function readMaster (folder) {
  try {
    return JSON.parse(await readFile(path.join(folder, 'master.json'), 'utf8'))
  } catch {
    // ENOENT: not yet.
    return null
  }
}

/**
 * `master.json` appears once the admin port listens; the folder is watched by looking, as file watchers lose renames.
 * @param {string} folder @param {number | undefined} other @param {Promise<unknown>} exited
 */
async function untilMaster (folder, other, exited) {
  const ended = exited.then(() => { throw new Error('the master ended before it announced itself') })
  ended.catch(() => {})
  for (;;) {
    const master = await readMaster(folder)
    if (master && master.pid !== other) return master
    await Promise.race([ended, new Promise((resolve) => setTimeout(resolve, 10))])
  }
}

/** Follows a deck's server-sent events from the first one on. */
function createEventLog () {
  /** @type {any[]} */
  const seen = []
  /** @type {Set<() => void>} */
  const watchers = new Set()
  /** @type {import('node:http').ClientRequest | undefined} */
  let request

  return {
    count: () => seen.length,

    /** @param {string} url @param {string} token */
    follow (url, token) {
      request?.destroy()
      request = http.get(url, { agent: false, headers: { authorization: `Bearer ${token}`, 'last-event-id': String(seen.at(-1)?.id ?? 0) } }, (response) => {
        let rest = ''
        response.setEncoding('utf8').on('error', () => {}).on('data', (text) => {
          const blocks = (rest + text).split('\n\n')
          rest = blocks.pop() ?? ''
          for (const block of blocks) take(block)
        })
      }).on('error', () => {})
    },

    close () { request?.destroy() },

    /** @param {(event: any) => boolean} matches @returns {Promise<any>} */
    until: (matches) => watch(() => seen.find(matches)),

    /** @param {number} count @returns {Promise<any>} */
    untilMoreThan: (count) => watch(() => seen.length > count)
  }

  function take (/** @type {string} */ block) {
    const data = block.split('\n').find((line) => line.startsWith('data:'))
    if (!data) return
    seen.push(JSON.parse(data.slice(5)))
    for (const watcher of [...watchers]) watcher()
  }

  function watch (/** @type {() => any} */ find) {
    return new Promise((resolve) => {
      const look = () => {
        const found = find()
        if (!found) return
        watchers.delete(look)
        resolve(found)
      }
      watchers.add(look)
      look()
    })
  }
}

/** @template T @param {Promise<T>} promise @param {string} what @param {{ output: { stdout: string, stderr: string } }} deck @returns {Promise<T>} */
async function deadline (promise, what, { output }) {
  /** @type {NodeJS.Timeout | undefined} */
  let timer
  const late = new Promise((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`waited ${PATIENCE_MS} ms for ${what}; output: ${output.stdout}${output.stderr}`)), PATIENCE_MS)
  })
  try {
    return /** @type {T} */ (await Promise.race([promise, late]))
  } finally {
    clearTimeout(timer)
  }
}
