import { spawn, type ChildProcess } from 'node:child_process'
import { listLogs, liveFile, sizeOf, type Log } from './log-files.ts'
import { scriptPath } from '../system/built.ts'
import type { Socket } from 'node:net'
import type { Order, Report } from './archiver.ts'

const ARCHIVER = scriptPath('archiver.js')
/** What an archiver before has left unfinished waits until the workers have started, which need the CPUs. */
const FINISH_AFTER_MS = 5000
/** After a failure, as on a full disk. */
const RETRY_MS = 10_000

/**
 * Looks how large the logs are, and has the large ones moved out. Only for the master that holds the data folder.
 * The archiver may be ended at any time: the next one goes on with what it leaves.
 */
export function createRotation (
  { folder, options, onError }: { folder: string, options: { maxBytes: number, maxFiles: number },
    onError: (reason: string) => void }
) {
  let { maxBytes, maxFiles } = options
  /** where the live file begins */
  const starts: Map<string, number> = new Map()
  let archiver: ChildProcess | null = null
  let isStopped = false
  let isPaused = false
  let finishing: NodeJS.Timeout | undefined

  return {
    start () {
      if (listLogs(folder).length > 0)
        finishing = setTimeout(() => {
          if (!archiver) runArchiver()
        }, FINISH_AFTER_MS).unref()
    },

    /** `logs`: those that may have grown */
    look (logs: Log[]) {
      if (archiver) return
      // Also after a failure no log grows beyond what all its files may take.
      const limit = isPaused ? maxBytes * Math.max(2, maxFiles) : maxBytes
      if (logs.some((log) => (sizeOf(liveFile(folder, log)) ?? 0) - startOf(log) >= limit)) runArchiver()
    },

    /** `wanted`: from the next file that is moved on */
    configure (wanted: { maxBytes: number, maxFiles: number }) {
      if (wanted.maxBytes === maxBytes && wanted.maxFiles === maxFiles) return
      ;({ maxBytes, maxFiles } = wanted)
      endRotation()
    },

    isArchiver: (pid: number) => archiver?.pid === pid,

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

  function startOf (log: Log) {
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
      if (code !== 0 && !child.killed)
        failRotation(`the archiver of the logs ended with ${signal ?? `exit code ${code}`}`)
    })
  }

  function takeLine (line: string) {
    for (const { slot, stream, start, dropped, error } of JSON.parse(line) as Report[]) {
      starts.set(liveFile(folder, { slot, stream }), start)
      if (dropped > 0 && !isStopped)
        onError(
          `slot ${slot}, ${stream}: ${dropped} bytes were removed before they could be moved into a file of their own: the app writes faster than that, and logs.maxBytes (${maxBytes}) × logs.maxFiles (${maxFiles}) is the bound`
        )
      if (error !== null) failRotation(`slot ${slot}, ${stream}: ${error}`)
    }
  }

  function failRotation (reason: string) {
    if (isPaused || isStopped) return
    isPaused = true
    setTimeout(() => {
      isPaused = false
    }, RETRY_MS).unref()
    onError(reason)
  }
}

function startArchiver (order: Order) {
  // It ends when its stdin does. Without the environment: NODE_OPTIONS are the app's business.
  return spawn(process.execPath, [ARCHIVER, JSON.stringify(order)], { stdio: ['pipe', 'pipe', 'ignore'], env: {} })
}

function unrefChild (child: ChildProcess) {
  child.unref()
  for (const pipe of [child.stdin, child.stdout]) (pipe as Socket | null)?.unref()
}

function readLines ({ stdout }: ChildProcess, take: (line: string) => void) {
  let rest = ''
  stdout?.setEncoding('utf8').on('data', (chunk) => {
    const lines = (rest + chunk).split('\n')
    rest = lines.pop() ?? ''
    lines.forEach(take)
  })
}
