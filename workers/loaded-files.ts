import inspector from 'node:inspector'
import { createRequire } from 'node:module'
import path from 'node:path'
import { setImmediate, setTimeout } from 'node:timers'
import { fileURLToPath } from 'node:url'
import type { Channel } from './channel.ts'

/** A larger app is cut: its own files come first, then as many files of its packages as fit. */
const MAX_FILES = 10_000
/**
 * Times from one look to the next; the last one repeats. Files that load late do so with the first requests, or hardly
 * ever. A look at 1,000 ES modules takes about 50 ms the first time and a third of that later, so only few are worth
 * it.
 */
const LOOKS_MS = { rarely: [10_000, 60_000, 600_000], often: [2000] }
/** It is read here, as worker.ts then sets it to the name that the user gave. */
const ENTRY = process.argv[1]
const OWN_FOLDER = fileURLToPath(new URL('../dist/', import.meta.url))

/**
 * Tells the master which files this process has loaded, and later what has come to them. `pace`: how soon files that
 * are loaded late become known. Returns `begin`: call it once the app listens. It looks for the first time in the next
 * turn, before a connection can be accepted, so no request waits for it. If the main module is CommonJS, that first
 * look is at CommonJS alone, as a whole one would take a fifth of the start.
 */
export function tellLoadedFiles (channel: Channel, pace: 'off' | 'rarely' | 'often'): { begin: () => void } {
  const told: Set<string> = new Set()
  let hasBegun = false

  return { begin () {
    if (hasBegun || pace === 'off') return
    hasBegun = true
    setImmediate(lookForFiles, 0, LOOKS_MS[pace])
  } }

  function lookForFiles (round: number, looks: number[]) {
    const isBrief = round === 0 && pace === 'rarely' && hasCommonJsMain()
    const files = boundedFiles((isBrief ? listRequiredFiles() : listLoadedFiles()).filter((file) => !told.has(file)),
      MAX_FILES - told.size)
    for (const file of files) told.add(file)
    if (files.length > 0) channel.send({ type: 'files', files })
    if (told.size < MAX_FILES)
      setTimeout(lookForFiles, looks[Math.min(round, looks.length - 1)], round + 1, looks).unref()
  }
}

/**
 * Every file that this process has loaded as code: CommonJS, JSON and addons from the cache of `require`, ES modules
 * from the debugger's list of scripts, which V8 keeps anyway. No loader hook sees ES modules on every version from 20
 * on without a price for each import. The debugger is on for this one synchronous call alone: no `debugger` statement
 * can stop anything, and optimised code stays as it is. It does not see what worker threads load, and what an app reads
 * by itself.
 * @returns absolute paths
 */
export function listLoadedFiles (): string[] {
  const imported = listScripts().flatMap((url) => toPath(url) ?? [])
  return [...new Set([...listRequiredFiles(), ...imported])].filter((file) =>
    path.isAbsolute(file) && !file.startsWith(OWN_FOLDER)
  )
}

/** @returns absolute paths */
function listRequiredFiles (): string[] {
  const files = Object.keys(createRequire(import.meta.url).cache).filter(path.isAbsolute)
  return ENTRY && !files.includes(ENTRY) ? [...files, ENTRY] : files
}

/** A function that was made before the main module has run would not know. */
function hasCommonJsMain () {
  return createRequire(import.meta.url).main !== undefined
}

/** @returns URLs, as V8 knows them */
function listScripts (): string[] {
  const urls: string[] = []
  try {
    const session = new inspector.Session()
    session.connect()
    try {
      session.on('Debugger.scriptParsed', ({ params: { url, hasSourceURL } }) => {
        // Any code can name itself so, whatever file it came from.
        if (!hasSourceURL) urls.push(url)
      })
      session.post('Debugger.enable')
      session.post('Debugger.disable')
    } finally {
      session.disconnect()
    }
  } catch {
    // ERR_INSPECTOR_NOT_AVAILABLE, ERR_ACCESS_DENIED: a node without it, or not for this process.
  }
  return urls
}

/** Null: it is no file */
function toPath (url: string): string | null {
  try {
    return url.startsWith('file:') ? fileURLToPath(url) : path.isAbsolute(url) ? url : null
  } catch {
    // ERR_INVALID_FILE_URL_PATH: `vm` takes any name.
    return null
  }
}

function boundedFiles (files: string[], limit: number) {
  if (files.length <= limit) return files
  const isPackage = (file: string) => file.includes(`${path.sep}node_modules${path.sep}`)
  return [...files.filter((file) => !isPackage(file)), ...files.filter(isPackage)].slice(0, Math.max(0, limit))
}
