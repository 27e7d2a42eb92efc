import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { listLogs, liveFile, sizeOf } from './log-files.js'

const ARCHIVER = fileURLToPath(new URL('./archiver.js', import.meta.url))
/** What an archiver before has left unfinished waits until the workers have started, which need the CPUs. */
const FINISH_AFTER_MS = 5000
/** After a failure, as on a full disk. */
const RETRY_MS = 10_000

/**
 * Looks how large the logs are, and has the large ones moved out. Only for the master that holds the data folder.
 * The archiver may be ended at any time: the next one goes on with what it leaves.
 * @param {object} parts
 * @param {string} parts.folder
 * @param {{ maxBytes: number, maxFiles: number }} parts.options
 * @param {(reason: string) => void} parts.onError
 */
export function createRotation ({ folder, options, onError }) {
  let { maxBytes, maxFiles } = options
  /** @type {Map<string, number>} where the live file begins */
  const starts = new Map()
  /** @type {import('node:child_process').ChildProcess | null} */
  let archiver = null
  let isStopped = false
  let isPaused = false
  /** @type {NodeJS.Timeout | undefined} */
  let finishing

  return {
    start () {
      if (listLogs(folder).length > 0) finishing = setTimeout(() => { if (!archiver) runArchiver() }, FINISH_AFTER_MS).unref()
    },

    /** @param {import('./log-files.js').Log[]} logs  those that may have grown */
    look (logs) {
      if (archiver) return
      // Also after a failure no log grows beyond what all its files may take.
      const limit = isPaused ? maxBytes * Math.max(2, maxFiles) : maxBytes
      if (logs.some((log) => (sizeOf(liveFile(folder, log)) ?? 0) - startOf(log) >= limit)) runArchiver()
    },

    /** @param {{ maxBytes: number, maxFiles: number }} wanted  from the next file that is moved on */
    configure (wanted) {
      if (wanted.maxBytes === maxBytes && wanted.maxFiles === maxFiles) return
      ;({ maxBytes, maxFiles } = wanted)
      endRotation()
    },

    /** @param {number} pid */
    isArchiver: (pid) => archiver?.pid === pid,

    /** Waits for no disk: what has not been moved out stays in the live file for the next master. */
    stop () {
      isStopped = true
      clearTimeout(finishing)
      endRotation()
    }
  }

  function endRotation () {
    archiver?.kill('SIGKILL')
  }

  /** @param {import('./log-files.js').Log} log */
  function startOf (log) {
    const start = starts.get(liveFile(folder, log)) ?? 0
    // Emptied by hand.
    return start > (sizeOf(liveFile(folder, log)) ?? 0) ? 0 : start
  }

  function runArchiver () {
    const child = startArchiver({ folder, maxBytes, maxFiles })
    archiver = child
    // A process that waits for the disk does not end before the disk has answered.
    unrefChild(child)
    readLines(child, takeLine)
    child.on('error', (error) => {
      archiver = null
      failRotation(error.message)
    })
    child.on('close', (code, signal) => {
      archiver = null
      if (code !== 0 && !child.killed) failRotation(`the archiver of the logs ended with ${signal ?? `exit code ${code}`}`)
    })
  }

  /** @param {string} line */
  function takeLine (line) {
    for (const { slot, stream, start, dropped, error } of /** @type {import('./archiver.js').Report[]} */ (JSON.parse(line))) {
      starts.set(liveFile(folder, { slot, stream }), start)
      if (dropped > 0 && !isStopped) onError(`slot ${slot}, ${stream}: ${dropped} bytes were removed before they could be moved into a file of their own: the app writes faster than that, and logs.maxBytes (${maxBytes}) × logs.maxFiles (${maxFiles}) is the bound`)
      if (error !== null) failRotation(`slot ${slot}, ${stream}: ${error}`)
    }
  }

  /** @param {string} reason */
  function failRotation (reason) {
    if (isPaused || isStopped) return
    isPaused = true
    setTimeout(() => { isPaused = false }, RETRY_MS).unref()
    onError(reason)
  }
}

/** @param {import('./archiver.js').Order} order */
function startArchiver (order) {
  // It ends when its stdin does. Without the environment: NODE_OPTIONS are the app's business.
  return spawn(process.execPath, [ARCHIVER, JSON.stringify(order)], { stdio: ['pipe', 'pipe', 'ignore'], env: {} })
}

/** @param {import('node:child_process').ChildProcess} child */
function unrefChild (child) {
  child.unref()
  for (const pipe of [child.stdin, child.stdout]) /** @type {import('node:net').Socket | null} */ (pipe)?.unref()
}

/** @param {import('node:child_process').ChildProcess} child @param {(line: string) => void} take */
function readLines ({ stdout }, take) {
  let rest = ''
  stdout?.setEncoding('utf8').on('data', (chunk) => {
    const lines = (rest + chunk).split('\n')
    rest = lines.pop() ?? ''
    lines.forEach(take)
  })
}
