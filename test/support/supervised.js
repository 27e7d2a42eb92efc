import { closeSync, openSync } from 'node:fs'
import path from 'node:path'
import { createForker } from '../../server/cluster/forker.js'
import { createSupervisor } from '../../server/cluster/supervisor.js'
import { loadConfig } from '../../server/config/config.js'
import { createState } from '../../server/lifecycle/state.js'
import { tempFolder } from './folder.js'

const FIXTURES = path.resolve(import.meta.dirname, '../fixtures')
const PATIENCE_MS = 90_000
const INHERITED = Object.freeze({ stdout: 'inherit', stderr: 'inherit', close () {} })

/**
 * Runs a fixture app below this very process: real forks and sockets, without history and admin page, and so on every
 * version of Node.
 * @param {import('node:test').TestContext} t
 * @param {string} app
 * @param {{ workers?: number, flags?: Record<string, unknown>, args?: string[] }} [options] `flags`: by key, as `readyPath`
 */
export async function supervised (t, app, { workers = 1, flags = {}, args = [] } = {}) {
  const folder = tempFolder()
  const entry = path.join(FIXTURES, app)
  const config = await loadConfig({ flags: { entry, args, ...flags }, env: {}, cwd: FIXTURES })
  /** @type {any[]} */
  const events = []
  /** @type {any[]} */
  const reports = []
  /** @type {Set<() => void>} */
  const watchers = new Set()
  const { ready, drain, stop, crash, restart, recycle } = config
  const release = { id: 'r1', createdAt: '', entry, path: FIXTURES }
  const state = createState({ options: { ready, drain, stop, crash, restart, recycle }, release })
  const logs = /** @type {any} */ ({ open: () => config.ready.log === undefined ? INHERITED : inFile(path.join(folder, 'log')), ended () {} })
  const deck = createSupervisor(state, {
    fork: createForker({ current: config }, { crashFolder: folder, orderFolder: folder, outlives: () => false, logs }),
    events: { publish: (/** @type {any} */ event) => { note(event); return event } },
    watch: { watchdog: { timeoutMs: 0, stack: 'off' }, recycle },
    vitals: { accept: (_worker, _slot, body) => { reports.push(body) }, left () {}, latest: () => null }
  })
  t.after(async () => {
    if (!['stopping', 'stopped'].includes(deck.snapshot().state)) deck.dispatch({ type: 'stop', actor: 'test' })
    const timer = setTimeout(() => deck.killAll('the test is over'), PATIENCE_MS)
    await deck.finished
    clearTimeout(timer)
  })
  deck.start({ workers })

  return {
    deck,
    events,
    /** What the workers have said of how they feel. */
    reports,
    release,
    url: () => String(deck.addresses()[0]),
    count: (/** @type {string} */ type) => events.filter((event) => event.type === type).length,
    last: (/** @type {string} */ type) => events.findLast((event) => event.type === type),

    /** @param {string} type @param {number} [count] of those, since the start @returns {Promise<any>} the last of them */
    until (type, count = 1) {
      return new Promise((resolve, reject) => {
        const timer = setTimeout(() => {
          watchers.delete(look)
          reject(new Error(`waited for ${count} × ${type}; came: ${events.map((event) => `${event.type}: ${event.message ?? ''}`).join('\n')}`))
        }, PATIENCE_MS)
        watchers.add(look)
        look()

        function look () {
          const those = events.filter((event) => event.type === type)
          if (those.length < count) return
          clearTimeout(timer)
          watchers.delete(look)
          resolve(those[count - 1])
        }
      })
    }
  }

  /** @param {any} event */
  function note (event) {
    events.push(event)
    for (const watcher of [...watchers]) watcher()
  }
}

/** @param {string} file */
function inFile (file) {
  const stdout = openSync(file, 'a+')
  return { stdout, stderr: 'inherit', close () { closeSync(stdout) } }
}
