// In a bundle this takes the place of built.ts and of admin/site-code.ts. A package manager may take the files of a
// running master away, or put files of another version there. So all that a master may want later is in one file, which
// the master holds open.
import { openSync, readFileSync, readSync, renameSync, writeFileSync } from 'node:fs'
import { createRequire, getCompileCacheDir } from 'node:module'
import path from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { Script } from 'node:vm'
import type * as built from './built.ts'

/** `places`: where files begin, from the end of this list, and how many bytes they have */
type Pack = { places: Record<string, [from: number, bytes: number]>, site: string[] }

/** As build/bundle.ts writes the length of the list at the beginning of the file. */
export const LENGTH_BYTES = 12
/** By this file, beside the one that is held open, other files of the bundle come to `load`. */
export const LOADER = 'loader'
const require = createRequire(import.meta.url)

let held: Pack & { fd: number, start: number } | null = null
/** What was loaded of the pack, by the name of its file */
type Loaded = Map<string, { exports: object }>
/** It is dropped again. */
const ofSite: Loaded = new Map()
/** It stays, as what a start has loaded does. */
const ofOthers: Loaded = new Map()

/** Global variables of zod: what zod keeps there would keep all that was loaded together with zod. */
const OF_ZOD = ['__zod_globalConfig', '__zod_globalRegistry']
const globals: Record<string, unknown> = globalThis

/** By then the first requests have run what most requests run. */
const KEEP_AFTER_MS = 1000

const DIST = new URL('../../dist/', import.meta.url)

export const WORKER_CODE = beside('worker.cjs')

export const scriptPath: typeof built.scriptPath = (file) => fileURLToPath(new URL(file, DIST))

export const holdFiles: typeof built.holdFiles = () => {
  if (held) return
  // Once the file is gone, Node finds it by the very name by which it was required before.
  require(`./${LOADER}.cjs`)
  const fd = openSync(beside('pack'), 'r')
  const length = Number(read(fd, 0, LENGTH_BYTES))
  held = { ...JSON.parse(read(fd, LENGTH_BYTES, length)), fd, start: LENGTH_BYTES + length }
}

export const heldText: typeof built.heldText = (file) => {
  holdFiles()
  const { fd, start, places } = held as NonNullable<typeof held>
  if (!Object.hasOwn(places, file)) throw new Error(`${file} is no part of this version`)
  const [from, bytes] = places[file]
  return read(fd, start + from, bytes)
}

/** One file in each turn of the event loop, as workers may ask for their sockets meanwhile. */
export async function loadSite (): Promise<object> {
  holdFiles()
  const { site } = held as NonNullable<typeof held>
  for (const file of site) {
    await nextTurn()
    loadFor(ofSite, file)
  }
  return loadFor(ofSite, site.at(-1) as string)
}

/** Lets V8 collect the code once nobody has a reference to any part of it. */
export function dropSite () {
  ofSite.clear()
}

/** In files of the bundle, each `require` of a file that the pack alone has becomes this. */
export function load (file: string): object {
  return loadFor(ofOthers, file)
}

function loadFor (loaded: Loaded, file: string): object {
  const known = loaded.get(file) ?? require.cache[beside(file)]
  if (known) return known.exports
  const module = { exports: {} }
  loaded.set(file, module)
  const values = OF_ZOD.map((name) => [name, globals[name]] as const)
  for (const name of OF_ZOD) delete globals[name]
  try {
    const run = compile(file).runInThisContext()
    const requireOne = (name: string) => requireFor(loaded, name)
    Reflect.apply(run, module.exports, [module.exports, requireOne, module, beside(file), beside('.')])
  } catch (error) {
    // The next attempt begins anew.
    loaded.delete(file)
    throw error
  } finally {
    for (const [name, value] of values) {
      if (value === undefined) delete globals[name]
      else globals[name] = value
    }
  }
  return module.exports
}

/** The compiled code is kept in the folder in which Node keeps that of required files, by the name of the bundle. */
function compile (file: string): Script {
  const folder = getCompileCacheDir()
  const kept = folder && path.join(folder, `${path.basename(beside('.'))}-${file}`)
  const cachedData = kept ? readIfAny(kept) : undefined
  const script = new Script(`(function (exports, require, module, __filename, __dirname) {${heldText(file)}\n})`, {
    filename: beside(file),
    cachedData
  })
  if (kept && (!cachedData || script.cachedDataRejected))
    setTimeout(() => keepCompiled(script, kept), KEEP_AFTER_MS).unref()
  return script
}

function readIfAny (file: string): Buffer | undefined {
  try {
    return readFileSync(file)
  } catch {
    return undefined
  }
}

/** `kept`: a file for it */
function keepCompiled (script: Script, kept: string) {
  const whole = `${kept}.${process.pid}`
  try {
    writeFileSync(whole, script.createCachedData(), { mode: 0o600, flush: true })
    renameSync(whole, kept)
  } catch {
    // EACCES, ENOSPC: it is compiled each time.
  }
}

/** `name`: of a part of Node, of a package with native code, or of another file of the bundle */
function requireFor (loaded: Loaded, name: string): object {
  const file = name.startsWith('./') ? name.slice('./'.length) : ''
  return Object.hasOwn(held?.places ?? {}, file) ? loadFor(loaded, file) : require(name)
}

function read (fd: number, from: number, bytes: number): string {
  const content = Buffer.alloc(bytes)
  if (readSync(fd, content, 0, bytes, from) < bytes) throw new Error(`${beside('pack')} is cut off`)
  return content.toString()
}

function beside (file: string): string {
  return fileURLToPath(new URL(file, import.meta.url))
}
