import path from 'node:path'
import { watch as watchFiles } from 'chokidar'

const MAX_FILES = 10_000
/** An editor writes a file more than once, and a checkout many. */
const DEBOUNCE_MS = 200
const MAX_ERROR_LINES = 6
const MAX_LINE_CHARS = 300
const ENDS = ['rollout.succeeded', 'rollout.failed', 'rollout.rolled-back']
/** What ends by itself: the change is rolled out after it. */
const BUSY = ['rollout-running', 'upgrade-running', 'starting']

/**
 * Rolls out what a developer has changed: watches the files that the workers have loaded, without their packages. A
 * change that comes while something is rolled out is remembered, once.
 * @param {object} parts
 * @param {() => unknown} parts.deploy  starts a rollout; throws a DeckError where it cannot
 * @param {Pick<import('../event-stream.js').EventStream, 'subscribe'>} parts.events
 * @param {(exit: import('../event-stream.js').DeckEvent) => string[]} parts.stderrOf  the last lines of a worker that has ended
 * @param {(line: string) => void} parts.tell  takes text of the app's own
 */
export function createWatcher ({ deploy, events, stderrOf, tell }) {
  const watcher = watchFiles([], { ignoreInitial: true })
  /** @type {Set<string>} */
  const watched = new Set()
  /** @type {NodeJS.Timeout | undefined} */
  let timer
  /** Something has changed since the last rollout began. */
  let hasChanged = false

  watcher.on('all', (event, file) => {
    // What has no file is watched by its folder, until it is there again.
    if (event === 'unlink') watcher.add(file)
    if (watched.has(file)) changed()
  })
  // EMFILE, ENOSPC: too many watches for this system.
  watcher.on('error', (/** @type {any} */ error) => tell(`watch: ${error.message}`))
  const unsubscribe = events.subscribe((event) => {
    if (ENDS.includes(event.type) && hasChanged) rollSoon()
    if (event.type === 'worker.exited' && event.cause === 'boot-failure') for (const line of firstLines(event, stderrOf(event))) tell(`  ${line}`)
  })

  return {
    /** @param {unknown[]} files  absolute paths, as a worker names them: anything */
    add (files) {
      for (const file of files) {
        if (typeof file !== 'string' || watched.size >= MAX_FILES || watched.has(file) || !isOwn(file)) continue
        watched.add(file)
        watcher.add(file)
      }
    },

    async close () {
      clearTimeout(timer)
      unsubscribe()
      await watcher.close()
    }
  }

  function changed () {
    hasChanged = true
    rollSoon()
  }

  function rollSoon () {
    clearTimeout(timer)
    timer = setTimeout(roll, DEBOUNCE_MS)
  }

  async function roll () {
    hasChanged = false
    try {
      await deploy()
    } catch (/** @type {any} */ error) {
      if (BUSY.includes(error.code)) hasChanged = true
      else if (error.code !== 'stopping') tell(`watch: ${error.message}`)
    }
  }
}

/** @param {string} file */
function isOwn (file) {
  return path.isAbsolute(file) && !file.includes('\0') && !file.split(path.sep).includes('node_modules')
}

/**
 * Where a source cannot be parsed, only stderr names the place.
 * @param {import('../event-stream.js').DeckEvent} exit @param {string[]} stderr
 */
function firstLines ({ detail }, stderr) {
  if (!detail?.errorName) return []
  const at = stderr.findLastIndex((line) => line.startsWith(detail.errorName))
  const lines = at === -1 ? String(detail.stack ?? '').split('\n') : stderr.slice(Math.max(0, at - 4), at + 2)
  return lines.filter((line) => line.trim() !== '').slice(0, MAX_ERROR_LINES).map((line) => line.slice(0, MAX_LINE_CHARS))
}
