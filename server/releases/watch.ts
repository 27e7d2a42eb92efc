import { existsSync, readdirSync, realpathSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { watch as watchFiles } from 'chokidar'
import { attempt, errorCode, errorText } from '../errors.ts'
import { splitOption } from '../launch/node-options.ts'
import type { StrategyWish } from '../lifecycle/rollout/strategy.ts'
import type { Logs } from '../logs/logs.ts'
import type { DeckEvent, EventStream } from '../events/stream.ts'
import type { WorkerConfig } from './launch-spec.ts'

const MAX_FILES = 10_000
/** An editor writes a file more than once, and a checkout writes many files: all of that starts one rollout. */
const DEBOUNCE_MS = 200
/** A removed file is looked for this often: watching its folder would miss some that come back. */
const LOOK_FOR_MISSING_MS = 250
const ENV_FILE = /^--env-file(-if-exists)?$/
/** Sources of a program of another language. What it writes itself, such as a database or a log, must not deploy it. */
const IS_SOURCE =
  /\.(py|rb|erb|php|go|rs|java|kt|scala|ex|exs|pl|lua|cs|c|cc|cpp|h|[cm]?[jt]sx?|html|css|tmpl|jinja2?|toml|ya?ml)$/
/** Folders of tools and packages. */
const NOT_ITS_OWN = /^(\..+|node_modules|__pycache__|venv|target|vendor)$/
const MAX_ERROR_LINES = 6
const MAX_LINE_CHARS = 300
const ENDS = ['rollout.succeeded', 'rollout.failed', 'rollout.rolled-back', 'master.upgrade-failed']
/** These refusals end by themselves: the change is rolled out after that. */
const BUSY = ['rollout-running', 'upgrade-running', 'starting']

export function watchFor ({ deck, logs, events, tell, current }: {
  deck: { deploy: (wanted: { actor: string, strategy: StrategyWish }) => Promise<unknown> },
  logs: Logs,
  events: EventStream,
  tell: (line: string) => void,
  /** by the configuration that was read last */
  current: () => { config: WorkerConfig, configFile: string | null }
}) {
  return createWatcher({
    // A held rollout would keep the next change from being tried.
    deploy: () => deck.deploy({ actor: 'watch', strategy: { onFailure: 'rollback' } }),
    events,
    stderrOf: ({ slot, worker }) =>
      slot === null || worker === null ? [] : logs.tail({ slot, worker, stream: 'stderr', lines: 20 }),
    startedWith () {
      const { config: { entry, envFile, execArgv, cwd }, configFile } = current()
      return [entry, envFile, configFile, ...envFilesIn(execArgv).map((file) => path.resolve(cwd, file))].filter((
        file
      ) => typeof file === 'string')
    },
    tell
  })
}

/** `execArgv`: options of node */
function envFilesIn (execArgv: readonly string[]): string[] {
  return execArgv.flatMap((word, at) => {
    const [name, value = execArgv[at + 1]] = splitOption(word)
    return ENV_FILE.test(name) && value !== undefined ? [value] : []
  })
}

/**
 * Watches the files that the workers have loaded, without their packages, those that they are started with, and links
 * that lead to either, and rolls out each change. Changes during a rollout are
 * rolled out together after it.
 */
export function createWatcher ({ deploy, events, stderrOf, startedWith = () => [], tell }: {
  /** starts a rollout; throws a DeckError if it cannot */
  deploy: () => unknown,
  events: Pick<EventStream, 'subscribe'>,
  /** the last lines of a worker that has ended */
  stderrOf: (exit: DeckEvent) => string[],
  /** further files by the present configuration, absolute; they need not be there */
  startedWith?: () => string[],
  /** takes text of the app's own */
  tell: (line: string) => void
}) {
  const folders: string[] = []
  const watcher = watchFiles([], { ignoreInitial: true,
    ignored: (file) => folders.some((folder) => isLeftOut(path.relative(folder, file))) })
  const watched: Set<string> = new Set()
  const missing: Set<string> = new Set()
  /**
   * Where links, and paths that may pass some, lead: a watch stays with the file that it has found. Empty: there is
   * none.
   */
  const ways: Map<string, string> = new Map()
  const looking = setInterval(lookForMissing, LOOK_FOR_MISSING_MS).unref()
  let timer: NodeJS.Timeout | undefined
  /** Something has changed since the last rollout began. */
  let hasChanged = false
  let hasFailed = false
  /** All workers fail with the same error, which is printed once after each change. */
  let lastError = ''

  watcher.on('all', (event, file) => {
    if (!watched.has(file)) {
      if (folders.length > 0 && IS_SOURCE.test(file)) onChanged()
      return
    }
    if (event === 'unlink') missing.add(file)
    onChanged()
  })
  // EMFILE, ENOSPC: too many watches for this system. One message for all files is enough.
  watcher.on('error', (error) => {
    if (!hasFailed) tell(`watch: ${errorText(error)}`)
    hasFailed = true
  })
  const unsubscribe = events.subscribe((event) => {
    if (ENDS.includes(event.type)) addStartedWith()
    if (ENDS.includes(event.type) && hasChanged) rollSoon()
    if (event.type === 'worker.exited' && event.cause === 'boot-failure') explainExit(event)
  })

  addStartedWith()

  return {
    add: addFiles,

    /** Another program does not say what it has loaded: all of its sources count. `folder`: absolute. */
    addFolder (folder: string) {
      folders.push(folder)
      watcher.add(folder)
    },

    async close () {
      clearTimeout(timer)
      clearInterval(looking)
      unsubscribe()
      await watcher.close()
    }
  }

  function addStartedWith () {
    for (const file of startedWith()) if (!ways.has(file)) follow(file)
  }

  /** Tells whether it leads elsewhere than before */
  function follow (file: string): boolean {
    const real = realPath(file)
    const isOther = real !== '' && real !== ways.get(file)
    if (isOther || !ways.has(file)) ways.set(file, real)
    if (isOther) addFiles([real])
    return isOther
  }

  /** Links beside loaded files, by which these may have been found. */
  function findLinks () {
    for (const folder of new Set([...watched].map((file) => path.dirname(file)))) {
      for (const link of linksIn(folder)) {
        const real = realPath(link)
        if (!ways.has(link) && [...watched].some((file) => `${file}/`.startsWith(`${real}/`))) ways.set(link, real)
      }
    }
  }

  /** `files`: absolute paths, as a worker names them: anything */
  function addFiles (files: unknown[]) {
    const before = watched.size
    for (const file of files) {
      if (typeof file !== 'string' || watched.size >= MAX_FILES || watched.has(file) || !isOwn(file)) continue
      watched.add(file)
      watcher.add(file)
    }
    if (watched.size > before) findLinks()
  }

  /** `exit`: of a worker that does not say any more what it has loaded */
  function explainExit (exit: DeckEvent) {
    const lines = firstLines(exit, stderrOf(exit))
    if (lastError !== lines.join()) { for (const line of lines) tell(`  ${line}`) }
    lastError = lines.join()
    addFiles(
      [...String(exit.detail?.stack ?? '').split('\n'), ...lines].flatMap(filesIn).filter((file) => existsSync(file))
    )
  }

  function lookForMissing () {
    for (const link of ways.keys()) if (follow(link)) onChanged()
    for (const file of missing) {
      if (!existsSync(file)) continue
      missing.delete(file)
      watcher.add(file)
      onChanged()
    }
  }

  function onChanged () {
    hasChanged = true
    lastError = ''
    rollSoon()
  }

  function rollSoon () {
    clearTimeout(timer)
    timer = setTimeout(deployChange, DEBOUNCE_MS)
  }

  async function deployChange () {
    hasChanged = false
    try {
      await deploy()
    } catch (error) {
      if (BUSY.includes(errorCode(error) ?? '')) hasChanged = true
      else if (errorCode(error) !== 'stopping') tell(`watch: ${errorText(error)}`)
    }
  }
}

/** `line`: of an error @returns absolute paths of the sources that it names */
function filesIn (line: string): string[] {
  const [, text] = /((?:file:\/\/)?\/[^\s()'"]+?\.[cm]?[jt]sx?)\b/.exec(line.slice(0, 1000)) ?? []
  if (text === undefined) return []
  return attempt(() => [text.startsWith('file:') ? fileURLToPath(text) : text], [])
}

/** `name`: from a folder that is watched */
function isLeftOut (name: string) {
  return !name.startsWith('..') && name.split(path.sep).some((part) => NOT_ITS_OWN.test(part))
}

/** @returns empty: it is not there */
function realPath (file: string): string {
  return attempt(() => realpathSync.native(file), '')
}

/** @returns absolute */
function linksIn (folder: string): string[] {
  return attempt(() => readdirSync(folder, { withFileTypes: true }), []).flatMap((each) =>
    each.isSymbolicLink() && each.name !== 'node_modules' ? [path.join(folder, each.name)] : []
  )
}

function isOwn (file: string) {
  return path.isAbsolute(file) && !file.includes('\0') && !file.split(path.sep).includes('node_modules')
}

/** If a source cannot be parsed, only stderr names the place. */
function firstLines ({ detail }: DeckEvent, stderr: string[]) {
  const { errorName, stack = '' } = detail ?? {}
  if (!errorName) return []
  const at = stderr.findLastIndex((line) => line.startsWith(errorName))
  const lines = at === -1 ? stack.split('\n') : stderr.slice(Math.max(0, at - 4), at + 2)
  return lines.filter((line) => line.trim() !== '').slice(0, MAX_ERROR_LINES).map((line) =>
    line.slice(0, MAX_LINE_CHARS)
  )
}
