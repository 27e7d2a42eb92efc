import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { listLogs, liveFile, sizeOf } from './log-files.js'

const ARCHIVER = fileURLToPath(new URL('./archiver.js', import.meta.url))
const POLL_MS = 500
/** After a failure, as on a full disk. */
const RETRY_MS = 10_000

/**
 * Looks how large the logs are, and has the large ones moved out. Only for the master that holds the data folder.
 * @param {object} parts
 * @param {string} parts.folder
 * @param {{ maxBytes: number, maxFiles: number }} parts.options
 * @param {() => import('./log-files.js').Log[]} parts.logs  those that may have grown
 * @param {(reason: string) => void} parts.onError
 */
export function createRotation ({ folder, options, logs, onError }) {
  let { maxBytes, maxFiles } = options
  /** @type {Map<string, number>} where the live file begins */
  const starts = new Map()
  /** @type {import('node:child_process').ChildProcess | null} */
  let archiver = null
  /** @type {Promise<void> | null} */
  let running = null
  let isPaused = false
  /** @type {NodeJS.Timeout | undefined} */
  let timer

  return {
    start () {
      run(listLogs(folder))
      timer = setInterval(look, POLL_MS).unref()
    },

    /** @param {{ maxBytes: number, maxFiles: number }} wanted  from the next file that is moved on */
    configure (wanted) { ({ maxBytes, maxFiles } = wanted) },

    /** @param {number} pid */
    isArchiver: (pid) => archiver?.pid === pid,

    /** Waits for what is under way, so that the next master finds nothing half done. */
    async stop () {
      clearInterval(timer)
      await running
    }
  }

  function look () {
    if (running || isPaused) return
    run(logs().filter((log) => (sizeOf(liveFile(folder, log)) ?? 0) - startOf(log) >= maxBytes))
  }

  /** @param {import('./log-files.js').Log} log */
  function startOf (log) {
    const start = starts.get(liveFile(folder, log)) ?? 0
    // Emptied by hand.
    return start > (sizeOf(liveFile(folder, log)) ?? 0) ? 0 : start
  }

  /** @param {import('./log-files.js').Log[]} large */
  function run (large) {
    if (large.length === 0) return
    archiver = startArchiver({ folder, maxBytes, maxFiles, logs: large })
    running = resultsOf(archiver).then((results) => {
      for (const { slot, stream, start, error } of results) {
        if (error === null) starts.set(liveFile(folder, { slot, stream }), start)
        else fail(`slot ${slot}, ${stream}: ${error}`)
      }
    }, (error) => fail(error.message)).finally(() => { running = archiver = null })
  }

  /** @param {string} reason */
  function fail (reason) {
    isPaused = true
    setTimeout(() => { isPaused = false }, RETRY_MS).unref()
    onError(reason)
  }
}

/** @param {import('./archiver.js').Order} order */
function startArchiver (order) {
  // Without the environment: NODE_OPTIONS are the app's business.
  return spawn(process.execPath, [ARCHIVER, JSON.stringify(order)], { stdio: ['ignore', 'pipe', 'ignore'], env: {} })
}

/**
 * @param {import('node:child_process').ChildProcess} child
 * @returns {Promise<(import('./log-files.js').Log & { start: number, error: string | null })[]>}
 */
function resultsOf (child) {
  return new Promise((resolve, reject) => {
    let text = ''
    child.stdout?.setEncoding('utf8').on('data', (chunk) => { text += chunk })
    child.on('error', reject)
    child.on('close', (code, signal) => {
      try {
        resolve(JSON.parse(text))
      } catch {
        reject(new Error(`the archiver of the logs ended with ${signal ?? `exit code ${code}`}`))
      }
    })
  })
}
